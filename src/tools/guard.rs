//! The files that file tools do not change although they may be in the scope: secrets and files of
//! the kernel, and files that git or a program of the person executes.

use crate::files;
use crate::sandbox::{
    GUARDED, Need, RULES, UserPaths, Why, is_behind_project_file, is_named, is_obeyed_by_name,
    is_project_file,
};
use crate::scope::{Permission, Scope};
use crate::tools::{Context, scoped_path};
use std::path::{Path, PathBuf};

/// The directory of a repository, or the file with its path.
const GIT: &str = ".git";
/// Without this file git does not recognise the repository and looks for one in the directories above.
const HEAD: &str = "HEAD";
/// The purpose of a call that needs git, as an approval request shows it.
pub const CHANGES_GIT: &str = "to change hooks or the configuration of a git repository";
/// The directories of the state of a rebase and a cherry-pick, the list of files that git writes at a checkout, and the
/// prefix of the files of a bisect's state.
const STEPS: [&str; 4] = ["rebase-merge", "rebase-apply", "sequencer", "index"];
const BISECT: &str = "BISECT_";
/// The directories in `.git` for the repositories of submodules and the state of worktrees.
const INNER: [&str; 2] = ["modules", "worktrees"];

/// The needs that must be granted before a call changes this canonical path, although it is in the
/// scope; `given` is the path that the call names. Guarded links on `given` count, too. Reads the
/// disk.
pub fn needs(ctx: &Context, given: &Path, path: &Path) -> Vec<Need> {
    let tmp = ctx.tmp();
    if path.starts_with(&tmp) {
        return Vec::new();
    }
    let home = (UserPaths { env: &ctx.env }).home();
    let mut names = files::names_on(&scoped_path::meant(ctx, given));
    names.retain(|name| !name.starts_with(&tmp));
    names.push(path.to_owned());
    let git = |name: &PathBuf| is_gits_orders(name) || is_named(name, &ctx.scope, home);
    let outside = |name: &PathBuf| {
        is_rule(name) || is_project_file(name) || is_program(ctx, name) || is_obeyed(ctx, name)
    };
    let dirs = || written(&ctx.scope).chain([path]);
    let git = names.iter().any(git).then_some(Need::Git);
    let outside =
        names.iter().any(outside) || is_behind_project_file(path, dirs(), written(&ctx.given));
    git.into_iter().chain(outside.then_some(Need::Outside)).collect()
}

/// The paths that a scope allows to write.
fn written(scope: &Scope) -> impl Iterator<Item = &Path> + Clone {
    let rules = scope.allow.iter().filter(|rule| rule.permission == Permission::Write);
    rules.map(|rule| rule.target.as_path())
}

/// The error of a call that would change a path without these needs.
pub fn not_granted(path: &Path, needs: &[Need]) -> String {
    let what = needs.iter().map(|need| of_a_file(path, *need)).collect::<Vec<_>>().join("; ");
    format!("path is guarded, {what}: {}", path.display())
}

/// The error of an approval that would add a path with these needs to a scope.
pub fn not_extended(path: &Path, needs: &[Need]) -> String {
    let mut words: Vec<&str> = needs.iter().map(|need| need.word()).collect();
    words.push(Need::Outside.word());
    words.dedup();
    format!("{}, and outside the scope; use Bash with needs {words:?}", not_granted(path, needs))
}

/// Why a change of a file needs this.
fn of_a_file(path: &Path, need: Need) -> &'static str {
    match need {
        Need::Git => Why::Git.text(),
        Need::Outside if is_rule(path) => "it holds the rules of this workspace",
        Need::Outside if is_project_file(path) => Why::Project.text(),
        Need::Outside if is_obeyed_by_name(path) => Why::Obeyed.text(),
        Need::Outside => "it is in a directory on PATH, or is the target of a guarded link",
        Need::Network => "it needs the network",
    }
}

/// The purpose of a change of this file, as an approval request shows it.
pub fn purpose(path: &Path, need: Need) -> &'static str {
    match need {
        Need::Outside if is_rule(path) => "to change the rules of this workspace",
        Need::Outside if is_project_file(path) => {
            "to change files that an editor or an agent executes or reads as settings without asking you"
        }
        Need::Outside if is_obeyed_by_name(path) => {
            "to change files that your shells, editors or tools execute or read as settings"
        }
        Need::Outside => {
            "to change a directory of programs on PATH, or the target of a guarded link"
        }
        Need::Git | Need::Network => CHANGES_GIT,
    }
}

/// Whether git executes the file at this path, or reads its configuration from it; or whether the file would make a
/// directory a repository, with the configuration and the hooks that are there.
fn is_gits_orders(path: &Path) -> bool {
    let of = |git: &Path| path.strip_prefix(git).is_ok_and(is_order_inside);
    let is_gits = |dir: &Path| {
        dir.ends_with(GIT) && of(dir)
            || is_repository(dir, Some(path)) && (of(dir) || !is_repository(dir, None))
    };
    path.ends_with(GIT) || path.ancestors().skip(1).any(is_gits)
}

/// Whether a directory is a repository, or the main one of a worktree, also with this new file in it.
fn is_repository(dir: &Path, new: Option<&Path>) -> bool {
    let new = new.and_then(|new| new.strip_prefix(dir).ok()?.iter().next());
    let has = |name: &str| {
        new.is_some_and(|new| new.eq_ignore_ascii_case(name))
            || dir.join(name).symlink_metadata().is_ok()
    };
    has("objects") && has("refs") || has(HEAD) && has("commondir")
}

/// Whether a path in a repository's directory is a guarded one of it, or of a repository in it.
fn is_order_inside(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let order = |name: &&str| {
        GUARDED.contains(name) || STEPS.contains(name) || *name == HEAD || name.starts_with(BISECT)
    };
    match names.split_first() {
        Some((first, inner)) if INNER.contains(first) => inner.iter().any(order),
        Some((first, _)) => order(first),
        None => false,
    }
}

/// Whether a path is a `.yoi` or lies in one.
fn is_rule(path: &Path) -> bool {
    path.iter().any(|name| name == RULES)
}

/// Whether a path lies in a directory on `PATH`.
fn is_program(ctx: &Context, path: &Path) -> bool {
    let real = |dir: &Path| files::resolve(dir).ok();
    let dirs = UserPaths { env: &ctx.env }.guarded_programs(written(&ctx.scope));
    dirs.iter()
        .any(|dir| path.starts_with(dir) || real(dir).is_some_and(|dir| path.starts_with(dir.path)))
}

/// Whether programs of the person execute the file or read it as settings, and no person gave it or
/// its directory to the Pod.
fn is_obeyed(ctx: &Context, path: &Path) -> bool {
    (UserPaths { env: &ctx.env }).is_obeyed(path, written(&ctx.given))
}

/// Why neither a scope nor an approval can grant this access to a canonical path; `None` if one
/// can. Reads the disk.
pub fn closed(ctx: &Context, path: &Path, need: Permission) -> Option<String> {
    if let Some(secret) = (UserPaths { env: &ctx.env }).secret(path) {
        return Some(files::is_secret(path, &secret));
    }
    files::closes(path, need)
}
