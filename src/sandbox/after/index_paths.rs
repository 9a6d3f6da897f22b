//! Paths in the index of a repository that lead out of its working tree or into a repository: `.git/hooks/pre-commit`,
//! `../.bashrc`. git adds no such path, but it does not check an index that it reads, and `git checkout .` writes the
//! file. So an index with such a path does not outlive the command.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::after::{Before, Known, ViewByPath, remove, restore};
use crate::sandbox::gitlinks::{INDEX, base_of, id_length};
use crate::sandbox::guard::Found;
use crate::sandbox::index_file;
use crate::text::SafeText;
use std::fs;
use std::path::{Path, PathBuf};

const WORKTREES: &str = "worktrees";
/// The mode of an entry that stands for a whole directory, in a sparse index. Its path ends with a slash.
const DIRECTORY: u32 = 0o040_000;
/// Linux opens no longer path, in bytes. git could not write the file.
const LONGEST: usize = 4095;
/// The most characters of a path that are shown.
const SHOWN: usize = 200;

/// The index of a repository before the command.
#[derive(Debug)]
pub struct IndexPaths {
    /// The directory of the repository.
    dir: PathBuf,
    /// Its index, if it is small enough to be recorded.
    before: Option<Known>,
    /// A format that cannot be read is the person's own if the index had it before.
    was_readable: bool,
}

/// Why git must not read an index.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Unreadable,
    /// It has this path, as text.
    Path(String),
}

impl Before {
    /// Records the index of each repository.
    pub fn keep_index_paths(&mut self, view: &ViewByPath, found: &Found) {
        for dir in found.dirs.keys().filter(|dir| view.opens(&dir.join(INDEX))) {
            let before = self.recorded.known_if_small(&dir.join(INDEX));
            let was_readable = fault_of(dir) != Some(Fault::Unreadable);
            self.index_paths.push(IndexPaths { dir: dir.clone(), before, was_readable });
        }
    }

    /// Undoes changes of an index that git must not read; also of worktrees that the command added.
    pub fn mend_index_paths(&self) -> Vec<String> {
        let known = self.index_paths.iter().map(|index| index.mend());
        let fresh = self.new_worktrees();
        let fresh = fresh.map(|dir| IndexPaths::new(dir).mend());
        known.chain(fresh).flatten().collect()
    }

    /// Undoes the changes of the index of a repository, which may be a worktree that the command added.
    pub fn undo_index(&self, dir: &Path, why: &str) -> Option<String> {
        let known = self.index_paths.iter().find(|index| index.dir == dir);
        match known {
            Some(known) => known.undo(why),
            None => IndexPaths::new(dir.to_owned()).undo(why),
        }
    }

    /// The directories of worktrees that the command added to the repositories.
    pub fn new_worktrees(&self) -> impl Iterator<Item = PathBuf> {
        let dirs = self.index_paths.iter().flat_map(|index| {
            let entries = fs::read_dir(index.dir.join(WORKTREES)).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        });
        dirs.filter(|dir| !self.index_paths.iter().any(|index| index.dir == *dir))
    }
}

impl IndexPaths {
    /// An index that did not exist before the command.
    fn new(dir: PathBuf) -> Self {
        Self { dir, before: None, was_readable: true }
    }

    fn mend(&self) -> Option<String> {
        let fault = fault_of(&self.dir)?;
        if fault == Fault::Unreadable && !self.was_readable {
            return None;
        }
        let put_back = self.put_back();
        let why = match fault {
            Fault::Unreadable => "git does not write such an index".to_owned(),
            Fault::Path(name) => format!(
                "it had the path {name}, and `git checkout .` would have written that file into a repository or \
                 outside the working tree"
            ),
        };
        // An index that was recorded can be as bad, or have a bad base.
        if fault_of(&self.dir).is_none() {
            return put_back.map(|said| format!("{said}: {why}"));
        }
        self.move_aside(&why)
    }

    /// Undoes the changes of an index that git may read, but not the person: `why` says the reason.
    pub fn undo(&self, why: &str) -> Option<String> {
        match self.put_back() {
            Some(said) => Some(format!("{said}: {why}")),
            None => self.move_aside(why),
        }
    }

    /// Restores the index if it was recorded.
    fn put_back(&self) -> Option<String> {
        let path = self.dir.join(INDEX);
        self.before.as_ref().and_then(|before| restore(&path, before, |_| false))
    }

