//! What is looked at before and after a command: files from which git, run by somebody else, takes
//! its orders. A mount over such a file is gone when somebody outside replaces it, and a file that
//! is not there cannot be mounted shut.

use crate::sandbox::guard;
use crate::sandbox::view::{CommandView, Level};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, renameat, unlinkat,
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
/// Bytes of a file that is kept in mind.
const LIMIT: u64 = 1024 * 1024;

/// How these files were before the command.
#[derive(Debug, Default)]
pub struct Before {
    missing: Vec<PathBuf>,
    files: Vec<(PathBuf, Known)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    bytes: Vec<u8>,
    mode: Mode,
}

/// Looks at every repository of the view, save where the command may not write at all.
pub fn look(view: &CommandView) -> Before {
    let mut before = Before::default();
    for git in &view.repositories {
        let guard::Found { dirs, pointers, .. } = guard::find(git);
        for dir in dirs {
            let missing = |path: &PathBuf| path.symlink_metadata().is_err();
            before.missing.extend(POINTERS.map(|name| dir.join(name)).into_iter().filter(missing));
            FILES.iter().for_each(|name| before.keep(dir.join(name)));
        }
        pointers.into_iter().for_each(|file| before.keep(file));
    }
    let shut = |path: &Path| view.holes.iter().any(|hole| path.starts_with(&hole.path));
    let open = |path: &Path| !shut(path) && view.granted(path) == Level::Write;
    before.missing.retain(|path| open(path));
    before.files.retain(|(path, _)| open(path));
    before
}

impl Before {
    fn keep(&mut self, path: PathBuf) {
        if let Ok(known) = directory(&path).and_then(|(dir, name)| known(&dir, &name)) {
            self.files.push((path, known));
        }
    }

    /// Removes what has come since and puts back what has changed; a sentence for each.
    pub fn mend(&self) -> Vec<String> {
        let removed = self.missing.iter().filter_map(|path| remove(path));
        removed.chain(self.files.iter().filter_map(|(path, known)| restore(path, known))).collect()
    }
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
