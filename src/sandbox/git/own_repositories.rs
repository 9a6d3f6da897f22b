//! The repositories that commands of a Pod made, by what stays the same when they are moved. Everything in them is the
//! Pod's to change, but for what starts a program.

use crate::files::{canonical, without_parents};
use crate::sandbox::access::directory;
use crate::sandbox::access::pod_storage::PodStorage;
use crate::sandbox::access::view::GIT;
use crate::sandbox::git::config_file::{self, Setting};
use crate::sandbox::git::named_paths;
use crate::sandbox::git::repository::{HOOKS, common, repository};
use crate::text::SafeText;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The repositories that a file lists.
#[derive(Debug, Default)]
pub struct OwnRepositories {
    file: Option<PathBuf>,
    known: HashSet<Identity>,
}

/// The directory of a repository on this machine: device, inode, and the time when it was made, in nanoseconds, because
/// the number of a removed inode is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(u64, u64, u128);

impl Identity {
    /// `None` if there is no directory at this path, or if it leads through a link: a command may have put that there for
    /// another directory.
    pub fn of(dir: &Path) -> Option<Self> {
        let meta = fs::File::from(directory::open(dir).ok()?).metadata().ok()?;
        let born = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some(Self(meta.dev(), meta.ino(), born.map_or(0, |born| born.as_nanos())))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let own = Self(
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
        );
        words.next().is_none().then_some(own)
    }
}

fn listed(file: Option<&Path>) -> HashSet<Identity> {
    let text = file.and_then(|file| fs::read_to_string(file).ok());
    text.unwrap_or_default().lines().filter_map(Identity::parse).collect()
}

impl OwnRepositories {
    /// Those of the Pod with this storage; without one it has none.
    pub fn kept(storage: Option<&PodStorage>) -> Self {
        let file = storage.map(PodStorage::own_repositories);
        let known = listed(file.as_deref());
        Self { file, known }
    }

    pub fn has(&self, dir: &Path) -> bool {
        Identity::of(dir).is_some_and(|own| self.known.contains(&own))
    }

    /// Adds those that the command made. Commands that run at the same time add theirs to the same file.
    pub fn add<'a>(&self, dirs: impl Iterator<Item = &'a PathBuf>) {
        // Some may have been added since this was read.
        let known = listed(self.file.as_deref());
        let fresh = dirs.filter_map(|dir| Identity::of(dir)).filter(|own| !known.contains(own));
        let lines: String = fresh.map(|Identity(d, i, born)| format!("{d} {i} {born}\n")).collect();
        let Some(file) = self.file.as_ref().filter(|_| !lines.is_empty()) else { return };
        // Without namespaces no command made the directory of the storage.
        let dir =
            file.parent().map(|dir| DirBuilder::new().recursive(true).mode(0o700).create(dir));
        let open = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        // A repository that is not listed is guarded as one of the person's.
        let _ = (dir, open.and_then(|mut file| file.write_all(lines.as_bytes())));
    }
}

