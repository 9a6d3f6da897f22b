//! Guarded files in the index of a repository. A command may change the index, and with a commit of it the branch; git
//! writes such a file into the working tree when the person checks out, stashes or resets. That is said.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::after::{Before, ViewByPath};
use crate::sandbox::guard::Found;
use crate::sandbox::project::PROJECT_FILES;
use crate::sandbox::view::RULES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The largest index that is read, in bytes, and the most indexes of one command.
const LIMIT: u64 = 16 * 1024 * 1024;
const MOST: usize = 64;
/// The name of the file in a repository.
const INDEX: &str = "index";
/// The fields of an entry before the id of its content; the mode is the seventh of them.
const FIELDS: usize = 40;
const MODE: usize = 24;
/// Bytes of an id: SHA-1 or SHA-256.
const IDS: [usize; 2] = [20, 32];
/// The bits of an entry's flags: its path's length, and whether more flags follow.
const LENGTH: u16 = 0xfff;
const EXTENDED: u16 = 0x4000;
/// The first byte of every guarded name.
const FIRST: u8 = b'.';

/// The guarded files in one index, as they were before the command.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    before: BTreeSet<Entry>,
}

/// A path with its mode and the id of its content.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    path: String,
    content: Vec<u8>,
}

impl Before {
    /// Remembers the guarded files in the index of each repository.
    pub fn keep_indexes(&mut self, view: &ViewByPath, found: &Found) {
        let paths = found.dirs.keys().map(|dir| dir.join(INDEX)).filter(|path| view.opens(path));
        let index = |path: PathBuf| Index { before: guarded(&path), path };
        self.indexes.extend(paths.take(MOST).map(index));
    }
}

impl Index {
    pub fn said(&self) -> Option<String> {
        let now = guarded(&self.path);
        let mut changed = now.difference(&self.before).map(|entry| entry.path.as_str());
        let first = changed.next()?;
        let more = changed.map(|path| format!(", {path}")).collect::<String>();
        Some(format!(
            "{} has another {first}{more} than before the command; git writes it at a checkout, stash or reset: \
             look at it with `git show :{first}`",
            self.path.display()
        ))
    }
}

fn guarded(index: &Path) -> BTreeSet<Entry> {
    let dir = index.parent().unwrap_or(index);
    let found = WorkspaceFiles::of(dir).read(index, Limit::whole(LIMIT));
    let bytes = found.map(|found| found.bytes).unwrap_or_default();
    IDS.into_iter().find_map(|id| entries(&bytes, id)).unwrap_or_default()
}

/// The path as text, if it is a guarded one.
fn guarded_path(path: &[u8]) -> Option<&str> {
    // Nearly all paths of an index are others, and there can be millions of them.
    let path = str::from_utf8(path.starts_with(&[FIRST]).then_some(path)?).ok()?;
    let within = |name: &str| {
        path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PROJECT_FILES.into_iter().chain([RULES]).any(within).then_some(path)
}

/// The guarded files in the bytes of an index whose ids have this length; `None` if they are no such index.
fn entries(bytes: &[u8], id: usize) -> Option<BTreeSet<Entry>> {
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let (version, count) = (number(&mut rest)?, number(&mut rest)?);
    let (mut found, mut path) = (BTreeSet::new(), Vec::new());
    for _ in 0..count {
        let begin = rest;
        let fields = rest.split_off(..FIELDS + id)?;
        let flags = u16::from_be_bytes(*rest.split_off(..2)?.first_chunk()?);
        if flags & EXTENDED != 0 {
            rest.split_off(..2)?;
        }
        // Since version 4 a path begins with the number of bytes to remove from the end of the
        // previous path.
        let kept = if version < 4 { 0 } else { path.len().checked_sub(varint(&mut rest)?)? };
        path.truncate(kept);
        let end = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(rest.split_off(..end)?);
        let length = usize::from(flags & LENGTH);
        if length != path.len().min(usize::from(LENGTH)) {
            return None;
        }
        let long = begin.len() - rest.len();
        // Zeroes end the path, and fill entries of earlier versions up to eight bytes.
        rest.split_off(..if version < 4 { 8 - long % 8 } else { 1 })?;
        if let Some(path) = guarded_path(&path) {
            let content = [&fields[MODE..MODE + 4], &fields[FIELDS..]].concat();
            found.insert(Entry { path: path.to_owned(), content });
        }
    }
    Some(found)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Parses a number of variable length in git's encoding of offsets: seven bits in each byte.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *rest.split_off_first()?;
        value = value.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guarded_name_begins_with_the_byte_by_which_others_are_left_out() {
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
