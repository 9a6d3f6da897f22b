//! Paths that a model names, checked against the scope of its Pod.

use crate::files::{self, FileError, Found, Limit, Miss, Resolved, lexical};
use crate::scope::Permission;
use crate::tools::{Context, guard};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Where temporary files lie, of the person and, for its tools, of a Pod.
const TMP: &str = "/tmp";
/// Bytes of a file that is read or changed as a whole.
pub const MAX_FILE: u64 = 32 * 1024 * 1024;

/// A permitted path, canonical.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedPath {
    pub path: PathBuf,
    /// Where opening starts: the target of the rule that permits it.
    root: PathBuf,
    pub exists: bool,
}

impl ScopedPath {
    /// Resolves a path, which may begin at the working directory, and checks it against the scope. What does not exist
    /// yet is a path too, if its nearest existing ancestor is in scope.
    pub fn find(ctx: &Context, given: &str, need: Permission) -> Result<Self, FileError> {
        let given = &ctx.cwd.join(given);
        let Resolved { path, exists } = files::resolve(&meant(ctx, given))?;
        must_be_decided(ctx, given, &path)?;
        if let Some(why) = guard::closed(ctx, &path, need) {
            return Err(FileError::refused(why));
        }
        let Some(root) = permitted(ctx, &path, need) else {
            return Err(refusal(ctx, given, &path));
        };
        if need == Permission::Write {
            refuse_guarded(ctx, given, &path)?;
        }
        Ok(Self { path, root, exists })
    }

    /// Reads a regular file of at most [`MAX_FILE`] bytes.
    pub fn read(ctx: &Context, given: &str, need: Permission) -> Result<(Self, Found), FileError> {
        Self::read_as_far(ctx, given, need, Limit::whole(MAX_FILE))
    }

    /// Reads a regular file within a limit.
    pub fn read_as_far(
        ctx: &Context,
        given: &str,
        need: Permission,
        limit: Limit,
    ) -> Result<(Self, Found), FileError> {
        let absolute = ctx.cwd.join(given);
        files::retry(&absolute, || {
            let found = Self::find(ctx, given, need)?;
            if !found.exists {
                let hint = other_spelling(ctx, &absolute);
                return Err(Miss::Error(FileError::Missing(absolute.clone(), hint)));
            }
            let content = files::read_below(&found.root, &found.path, limit)?;
            Ok((found, content))
        })
    }

    /// The names in this directory.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        files::retry(&self.path, || files::list_directory(&self.root, &self.path))
    }

    /// The content of this file as it is now, `None` if there is no such file now.
    pub fn now(&self) -> Result<Option<Found>, FileError> {
        match files::read_below(&self.root, &self.path, Limit::whole(MAX_FILE)) {
            Ok(found) => Ok(Some(found)),
            Err(Miss::Error(error)) => Err(error),
            Err(Miss::Moved) => Ok(None),
        }
    }

    /// Opens the directory of this file, making those that are missing, and its own name.
    pub fn directory(&self) -> Result<(OwnedFd, OsString), FileError> {
        let bad = || FileError::refused(format!("path has no file name: {}", self.path.display()));
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(bad());
        };
        let directory = files::retry(&self.path, || files::make_directory(&self.root, parent))?;
        Ok((directory, name.to_owned()))
    }
}

/// What a sentence adds about a path that does not exist: the readable path that differs from it only in case or in the
/// Unicode form of its characters.
pub fn other_spelling(ctx: &Context, given: &Path) -> String {
    let there = files::other_spelling(&meant(ctx, given));
    let there = there.filter(|there| readable(ctx, there) || reaches(ctx, there));
    there.map_or_else(String::new, |there| {
        let same = |a: &Path, b: &Path| files::composed(a) == files::composed(b);
        let form = match same(&there, &meant(ctx, given)) {
            true => ", which has these characters in another form of Unicode: in Bash, a pattern names it",
            false => "",
        };
        format!("; there is {}{form}", there.display())
    })
}

