//! From a path a model names to an open file: inside the scope, and through no component that was
//! swapped for a link meanwhile.

use crate::scope::Permission;
use crate::tools::Context;
use crate::tools::fault::Fault;
use crate::tools::{guard, text_limit};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Bytes of a file that is read or changed as a whole.
pub const MAX_FILE: u64 = 32 * 1024 * 1024;
/// How often a path that changes under our hands is tried again.
const TRIES: usize = 3;
/// No links on the way, and nothing above the root.
const STRICT: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// A permitted path, canonical.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedPath {
    pub path: PathBuf,
    /// Where opening starts: the target of the rule that permits it.
    root: PathBuf,
    pub exists: bool,
}

/// Why opening failed: once more can help, or not.
enum Miss {
    Moved,
    Fault(Fault),
}

/// A regular file, read whole.
pub struct Found {
    pub bytes: Vec<u8>,
    /// Permission bits, without set-id.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl ScopedPath {
    /// Resolves a path and checks it against the scope. What does not exist yet is a place too,
    /// if its nearest existing ancestor is in scope.
    pub fn find(ctx: &Context, given: &str, need: Permission) -> Result<Self, Fault> {
        let given = Path::new(given);
        if !given.is_absolute() {
            return Err(Fault::argument(format!(
                "path must be absolute: {}; the working directory is {}",
                given.display(),
                ctx.cwd.display()
            )));
        }
        let (path, exists) = canonical(given)?;
        if let Some(why) = guard::closed(ctx, &path, need) {
            return Err(Fault::argument(why));
        }
        let Some(root) = permitted(ctx, &path, need) else {
            return Err(refusal(ctx, given, &path));
        };
        if need == Permission::Write {
            refuse_guarded(ctx, &path)?;
        }
        Ok(Self { path, root, exists })
    }

    /// Reads a regular file of at most [`MAX_FILE`] bytes.
    pub fn read(ctx: &Context, given: &str, need: Permission) -> Result<(Self, Found), Fault> {
        retry(given, || {
            let place = Self::find(ctx, given, need).map_err(Miss::Fault)?;
            if !place.exists {
                return Err(Miss::Fault(Fault::argument(format!("file not found: {given}"))));
            }
            let found = place.load()?;
            Ok((place, found))
        })
    }

    /// The content of this place as it is now.
    fn load(&self) -> Result<Found, Miss> {
        let file = open_file(&self.root, &self.path)?;
        let stat = fstat(&file).map_err(|error| miss("cannot look at", &self.path, error))?;
        let (size, limit) = (u64::try_from(stat.st_size).unwrap_or(0), MAX_FILE);
        if size > limit {
            return Err(Miss::Fault(too_large(&self.path, size)));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        let read = File::from(file).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| Miss::Fault(Fault::io("cannot read", &self.path, error)))?;
        if bytes.len() as u64 > limit {
            return Err(Miss::Fault(too_large(&self.path, bytes.len() as u64)));
        }
        Ok(Found { bytes, mode: stat.st_mode & 0o777, uid: stat.st_uid, gid: stat.st_gid })
    }

    /// The content of this place, `None` if there is no such file now.
    pub fn now(&self) -> Result<Option<Found>, Fault> {
        match self.load() {
            Ok(found) => Ok(Some(found)),
            Err(Miss::Fault(fault)) => Err(fault),
            Err(Miss::Moved) => Ok(None),
        }
    }

    /// Opens the directory this place is in, making those that are missing, and its own name.
    pub fn directory(&self) -> Result<(OwnedFd, OsString), Fault> {
        let bad = || Fault::argument(format!("path has no file name: {}", self.path.display()));
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(bad());
        };
        let shown = self.path.display().to_string();
        let directory = retry(&shown, || make_directory(&self.root, parent))?;
        Ok((directory, name.to_owned()))
    }
}

/// Opens a file for a search: `None` if it is not a readable regular file of bounded size.
pub fn open_for_search(ctx: &Context, path: &Path) -> Option<File> {
    let root = permitted(ctx, path, Permission::Read)?;
    open_file(&root, path).ok().map(File::from)
}

/// Whether something at or below this directory may be looked at.
pub fn reaches(ctx: &Context, directory: &Path) -> bool {
    ctx.scope.reaches(directory) || directory.starts_with(&ctx.outputs)
}

/// Whether this canonical path may be read.
pub fn readable(ctx: &Context, path: &Path) -> bool {
    allows(ctx, path, Permission::Read)
}

/// Whether this much may be done with a canonical path.
pub fn allows(ctx: &Context, path: &Path, need: Permission) -> bool {
    permitted(ctx, path, need).is_some()
}

/// The canonical form of an absolute path; what does not exist yet has one too.
pub fn resolve(given: &str) -> Result<PathBuf, Fault> {
    let path = Path::new(given);
    if !path.is_absolute() {
        return Err(Fault::argument(format!("path must be absolute: {given}")));
    }
    canonical(path).map(|(path, _)| path)
}

