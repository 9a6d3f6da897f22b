//! Why a call failed, in the words a model reads.

use std::fmt::Display;
use std::path::Path;

/// A failed call, by who has to change something.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The model: other arguments can work.
    #[error("Invalid argument: {0}")]
    Argument(String),
    /// The world: a disk, a process, a file that changes.
    #[error("Execution failed: {0}")]
    Execution(String),
    /// We.
    #[error("Internal: {0}")]
    Internal(String),
}

impl Fault {
    pub fn argument(text: impl Into<String>) -> Self {
        Self::Argument(text.into())
    }

    /// A file error, with its path.
    pub fn io(doing: &str, path: &Path, error: impl Display) -> Self {
        Self::Execution(format!("{doing} {}: {error}", path.display()))
    }

    pub fn cancelled() -> Self {
        Self::Execution("cancelled".into())
    }
}
