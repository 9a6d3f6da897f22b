//! Finds the files that git executes or reads as settings in the repositories that a command may
//! write: hooks, configurations, and pointers to other repositories. A repository that a command of the Pod made is the
//! Pod's own: its files are not guarded, and a look after each command finds the programs in it.

mod named;
#[cfg(test)]
mod tests;

use crate::files::{Limit, WorkspaceFiles, canonical};
use crate::sandbox::new_repository::Repositories;
use crate::sandbox::own_repositories::OwnRepositories;
use crate::sandbox::places::of_the_system;
use crate::sandbox::scan::{Root, Scan};
use crate::sandbox::view::{CommandView, Depth, GIT, GUARDED, Grant, Hole, Level, Links, Why};
use crate::sandbox::{project, ways};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub use named::{is_named, settings as named_settings};

/// The most repositories that are guarded individually; a scope with more of them is read-only.
const REPOSITORIES: usize = 2_000;
/// The most directories that could not be listed and are read-only one by one.
const UNSEEN: usize = 500;
/// The directories beside a repository in which a file tool looks for others.
const BESIDE: usize = 10_000;
/// Bytes that are read of a file that names one directory.
const POINTER: u64 = 8 * 1024;
/// The file of a repository that says which branch is checked out.
pub const HEAD: &str = "HEAD";
/// The directory of hooks in a repository. It is made before a command, so a mount guards it.
pub const HOOKS: &str = "hooks";
/// Directories of a repository. If one of them or `HEAD` is missing, git does not recognise the
/// repository and searches the directories above.
pub const HELD: [&str; 2] = ["objects", "refs"];
/// Names in the directory of a repository that are data: git neither executes them nor reads settings from them.
const DATA: [&str; 33] = [
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "NOTES_MERGE_WORKTREE",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "MERGE_AUTOSTASH",
    "annex",
    "description",
    "gc.log",
    "gc.pid",
    "index",
    "info",
    "lfs",
    "locked",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "rr-cache",
    "sequencer",
    "shallow",
    "worktrees",
];
/// The same by the ends and the beginnings of names.
const DATA_ENDS: [&str; 2] = [".lock", "_HEAD"];
const DATA_BEGINS: [&str; 4] = ["BISECT_", "fsmonitor--daemon", "index.", "sharedindex."];
/// What is in the names of files that are put back or aside.
const PASSING: [&str; 2] = [".put-back-", ".put-aside-"];
/// Names of other repositories, which git reads from these directories as it reads a configuration.
const REMOTES: [&str; 2] = ["branches", "remotes"];

/// The repositories of a view and their files.
#[derive(Debug, Default)]
pub struct Found {
    /// Directories of repositories, submodules and worktrees, each with its known working trees.
    pub dirs: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// `.git` files, which contain the path of such a directory, each with the directory.
    pub pointers: BTreeMap<PathBuf, Option<PathBuf>>,
    /// Every visited `.git` by its unresolved path, because it can be a link.
    pub places: BTreeSet<PathBuf>,
    /// Directories that are not known well enough to guard what lies in them.
    pub closed: Vec<PathBuf>,
    /// Hooks and settings that a configuration names, which may not exist.
    pub named: Vec<PathBuf>,
    /// Canonical working trees besides the scope's own directories: each can be a project of its
    /// own.
    pub projects: BTreeSet<PathBuf>,
    /// The directories in which a command may write.
    pub area: Area,
    /// The repositories that commands of the Pod made.
    pub own: OwnRepositories,
}

/// The directories that were granted to a command, and what a scan found there before it.
#[derive(Debug, Default)]
pub struct Area {
    pub roots: Vec<Root>,
    pub skipped: HashSet<PathBuf>,
    pub scan: Scan,
}

