//! The files that commands of a Pod leave for later ones: `/tmp`, and layers over the caches of
//! toolchains. They are in the directory of the Pod's session and are deleted with it. No other Pod
//! sees them, and programs of the person do not use them.

use crate::disk::{FileId, open_up, remove_tree};
use crate::sandbox::access::limits::CommandLimits;
use crate::sandbox::access::tree_size::{Closed, Unmeasured, tree_size};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RawMode, flock, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The subdirectories of the private directory of a Pod.
const TMP: &str = "tmp";
const CACHES: &str = "caches";
const ASIDE: &str = "aside";
/// What commands put at guarded paths, and what is known of the directories of the scope.
const MOVED: &str = "moved";
const SCAN: &str = "scan";
const REPOSITORIES: &str = "repositories";
/// The layer over one cache, and the work directory of the overlay.
const CHANGES: &str = "changes";
const WORK: &str = "work";
/// The most attempts to create a directory while another command removes it as a leftover.
const TRIES: usize = 100;
/// Only the Pod's user can enter these directories.
const OWNER_ONLY: RawMode = 0o700;

/// The directories of one Pod that outlast its commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodStorage {
    dir: PathBuf,
    /// The temporary layers of this command while another command locks those of the Pod.
    #[serde(default)]
    aside: Option<PathBuf>,
    /// The name of this command's work directories. The kernel mounts no overlay with one that an earlier mount left, and
    /// to clean one up takes longer than to make one.
    #[serde(default)]
    work: String,
}

/// The directories of an overlay over one cache.
#[derive(Debug, PartialEq, Eq)]
pub struct Layer {
    /// The Pod's layer, if this command writes to a temporary one.
    pub lower: Option<PathBuf>,
    pub upper: PathBuf,
    pub work: PathBuf,
}

/// The lock of one command on the layers of its [`PodStorage`], released on drop.
#[derive(Debug)]
pub struct LayerLock {
    aside: Option<PathBuf>,
    _lock: File,
}

/// Bytes in `/tmp` and in the layers over caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    tmp: Result<u64, Unmeasured>,
    caches: Result<u64, Unmeasured>,
}

