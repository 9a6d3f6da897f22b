//! The path of a file tool's call and the access that its scope lacks, computed before the call
//! starts.

use crate::files::{self, FileError, Resolved};
use crate::sandbox::Need;
use crate::scope::{Permission, Rule};
use crate::tools::{Context, Lane, find, glob, guard, put, scoped_path, walk};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A path that a call reads or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Canonical.
    pub path: PathBuf,
    /// The access that the scope lacks. `None` if it has the access, or if a deny of the scope
    /// forbids it: then the tool reports that.
    pub lacks: Option<Rule>,
    /// Further needs, for a file that git or a shell executes.
    pub needs: Vec<Need>,
    /// Why neither a scope nor an approval can grant the access, as the model reads it.
    pub closed: Option<String>,
    /// Why the call fails even if it is allowed, as the model reads it.
    pub fails: Option<String>,
}

/// The path of a call; `None` for tools without a single path. Reads the disk.
pub fn touched(name: &str, arguments: &str, ctx: &Context) -> Option<Touch> {
    let ctx = &ctx.canonical();
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let text = |key: &str| arguments.get(key)?.as_str().map(str::to_owned);
    let tool = find(name)?;
    let (given, need) = match (tool.name, tool.lane, tool.telling) {
        ("Grep", ..) => (text("path")?, Permission::Read),
        ("Glob", ..) => (glob::base(text("path"), &text("pattern")?)?, Permission::Read),
        (_, Lane::Look, ["file_path"]) => (text("file_path")?, Permission::Read),
        (_, Lane::Change, ["file_path"]) => (text("file_path")?, Permission::Write),
        _ => return None,
    };
    let given = walk::absolute(ctx, &given);
    Some(match files::resolve(&scoped_path::meant(ctx, Path::new(&given))) {
        Ok(found) => {
            let fails = fails(ctx, tool.name, &given, &found);
            // A search reads all that lies below a directory, Read the names in it.
            let depth = match tool.name {
                "Grep" | "Glob" if found.path.is_dir() => Depth::Everything,
                _ => Depth::Itself,
            };
            Touch { fails, ..touch(ctx, Path::new(&given), found.path, (need, depth)) }
        }
        Err(error) => {
            Touch { path: given.into(), fails: Some(error.to_string()), ..Touch::default() }
        }
    })
}

/// Why a tool refuses a path although it may access it.
fn fails(
    ctx: &Context,
    tool: &str,
    given: &str,
    Resolved { path, exists }: &Resolved,
) -> Option<String> {
    let unread = || (!ctx.read.contains_key(path)).then(|| put::unread(path));
    match (tool, exists) {
        ("Grep" | "Glob", false) => Some(walk::missing(ctx, given)),
        ("Read" | "Edit", false) => {
            let hint = scoped_path::other_spelling(ctx, given.as_ref());
            Some(FileError::Missing(given.into(), hint).to_string())
        }
        ("Write" | "Edit", true) if path.is_file() => unread(),
        ("Write" | "Edit", true) if path.is_dir() => {
            Some(format!("path is a directory, not a file: {}", path.display()))
        }
        _ => None,
    }
}

/// How much below its path a call accesses.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Itself,
    Everything,
}

fn touch(ctx: &Context, given: &Path, path: PathBuf, (need, depth): (Permission, Depth)) -> Touch {
    if let Some(why) = guard::closed(ctx, &path, need) {
        return Touch { path, closed: Some(why), ..Touch::default() };
    }
    let lacks = lacks(ctx, &path, need, depth);
    let needs =
        if need == Permission::Write { guard::needs(ctx, given, &path) } else { Vec::new() };
    // A lease that a file tool obtains widens the scope of commands as well, so guarded files are
    // not leased to a file tool.
    if lacks.is_some() && !needs.is_empty() {
        let closed = Some(guard::not_extended(&path, &needs));
        return Touch { path, closed, ..Touch::default() };
    }
    Touch { path, lacks, needs, ..Touch::default() }
}

fn lacks(ctx: &Context, path: &Path, need: Permission, depth: Depth) -> Option<Rule> {
    let recursive = depth == Depth::Everything;
    if scoped_path::allows(ctx, path, need) || recursive && scoped_path::reaches(ctx, path) {
        return None;
    }
    if ctx.scope.deny.iter().any(|deny| deny.covers(path) && deny.permission <= need) {
        return None;
    }
    Some(Rule { target: path.to_owned(), permission: need, recursive })
}