impl Area {
    /// The grants of the scope and those by name: others are not the Pod's.
    fn of(view: &CommandView) -> Self {
        let others = |hole: &&Hole| {
            let of_others =
                matches!(hole.why, Why::Scope | Why::Own | Why::Secret | Why::Others | Why::Job);
            of_others && hole.level < Level::Write
        };
        let skipped = view.holes.iter().filter(others).map(|hole| hole.path.clone()).collect();
        let own = |grant: &&Grant| grant.links == Links::Refused && grant.level > Level::Hidden;
        let own = view.grants.iter().filter(own).filter(|grant| !of_the_system(&grant.path));
        let root =
            |path: &Path, depth| Root { path: path.to_owned(), whole: depth == Depth::Whole };
        let dirs = own.filter(|grant| grant.depth != Depth::Cache && grant.path.is_dir());
        let mut roots: Vec<Root> = dirs.map(|grant| root(&grant.path, grant.depth)).collect();
        roots.sort_unstable_by(|a, b| b.whole.cmp(&a.whole).then(a.path.cmp(&b.path)));
        let mut area = Self { roots, skipped, scan: Scan::default() };
        let file = view.private.as_ref().map(|storage| storage.scan());
        let before = file.as_deref().map(Scan::kept).unwrap_or_default();
        area.scan = area.again_from(&before);
        file.iter().for_each(|file| area.scan.keep(file));
        if view.in_background {
            // Only there is it looked after; sockets are hidden in the whole scope.
            area.roots.retain(|root| view.writes.contains(&root.path));
        }
        area
    }

    /// A scan of the same directories as they are now.
    pub fn again(&self) -> Scan {
        self.again_from(&self.scan)
    }

    fn again_from(&self, before: &Scan) -> Scan {
        before.again(&self.roots, &self.skipped)
    }

    /// The directories that could not be looked at, or all if these are too many.
    fn unseen(&self) -> Vec<PathBuf> {
        match self.scan.unseen.len() {
            0..=UNSEEN => self.scan.unseen.clone(),
            _ => self.roots.iter().map(|root| root.path.clone()).collect(),
        }
    }
}

/// A search for repositories. It follows files that a command may have written, so it uses a list
/// of paths to visit instead of recursion.
struct Search<'a> {
    /// Whether a command may write at a path. The search follows a pointer only to such paths.
    writes: &'a dyn Fn(&Path) -> bool,
    found: Found,
    to_look_at: Vec<Lead>,
}

/// A path that the search has to visit.
enum Lead {
    /// A `.git`: a directory, a file that names one, or a link to either.
    Git(PathBuf),
    /// The directory of a repository, and a working tree of it.
    Repository(PathBuf, Option<PathBuf>),
}

/// Searches this disk for the repositories of a view. `resolved` is the view with canonical grants.
pub fn find(view: &CommandView, resolved: &CommandView) -> Found {
    let grants = [view.grants_by_path(), resolved.grants_by_path()];
    let writes = |path: &Path| grants.iter().any(|grants| grants.level(path) == Level::Write);
    // Resolved grants of the system and of toolchains look like those of the scope.
    let area = Area::of(view);
    // A command that may change git's settings is not looked after.
    if view.repositories.is_empty() {
        return Found { area, ..Found::default() };
    }
    let mut search = Search::new(&writes);
    let gits = view.repositories.iter().cloned().chain(area.scan.gits().filter(|git| writes(git)));
    let repositories = area.scan.repositories().filter(|dir| writes(dir)).cloned();
    let leads = gits.map(Lead::Git).chain(repositories.map(|dir| Lead::Repository(dir, None)));
    leads.for_each(|lead| search.follow(lead));
    let mut found = search.found;
    found.closed.extend(area.unseen());
    if found.dirs.len() + found.pointers.len() > REPOSITORIES {
        // They may be anywhere in the scope.
        found.closed.extend(area.roots.iter().map(|root| root.path.clone()));
    }
    found.own = OwnRepositories::kept(view.private.as_ref());
    found.area = area;
    leave_out_own(&mut found, &writes);
    found.named = named::by_all(&found.dirs, view.home.as_deref());
    found.projects = projects(view, &found);
    found
}