impl PodStorage {
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), aside: None, work: String::new() }
    }

    /// A short name for the Pod of these directories.
    pub fn key(&self) -> String {
        blake3::hash(self.dir.as_os_str().as_bytes()).to_hex()[..16].to_owned()
    }

    /// The directory that commands see as `/tmp`.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join(TMP)
    }

    /// The directory of the files that were moved out of the scope after a command.
    pub fn moved(&self) -> PathBuf {
        self.dir.join(MOVED)
    }

    /// The file of the last scan of the scope.
    pub fn scan(&self) -> PathBuf {
        self.dir.join(SCAN)
    }

    /// The file that lists the repositories of the Pod.
    pub fn own_repositories(&self) -> PathBuf {
        self.dir.join(REPOSITORIES)
    }

    /// The overlay over the cache at a canonical path.
    pub fn layer(&self, cache: &Path) -> Layer {
        let name = blake3::hash(cache.as_os_str().as_bytes()).to_hex();
        let kept = self.dir.join(CACHES).join(&name[..32]);
        let own = match &self.aside {
            Some(aside) => aside.join(&name[..32]),
            None => kept.clone(),
        };
        let lower = self.aside.is_some().then(|| kept.join(CHANGES));
        Layer { lower, upper: own.join(CHANGES), work: own.join(WORK).join(&self.work) }
    }

    /// The Pod's layer over the cache at a canonical path.
    pub fn kept_layer(&self, cache: &Path) -> PathBuf {
        Self::of(&self.dir).layer(cache).upper
    }

    /// Creates the directories and locks the layers. An overlay must not be mounted twice at a
    /// time, so a second command of the Pod sees the Pod's layers read-only and writes to temporary
    /// ones, which are deleted with it. So does each command in the background (`aside`), which would otherwise keep
    /// the layers from all others for hours.
    pub fn lock_layers(&mut self, aside: bool) -> io::Result<LayerLock> {
        self.work = uuid::Uuid::now_v7().simple().to_string();
        make(&self.tmp())?;
        let caches = self.dir.join(CACHES);
        make(&caches)?;
        let asides = self.dir.join(ASIDE);
        let lock = if aside { None } else { locked(&caches)? };
        if let Some(lock) = lock {
            for left in fs::read_dir(&asides).into_iter().flatten().flatten() {
                // A running command holds the lock of its directory. The next command removes what
                // cannot be removed now.
                if let Ok(Some(_lock)) = locked(&left.path()) {
                    let _ = remove_tree(&left.path());
                }
            }
            return Ok(LayerLock { aside: None, _lock: lock });
        }
        for _ in 0..TRIES {
            let own = asides.join(uuid::Uuid::now_v7().simple().to_string());
            make(&own)?;
            // Another command can mistake a new directory for a leftover and remove it.
            match locked(&own) {
                Ok(Some(lock)) if FileId::is_at(&lock, &own) => {
                    self.aside = Some(own.clone());
                    return Ok(LayerLock { aside: Some(own), _lock: lock });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The work directories that earlier commands with the Pod's layers left. Whoever has the lock may remove them.
    pub fn old_work(&self) -> Vec<PathBuf> {
        let layers = entries(&self.dir.join(CACHES)).filter(|_| self.aside.is_none());
        let work = layers.flat_map(|layer| entries(&layer.join(WORK)));
        work.filter(|dir| !dir.ends_with(&self.work)).collect()
    }

    /// The directory in which all of it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What can be seen while commands run: a few directories may be closed to their owner.
    pub fn size(&self) -> Size {
        self.sized(Closed::Few)
    }

    /// The size when a command is over: directories that it left closed to their owner are opened, because files in
    /// them may have grown through descriptors. Layers of commands that still run may hold a few.
    pub fn size_at_end(&self, hold: &LayerLock) -> Size {
        let whole = self.sized(Closed::Never);
        if whole.tmp.is_ok() && whole.caches.is_ok() {
            return whole;
        }
        for dir in std::iter::once(self.tmp()).chain(changes_in(&self.layers(hold))) {
            // A directory that cannot be opened has no size, which is reported.
            let _ = open_up(&dir);
        }
        self.size()
    }

    fn sized(&self, closed: Closed) -> Size {
        let tmp = tree_size([self.tmp()], closed);
        Size { tmp, caches: tree_size(self.changes(), closed) }
    }

    /// The layers to which the command with this lock writes.
    fn layers(&self, hold: &LayerLock) -> PathBuf {
        hold.aside.clone().unwrap_or_else(|| self.dir.join(CACHES))
    }

    /// The directories to which commands of this Pod write instead of to the caches.
    fn changes(&self) -> Vec<PathBuf> {
        let asides = entries(&self.dir.join(ASIDE));
        let layers = std::iter::once(self.dir.join(CACHES)).chain(asides);
        layers.flat_map(|layers| changes_in(&layers)).collect()
    }

    /// Makes storage measurable again, so that the next command can run: restores the owner's
    /// permissions of its directories and, if that does not suffice, empties it. Layers of running
    /// commands are not changed, and `/tmp` stays the same directory for them.
    pub fn make_measurable(&self, hold: &LayerLock) -> io::Result<()> {
        for dirs in [vec![self.tmp()], changes_in(&self.layers(hold))] {
            if tree_size(&dirs, Closed::Few).is_ok() {
                continue;
            }
            let opened = dirs.iter().try_for_each(|dir| open_up(dir));
            if opened.is_err() || tree_size(&dirs, Closed::Few).is_err() {
                dirs.iter().try_for_each(|dir| empty(dir))?;
            }
        }
        Ok(())
    }
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn changes_in(layers: &Path) -> Vec<PathBuf> {
    entries(layers).map(|layer| layer.join(CHANGES)).collect()
}

/// Removes the content of a directory but not the directory, because other commands may have it
/// mounted.
fn empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let removed = match entry.file_type()?.is_dir() {
            true => remove_tree(&entry.path()),
            false => fs::remove_file(entry.path()),
        };
        match removed {
            // Another command of the Pod removed it or writes in it; the end of that command checks
            // again.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) => {}
            removed => removed?,
        }
    }
    Ok(())
}

impl Drop for LayerLock {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            // The next command that locks the Pod's layers removes the rest.
            let _ = remove_tree(aside);
        }
    }
}

impl Size {
    /// Before anything was measured.
    pub const UNKNOWN: Self =
        Self { tmp: Err(Unmeasured::Closed), caches: Err(Unmeasured::Closed) };

