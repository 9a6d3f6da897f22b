//! Files of a workspace that the host reads for a Pod: instructions and settings. The author of the
//! workspace controls these paths.

use crate::files::{
    FileError, Found, Limit, is_secret, kernel, read_below, resolve, retry, secret_of,
};
use crate::scope::{Permission, Scope};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads instructions and settings of a workspace, and follows no link out of it.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceFiles<'a> {
    root: &'a Path,
    scope: Option<&'a Scope>,
    secrets: &'a [PathBuf],
}

impl<'a> WorkspaceFiles<'a> {
    /// The files of a workspace. Its root may be given through links.
    pub fn of(root: &'a Path) -> Self {
        Self { root, scope: None, secrets: &[] }
    }

    /// Reads the files for a Pod of this scope: the target of a link must be readable for the Pod,
    /// too.
    pub fn for_scope(root: &'a Path, scope: &'a Scope, secrets: &'a [PathBuf]) -> Self {
        Self { root, scope: Some(scope), secrets }
    }

    /// Reads the file at an absolute path in the workspace.
    pub fn read(&self, given: &Path, limit: Limit) -> Result<Found, FileError> {
        retry(given, || {
            let (root, path) = self.check(given).map_err(crate::files::Miss::Error)?;
            read_below(&root, &path, limit)
        })
    }

    /// Reads instructions or settings. Refuses a file that belongs neither to the person, nor to
    /// root, nor to the owner of the workspace.
    pub fn read_obeyed(&self, given: &Path, limit: Limit) -> Result<Found, FileError> {
        let found = self.read(given, limit)?;
        let owner = self.root.metadata().map(|root| root.uid());
        let person = rustix::process::getuid().as_raw();
        if found.uid == 0 || found.uid == person || owner.is_ok_and(|owner| owner == found.uid) {
            return Ok(found);
        }
        Err(FileError::Refused(format!(
            "{} belongs to another user than the workspace; it is not read",
            given.display()
        )))
    }

    /// The canonical root and path of a file that may be read.
    fn check(&self, given: &Path) -> Result<(PathBuf, PathBuf), FileError> {
        let root = resolve(self.root)?;
        let found = resolve(given)?;
        if !root.exists || !found.exists {
            return Err(FileError::Missing(given.to_owned(), String::new()));
        }
        let (root, path) = (root.path, found.path);
        let inside = given.strip_prefix(self.root).map_or(given.to_owned(), |rest| root.join(rest));
        let is_link = inside != path;
        if !path.starts_with(&root) {
            return Err(leads_out(given, &path, "the workspace"));
        }
        if let Some(secret) = secret_of(&path, self.secrets) {
            return Err(FileError::Refused(is_secret(&path, secret)));
        }
        if let Some(why) = kernel::closes(&path, Permission::Read) {
            return Err(FileError::Refused(why));
        }
        match self.scope {
            Some(scope) if is_link && scope.permission(&path).is_none() => {
                Err(leads_out(given, &path, "the scope"))
            }
            Some(scope) if is_denied(scope, &path) => {
                Err(FileError::Refused(format!("path is denied: {}", path.display())))
            }
            Some(_) | None => Ok((root, path)),
        }
    }
}

/// A Pod with only a part of the workspace still gets its instructions, unless a deny covers them.
fn is_denied(scope: &Scope, path: &Path) -> bool {
    scope.deny.iter().any(|deny| deny.permission == Permission::Read && deny.covers(path))
}

fn leads_out(given: &Path, path: &Path, of: &str) -> FileError {
    FileError::Refused(format!(
        "symbolic link leads out of {of}: {} -> {}; it is not read",
        given.display(),
        path.display()
    ))
}
