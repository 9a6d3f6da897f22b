//! The directories of its scope that a command in the background is to write, as the call names them.

use crate::files;
use crate::scope::{Permission, Rule};
use crate::tools::Context;
use std::path::{Path, PathBuf};

/// The most directories that one command may name.
const MOST: usize = 20;

/// Why the directories of a call do not fit its other arguments, as the model reads it.
pub fn why_not(in_background: bool, named: &[PathBuf]) -> Option<String> {
    if !named.is_empty() && !in_background {
        return Some(
            "writes is only for background: true: a command in the foreground writes your whole scope".into(),
        );
    }
    (named.len() > MOST)
        .then(|| format!("writes names more than {MOST} directories: name one that contains them"))
}

/// The directories that a call names, canonical, none inside another. Reads the disk; what is guarded there the helper
/// of the command sees.
pub fn resolved(ctx: &Context, named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut dirs = named.iter().map(|named| one(ctx, named)).collect::<Result<Vec<_>, _>>()?;
    // An outer directory comes before what is in it.
    dirs.sort_unstable();
    dirs.dedup_by(|inner, outer| inner.starts_with(outer));
    Ok(dirs)
}

fn one(ctx: &Context, named: &Path) -> Result<PathBuf, String> {
    let shown = named.display();
    let found = files::resolve(&ctx.cwd.join(named)).map_err(|error| format!("writes: {error}"))?;
    if !found.exists {
        return Err(format!(
            "writes: {shown} does not exist: make it first, with a command in the foreground (mkdir -p {shown})"
        ));
    }
    let path = found.path;
    if !path.is_dir() {
        return Err(format!("writes: {shown} is no directory: name the one that it lies in"));
    }
    if path.display().to_string().chars().any(char::is_control) {
        return Err(format!("writes: {named:?} has a control character in its name; rename it"));
    }
    if !ctx.scope.covers(&Rule::new(&path, Permission::Write)) {
        return Err(format!(
            "writes: {} is not wholly yours to write: it is outside your scope, or a part of it is another pod's; name a \
             directory of your scope, or let the command write below /tmp, which needs no name",
            path.display()
        ));
    }
    Ok(path)
}