/// The path on the disk for an absolute path of a call: `/tmp` is the Pod's own, as for its
/// commands, except for paths of the scope and paths that exist only in the person's `/tmp`.
pub fn meant(ctx: &Context, given: &Path) -> PathBuf {
    let path = lexical(given);
    let in_scope = ctx.scope.permission(&path).is_some() || ctx.scope.reaches(&path);
    let Some(rest) = path.strip_prefix(TMP).ok().filter(|_| !in_scope) else {
        return given.to_owned();
    };
    let own = ctx.tmp();
    let there = |base: &Path| {
        let parts = rest.ancestors().map(|part| (part, base.join(part)));
        let found = parts.into_iter().find(|(_, path)| path.symlink_metadata().is_ok());
        found.map_or(0, |(part, _)| part.components().count())
    };
    if there(&own) >= there(TMP.as_ref()) { own.join(rest) } else { given.to_owned() }
}

/// Opens a file for a search: `None` if it is no regular file, or the Pod may not read it.
pub fn open_for_search(ctx: &Context, path: &Path) -> Option<File> {
    let root = permitted(ctx, path, Permission::Read)?;
    files::open_file(&root, path).ok()
}

/// Whether a search may name a file: it is there, and no link that was exchanged for a directory led to it.
pub fn may_name(ctx: &Context, path: &Path) -> bool {
    permitted(ctx, path, Permission::Read).is_some_and(|root| files::is_file(&root, path))
}

/// Whether something at or below this directory may be looked at.
pub fn reaches(ctx: &Context, directory: &Path) -> bool {
    let own = [&ctx.outputs, &ctx.tmp()];
    ctx.scope.reaches(directory) || own.into_iter().any(|own| directory.starts_with(own))
}

/// Whether this canonical path may be read.
pub fn readable(ctx: &Context, path: &Path) -> bool {
    allows(ctx, path, Permission::Read)
}

/// Refuses a path that resolves to another target than when the call was decided.
pub fn must_be_decided(ctx: &Context, given: &Path, path: &Path) -> Result<(), FileError> {
    if ctx.path.as_ref().is_none_or(|decided| decided == path) {
        return Ok(());
    }
    let given = given.display();
    Err(FileError::refused(format!(
        "{given} resolved to another target when this call was decided; call again"
    )))
}

/// Whether this much may be done with a canonical path.
pub fn allows(ctx: &Context, path: &Path, need: Permission) -> bool {
    permitted(ctx, path, need).is_some()
}

/// The root from which a permitted path is opened.
fn permitted(ctx: &Context, path: &Path, need: Permission) -> Option<PathBuf> {
    if need == Permission::Read && path.starts_with(&ctx.outputs) {
        return Some(ctx.outputs.clone());
    }
    let tmp = ctx.tmp();
    if path.starts_with(&tmp) {
        return tmp.ancestors().find(|root| root.exists()).map(Path::to_owned);
    }
    ctx.scope.permission(path).filter(|held| *held >= need)?;
    let rule = ctx.scope.rule_for(path, need)?;
    // A rule may be about a single file: then its directory is where opening starts.
    let root = if rule.target == path { path.parent().unwrap_or(path) } else { &rule.target };
    // A rule may be about a directory that does not exist yet.
    root.ancestors().find(|root| root.exists()).map(Path::to_owned)
}

fn refuse_guarded(ctx: &Context, given: &Path, path: &Path) -> Result<(), FileError> {
    let needs = guard::needs(ctx, given, path);
    if needs.iter().all(|need| ctx.needs.contains(need)) {
        return Ok(());
    }
    Err(FileError::refused(guard::not_granted(path, &needs)))
}

fn refusal(ctx: &Context, given: &Path, path: &Path) -> FileError {
    if ctx.scope.permission(path).is_some() {
        return FileError::refused(format!("path is read-only in this scope: {}", path.display()));
    }
    if given != path && ctx.scope.permission(&lexical(given)).is_some() {
        return FileError::refused(format!(
            "path leads through a symbolic link outside allowed scope: {} -> {}",
            given.display(),
            path.display()
        ));
    }
    FileError::refused(format!("path is outside allowed scope: {}", given.display()))
}