/// Settings that a Pod may make, each as its section and its name. None of them names a program or another file, and none
/// changes what a later command of a person deletes, sends or checks. Some of them git writes itself (`init`, `clone`,
/// `submodule add`, `remote add`, `branch -u`).
const HARMLESS: [&str; 147] = [
    "am.threeway",
    "apply.ignorewhitespace",
    "apply.whitespace",
    "blame.date",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.description",
    "branch.merge",
    "branch.pushremote",
    "branch.rebase",
    "branch.remote",
    "branch.sort",
    "checkout.guess",
    "color.branch",
    "color.diff",
    "color.status",
    "color.ui",
    "column.ui",
    "commit.cleanup",
    "commit.gpgsign",
    "commit.status",
    "commit.verbose",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.commitgraph",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.fscache",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.loosecompression",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.untrackedcache",
    "core.warnambiguousrefs",
    "core.whitespace",
    "core.worktree",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.relative",
    "diff.renamelimit",
    "diff.renames",
    "diff.submodule",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "feature.experimental",
    "feature.manyfiles",
    "fetch.parallel",
    "fetch.prune",
    "fetch.recursesubmodules",
    "fetch.unpacklimit",
    "fetch.writecommitgraph",
    "gc.auto",
    "gc.autodetach",
    "gc.autopacklimit",
    "gc.writecommitgraph",
    "http.postbuffer",
    "i18n.commitencoding",
    "i18n.logoutputencoding",
    "index.skiphash",
    "index.sparse",
    "index.threads",
    "index.version",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "maintenance.auto",
    "maintenance.strategy",
    "merge.autostash",
    "merge.conflictstyle",
    "merge.directoryrenames",
    "merge.ff",
    "merge.renamelimit",
    "merge.renames",
    "merge.renormalize",
    "merge.stat",
    "pack.compression",
    "pack.depth",
    "pack.threads",
    "pack.usebitmaps",
    "pack.usesparse",
    "pack.window",
    "pack.windowmemory",
    "pack.writereverseindex",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.useforceifincludes",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.missingcommitscheck",
    "rebase.rebasemerges",
    "rebase.stat",
    "receive.autogc",
    "remote.fetch",
    "remote.prune",
    "remote.pushurl",
    "remote.skipdefaultupdate",
    "remote.skipfetchall",
    "remote.tagopt",
    "remote.url",
    "rerere.enabled",
    "stash.showincludeuntracked",
    "stash.showpatch",
    "stash.showstat",
    "status.aheadbehind",
    "status.branch",
    "status.short",
    "status.showstash",
    "status.showuntrackedfiles",
    "status.submodulesummary",
    "submodule.active",
    "submodule.branch",
    "submodule.fetchjobs",
    "submodule.ignore",
    "submodule.recurse",
    "submodule.url",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "versionsort.suffix",
    "worktree.guessremote",
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
        if directory::is_missing(&path) {
            return None;
        }
        let leads_well = |main: PathBuf| !(self.writes)(&main) || (self.is_known)(&main);
        let is_well = has_one_name(&path) && common(dir).is_some_and(leads_well);
        let what = "leads git to a directory that is no repository".to_owned();
        (!is_well).then_some(Fault { path, what, without: None })
    }

    /// Settings that may start a program or lead to other settings.
    fn in_settings(&self, dir: &Path, path: &Path) -> Option<Fault> {
        if directory::is_missing(path) {
            return None;
        }
        let fault = |what: String, without| Some(Fault { path: path.to_owned(), what, without });
        let settings = settings(path);
        let Some(settings) = settings.filter(|_| has_one_name(path)) else {
            return fault("cannot be read, or has several names".into(), None);
        };
        let is_well = |setting: &Setting| {
            let key = key(setting);
            is_harmless(&key)
                && (key != "core.worktree" || self.is_inside(dir, setting))
                && !(ADDRESSES.contains(&&*key) && starts_program(setting))
                && !setting.subsection.as_deref().is_some_and(is_option_or_program)
        };
        let bad: Vec<String> =
            settings.iter().filter(|setting| !is_well(setting)).map(key).collect();
        if bad.is_empty() {
            return None;
        }
        let good: Vec<Setting> = settings.iter().filter(|s| is_well(s)).cloned().collect();
        let names = bad.iter().take(MOST).map(|key| SafeText::brief(key, SHOWN).into_string());
        let names = names.collect::<Vec<_>>().join(", ");
        fault(format!("sets {names}"), Some(config_file::bytes_of(&good)))
    }

    /// Whether a working tree that a repository names lies where the command may write anyway.
    fn is_inside(&self, dir: &Path, setting: &Setting) -> bool {
        let tree =
            setting.value.as_ref().map(|tree| without_parents(&dir.join(config_file::path(tree))));
        tree.is_some_and(|tree| {
            let real = canonical(&tree);
            directory::is_missing(&tree) && (self.writes)(&tree)
                || real.is_ok_and(|real| (self.writes)(&real))
        })
    }
}

/// Whether the settings in `after` are those in `before` but for ones that start no program.
pub fn only_adds_harmless(before: &[u8], after: &[u8]) -> bool {
    let (Some(before), Some(after)) =
        (config_file::parse_whole(before), config_file::parse_whole(after))
    else {
        return false;
    };
    // A remote that was there keeps its address.
    let remotes: Vec<_> =
        before.iter().filter(|s| s.section == "remote").map(|s| s.subsection.clone()).collect();
    let counts = |setting: &&Setting| {
        let key = key(setting);
        let of_known = setting.section == "remote" && remotes.contains(&setting.subsection);
        let is_named = setting.subsection.as_deref().is_some_and(is_option_or_program);
        !is_harmless(&key) || is_named || key == "core.worktree" || of_known
    };
    before.iter().filter(counts).eq(after.iter().filter(counts))
}

