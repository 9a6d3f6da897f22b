//! The few ways files are written: a file is replaced whole, or lines are appended to it. Every
//! error names its path.

mod append;
mod changes;
mod committers;
mod file_id;
mod remove;
mod rotated;

#[cfg(test)]
pub use append::small;
pub use append::{AppendError, Appender};
pub use changes::Changes;
pub use committers::{NotCommitted, commit};
pub use file_id::{FileId, lasting_id};
pub use remove::{open_up, remove_tree};
pub use rotated::{RotatedFile, generations};

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What could not be done with which file or directory, and what the system said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct DiskError {
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl DiskError {
    /// For `map_err`: the error of doing `action` to `path`.
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }

    /// Whether there is no room left on the device or in the quota.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the file or directory does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Creates a directory and what is missing above it, each readable by its owner only, durably.
pub fn private_dir(path: &Path) -> Result<(), DiskError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        private_dir(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_dir(parent.unwrap_or(Path::new("."))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(DiskError::at("create the directory", path)(error)),
    }
}

/// Replaces a file: readers see the old content or the new, also after a power cut.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DiskError> {
    let staged = Staged::beside(path, mode)?;
    let staged = staged.filled(bytes)?;
    staged.file.persist(path).map_err(|error| DiskError::at("replace", path)(error.error))?;
    sync_dir(&staged.dir)
}

/// Creates a file whole, durably; one that exists is left alone and is an error.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DiskError> {
    let staged = Staged::beside(path, mode)?.filled(bytes)?;
    staged.create(path)
}

/// Creates a file whole from what `write` puts into it, durably; one that exists is left alone
/// and is an error.
pub fn create_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DiskError> {
    let mut staged = Staged::beside(path, mode)?;
    let mut buffer = io::BufWriter::with_capacity(1 << 16, staged.file.as_file_mut());
    let written = write(&mut buffer).and_then(|()| buffer.flush());
    drop(buffer);
    written.map_err(DiskError::at("write", path))?;
    staged.create(path)
}

/// Makes what was created, renamed or removed in a directory durable.
pub fn sync_dir(path: &Path) -> Result<(), DiskError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(DiskError::at("sync", path))
}

/// The flags with which opening a FIFO does not wait for its other end.
pub fn without_waiting() -> i32 {
    custom(OFlags::NONBLOCK)
}

/// The flag with which a link is not opened.
pub fn without_following() -> i32 {
    custom(OFlags::NOFOLLOW)
}

/// Flags as [`fs::OpenOptions`] takes them.
fn custom(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}

/// Refuses what is not a regular file.
pub fn must_be_regular(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Refuses what is not a regular file, and a file that has a second name: it would be changed under that
/// name, too.
pub fn must_have_one_name(file: &File) -> io::Result<()> {
    must_be_regular(file)?;
    match file.metadata()?.nlink() {
        0 | 1 => Ok(()),
        _ => Err(io::Error::other("it is a hard link, so another file would be changed, too")),
    }
}

/// Opens a file for reading. What is not a regular file is an error, and a FIFO is not waited for.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new().read(true).custom_flags(without_waiting()).open(path)?;
    must_be_regular(&file)?;
    Ok(file)
}

/// A temporary file in the directory where it shall appear.
struct Staged {
    file: tempfile::NamedTempFile,
    dir: PathBuf,
    path: PathBuf,
}

impl Staged {
    fn beside(path: &Path, mode: u32) -> Result<Self, DiskError> {
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".new-")
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(&dir)
            .map_err(DiskError::at("write", path))?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))
            .map_err(DiskError::at("set the mode of", path))?;
        Ok(Self { file, dir, path: path.to_owned() })
    }

    fn filled(mut self, bytes: &[u8]) -> Result<Self, DiskError> {
        self.file.write_all(bytes).map_err(DiskError::at("write", &self.path))?;
        self.file.as_file().sync_all().map_err(DiskError::at("sync", &self.path))?;
        Ok(self)
    }

    fn create(self, path: &Path) -> Result<(), DiskError> {
        self.file.as_file().sync_all().map_err(DiskError::at("sync", path))?;
        self.file
            .persist_noclobber(path)
            .map_err(|error| DiskError::at("create", path)(error.error))?;
        sync_dir(&self.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn directories_are_private_all_the_way_down() {
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("a/b/c");
        private_dir(&deep).unwrap();
        private_dir(&deep).unwrap();
        for dir in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(&temp.path().join(dir)), 0o700, "{dir}");
        }
    }

    #[test]
    fn replacing_leaves_one_file_with_the_new_content_and_the_mode() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("keys");
        replace(&path, b"old", 0o644).unwrap();
        replace(&path, b"new", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn creating_refuses_a_file_that_exists_and_leaves_it_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        create(&path, b"first", 0o600).unwrap();
        let error = create(&path, b"second", 0o600).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = create_with(&path, 0o600, |_| Err(full)).unwrap_err();
        assert!(error.is_full());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
