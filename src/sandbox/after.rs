//! What is looked at before and after a command: files from which git, run by somebody else, takes
//! its orders. A mount over such a file is gone when somebody outside replaces it, and a file that
//! is not there cannot be mounted shut.

use crate::files::{lexical, resolve};
use crate::sandbox::guard;
use crate::sandbox::view::{CommandView, Level, Why};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Of what git takes orders from, the files.
const FILES: [&str; 3] = ["config", "config.worktree", "commondir"];
/// Those that may be missing, and whose coming leads git elsewhere.
const POINTERS: [&str; 2] = ["config.worktree", "commondir"];
/// The file that says which branch a repository is on.
const HEAD: &str = "HEAD";
/// Links on the way of one path.
const LINKS: usize = 20;
/// Bytes of a file that is kept in mind.
const LIMIT: u64 = 1024 * 1024;

/// How these files were before the command.
#[derive(Debug, Default)]
pub struct Before {
    missing: Vec<PathBuf>,
    files: Vec<(PathBuf, Known)>,
    /// Which branch a repository is on: git takes a directory without it for no repository.
    heads: Vec<(PathBuf, Known)>,
    /// Directories without which it does the same.
    kept: Vec<PathBuf>,
    /// Links that lead to programs, hooks and settings, and where each leads.
    links: Vec<(PathBuf, PathBuf)>,
    /// Places that did not exist, and what others do with what lies there.
    places: Vec<(PathBuf, &'static str)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    bytes: Vec<u8>,
    mode: Mode,
}

/// Looks at every repository of the view, save where the command may not write at all.
pub fn look(view: &CommandView) -> Before {
    let mut before = Before::default();
    for git in &guard::repositories(view) {
        let guard::Found { dirs, pointers, .. } = guard::find(git);
        before.follow(git);
        for dir in dirs {
            before.heads.extend(keep(&dir.join(HEAD)));
            before.kept.extend(
                guard::KEPT.map(|name| dir.join(name)).into_iter().filter(|dir| dir.is_dir()),
            );
            for named in guard::named_by(&dir, view.home.as_deref()) {
                before.follow(&named);
                before.place(named, "git executes it or takes its settings from it");
            }
            let missing = |path: &PathBuf| path.symlink_metadata().is_err();
            before.missing.extend(POINTERS.map(|name| dir.join(name)).into_iter().filter(missing));
            before.files.extend(FILES.iter().filter_map(|name| keep(&dir.join(name))));
        }
        before.files.extend(pointers.iter().filter_map(|file| keep(file)));
    }
    for hole in &view.holes {
        match hole.why {
            Why::Programs => before.follow(&hole.path),
            Why::Secret => before.place(hole.path.clone(), "it is on the list of secrets"),
            Why::Scope | Why::Own | Why::Git | Why::Others => {}
        }
    }
    let shut = |path: &Path| view.holes.iter().any(|hole| path.starts_with(&hole.path));
    let open = |path: &Path| !shut(path) && view.granted(path) == Level::Write;
    before.missing.retain(|path| open(path));
    before.files.retain(|(path, _)| open(path));
    before.heads.retain(|(path, _)| open(path));
    before.kept.retain(|path| open(path));
    before.links.retain(|(path, _)| open(path));
    before.places.retain(|(path, _)| view.granted(path) == Level::Write);
    before
}

impl Before {
    /// Remembers every link on the way to a path.
    fn follow(&mut self, path: &Path) {
        let mut rest = path.to_owned();
        for _ in 0..LINKS {
            let parts: Vec<PathBuf> = rest.ancestors().map(Path::to_owned).collect();
            let Some(link) = parts.iter().rev().find(|path| path.is_symlink()) else { return };
            let Ok(target) = std::fs::read_link(link) else { return };
            let beyond = rest.strip_prefix(link).unwrap_or(Path::new(""));
            let next = lexical(&link.parent().unwrap_or(link).join(&target).join(beyond));
            self.links.push((link.clone(), target));
            rest = next;
        }
    }

    /// Remembers a place that does not exist.
    fn place(&mut self, path: PathBuf, what: &'static str) {
        if let Ok(found) = resolve(&path).map(|found| (found.path, found.exists))
            && !found.1
        {
            self.places.push((found.0, what));
        }
    }

