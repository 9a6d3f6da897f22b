//! Opens regular files below a root without following links, and reads them up to a limit.

use crate::files::{FileError, kernel};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Attempts to open a path that changes meanwhile.
const TRIES: usize = 3;
/// No links on the way, and nothing above the root.
const STRICT: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Why opening failed, and whether a retry can help.
#[derive(Debug)]
pub enum Miss {
    /// A component is a link or missing now: it was changed after the path was resolved.
    Moved,
    Error(FileError),
}

impl From<FileError> for Miss {
    fn from(error: FileError) -> Self {
        Self::Error(error)
    }
}

/// The most bytes that are read of a file.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// A longer file is refused.
    pub most: u64,
    /// Of a longer file only the beginning is read.
    pub head: u64,
}

impl Limit {
    /// The whole file, and no file that is longer.
    pub const fn whole(most: u64) -> Self {
        Self { most, head: most }
    }

    /// The beginning of a file of any length.
    pub const fn head(head: u64) -> Self {
        Self { most: u64::MAX, head }
    }
}

/// A regular file that was read.
#[derive(Debug)]
pub struct Found {
    pub bytes: Vec<u8>,
    /// Its size according to the file system.
    pub size: u64,
    /// Permission bits, without set-id.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// It is a hard link: the same file has further names.
    pub has_other_names: bool,
}

/// Repeats `work` a few times while the path is being replaced.
pub fn retry<T>(path: &Path, mut work: impl FnMut() -> Result<T, Miss>) -> Result<T, FileError> {
    for _ in 0..TRIES {
        match work() {
            Ok(value) => return Ok(value),
            Err(Miss::Error(error)) => return Err(error),
            Err(Miss::Moved) => {}
        }
    }
    let path = path.display();
    Err(FileError::Failed(format!("path changes while it is opened: {path}; try again")))
}

/// Opens a regular file for reading: a canonical path below a root. The kind of file is checked
/// before it is opened, because opening a device or a FIFO can have an effect.
pub fn open_file(root: &Path, path: &Path) -> Result<File, Miss> {
    open_regular(root, path).map(|(file, _)| file)
}

/// Reads a regular file: a canonical path below a root.
pub fn read_below(root: &Path, path: &Path, limit: Limit) -> Result<Found, Miss> {
    let (file, stat) = open_regular(root, path)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    refuse_longer(path, size, limit.most)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit.head)).unwrap_or(0));
    // A file can grow while it is read: one byte more shows it.
    let read = file.take(limit.head.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Miss::Error(FileError::of_system("cannot read", path, error)))?;
    let size = size.max(bytes.len() as u64);
    refuse_longer(path, size, limit.most)?;
    bytes.truncate(usize::try_from(limit.head).unwrap_or(usize::MAX));
    let (mode, uid, gid) = (stat.st_mode & 0o777, stat.st_uid, stat.st_gid);
    Ok(Found { bytes, size, mode, uid, gid, has_other_names: stat.st_nlink > 1 })
}

/// The names in a directory below a root, sorted, with a slash after those of directories.
pub fn list_directory(root: &Path, path: &Path) -> Result<Vec<String>, Miss> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let dir = Dir::new(open_below(root, path, flags)?);
    let entries = dir.map_err(|error| miss("cannot list", path, error))?.flatten();
    let named = entries.filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."));
    let mut names: Vec<String> = named
        .map(|entry| {
            let slash = if entry.file_type() == FileType::Directory { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Opens a directory below the root step by step, making the missing ones.
pub fn make_directory(root: &Path, path: &Path) -> Result<OwnedFd, Miss> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat2(&open_root(root)?, ".", flags, Mode::empty(), STRICT)
        .map_err(|error| miss("cannot open", root, error))?;
    let rest = path.strip_prefix(root).map_err(|_| Miss::Moved)?;
    for name in rest.components() {
        let name = name.as_os_str();
        here = match openat2(&here, name, flags, Mode::empty(), STRICT) {
            Err(Errno::NOENT) => {
                make_one(&here, name, path)?;
                openat2(&here, name, flags, Mode::empty(), STRICT)
            }
            other => other,
        }
        .map_err(|error| miss("cannot open", path, error))?;
    }
    Ok(here)
}

fn make_one(here: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Miss> {
    match rustix::fs::mkdirat(here, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(miss("cannot make a directory for", path, error)),
    }
}

fn open_regular(root: &Path, path: &Path) -> Result<(File, Stat), Miss> {
    seen(root, path)?;
    let file = open_below(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = regular(&file, path)?;
    match kernel::closes_file(&file, path) {
        Some(why) => Err(Miss::Error(FileError::Refused(why))),
        None => Ok((File::from(file), stat)),
    }
}

/// Whether a regular file is below a directory, at a path that leads through no link.
pub fn is_file(root: &Path, path: &Path) -> bool {
    seen(root, path).is_ok()
}

/// Looks at a regular file without opening it.
fn seen(root: &Path, path: &Path) -> Result<Stat, Miss> {
    regular(&open_below(root, path, OFlags::PATH | OFlags::NOFOLLOW)?, path)
}

fn open_root(root: &Path) -> Result<OwnedFd, Miss> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let plain = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, root, flags, Mode::empty(), plain)
        .map_err(|error| miss("cannot open", root, error))
}

fn open_below(root: &Path, path: &Path, flags: OFlags) -> Result<OwnedFd, Miss> {
    let base = open_root(root)?;
    let rest = path.strip_prefix(root).map_err(|_| Miss::Moved)?;
    let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    openat2(&base, rest, flags | OFlags::CLOEXEC, Mode::empty(), STRICT)
        .map_err(|error| miss("cannot open", path, error))
}

fn regular(file: &OwnedFd, path: &Path) -> Result<Stat, Miss> {
    let stat = fstat(file).map_err(|error| miss("cannot look at", path, error))?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(stat),
        FileType::Symlink => return Err(Miss::Moved),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    let text = format!("path is {kind}, not a file: {}", path.display());
    Err(Miss::Error(FileError::Refused(text)))
}

fn miss(doing: &str, path: &Path, error: Errno) -> Miss {
    match error {
        Errno::LOOP | Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::AGAIN => Miss::Moved,
        other => Miss::Error(FileError::of_system(doing, path, std::io::Error::from(other))),
    }
}

fn refuse_longer(path: &Path, size: u64, most: u64) -> Result<(), FileError> {
    if size <= most {
        return Ok(());
    }
    Err(FileError::TooLarge { path: path.to_owned(), size, most })
}
