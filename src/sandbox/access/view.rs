//! The access of one command, computed from a scope without reading the disk.

use crate::protocol::{OutsideAccess, OutsidePath, ScriptHash};
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::limits::CommandLimits;
use crate::sandbox::access::places::{DEVICES, ETC, KERNEL, NAMES, SYSTEM, UserPaths};
use crate::sandbox::access::pod_storage::PodStorage;
use crate::sandbox::access::project::{self, RULES};
use crate::scope::{Permission, Rule, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A need that can be granted to a command beyond its scope.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// The internet and the local network.
    Network,
    /// Changing the hooks and the configuration of a git repository.
    Git,
    /// Paths outside the scope that the call names.
    Outside,
}

impl Need {
    pub const ALL: [Self; 3] = [Self::Network, Self::Git, Self::Outside];

    /// The word a model writes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Git => "git",
            Self::Outside => "outside",
        }
    }
}

/// The access of a command to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Hidden,
    Read,
    Write,
}

/// A path and the access to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub path: PathBuf,
    pub level: Level,
    pub depth: Depth,
    pub links: Links,
}

/// The part of a directory that a grant covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Everything below.
    Whole,
    /// The directory and the files directly in it.
    Flat,
    /// A device, with its ioctls.
    Device,
    /// The whole directory, as a cache of the person: writes go to a layer of the Pod.
    Cache,
}

/// Whether a grant may be reached through symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Links {
    /// A well-known path: its links are followed.
    Followed,
    /// A path from a variable: a link is followed only into directories of the system.
    Kept,
    /// A canonical path: a link there was made later and is refused.
    Refused,
}

/// A path inside a grant with less access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    pub path: PathBuf,
    /// The remaining access; with [`Level::Write`] only moving the path is prevented.
    pub level: Level,
    pub why: Why,
}

/// Why there is a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A deny of the scope: lent to another Pod, or never granted.
    Scope,
    /// A directory of yoi itself.
    Own,
    Secret,
    /// A directory of programs.
    Programs,
    /// A file that git executes or reads as settings.
    Git,
    /// The workspace's settings of yoi, with rules that bind its Pods.
    Rules,
    /// A project file, which an editor or an agent executes or reads as settings when a person opens
    /// the directory.
    Project,
    /// Files that shells, editors and tools of the person execute or read as settings in every
    /// directory.
    Obeyed,
    /// A socket at which another program listens.
    Socket,
    /// Another Pod may write there. Paths in it that this Pod was granted by name stay writable.
    Others,
    /// A command of this Pod in the background writes there.
    Job,
}

impl Why {
    /// The reason, as a person reads it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Scope => "lent to another Pod, or denied to this one",
            Self::Own => "yoi's own",
            Self::Secret => "secret",
            Self::Programs => "a directory on PATH",
            Self::Git => "git executes it or takes its settings from it",
            Self::Rules => "the rules of the workspace",
            Self::Project => "an editor or an agent obeys it without asking you",
            Self::Obeyed => {
                "a shell, an editor or a tool of yours runs it or takes its settings from it"
            }
            Self::Socket => "a program listens at this socket",
            Self::Others => "another Pod writes there",
            Self::Job => "a command in the background writes there",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Off,
    On,
}

/// The sockets of other programs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    Refused,
    /// Those of the command's own: it sees none of other programs.
    Own,
    /// Those named in [`CommandView::outside`]. Before Landlock 9 the command can connect to every
    /// socket that it sees.
    Named,
}

