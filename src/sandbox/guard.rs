//! Finds the files that git executes or reads as settings in the repositories that a command may
//! write: hooks, configurations, and pointers to other repositories.

mod named;
#[cfg(test)]
mod tests;

use crate::files::{FileError, Limit, WorkspaceFiles, canonical, without_parents};
use crate::sandbox::view::{CommandView, GIT, GUARDED, Hole, Level, Why};
use crate::sandbox::{gitfile, gitlinks, project, ways};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

pub use named::is_named;

/// The most repositories around one `.git` that are guarded individually; a directory with more of
/// them is read-only as a whole.
const REPOSITORIES: usize = 500;
/// The most directories that are searched for repositories; a directory with more is read-only,
/// too.
const LOOKED_AT: usize = 100_000;
/// The list of submodules in a working tree. A working tree with a longer one, in bytes, is read-only.
const MODULES: &str = ".gitmodules";
const MODULE_LIST: u64 = 1024 * 1024;
/// Bytes that are read of a file that names one directory.
const POINTER: u64 = 8 * 1024;
/// The deepest nesting of submodule names that is searched.
const MODULE_DEPTH: usize = 6;
/// The file of a repository that says which branch is checked out.
pub const HEAD: &str = "HEAD";
/// The directory of hooks in a repository. It is made before a command, so a mount guards it.
pub const HOOKS: &str = "hooks";
/// Directories of a repository. If one of them or `HEAD` is missing, git does not recognise the
/// repository and searches the directories above.
pub const HELD: [&str; 2] = ["objects", "refs"];

/// The repositories of a view and their files.
#[derive(Debug, Default)]
pub struct Found {
    /// Directories of repositories, submodules and worktrees, each with its known working trees.
    pub dirs: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// `.git` files, which contain the path of such a directory.
    pub pointers: BTreeSet<PathBuf>,
    /// Every visited `.git` by its unresolved path, because it can be a link.
    pub places: BTreeSet<PathBuf>,
    /// Directories that only group the repositories of submodules.
    pub folders: Vec<PathBuf>,
    /// Directories with too many repositories to guard them individually.
    pub closed: Vec<PathBuf>,
    /// Hooks and settings that a configuration names, which may not exist; and lists of submodules without which a
    /// repository would not be found.
    pub named: Vec<PathBuf>,
    /// The `.git` of each gitlink, existing or not: git enters it by itself.
    pub linked: BTreeSet<PathBuf>,
    /// Canonical working trees besides the scope's own directories: each can be a project of its
    /// own.
    pub projects: BTreeSet<PathBuf>,
}

impl Found {
    /// Each repository with each of its working trees.
    pub fn trees(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        let all = self.dirs.iter();
        all.flat_map(|(dir, tops)| tops.iter().map(move |top| (dir.clone(), top.clone())))
    }
}

