//! Opens every file that a Pod or its host reads for it: for tools, attachments, instructions and
//! settings of a workspace. A path is resolved, checked by the caller, and opened below a root
//! without following links that were created meanwhile; only regular files are read, and only up to
//! a limit. All functions are blocking.

mod canonical;
mod kernel;
mod open;
mod picture;
mod resolve;
mod spelling;
#[cfg(test)]
mod tests;
mod workspace;

pub use canonical::{canonical, leads_through_links, led_to, links_on, names_on, places_on};
pub use kernel::{closes, is_processes};
pub use open::{
    Found, Limit, Miss, is_file, list_directory, make_directory, open_file, read_below, retry,
};
pub use picture::{MAX_PICTURE, picture};
pub use resolve::{Resolved, lexical, refuse_not_text, resolve, without_parents};
pub use spelling::{composed, other_spelling};
pub use workspace::WorkspaceFiles;

use std::path::{Path, PathBuf};

/// Why a file was not opened, as the sentence that a person or a model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file. The text is what a sentence about it adds.
    #[error("file not found: {}{}", .0.display(), .1)]
    Missing(PathBuf, String),
    #[error("file is too large: {} has {}, the limit is {}", .path.display(), crate::files::size(*.size), crate::files::size(*.most))]
    TooLarge { path: PathBuf, size: u64, most: u64 },
    /// The path may not be opened; another path can succeed.
    #[error("{0}")]
    Refused(String),
    /// The disk or another program prevents it.
    #[error("{0}")]
    Failed(String),
}

impl FileError {
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }

    /// The error of a system call on a path.
    fn of_system(doing: &str, path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{doing} {}: {error}", path.display()))
    }
}

/// The first of these secrets that equals or contains a canonical path.
pub fn secret_of<'a>(path: &Path, secrets: &'a [PathBuf]) -> Option<&'a PathBuf> {
    secrets.iter().find(|secret| {
        path.starts_with(secret) || canonical(secret).is_ok_and(|secret| path.starts_with(secret))
    })
}

/// The error for a path in this secret.
pub fn is_secret(path: &Path, secret: &Path) -> String {
    format!(
        "path is secret, no tool reads or writes it: {} ({} is on the list of secrets)",
        path.display(),
        secret.display()
    )
}

/// Formats a number of bytes for a person.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    let mut scale = 1;
    while unit + 1 < UNITS.len() && bytes / scale >= 1024 {
        scale *= 1024;
        unit += 1;
    }
    if unit == 0 {
        return format!("{bytes} bytes");
    }
    let tenths = u128::from(bytes) * 10 / u128::from(scale);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}
