//! Resolves written paths to canonical ones.

use crate::files::{FileError, canonical};
use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// A path without links, `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub path: PathBuf,
    pub exists: bool,
}

/// Resolves an absolute path. A path that does not exist yet is resolved through its nearest
/// ancestor that does. Blocking.
pub fn resolve(given: &Path) -> Result<Resolved, FileError> {
    if !given.is_absolute() {
        return Err(FileError::refused(format!("path must be absolute: {}", given.display())));
    }
    let mut missing: Vec<OsString> = Vec::new();
    let mut present = given.to_owned();
    loop {
        match canonical(&present) {
            Ok(real) => {
                let exists = missing.is_empty();
                let path = missing.iter().rev().fold(real, |path, name| path.join(name));
                refuse_not_text(&path)?;
                return Ok(Resolved { path, exists });
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(unresolvable(given, &error));
            }
            Err(_) => {}
        }
        refuse_broken_link(&present)?;
        let Some(name) = present.file_name() else {
            let text = "path leads through a directory that does not exist";
            return Err(FileError::Refused(format!("{text}: {}", given.display())));
        };
        missing.push(name.to_owned());
        present.pop();
    }
}

/// Refuses a path that is not UTF-8: no request, event or log entry could name it.
pub fn refuse_not_text(path: &Path) -> Result<(), FileError> {
    if path.to_str().is_some() {
        return Ok(());
    }
    let text = "path is not valid UTF-8; rename that file or directory";
    Err(FileError::Refused(format!("{text}: {}", path.display())))
}

/// The path without `.` and `..`, links not followed.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The path without `.` and `..`, as the kernel resolves them: `..` after a link is the parent
/// directory of the link's target. Other links are not followed.
pub fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain = canonical(&plain).unwrap_or(plain);
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn unresolvable(given: &Path, error: &Error) -> FileError {
    match error.kind() {
        ErrorKind::NotADirectory => FileError::Refused(format!(
            "path leads through something that is not a directory: {}",
            given.display()
        )),
        _ => FileError::of_system("cannot resolve", given, error),
    }
}

fn refuse_broken_link(path: &Path) -> Result<(), FileError> {
    // Of a path that ends with a slash, the system reads what the link leads to.
    let link: PathBuf = path.components().collect();
    let Ok(target) = link.read_link() else { return Ok(()) };
    Err(FileError::Refused(format!(
        "broken symbolic link: {} -> {}; create its target or remove the link first",
        path.display(),
        target.display()
    )))
}
