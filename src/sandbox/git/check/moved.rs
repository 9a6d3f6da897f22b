//! Moves what a command put at a guarded path out of the scope.

use crate::disk::remove_tree;
use crate::sandbox::access::pod_storage::PodStorage;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a name on Linux file systems.
const LONGEST_NAME: usize = 255;
/// What is copied at most to another file system: entries, and bytes of one file.
const ENTRIES: usize = 1_000;
const BYTES: u64 = 16 * 1024 * 1024;

/// The directory of the moved files in the storage of a Pod. Without one they stay beside, under another name.
#[derive(Debug, Default)]
pub struct MovedFiles(Option<PathBuf>);

impl MovedFiles {
    pub fn to(storage: Option<&PodStorage>) -> Self {
        Self(storage.map(PodStorage::moved))
    }

    /// Moves the entry `name` of a directory, which was made at `path`. Returns where it is.
    pub fn add(&self, from: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<PathBuf> {
        let own = path.file_name().unwrap_or(name);
        if let Some(place) = self.0.as_deref().and_then(|store| moved(store, from, name, own).ok())
        {
            return Ok(place);
        }
        let other = beside(own, "put-aside");
        renameat(from, name, from, &*other)?;
        Ok(path.with_file_name(other))
    }
}

/// A name that no file has, made of this one. A long name is cut, because the new one must not be too long.
pub fn beside(name: &OsStr, what: &str) -> OsString {
    let end = format!(".{what}-{}", uuid::Uuid::now_v7().simple());
    let name = name.as_bytes();
    let kept = name.len().min(LONGEST_NAME - end.len());
    OsString::from_vec([&name[..kept], end.as_bytes()].concat())
}

fn moved(store: &Path, from: &OwnedFd, name: &OsStr, own: &OsStr) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(store)?;
    let to = fs::File::open(store)?;
    let fresh = beside(own, "moved");
    let place = store.join(&fresh);
    match renameat(from, name, &to, &*fresh) {
        Ok(()) => Ok(place),
        Err(Errno::XDEV) => {
            let mut left = ENTRIES;
            let copied = copy(from, name, &OwnedFd::from(to), &fresh, &mut left);
            if let Err(error) = copied.and_then(|()| remove(from, name)) {
                let _ = remove_tree(&place);
                return Err(error);
            }
            Ok(place)
        }
        Err(error) => Err(error.into()),
    }
}

/// Copies a file, a link or a directory, without permissions to execute.
fn copy(
    from: &OwnedFd,
    name: &OsStr,
    to: &OwnedFd,
    own: &OsStr,
    left: &mut usize,
) -> io::Result<()> {
    *left = left.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
    let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Ok(symlinkat(&*readlinkat(from, name, Vec::new())?, to, own)?),
        FileType::Directory => {
            mkdirat(to, own, 0o700.into())?;
            let inner = openat(from, name, flags | OFlags::DIRECTORY, Mode::empty())?;
            let below = openat(to, own, flags | OFlags::DIRECTORY, Mode::empty())?;
            for entry in rustix::fs::Dir::read_from(&inner)?.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    copy(&inner, name, &below, name, left)?;
                }
            }
            Ok(())
        }
        FileType::RegularFile if u64::try_from(stat.st_size).is_ok_and(|size| size <= BYTES) => {
            let mut source = File::from(openat(from, name, flags, Mode::empty())?);
            let fresh = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mut target = File::from(openat(to, own, fresh, 0o600.into())?);
            io::copy(&mut io::Read::take(&mut source, BYTES), &mut target).map(drop)
        }
        FileType::RegularFile => Err(io::ErrorKind::FileTooLarge.into()),
        // A pipe or a socket has no content.
        _ => Ok(()),
    }
}

fn remove(from: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(unlinkat(from, name, AtFlags::empty())?);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = openat(from, name, flags, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&inner)?.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            remove(&inner, name)?;
        }
    }
    Ok(unlinkat(from, name, AtFlags::REMOVEDIR)?)
}
