//! What git would start in a repository that a command made: programs of its configuration and its hooks. Whoever makes
//! a repository may set anything in it, so all but harmless settings count.

use crate::files::{canonical, without_parents};
use crate::sandbox::gitfile::{self, Setting};
use crate::sandbox::guard::{HOOKS, common, repository};
use crate::sandbox::ways;
use crate::text::SafeText;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The settings, without the name of a remote, a branch or a submodule, that name no program and no other file. git
/// writes most of them itself (`init`, `clone`, `submodule add`, `remote add`, `branch -u`).
const HARMLESS: [&str; 47] = [
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
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.worktree",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "fetch.prune",
    "index.sparse",
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
/// Those of them that are addresses of other repositories.
const ADDRESSES: [&str; 5] =
    ["branch.pushremote", "branch.remote", "remote.pushurl", "remote.url", "submodule.url"];
/// The largest configuration that is read, in bytes.
const CONFIG: u64 = 256 * 1024;
/// The files of a repository with its settings.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
/// A hook with this ending is an example that git does not run.
const SAMPLE: &str = ".sample";
/// The most characters of a name that are shown, and the most names and hooks.
const SHOWN: usize = 100;
const MOST: usize = 20;

/// What may be in a repository of the Pod depends on where a command may write, and on the other repositories there.
pub struct Repositories<'a> {
    pub writes: &'a dyn Fn(&Path) -> bool,
    pub is_known: &'a dyn Fn(&Path) -> bool,
}

/// Something in a repository by which git starts a program or obeys other files.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file that git obeys.
    pub path: PathBuf,
    /// What is wrong with it, in words that follow its path.
    pub what: String,
    /// Its content without the fault, if it can stay.
    pub without: Option<Vec<u8>>,
}

impl Repositories<'_> {
    /// The faults of the repository in this directory.
    pub fn faults(&self, dir: &Path) -> Vec<Fault> {
        let settings = SETTINGS.iter().filter_map(|name| self.in_settings(dir, &dir.join(name)));
        settings.chain(hooks(dir)).chain(self.elsewhere(dir)).collect()
    }

    /// A main repository that a look would not find as one.
    fn elsewhere(&self, dir: &Path) -> Option<Fault> {
        let path = dir.join("commondir");
        if ways::is_missing(&path) {
            return None;
        }
        let leads_well = |main: PathBuf| !(self.writes)(&main) || (self.is_known)(&main);
        let is_well = has_one_name(&path) && common(dir).is_some_and(leads_well);
        let what = "leads git to a directory that is no repository".to_owned();
        (!is_well).then_some(Fault { path, what, without: None })
    }

    /// Settings that may start a program or lead to other settings.
    fn in_settings(&self, dir: &Path, path: &Path) -> Option<Fault> {
        if ways::is_missing(path) {
            return None;
        }
        let fault = |what: String, without| Some(Fault { path: path.to_owned(), what, without });
        let settings = settings(path);
        let Some(settings) = settings.filter(|_| has_one_name(path)) else {
            return fault("cannot be read, or has several names".into(), None);
        };
        let is_well = |setting: &Setting| {
            let key = key(setting);
            HARMLESS.contains(&&*key)
                && (key != "core.worktree" || self.is_inside(dir, setting))
                && !(ADDRESSES.contains(&&*key) && starts_program(setting))
        };
        let bad: Vec<String> =
            settings.iter().filter(|setting| !is_well(setting)).map(key).collect();
        if bad.is_empty() {
            return None;
        }
        let good: Vec<Setting> = settings.into_iter().filter(is_well).collect();
        let names = bad.iter().take(MOST).map(|key| SafeText::brief(key, SHOWN).into_string());
        let names = names.collect::<Vec<_>>().join(", ");
        fault(format!("sets {names}"), Some(gitfile::bytes_of(&good)))
    }

    /// Whether a working tree that a repository names lies where the command may write anyway.
    fn is_inside(&self, dir: &Path, setting: &Setting) -> bool {
        let tree =
            setting.value.as_ref().map(|tree| without_parents(&dir.join(gitfile::path(tree))));
        tree.is_some_and(|tree| {
            let real = canonical(&tree);
            ways::is_missing(&tree) && (self.writes)(&tree)
                || real.is_ok_and(|real| (self.writes)(&real))
        })
    }
}

/// Whether the settings in `after` are those in `before` but for ones that start no program.
pub fn only_adds_harmless(before: &[u8], after: &[u8]) -> bool {
    let (Some(before), Some(after)) = (gitfile::parse_whole(before), gitfile::parse_whole(after))
    else {
        return false;
    };
    // A remote that was there keeps its address.
    let remotes: Vec<_> =
        before.iter().filter(|s| s.section == "remote").map(|s| s.subsection.clone()).collect();
    let counts = |setting: &&Setting| {
        let key = key(setting);
        let of_known = setting.section == "remote" && remotes.contains(&setting.subsection);
        !HARMLESS.contains(&&*key) || key == "core.worktree" || of_known
    };
    before.iter().filter(counts).eq(after.iter().filter(counts))
}

/// Whether an address names a transport that is a program, or an option.
fn starts_program(setting: &Setting) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    value.contains("::") || value.starts_with('-')
}

/// Whether a path is a file without another name, by which another Pod could change it later.
fn has_one_name(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.nlink() == 1)
}

fn key(setting: &Setting) -> String {
    format!("{}.{}", setting.section, setting.name)
}

fn settings(file: &Path) -> Option<Vec<Setting>> {
    gitfile::parse_whole(&ways::read(file, CONFIG)?)
}

/// The hooks of a repository that are no samples.
fn hooks(dir: &Path) -> Vec<Fault> {
    let hooks = dir.join(HOOKS);
    let fault = |path, what: &str| Fault { path, what: what.to_owned(), without: None };
    let entries = match ways::entries(&hooks) {
        Ok(entries) if !hooks.is_symlink() => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !hooks.is_symlink() => {
            return Vec::new();
        }
        _ => return vec![fault(hooks, "is no plain directory of hooks")],
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let all: Vec<_> =
        names.filter(|name| !name.to_string_lossy().ends_with(SAMPLE)).take(MOST + 1).collect();
    if all.len() > MOST {
        return vec![fault(hooks, "has many hooks")];
    }
    all.into_iter().map(|name| fault(hooks.join(name), "is a hook, which git runs")).collect()
}

/// The names of the remotes in the configuration of the repository that a `.git` is or names.
pub fn remotes(git: &Path) -> Vec<String> {
    let Some(dir) = repository(git) else { return Vec::new() };
    let settings = settings(&common(&dir).unwrap_or(dir).join("config")).unwrap_or_default();
    let named = settings
        .into_iter()
        .filter(|s| s.section == "remote" && s.name == "url" && s.value.is_some());
    named.filter_map(|setting| setting.subsection).collect()
}
