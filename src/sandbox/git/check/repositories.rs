//! Looks after a command at the repositories in the directories where it could write: at new entries in those of the
//! person, and at what starts a program in those that the command made or the Pod has.

use crate::files::without_parents;
use crate::sandbox::access::view::{GIT, Grant, Level, Links};
use crate::sandbox::git::check::moved::beside;
use crate::sandbox::git::check::{
    Known, Snapshot, ViewByPath, directory_to_change, exchange, known_at, make,
};
use crate::sandbox::git::config_file;
use crate::sandbox::git::own_repositories::{Fault, Identity, Repositories};
use crate::sandbox::git::repository::{HEAD, HELD, obeyed_in, path_in, repository};
use crate::sandbox::git::search::Found;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the repositories of the Pod are looked at: a command can make any number of them.
const LONGEST: Duration = Duration::from_secs(60);
/// The most directories that a sentence names.
const SHOWN: usize = 5;

impl Snapshot {
    /// Records the repositories of the person, and where the command may write.
    pub fn keep_repositories(&mut self, view: &ViewByPath, found: &Found) {
        self.is_looked_after = !view.asked.repositories.is_empty();
        let entries = |dir: &PathBuf| (dir.clone(), obeyed_in(dir).into_iter().collect());
        self.entries = found.dirs.keys().map(entries).collect();
        // A directory that only a pointer names, and that is no repository yet, was not looked at when it was made.
        let exists = |path: PathBuf| path.symlink_metadata().is_ok();
        let has_data = |dir: &Path| HELD.iter().all(|name| exists(dir.join(name)));
        let whole = |dir: &&PathBuf| dir.ends_with(GIT) || exists(dir.join(HEAD)) || has_data(dir);
        self.persons =
            found.dirs.keys().filter(whole).filter_map(|dir| Identity::of(dir)).collect();
        self.pointers = found.places.iter().chain(found.pointers.keys()).cloned().collect();
        let written = |grant: &&Grant| (grant.level, grant.links) == (Level::Write, Links::Refused);
        self.written = view.asked.grants.iter().filter(written).cloned().collect();
    }

    /// Takes what is needed to look at the same directories afterwards.
    pub fn take_area(&mut self, found: &mut Found) {
        self.area = std::mem::take(&mut found.area);
        self.own = std::mem::take(&mut found.own);
    }

    /// Moves away by what git would start programs. If the command has ended, adds new repositories to those of the Pod.
    pub fn undo_repositories(&self, has_ended: bool) -> Vec<String> {
        // The command may change git's settings.
        if !self.is_looked_after {
            return Vec::new();
        }
        let now = self.area.again();
        let mut said = self.undo_entries();
        let writes = |path: &Path| self.written.iter().any(|grant| self.covers(grant, path));
        let (inside, pointers): (Vec<PathBuf>, Vec<PathBuf>) =
            now.gits().filter(|git| writes(git)).partition(|git| git.is_dir() && !git.is_symlink());
        // A bare repository can be a part of a commit; a `.git` cannot.
        let is_committed =
            |dir: &Path| self.checks_out.as_ref().is_some_and(|tree| dir.starts_with(tree));
        let bare = now.repositories().filter(|dir| writes(dir) && !is_committed(dir));
        let all: BTreeSet<PathBuf> = bare.cloned().chain(inside).collect();
        let is_persons =
            |dir: &Path| Identity::of(dir).is_some_and(|known| self.persons.contains(&known));
        let is_known = |dir: &Path| all.contains(dir) || is_persons(dir);
        let repositories = Repositories { writes: &writes, is_known: &is_known };
        let mut own: Vec<&PathBuf> = all.iter().filter(|dir| !is_persons(dir)).collect();
        // Where a person is more likely to use git comes first.
        own.sort_by_key(|dir| dir.iter().count());
        let begun = Instant::now();
        let in_time = own.iter().position(|dir| {
            let faults = repositories.faults(dir);
            said.extend(faults.into_iter().map(|fault| self.undo_fault(&fault)));
            begun.elapsed() > LONGEST
        });
        let left = in_time.map_or(Vec::new(), |last| own.split_off(last + 1));
        let astray = |git: &&PathBuf| {
            let is_well = |dir: PathBuf| !writes(&dir) || is_known(&dir);
            !self.pointers.contains(*git) && !repository(git).is_none_or(is_well)
        };
        said.extend(pointers.iter().filter(astray).map(|git| {
            let what = "leads git to a directory that is no repository".to_owned();
            self.undo_fault(&Fault { path: git.clone(), what, without: None })
        }));
        // The record of a working tree that lies elsewhere was made by another program meanwhile.
        let leads_elsewhere = |dir: &&PathBuf| {
            let tree = path_in(&dir.join("gitdir"), b"");
            tree.is_some_and(|tree| !writes(&without_parents(&dir.join(tree))))
        };
        if has_ended {
            self.own.add(own.into_iter().filter(|dir| !leads_elsewhere(dir)));
        }
        said.extend(unseen(&now.unseen));
        said.extend(unseen(&left.into_iter().cloned().collect::<Vec<_>>()));
        said
    }

