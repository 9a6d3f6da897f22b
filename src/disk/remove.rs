//! Removing a directory with all that lies in it, also where parts of it cannot be entered.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, chmod, fstat, openat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// Directories in each other that are opened up, or emptied in their place.
const DEPTH: usize = 500;
/// What the owner of a directory needs in order to remove what lies in it.
const OWNER: u32 = 0o700;
/// The beginning of the name of a directory that was moved to the top.
const MOVED: &str = ".removed-";
/// The most directories that are moved, while another program makes more of them.
const MOST: u64 = 4_000_000;

/// Removes a directory of this user, if it is there. A directory in it that its owner cannot enter gets another mode first.
/// Any number of directories may lie in each other: each is moved to the top before what lies in it is removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let top = match opened(CWD, path) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR) if path.is_symlink() => return fs::remove_file(path),
        Err(error) => return Err(error.into()),
    };
    empty(&top, DEPTH)?;
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes the entries of a directory. What others create there meanwhile may be left.
fn empty(top: &OwnedFd, depth: usize) -> rustix::io::Result<()> {
    let mut moved = 0;
    loop {
        let before = moved;
        for entry in Dir::read_from(top)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                remove_entry(top, entry.file_name(), &mut moved, depth)?;
            }
        }
        if moved == before || moved > MOST {
            return Ok(());
        }
    }
}

/// Removes an entry of the top directory, after moving the directories in it there.
fn remove_entry(
    top: &OwnedFd,
    name: &CStr,
    moved: &mut u64,
    depth: usize,
) -> rustix::io::Result<()> {
    if unlinked(top, name)? {
        return Ok(());
    }
    let dir = match opened(top, name) {
        Err(Errno::NOENT) => return Ok(()),
        dir => dir?,
    };
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let inner = entry.file_name();
        if matches!(inner.to_bytes(), b"." | b"..")
            || unlinked(&dir, inner)?
            || unlinkat(&dir, inner, AtFlags::REMOVEDIR).is_ok()
        {
            continue;
        }
        // A directory that its owner cannot write cannot be moved.
        let opened = match opened(&dir, inner) {
            Err(Errno::NOENT) => continue,
            opened => opened?,
        };
        loop {
            let place = format!("{MOVED}{moved}");
            *moved += 1;
            match renameat_with(&dir, inner, top, place, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => break,
                // This file system moves no directory so, or this one not to another directory.
                Err(Errno::INVAL | Errno::NOSYS | Errno::XDEV) if depth > 0 => {
                    empty(&opened, depth - 1)?;
                    unlinkat(&dir, inner, AtFlags::REMOVEDIR)?;
                    break;
                }
                done => break done?,
            }
        }
    }
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Removes what is no directory; whether it is gone.
fn unlinked(dir: &OwnedFd, name: &CStr) -> rustix::io::Result<bool> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a directory whose owner has all rights to it then.
fn opened(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(parent, name, flags, Mode::empty())?;
    let mode = fstat(&place)?.st_mode;
    if mode & OWNER != OWNER {
        // The kernel changes modes of what is opened, or by a path, and this cannot be opened yet.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        chmod(path, Mode::from_raw_mode(OWNER))?;
    }
    openat(place, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Gives the owner of a directory all rights to it and to every directory in it.
pub fn open_up(path: &Path) -> io::Result<()> {
    open_up_at(CWD, path, DEPTH)
}

fn open_up_at(parent: impl AsFd, name: impl rustix::path::Arg, depth: usize) -> io::Result<()> {
    let dir = opened(parent, name)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_tree_is_removed_however_deep_it_is() {
        let top = tempfile::tempdir().unwrap();
        let tree = top.path().join("tree");
        fs::create_dir_all(tree.join("0/.removed-0/file")).unwrap();
        let mut dir = opened(CWD, &tree).unwrap();
        for _ in 0..30_000 {
            rustix::fs::mkdirat(&dir, "1", Mode::from_raw_mode(0o700)).unwrap();
            dir = opened(&dir, "1").unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        std::os::unix::fs::symlink(top.path(), &tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(top.path().exists() && !tree.is_symlink(), "only the link is removed");
    }

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
