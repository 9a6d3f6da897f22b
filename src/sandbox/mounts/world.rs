//! The file system of a command: the source of each path. It is computed from a view and the state
//! of this disk; other paths do not exist for the command.

use crate::files::{Limit, WorkspaceFiles, canonical, led_to, links_on};
use crate::protocol::ScriptHash;
use crate::sandbox::access::path_json::AnyPath;
use crate::sandbox::access::places::{UserPaths, of_the_system};
use crate::sandbox::access::pod_storage::PodStorage;
use crate::sandbox::access::resolve::some_pod_writes;
use crate::sandbox::access::scripts::{self, Copy};
use crate::sandbox::access::view::{CommandView, Depth, Grant, Hole, Level, Links, Network};
use crate::sandbox::mounts::git_settings;
use crate::sandbox::mounts::plan::{self, Kind, PathRule, Right};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The directory for temporary files, and the one used when the scope contains `/tmp`.
const TMP: &str = "/tmp";
const OWN_TMP: &str = "/own-tmp";
/// The directory for temporary files that outlast a start of the machine.
const VAR_TMP: &str = "/var/tmp";
/// Where old programs look the mounts up.
const MOUNTS: &str = "/etc/mtab";
/// The files of git's settings below the home directory, and the most files that they include.
const GIT: [&str; 2] = [".gitconfig", ".config/git/config"];
const INCLUDED: usize = 20;
/// Where the machine looks names up, and the line for the names of hosts.
const NAME_SERVICES: &str = "/etc/nsswitch.conf";
const HOSTS: &str = "hosts:";
const HOSTS_IN_FILES: &str = "hosts: files";
/// The size of the directory of a user's programs that run, in MiB: for sockets and locks.
const RUNTIME_MIB: u32 = 16;
/// Bytes of one of them.
const SETTINGS: u64 = 256 * 1024;
/// The most files of a directory that is granted without its subdirectories.
const FLAT: usize = 2000;
/// The most entries of a directory that are shown one by one, because a secret file lies among them.
const AROUND: usize = 10_000;
/// The bytes of a page, the unit of memory of a tmpfs.
const PAGE: u64 = 4096;

/// The content of a path in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A recursive bind mount of the same path outside.
    Bind(Level),
    /// A bind mount of the directory on itself, so that it cannot be renamed together with a hole in it.
    Pinned,
    /// An empty directory, or a file that cannot be opened.
    Hidden,
    /// A directory that contains only the parts below it; nothing else can be made in it.
    Directory,
    /// A writable directory in memory, of this size in MiB.
    Memory(u32),
    /// A cache of the person below a layer of the Pod, which receives all writes.
    Layered,
    /// The Pod's directory of temporary files.
    Kept,
    /// An unchangeable copy of an approved script.
    Script,
    Device,
    /// A devpts of the command's own.
    Terminals,
    /// A `/proc` with the command's own processes.
    Processes,
}

/// All parts by canonical path, and the symbolic links to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenWorld", into = "WrittenWorld")]
pub struct World {
    pub parts: BTreeMap<PathBuf, Part>,
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// The generated files of this world and their contents.
    pub files: BTreeMap<PathBuf, String>,
    /// The compared content of the approved scripts.
    pub scripts: BTreeMap<PathBuf, Copy>,
    /// The directory of temporary files.
    pub tmp: PathBuf,
    /// The Pod's storage for its commands.
    pub private: Option<PodStorage>,
    /// Legitimate actions that the world prevents.
    pub cost: Vec<String>,
}

/// The form of a world in JSON, where paths cannot be keys.
#[derive(Serialize, Deserialize)]
struct WrittenWorld {
    parts: Vec<(AnyPath, Part)>,
    links: Vec<(AnyPath, AnyPath)>,
    files: Vec<(AnyPath, String)>,
    tmp: AnyPath,
    private: Option<PodStorage>,
    cost: Vec<String>,
}

impl From<World> for WrittenWorld {
    fn from(world: World) -> Self {
        // Scripts are not sent; they are read when the world is built, right before the command.
        let World { parts, links, files, tmp, private, cost, scripts: _ } = world;
        Self {
            parts: parts.into_iter().map(|(path, part)| (AnyPath(path), part)).collect(),
            links: links.into_iter().map(|(path, to)| (AnyPath(path), AnyPath(to))).collect(),
            files: files.into_iter().map(|(path, text)| (AnyPath(path), text)).collect(),
            tmp: AnyPath(tmp),
            private,
            cost,
        }
    }
}

