//! What is looked for after a command: a new file that would make git, run by somebody else, take
//! its orders from elsewhere.

use std::path::{Path, PathBuf};

/// The file in `.git` that names another directory to read hooks and configuration from. It cannot
/// be mounted shut, because it is not there.
pub const POINTER: &str = "commondir";

/// The pointers that are not there yet, in these `.git` directories.
pub fn missing(repositories: &[PathBuf]) -> Vec<PathBuf> {
    let pointers = repositories.iter().map(|git| git.join(POINTER));
    pointers.filter(|pointer| pointer.symlink_metadata().is_err()).collect()
}

/// Removes what has come since; a sentence for each.
pub fn remove(pointers: &[PathBuf]) -> Vec<String> {
    // A link in the place of the directory leads to somebody else's files.
    let real = |path: &&PathBuf| {
        let dir = path.parent().and_then(|dir| dir.symlink_metadata().ok());
        dir.is_some_and(|dir| dir.is_dir()) && path.symlink_metadata().is_ok()
    };
    pointers.iter().filter(real).map(|pointer| sentence(pointer)).collect()
}

fn sentence(pointer: &Path) -> String {
    let shown = pointer.display();
    match std::fs::remove_file(pointer) {
        Ok(()) => format!("{shown} was removed: it led git to another configuration"),
        Err(error) => format!("{shown} leads git to another configuration: {error}"),
    }
}
