//! Compares guarded files before and after a command. Mounts alone cannot protect them: a mount over a file is lost when
//! a process outside replaces the file, and a mount cannot cover a link or a missing file at all. What a command put at
//! a guarded path is moved out of the scope, into the storage of its Pod.

pub mod moved;
mod project_files;
mod recorded;
mod repositories;

use crate::files::{canonical, led_to, links_on};
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::directory::{self, OWNER};
use crate::sandbox::access::project;
use crate::sandbox::access::view::{CommandView, GUARDED, Grant, Hole, Level, Links, Why};
use crate::sandbox::git::check::moved::{MovedFiles, beside};
use crate::sandbox::git::own_repositories::{Identity, OwnRepositories, only_adds_harmless};
use crate::sandbox::git::repository::{HEAD, HELD, HOOKS};
use crate::sandbox::git::search::{Area, Found};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fchown, fstat, openat, readlinkat,
    renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::iter;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Digits of a commit in [`HEAD`]: of SHA-1 and SHA-256.
const COMMIT: [usize; 2] = [40, 64];
/// The directory of SSH keys: a new file in it could let others log in. It is created before the
/// command, so that a mount can hide it.
const SSH: &str = ".ssh";
/// The largest file whose content is recorded, in bytes.
const LIMIT: u64 = 1024 * 1024;

/// The state of the guarded paths before a command.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Paths at which nothing was.
    absent: BTreeSet<PathBuf>,
    /// The directories on guarded paths that were not links. A link that replaces one would direct
    /// git, an editor or another program to other files.
    unlinked: BTreeSet<PathBuf>,
    kept: Vec<(PathBuf, Known)>,
    /// [`HEAD`] of each repository. A command may change it, but only to one as git writes it.
    heads: Vec<(PathBuf, Known)>,
    /// The directories on the paths to guarded files, with their modes: the next command's search
    /// would not find files in a directory that became unreadable.
    modes: Vec<(PathBuf, Mode)>,
    /// The entries that git obeys in the directories of the person's repositories.
    entries: BTreeMap<PathBuf, HashSet<PathBuf>>,
    /// These repositories, also if they are moved meanwhile.
    persons: HashSet<Identity>,
    /// Every `.git` that is a file or a link.
    pointers: HashSet<PathBuf>,
    shown: Vec<project_files::Shown>,
    /// Whether the repositories are looked at after the command.
    is_looked_after: bool,
    /// See [`CommandView::checks_out`].
    checks_out: Option<PathBuf>,
    area: Area,
    /// Where a command may write.
    written: Vec<Grant>,
    own: OwnRepositories,
    moved: MovedFiles,
    recorded: recorded::Recorded,
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    File { bytes: Vec<u8>, mode: Mode, owner: (Uid, Gid) },
    Link(CString),
}

/// A view with its holes by their paths, for questions about many paths.
pub struct ViewByPath<'a> {
    asked: &'a CommandView,
    holes: HashMap<&'a Path, Vec<Why>>,
}

/// The directories of repositories that mounts hold in their place.
fn parts(found: &Found) -> impl Iterator<Item = PathBuf> {
    found.dirs.keys().flat_map(|dir| [HOOKS].into_iter().chain(HELD).map(|name| dir.join(name)))
}

/// Paths that are guarded for another reason than git: secrets, rules and directories of programs.
fn places(view: &CommandView) -> Vec<PathBuf> {
    let holes = view.holes.iter().filter(|hole| match hole.why {
        Why::Secret | Why::Rules | Why::Project | Why::Obeyed => {
            let real = || led_to(&hole.path).is_some_and(|path| written(view, &path));
            written(view, &hole.path) || real()
        }
        Why::Programs => true,
        _ => false,
    });
    let all: Vec<PathBuf> = holes.map(|hole| hole.path.clone()).collect();
    for dir in all.iter().filter(|path| path.ends_with(SSH) && path.symlink_metadata().is_err()) {
        // If this fails, the command cannot create it either, or its file is moved aside
        // afterwards.
        let _ = DirBuilder::new().mode(0o700).create(dir);
    }
    all
}

