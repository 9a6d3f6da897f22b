//! Where git takes its orders from, in the repositories of a scope.

use crate::files::{Limit, WorkspaceFiles, lexical};
use crate::sandbox::view::{GUARDED, Hole, Level, Why};
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

/// What of it is not to be changed.
pub fn holes(git: &Path) -> Vec<Hole> {
    let Found { dirs, pointers, closed } = find(git);
    dirs.iter().for_each(|dir| make_hooks(dir));
    let parts = dirs.iter().flat_map(|dir| GUARDED.map(|name| dir.join(name)));
    let named = dirs.iter().flat_map(|dir| named_by(dir));
    let there = parts.chain(named).filter(|path| path.exists()).chain(pointers).chain(closed);
    there.map(|path| Hole { path, level: Level::Read, why: Why::Git }).collect()
}

impl Found {
    /// A link can be put there by a command, and is none of them.
    fn add(&mut self, git: PathBuf) {
        match git.symlink_metadata() {
            Ok(meta) if meta.is_dir() => self.dirs.push(git),
            Ok(meta) if meta.is_file() && !self.pointers.contains(&git) => self.pointers.push(git),
            Ok(_) | Err(_) => {}
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
        let module = entry.join("HEAD").is_file();
        let inner = if module { entry.join("modules") } else { entry.clone() };
        if !submodules(&inner, depth - 1, found) {
            return false;
        }
        found.extend(module.then_some(entry));
    }
    true
}

/// Other places from which the configuration of a repository takes hooks and settings.
fn named_by(git: &Path) -> Vec<PathBuf> {
    let (mut named, mut open) = (Vec::new(), vec![git.join("config")]);
    while let Some(file) = open.pop().filter(|_| named.len() < INCLUDED) {
        let Some(dir) = file.parent() else { continue };
        let text = WorkspaceFiles::of(dir).read(&file, Limit::head(CONFIG));
        let text = text.map(|found| found.bytes).unwrap_or_default();
        for (hooks, path) in paths_in(&String::from_utf8_lossy(&text)) {
            let base = if hooks { git.parent().unwrap_or(git) } else { dir };
            let path = lexical(&base.join(path));
            if !hooks && !named.contains(&path) {
                open.push(path.clone());
            }
            named.push(path);
        }
    }
    named
}

/// The paths in a configuration: of hooks (`true`), and of settings that are read with it.
fn paths_in(text: &str) -> Vec<(bool, String)> {
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.to_ascii_lowercase();
        }
        let line = line.rsplit_once(']').filter(|_| line.starts_with('[')).map_or(line, |l| l.1);
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'));
        let hooks = section.starts_with("[core") && name == "hookspath";
        if hooks || section.starts_with("[include") && name == "path" {
            found.push((hooks, value.to_owned()));
        }
    }
    found
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
        let named = named_by(&top.join(".git"));
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