/// Leaves the Pod's own repositories out. One in which something starts a program now is not the Pod's any more: after
/// its last command nothing did.
fn leave_out_own(found: &mut Found, writes: &dyn Fn(&Path) -> bool) {
    let is_known = |dir: &Path| found.dirs.contains_key(dir);
    let repositories = Repositories { writes, is_known: &is_known };
    let is_own = |dir: &Path| found.own.has(dir) && repositories.faults(dir).is_empty();
    let own: HashSet<PathBuf> = found.dirs.keys().filter(|dir| is_own(dir)).cloned().collect();
    found.dirs.retain(|dir, _| !own.contains(dir));
    found.pointers.retain(|_, dir| dir.as_ref().is_none_or(|dir| !own.contains(dir)));
    let leads_to_own = |git: &PathBuf| repository(git).is_some_and(|dir| own.contains(&dir));
    found.places.retain(|git| !leads_to_own(git));
}

/// The working trees whose project files the view does not name itself.
fn projects(view: &CommandView, found: &Found) -> BTreeSet<PathBuf> {
    let beside = found.places.iter().filter_map(|git| git.parent().map(Path::to_owned));
    let trees = beside.chain(found.dirs.values().flatten().cloned()).collect::<BTreeSet<_>>();
    let own = view.holes.iter().filter(|hole| hole.why == Why::Project);
    let own: HashSet<&Path> = own.filter_map(|hole| hole.path.parent()).collect();
    let named = |tree: &Path| own.contains(tree);
    let real = trees.iter().filter(|tree| !named(tree)).filter_map(|tree| canonical(tree).ok());
    let grants = view.grants_by_path();
    real.filter(|tree| grants.level(tree) == Level::Write).collect()
}

/// The paths of the repositories that a command may not change. A hole of [`Level::Write`] leaves its
/// content writable, but the path cannot be moved.
pub fn holes(view: &CommandView, found: &Found) -> Vec<Hole> {
    let Found { dirs, pointers, closed, named, projects, .. } = found;
    let grants = view.grants_by_path();
    let written: Vec<&PathBuf> =
        dirs.keys().filter(|dir| grants.level(dir) == Level::Write).collect();
    written.iter().for_each(|dir| make_hooks(dir));
    let parts = dirs.keys().flat_map(|dir| obeyed_in(dir));
    let named = parts.chain(named.iter().cloned()).filter(|path| path.exists());
    let shut = named.chain(pointers.keys().chain(closed).cloned());
    let held = written.iter().flat_map(|dir| HELD.map(|name| dir.join(name)));
    let held = held.filter(|path| path.is_dir());
    let project = |path| Hole { path, level: Level::Read, why: Why::Project };
    let project = projects.iter().flat_map(|dir| project::below(dir)).map(project);
    shut.map(|path| Hole { path, level: Level::Read, why: Why::Git })
        .chain(held.map(|path| Hole { path, level: Level::Write, why: Why::Git }))
        .chain(project.filter(|hole| hole.path.symlink_metadata().is_ok()))
        .collect()
}

/// The existing entries of a repository's directory that are not known to be data.
pub fn obeyed_in(dir: &Path) -> Vec<PathBuf> {
    let inside = dir.iter().any(|name| name == GIT);
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let obeyed = names.filter(|name| is_obeyed(name, inside));
    obeyed.map(|name| dir.join(name)).collect()
}

/// Whether git obeys an entry of a repository's directory. A bare repository may lie among other files, of which only
/// known names count.
fn is_obeyed(name: &OsStr, inside: bool) -> bool {
    let name = name.to_string_lossy();
    let known = GUARDED.into_iter().chain(REMOTES).any(|known| name.eq_ignore_ascii_case(known));
    let is_data = DATA.contains(&&*name)
        || is_passing(&name)
        || DATA_ENDS.iter().any(|end| name.ends_with(end))
        || DATA_BEGINS.iter().any(|begin| name.starts_with(begin));
    known || inside && !is_data
}

/// Whether a helper uses this name for a moment, perhaps that of another command.
fn is_passing(name: &str) -> bool {
    PASSING.iter().any(|mark| name.contains(mark))
}