/// Whether a path may be written by the scope or by name. Writing to a cache does not count: it
/// goes to the Pod's own layer.
fn written(view: &CommandView, path: &Path) -> bool {
    let mut meant = view.grants.iter().filter(|grant| grant.links == Links::Refused);
    meant.any(|grant| grant.level == Level::Write && grant.covers(path))
}

impl<'a> ViewByPath<'a> {
    fn at(view: &'a CommandView) -> Self {
        let mut holes: HashMap<&Path, Vec<Why>> = HashMap::new();
        for hole in &view.holes {
            holes.entry(&hole.path).or_default().push(hole.why);
        }
        Self { asked: view, holes }
    }

    /// The reasons of the holes at exactly this path.
    fn holes_at(&self, path: &Path) -> &[Why] {
        self.holes.get(path).map_or(&[], Vec::as_slice)
    }

    /// Whether a command could write a path without the hole at exactly this path.
    fn opens(&self, path: &Path) -> bool {
        let own = |why: &Why| {
            matches!(why, Why::Secret | Why::Rules | Why::Programs | Why::Project | Why::Obeyed)
        };
        // A path in the scope of another Pod stays writable where it was granted itself, such as that of a child.
        let grants = || self.asked.grants.iter().filter(|grant| grant.level == Level::Write);
        let kept = |dir: &Path| {
            grants().any(|own| own.path != dir && own.path.starts_with(dir) && own.covers(path))
        };
        let takes = |dir: &Path, why: &Why| *why != Why::Others || !kept(dir);
        let mut above = path.ancestors().skip(1);
        let mut shut = || above.any(|dir| self.holes_at(dir).iter().any(|why| takes(dir, why)));
        written(self.asked, path) && self.holes_at(path).iter().all(own) && !shut()
    }
}

impl Snapshot {
    /// Records every guarded path of the view that the command could change.
    pub fn of(view: &CommandView, found: &Found) -> Self {
        let view = &ViewByPath::at(view);
        let mut before =
            Self { moved: MovedFiles::to(view.asked.private.as_ref()), ..Self::default() };
        let mut guarded: Vec<PathBuf> =
            found.places.iter().chain(found.pointers.keys()).cloned().collect();
        guarded.extend(found.named.iter().cloned());
        for dir in found.dirs.keys() {
            let head = dir.join(HEAD);
            if view.opens(&head) {
                before.heads.extend(before.recorded.known_at(&head).map(|known| (head, known)));
            }
            guarded.extend(
                GUARDED.into_iter().filter(|name| *name != HOOKS).map(|name| dir.join(name)),
            );
        }
        guarded.retain(|path| view.opens(path));
        guarded.extend(places(view.asked));
        for path in &guarded {
            before.keep(view, path);
        }
        before.keep_projects(view, found);
        if view.asked.checks_out.is_none() {
            before.keep_shown(view, found);
        }
        // Mounts protect the directories; links to one are compared.
        for dir in parts(found) {
            before.keep_links(view, &dir);
        }
        before.keep_directories(view, found);
        before.keep_repositories(view, found);
        if let Some(tree) = view.asked.checks_out.clone() {
            before.leave_to_git(tree);
        }
        before
    }

    /// Records the state of a guarded path, and of every link on the path.
    fn keep(&mut self, view: &ViewByPath, path: &Path) {
        self.keep_links(view, path);
        // A command may create a missing directory on `PATH`.
        let programs = view.holes_at(path).contains(&Why::Programs);
        if !path.exists() {
            // The target of a link may be missing, and the command could create it.
            let places = [path.to_owned()].into_iter().chain(led_to(path));
            let missing = |path: &PathBuf| directory::is_missing(path) && view.opens(path);
            self.absent.extend(places.filter(|path| !programs && missing(path)));
        } else if path.is_file() && !path.is_symlink() {
            let secret = !view.holes_at(path).is_empty();
            if !secret && view.opens(path) {
                match self.recorded.known_at(path) {
                    Some(known) => self.kept.push((path.to_owned(), known)),
                    // It is too large, or cannot be read.
                    None => self.recorded.close(path),
                }
            }
        }
    }

