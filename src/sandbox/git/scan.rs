//! The directories in which a command may write, at any depth, and what a look after it has to know of them: where a
//! repository of git is, and where a socket. A scan lists only directories that changed since the scan before.

use crate::sandbox::access::directory;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most directories of one scan, and the most time.
const MOST: usize = 400_000;
const LONGEST: Duration = Duration::from_secs(20);
/// The listed directories for which a scan is kept.
const WORTH_KEEPING: usize = 32;
/// A directory that changed so short a time ago may change again without another time of change.
const RECENT: Duration = Duration::from_millis(2_500);
/// The name of the entry that marks a directory as a working tree.
const GIT: &[u8] = b".git";
/// git obeys a directory with the two in the middle, if only as one that a worktree names; one with the first and the last
/// is such a worktree.
const PARTS: [&[u8]; 4] = [b"HEAD", b"objects", b"refs", b"commondir"];

/// What one directory was when it was listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Directory {
    /// `None` if it has to be listed again.
    stamp: Option<Stamp>,
    /// Whether it has an entry [`GIT`], and whether it is a repository.
    has_git: bool,
    is_repository: bool,
    subdirectories: Vec<OsString>,
    sockets: Vec<OsString>,
}

/// Differs whenever an entry of a directory was made, removed or renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    /// Of the last change: seconds and nanoseconds since the epoch.
    changed: (i64, i64),
}

/// The directories below some roots.
#[derive(Debug, Default)]
pub struct Scan {
    dirs: HashMap<PathBuf, Directory>,
    /// Directories that were not listed, outer ones first: there are too many, or they cannot be opened.
    pub unseen: Vec<PathBuf>,
    /// How many were listed, and not known from the scan before.
    listed: usize,
}

/// A directory at which a scan begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    pub path: PathBuf,
    /// Whether its subdirectories belong to it.
    pub whole: bool,
}

impl Scan {
    /// Scans these roots without the directories in `skipped`. `self` is an earlier scan, of any roots.
    pub fn again(&self, roots: &[Root], skipped: &HashSet<PathBuf>) -> Self {
        let (mut next, begun) = (Self::default(), Instant::now());
        let mut closed = Vec::new();
        // Those without their subdirectories come last: they may lie in others.
        for whole in [true, false] {
            let roots = roots.iter().filter(|root| root.whole == whole);
            let mut open: VecDeque<PathBuf> = roots.map(|root| root.path.clone()).collect();
            while let Some(path) = open.pop_front() {
                if next.dirs.contains_key(&path) {
                    continue;
                }
                if next.dirs.len() >= MOST || begun.elapsed() > LONGEST {
                    next.unseen.push(path);
                    continue;
                }
                let Some(dir) = self.one(&path, &mut closed, &mut next) else { continue };
                let inner = dir.subdirectories.iter().filter(|_| whole).map(|name| path.join(name));
                open.extend(inner.filter(|path| !skipped.contains(path)));
                next.dirs.insert(path, dir);
            }
        }
        closed.into_iter().rev().for_each(directory::Closed::close_again);
        next
    }

    /// A directory as it is now; `None` if there is none, or if it cannot be listed, which `next` notes.
    fn one(
        &self,
        path: &Path,
        closed: &mut Vec<directory::Closed>,
        next: &mut Self,
    ) -> Option<Directory> {
        if let Some(known) = self.known(path) {
            return Some(known.clone());
        }
        match opened(path, closed) {
            Ok((dir, again)) => {
                next.listed += 1;
                Some(listed(&dir, again))
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(_) => {
                next.unseen.push(path.to_owned());
                None
            }
        }
    }

    /// A directory that is as it was.
    fn known(&self, path: &Path) -> Option<&Directory> {
        self.dirs.get(path).filter(|known| {
            let now = || statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
            known.stamp.is_some_and(|stamp| now().is_some_and(|now| Stamp::of(&now) == stamp))
        })
    }

    /// Every path of the name `.git`, whatever it is.
    pub fn gits(&self) -> impl Iterator<Item = PathBuf> {
        self.dirs
            .iter()
            .filter(|(_, dir)| dir.has_git)
            .map(|(path, _)| path.join(OsStr::from_bytes(GIT)))
    }

    /// Every directory that is a repository, or a worktree or submodule in one.
    pub fn repositories(&self) -> impl Iterator<Item = &PathBuf> {
        self.dirs.iter().filter(|(_, dir)| dir.is_repository).map(|(path, _)| path)
    }

    pub fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        let with = self.dirs.iter().filter(|(_, dir)| !dir.sockets.is_empty());
        with.flat_map(|(path, dir)| dir.sockets.iter().map(|name| path.join(name)))
    }

    /// The scan that was kept in a file; an empty one if there is none, or one of another version.
    pub fn kept(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap_or_default();
        Self { dirs: parsed(&bytes).unwrap_or_default(), ..Self::default() }
    }

    /// Keeps the scan for the next command, if it knows much more than the one before. Without it the next one lists all
    /// directories.
    pub fn keep(&self, file: &Path) {
        if self.listed < WORTH_KEEPING {
            return;
        }
        let mut bytes = Vec::from(VERSION);
        for (path, dir) in &self.dirs {
            let Some(Stamp { device, inode, changed }) = dir.stamp else { continue };
            bytes.extend(path.as_os_str().as_bytes());
            let (git, own) = (u8::from(dir.has_git), u8::from(dir.is_repository));
            let facts = format!("\0{device} {inode} {} {} {git} {own}\0", changed.0, changed.1);
            bytes.extend(facts.as_bytes());
            for names in [&dir.subdirectories, &dir.sockets] {
                names.iter().for_each(|name| bytes.extend([name.as_bytes(), b"\0"].concat()));
                bytes.push(0);
            }
        }
        // An error costs time and nothing else.
        let fresh = file.with_extension(uuid::Uuid::now_v7().simple().to_string());
        let written = fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, file));
        let _ = written.or_else(|_| fs::remove_file(fresh));
    }
}