impl From<WrittenWorld> for World {
    fn from(world: WrittenWorld) -> Self {
        let WrittenWorld { parts, links, files, tmp, private, cost } = world;
        Self {
            parts: parts.into_iter().map(|(path, part)| (path.0, part)).collect(),
            links: links.into_iter().map(|(path, to)| (path.0, to.0)).collect(),
            files: files.into_iter().map(|(path, text)| (path.0, text)).collect(),
            scripts: BTreeMap::new(),
            tmp: tmp.0,
            private,
            cost,
        }
    }
}

/// Whether lists of files leave out a file of this name, as those of settings.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

impl World {
    /// `asked` is the view that the host sent, `view` is `asked` with canonical grants.
    pub fn of(asked: &CommandView, view: &CommandView, holes: &[Hole], person: UserPaths) -> Self {
        let mut world = Self { private: view.private.clone(), ..Self::default() };
        world.bind_grants(view, holes);
        for mount in plan::mounts(view, holes) {
            world.close(mount.path, mount.kind);
        }
        for outputs in view.outputs.iter().filter(|path| path.is_dir()) {
            world.parts.insert(outputs.clone(), Part::Bind(Level::Read));
        }
        world.own_places(asked, person);
        world.close_home(asked);
        world.files.extend(asked.files.iter().cloned());
        world.follow(asked, person);
        world.cost.extend(plan::sealed_cost(view, holes));
        world
    }

    /// The most memory for the copies of scripts, in MiB, rounded up to pages.
    pub fn script_mib(&self) -> u64 {
        let pages = self.scripts.values().map(|copy| copy.bytes.len() as u64 / PAGE + 1);
        (pages.sum::<u64>() * PAGE).div_ceil(1024 * 1024)
    }

    /// Replaces approved scripts by copies; the error names a changed script.
    pub fn hold_scripts(&mut self, scripts: &[ScriptHash]) -> Result<(), String> {
        for script in scripts {
            let place = self.place_of(&script.path);
            self.scripts.insert(place.clone(), scripts::approved(script)?);
            self.parts.insert(place, Part::Script);
        }
        Ok(())
    }

    /// The path in this world of a file on the disk: the Pod's storage appears as `/tmp` and in
    /// caches.
    fn place_of(&self, path: &Path) -> PathBuf {
        let Some(kept) = &self.private else { return path.to_owned() };
        let layered = self.parts.iter().filter_map(|(place, part)| match part {
            Part::Kept => Some((place, kept.tmp())),
            Part::Layered => Some((place, kept.kept_layer(place))),
            _ => None,
        });
        let inside =
            |(place, dir): (&PathBuf, PathBuf)| Some(place.join(path.strip_prefix(dir).ok()?));
        layered.filter_map(inside).next().unwrap_or_else(|| path.to_owned())
    }

    /// The rules for Landlock: every path of the world may be read.
    pub fn path_rules(&self) -> Vec<PathRule> {
        let right = |part: &Part| match part {
            Part::Bind(Level::Write) | Part::Memory(_) | Part::Layered | Part::Kept => {
                Some(Right::Write)
            }
            Part::Device | Part::Terminals => Some(Right::Device),
            _ => None,
        };
        let rule = |(path, part): (&PathBuf, &Part)| {
            Some(PathRule { path: path.clone(), right: right(part)? })
        };
        let all = PathRule { path: "/".into(), right: Right::Read };
        self.parts.iter().filter_map(rule).chain([all]).collect()
    }

    /// The access level of a mount at this path.
    pub fn level(&self, path: &Path) -> Level {
        let around = path.ancestors().filter_map(|dir| self.parts.get(dir));
        match around.copied().find(|part| *part != Part::Pinned) {
            Some(Part::Bind(level)) => level,
            Some(Part::Memory(_) | Part::Layered | Part::Kept) => Level::Write,
            _ => Level::Read,
        }
    }

    /// The nearest part at or above a path.
    pub fn around(&self, path: &Path) -> Option<Part> {
        path.ancestors().find_map(|dir| self.parts.get(dir)).copied()
    }

    /// Whether this path exists according to the parts.
    pub fn holds(&self, path: &Path) -> bool {
        self.parts.contains_key(path) || self.shows(path)
    }

    /// Whether this path shows the same file as outside.
    fn shows(&self, path: &Path) -> bool {
        matches!(self.around(path), Some(Part::Bind(_) | Part::Pinned | Part::Layered))
    }