/// Whether an address names a transport that is a program, or an option.
fn starts_program(setting: &Setting) -> bool {
    setting.value.as_deref().is_some_and(is_option_or_program)
}

/// Where the hooks of the repository around a directory lead that a command does not see: the directory that its
/// `core.hooksPath` names, and the ends of links among its hooks. These places are not looked at, and no repository that the
/// command does not see.
pub fn hooks_out_of_sight(
    dir: &Path,
    home: &Path,
    is_seen: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut around = dir.ancestors().map(|dir| (dir, dir.join(GIT)));
    let around = around.find(|(_, git)| is_seen(git) && !directory::is_missing(git));
    let own = around.and_then(|(tree, git)| Some((tree, repository(&git)?)));
    let Some((tree, own)) = own.filter(|(_, own)| is_seen(own)) else { return Vec::new() };
    let main = common(&own).unwrap_or(own);
    if !is_seen(&main) {
        return Vec::new();
    }
    let mut settings = settings(&main.join("config")).unwrap_or_default().into_iter().rev();
    let named = settings.find(|s| s.section == "core" && s.name == "hookspath");
    let places: Vec<PathBuf> = match named.and_then(|setting| setting.value) {
        Some(path) => vec![named_paths::place(tree, Some(home), &path)],
        None => {
            let hooks = main.join(HOOKS);
            let names = directory::entries(&hooks).into_iter().flat_map(hook_names).take(MOST);
            let links = names.filter_map(|name| fs::read_link(hooks.join(name)).ok());
            links.map(|link| without_parents(&hooks.join(link))).collect()
        }
    };
    places.into_iter().filter(|path| !is_seen(path)).collect()
}

/// Whether git would take an address, or the name of a remote, for an option or for a transport that is a program.
fn is_option_or_program(name: &str) -> bool {
    name.contains("::") || name.starts_with('-')
}

/// Whether a path is a file without another name, by which another Pod could change it later.
fn has_one_name(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.nlink() == 1)
}

/// Whether a setting names no program and no other file; advice is only text.
fn is_harmless(key: &str) -> bool {
    HARMLESS.contains(&key) || key.starts_with("advice.")
}

fn key(setting: &Setting) -> String {
    format!("{}.{}", setting.section, setting.name)
}

fn settings(file: &Path) -> Option<Vec<Setting>> {
    config_file::parse_whole(&directory::read(file, CONFIG)?)
}

/// The hooks of a repository that are no samples.
fn hooks(dir: &Path) -> Vec<Fault> {
    let hooks = dir.join(HOOKS);
    let fault = |path, what: &str| Fault { path, what: what.to_owned(), without: None };
    let entries = match directory::entries(&hooks) {
        Ok(entries) if !hooks.is_symlink() => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !hooks.is_symlink() => {
            return Vec::new();
        }
        _ => return vec![fault(hooks, "is no plain directory of hooks")],
    };
    let all: Vec<_> = hook_names(entries).take(MOST + 1).collect();
    if all.len() > MOST {
        return vec![fault(hooks, "has many hooks")];
    }
    all.into_iter().map(|name| fault(hooks.join(name), "is a hook, which git runs")).collect()
}

/// The names in a directory of hooks, without samples.
fn hook_names(entries: fs::ReadDir) -> impl Iterator<Item = OsString> {
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| !name.to_string_lossy().ends_with(SAMPLE))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_by_its_own_path_and_not_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("theirs/.git")).unwrap();
        std::os::unix::fs::symlink("theirs", root.join("own")).unwrap();
        std::os::unix::fs::symlink("theirs/.git", root.join("git")).unwrap();
        assert!(Identity::of(&root.join("theirs/.git")).is_some());
        for path in ["own/.git", "git", "none"] {
            assert_eq!(Identity::of(&root.join(path)), None, "{path}");
        }
    }
}
