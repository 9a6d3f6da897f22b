//! Repositories that a command makes. Those of the person are guarded by mounts; a new one is the Pod's own, and may
//! start no program where git enters it by itself: at a gitlink of a repository of the person, and in a directory of the
//! scope.

use crate::sandbox::after::{Before, ViewByPath, remove};
use crate::sandbox::guard::{Found, HEAD, path_in};
use crate::sandbox::new_repository::{Programs, configured};
use crate::sandbox::view::GIT;
use crate::sandbox::{gitlinks, ways};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The most repositories beside each other that a result names.
const SHOWN: usize = 10;

/// The repositories before the command.
#[derive(Debug, Default)]
pub struct Repositories {
    /// Their directories, each with a working tree.
    trees: Vec<(PathBuf, PathBuf)>,
    /// The directories of those that git entered by itself.
    entered: BTreeSet<PathBuf>,
    /// Every `.git` that existed.
    existing: BTreeSet<PathBuf>,
    /// Every `.git` at a gitlink.
    linked: BTreeSet<PathBuf>,
    /// Every missing repository that git would enter by itself, with the path that makes it one.
    missing: BTreeMap<PathBuf, PathBuf>,
    /// The directories of the scope, whose direct subdirectories can be repositories.
    tops: BTreeSet<PathBuf>,
}

impl Before {
    /// Records which repositories exist, and where git would enter a new one.
    pub fn keep_repositories(&mut self, view: &ViewByPath, found: &Found) {
        let own = view.asked.repositories.iter();
        let tops = own.filter_map(|git| Some(git.parent()?.to_owned()));
        let tops: BTreeSet<PathBuf> = tops.filter(|top| view.opens(top)).collect();
        let around = view.asked.repositories.iter().chain(&found.linked);
        let entered = around.filter_map(|git| configured(git)).collect();
        let own = tops.iter().map(|top| top.join(GIT)).chain(found.linked.iter().cloned());
        let absent = |git: &PathBuf| ways::is_missing(git) && view.opens(git);
        let mut missing: BTreeMap<PathBuf, PathBuf> =
            own.filter(absent).map(|git| (git.clone(), git)).collect();
        // Without a `.git` the directory itself may be one.
        let bare = tops.iter().filter(|top| missing.contains_key(&top.join(GIT)));
        let bare = bare.map(|top| (top.clone(), top.join(HEAD)));
        missing.extend(bare.filter(|(_, head)| absent(head)).collect::<Vec<_>>());
        self.repositories = Repositories {
            trees: found.trees().collect(),
            entered,
            existing: found.places.clone(),
            linked: found.linked.clone(),
            missing,
            tops,
        };
    }

    /// Moves new repositories aside that would start a program where git enters them, and undoes gitlinks that lead git
    /// into one. Names the others.
    pub fn mend_repositories(&self) -> Vec<String> {
        let repositories = &self.repositories;
        let mut programs = Programs::new(&repositories.entered);
        let mut said = Vec::new();
        for (git, place) in
            repositories.missing.iter().filter(|(_, place)| !ways::is_missing(place))
        {
            let Some(what) = programs.of(git) else { continue };
            said.extend(remove(place).map(|moved| format!("{moved}: {what}")));
        }
        for (dir, top) in repositories.trees.iter().cloned().chain(self.new_trees()) {
            let known = |git: &PathBuf| {
                repositories.linked.contains(git) && repositories.existing.contains(git)
            };
            let fresh = gitlinks::of(&dir, &top).into_iter().filter(|git| !known(git));
            let what = fresh.into_iter().find_map(|git| programs.of(&git));
            said.extend(what.and_then(|what| {
                let why = format!("git would enter a repository that it names, and {what}");
                self.undo_index(&dir, &why)
            }));
        }
        let beside = repositories.beside(&mut programs);
        let fresh: Vec<String> = beside
            .into_iter()
            .filter(|(_, what)| !said.iter().any(|s| s.ends_with(what)))
            .map(named)
            .take(SHOWN)
            .collect();
        said.extend(fresh);
        said
    }

    /// The worktrees that the command added to the repositories.
    fn new_trees(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        self.new_worktrees().filter_map(|dir| {
            let git = path_in(&dir.join("gitdir"), b"")?;
            let top = dir.join(git).parent()?.to_owned();
            Some((dir, top))
        })
    }
}

impl Repositories {
    /// New repositories directly in the directories of the scope, with what git starts there. Git enters them only for
    /// someone who works in them.
    fn beside(&self, programs: &mut Programs) -> Vec<(PathBuf, String)> {
        let dirs = self.tops.iter().flat_map(|top| subdirectories(top));
        let fresh = dirs.filter(|dir| !self.existing.contains(&dir.join(GIT)));
        fresh.filter_map(|dir| programs.of(&dir.join(GIT)).map(|what| (dir, what))).collect()
    }
}

fn named((dir, what): (PathBuf, String)) -> String {
    let dir = dir.display();
    format!("the command made a git repository in {dir}, and git obeys it there: {what}")
}

fn subdirectories(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path())
}