/// The access of one command to this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandView {
    pub grants: Vec<Grant>,
    pub holes: Vec<Hole>,
    /// `.git` directories whose hooks and configuration must not be changed.
    pub repositories: Vec<PathBuf>,
    /// The paths that this command was granted by name, outside its scope. They are in `grants`, too.
    #[serde(default)]
    pub outside: Vec<OutsidePath>,
    /// Names through which links lead to these paths.
    #[serde(default)]
    pub names: Vec<PathBuf>,
    /// The paths that a person gave to the Pod or to one above it for writing: settings of programs there may be
    /// changed.
    #[serde(default)]
    pub given: Vec<PathBuf>,
    /// Scripts that must have this content when the command starts, and keep it while it runs.
    #[serde(default)]
    pub scripts: Vec<ScriptHash>,
    /// The person's home directory, which may itself be reached through a link.
    pub home: Option<PathBuf>,
    pub network: Network,
    pub sockets: Sockets,
    pub isolation: Isolation,
    /// Whether it has no needs, and so may share a network with the other commands of its Pod.
    pub shares_network: bool,
    /// The directory of long output of earlier commands, readable.
    pub outputs: Option<PathBuf>,
    /// The Pod's storage for its commands; without it caches are read-only.
    pub private: Option<PodStorage>,
    /// Whether it runs in the background, and so beside the other commands of its Pod: see [`CommandView::narrowed`].
    #[serde(default)]
    pub in_background: bool,
    /// The canonical directories of its scope that a command in the background may write.
    #[serde(default)]
    pub writes: Vec<PathBuf>,
    /// The new working tree into which a command of yoi itself checks files out: what is guarded there comes from the commit
    /// and stays. That the rest is as committed, too, is for the caller to see.
    #[serde(default)]
    pub checks_out: Option<PathBuf>,
    /// Files in its world that are generated for it, with their contents. Without namespaces it gets none.
    #[serde(default)]
    pub files: Vec<(PathBuf, String)>,
    pub limits: CommandLimits,
}

/// The inputs of a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewInputs<'a> {
    pub scope: &'a Scope,
    /// The scope that a person gave. A model may have chosen `scope` in it.
    pub given: &'a Scope,
    pub person: UserPaths<'a>,
    /// yoi's own directories.
    pub own: &'a [PathBuf],
    /// The needs that were granted beyond the scope.
    pub needs: &'a [Need],
    /// The canonical paths for [`Need::Outside`], and the names with links by which the call names
    /// them.
    pub outside: &'a [OutsidePath],
    pub names: &'a [PathBuf],
    /// The paths that other live Pods may write.
    pub others: &'a [PathBuf],
    /// The directory of long output of earlier commands.
    pub outputs: Option<&'a Path>,
    /// The directory of the Pod's `/tmp` and cache layers.
    pub private: Option<&'a Path>,
    pub isolation: Isolation,
    pub limits: CommandLimits,
}

impl<'a> ViewInputs<'a> {
    /// A command in namespaces with only its scope, which a person gave: no needs, no other Pods, and
    /// no storage of its Pod.
    pub fn new(scope: &'a Scope, person: UserPaths<'a>) -> Self {
        Self {
            scope,
            given: scope,
            person,
            own: &[],
            needs: &[],
            outside: &[],
            names: &[],
            others: &[],
            outputs: None,
            private: None,
            isolation: Isolation::Namespaces,
            limits: CommandLimits::default(),
        }
    }
}

impl Grant {
    /// A canonical directory that this command alone writes.
    pub fn private(path: PathBuf) -> Self {
        Self { path, level: Level::Write, depth: Depth::Whole, links: Links::Refused }
    }

    fn named(self) -> Self {
        Self { links: Links::Kept, ..self }
    }

    fn cache(path: PathBuf) -> Self {
        Self { depth: Depth::Cache, ..Self::system(path, Level::Write) }
    }

    fn system(path: impl Into<PathBuf>, level: Level) -> Self {
        Self { path: path.into(), level, depth: Depth::Whole, links: Links::Followed }
    }

    fn of(rule: &Rule) -> Self {
        let level = match rule.permission {
            Permission::Read => Level::Read,
            Permission::Write => Level::Write,
        };
        let depth = if rule.recursive { Depth::Whole } else { Depth::Flat };
        Self { path: rule.target.clone(), level, depth, links: Links::Refused }
    }

