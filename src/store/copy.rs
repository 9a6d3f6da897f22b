//! A private copy of a database whose directory cannot be written: SQLite opens a database with a write-ahead log only
//! where it can write beside it, and a migration changes it.

use crate::disk::{DiskError, open_regular};
use crate::store::open::with_suffix;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use tempfile::TempDir;

/// Copies a database and what was committed to its log, into a directory that is removed when it is dropped. The copy has
/// the same name. Blocking.
pub fn copy(database: &Path) -> Result<TempDir, DiskError> {
    let private = tempfile::Builder::new()
        .prefix("yoi-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir();
    let private =
        private.map_err(DiskError::at("make a directory below", &std::env::temp_dir()))?;
    let copied = private.path().join(database.file_name().unwrap_or_default());
    for suffix in ["", "-wal"] {
        let from = with_suffix(database, suffix);
        match copy_file(&from, &with_suffix(&copied, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DiskError::at("copy", &from)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(private)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = open_regular(from)?;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(drop)
}