    fn move_aside(&self, why: &str) -> Option<String> {
        let moved = remove(&self.dir.join(INDEX))?;
        Some(format!("{moved}: {why}; `git reset` makes a new index and keeps your files"))
    }
}

/// The fault of the index of a repository; `None` if it has none or is missing.
fn fault_of(dir: &Path) -> Option<Fault> {
    let id = id_length(dir);
    let (fault, base) = fault_in(&dir.join(INDEX), id, false);
    fault.or_else(|| fault_in(&base_of(dir, &base?)?, id, true).0)
}

/// The fault of one file and the id of its base.
fn fault_in(path: &Path, id: usize, is_base: bool) -> (Option<Fault>, Option<Vec<u8>>) {
    if path.symlink_metadata().is_err() {
        return (None, None);
    }
    let dir = path.parent().unwrap_or(path);
    let is_link = path.is_symlink();
    let bytes = WorkspaceFiles::of(dir)
        .read(path, Limit::whole(index_file::LIMIT))
        .map(|found| found.bytes);
    let (mut bad, mut unnamed) = (None, false);
    let base = bytes.ok().filter(|_| !is_link).and_then(|bytes| {
        index_file::parse(&bytes, id, |entry| {
            unnamed |= entry.path.is_empty();
            if bad.is_none() && !entry.path.is_empty() && leads_out(entry.path, entry.mode) {
                bad = Some(shown(entry.path));
            }
        })
    });
    match (base, bad) {
        (_, Some(bad)) => (Some(Fault::Path(bad)), None),
        (None, _) => (Some(Fault::Unreadable), None),
        // Only an index with a base has entries without a path.
        (Some(base), _) if unnamed && (base.is_none() || is_base) => {
            (Some(Fault::Unreadable), None)
        }
        (Some(base), None) => (None, base),
    }
}

fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    format!("`{}`", SafeText::brief(text, SHOWN))
}

/// Whether git would write the file of an entry outside the working tree or into a repository.
fn leads_out(path: &[u8], mode: u32) -> bool {
    let path = if mode == DIRECTORY { path.strip_suffix(b"/").unwrap_or(path) } else { path };
    path.len() <= LONGEST && path.split(|byte| *byte == b'/').any(is_no_name)
}

/// Whether a name is empty, `.`, `..`, or means `.git` on some file system: in any case; followed by dots, blanks or a
/// stream (NTFS); its short form there, `git~1`; with characters that HFS+ ignores.
fn is_no_name(name: &[u8]) -> bool {
    if matches!(name, b"" | b"." | b"..") {
        return true;
    }
    // Nearly all names are others, and there can be millions of them.
    if !matches!(name.first(), Some(b'.' | b'g' | b'G' | 0x80..)) {
        return false;
    }
    // Some file systems end a name at the first byte that is no character.
    let text = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let plain = text.chars().filter(|c| !is_ignored(*c)).map(|c| c.to_ascii_lowercase());
    [".git", "git~1"].into_iter().any(|git| {
        let mut rest = plain.clone();
        rest.by_ref().take(git.len()).eq(git.chars())
            && rest.take_while(|c| !matches!(c, ':' | '\\')).all(|c| matches!(c, '.' | ' '))
    })
}

/// The characters that HFS+ ignores in names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_a_repository_on_some_file_system_are_recognised() {
        for path in [
            ".git/hooks/x",
            "a/.git/x",
            ".GiT",
            "git~1/config",
            "GIT~1",
            ".git. . ",
            ".git::$INDEX",
            ".git\\x",
            ".g\u{200c}it/x",
            "\u{feff}.git",
            "../x",
            "a/../x",
            "./x",
            "a//x",
            "/x",
            "a/",
            "x/..",
        ] {
            assert!(leads_out(path.as_bytes(), 0o100_644), "{path}");
        }
        assert!(leads_out(b".git\xff", 0o100_644));
        for path in [
            ".gitignore",
            ".github/x",
            "git",
            "git~10",
            "git~2",
            "...",
            "..a",
            ".gitx",
            "a.git/x",
            "\u{200c}",
            "é/ü",
        ] {
            assert!(!leads_out(path.as_bytes(), 0o100_644), "{path}");
        }
        assert!(!leads_out(b"dir/", DIRECTORY) && leads_out(b"dir//", DIRECTORY));
        assert!(!leads_out(&[b"../".as_slice(), &[b'x'; 5000]].concat(), 0o100_644));
    }
}
