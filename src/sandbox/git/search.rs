//! Finds the files that git executes or reads as settings in the repositories that a command may
//! write: hooks, configurations, and pointers to other repositories. A repository that a command of the Pod made is the
//! Pod's own: its files are not guarded, and a look after each command finds the programs in it.

#[cfg(test)]
mod tests;

use crate::files::{canonical, led_to};
use crate::sandbox::access::places::of_the_system;
use crate::sandbox::access::view::{
    CommandView, Depth, GIT, GUARDED, Grant, Hole, Level, Links, Why, repositories_of,
};
use crate::sandbox::access::{directory, project};
use crate::sandbox::git::named_paths;
use crate::sandbox::git::own_repositories::{OwnRepositories, Repositories};
use crate::sandbox::git::repository::{HEAD, HELD, HOOKS, common, obeyed_in, pointed, repository};
use crate::sandbox::git::scan::{Root, Scan};
use crate::scope::Scope;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The most repositories that are guarded individually; a scope with more of them is read-only.
const REPOSITORIES: usize = 2_000;
/// The most directories that could not be listed and are read-only one by one.
const UNSEEN: usize = 500;
/// The directories beside a repository in which a file tool looks for others.
const BESIDE: usize = 10_000;
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
    // Before their state is recorded.
    found.dirs.keys().filter(|dir| writes(dir)).for_each(|dir| make_hooks(dir));
    found.named = named_paths::by_all(&found.dirs, view.home.as_deref());
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
            self.found.closed.extend(directory::closed(git).filter(|dir| (self.writes)(dir)));
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

/// Whether a path, or an ancestor of it, is the target of a hook or a configuration of a
/// repository, or is named by its configuration. The repositories are those in the ancestors of the
/// path and those that a command with this scope would find.
pub fn is_named(path: &Path, scope: &Scope, home: Option<&Path>) -> bool {
    let mut search = Search::new(&|_| true);
    path.ancestors().skip(1).for_each(|dir| search.follow(Lead::Git(dir.join(GIT))));
    repositories_of(scope).iter().for_each(|git| search.around(git));
    if search.found.dirs.len() > REPOSITORIES {
        return true;
    }
    // A named file may be missing and its directory a link: the path counts at which it would be
    // created.
    let holds = |named: &PathBuf| {
        path.starts_with(named) || led_to(named).is_some_and(|real| path.starts_with(real))
    };
    let dirs = &search.found.dirs;
    let own = dirs.keys().flat_map(|dir| GUARDED.map(|name| dir.join(name)));
    own.chain(search.found.named).chain(named_paths::by_all(dirs, home)).any(|named| holds(&named))
}