/// Makes a missing directory of hooks, because a mount needs one. If that fails, the hooks stay unguarded.
fn make_hooks(git: &Path) {
    let hooks = git.join(HOOKS);
    if git.join(HEAD).is_file() && git.join("config").is_file() && !hooks.exists() {
        let _ = fs::create_dir(&hooks);
    }
}

impl<'a> Search<'a> {
    fn new(writes: &'a dyn Fn(&Path) -> bool) -> Self {
        Self { writes, found: Found::default(), to_look_at: Vec::new() }
    }

    /// This `.git` and those of repositories beside it, without a scan.
    fn around(&mut self, git: &Path) {
        self.follow(Lead::Git(git.to_owned()));
        let Some(top) = git.parent() else { return };
        let entries = fs::read_dir(top).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for dir in dirs.take(BESIDE) {
            self.follow(Lead::Git(dir.path().join(GIT)));
        }
    }

    /// Visits a path and all repositories that it names.
    fn follow(&mut self, lead: Lead) {
        self.to_look_at.push(lead);
        // A scope with more of them is read-only, so the rest does not matter.
        while let Some(lead) =
            self.to_look_at.pop().filter(|_| self.found.dirs.len() <= REPOSITORIES)
        {
            match lead {
                Lead::Git(git) => self.git(&git),
                Lead::Repository(dir, tree) => self.repository(&dir, tree.as_deref()),
            }
        }
    }

    /// A `.git`: a directory, a file that names one, or a link to either.
    fn git(&mut self, git: &Path) {
        let (Ok(meta), Some(top)) = (git.symlink_metadata(), git.parent()) else {
            self.found.closed.extend(ways::closed(git).filter(|dir| (self.writes)(dir)));
            return;
        };
        let Ok(real) = canonical(git) else { return };
        self.found.places.insert(git.to_owned());
        if real.is_dir() {
            // The target of a link out of the scope cannot be changed by a command.
            if !meta.is_symlink() || (self.writes)(&real) {
                self.lead(real, Some(top));
            }
        } else if real.is_file() {
            let target = pointed(&real);
            self.found.pointers.insert(real, target.clone());
            if let Some(dir) = target.filter(|dir| (self.writes)(dir)) {
                self.lead(dir, Some(top));
            }
        }
    }

    /// Adds a repository to visit, with a working tree of it.
    fn lead(&mut self, dir: PathBuf, tree: Option<&Path>) {
        self.to_look_at.push(Lead::Repository(dir, tree.map(Path::to_owned)));
    }

    /// The directory of a repository, and its main repository if it is a worktree.
    fn repository(&mut self, dir: &Path, top: Option<&Path>) {
        let known = self.found.dirs.contains_key(dir);
        let tops = self.found.dirs.entry(dir.to_owned()).or_default();
        let fresh = top.is_some_and(|top| tops.insert(top.to_owned()));
        if known && !fresh {
            return;
        }
        let common = common(dir).filter(|common| common != dir && (self.writes)(common));
        if let Some(common) = common {
            self.lead(common, top);
        }
    }
}

/// The directory of the repository that a `.git` is or names.
pub fn repository(git: &Path) -> Option<PathBuf> {
    let real = canonical(git).ok()?;
    if real.is_dir() { Some(real) } else { pointed(&real) }
}

/// The directory that a `.git` file names.
pub fn pointed(file: &Path) -> Option<PathBuf> {
    let dir = canonical(&file.parent()?.join(path_in(file, b"gitdir: ")?)).ok()?;
    dir.is_dir().then_some(dir)
}

/// The directory of the main repository that the directory of a worktree names.
pub fn common(dir: &Path) -> Option<PathBuf> {
    canonical(&dir.join(path_in(&dir.join("commondir"), b"")?)).ok()
}

/// The path after a prefix in a small file of git, as git reads it: all bytes without trailing line
/// breaks.
pub fn path_in(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let found = WorkspaceFiles::of(file.parent()?).read(file, Limit::head(POINTER)).ok()?;
    let path = found.bytes.strip_prefix(prefix)?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))? + 1;
    Some(OsStr::from_bytes(&path[..end]).into())
}
