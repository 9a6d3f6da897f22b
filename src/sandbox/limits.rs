//! How much of the machine one command may use.

use crate::sandbox::view::Isolation;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The fewest processes that the kernel lets a PID namespace be limited to.
const FEWEST: u32 = 301;

/// The limits of one command; sizes are in MiB, and 0 is no limit where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads, together.
    pub processes: u32,
    /// Memory of one process; 0 is no limit.
    pub memory_mib: u32,
    /// One file that it writes; 0 is no limit.
    pub file_mib: u32,
    /// What `/tmp` of the Pod holds.
    pub tmp_mib: u32,
    /// What the Pod adds to the caches of toolchains.
    pub cache_mib: u32,
    /// What the home directory holds beyond what is granted in it.
    pub home_mib: u32,
    /// What `/dev/shm` holds.
    pub shm_mib: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        let (memory_mib, file_mib) = (0, 16_384);
        let (tmp_mib, cache_mib, home_mib, shm_mib) = (1024, 8192, 256, 256);
        Self { processes: 4096, memory_mib, file_mib, tmp_mib, cache_mib, home_mib, shm_mib }
    }
}

impl CommandLimits {
    /// Processes and threads, as many as the kernel can be told.
    pub fn most_processes(&self) -> u32 {
        self.processes.max(FEWEST)
    }

    /// Sets what the kernel counts for one process, or for the user of a world. A limit that is lower
    /// already stays.
    pub fn apply(&self, isolation: Isolation) {
        let bytes = |mib: u32| (mib > 0).then_some(u64::from(mib) << 20);
        lower(Resource::Data, bytes(self.memory_mib));
        lower(Resource::Fsize, bytes(self.file_mib));
        lower(Resource::Core, Some(0));
        // Of a user namespace of its own; elsewhere all processes of the person would count.
        if isolation == Isolation::Namespaces {
            lower(Resource::Nproc, Some(self.most_processes().into()));
        }
    }

    /// What to say where a program failed with these words: which limit it may have met.
    pub fn sentence(&self, content: &str) -> Option<String> {
        let has = |words: &[&str]| words.iter().any(|word| content.contains(word));
        let Self { memory_mib, file_mib, home_mib, shm_mib, .. } = self;
        if has(&["Resource temporarily unavailable", "can't start new thread", "Cannot fork"]) {
            let most = self.most_processes();
            return Some(format!("a command has at most {most} processes and threads"));
        }
        if has(&["No space left on device"]) {
            return Some(format!(
                "a command has {home_mib} MiB in its home directory and {shm_mib} MiB in /dev/shm; \
                 large files belong into the workspace"
            ));
        }
        if *file_mib > 0 && has(&["File too large", "File size limit exceeded"]) {
            return Some(format!("a file that a command writes has at most {file_mib} MiB"));
        }
        if *memory_mib > 0 && has(&["Cannot allocate memory", "MemoryError", "out of memory"]) {
            return Some(format!("a process of a command has at most {memory_mib} MiB of memory"));
        }
        None
    }
}

fn lower(resource: Resource, most: Option<u64>) {
    let Some(most) = most else { return };
    let held = rustix::process::getrlimit(resource);
    let least = |held: Option<u64>| Some(held.map_or(most, |held| held.min(most)));
    let limit = Rlimit { current: least(held.current), maximum: least(held.maximum) };
    // Lowering never fails for this process itself.
    let _ = setrlimit(resource, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_met_is_said_in_a_sentence() {
        let limits = CommandLimits { memory_mib: 64, ..CommandLimits::default() };
        let cases = [
            ("bash: fork: retry: Resource temporarily unavailable", Some("4096 processes")),
            ("cp: error writing 'a': No space left on device", Some("256 MiB in /dev/shm")),
            ("head: write error: File too large", Some("16384 MiB")),
            ("MemoryError", Some("64 MiB of memory")),
            ("cat: a: No such file or directory", None),
        ];
        for (content, expected) in cases {
            let said = limits.sentence(content);
            assert_eq!(said.is_some(), expected.is_some(), "{content}: {said:?}");
            assert!(said.unwrap_or_default().contains(expected.unwrap_or("")), "{content}");
        }
        assert_eq!(CommandLimits::default().sentence("MemoryError"), None);
    }
}