    /// Whether a file that is created here stays in the world or in the Pod's storage.
    pub fn owns(&self, path: &Path) -> bool {
        !matches!(self.around(path), Some(Part::Bind(_) | Part::Pinned))
    }

    /// Whether something else of this world lies in a directory.
    pub fn has_more_in(&self, dir: &Path) -> bool {
        let parts = self.parts.keys().chain(self.files.keys()).chain(self.links.keys());
        parts.into_iter().any(|path| path != dir && path.starts_with(dir))
    }

    fn bind_grants(&mut self, view: &CommandView, holes: &[Hole]) {
        let mut whole: BTreeMap<&Path, Level> = BTreeMap::new();
        let mut caches: BTreeSet<&Path> = BTreeSet::new();
        for grant in &view.grants {
            let level = plan::capped(grant.level, &grant.path, holes);
            match grant.depth {
                Depth::Cache if level == Level::Write && self.private.is_some() => {
                    caches.insert(&grant.path);
                }
                Depth::Whole | Depth::Cache => {
                    let level =
                        if grant.depth == Depth::Cache { level.min(Level::Read) } else { level };
                    let known = whole.entry(&grant.path).or_insert(level);
                    *known = level.max(*known);
                }
                Depth::Flat | Depth::Device => {}
            }
        }
        self.lay_over(&caches, &whole);
        let hidden: BTreeSet<&Path> = holes
            .iter()
            .filter(|hole| hole.level == Level::Hidden)
            .map(|hole| hole.path.as_path())
            .collect();
        for (path, level) in whole {
            let covered = match self.around(path) {
                Some(Part::Bind(held)) => held >= level,
                Some(Part::Layered) => level < Level::Write,
                _ => false,
            };
            match level {
                _ if covered => {}
                Level::Hidden => {}
                Level::Read => self.read_around(path, &hidden),
                Level::Write => self.bind(path, level),
            }
        }
        for grant in &view.grants {
            match grant.depth {
                Depth::Whole | Depth::Cache => {}
                Depth::Flat => self.flat(grant, holes),
                Depth::Device if grant.path.exists() => {
                    self.parts.insert(grant.path.clone(), Part::Device);
                }
                Depth::Device => {}
            }
        }
    }

    /// Replaces caches by overlays with the Pod's layers. A lock or another single file starts
    /// empty.
    fn lay_over(&mut self, caches: &BTreeSet<&Path>, whole: &BTreeMap<&Path, Level>) {
        for path in caches.iter().copied() {
            let written = |dir: &Path| whole.get(dir) == Some(&Level::Write);
            if path.ancestors().any(written) || self.around(path) == Some(Part::Layered) {
                continue;
            }
            if path.is_dir() {
                self.parts.insert(path.to_owned(), Part::Layered);
            } else {
                self.files.insert(path.to_owned(), String::new());
            }
        }
    }

    fn bind(&mut self, path: &Path, level: Level) {
        if path.exists() {
            self.parts.insert(path.to_owned(), Part::Bind(level));
        }
    }

    /// Adds a readable directory without the secret files in it. They are omitted instead of
    /// covered, because a mount over a file is lost when a process outside replaces the file.
    fn read_around(&mut self, path: &Path, hidden: &BTreeSet<&Path>) {
        let secret_file = |hole: &&&Path| hole.starts_with(path) && hole.is_file();
        if of_the_system(path) || !path.is_dir() || !hidden.iter().any(|hole| secret_file(&hole)) {
            return self.bind(path, Level::Read);
        }
        self.parts.insert(path.to_owned(), Part::Directory);
        let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries.by_ref().take(AROUND) {
            let inner = entry.path();
            match entry.file_type() {
                _ if hidden.contains(inner.as_path()) => {}
                Ok(kind) if kind.is_symlink() => self.link(&inner),
                Ok(kind) if kind.is_dir() => self.read_around(&inner, hidden),
                Ok(_) => self.bind(&inner, Level::Read),
                Err(_) => {}
            }
        }
        if entries.next().is_some() {
            let path = path.display();
            self.cost.push(format!(
                "only {AROUND} of the entries of {path} are shown, because a secret file lies there"
            ));
        }
    }