    /// A path outside the scope that was granted by name.
    fn outside(named: &OutsidePath) -> Self {
        let level = match named.access {
            OutsideAccess::Read => Level::Read,
            OutsideAccess::Write | OutsideAccess::Socket => Level::Write,
        };
        Self { path: named.path.clone(), level, depth: Depth::Whole, links: Links::Refused }
    }

    /// Whether the grant covers this path.
    pub fn covers(&self, path: &Path) -> bool {
        match self.depth {
            Depth::Whole | Depth::Cache => path.starts_with(&self.path),
            Depth::Flat => path == self.path || path.parent() == Some(&self.path),
            Depth::Device => path == self.path,
        }
    }
}

impl Hole {
    /// Whether the path is below the hole, and not the hole itself.
    pub fn is_around(&self, path: &Path) -> bool {
        path != self.path && path.starts_with(&self.path)
    }

    /// Whether this hole restricts a grant at this path.
    pub fn restricts(&self, grant: &Path) -> bool {
        let kept = self.why == Why::Others && self.is_around(grant);
        !kept && grant.starts_with(&self.path)
    }
}

/// The grants of a view by their paths, for questions about many paths.
pub struct GrantsByPath<'a>(HashMap<&'a Path, Vec<&'a Grant>>);

impl GrantsByPath<'_> {
    /// Returns the same as [`CommandView::granted`].
    pub fn level(&self, path: &Path) -> Level {
        let around = path.ancestors().filter_map(|dir| self.0.get(dir)).flatten();
        let covering = around.filter(|grant| grant.covers(path));
        covering.map(|grant| grant.level).max().unwrap_or(Level::Hidden)
    }
}

impl CommandView {
    /// The view for commands of a Pod that holds this scope. A child reaches no path that its
    /// parent does not, provided that its scope has the parent's denies, which also apply to
    /// directories of the system.
    pub fn new(around: &ViewInputs) -> Self {
        let granted = |need| around.needs.contains(&need);
        let outside = if granted(Need::Outside) { around.outside } else { &[] };
        let socket = outside.iter().any(|named| named.access == OutsideAccess::Socket);
        let mut view = Self {
            grants: grants(around).chain(outside.iter().map(Grant::outside)).collect(),
            holes: holes(around, outside),
            repositories: Vec::new(),
            outside: outside.to_owned(),
            names: around.names.to_owned(),
            given: written(around.given, &[]).map(Path::to_owned).collect(),
            scripts: Vec::new(),
            home: around.person.home().map(Path::to_owned),
            network: if granted(Need::Network) { Network::On } else { Network::Off },
            sockets: if socket { Sockets::Named } else { Sockets::Refused },
            isolation: around.isolation,
            shares_network: around.needs.is_empty(),
            outputs: around.outputs.map(Path::to_owned),
            private: around.private.map(PodStorage::of),
            in_background: false,
            writes: Vec::new(),
            checks_out: None,
            files: Vec::new(),
            limits: around.limits,
        };
        if !granted(Need::Git) {
            view.repositories = repositories(written(around.scope, outside));
        }
        view
    }

    /// The access of a command in the background: it reads the whole scope, and writes in it only the directories that the
    /// call names. Elsewhere it could change a guarded file that another command of its Pod has just noted as the person's
    /// own; these directories are read-only for the other commands as long as it runs.
    pub fn narrowed(mut self) -> Self {
        if self.in_background {
            let scope = |depth| matches!(depth, Depth::Whole | Depth::Flat);
            for grant in self.grants.iter_mut().filter(|grant| scope(grant.depth)) {
                grant.level = grant.level.min(Level::Read);
            }
            self.grants.extend(self.writes.iter().cloned().map(Grant::private));
            self.repositories = self.writes.iter().map(|dir| dir.join(GIT)).collect();
        }
        self
    }

    /// Whether a directory of programs, a `.yoi` or a project file was itself named with `outside`
    /// for writing.
    pub fn names_for_writing(&self, hole: &Hole) -> bool {
        names(&self.outside, hole)
    }

