//! Paths outside its scope that a command names and is given for itself alone.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A path that one command gets besides its scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutsidePath {
    /// Canonical.
    pub path: PathBuf,
    pub access: OutsideAccess,
}

/// What a command may do at such a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsideAccess {
    Read,
    Write,
    /// Connect to the program that listens at this socket.
    Socket,
}

impl OutsideAccess {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Socket];

    /// The word in a rule: `Bash+read=/srv/data`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Socket => "socket",
        }
    }

    /// Whether a rule that allows this allows the other, too.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::Write && other == Self::Read
    }
}

impl std::fmt::Display for OutsidePath {
    /// `write /srv/data`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.access.word(), self.path.display())
    }
}