/// A search for repositories. It follows files that a command may have written, so it uses a list
/// of paths to visit instead of recursion.
struct Search<'a> {
    /// Whether a command may write at a path. The search follows a pointer only to such paths.
    writes: &'a dyn Fn(&Path) -> bool,
    found: Found,
    to_look_at: Vec<Lead>,
    /// The number of repositories at which the search around one `.git` stops.
    most: usize,
    /// How many directories in those of submodules are still looked at.
    modules_left: usize,
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
    let mut search = Search::new(&writes);
    for git in &view.repositories {
        search.around(git);
    }
    search.linked();
    if search.is_cut_short() {
        // There are too many to guard one by one, and they may be anywhere in the scope.
        search
            .found
            .closed
            .extend(view.repositories.iter().filter_map(|git| Some(git.parent()?.to_owned())));
    }
    let mut found = search.found;
    found.named.extend(named::by_all(&found.dirs, view.home.as_deref()));
    found.projects = projects(view, &found);
    found
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
    let written = dirs.keys().filter(|dir| grants.level(dir) == Level::Write);
    written.for_each(|dir| make_hooks(dir));
    let parts = dirs.keys().flat_map(|dir| GUARDED.map(|name| dir.join(name)));
    let named = parts.chain(named.iter().cloned()).filter(|path| path.exists());
    let shut = named.chain(pointers.iter().chain(closed).cloned());
    let held = dirs.keys().flat_map(|dir| HELD.map(|name| dir.join(name)));
    let held = held.filter(|path| path.is_dir());
    let hole = |path, level| Hole { path, level, why: Why::Git };
    let project = |path| Hole { path, level: Level::Read, why: Why::Project };
    let project = projects.iter().flat_map(|dir| project::below(dir)).map(project);
    shut.map(|path| hole(path, Level::Read))
        .chain(held.map(|path| hole(path, Level::Write)))
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
        let (found, to_look_at) = (Found::default(), Vec::new());
        Self { writes, found, to_look_at, most: REPOSITORIES, modules_left: LOOKED_AT }
    }

    /// This `.git`, those of its submodules, and those of repositories beside it.
    fn around(&mut self, git: &Path) {
        self.most = self.found() + REPOSITORIES;
        self.look_at(git);
        let Some(top) = git.parent() else { return };
        // If the repository contains the scope, only its submodules can be in the scope.
        let inside = (self.writes)(top).then(|| self.entries(top));
        let inside = inside.into_iter().flatten().map(|dir| (dir, false));
        let mut beside = inside.chain(self.listed(top).into_iter().map(|dir| (dir, true)));
        for (dir, is_listed) in beside.by_ref().take(LOOKED_AT) {
            let git = dir.join(GIT);
            if is_listed && !self.found.places.contains(&git) && !ways::is_missing(&git) {
                // Without the list the next search would not find this repository.
                self.found.named.push(top.join(MODULES));
            }
            self.look_at(&git);
            if self.is_full() {
                break;
            }
        }
        if beside.next().is_some() {
            self.found.closed.push(top.to_owned());
        }
    }

    /// The repositories at the gitlinks of those found, and at their own.
    fn linked(&mut self) {
        self.most = self.found() + REPOSITORIES;
        let mut read = HashSet::new();
        while !self.is_full() {
            let trees = self.found.trees().filter(|tree| !read.contains(tree)).collect::<Vec<_>>();
            if trees.is_empty() {
                break;
            }
            for git in trees.iter().flat_map(|(dir, top)| gitlinks::of(dir, top)) {
                if self.found.linked.insert(git.clone()) && !ways::is_missing(&git) {
                    self.look_at(&git);
                }
            }
            read.extend(trees);
        }
    }

    /// The directories of the submodules that a working tree lists. If the list cannot be read, the working tree is
    /// closed as a whole.
    fn listed(&mut self, top: &Path) -> Vec<PathBuf> {
        checkouts(top).unwrap_or_else(|_| {
            self.found.closed.extend((self.writes)(top).then(|| top.to_owned()));
            Vec::new()
        })
    }

    /// Visits a `.git` and all repositories that it names.
    fn look_at(&mut self, git: &Path) {
        self.to_look_at.push(Lead::Git(git.to_owned()));
        while self.found() <= self.most {
            match self.to_look_at.pop() {
                Some(Lead::Git(git)) => self.git(&git),
                Some(Lead::Repository(dir, tree)) => self.repository(&dir, tree.as_deref()),
                None => return,
            }
        }
    }

    fn found(&self) -> usize {
        self.found.dirs.len() + self.found.pointers.len()
    }

    /// Whether the found repositories and the paths to visit are too many.
    fn is_full(&self) -> bool {
        self.found() + self.to_look_at.len() > self.most
    }

    /// Whether some paths were not visited, because too many repositories were found before.
    fn is_cut_short(&self) -> bool {
        !self.to_look_at.is_empty()
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
            let target = path_in(&real, b"gitdir: ");
            let target = target.and_then(|dir| canonical(&real.parent()?.join(dir)).ok());
            self.found.pointers.insert(real);
            if let Some(dir) = target.filter(|dir| dir.is_dir() && (self.writes)(dir)) {
                self.lead(dir, Some(top));
            }
        }
    }

    /// Adds a repository to visit, with a working tree of it.
    fn lead(&mut self, dir: PathBuf, tree: Option<&Path>) {
        self.to_look_at.push(Lead::Repository(dir, tree.map(Path::to_owned)));
    }

    /// The directory of a repository, with those of its submodules and worktrees.
    fn repository(&mut self, dir: &Path, top: Option<&Path>) {
        let known = self.found.dirs.contains_key(dir);
        let tops = self.found.dirs.entry(dir.to_owned()).or_default();
        let fresh = top.is_some_and(|top| tops.insert(top.to_owned()));
        if known && !fresh {
            return;
        }
        // A worktree's directory contains the path of its main repository.
        let common =
            path_in(&dir.join("commondir"), b"").and_then(|path| canonical(&dir.join(path)).ok());
        if let Some(common) = common.filter(|common| common != dir && (self.writes)(common)) {
            self.lead(common, top);
        }
        if known {
            return;
        }
        let modules = dir.join("modules");
        if self.modules(&modules, MODULE_DEPTH).is_none() {
            self.found.closed.push(modules);
        }
        let trees = dir.join("worktrees");
        for tree in self.entries(&trees) {
            if self.is_full() {
                self.found.closed.push(trees);
                break;
            }
            if let Some(git) = path_in(&tree.join("gitdir"), b"") {
                self.to_look_at.push(Lead::Git(without_parents(&tree.join(git))));
            }
            self.lead(tree, None);
        }
    }

    /// The subdirectories of a directory. A directory that cannot be listed is guarded as a whole.
    fn entries(&mut self, dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = fs::read_dir(dir);
        if entries.is_err() && (self.writes)(dir) && ways::is_unreadable(dir) {
            self.found.closed.push(dir.to_owned());
        }
        let entries = entries.into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.map(|entry| entry.path())
    }

    /// Searches the repositories of submodules below a directory. Returns whether there are any, or `None`
    /// if there are too many to look at.
    fn modules(&mut self, dir: &Path, depth: usize) -> Option<bool> {
        let mut any = false;
        for entry in self.entries(dir) {
            if self.is_full() || depth == 0 || self.modules_left == 0 {
                return None;
            }
            self.modules_left -= 1;
            let has = |name: &str| entry.join(name).symlink_metadata().is_ok();
            if has(HEAD) || has("config") {
                any = true;
                self.module(&entry);
            } else if self.modules(&entry, depth - 1)? {
                any = true;
                self.found.folders.push(entry);
            }
        }
        Some(any)
    }

    /// The repository of a submodule; its configuration says where its working tree is.
    fn module(&mut self, dir: &Path) {
        self.lead(dir.to_owned(), None);
        let settings = named::settings(&dir.join("config")).into_iter();
        let trees = settings.filter(|s| s.section == "core" && s.name == "worktree");
        for tree in trees.filter_map(|setting| setting.value) {
            let tree = without_parents(&dir.join(gitfile::path(&tree)));
            self.to_look_at.push(Lead::Git(tree.join(GIT)));
            self.found.dirs.entry(dir.to_owned()).or_default().insert(tree);
        }
    }
}

