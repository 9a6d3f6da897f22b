//! The files that Grep skips: those that `.ignore`, `.gitignore` and `info/exclude` of git name in the directories around
//! them. Strangers write these files, so they are read with limits, and never through a link or from a pipe.

use crate::files::{Limit, WorkspaceFiles};
use crate::scope::{Permission, Scope};
use crate::tools::ignore_pattern::IgnorePattern;
use crate::tools::{Context, scoped_path};
use ignore::overrides::Override;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one file that are read, and of all that one search reads.
const MAX_FILE_BYTES: u64 = 64 * 1024;
const MAX_SEARCH_BYTES: usize = 1024 * 1024;
/// The end of the summary of a search for which a limit left out patterns.
pub const CUT_NOTE: &str = "; of ignore files only 64 KiB each and 1 MiB together were read, so ignored files may be searched";
/// The files of patterns, the first before the others. Those of git end at the top of a repository.
const NAMES: [(&str, bool); 3] = [(".ignore", false), (".gitignore", true), (EXCLUDE, true)];
const EXCLUDE: &str = ".git/info/exclude";

/// The patterns of every directory that a search has come to.
pub struct Ignored {
    /// The files that the search names; these count even if they are ignored.
    named: Override,
    /// The highest directory whose patterns count.
    top: PathBuf,
    known: Mutex<Known>,
}

struct Known {
    directories: HashMap<PathBuf, Around>,
    scope: Scope,
    /// yoi's own directories.
    own: Vec<PathBuf>,
    /// Bytes read so far.
    read: usize,
    is_cut: bool,
    /// Directories and lists of patterns that were looked at.
    #[cfg(test)]
    visits: usize,
}

/// The patterns that count in one directory: for each of [`NAMES`] the nearest list. Directories without patterns
/// share the lists of the directory above them, so that depth alone costs nothing.
type Around = [Option<Arc<Patterns>>; NAMES.len()];

/// The patterns of one file; never empty.
struct Patterns {
    list: Vec<IgnorePattern>,
    /// Where a path below the directory of the file becomes relative to it, in bytes.
    from: usize,
    /// The next list of the same name above.
    above: Option<Arc<Patterns>>,
}

impl Ignored {
    /// The patterns that count for a search below a canonical directory.
    pub fn below(ctx: &Context, base: &Path, named: Override) -> Self {
        let top = top(|dir| scoped_path::readable(ctx, dir), base);
        Self::from_top(top, ctx.scope.clone(), ctx.own.clone(), named)
    }

    /// The same for a person, who sees what the scope reads and names no file.
    pub fn of_scope(scope: &Scope, own: Vec<PathBuf>, base: &Path) -> Self {
        let top = top(|dir| scope.permission(dir) >= Some(Permission::Read), base);
        Self::from_top(top, scope.clone(), own, Override::empty())
    }

    fn from_top(top: &Path, scope: Scope, own: Vec<PathBuf>, named: Override) -> Self {
        let known = Known {
            directories: HashMap::new(),
            scope,
            own,
            read: 0,
            is_cut: false,
            #[cfg(test)]
            visits: 0,
        };
        Self { named, top: top.to_owned(), known: Mutex::new(known) }
    }

    /// Whether a file or directory is ignored. `.ignore` files decide before `.gitignore`, and these before `exclude`;
    /// of the files of one name the nearest decides, and in a file the last pattern.
    pub fn contains(&self, path: &Path, is_directory: bool) -> bool {
        if self.named.matched(path, is_directory).is_whitelist() {
            return false;
        }
        let Some(directory) = path.parent().filter(|dir| dir.starts_with(&self.top)) else {
            return false;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = path.as_os_str().as_bytes();
        for mut nearest in known.around(directory, &self.top) {
            while let Some(patterns) = nearest {
                #[cfg(test)]
                (known.visits += 1);
                let relative = bytes.get(patterns.from..).unwrap_or_default();
                let mut last_first = patterns.list.iter().rev();
                if let Some(found) = last_first.find(|one| one.matches(relative, is_directory)) {
                    return !found.is_exception;
                }
                nearest = patterns.above.clone();
            }
        }
        false
    }

    /// Whether a limit left out patterns.
    pub fn is_cut(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).is_cut
    }
}

/// The highest directory that the scope reads without a gap, or the top of the repository if that is higher: a Pod for a
/// part of a repository skips what the whole repository ignores.
fn top(is_readable: impl Fn(&Path) -> bool, base: &Path) -> &Path {
    let readable = base.ancestors().take_while(|dir| is_readable(dir)).last();
    let repository = base.ancestors().find(|dir| has_git(dir));
    let tops = [readable, repository].into_iter().flatten();
    tops.min_by_key(|dir| dir.components().count()).unwrap_or(base)
}

