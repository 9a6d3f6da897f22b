//! A limit that a command met, for the result of the call and for the row of its Pod.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A limit of commands that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitMet {
    pub kind: LimitKind,
    /// The limit with its number.
    pub sentence: String,
}

/// The resource whose limit a command met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Processes and threads.
    Processes,
    Memory,
    /// Open files and sockets of one process.
    OpenFiles,
    /// The size of one file.
    FileSize,
    /// Space in an in-memory file system of a command, or in the storage of its Pod.
    Space,
    /// From a newer host.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processes => "processes",
            Self::Memory => "memory",
            Self::OpenFiles => "open files",
            Self::FileSize => "file size",
            Self::Space => "space",
            Self::Unknown => "unknown",
        })
    }
}
