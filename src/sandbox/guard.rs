//! Where git takes its orders from, in the repositories of a scope.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::view::{GUARDED, Hole, Level, Why};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Repositories inside a repository that are looked for.
const MODULES: usize = 200;
/// Bytes of the list of submodules that are read.
const MODULE_LIST: u64 = 1024 * 1024;
/// How deep the names of submodules nest.
const MODULE_DEPTH: usize = 6;
/// Directories directly in the scope that are looked at for a repository of their own.
const NEIGHBOURS: usize = 500;

/// What was found at and around one `.git`.
#[derive(Debug, Default)]
pub struct Found {
    /// Directories with hooks, a configuration, or a pointer to others of these.
    pub dirs: Vec<PathBuf>,
    /// `.git` files, which name such a directory.
    pub pointers: Vec<PathBuf>,
}

/// This `.git`, those of its submodules and worktrees, and those of repositories beside it.
pub fn find(git: &Path) -> Found {
    let mut found = Found::default();
    found.add(git.to_owned());
    submodules(&git.join("modules"), MODULE_DEPTH, &mut found.dirs);
    found.dirs.extend(entries(&git.join("worktrees")));
    let Some(top) = git.parent() else { return found };
    let beside = entries(top).into_iter().take(NEIGHBOURS).chain(checkouts(top));
    beside.for_each(|dir| found.add(dir.join(".git")));
    found
}

/// What of it is not to be changed.
pub fn holes(git: &Path) -> Vec<Hole> {
    let Found { dirs, pointers } = find(git);
    dirs.iter().for_each(|dir| make_hooks(dir));
    let parts = dirs.iter().flat_map(|dir| GUARDED.map(|name| dir.join(name)));
    let there = parts.filter(|path| path.exists()).chain(pointers);
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
    paths.filter(plain).take(MODULES).map(|path| top.join(path)).collect()
}

fn submodules(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in entries(dir) {
        if found.len() > MODULES || depth == 0 {
            return;
        }
        if entry.join("HEAD").is_file() {
            submodules(&entry.join("modules"), depth - 1, found);
            found.push(entry);
        } else {
            submodules(&entry, depth - 1, found);
        }
    }
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
