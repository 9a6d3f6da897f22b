//! What git would start in a repository that was not there before a command: programs of its configuration and its
//! hooks. Whoever makes a repository may set anything in it, so all but harmless settings count.

use crate::files::{Limit, WorkspaceFiles, canonical, without_parents};
use crate::sandbox::guard::{HOOKS, path_in};
use crate::sandbox::{gitfile, gitlinks, ways};
use crate::text::SafeText;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The settings, without the name of a remote, a branch or a submodule, that name no program and no other file. git
/// writes most of them itself (`init`, `clone`, `submodule add`, `remote add`, `branch -u`).
const HARMLESS: [&str; 42] = [
    "advice.detachedhead",
    "branch.description",
    "branch.merge",
    "branch.pushremote",
    "branch.rebase",
    "branch.remote",
    "color.ui",
    "commit.gpgsign",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.precomposeunicode",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.symlinks",
    "core.worktree",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.refstorage",
    "fetch.prune",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "merge.conflictstyle",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "remote.fetch",
    "remote.pushurl",
    "remote.tagopt",
    "remote.url",
    "rerere.enabled",
    "submodule.active",
    "submodule.branch",
    "submodule.url",
    "user.email",
    "user.name",
];
/// The largest configuration that is read, in bytes.
const CONFIG: u64 = 256 * 1024;
/// A hook with this ending is an example that git does not run.
const SAMPLE: &str = ".sample";
/// The deepest nesting of repositories that is looked at.
const DEPTH: usize = 8;
/// The most characters of a name that are shown.
const SHOWN: usize = 100;

/// A search for programs in new repositories.
pub struct Programs<'a> {
    /// The directories of repositories that git entered before: their configurations and hooks are guarded.
    entered: &'a BTreeSet<PathBuf>,
    /// Each `.git` that was looked at.
    seen: BTreeSet<PathBuf>,
}

impl<'a> Programs<'a> {
    pub fn new(entered: &'a BTreeSet<PathBuf>) -> Self {
        Self { entered, seen: BTreeSet::new() }
    }

    /// Says what git would start when it enters this `.git`, or one that git enters from there. `None` if it is missing
    /// or starts nothing.
    pub fn of(&mut self, git: &Path) -> Option<String> {
        self.seen.clear();
        self.within(git, DEPTH)
    }

    fn within(&mut self, git: &Path, depth: usize) -> Option<String> {
        if ways::is_missing(git) || !self.seen.insert(git.to_owned()) {
            return None;
        }
        let shown = git.display();
        let Some(depth) = depth.checked_sub(1) else {
            return Some(format!("{shown} is nested too deep to be looked at"));
        };
        let Some((dir, top)) = repository(git) else {
            return Some(format!("{shown} cannot be looked at"));
        };
        let common = common(&dir);
        if !self.entered.contains(&common)
            && let Some(what) = setting(&common, &dir, &top).or_else(|| hook(&common))
        {
            return Some(format!("{shown} {what}"));
        }
        gitlinks::of(&dir, &top).iter().find_map(|git| self.within(git, depth))
    }
}

/// The names of the remotes in the configuration of the repository that a `.git` is or names.
pub fn remotes(git: &Path) -> Vec<String> {
    let Some(common) = configured(git) else { return Vec::new() };
    let bytes = WorkspaceFiles::of(&common).read(&common.join("config"), Limit::whole(CONFIG));
    let settings = bytes.ok().and_then(|found| gitfile::parse_whole(&found.bytes));
    let settings = settings.unwrap_or_default().into_iter();
    let named = settings.filter(|s| s.section == "remote" && s.name == "url" && s.value.is_some());
    named.filter_map(|setting| setting.subsection).collect()
}

/// The directory with the configuration of the repository that a `.git` is or names.
pub fn configured(git: &Path) -> Option<PathBuf> {
    repository(git).map(|(dir, _)| common(&dir))
}

fn common(dir: &Path) -> PathBuf {
    let common = path_in(&dir.join("commondir"), b"");
    let common = common.and_then(|path| canonical(&dir.join(path)).ok());
    common.unwrap_or_else(|| dir.to_owned())
}

/// The directory of the repository that a `.git` is or names, and its working tree.
fn repository(git: &Path) -> Option<(PathBuf, PathBuf)> {
    let (real, top) = (canonical(git).ok()?, git.parent()?);
    if real.is_dir() {
        return Some((real, top.to_owned()));
    }
    let target = path_in(&real, b"gitdir: ")?;
    let dir = canonical(&real.parent()?.join(target)).ok()?;
    Some((dir, top.to_owned()))
}

/// The first setting of a repository that may start a program or leads to other settings.
fn setting(common: &Path, dir: &Path, top: &Path) -> Option<String> {
    let file = common.join("config");
    if ways::is_missing(&file) {
        return None;
    }
    let unreadable = || Some("has a configuration that cannot be read".to_owned());
    if file.is_symlink() {
        return unreadable();
    }
    let bytes = WorkspaceFiles::of(common).read(&file, Limit::whole(CONFIG));
    let settings = bytes.ok().and_then(|found| gitfile::parse_whole(&found.bytes));
    let Some(settings) = settings else { return unreadable() };
    settings.into_iter().find_map(|setting| {
        let key = format!("{}.{}", setting.section, setting.name);
        let elsewhere = key == "core.worktree"
            && setting.value.is_none_or(|tree| {
                let tree = without_parents(&dir.join(gitfile::path(&tree)));
                canonical(&tree).ok() != canonical(top).ok()
            });
        let is_harmless = HARMLESS.contains(&&*key) && !elsewhere;
        (!is_harmless).then(|| format!("sets {}", SafeText::brief(&key, SHOWN)))
    })
}

/// A hook of a repository.
fn hook(common: &Path) -> Option<String> {
    let dir = common.join(HOOKS);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) if !dir.is_symlink() => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        _ => return Some("has hooks that cannot be looked at".to_owned()),
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    let name = names.find(|name| !name.to_string_lossy().ends_with(SAMPLE))?;
    Some(format!("has the hook {}", SafeText::brief(name.to_string_lossy(), SHOWN)))
}