    /// Records which project files are missing, also those of other repositories.
    fn keep_projects(&mut self, view: &ViewByPath, found: &Found) {
        let own = view.asked.holes.iter().filter(|hole| hole.why == Why::Project);
        let mut files: Vec<PathBuf> = own.map(|hole| hole.path.clone()).collect();
        for path in found.projects.iter().flat_map(|dir| project::below(dir)) {
            let hole = Hole { path: path.clone(), level: Level::Read, why: Why::Project };
            let named = view.asked.names_for_writing(&hole);
            if !named && view.opens(&path) {
                match directory::is_missing(&path) {
                    false => self.keep_links(view, &path),
                    true => drop(self.absent.insert(path.clone())),
                }
                files.push(path);
            }
        }
        for path in files {
            self.keep_ways(view, &path);
        }
    }

    /// Records the other paths at which a missing project file could appear: the target of an
    /// existing link, or a link that replaces its directory.
    fn keep_ways(&mut self, view: &ViewByPath, path: &Path) {
        let Some((dir, name)) = path.parent().zip(path.file_name()) else { return };
        let linked = project::is_guarded_in_part(dir) && dir.is_symlink();
        let through = linked.then(|| canonical(dir).ok()).flatten().map(|dir| dir.join(name));
        let through = through.filter(|path| directory::is_missing(path));
        let ways = through.into_iter().chain(project::dangling(path));
        self.absent.extend(ways.filter(|path| view.opens(path)));
    }