    /// Why a command is ended, if the storage of its Pod is too large `now`; `self` is its size at
    /// the start. A command that frees space may continue.
    pub fn too_much(&self, now: &Self, limits: &CommandLimits) -> Option<String> {
        let places = [
            ("this Pod's files in /tmp", self.tmp, now.tmp, limits.tmp_mib),
            (
                "this Pod's files in the caches of toolchains",
                self.caches,
                now.caches,
                limits.cache_mib,
            ),
        ];
        places.into_iter().find_map(|(what, before, now, mib)| match now {
            Err(why) => Some(format!(
                "the size of {what} cannot be measured, because {why}; yoi makes them readable again or removes them"
            )),
            Ok(now) => {
                let grown = before.map_or(true, |before| now > before);
                (grown && now > u64::from(mib) << 20).then(|| {
                    format!(
                        "{what} grew beyond {mib} MiB; this command wrote them, or another command of the Pod that \
                         ran at the same time; remove some of them"
                    )
                })
            }
        })
    }
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(dir)
}

/// An exclusive lock on a directory; `None` while another process holds it.
fn locked(dir: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = File::from(openat(CWD, dir, flags, Mode::empty())?);
    match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(dir)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    fn private() -> (tempfile::TempDir, PodStorage) {
        let top = tempfile::tempdir().unwrap();
        let private = PodStorage::of(&top.path().canonicalize().unwrap().join("private"));
        (top, private)
    }

    #[test]
    fn one_command_at_a_time_writes_to_the_layers_of_a_pod() {
        let (_top, private) = private();
        let cache = Path::new("/h/.npm");
        let (mut first, mut second, mut third) =
            (private.clone(), private.clone(), private.clone());
        let held = first.lock_layers(false).unwrap();
        let beside = second.lock_layers(false).unwrap();
        let (own, aside) = (first.layer(cache), second.layer(cache));
        assert_eq!(own.lower, None);
        assert_eq!(aside.lower, Some(own.upper.clone()));
        assert!(aside.upper != own.upper && aside.work != own.work);
        fs::create_dir_all(&own.work).unwrap();
        assert_eq!(second.old_work(), [] as [&Path; 0], "the first command works there");
        drop(held);
        // A command that starts while the other one still runs does not remove its directory.
        let kept = beside.aside.clone().unwrap();
        let held = third.lock_layers(false).unwrap();
        assert!(kept.is_dir() && third.layer(cache).upper == own.upper);
        fs::create_dir_all(third.layer(cache).work).unwrap();
        assert_eq!(third.old_work(), [own.work]);
        drop(beside);
        assert!(!kept.exists());
        fs::create_dir_all(&kept).unwrap();
        drop(held);
        drop(private.clone().lock_layers(false).unwrap());
        assert!(!kept.exists(), "what a command left that was killed is swept");
    }

    #[test]
    fn a_command_is_ended_for_what_its_pod_gained_and_not_for_what_it_removes() {
        let (_top, mut private) = private();
        let hold = private.lock_layers(false).unwrap();
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
        fs::create_dir_all(&layer.upper).unwrap();
        (0..300).for_each(|n| fs::write(layer.upper.join(n.to_string()), "").unwrap());
        let said = empty.too_much(&private.size(), &limits).unwrap();
        assert!(said.contains("caches of toolchains grew"), "{said}");
        let deep = (0..300).fold(private.tmp(), |dir, _| dir.join("d"));
        fs::create_dir_all(deep).unwrap();
        let said = full.too_much(&private.size(), &limits).unwrap();
        assert!(said.contains("cannot be measured, because they lie deeper than"), "{said}");
        let inode = fs::metadata(private.tmp()).unwrap().ino();
        private.make_measurable(&hold).unwrap();
        assert!(private.size().tmp.is_ok());
        let now = fs::metadata(private.tmp()).unwrap().ino();
        assert_eq!(now, inode, "other commands of the Pod have it mounted");
        assert_eq!(fs::read_dir(private.tmp()).unwrap().count(), 0);
    }

    #[test]
    fn commands_that_start_together_all_get_a_place() {
        let (_top, private) = private();
        for _ in 0..50 {
            std::thread::scope(|threads| {
                for _ in 0..8 {
                    threads.spawn(|| drop(private.clone().lock_layers(false).unwrap()));
                }
            });
        }
    }
}
