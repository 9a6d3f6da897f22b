//! Removing a directory with all that lies in it, also where parts of it cannot be entered.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Directories in each other that are opened up.
const DEPTH: usize = 500;
/// What the owner of a directory needs in order to remove what lies in it.
const OWNER: u32 = 0o700;

/// Removes a directory of this user; one that is not there is removed. Commands may have left
/// directories in it that even their owner cannot enter: they get another mode first.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Gives the owner of a directory all rights to it and to every directory in it.
pub fn open_up(path: &Path) -> io::Result<()> {
    open_up_at(CWD, path, DEPTH)
}

fn open_up_at(parent: impl AsFd, name: impl rustix::path::Arg, depth: usize) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(parent, name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&place)?.st_mode;
    if mode & OWNER != OWNER {
        // The kernel changes modes of what is opened, or by a path, and this cannot be opened yet.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        fs::set_permissions(path, Permissions::from_mode(OWNER))?;
    }
    let dir = reopened(&place)?;
    for entry in Dir::read_from(&dir)?.flatten() {
        let name = entry.file_name();
        if depth == 0 || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            open_up_at(&dir, name, depth - 1)?;
        }
    }
    Ok(())
}

fn reopened(place: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(openat(place, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_their_owner_cannot_enter_are_removed_and_links_are_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (tree, beside) = (top.path().join("tree"), top.path().join("beside"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir(&beside).unwrap();
        fs::write(tree.join("a/b/c/file"), "").unwrap();
        std::os::unix::fs::symlink(&beside, tree.join("a/link")).unwrap();
        for (dir, mode) in [("a/b/c", 0), ("a/b", 0o400), ("a", 0o500)] {
            fs::set_permissions(tree.join(dir), Permissions::from_mode(mode)).unwrap();
        }
        let before = fs::metadata(&beside).unwrap().permissions();
        open_up(&tree).unwrap();
        assert_eq!(fs::metadata(tree.join("a/b/c")).unwrap().permissions().mode() & 0o777, OWNER);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::metadata(&beside).unwrap().permissions(), before);
        remove_tree(&tree).unwrap();
    }
}
