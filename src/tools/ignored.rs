//! The files that Grep skips: those that `.ignore`, `.gitignore` and `.git/info/exclude` name in the directories around
//! them. Strangers write these files, so they are read with limits, and never through a link or from a pipe.

use crate::files::{Limit, WorkspaceFiles};
use crate::tools::fault::Fault;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one file that are read, and of all that one search reads.
const FILE: u64 = 256 * 1024;
const ALL: usize = 4 * 1024 * 1024;
/// Bytes of one pattern, and how deep its braces nest: the parser of patterns calls itself for each brace.
const PATTERN: usize = 4 * 1024;
const NESTED: usize = 16;
/// The files of patterns, the first before the others. Those of git end at the top of a repository.
const NAMES: [(&str, bool); 3] =
    [(".ignore", false), (".gitignore", true), (".git/info/exclude", true)];

/// Refuses a pattern that is too long or nests too deep.
pub fn bounded(pattern: &str) -> Result<(), Fault> {
    if is_bounded(pattern) {
        return Ok(());
    }
    Err(Fault::argument(format!(
        "bad glob pattern: it may have {PATTERN} bytes and {NESTED} braces in each other"
    )))
}

fn is_bounded(pattern: &str) -> bool {
    pattern.len() <= PATTERN && pattern.bytes().filter(|byte| *byte == b'{').count() <= NESTED
}

/// The patterns of every directory that a search has come to.
pub struct Ignored {
    /// The files that the search names; these count even if they are ignored.
    named: Override,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    directories: HashMap<PathBuf, Arc<Patterns>>,
    /// Bytes read so far.
    read: usize,
}

/// The patterns of one directory, in the order of [`NAMES`]; `None` where there is no such file.
struct Patterns {
    files: [Option<Gitignore>; NAMES.len()],
    has_git: bool,
}

impl Ignored {
    pub fn except(named: Override) -> Self {
        Self { named, known: Mutex::default() }
    }

    /// Whether a file or directory is ignored. The pattern nearest to it decides.
    pub fn contains(&self, path: &Path, is_directory: bool) -> bool {
        if self.named.matched(path, is_directory).is_whitelist() {
            return false;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let around: Vec<Arc<Patterns>> =
            path.ancestors().skip(1).map(|dir| known.of(dir)).collect();
        for (index, (_, of_git)) in NAMES.iter().enumerate() {
            for patterns in &around {
                let file = patterns.files[index].as_ref();
                match file.map_or(Match::None, |file| file.matched(path, is_directory)) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None if *of_git && patterns.has_git => break,
                    Match::None => {}
                }
            }
        }
        false
    }
}

impl Known {
    fn of(&mut self, dir: &Path) -> Arc<Patterns> {
        if let Some(patterns) = self.directories.get(dir) {
            return patterns.clone();
        }
        let files = NAMES.map(|(name, _)| self.file(dir, name));
        let has_git = dir.join(".git").symlink_metadata().is_ok();
        let patterns = Arc::new(Patterns { files, has_git });
        self.directories.insert(dir.to_owned(), patterns.clone());
        patterns
    }

    /// The patterns of one file. A line that is no pattern or exceeds a limit is left out.
    fn file(&mut self, dir: &Path, name: &str) -> Option<Gitignore> {
        let path = dir.join(name);
        if self.read >= ALL || !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let bytes = WorkspaceFiles::of(dir).read(&path, Limit::head(FILE)).ok()?.bytes;
        self.read += bytes.len();
        let text = String::from_utf8_lossy(&bytes);
        let mut builder = GitignoreBuilder::new(dir);
        for line in text.trim_start_matches('\u{feff}').lines().filter(|line| is_bounded(line)) {
            // An error says that the line is no pattern.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok()
    }
}
