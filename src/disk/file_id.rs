//! Which file or directory it is, whatever its path is now.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The identity of a file or directory: its device and inode. Two files have the same one only when
/// they are one file. It is unique while the file is held open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

/// The identity that a directory keeps when it is moved within its file system, also after a restart of the machine: its
/// inode and the time of its birth. `None`: it is not there, or its file system does not know that time. Blocking.
pub fn lasting_id(dir: &Path) -> Option<String> {
    let found = fs::metadata(dir).ok().filter(Metadata::is_dir)?;
    let born = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{}-{}", found.ino(), born.as_nanos()))
}

impl FileId {
    /// The identity of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::read(&file.metadata()?))
    }

    /// The identity of what lies at a path now; links are followed. `None`: nothing lies there.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        Self::found(fs::metadata(path))
    }

    /// As [`FileId::at`]; of a link it is that of the link.
    pub fn at_link(path: &Path) -> io::Result<Option<Self>> {
        Self::found(fs::symlink_metadata(path))
    }

    /// Whether an open file is the one that lies at a path now; links are followed.
    pub fn is_at(file: &File, path: &Path) -> bool {
        Self::of(file).is_ok_and(|id| Self::at(path).ok().flatten() == Some(id))
    }

    fn found(found: io::Result<Metadata>) -> io::Result<Option<Self>> {
        match found {
            Ok(found) => Ok(Some(Self::read(&found))),
            Err(error) if missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn device(self) -> u64 {
        self.device
    }

    pub fn inode(self) -> u64 {
        self.inode
    }

    /// The identity of what this was read of.
    pub fn read(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// Whether nothing lies at the path that this error is about.
fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