    /// Adds the files directly in a directory.
    fn flat(&mut self, grant: &Grant, holes: &[Hole]) {
        let level = plan::capped(grant.level, &grant.path, holes);
        if level == Level::Hidden || self.shows(&grant.path) && self.level(&grant.path) >= level {
            return;
        }
        if !grant.path.is_dir() {
            return self.bind(&grant.path, level);
        }
        if !self.shows(&grant.path) {
            self.parts.insert(grant.path.clone(), Part::Directory);
        }
        let entries = fs::read_dir(&grant.path).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        for file in files.take(FLAT).map(|entry| entry.path()) {
            match plan::capped(level, &file, holes) {
                Level::Hidden => {}
                level => self.bind(&file, level),
            }
        }
        if level == Level::Write {
            self.cost.push(plan::nothing_new(&grant.path));
        }
    }

    /// Applies a hole, if its directory is in the world.
    fn close(&mut self, path: PathBuf, kind: Kind) {
        if !self.shows(&path) {
            return;
        }
        let part = match kind {
            Kind::Pinned if self.parts.contains_key(&path) => return,
            Kind::Pinned => Part::Pinned,
            Kind::ReadOnly => Part::Bind(Level::Read),
            Kind::Hidden => Part::Hidden,
            Kind::Open => Part::Bind(Level::Write),
        };
        self.parts.insert(path, part);
    }

    /// Adds the private places of every command: `/tmp`, the home directory, `/proc` and `/dev`.
    fn own_places(&mut self, view: &CommandView, person: UserPaths) {
        let limits = &view.limits;
        self.tmp = if self.shows(TMP.as_ref()) { OWN_TMP } else { TMP }.into();
        let kept = self.private.as_ref().map(PodStorage::tmp);
        let tmp = if kept.is_some() { Part::Kept } else { Part::Memory(limits.tmp_mib) };
        self.parts.insert(self.tmp.clone(), tmp);
        // File tools report the path outside; this link makes it valid inside, too.
        self.links.extend(kept.map(|kept| (kept, self.tmp.clone())));
        let home = view.home.clone().map(|home| canonical(&home).unwrap_or(home));
        if let Some(home) = home.filter(|home| home.parent().is_some() && !self.shows(home)) {
            self.parts.insert(home.clone(), Part::Memory(limits.home_mib));
            self.git_settings(&home, view, &person.secrets());
        }
        let runtime = person.runtime_dir().filter(|dir| links_on(dir).is_empty());
        if let Some(dir) = runtime.filter(|dir| !self.holds(dir)) {
            self.parts.insert(dir.to_owned(), Part::Memory(RUNTIME_MIB));
        }
        if view.network == Network::Off && !self.shows("/etc".as_ref()) {
            self.names_from_files();
        }
        let fixed = [
            ("/proc", Part::Processes),
            ("/dev", Part::Directory),
            ("/dev/pts", Part::Terminals),
            ("/dev/shm", Part::Memory(limits.shm_mib)),
        ];
        let within = |path: &Path, dir: &str| path.starts_with(dir) && path != Path::new(dir);
        let kept = |path: &Path| !path.starts_with("/dev") || within(path, "/dev/shm");
        self.parts.retain(|path, part| *part == Part::Device || kept(path));
        self.parts.extend(fixed.map(|(path, part)| (path.into(), part)));
        let links = [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
            ("/dev/ptmx", "pts/ptmx"),
        ];
        self.links.extend(links.map(|(path, to)| (path.into(), to.into())));
        self.link_missing(MOUNTS, "/proc/self/mounts".into());
        self.link_missing(VAR_TMP, self.tmp.clone());
    }

    /// Adds a link, unless the path shows something else.
    fn link_missing(&mut self, path: &str, to: PathBuf) {
        if !self.holds(path.as_ref()) {
            self.links.insert(path.into(), to);
        }
    }

    /// Adds the directories between a home directory in memory and the scope: what a command would move there, it would lose.
    /// Directories of settings, like `~/.config`, stay writable, because programs expect that.
    fn close_home(&mut self, asked: &CommandView) {
        let Some(home) = self.home_in_memory(asked) else { return };
        for grant in asked.grants.iter().filter(|grant| grant.links == Links::Refused) {
            let Ok(inside) = grant.path.strip_prefix(&home) else { continue };
            let mut dir = home.clone();
            for name in inside.parent().iter().flat_map(|above| above.iter()) {
                dir.push(name);
                if is_hidden(name) {
                    break;
                }
                if !self.shows(&dir) && !self.parts.contains_key(&dir) {
                    self.parts.insert(dir.clone(), Part::Directory);
                }
            }
        }
    }

    /// The home directory of this world, if it lies in memory.
    pub fn home_in_memory(&self, view: &CommandView) -> Option<PathBuf> {
        let home = view.home.as_ref()?;
        let home = canonical(home).unwrap_or_else(|_| home.clone());
        matches!(self.parts.get(&home), Some(Part::Memory(_))).then_some(home)
    }

