//! Why the store refused or failed.

use crate::disk::DiskError;
use crate::protocol::Refusal;
use crate::protocol::name::PodName;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::path::{Path, PathBuf};

/// Every error of the store, by what is to be done about it. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name, or one that differs only in case, is in use.
    #[error("there is already a pod named {0}; choose another name")]
    Taken(PodName),
    #[error("there is no pod named {0}")]
    NoSuchPod(PodName),
    /// The first decision counts, and a request that was withdrawn takes none.
    #[error("that request was decided or withdrawn already")]
    NotAsked,
    /// Rules end when their Pod stops.
    #[error("pod {0} is stopped, and no rule is made for it: :restore {0} comes first")]
    NoRule(PodName),
    #[error("pod {0} was used again and is kept")]
    NotEphemeral(PodName),
    /// The row of a Pod cannot be read.
    #[error("the record of pod {name} cannot be read: {reason}; delete it with :rm {name}")]
    Damaged { name: String, reason: String },
    #[error(
        "{} was written by a newer yoi (version {found}, this one knows {known}); use that one",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("no space left for {}; free some there and try again", .0.display())]
    Full(PathBuf),
    #[error("cannot {action} {}: {source}", path.display())]
    Database { action: &'static str, path: PathBuf, source: rusqlite::Error },
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The database of this host was deleted or replaced; the sentence says what happened.
    #[error("{0}")]
    NotOurs(String),
    #[error("the store is closed; start the host again")]
    Closed,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::internal(error.to_string())
    }
}

impl StoreError {
    /// For `map_err`: the error of doing `action` to the database at `path`.
    pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error() {
            Some(error)
                if error.code == ErrorCode::DiskFull
                    || error.extended_code == SQLITE_IOERR_SHMSIZE =>
            {
                Self::Full(path.to_owned())
            }
            _ => Self::Database { action, path: path.to_owned(), source },
        }
    }
}