fn has_git(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

impl Known {
    /// The patterns that count in a directory. A walk comes to it from the directory above, whose patterns are
    /// known by then; the directories above a search are read once.
    fn around(&mut self, dir: &Path, top: &Path) -> Around {
        let mut unknown = Vec::new();
        let mut around = Around::default();
        for dir in dir.ancestors() {
            #[cfg(test)]
            (self.visits += 1);
            if let Some(known) = self.directories.get(dir) {
                around = known.clone();
                break;
            }
            unknown.push(dir);
            if dir == top {
                break;
            }
        }
        for dir in unknown.into_iter().rev() {
            around = self.within(dir, around);
            self.directories.insert(dir.to_owned(), around.clone());
        }
        around
    }

    /// The patterns that count in a directory, from those that count above it.
    fn within(&mut self, dir: &Path, mut around: Around) -> Around {
        let has_git = has_git(dir);
        let length = dir.as_os_str().len();
        let from = if dir.parent().is_some() { length + 1 } else { length };
        for ((name, of_git), nearest) in NAMES.into_iter().zip(&mut around) {
            let above = nearest.take().filter(|_| !(of_git && has_git));
            let list = self.patterns(dir, name).unwrap_or_default();
            *nearest = match list.is_empty() {
                true => above,
                false => Some(Arc::new(Patterns { list, from, above })),
            };
        }
        around
    }

    /// The patterns of one file, `None` if there is no such file.
    fn patterns(&mut self, dir: &Path, name: &str) -> Option<Vec<IgnorePattern>> {
        let bytes = match name {
            EXCLUDE => self.read(&self.git_directory(dir)?, "info/exclude"),
            _ => self.read(dir, name),
        }?;
        let room = MAX_SEARCH_BYTES.saturating_sub(self.read);
        let limit = room.min(usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX));
        let mut text = &*bytes;
        if text.len() > limit {
            // A part of a line would be another pattern.
            text = &text[..memchr::memrchr(b'\n', &text[..limit]).unwrap_or(0)];
            self.is_cut = true;
        }
        self.read += text.len();
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        Some(text.split(|byte| *byte == b'\n').filter_map(IgnorePattern::parse).collect())
    }

    /// The directory with `info/exclude`: of a linked working tree that of its main repository.
    fn git_directory(&self, dir: &Path) -> Option<PathBuf> {
        let git = dir.join(".git");
        if git.symlink_metadata().ok()?.is_dir() {
            return Some(git);
        }
        let pointer = self.read(dir, ".git")?;
        let private = dir.join(path_in(pointer.strip_prefix(b"gitdir: ")?));
        let common = self.read(&private, "commondir");
        Some(common.map_or(private.clone(), |common| private.join(path_in(&common))))
    }

    /// The beginning of a file, one byte more than [`MAX_FILE_BYTES`] at most. `None` for a file of another user, and
    /// for one that a deny covers.
    fn read(&self, dir: &Path, name: &str) -> Option<Vec<u8>> {
        let path = dir.join(name);
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let files = WorkspaceFiles::for_scope(dir, &self.scope, &self.own);
        Some(files.read_obeyed(&path, Limit::head(MAX_FILE_BYTES + 1)).ok()?.bytes)
    }
}

/// The path in a file of git, which ends with its line.
fn path_in(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{Permission, Rule};

    /// Directories below each other, and a file in each; the visits of a search that comes to all of them.
    fn visits(depth: usize) -> usize {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        std::fs::write(base.join(".ignore"), "*.log\n").unwrap();
        let scope = Scope::new(vec![Rule::new(&base, Permission::Read)]);
        let ignored = Ignored::from_top(&base, scope, Vec::new(), Override::empty());
        let mut dir = base.clone();
        for _ in 0..depth {
            dir.push("d");
            std::fs::create_dir(&dir).unwrap();
            assert!(!ignored.contains(&dir, true));
            assert!(ignored.contains(&dir.join("a.log"), false));
        }
        let known = ignored.known.lock().unwrap();
        known.visits
    }

    #[test]
    fn a_search_looks_at_each_directory_once_however_deep_it_lies() {
        let (low, high) = (visits(10), visits(200));
        assert!(high <= 20 * low, "{low} visits for 10 levels, {high} for 200");
    }
}
