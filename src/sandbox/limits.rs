//! How much of the machine one command may use.

use serde::{Deserialize, Serialize};

/// The limits of one command; sizes are in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads, together.
    pub processes: u32,
    /// What `/tmp` holds.
    pub tmp_mib: u32,
    /// What the home directory holds beyond what is granted in it.
    pub home_mib: u32,
    /// What `/dev/shm` holds.
    pub shm_mib: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { processes: 4096, tmp_mib: 1024, home_mib: 256, shm_mib: 256 }
    }
}