    pub fn grants_by_path(&self) -> GrantsByPath<'_> {
        let mut all: HashMap<&Path, Vec<&Grant>> = HashMap::new();
        for grant in &self.grants {
            all.entry(&grant.path).or_default().push(grant);
        }
        GrantsByPath(all)
    }

    /// The access to a path by the grants alone.
    pub fn granted(&self, path: &Path) -> Level {
        let covering = self.grants.iter().filter(|grant| grant.covers(path));
        covering.map(|grant| grant.level).max().unwrap_or(Level::Hidden)
    }

    /// The access of the command to this path, without reading the disk.
    pub fn level(&self, path: &Path) -> Level {
        let guarded = self
            .repositories
            .iter()
            .any(|git| GUARDED.iter().any(|name| path.starts_with(git.join(name))));
        let cap = if guarded { Level::Read } else { Level::Write };
        let inside = self.holes.iter().filter(|hole| path.starts_with(&hole.path));
        let (others, holes): (Vec<&Hole>, Vec<&Hole>) =
            inside.partition(|hole| hole.why == Why::Others);
        let worth = |grant: &Grant| {
            let taken = others.iter().filter(|hole| !hole.is_around(&grant.path));
            taken.map(|hole| hole.level).fold(grant.level, Level::min)
        };
        let covering = self.grants.iter().filter(|grant| grant.covers(path));
        let granted = covering.map(worth).max().unwrap_or(Level::Hidden).min(cap);
        holes.iter().map(|hole| hole.level).fold(granted, Level::min)
    }
}

/// The files in `.git` that git executes or reads as settings; `gitdir` is in the directory of a
/// worktree.
pub const GUARDED: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// The directory of a repository, or the file with its path.
pub const GIT: &str = ".git";

fn names(outside: &[OutsidePath], hole: &Hole) -> bool {
    let opens = |named: &Path| match hole.why {
        Why::Programs | Why::Rules | Why::Obeyed => named == hole.path,
        Why::Project => project::opens(named, &hole.path),
        Why::Scope | Why::Own | Why::Secret | Why::Git | Why::Socket | Why::Others | Why::Job => {
            false
        }
    };
    outside.iter().any(|named| named.access == OutsideAccess::Write && opens(&named.path))
}

/// The paths below which a command may write.
fn written<'a>(
    scope: &'a Scope,
    outside: &'a [OutsidePath],
) -> impl Iterator<Item = &'a Path> + Clone {
    let rules = scope.allow.iter().filter(|rule| rule.permission == Permission::Write);
    let named = outside.iter().filter(|named| named.access == OutsideAccess::Write);
    rules.map(|rule| rule.target.as_path()).chain(named.map(|named| named.path.as_path()))
}

fn grants<'a>(around: &'a ViewInputs) -> impl Iterator<Item = Grant> + 'a {
    let person = &around.person;
    let names = if around.needs.contains(&Need::Network) { NAMES } else { &[] };
    let kernel = match around.isolation {
        Isolation::Namespaces => &[],
        Isolation::LandlockOnly => KERNEL,
    };
    let system = [SYSTEM, ETC, names, kernel].into_iter().flatten();
    let system = system.map(|path| Grant::system(*path, Level::Read));
    let devices = DEVICES
        .iter()
        .map(|path| Grant { depth: Depth::Device, ..Grant::system(*path, Level::Write) });
    let read = |paths: Vec<PathBuf>| paths.into_iter().map(|path| Grant::system(path, Level::Read));
    let tools = read(person.readable()).chain(person.caches().into_iter().map(Grant::cache));
    let moved = read(person.readable_by_name())
        .chain(person.caches_by_name().into_iter().map(Grant::cache))
        .chain(read(person.beside_programs()))
        .chain(read(person.programs()))
        .map(Grant::named);
    let scope = around.scope.allow.iter().map(Grant::of);
    system.chain(devices).chain(tools).chain(moved).chain(scope)
}

