//! The directory of a repository: what git obeys in it, and how one leads to another.

use crate::files::{Limit, WorkspaceFiles, canonical};
use crate::sandbox::access::view::{GIT, GUARDED};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Bytes that are read of a file that names one directory.
const POINTER: u64 = 8 * 1024;

/// The file of a repository that says which branch is checked out.
pub const HEAD: &str = "HEAD";
/// The directory of hooks in a repository. It is made before a command, so a mount guards it.
pub const HOOKS: &str = "hooks";
/// Directories of a repository. If one of them or `HEAD` is missing, git does not recognise the
/// repository and searches the directories above.
pub const HELD: [&str; 2] = ["objects", "refs"];
/// Names in the directory of a repository that are data: git neither executes them nor reads settings from them.
const DATA: [&str; 33] = [
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "NOTES_MERGE_WORKTREE",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "MERGE_AUTOSTASH",
    "annex",
    "description",
    "gc.log",
    "gc.pid",
    "index",
    "info",
    "lfs",
    "locked",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "rr-cache",
    "sequencer",
    "shallow",
    "worktrees",
];
/// The same by the ends and the beginnings of names.
const DATA_ENDS: [&str; 2] = [".lock", "_HEAD"];
const DATA_BEGINS: [&str; 4] = ["BISECT_", "fsmonitor--daemon", "index.", "sharedindex."];
/// What is in the names of files that are put back or aside.
const PASSING: [&str; 2] = [".put-back-", ".put-aside-"];
/// Names of other repositories, which git reads from these directories as it reads a configuration.
const REMOTES: [&str; 2] = ["branches", "remotes"];

/// The existing entries of a repository's directory that are not known to be data.
pub fn obeyed_in(dir: &Path) -> Vec<PathBuf> {
    let inside = dir.iter().any(|name| name == GIT);
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let obeyed = names.filter(|name| is_obeyed(name, inside));
    obeyed.map(|name| dir.join(name)).collect()
}

/// Whether git obeys an entry of a repository's directory. A bare repository may lie among other files, of which only
/// known names count.
fn is_obeyed(name: &OsStr, inside: bool) -> bool {
    let name = name.to_string_lossy();
    let known = GUARDED.into_iter().chain(REMOTES).any(|known| name.eq_ignore_ascii_case(known));
    let is_data = DATA.contains(&&*name)
        || is_passing(&name)
        || DATA_ENDS.iter().any(|end| name.ends_with(end))
        || DATA_BEGINS.iter().any(|begin| name.starts_with(begin));
    known || inside && !is_data
}

/// Whether a helper uses this name for a moment, perhaps that of another command.
fn is_passing(name: &str) -> bool {
    PASSING.iter().any(|mark| name.contains(mark))
}

/// The directory of the repository that a `.git` is or names.
pub fn repository(git: &Path) -> Option<PathBuf> {
    let real = canonical(git).ok()?;
    if real.is_dir() { Some(real) } else { pointed(&real) }
}

/// The directory that a `.git` file names.
pub fn pointed(file: &Path) -> Option<PathBuf> {
    let dir = canonical(&file.parent()?.join(path_in(file, b"gitdir: ")?)).ok()?;
    dir.is_dir().then_some(dir)
}

/// The directory of the main repository that the directory of a worktree names.
pub fn common(dir: &Path) -> Option<PathBuf> {
    canonical(&dir.join(path_in(&dir.join("commondir"), b"")?)).ok()
}

/// The path after a prefix in a small file of git, as git reads it: all bytes without trailing line
/// breaks.
pub fn path_in(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let found = WorkspaceFiles::of(file.parent()?).read(file, Limit::head(POINTER)).ok()?;
    let path = found.bytes.strip_prefix(prefix)?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))? + 1;
    Some(OsStr::from_bytes(&path[..end]).into())
}
