//! The size of a directory to which commands write while it is measured. Follows no link.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The least size of a file or directory, in bytes.
const ENTRY: u64 = 4096;
/// The deepest nesting of directories that is measured.
const DEPTH: usize = 200;
/// The most directories that may be unreadable for their owner, as permission tests leave them for
/// a moment. Their content is not measured, so more are refused.
const CLOSED: usize = 8;
/// The permissions that the owner of a directory needs to create files in it.
const MAKES_FILES: u32 = 0o300;

/// Why a tree has no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    #[error("they lie deeper than {DEPTH} directories")]
    TooDeep,
    #[error("some of the directories cannot be listed")]
    Closed,
}

/// Which directories may be closed to their owner, so that what lies in them is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// As many as tests of permissions leave for a moment, if no files can be made in them.
    Few,
    Never,
}

/// The bytes on the disk of all files in these directories. A file with several names counts once.
pub fn tree_size<P: AsRef<Path>>(
    dirs: impl IntoIterator<Item = P>,
    closed: Closed,
) -> Result<u64, Unmeasured> {
    let may_be_closed = if closed == Closed::Few { CLOSED } else { 0 };
    let mut sum = Sum { bytes: 0, may_be_closed, linked: HashSet::new() };
    for dir in dirs {
        let name = CString::new(dir.as_ref().as_os_str().as_bytes());
        sum.add(CWD, &name.map_err(|_| Unmeasured::Closed)?, 0, DEPTH)?;
    }
    Ok(sum.bytes)
}

struct Sum {
    bytes: u64,
    /// How many more directories may be closed to their owner.
    may_be_closed: usize,
    /// The inodes of the files that have several names.
    linked: HashSet<u64>,
}

impl Sum {
    /// Adds the content of a directory with this mode; a mode of 0 is unknown.
    fn add(
        &mut self,
        parent: impl AsFd,
        name: &CStr,
        mode: u32,
        depth: usize,
    ) -> Result<(), Unmeasured> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match openat(parent, name, flags, Mode::empty()) {
            Ok(_) if depth == 0 => return Err(Unmeasured::TooDeep),
            Ok(dir) => dir,
            // The command removed or replaced it in the meantime.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(_) => return self.closed(mode),
        };
        for entry in Dir::read_from(&dir).map_err(|_| Unmeasured::Closed)?.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if !is_dir && stat.st_nlink > 1 && !self.linked.insert(stat.st_ino) {
                continue;
            }
            let bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            self.bytes = self.bytes.saturating_add(bytes.max(ENTRY));
            if is_dir {
                self.add(&dir, name, stat.st_mode, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Counts a directory that cannot be listed. Its owner can make no files there, but may have one open.
    fn closed(&mut self, mode: u32) -> Result<(), Unmeasured> {
        let grows = mode == 0 || mode & MAKES_FILES == MAKES_FILES;
        if grows || self.may_be_closed == 0 {
            return Err(Unmeasured::Closed);
        }
        self.may_be_closed -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, DirBuilder, Permissions, set_permissions};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    use std::path::PathBuf;

    fn top() -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().canonicalize().unwrap();
        (top, path)
    }

    #[test]
    fn a_file_with_several_names_counts_once_and_a_small_one_4_kib() {
        let (_top, dir) = top();
        fs::write(dir.join("small"), "x").unwrap();
        assert_eq!(tree_size([&dir], Closed::Few), Ok(ENTRY));
        fs::write(dir.join("big"), vec![1; 1 << 20]).unwrap();
        let one = tree_size([&dir], Closed::Few).unwrap();
        assert!(one > 1 << 20);
        fs::hard_link(dir.join("big"), dir.join("again")).unwrap();
        assert_eq!(tree_size([&dir], Closed::Few), Ok(one));
        assert_eq!(tree_size([dir.join("missing")], Closed::Few), Ok(0));
    }

    #[test]
    fn a_tree_is_measured_down_to_a_depth() {
        let (_top, dir) = top();
        let deep = |count: usize| (0..count).fold(dir.clone(), |dir, _| dir.join("d"));
        fs::create_dir_all(deep(DEPTH - 1)).unwrap();
        assert!(tree_size([&dir], Closed::Few).is_ok());
        fs::create_dir_all(deep(DEPTH)).unwrap();
        assert_eq!(tree_size([&dir], Closed::Few), Err(Unmeasured::TooDeep));
    }

    /// Root can list every directory, so the test needs an ordinary user.
    #[test]
    fn a_few_directories_may_be_closed_to_their_owner() {
        let (_top, dir) = top();
        let root = rustix::process::geteuid().is_root();
        for name in 0..CLOSED {
            DirBuilder::new().mode(0o000).create(dir.join(name.to_string())).unwrap();
        }
        assert!(tree_size([&dir], Closed::Few).is_ok());
        let more = dir.join("more");
        DirBuilder::new().mode(0o000).create(&more).unwrap();
        assert_eq!(tree_size([&dir], Closed::Few).is_err(), !root);
        fs::remove_dir(dir.join("0")).unwrap();
        set_permissions(&more, Permissions::from_mode(0o300)).unwrap();
        assert_eq!(
            tree_size([&dir], Closed::Few).is_err(),
            !root,
            "files can be made in it unseen"
        );
    }
}