fn holes(around: &ViewInputs, outside: &[OutsidePath]) -> Vec<Hole> {
    let hole = |path: PathBuf, level, why| Hole { path, level, why };
    // A deny of direct children denies the whole subtree, so the view is never wider than the
    // scope.
    let denied = around.scope.deny.iter().map(|rule| {
        let level = match rule.permission {
            Permission::Read => Level::Hidden,
            Permission::Write => Level::Read,
        };
        hole(rule.target.clone(), level, Why::Scope)
    });
    let own = around.own.iter().map(|dir| hole(dir.clone(), Level::Hidden, Why::Own));
    let secrets = around.person.secrets().into_iter();
    let secrets = secrets.map(|path| hole(path, Level::Hidden, Why::Secret));
    let mut holes: Vec<Hole> = denied.chain(own).chain(secrets).collect();
    let programs = around.person.guarded_programs(written(around.scope, &[])).into_iter();
    let programs = programs.map(|dir| hole(dir, Level::Read, Why::Programs));
    let rules = written(around.scope, outside).flat_map(|dir| around_and_in(dir, RULES));
    let rules = rules.map(|dir| hole(dir, Level::Read, Why::Rules));
    let projects = project::in_and_around(written(around.scope, outside));
    let projects = projects.map(|path| hole(path, Level::Read, Why::Project));
    let given = || written(around.given, &[]);
    let obeyed = around.person.obeyed().into_iter();
    let obeyed = obeyed.filter(|path| !given().any(|root| root.starts_with(path)));
    let obeyed = obeyed.map(|path| hole(path, Level::Read, Why::Obeyed));
    let guarded = programs.chain(rules).chain(projects).chain(obeyed);
    holes.extend(guarded.filter(|hole| !names(outside, hole)));
    // Paths in this Pod's own write scope are excluded: the list of other Pods' paths may be older
    // than the scope.
    let mine = |path: &&PathBuf| around.scope.permission(path) == Some(Permission::Write);
    let others = around.others.iter().filter(|path| !mine(path)).cloned();
    holes.extend(others.map(|path| hole(path, Level::Read, Why::Others)));
    holes
}

/// Every `.git` in a directory that a command may write, its subdirectories and its ancestors: an
/// enclosing repository may have submodules there.
fn repositories<'a>(written: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = written.flat_map(|dir| around_and_in(dir, GIT)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Every `.git` in a directory that a scope may write, its subdirectories and its ancestors.
pub fn repositories_of(scope: &Scope) -> Vec<PathBuf> {
    repositories(written(scope, &[]))
}

/// Whether a scope may write in a repository: only then does [`Need::Git`] grant anything.
pub fn writes_git(scope: &Scope) -> bool {
    let writes = |path: PathBuf| scope.permission(&path) == Some(Permission::Write);
    repositories_of(scope).iter().any(|git| GUARDED.iter().any(|name| writes(git.join(name))))
}

