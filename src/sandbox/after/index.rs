//! Guarded files in the index of a repository. A command may change the index, and by a commit the
//! branch; git writes such a file into the working tree when the person checks out, stashes or
//! resets. So the result names it.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::after::{Before, ViewByPath};
use crate::sandbox::guard::Found;
use crate::sandbox::index_file::{self, Entry, IDS};
use crate::sandbox::project::PROJECT_FILES;
use crate::sandbox::view::RULES;
use crate::text::SafeText;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The largest index that is read, in bytes, and the most indexes of one command.
const LIMIT: u64 = 16 * 1024 * 1024;
const MOST: usize = 64;
/// The most guarded files that are compared of one index.
const FILES: usize = 50_000;
/// The most names that are shown of one index, and the most characters of each.
const SHOWN: usize = 10;
const SHOWN_CHARS: usize = 200;
/// Linux opens no longer path, in bytes. An index of version 4 compresses its paths, so that a small one can hold
/// thousands of long ones.
const LONGEST_PATH: usize = 4095;
/// The name of the file in a repository.
const INDEX: &str = "index";
/// The bytes with which the names of guarded files begin.
const FIRST: [u8; 2] = [b'.', b'o'];

/// The beginning of a hash of a file's path, its mode and the id of its content.
type FileHash = [u8; 16];

/// The guarded files in one index, as they were before the command.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    before: HashSet<FileHash>,
}

impl Before {
    /// Records the guarded files in the index of each repository.
    pub fn keep_indexes(&mut self, view: &ViewByPath, found: &Found) {
        let paths = found.dirs.keys().map(|dir| dir.join(INDEX)).filter(|path| view.opens(path));
        self.indexes.extend(paths.take(MOST).map(Index::of));
    }
}

impl Index {
    fn of(path: PathBuf) -> Self {
        let mut before = HashSet::new();
        for_each_guarded(&path, |_, hash| {
            before.insert(hash);
        });
        Self { path, before }
    }

    /// A sentence that names the files that were not in the index before.
    pub fn said(&self) -> Option<String> {
        let (mut names, mut changed) = (Vec::new(), 0_usize);
        let compared = for_each_guarded(&self.path, |path, hash| {
            if !self.before.contains(&hash) {
                changed += 1;
                names.extend((names.len() < SHOWN).then(|| path.to_owned()));
            }
        });
        let index = self.path.display();
        let cut = (!compared).then(|| {
            format!(
                "{index} holds more than {FILES} guarded files, and only the first {FILES} are compared: look at it \
                 with `git ls-files --stage`"
            )
        });
        let Some(first) = names.first() else { return cut };
        let look = match is_plain(first) {
            true => format!("git show :{first}"),
            false => "git ls-files --stage".to_owned(),
        };
        let shown = names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
        let more = match changed - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let cut = cut.map(|cut| format!("; {cut}")).unwrap_or_default();
        Some(format!(
            "{index} has another {shown}{more} than before the command; git writes it at a checkout, stash or \
             reset: look at it with `{look}`{cut}"
        ))
    }
}

/// Whether a shell takes a name as it is, so that a command with it can be pasted.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    name.len() <= SHOWN_CHARS && name.bytes().all(plain)
}

fn shown(name: &str) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    format!("`{}`", SafeText::brief(name, SHOWN_CHARS))
}

/// Calls `on_file` with the path and the hash of each guarded file in an index, up to [`FILES`]. Returns whether these
/// were all.
fn for_each_guarded(index: &Path, mut on_file: impl FnMut(&str, FileHash)) -> bool {
    let dir = index.parent().unwrap_or(index);
    let found = WorkspaceFiles::of(dir).read(index, Limit::whole(LIMIT));
    let bytes = found.map(|found| found.bytes).unwrap_or_default();
    let Some(id) = IDS.into_iter().find(|id| index_file::parse(&bytes, *id, |_| {}).is_some())
    else {
        return true;
    };
    let mut files = 0_usize;
    index_file::parse(&bytes, id, |entry| {
        let Some(path) = guarded_path(entry.path) else { return };
        files += 1;
        if files <= FILES {
            on_file(path, hash(&entry));
        }
    });
    files <= FILES
}

fn hash(entry: &Entry<'_>) -> FileHash {
    let mut hasher = blake3::Hasher::new();
    // No path contains a NUL, so that one ends it.
    for part in [entry.path, b"\0", &entry.mode.to_be_bytes(), entry.id] {
        hasher.update(part);
    }
    let mut hash = FileHash::default();
    hasher.finalize_xof().fill(&mut hash);
    hash
}

/// The path as text, if it is a guarded one.
fn guarded_path(path: &[u8]) -> Option<&str> {
    // Nearly all paths of an index are others, and there can be millions of them.
    let may_be =
        path.first().is_some_and(|first| FIRST.contains(first)) && path.len() <= LONGEST_PATH;
    let path = str::from_utf8(may_be.then_some(path)?).ok()?;
    let within = |name: &str| {
        path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PROJECT_FILES.into_iter().chain([RULES]).any(within).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guarded_name_begins_with_a_byte_by_which_others_are_left_out() {
        for name in PROJECT_FILES.into_iter().chain([RULES]) {
            assert_eq!(guarded_path(name.as_bytes()), Some(name));
            let inside = format!("{name}/x");
            assert_eq!(guarded_path(inside.as_bytes()), Some(&*inside));
        }
        for name in ["src/.envrc", "envrc", ".envrcs", ""] {
            assert_eq!(guarded_path(name.as_bytes()), None);
        }
    }
}