/// The first field of a file with a scan.
const VERSION: &[u8] = b"yoi-scan-2\0";

/// No name and no path contains a NUL, so it ends each of them; an empty field ends a list.
fn parsed(bytes: &[u8]) -> Option<HashMap<PathBuf, Directory>> {
    let bytes = bytes.strip_prefix(VERSION)?;
    let mut fields = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let mut dirs = HashMap::new();
    while let Some(path) = fields.next() {
        let facts = str::from_utf8(fields.next()?).ok()?;
        let facts: Vec<i128> = facts.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [device, inode, seconds, nanos, git, own] = facts[..] else { return None };
        let changed = (i64::try_from(seconds).ok()?, i64::try_from(nanos).ok()?);
        let (device, inode) = (u64::try_from(device).ok()?, u64::try_from(inode).ok()?);
        let mut list = || -> Option<Vec<OsString>> {
            let mut names = Vec::new();
            loop {
                match fields.next()? {
                    b"" => return Some(names),
                    name => names.push(OsString::from_vec(name.to_owned())),
                }
            }
        };
        let (subdirectories, sockets) = (list()?, list()?);
        let stamp = Some(Stamp { device, inode, changed });
        let dir = Directory {
            stamp,
            has_git: git == 1,
            is_repository: own == 1,
            subdirectories,
            sockets,
        };
        dirs.insert(OsString::from_vec(path.to_owned()).into(), dir);
    }
    Some(dirs)
}

impl Stamp {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the types differ between processors"
    )]
    fn of(stat: &rustix::fs::Stat) -> Self {
        let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64, changed }
    }

    /// Whether the last change is long enough ago.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(self.changed.0).unwrap_or(u64::MAX);
        now > Duration::from_secs(changed).saturating_add(RECENT)
    }
}

/// Opens a directory through no link. One that is closed to its own user is opened, and added to `closed`; it has to be
/// listed again the next time.
fn opened(path: &Path, closed: &mut Vec<directory::Closed>) -> Result<(OwnedFd, bool), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = || openat2(CWD, path, flags, Mode::empty(), strict);
    match open() {
        Err(Errno::ACCESS) => {
            closed.push(directory::Closed::open(path).ok_or(Errno::ACCESS)?);
            open().map(|dir| (dir, true))
        }
        dir => dir.map(|dir| (dir, false)),
    }
}

fn listed(dir: &OwnedFd, again: bool) -> Directory {
    // Before the list: a change while it is read changes the stamp.
    let stamp = fstat(dir).ok().map(|stat| Stamp::of(&stat));
    let mut found = Directory { stamp, ..Directory::default() };
    let Ok(entries) = Dir::read_from(dir) else { return Directory::default() };
    let mut parts = PARTS.map(|_| false);
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        found.has_git |= is(GIT);
        parts.iter_mut().zip(PARTS).for_each(|(has, part)| *has |= is(part));
        let kind = match entry.file_type() {
            FileType::Unknown => statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        let own = || OsString::from_vec(name.to_owned());
        match kind {
            FileType::Directory if !matches!(name, b"." | b"..") => {
                found.subdirectories.push(own())
            }
            FileType::Socket => found.sockets.push(own()),
            _ => {}
        }
    }
    let [head, objects, refs, main] = parts;
    // The main repository of a worktree needs no HEAD.
    found.is_repository = objects && refs || head && main;
    found.stamp = stamp.filter(|stamp| stamp.is_settled() && !again);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(before: &Scan, roots: &[(&Path, bool)]) -> Scan {
        let roots: Vec<Root> = roots
            .iter()
            .map(|(path, whole)| Root { path: path.to_path_buf(), whole: *whole })
            .collect();
        before.again(&roots, &HashSet::new())
    }

    #[test]
    fn a_kept_scan_finds_what_is_new_and_a_directory_granted_twice_is_scanned_whole() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for path in ["a/b/c/.git", "a/b/d", "o\nther"] {
            fs::create_dir_all(top.join(path)).unwrap();
        }
        let roots = [(top.join("a/b"), false), (top.clone(), true)];
        let roots = roots.each_ref().map(|(path, whole)| (path.as_path(), *whole));
        let first = scan(&Scan::default(), &roots);
        assert_eq!(first.gits().collect::<Vec<_>>(), [top.join("a/b/c/.git")]);
        let file = top.join("kept");
        let kept = Scan { listed: WORTH_KEEPING, ..scan(&Scan::default(), &roots) };
        kept.keep(&file);
        for (path, dir) in Scan::kept(&file).dirs {
            assert_eq!(Some(&dir), kept.dirs.get(&path), "{}", path.display());
        }
        fs::create_dir_all(top.join("o\nther/deep/.git")).unwrap();
        fs::remove_dir(top.join("a/b/c/.git")).unwrap();
        let again = scan(&Scan::kept(&file), &roots);
        assert_eq!(again.gits().collect::<Vec<_>>(), [top.join("o\nther/deep/.git")]);
        let flat = scan(&Scan::default(), &[(&top, false)]);
        assert_eq!((flat.dirs.len(), flat.gits().count()), (1, 0));
    }
}