/// The root from which a permitted path is opened.
fn permitted(ctx: &Context, path: &Path, need: Permission) -> Option<PathBuf> {
    if need == Permission::Read && path.starts_with(&ctx.outputs) {
        return Some(ctx.outputs.clone());
    }
    ctx.scope.permission(path).filter(|held| *held >= need)?;
    let rule = ctx.scope.rule_for(path, need)?;
    // A rule may be about a single file: then its directory is where opening starts.
    let root = if rule.target == path { path.parent().unwrap_or(path) } else { &rule.target };
    // A rule may be about a directory that nobody made yet.
    root.ancestors().find(|root| root.exists()).map(Path::to_owned)
}

fn refuse_guarded(ctx: &Context, path: &Path) -> Result<(), Fault> {
    let needs = guard::needs(ctx, path);
    if needs.iter().all(|need| ctx.needs.contains(need)) {
        return Ok(());
    }
    Err(Fault::argument(guard::not_granted(path, &needs)))
}

fn refusal(ctx: &Context, given: &Path, path: &Path) -> Fault {
    if ctx.scope.permission(path).is_some() {
        return Fault::argument(format!("path is read-only in this scope: {}", path.display()));
    }
    if given != path && ctx.scope.permission(&lexical(given)).is_some() {
        return Fault::argument(format!(
            "path leads through a symbolic link outside allowed scope: {} -> {}",
            given.display(),
            path.display()
        ));
    }
    Fault::argument(format!("path is outside allowed scope: {}", given.display()))
}

/// The path without `.` and `..`, links not followed.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The canonical form, through the nearest ancestor that exists; and whether all of it exists.
fn canonical(given: &Path) -> Result<(PathBuf, bool), Fault> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut present = given.to_owned();
    loop {
        match present.canonicalize() {
            Ok(real) => {
                let exists = missing.is_empty();
                return Ok((missing.iter().rev().fold(real, |path, name| path.join(name)), exists));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(unresolvable(given, &error));
            }
            Err(_) => {}
        }
        refuse_broken_link(&present)?;
        let Some(name) = present.file_name() else {
            let text = "path leads through a directory that does not exist";
            return Err(Fault::argument(format!("{text}: {}", given.display())));
        };
        missing.push(name.to_owned());
        present.pop();
    }
}

fn unresolvable(given: &Path, error: &std::io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotADirectory => Fault::argument(format!(
            "path leads through something that is not a directory: {}",
            given.display()
        )),
        _ => Fault::io("cannot resolve", given, error),
    }
}

fn refuse_broken_link(path: &Path) -> Result<(), Fault> {
    let Ok(target) = path.read_link() else { return Ok(()) };
    Err(Fault::argument(format!(
        "broken symbolic link: {} -> {}; create its target or remove the link first",
        path.display(),
        target.display()
    )))
}

fn retry<T>(shown: &str, mut work: impl FnMut() -> Result<T, Miss>) -> Result<T, Fault> {
    for _ in 0..TRIES {
        match work() {
            Ok(value) => return Ok(value),
            Err(Miss::Fault(fault)) => return Err(fault),
            Err(Miss::Moved) => {}
        }
    }
    Err(Fault::Execution(format!("path changes while it is opened: {shown}; try again")))
}

/// A component that is a link now, or gone, was swapped after the path was resolved.
fn miss(doing: &str, path: &Path, error: Errno) -> Miss {
    match error {
        Errno::LOOP | Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::AGAIN => Miss::Moved,
        other => Miss::Fault(Fault::io(doing, path, std::io::Error::from(other))),
    }
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

/// Opens a regular file for reading. Its kind is looked at before it is opened, because opening a
/// device or a FIFO can already do something.
fn open_file(root: &Path, path: &Path) -> Result<OwnedFd, Miss> {
    let seen = open_below(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    refuse_special(&seen, path)?;
    let file = open_below(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    refuse_special(&file, path)?;
    match guard::closed_file(&file, path, Permission::Read) {
        Some(why) => Err(Miss::Fault(Fault::argument(why))),
        None => Ok(file),
    }
}

fn refuse_special(file: &OwnedFd, path: &Path) -> Result<(), Miss> {
    let stat = fstat(file).map_err(|error| miss("cannot look at", path, error))?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => return Err(Miss::Moved),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(Miss::Fault(Fault::argument(format!("path is {kind}, not a file: {}", path.display()))))
}

fn too_large(path: &Path, size: u64) -> Fault {
    Fault::argument(format!(
        "file is too large: {} has {}, the limit is {}; use Grep, or Bash with head, tail or sed",
        path.display(),
        text_limit::size(size),
        text_limit::size(MAX_FILE)
    ))
}

/// Opens a directory below the root step by step, making what is missing.
fn make_directory(root: &Path, path: &Path) -> Result<OwnedFd, Miss> {
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

fn make_one(here: &OwnedFd, name: &std::ffi::OsStr, path: &Path) -> Result<(), Miss> {
    match rustix::fs::mkdirat(here, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(miss("cannot make a directory for", path, error)),
    }
}