    /// Removes what has come since and puts back what has changed; a sentence for each.
    pub fn mend(&self) -> Vec<String> {
        let removed = self.missing.iter().filter_map(|path| remove(path));
        let places = self.places.iter().filter_map(|(path, what)| set_aside(path, what));
        let links = self.links.iter().filter_map(|(link, target)| lead_back(link, target));
        let files = self.files.iter().filter_map(|(path, known)| restore(path, known));
        let heads = self.heads.iter().filter(|(path, _)| !names_a_branch(path));
        let heads = heads.filter_map(|(path, known)| restore(path, known));
        let gone = self.kept.iter().filter(|dir| !dir.is_dir());
        let gone = gone.map(|dir| {
            let dir = dir.display();
            format!("{dir} is gone: git may take another directory for the repository now")
        });
        removed.chain(places).chain(links).chain(files).chain(heads).chain(gone).collect()
    }
}

fn keep(path: &Path) -> Option<(PathBuf, Known)> {
    let (dir, name) = directory(path).ok()?;
    Some((path.to_owned(), known(&dir, &name).ok()?))
}

/// Whether git finds a branch or a commit in this file.
fn names_a_branch(head: &Path) -> bool {
    let Some((_, found)) = keep(head) else { return false };
    let text = found.bytes.trim_ascii();
    text.starts_with(b"ref: refs/")
        || matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

/// Gives what lies at a place another name.
fn set_aside(path: &Path, what: &str) -> Option<String> {
    let (dir, name) = directory(path).ok()?;
    let aside = beside(&name, "put-aside");
    let shown = path.display();
    match renameat(&dir, &*name, &dir, &*aside) {
        Ok(()) => {
            let aside = path.with_file_name(aside);
            Some(format!("{shown} is {} now: {what}", aside.display()))
        }
        Err(Errno::NOENT) => None,
        Err(error) => Some(format!("look at {shown}, {what}; it could not be moved: {error}")),
    }
}

/// Puts a link back that leads elsewhere now.
fn lead_back(link: &Path, target: &Path) -> Option<String> {
    if std::fs::read_link(link).is_ok_and(|now| now == target) {
        return None;
    }
    let (dir, name) = directory(link).ok()?;
    let aside = set_aside(link, "programs, hooks or settings are reached through this path");
    let shown = link.display();
    Some(match symlinkat(target, &dir, &*name) {
        Ok(()) => aside.unwrap_or_else(|| format!("{shown} was gone and is a link again")),
        Err(error) => {
            format!("{shown} led to {} and could not be put back: {error}", target.display())
        }
    })
}

fn remove(path: &Path) -> Option<String> {
    // Where the directory is gone, or a link, there is nothing of the repository's.
    let (dir, name) = directory(path).ok()?;
    let shown = path.display();
    match unlinkat(&dir, &*name, AtFlags::empty()) {
        Ok(()) => Some(format!("{shown} was removed: it led git to another configuration")),
        Err(Errno::NOENT) => None,
        Err(error) => Some(format!("{shown} leads git to another configuration: {error}")),
    }
}

fn restore(path: &Path, before: &Known) -> Option<String> {
    let (dir, name) = directory(path).ok()?;
    if known(&dir, &name).is_ok_and(|now| now.bytes == before.bytes) {
        return None;
    }
    let shown = path.display();
    match put_back(&dir, &name, before) {
        Ok(aside) => Some(format!(
            "{shown} changed while the command ran and is put back as it was; what it had become \
             is {}",
            path.with_file_name(aside).display()
        )),
        Err(error) => Some(format!(
            "{shown} changed while the command ran and could not be put back, look at it before \
             you use git: {error}"
        )),
    }
}

/// The new file is whole before the old one makes room. Names that nobody can have taken before.
fn put_back(dir: &OwnedFd, name: &OsStr, before: &Known) -> io::Result<OsString> {
    let (fresh, aside) = (beside(name, "put-back"), beside(name, "put-aside"));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, &*fresh, flags, before.mode)?);
    file.write_all(&before.bytes)?;
    file.sync_all()?;
    match renameat(dir, name, dir, &*aside) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    renameat(dir, &*fresh, dir, name)?;
    Ok(aside)
}

fn beside(name: &OsStr, what: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(format!(".{what}-{}", uuid::Uuid::now_v7().simple()));
    name
}

/// The directory of a file, through no link, and the file's name in it.
fn directory(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok((openat2(CWD, parent, flags, Mode::empty(), strict)?, name.to_owned()))
}

/// A regular file of a size that can be kept.
fn known(dir: &OwnedFd, name: &OsStr) -> io::Result<Known> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::from(file).take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Known { bytes, mode: Mode::from_raw_mode(stat.st_mode & 0o777) })
}
