//! A scope that is a linked worktree or a submodule: git works there only with the directory of the repository, which lies
//! elsewhere. The command gets that, if both name each other, without what other working trees use.

use crate::files::{canonical, without_parents};
use crate::sandbox::access::view::{CommandView, Depth, GIT, Grant, Hole, Level, Links, Why};
use crate::sandbox::git::config_file;
use crate::sandbox::git::named_paths::settings as named_settings;
use crate::sandbox::git::repository::{common, path_in, pointed};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The directories of worktrees and of submodules in that of a repository.
const WORKTREES: &str = "worktrees";
const MODULES: &str = "modules";
/// The files of the main working tree.
const OF_MAIN: [&str; 2] = ["HEAD", "index"];

/// The further grants of a view, and what is read-only in them.
pub fn of(view: &CommandView) -> (Vec<Grant>, Vec<Hole>) {
    let (mut grants, mut holes) = (Vec::new(), Vec::new());
    // With the need for git a command gets only what its scope contains.
    if view.repositories.is_empty() {
        return (grants, holes);
    }
    let by_path = view.grants_by_path();
    let tops = view.grants.iter().filter(|grant| {
        (grant.level, grant.depth, grant.links) == (Level::Write, Depth::Whole, Links::Refused)
    });
    for top in tops {
        let Some((repository, own)) = elsewhere(&top.path) else { continue };
        if by_path.level(&repository) == Level::Write {
            continue;
        }
        let shut = |path: PathBuf| Hole { path, level: Level::Read, why: Why::Git };
        if own != repository {
            let others = fs::read_dir(repository.join(WORKTREES)).into_iter().flatten().flatten();
            let others = others.map(|entry| entry.path()).filter(|path| *path != own);
            let main = OF_MAIN.iter().map(|name| repository.join(name));
            holes.extend(others.chain(main).chain([repository.join(MODULES)]).map(shut));
        }
        grants.push(Grant { path: repository, ..top.clone() });
    }
    (grants, holes)
}

/// The directory of git of a working tree, and the one that it shares with all working trees of its repository. `None` if
/// there is none, if it belongs to another user, or if a `.git` names a repository that does not name it, too: a command may
/// have written it.
pub fn repository_of(top: &Path) -> Option<(PathBuf, PathBuf)> {
    let git = top.join(GIT);
    let meta = fs::symlink_metadata(&git).ok()?;
    if !meta.is_dir() {
        return elsewhere(top).map(|(repository, own)| (own, repository));
    }
    let is_whole = fs::symlink_metadata(git.join("commondir")).is_err();
    (is_whole && meta.uid() == geteuid().as_raw()).then(|| (git.clone(), git))
}

/// The directory of the repository of a working tree, and the one in it for this working tree alone.
fn elsewhere(top: &Path) -> Option<(PathBuf, PathBuf)> {
    let git = top.join(GIT);
    if !fs::symlink_metadata(&git).ok()?.is_file() {
        return None;
    }
    let own = pointed(&git)?;
    let repository = match own.join("commondir").symlink_metadata() {
        Ok(_) => {
            let main = common(&own)?;
            let back = canonical(&without_parents(&own.join(path_in(&own.join("gitdir"), b"")?)));
            let is_its = own.parent()? == main.join(WORKTREES) && back.ok()? == git;
            is_its.then_some(main)?
        }
        Err(_) => {
            let inside = own.ancestors().skip(1).any(|dir| dir.ends_with(MODULES));
            let settings = named_settings(&own.join("config"));
            let tree = settings.into_iter().rfind(|s| s.section == "core" && s.name == "worktree");
            let tree = without_parents(&own.join(config_file::path(&tree?.value?)));
            (inside && canonical(&tree).ok()? == top).then(|| own.clone())?
        }
    };
    let is_own = |path: &Path| path.metadata().is_ok_and(|meta| meta.uid() == geteuid().as_raw());
    let all_own = [&git, &own, &repository].into_iter().all(|path| is_own(path));
    all_own.then_some((repository, own))
}