/// The path after a prefix in a small file of git, as git reads it: all bytes without trailing line
/// breaks.
pub fn path_in(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let found = WorkspaceFiles::of(file.parent()?).read(file, Limit::head(POINTER)).ok()?;
    let path = found.bytes.strip_prefix(prefix)?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))? + 1;
    Some(OsStr::from_bytes(&path[..end]).into())
}

/// The directories of the submodules that `.gitmodules` of a working tree lists. Fails if there is such a file and it
/// cannot be read as a whole.
fn checkouts(top: &Path) -> Result<Vec<PathBuf>, FileError> {
    let path = top.join(MODULES);
    let list = match WorkspaceFiles::of(top).read(&path, Limit::whole(MODULE_LIST)) {
        Ok(found) => found.bytes,
        Err(FileError::Missing(_)) => Vec::new(),
        // A path that may be written can be a file.
        Err(_) if ways::is_missing(&path) => Vec::new(),
        Err(error) => return Err(error),
    };
    let settings = gitfile::parse_bytes(&list).into_iter();
    let named = settings.filter(|s| s.section == "submodule" && s.name == "path");
    let paths = named.filter_map(|setting| setting.value.as_deref().map(gitfile::path));
    let plain = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    Ok(paths.filter(plain).map(|path| top.join(path)).collect())
}