    /// Records the directories on guarded paths that a command can replace or make unreadable.
    fn keep_directories(&mut self, view: &ViewByPath, found: &Found) {
        let known = self.kept.iter().chain(&self.heads).map(|(path, _)| path.as_path());
        let paths = known.chain(self.absent.iter().map(PathBuf::as_path));
        let above: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1)).collect();
        let replaced = |dir: &&&Path| !dir.is_symlink() && view.opens(dir);
        self.unlinked = above.iter().filter(replaced).map(|dir| dir.to_path_buf()).collect();
        let inside: Vec<PathBuf> = parts(found).collect();
        let places = found.places.iter().chain(found.pointers.keys());
        let places = places.chain(&found.named).chain(&inside);
        let holes = view.asked.holes.iter().map(|hole| &hole.path);
        let ways = places.chain(holes).flat_map(|path| path.ancestors());
        let closed = |dir: &&Path| {
            view.asked.isolation == Isolation::LandlockOnly || written(view.asked, dir)
        };
        let dirs: BTreeSet<&Path> = ways.chain(above).filter(closed).collect();
        self.modes = dirs.into_iter().filter_map(directory::mode_of).collect();
    }

    /// Leaves what appears in a new working tree.
    fn leave_to_git(&mut self, tree: PathBuf) {
        let is_new = |path: &PathBuf| *path != tree && path.starts_with(&tree);
        self.absent.retain(|path| !is_new(path));
        self.unlinked.retain(|path| !is_new(path));
        self.checks_out = Some(tree);
    }

    fn keep_links(&mut self, view: &ViewByPath, path: &Path) {
        for link in links_on(path) {
            let fresh = !self.kept.iter().any(|(kept, _)| *kept == link);
            if fresh && view.opens(&link) {
                self.kept.extend(self.recorded.known_at(&link).map(|known| (link, known)));
            }
        }
    }

    /// Moves new files away and restores changed ones. Returns a sentence for each.
    pub fn undo(&self) -> Vec<String> {
        // Outer directories come first.
        self.modes.iter().for_each(|(path, mode)| directory::allow(path, *mode));
        // Restores links first, from the root downwards, because later paths are resolved through
        // them.
        let linked = self.unlinked.iter().filter(|dir| dir.is_symlink());
        let moved = linked.chain(&self.absent).filter_map(|path| self.remove(path));
        let kept = self.kept.iter().filter_map(|(path, known)| {
            self.restore(path, known, |now| known.becomes_harmlessly(now))
        });
        let heads = self.heads.iter();
        let heads = heads.filter_map(|(path, known)| {
            let said = self.restore(path, known, Known::is_head)?;
            Some(match emptied(path) {
                Some(more) => format!("{said}; {more}"),
                None => said,
            })
        });
        let repositories = iter::once_with(|| self.undo_repositories(true)).flatten();
        let shown = iter::once_with(|| self.say_shown()).flatten();
        moved.chain(kept).chain(heads).chain(repositories).chain(shown).collect()
    }

    /// Moves away what a command that still runs put at guarded paths, and by what git would start programs.
    pub fn undo_new(&self) -> Vec<String> {
        let moved = self.absent.iter().filter_map(|path| self.remove(path));
        moved.chain(iter::once_with(|| self.undo_repositories(false)).flatten()).collect()
    }

    /// Moves what the command put at a guarded path out of the scope.
    fn remove(&self, path: &Path) -> Option<String> {
        // The parent is missing or a link now, so the guarded path itself does not exist.
        let (dir, name) = directory_to_change(path).ok()?;
        statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let shown = path.display();
        let mut moved = self.moved.add(&dir, path, &name);
        if moved.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            directory::open_up(path);
            moved = self.moved.add(&dir, path, &name);
        }
        Some(match moved {
            Ok(place) => format!(
                "{shown} is guarded and was created while the command ran; it was moved to {}",
                place.display()
            ),
            Err(error) => format!(
                "{shown} is guarded and was created while the command ran; it could not be moved away: check \
                 it and remove it ({error})"
            ),
        })
    }

    /// Restores a guarded file or link that the command changed. New settings of git that start nothing are left, because
    /// a person or a program of theirs may have made them meanwhile.
    fn restore(
        &self,
        path: &Path,
        before: &Known,
        is_well: impl Fn(&Known) -> bool,
    ) -> Option<String> {
        let (dir, name) = directory_to_change(path).ok()?;
        if known(&dir, &name).is_ok_and(|now| now == *before || is_well(&now)) {
            return None;
        }
        let shown = path.display();
        let mut placed = self.put_back(&dir, path, &name, before);
        if placed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            directory::open_up(path);
            placed = self.put_back(&dir, path, &name, before);
        }
        Some(match placed {
            Ok(None) => format!("{shown} was removed while the command ran and is put back"),
            Ok(Some(place)) => format!(
                "{shown} changed while the command ran and is put back as it was; the changed \
                 version was moved to {}",
                place.display()
            ),
            Err(error) => {
                // The command's version must not stay in use; a rename needs no space on a full disk. Without its
                // HEAD git would search for another repository.
                let moved = (name != HEAD).then(|| self.moved.add(&dir, path, &name));
                match moved {
                    Some(Ok(place)) => format!(
                        "{shown} changed while the command ran and could not be put back ({error}); the changed \
                         version was moved to {}",
                        place.display()
                    ),
                    _ => format!(
                        "{shown} changed while the command ran and could not be put back: check it before \
                         you use git ({error})"
                    ),
                }
            }
        })
    }

    /// Restores a file or link by an atomic rename, so that the path always exists: otherwise git would
    /// search for another repository. The temporary name in its directory is random. Returns where the
    /// command's version is, if there is one.
    fn put_back(
        &self,
        dir: &OwnedFd,
        path: &Path,
        name: &OsStr,
        before: &Known,
    ) -> io::Result<Option<PathBuf>> {
        let fresh = beside(name, "put-back");
        let placed = make(dir, &fresh, before).and_then(|()| exchange(dir, &fresh, name));
        match placed {
            Ok(true) => {
                let moved = self.moved.add(dir, path, &fresh);
                Ok(Some(moved.unwrap_or_else(|_| path.with_file_name(fresh))))
            }
            Ok(false) => Ok(None),
            Err(error) => {
                // Only a file created here has this name.
                let _ = unlinkat(dir, &*fresh, AtFlags::empty());
                Err(error)
            }
        }
    }
}