    /// Whether a grant covers a path, and no part of it between them is another's to write.
    fn covers(&self, grant: &Grant, path: &Path) -> bool {
        let mut between = path.ancestors().take_while(|dir| dir.starts_with(&grant.path));
        grant.covers(path) && !between.any(|dir| self.area.skipped.contains(dir))
    }

    /// Moves new entries away that git obeys in a repository of the person.
    fn undo_entries(&self) -> Vec<String> {
        let fresh = self.entries.iter().flat_map(|(dir, before)| {
            obeyed_in(dir).into_iter().filter(|path| !before.contains(path))
        });
        fresh.filter_map(|path| self.remove(&path)).collect()
    }

    /// Takes away what starts a program. The file as the command left it is kept for the person.
    fn undo_fault(&self, fault: &Fault) -> String {
        let Fault { path, what, without } = fault;
        let moved = match without {
            None => {
                directory_to_change(path).and_then(|(dir, name)| self.moved.add(&dir, path, &name))
            }
            Some(bytes) => self.rewrite(path, bytes),
        };
        let path = path.display();
        match moved {
            Ok(place) => {
                let rest = if without.is_some() { ", and the rest of it stays" } else { "" };
                format!(
                    "{path} {what}: git would start it or obey it for a person there, so it was moved to {}{rest}",
                    place.display()
                )
            }
            Err(error) => format!(
                "{path} {what}: git starts it or obeys it for a person there, and it could not be moved away: check it \
                 before you use git there ({error})"
            ),
        }
    }

    /// Leaves only those settings of a file that are well. Returns where the file with the former content is.
    fn rewrite(&self, path: &Path, well: &[u8]) -> std::io::Result<PathBuf> {
        let (dir, name) = directory_to_change(path)?;
        let Some(Known::File { mode, owner, bytes }) = known_at(path) else {
            return self.moved.add(&dir, path, &name);
        };
        // Another file may have been at this path when it was looked at.
        let (now, well) = (config_file::parse_whole(&bytes), config_file::parse_whole(well));
        let well = well.unwrap_or_default();
        let mut kept = now.unwrap_or_default();
        kept.retain(|setting| well.contains(setting));
        let bytes = &config_file::bytes_of(&kept);
        let fresh = beside(&name, "put-back");
        make(&dir, &fresh, &Known::File { bytes: bytes.to_owned(), mode, owner })?;
        exchange(&dir, &fresh, &name)?;
        self.moved.add(&dir, path, &fresh)
    }
}

/// A sentence about directories that were not looked at.
fn unseen(dirs: &[PathBuf]) -> Option<String> {
    let names = dirs.iter().take(SHOWN).map(|dir| dir.display().to_string()).collect::<Vec<_>>();
    let more = match dirs.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!dirs.is_empty()).then(|| {
        format!(
            "these directories could not be looked at after the command: {}{more}; a repository that it made there may \
             start programs when you use git in it",
            names.join(", ")
        )
    })
}
