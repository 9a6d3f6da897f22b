//! The error of a call, as the model reads it.

use crate::files::FileError;
use std::fmt::Display;
use std::path::Path;

/// The error of a call, by the cause that must change before it can succeed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The arguments: the model can call again with others.
    #[error("{0}")]
    Argument(String),
    /// The machine: a disk, a process, a file that changes.
    #[error("{0}")]
    Execution(String),
    /// The host itself.
    #[error("yoi itself failed: {0}")]
    Internal(String),
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        match error {
            FileError::TooLarge { .. } => {
                Self::Argument(format!("{error}; use Grep, or Bash with head, tail or sed"))
            }
            FileError::Missing(..) | FileError::Refused(_) => Self::Argument(error.to_string()),
            FileError::Failed(text) => Self::Execution(text),
        }
    }
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
