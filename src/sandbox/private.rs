//! What the commands of a Pod keep on the disk from one to the next: `/tmp`, and what they write to the
//! caches of toolchains. It lies in the directory of the Pod's session and goes with it. No other Pod
//! sees it, and the person executes nothing of it.

use crate::sandbox::limits::CommandLimits;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, flock, openat, statat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The subdirectories of the private directory of a Pod.
const TMP: &str = "tmp";
const CACHES: &str = "caches";
const ASIDE: &str = "aside";
/// What was written to one cache, and what the overlay needs beside it.
const CHANGES: &str = "changes";
const WORK: &str = "work";
/// The least that a file or directory counts, in bytes.
const ENTRY: u64 = 4096;
/// The depth down to which directories are measured. A deeper tree counts as too large.
const DEPTH: usize = 200;
/// Only the Pod's user gets into these directories.
const OWNER_ONLY: RawMode = 0o700;

/// The places of one Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    dir: PathBuf,
    /// Where this command writes to caches while another one holds those of the Pod.
    #[serde(default)]
    aside: Option<PathBuf>,
}

/// The directories of an overlay over one cache.
#[derive(Debug, PartialEq, Eq)]
pub struct Layer {
    /// What the Pod wrote before, where this command writes elsewhere.
    pub before: Option<PathBuf>,
    pub changes: PathBuf,
    pub work: PathBuf,
}

/// The right of one command to write to the layers of its [`Private`], until this is dropped.
#[derive(Debug)]
pub struct Hold {
    aside: Option<PathBuf>,
    _lock: OwnedFd,
}

/// Bytes in `/tmp` and in the layers over caches; `None` could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    tmp: Option<u64>,
    caches: Option<u64>,
}

impl Private {
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), aside: None }
    }

    /// What commands see as `/tmp`.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join(TMP)
    }

    /// The overlay over the cache at a canonical path.
    pub fn layer(&self, cache: &Path) -> Layer {
        let name = blake3::hash(cache.as_os_str().as_bytes()).to_hex();
        let kept = self.dir.join(CACHES).join(&name[..32]);
        let own = match &self.aside {
            Some(aside) => aside.join(&name[..32]),
            None => kept.clone(),
        };
        let before = self.aside.is_some().then(|| kept.join(CHANGES));
        Layer { before, changes: own.join(CHANGES), work: own.join(WORK) }
    }

    /// Makes the directories and takes the right to write to the layers. An overlay must not be
    /// mounted twice at a time, so a command that runs beside another one of its Pod sees what the Pod
    /// wrote to caches so far, and what it writes itself is gone with it.
    pub fn hold(&mut self) -> io::Result<Hold> {
        make(&self.tmp())?;
        let caches = self.dir.join(CACHES);
        make(&caches)?;
        let asides = self.dir.join(ASIDE);
        if let Some(lock) = locked(&caches)? {
            for left in fs::read_dir(&asides).into_iter().flatten().flatten() {
                // A command that still runs holds the lock of its own.
                if locked(&left.path())?.is_some() {
                    crate::disk::remove_tree(&left.path())?;
                }
            }
            return Ok(Hold { aside: None, _lock: lock });
        }
        let own = asides.join(uuid::Uuid::now_v7().simple().to_string());
        make(&own)?;
        let lock = locked(&own)?.ok_or(io::ErrorKind::WouldBlock)?;
        self.aside = Some(own.clone());
        Ok(Hold { aside: Some(own), _lock: lock })
    }

    pub fn size(&self) -> Size {
        let layers = |dir: PathBuf| {
            let names = fs::read_dir(dir).into_iter().flatten().flatten();
            names.map(|entry| entry.path().join(CHANGES)).collect::<Vec<_>>()
        };
        let asides = fs::read_dir(self.dir.join(ASIDE)).into_iter().flatten().flatten();
        let asides = asides.flat_map(|entry| layers(entry.path()));
        let caches = layers(self.dir.join(CACHES)).into_iter().chain(asides);
        let caches = caches.map(|dir| tree_size(&dir)).sum();
        Size { tmp: tree_size(&self.tmp()), caches }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            // What is left of it is removed by the next command that holds the layers of the Pod.
            let _ = crate::disk::remove_tree(aside);
        }
    }
}

