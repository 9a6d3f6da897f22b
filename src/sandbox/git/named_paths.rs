//! The paths that configurations of git name: hooks, and included files.

use crate::files::{Limit, WorkspaceFiles, canonical, led_to, without_parents};
use crate::sandbox::git::config_file::{self, Setting};
use crate::sandbox::git::repository::HOOKS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a configuration that are read, and the most files that it includes.
const CONFIG: u64 = 256 * 1024;
const INCLUDED: usize = 500;
/// The links in a directory of hooks that are followed.
const LINKED: usize = 100;
/// The configuration files in a repository.
const OWN: [&str; 2] = ["config", "config.worktree"];
/// The configuration files for every repository: of the machine, and below the home directory.
const MACHINE: &str = "/etc/gitconfig";
const PERSONAL: [&str; 2] = [".gitconfig", ".config/git/config"];

/// The paths that the configurations of these repositories and of the person name.
pub fn by_all(dirs: &BTreeMap<PathBuf, BTreeSet<PathBuf>>, home: Option<&Path>) -> Vec<PathBuf> {
    let mut named = BTreeSet::new();
    for (dir, tops) in dirs {
        // Without a working tree git starts hooks in the repository itself.
        let bare = BTreeSet::from([dir.clone()]);
        let tops = if tops.is_empty() { &bare } else { tops };
        OWN.iter().for_each(|file| follow(dir.join(file), tops, home, &mut named));
    }
    let tops = dirs.values().flatten().cloned().collect();
    let personal = PERSONAL.iter().filter_map(|file| Some(home?.join(file)));
    for file in personal.chain([MACHINE.into()]) {
        follow(file, &tops, home, &mut named);
    }
    let hooks: Vec<PathBuf> =
        dirs.keys().map(|dir| dir.join(HOOKS)).chain(named.iter().cloned()).collect();
    named.extend(hooks.iter().flat_map(|dir| linked_hooks(dir)));
    named.into_iter().collect()
}

/// The links in a directory of hooks and their targets, which git executes.
fn linked_hooks(dir: &Path) -> Vec<PathBuf> {
    let Ok(dir) = canonical(dir) else { return Vec::new() };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let links = links.take(LINKED).map(|entry| entry.path());
    links.flat_map(|link| led_to(&link).into_iter().chain([link])).collect()
}

/// Adds the paths that a configuration file and its included files name; relative hook paths count
/// in each working tree.
fn follow(
    file: PathBuf,
    tops: &BTreeSet<PathBuf>,
    home: Option<&Path>,
    named: &mut BTreeSet<PathBuf>,
) {
    let mut open = vec![file];
    let mut seen = BTreeSet::new();
    while let Some(file) = open.pop().filter(|_| seen.len() < INCLUDED) {
        if !seen.insert(file.clone()) {
            continue;
        }
        for setting in settings(&file) {
            let hooks = setting.section == "core" && setting.name == "hookspath";
            let include = matches!(&*setting.section, "include" | "includeif");
            let Some(value) = setting.value.filter(|value| !value.is_empty()) else { continue };
            if hooks {
                named.extend(tops.iter().map(|top| place(top, home, &value)));
            } else if include && setting.name == "path" {
                let path = place(file.parent().unwrap_or(&file), home, &value);
                named.insert(path.clone());
                open.push(path);
            }
        }
    }
}

/// The settings of a file, which may be reached through a link, for the paths in them ([`config_file::path`]).
pub fn settings(file: &Path) -> Vec<Setting> {
    let Ok(file) = canonical(file) else { return Vec::new() };
    let dir = file.parent().unwrap_or(&file);
    let found = WorkspaceFiles::of(dir).read(&file, Limit::head(CONFIG));
    let bytes = found.map(|found| found.bytes).unwrap_or_default();
    config_file::parse_bytes(&bytes)
}

/// Resolves a path of a configuration.
pub fn place(base: &Path, home: Option<&Path>, value: &str) -> PathBuf {
    match (value.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => without_parents(&home.join(config_file::path(below))),
        _ => without_parents(&base.join(config_file::path(value))),
    }
}
