//! Why a log could not be written or read.

use crate::disk::{AppendError, DiskError};
use crate::protocol::{EntryId, Refusal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every error of a log, by what is to be done about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// Nothing of what was to be written is in the log.
    #[error("{0}; free some space there, then go on with :resume")]
    Full(Arc<DiskError>),
    /// The system refused; its reason is inside.
    #[error("{0}")]
    Disk(Arc<DiskError>),
    /// Another program appended to the file.
    #[error("{0}; end the other one, then go on with :resume")]
    SecondWriter(Arc<AppendError>),
    /// Another program cut the file.
    #[error("{0}; put a backup of it in its place, or go on with what is left with :resume")]
    Truncated(Arc<AppendError>),
    /// Another file, or none, lies where the log was.
    #[error("{0}: nothing more is written to it; put it back, then go on with :resume")]
    Replaced(Arc<AppendError>),
    /// A write failed before; opening the log again checks it.
    #[error("{} takes no more entries after an earlier failure; :resume opens it again", .0.display())]
    Final(PathBuf),
    /// The journal was closed, or its task is gone.
    #[error("{} is closed; :resume opens it again", .0.display())]
    Closed(PathBuf),
    #[error("cannot write to {}: {why}; :resume opens it again", path.display())]
    NotCommitted { path: PathBuf, why: String },
    #[error("there is no log at {}; put it back, or delete the Pod with :rm", .0.display())]
    Missing(PathBuf),
    #[error(
        "the log {} is empty: what it held is lost; put a copy of it in its place, or delete the Pod with :rm",
        .0.display()
    )]
    Empty(PathBuf),
    #[error("{} cannot be read at byte {byte}: {reason}", path.display())]
    Damaged { path: PathBuf, byte: u64, reason: String },
    #[error("there is no entry {entry} in {} or before it", path.display())]
    NoSuchEntry { entry: EntryId, path: PathBuf },
    #[error("there is no entry {entry} in {}; name one that it has, or none for all of it", path.display())]
    NotThere { entry: EntryId, path: PathBuf },
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> Self {
        if error.is_full() {
            return Self::Full(Arc::new(error));
        }
        if error.is_missing() {
            return Self::Missing(error.path);
        }
        Self::Disk(Arc::new(error))
    }
}

impl From<AppendError> for LogError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Disk(error) => error.into(),
            AppendError::SecondWriter { .. } => Self::SecondWriter(Arc::new(error)),
            AppendError::Truncated { .. } => Self::Truncated(Arc::new(error)),
            AppendError::Replaced { .. } => Self::Replaced(Arc::new(error)),
            AppendError::Final { path } => Self::Final(path),
        }
    }
}

impl LogError {
    pub(crate) fn not_committed(path: &Path, why: &crate::disk::NotCommitted) -> Self {
        Self::NotCommitted { path: path.to_owned(), why: why.to_string() }
    }

    /// For `map_err`: the error of reading `path`.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let at = DiskError::at("read", path);
        move |error| at(error).into()
    }
}