impl Size {
    /// Why a command is ended when this is what its Pod has now and `self` is what it had at the start:
    /// a command that makes room goes on.
    pub fn too_much(&self, now: &Self, limits: &CommandLimits) -> Option<String> {
        let places = [
            ("keeps in /tmp", self.tmp, now.tmp, limits.tmp_mib),
            ("wrote to the caches of toolchains", self.caches, now.caches, limits.cache_mib),
        ];
        places.into_iter().find_map(|(what, before, now, mib)| {
            let Some(now) = now else {
                return Some(format!("what this Pod {what} lies too deep or cannot be read"));
            };
            let grown = before.is_none_or(|before| now > before);
            (grown && now > u64::from(mib) << 20)
                .then(|| format!("what this Pod {what} grew beyond {mib} MiB; remove some of it"))
        })
    }
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(dir)
}

/// An exclusive lock on a directory; `None` while another process holds it.
fn locked(dir: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, dir, flags, Mode::empty())?;
    match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(dir)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Bytes on the disk of all that lies in a directory. No link is followed: commands write there while
/// it is looked at.
fn tree_size(dir: &Path) -> Option<u64> {
    let Ok(name) = CString::new(dir.as_os_str().as_bytes()) else { return None };
    size_below(CWD, &name, DEPTH)
}

fn size_below(parent: impl std::os::fd::AsFd, name: &CStr, depth: usize) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match openat(parent, name, flags, Mode::empty()) {
        Ok(dir) if depth > 0 => dir,
        // The command removed or replaced it in the meantime.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Some(0),
        Ok(_) | Err(_) => return None,
    };
    let mut sum = 0;
    for entry in Dir::read_from(&dir).ok()?.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        sum += u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512).max(ENTRY);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            sum += size_below(&dir, name, depth - 1)?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> (tempfile::TempDir, Private) {
        let top = tempfile::tempdir().unwrap();
        let private = Private::of(&top.path().canonicalize().unwrap().join("private"));
        (top, private)
    }

    #[test]
    fn one_command_at_a_time_writes_to_the_layers_of_a_pod() {
        let (_top, private) = private();
        let cache = Path::new("/h/.npm");
        let (mut first, mut second, mut third) =
            (private.clone(), private.clone(), private.clone());
        let held = first.hold().unwrap();
        let beside = second.hold().unwrap();
        let (own, aside) = (first.layer(cache), second.layer(cache));
        assert_eq!(own.before, None);
        assert_eq!(aside.before, Some(own.changes.clone()));
        assert!(aside.changes != own.changes && aside.work != own.work);
        drop(held);
        // One that came while the other still runs leaves it what it has.
        let kept = beside.aside.clone().unwrap();
        let held = third.hold().unwrap();
        assert!(kept.is_dir() && third.layer(cache) == own);
        drop(beside);
        assert!(!kept.exists());
        fs::create_dir_all(&kept).unwrap();
        drop(held);
        drop(private.clone().hold().unwrap());
        assert!(!kept.exists(), "what a command left that was killed is swept");
    }

    #[test]
    fn a_command_is_ended_for_what_its_pod_gained_and_not_for_what_it_removes() {
        let (_top, mut private) = private();
        let _hold = private.hold().unwrap();
        let limits = CommandLimits { tmp_mib: 1, cache_mib: 1, ..CommandLimits::default() };
        let empty = private.size();
        fs::write(private.tmp().join("big"), vec![1; 2 << 20]).unwrap();
        let full = private.size();
        let said = empty.too_much(&full, &limits).unwrap();
        assert!(said.contains("/tmp grew beyond 1 MiB"), "{said}");
        assert_eq!(full.too_much(&full, &limits), None);
        assert_eq!(full.too_much(&empty, &limits), None);
        fs::remove_file(private.tmp().join("big")).unwrap();
        let layer = private.layer(Path::new("/h/.npm"));
        fs::create_dir_all(&layer.changes).unwrap();
        (0..300).for_each(|n| fs::write(layer.changes.join(n.to_string()), "").unwrap());
        let said = empty.too_much(&private.size(), &limits).unwrap();
        assert!(said.contains("caches of toolchains grew"), "{said}");
        let deep = (0..DEPTH + 1).fold(private.tmp(), |dir, _| dir.join("d"));
        fs::create_dir_all(deep).unwrap();
        let said = full.too_much(&private.size(), &limits).unwrap();
        assert!(said.contains("lies too deep"), "{said}");
    }
}