/// The directory and its ancestors that have this name, and this name directly in each of them.
fn around_and_in(dir: &Path, name: &str) -> Vec<PathBuf> {
    let named = |dir: &&Path| dir.file_name().is_some_and(|own| own == name);
    let inner = dir.ancestors().map(|dir| dir.join(name));
    dir.ancestors().filter(named).map(Path::to_owned).chain(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn env() -> BTreeMap<String, String> {
        let pairs = [("HOME", "/h"), ("PATH", "/usr/bin:/h/.cargo/bin:/ws/bin")];
        pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn named(access: OutsideAccess, path: &str) -> OutsidePath {
        OutsidePath { path: path.into(), access }
    }

    fn view(scope: &Scope, needs: &[Need]) -> CommandView {
        view_with(scope, needs, &[])
    }

    fn view_with(scope: &Scope, needs: &[Need], outside: &[OutsidePath]) -> CommandView {
        let (env, own) = (env(), ["/h/.local/share/yoi".into()]);
        let others = &["/ws/c1".into(), "/h/theirs".into(), "/parent".into()];
        let around = ViewInputs::new(scope, UserPaths { env: &env });
        CommandView::new(&ViewInputs { own: &own, needs, outside, others, ..around })
    }

    fn workspace() -> Scope {
        Scope {
            allow: vec![Rule::new("/ws", Permission::Write)],
            deny: vec![Rule::new("/ws/lent", Permission::Write)],
        }
    }

    #[track_caller]
    fn levels(view: &CommandView, expected: &[(&str, Level)]) {
        for (path, level) in expected {
            assert_eq!(view.level(Path::new(path)), *level, "{path}");
        }
    }

    #[test]
    fn a_command_reads_the_system_writes_its_scope_and_sees_nothing_else() {
        use Level::{Hidden, Read, Write};
        let expected = [
            ("/ws/src/main.rs", Write),
            ("/ws/lent/a", Read),
            ("/ws/.git/index", Write),
            ("/ws/.git/hooks/pre-commit", Read),
            ("/ws/.git/config", Read),
            ("/ws/bin/tool", Read),
            ("/usr/bin/bash", Read),
            ("/dev/null", Write),
            ("/h/.cargo/bin/cargo", Read),
            ("/h/.cargo/registry/x", Write),
            ("/h/.cargo/credentials.toml", Hidden),
            ("/h/.ssh/id_ed25519", Hidden),
            ("/h/documents", Hidden),
            ("/h/.local/share/yoi/yoi.db", Hidden),
            ("/etc/passwd", Read),
            ("/etc/shadow", Hidden),
            ("/tmp/x", Hidden),
        ];
        levels(&view(&workspace(), &[]), &expected);
    }

    #[test]
    fn a_need_opens_only_what_it_names() {
        use Level::{Hidden, Read, Write};
        let git = view(&workspace(), &[Need::Git]);
        levels(&git, &[("/ws/.git/hooks/x", Write), ("/h/documents", Hidden)]);
        assert_eq!((git.network, git.sockets), (Network::Off, Sockets::Refused));
        let network = view(&workspace(), &[Need::Network]);
        levels(&network, &[("/ws/.git/hooks/x", Read), ("/h/documents", Hidden)]);
        assert_eq!((network.network, network.sockets), (Network::On, Sockets::Refused));
        let bare = view(&workspace(), &[Need::Outside]);
        levels(&bare, &[("/h/documents", Hidden)]);
        assert_eq!((bare.network, bare.sockets), (Network::Off, Sockets::Refused));
    }

    #[test]
    fn only_the_paths_that_outside_names_are_opened_and_none_that_is_shut() {
        use Level::{Hidden, Read, Write};
        use OutsideAccess as Access;
        let paths = [
            named(Access::Write, "/h"),
            named(Access::Read, "/srv/data"),
            named(Access::Write, "/opt/tool/bin"),
        ];
        let outside = view_with(&workspace(), &[Need::Outside], &paths);
        let expected = [
            ("/h/documents", Write),
            ("/h/.ssh/config", Hidden),
            ("/h/.local/share/yoi/x", Hidden),
            ("/h/.cargo/bin/x", Read),
            ("/h/repo/.git/hooks/x", Write),
            ("/h/.git/hooks/x", Read),
            ("/h/.yoi/config.toml", Read),
            ("/srv/data/a", Read),
            ("/srv/data-beside", Hidden),
            ("/srv", Hidden),
            ("/ws/lent/a", Read),
            ("/ws/bin/tool", Read),
            ("/ws/.git/hooks/x", Read),
        ];
        levels(&outside, &expected);
        assert_eq!((outside.network, outside.sockets), (Network::Off, Sockets::Refused));
        levels(&view_with(&workspace(), &[], &paths), &[("/srv/data/a", Hidden)]);
        let programs = [named(Access::Write, "/ws/bin"), named(Access::Write, "/ws/.yoi")];
        let opened = view_with(&workspace(), &[Need::Outside], &programs);
        levels(&opened, &[("/ws/bin/tool", Write), ("/ws/.yoi/config.toml", Write)]);
        levels(&opened, &[("/h/.cargo/bin/x", Read)]);
    }

    #[test]
    fn a_socket_is_open_only_where_it_is_named() {
        let socket = [named(OutsideAccess::Socket, "/run/docker.sock")];
        let view = view_with(&workspace(), &[Need::Outside], &socket);
        assert_eq!(view.sockets, Sockets::Named);
        levels(&view, &[("/run/docker.sock", Level::Write), ("/run/other.sock", Level::Hidden)]);
    }

    #[test]
    fn a_path_that_another_pod_writes_is_read_only_except_a_granted_part() {
        let scope = Scope::new(vec![Rule::new("/parent/mine", Permission::Write)]);
        let expected = [
            ("/h/documents", Level::Write),
            ("/h/theirs/a", Level::Read),
            ("/parent/a", Level::Read),
            ("/parent/mine/a", Level::Write),
            ("/parent/mine/.git/hooks/a", Level::Read),
        ];
        let paths = ["/h", "/parent"].map(|path| named(OutsideAccess::Write, path));
        levels(&view_with(&scope, &[Need::Outside], &paths), &expected);
    }

    #[test]
    fn a_scope_inside_git_does_not_open_what_git_executes() {
        for target in ["/ws/.git", "/ws/.git/hooks", "/ws/.git/hooks/pre-commit"] {
            let scope = Scope::new(vec![Rule::new(target, Permission::Write)]);
            levels(&view(&scope, &[]), &[("/ws/.git/hooks/pre-commit", Level::Read)]);
        }
    }

    #[test]
    fn a_cage_survives_the_way_to_the_helper() {
        let view = view(&workspace(), &[Need::Network]);
        let text = serde_json::to_string(&view).unwrap();
        assert_eq!(serde_json::from_str::<CommandView>(&text).unwrap(), view);
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        let names =
            vec!["ws", "h", ".git", "hooks", "bin", "a", ".ssh", ".opencode", ".zed", "tasks.json"];
        prop::collection::vec(prop::sample::select(names), 0..4)
            .prop_map(|names| names.iter().fold(PathBuf::from("/"), |path, name| path.join(name)))
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let permission = prop::sample::select(vec![Permission::Read, Permission::Write]);
        (path(), permission, any::<bool>()).prop_map(|(target, permission, recursive)| Rule {
            target,
            permission,
            recursive,
        })
    }

    proptest! {
        #[test]
        fn a_child_gets_nowhere_its_parent_does_not(
            allow in prop::collection::vec(rule(), 1..4),
            deny in prop::collection::vec(rule(), 0..3),
            asked in prop::collection::vec(rule(), 1..4),
            path in path(),
        ) {
            let parent = Scope { allow, deny };
            let handed = asked.into_iter().filter(|rule| parent.covers(rule)).collect();
            let child = Scope { allow: handed, deny: parent.deny.clone() };
            prop_assert!(view(&child, &[]).level(&path) <= view(&parent, &[]).level(&path));
        }

        #[test]
        fn a_scope_gives_no_more_to_commands_than_to_file_tools(
            allow in prop::collection::vec(rule(), 0..4),
            deny in prop::collection::vec(rule(), 0..3),
            path in path(),
        ) {
            let nothing = view(&Scope::default(), &[]).level(&path);
            let scope = Scope { allow, deny };
            let held = match scope.permission(&path) {
                None => Level::Hidden,
                Some(Permission::Read) => Level::Read,
                Some(Permission::Write) => Level::Write,
            };
            prop_assert!(view(&scope, &[]).level(&path) <= held.max(nothing));
            let view = view(&scope, &[]);
            prop_assert_eq!(view.grants_by_path().level(&path), view.granted(&path));
        }
    }
}
