//! Where git takes its orders from, in the repositories of a scope.

use crate::files::{Limit, WorkspaceFiles, lexical};
use crate::sandbox::git_settings::{Setting, settings};
use crate::sandbox::view::{CommandView, GUARDED, Hole, Level, Why};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Repositories in and beside one that are guarded one by one; a directory with more of them is
/// read-only as a whole.
const REPOSITORIES: usize = 500;
/// Directories that are looked at for a repository; a directory with more is read-only, too.
const LOOKED_AT: usize = 100_000;
/// Bytes of the list of submodules that are read.
const MODULE_LIST: u64 = 1024 * 1024;
/// How deep the names of submodules nest.
const MODULE_DEPTH: usize = 6;
/// Bytes of a configuration that are read, and files that one leads to.
const CONFIG: u64 = 256 * 1024;
const INCLUDED: usize = 50;

/// Of a repository, the files that name other places, and the person's.
const OWN: [&str; 2] = ["config", "config.worktree"];
const PERSONS: [&str; 2] = [".gitconfig", ".config/git/config"];
/// Directories without which git takes a directory for no repository.
pub const KEPT: [&str; 2] = ["objects", "refs"];

/// What was found at and around one `.git`.
#[derive(Debug, Default)]
pub struct Found {
    /// Directories with hooks, a configuration, or a pointer to others of these.
    pub dirs: Vec<PathBuf>,
    /// `.git` files, which name such a directory.
    pub pointers: Vec<PathBuf>,
    /// Directories with more repositories than are guarded one by one.
    pub closed: Vec<PathBuf>,
}

/// The repositories of a view, and those in whose working trees its places lie: a part of a working tree
/// may hold submodules that only the whole one knows.
pub fn repositories(view: &CommandView) -> Vec<PathBuf> {
    let mut all = view.repositories.clone();
    let tops = view.repositories.iter().filter_map(|git| git.parent());
    let above = tops.flat_map(|top| top.ancestors().skip(1)).map(|dir| dir.join(".git"));
    all.extend(above.filter(|git| git.exists()));
    all.sort();
    all.dedup();
    all
}

/// This `.git`, those of its submodules and worktrees, and those of repositories beside it.
pub fn find(git: &Path) -> Found {
    let mut found = Found::default();
    found.add(git.to_owned());
    let modules = git.join("modules");
    if !submodules(&modules, MODULE_DEPTH, &mut found.dirs) {
        found.closed.push(modules);
    }
    found.dirs.extend(entries(&git.join("worktrees")));
    let Some(top) = git.parent() else { return found };
    let mut beside = entries(top).into_iter().chain(checkouts(top));
    let modules: Vec<PathBuf> = found.dirs.iter().filter_map(|dir| worktree(dir)).collect();
    for tree in modules {
        found.add(tree.join(".git"));
    }
    for dir in beside.by_ref().take(LOOKED_AT) {
        found.add(dir.join(".git"));
        if found.dirs.len() + found.pointers.len() > REPOSITORIES {
            break;
        }
    }
    if beside.next().is_some() {
        found.closed.push(top.to_owned());
    }
    found
}

/// What of it is not to be changed, and what is not to be moved: without it git would take another
/// directory for the repository.
pub fn holes(git: &Path, home: Option<&Path>) -> Vec<Hole> {
    let Found { dirs, pointers, closed } = find(git);
    let top = git.parent().unwrap_or(git);
    dirs.iter().filter(|dir| dir.starts_with(top)).for_each(|dir| make_hooks(dir));
    let parts = dirs.iter().flat_map(|dir| GUARDED.map(|name| dir.join(name)));
    let named = dirs.iter().flat_map(|dir| named_by(dir, home));
    let there = parts.chain(named).filter(|path| path.exists()).chain(pointers).chain(closed);
    let kept = dirs.iter().flat_map(|dir| KEPT.map(|name| dir.join(name)));
    let kept = kept.filter(|path| path.is_dir());
    let hole = |level| move |path| Hole { path, level, why: Why::Git };
    there.map(hole(Level::Read)).chain(kept.map(hole(Level::Write))).collect()
}

impl Found {
    /// A repository, or what leads to one.
    fn add(&mut self, git: PathBuf) {
        let Ok(meta) = git.symlink_metadata() else { return };
        if meta.is_dir() {
            self.push(git);
        } else if meta.is_symlink() {
            let target = git.canonicalize().ok();
            if let Some(target) = target.filter(|target| target.join("config").is_file()) {
                self.push(target);
            }
        } else if meta.is_file() && !self.pointers.contains(&git) {
            let text = text_of(&git);
            let named = text.trim().strip_prefix("gitdir:").map(|path| path.trim().to_owned());
            let dir = git.parent().unwrap_or(&git).join(named.unwrap_or_default());
            let dir = lexical(&dir);
            self.pointers.push(git);
            if dir.join("config").is_file() {
                self.push(dir);
            }
        }
    }

    fn push(&mut self, dir: PathBuf) {
        if !self.dirs.contains(&dir) {
            self.dirs.push(dir);
        }
    }
}

/// A directory that is not there cannot be guarded; where it cannot be made it stays open.
fn make_hooks(git: &Path) {
    let hooks = git.join("hooks");
    if git.join("HEAD").is_file() && git.join("config").is_file() && !hooks.exists() {
        let _ = fs::create_dir(&hooks);
    }
}