impl Known {
    /// Whether it is a [`HEAD`] as git writes it. git itself accepts more, but an exact copy of its rules would have
    /// to change with each version of git, and other programs have rules of their own.
    fn is_head(&self) -> bool {
        match self {
            Self::Link(target) => target.to_bytes().starts_with(b"refs/"),
            Self::File { bytes, mode, .. } => {
                let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let branch = line.strip_prefix(b"ref: refs/");
                let in_name = |byte: &u8| *byte > b' ' && *byte != 0x7f;
                let branch = branch.is_some_and(|name| name.iter().all(in_name));
                let commit = COMMIT.contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit);
                mode.contains(Mode::RUSR) && (commit || branch)
            }
        }
    }

    /// Whether both are settings of git that differ only in such as start nothing.
    fn becomes_harmlessly(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::File { bytes, mode, .. }, Self::File { bytes: after, mode: mode_now, .. }) => {
                mode == mode_now && only_adds_harmless(bytes, after)
            }
            _ => false,
        }
    }
}

/// Creates a copy of a file or link as it was before the command.
fn make(dir: &OwnedFd, name: &OsStr, before: &Known) -> io::Result<()> {
    let (bytes, mode, owner) = match before {
        Known::Link(target) => return Ok(symlinkat(target.as_c_str(), dir, name)?),
        Known::File { bytes, mode, owner } => (bytes, *mode, *owner),
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, name, flags, OWNER)?);
    file.write_all(bytes)?;
    // Only root can set another owner, and only root could have changed such a file.
    let _ = fchown(&file, Some(owner.0), Some(owner.1));
    fchmod(&file, mode)?;
    file.sync_all()
}

/// Gives the new file its final name, and its name to the file that had that. Returns whether there was one.
fn exchange(dir: &OwnedFd, fresh: &OsStr, name: &OsStr) -> io::Result<bool> {
    match renameat_with(dir, fresh, dir, name, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => {}
        // A file system that cannot exchange two names.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let other = beside(name, "put-aside");
            renameat(dir, name, dir, &*other)?;
            renameat(dir, fresh, dir, name)?;
            renameat(dir, &*other, dir, fresh)?;
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    }
    renameat(dir, fresh, dir, name)?;
    Ok(false)
}

/// Opens the directory of a file without following links; returns it with the file's name.
fn directory(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((directory::open(parent)?, name.to_owned()))
}

/// Opens the directory of a path for a change. Directories that the command made unreadable get
/// back the permissions of their owner.
fn directory_to_change(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    if directory::closed(path).is_some() {
        directory::open_up(path);
    }
    directory(path)
}

fn known_at(path: &Path) -> Option<Known> {
    let (dir, name) = directory(path).ok()?;
    known(&dir, &name).ok()
}

/// Reads a link, or a regular file that is small enough to be recorded.
fn known(dir: &OwnedFd, name: &OsStr) -> io::Result<Known> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Ok(Known::Link(readlinkat(dir, name, Vec::new())?));
    }
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
    let owner = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    Ok(Known::File { bytes, mode: Mode::from_raw_mode(stat.st_mode & 0o777), owner })
}

/// What is said of a repository that a command deleted as far as it could: only its guarded parts are left.
fn emptied(head: &Path) -> Option<String> {
    let dir = head.parent().filter(|dir| directory::is_missing(&dir.join("commondir")))?;
    // Directories that hold a mount stay, without their files.
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let mut objects = entries(&dir.join("objects"));
    let is_emptied = objects.all(|object| {
        object.file_type().is_ok_and(|kind| kind.is_dir())
            && entries(&object.path()).next().is_none()
    });
    is_emptied.then(|| {
        format!(
            "the command deleted the repository {} as far as it could: its commits are gone, and only what is guarded in \
             it is left; with needs: [\"git\"] the same command deletes the rest",
            dir.display()
        )
    })
}