    /// The names right in the home directory of this world that are its own.
    pub fn names_in(&self, home: &Path) -> BTreeSet<OsString> {
        let paths = self.parts.keys().chain(self.files.keys()).chain(self.links.keys());
        let name = |path: &PathBuf| {
            let inside = path.strip_prefix(home).ok()?;
            inside.iter().next().map(OsStr::to_owned)
        };
        paths.filter_map(name).collect()
    }

    /// Adds a copy of the person's settings of git, without passwords and credential helpers.
    fn git_settings(&mut self, home: &Path, view: &CommandView, secrets: &[PathBuf]) {
        let mut open: Vec<PathBuf> = GIT.iter().map(|file| home.join(file)).collect();
        while let Some(file) = open.pop().filter(|_| self.files.len() < INCLUDED) {
            let Ok(real) = canonical(&file) else { continue };
            let kept = match self.parts.get(&real) {
                None => !file.starts_with(home),
                Some(part) => *part != Part::Bind(Level::Read),
            };
            let shown = real.parent().is_some_and(|dir| self.shows(dir));
            if kept || shown || self.files.contains_key(&real) {
                continue;
            }
            let dir = real.parent().unwrap_or(&real);
            let found = WorkspaceFiles::of(dir).read(&real, Limit::head(SETTINGS));
            let text = found.map(|found| found.bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let shown = git_settings::shown(&file, home, &text);
            self.parts.remove(&real);
            self.files.insert(real, shown.text);
            self.follow_path(&file);
            // A file that another one includes may be of a Pod.
            let is_persons = GIT.iter().any(|own| file == home.join(own));
            let named = shown.named.iter().filter(|_| is_persons);
            named.for_each(|path| self.show_named(path, view, secrets));
            self.cost.extend(shown.cost.into_iter().map(str::to_owned));
            open.extend(shown.included);
        }
    }

    /// Adds a file that the person's settings of git name, if it is plain, no secret, and no Pod can have put it there.
    fn show_named(&mut self, path: &Path, view: &CommandView, secrets: &[PathBuf]) {
        let hidden = view.holes.iter().filter(|hole| hole.level == Level::Hidden);
        let mut hidden = hidden.map(|hole| &hole.path).chain(secrets);
        let is_hidden = |place: &PathBuf| {
            path.starts_with(place) || led_to(place).is_some_and(|real| path.starts_with(real))
        };
        let is_plain = path.is_file() && canonical(path).is_ok_and(|real| real == path);
        if is_plain && !hidden.any(is_hidden) && !some_pod_writes(view, path) && !self.holds(path) {
            self.bind(path, Level::Read);
        }
    }

    /// Adds a list of name services that asks no server: without a network programs learn at once that a name is not known.
    fn names_from_files(&mut self) {
        let file = Path::new(NAME_SERVICES);
        let own = self.parts.get(file) == Some(&Part::Bind(Level::Read));
        let Some(text) = own.then(|| fs::read_to_string(file).ok()).flatten() else { return };
        let line =
            |line: &str| if line.starts_with(HOSTS) { HOSTS_IN_FILES } else { line }.to_owned();
        self.parts.remove(file);
        self.files
            .insert(file.to_owned(), text.lines().map(line).map(|line| line + "\n").collect());
    }

    /// Adds the links by which programs reach granted paths.
    fn follow(&mut self, asked: &CommandView, person: UserPaths) {
        let granted = asked.grants.iter().map(|grant| grant.path.clone());
        let named = granted.chain(asked.home.clone()).chain(asked.names.clone());
        let named = named.chain(person.programs());
        let mut named: Vec<PathBuf> = named.collect();
        named.sort_unstable();
        named.dedup();
        for path in named {
            let links = links_on(&path);
            let shown = || canonical(&path).is_ok_and(|real| self.around(&real).is_some());
            if !links.is_empty() && shown() {
                links.iter().for_each(|link| self.link(link));
            }
        }
    }

    /// Adds the links on a path, except those that exist already.
    pub fn follow_path(&mut self, path: &Path) {
        links_on(path).iter().for_each(|link| self.link(link));
    }

    fn link(&mut self, link: &Path) {
        if let Ok(target) = fs::read_link(link)
            && !self.shows(link)
            && !self.parts.contains_key(link)
        {
            self.links.insert(link.to_owned(), target);
        }
    }
}

#[cfg(test)]
mod tests;