/// Where the submodules of a working tree are, by its own list.
fn checkouts(top: &Path) -> Vec<PathBuf> {
    let list = WorkspaceFiles::of(top).read(&top.join(".gitmodules"), Limit::head(MODULE_LIST));
    let list = list.map(|found| found.bytes).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    let named = list.lines().filter_map(|line| line.trim().strip_prefix("path")?.split_once('='));
    let paths = named.map(|(_, path)| PathBuf::from(path.trim()));
    let plain = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    paths.filter(plain).map(|path| top.join(path)).collect()
}

/// Whether all of them were found.
fn submodules(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> bool {
    for entry in entries(dir) {
        if found.len() > REPOSITORIES || depth == 0 {
            return false;
        }
        let head = entry.join("HEAD").is_file();
        let module = head || entry.join("config").is_file();
        if module && !submodules(&entry.join("modules"), depth - 1, found)
            || !head && !submodules(&entry, depth - 1, found)
        {
            return false;
        }
        found.extend(module.then_some(entry));
    }
    true
}

/// Other places from which a repository takes hooks and settings: as its own configuration says, or that
/// of the person.
pub fn named_by(git: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let own = OWN.map(|name| git.join(name));
    let persons = home.into_iter().flat_map(|home| PERSONS.map(|name| home.join(name)));
    let (mut named, mut open): (Vec<PathBuf>, Vec<PathBuf>) =
        (Vec::new(), own.into_iter().chain(persons).collect());
    let tree = worktree(git).unwrap_or_else(|| git.parent().unwrap_or(git).to_owned());
    while let Some(file) = open.pop().filter(|_| named.len() < INCLUDED) {
        let Some(dir) = file.parent() else { continue };
        for (hooks, path) in paths_in(&text_of(&file)) {
            let base = if hooks { &tree } else { dir };
            let path = match (path.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                _ => lexical(&base.join(path)),
            };
            if !hooks && !named.contains(&path) {
                open.push(path.clone());
            }
            named.push(path);
        }
    }
    named
}

/// The working tree of a repository that lies elsewhere, as its configuration says.
fn worktree(git: &Path) -> Option<PathBuf> {
    let found = settings(&text_of(&git.join("config")));
    let said = found.iter().rfind(|one| one.section == "core" && one.name == "worktree")?;
    Some(lexical(&git.join(&said.value)))
}

fn text_of(file: &Path) -> String {
    let dir = file.parent().unwrap_or(file);
    let found = WorkspaceFiles::of(dir).read(file, Limit::head(CONFIG));
    String::from_utf8_lossy(&found.map(|found| found.bytes).unwrap_or_default()).into_owned()
}

/// The paths in a configuration: of hooks (`true`), and of settings that are read with it.
fn paths_in(text: &str) -> Vec<(bool, String)> {
    let path = |one: Setting| match (&*one.section, &*one.name) {
        ("core", "hookspath") => Some((true, one.value)),
        ("include" | "includeif", "path") => Some((false, one.value)),
        _ => None,
    };
    settings(text).into_iter().filter_map(path).filter(|(_, path)| !path.is_empty()).collect()
}

/// The directories directly in a directory.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_number_of_repositories_leaves_one_unguarded() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let make = |name: String| {
            fs::create_dir_all(top.join(&name).join(".git")).unwrap();
        };
        for plain in 0..600 {
            fs::create_dir(top.join(format!("plain-{plain}"))).unwrap();
        }
        (0..300).for_each(|index| make(format!("repo-{index}")));
        let found = find(&top.join(".git"));
        assert_eq!((found.dirs.len(), found.closed.len()), (300, 0));
        (300..700).for_each(|index| make(format!("repo-{index}")));
        assert_eq!(find(&top.join(".git")).closed, std::slice::from_ref(&top));
        let modules = top.join(".git/modules");
        fs::create_dir_all(modules.join("a/b/c/d/e/f/g/h")).unwrap();
        assert!(find(&top.join(".git")).closed.contains(&modules), "deeper than is looked");
    }

    #[test]
    fn the_places_that_a_configuration_names_are_found() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        fs::create_dir_all(top.join(".git")).unwrap();
        let config = "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../team.conf\n\
                      [includeIf \"gitdir:/x\"] path = \"/else.conf\"\n[user]\n\tpath = no\n";
        fs::write(top.join(".git/config"), config).unwrap();
        fs::write(top.join("team.conf"), "[include]\npath = more.conf\n").unwrap();
        let named = named_by(&top.join(".git"), None);
        let expected = [top.join(".husky/_"), top.join("team.conf"), "/else.conf".into()];
        assert_eq!(named[..3], expected);
        assert_eq!(named[3..], [top.join("more.conf")]);
    }

    #[test]
    fn a_list_of_submodules_that_is_no_plain_file_of_the_workspace_names_none_and_delays_nothing() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (ws, list) = (top.join("ws"), top.join("ws/.gitmodules"));
        fs::create_dir(&ws).unwrap();
        let text = "[submodule \"m\"]\n\tpath = lib/m\n";
        fs::write(&list, text).unwrap();
        assert_eq!(checkouts(&ws), [ws.join("lib/m")]);
        fs::remove_file(&list).unwrap();
        fs::write(top.join("elsewhere"), text).unwrap();
        for target in ["/dev/zero", "../elsewhere"] {
            symlink(target, &list).unwrap();
            assert!(checkouts(&ws).is_empty(), "{target}");
            fs::remove_file(&list).unwrap();
        }
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &list, fifo, mode, 0).unwrap();
        assert!(checkouts(&ws).is_empty());
    }
}
