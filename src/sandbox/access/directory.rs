//! The directories on the path to a guarded file. A command can make one unreadable for its own
//! user, who is also the user of the helper: the helper must not treat files in it as missing.

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};
use rustix::process::geteuid;
use std::fs::{self, Permissions, set_permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The rights of the owner of a directory.
pub const OWNER: Mode = Mode::RWXU;

/// Whether a path does not exist; false if that cannot be determined.
pub fn is_missing(path: &Path) -> bool {
    let kind = path.symlink_metadata().map_err(|error| error.kind());
    matches!(kind, Err(ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// The unreadable directory of this user that hides a path. `None` if the path can be examined, or
/// if the directory belongs to another user: then no command of this user can enter it either.
pub fn closed(path: &Path) -> Option<PathBuf> {
    let refused = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    if !refused(path) {
        return None;
    }
    let dir = path.ancestors().skip(1).find(|dir| !refused(dir))?;
    is_own(dir).then(|| dir.to_owned())
}

fn is_own(dir: &Path) -> bool {
    dir.metadata().is_ok_and(|meta| meta.uid() == geteuid().as_raw())
}

/// A directory with its mode; `None` for everything else.
pub fn mode_of(path: &Path) -> Option<(PathBuf, Mode)> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    is_dir.then(|| (path.to_owned(), Mode::from_raw_mode(stat.st_mode & 0o777)))
}

/// Restores the former permissions of a directory's owner. Follows no link.
pub fn allow(path: &Path, before: Mode) {
    if let Ok(dir) = open(path) {
        allow_at(&dir, before);
    }
}

/// Gives this user all permissions for the unreadable directories that hide a path, and for its own
/// directory.
pub fn open_up(path: &Path) {
    for _ in path.ancestors() {
        let Some(dir) = closed(path) else { break };
        allow(&dir, OWNER);
    }
    path.parent().into_iter().for_each(|dir| allow(dir, OWNER));
}

fn allow_at(dir: &OwnedFd, before: Mode) {
    let Ok(stat) = fstat(dir) else { return };
    let now = Mode::from_raw_mode(stat.st_mode & 0o777);
    if stat.st_uid == geteuid().as_raw() && !now.contains(before & OWNER) {
        // An error shows later, when the directory is used.
        let _ = set_permissions(handle(dir), Permissions::from_mode((now | before & OWNER).bits()));
    }
}

/// A directory that was closed to its owner and is open for a moment.
pub struct Closed {
    dir: OwnedFd,
    mode: Mode,
}

impl Closed {
    /// Lets this user list and enter a directory of its own.
    pub fn open(path: &Path) -> Option<Self> {
        let dir = open(path).ok()?;
        let stat = fstat(&dir).ok().filter(|stat| stat.st_uid == geteuid().as_raw())?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        let closed = Self { dir, mode };
        closed.set(mode | Mode::RUSR | Mode::XUSR).ok().map(|()| closed)
    }

    pub fn close_again(self) {
        // An error leaves a directory open to its own user.
        let _ = self.set(self.mode);
    }

    fn set(&self, mode: Mode) -> std::io::Result<()> {
        set_permissions(handle(&self.dir), Permissions::from_mode(mode.bits()))
    }
}

fn handle(dir: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", dir.as_raw_fd())
}

/// The names in a directory, which is reached through no link.
pub fn entries(path: &Path) -> io::Result<fs::ReadDir> {
    fs::read_dir(handle(&open(path)?))
}

/// The bytes of a regular file, which is reached through no link; `None` if it is larger than `limit`, or none.
pub fn read(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let (dir, name) = (open(path.parent()?).ok()?, path.file_name()?);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(openat(&dir, name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

/// Opens a directory without following links.
pub fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, flags, Mode::empty(), strict)
}
