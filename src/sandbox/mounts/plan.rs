//! Turns a view into actions on this disk: the holes that exist, the mounts for them, and the
//! Landlock rules.

use crate::files::canonical;
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::view::{CommandView, Depth, Grant, GrantsByPath, Hole, Level, Why};
use crate::sandbox::access::{directory, path_json};
use crate::sandbox::git::search::{self, Found};
use crate::sandbox::mounts::sockets;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most siblings of another Pod's file that stay writable; further ones are read-only.
const SIBLINGS: usize = 2000;

/// The access to a canonical path, for a rule of Landlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    #[serde(with = "path_json")]
    pub path: PathBuf,
    pub right: Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// To list a directory, and those below it.
    List,
    Read,
    Write,
    Device,
}

/// One mount that makes a hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub path: PathBuf,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cannot be moved: otherwise a hole below it could be moved away.
    Pinned,
    ReadOnly,
    Hidden,
    /// Writable inside a read-only directory.
    Open,
}

/// The Landlock rules, and what the command cannot do because of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub rules: Vec<PathRule>,
    pub cost: Vec<String>,
}

/// The holes that exist on this disk and restrict a grant, outer ones first; and sentences about
/// paths that cannot be protected.
pub fn holes(view: &CommandView, found: &Found) -> (Vec<Hole>, Vec<String>) {
    let grants = view.grants_by_path();
    let mut open = Vec::new();
    let mut all: BTreeMap<PathBuf, Hole> = BTreeMap::new();
    let sockets = match view.isolation {
        Isolation::Namespaces => sockets::holes(view, &found.area.scan),
        Isolation::LandlockOnly => Vec::new(),
    };
    let more = search::holes(view, found).into_iter().chain(sockets);
    for hole in view.holes.iter().cloned().chain(more) {
        let hole = if let Ok(real) = canonical(&hole.path) {
            let is_linked = real != hole.path && matches!(hole.why, Why::Project | Why::Rules);
            if is_linked && is_worked_on(view, &real) {
                continue;
            }
            Hole { path: real, ..hole }
        } else if let Some(dir) = directory::closed(&hole.path) {
            // It may exist: the unreadable directory is guarded as a whole.
            let path = canonical(&dir).unwrap_or(dir);
            Hole { path, level: hole.level.min(Level::Read), ..hole }
        } else {
            open.extend(not_there(view, &hole));
            continue;
        };
        if restricts(view, &grants, &hole) && within_reach(&hole.path) {
            let known = all.entry(hole.path.clone()).or_insert_with(|| hole.clone());
            known.level = known.level.min(hole.level);
        }
    }
    let all: Vec<Hole> = all.into_values().collect();
    (without_nested(view, all), open)
}

/// Whether a hole restricts a grant: one at or above its path, or one below it. A directory on
/// `PATH` has its programs directly in it, so grants deeper in it are not restricted.
fn restricts(view: &CommandView, grants: &GrantsByPath, hole: &Hole) -> bool {
    if view.names_for_writing(hole) {
        return false;
    }
    if hole.why == Why::Obeyed && is_worked_on(view, &hole.path) {
        return false;
    }
    let inside = |grant: &Grant| grant.level > hole.level && grant.path.starts_with(&hole.path);
    let shallow = matches!(hole.why, Why::Programs | Why::Others);
    let deep = !shallow && hole.path.parent().is_some();
    // A hole with writable content still prevents moving the path.
    let granted = grants.level(&hole.path);
    let held = hole.level == Level::Write && granted == Level::Write;
    held || granted > hole.level || (deep && view.grants.iter().any(inside))
}

/// Whether a person gave exactly this path or a part of it, and not only a directory above it: then
/// these settings are to be changed.
fn is_worked_on(view: &CommandView, place: &Path) -> bool {
    view.given.iter().any(|given| given.starts_with(place))
}

/// Drops holes in a hole that is at least as strict.
fn without_nested(view: &CommandView, all: Vec<Hole>) -> Vec<Hole> {
    let mut kept: Vec<Hole> = Vec::new();
    // Each path has one hole, and outer ones come first.
    let mut by_path: HashMap<PathBuf, usize> = HashMap::new();
    for hole in all {
        // A path that is granted inside the scope of another Pod stays writable, also around this
        // hole.
        let same = |outer: &Hole| match (outer.why, hole.why) {
            (Why::Others, Why::Others) => {
                let between = |grant: &Grant| {
                    outer.is_around(&grant.path) && hole.path.starts_with(&grant.path)
                };
                !view.grants.iter().any(between)
            }
            (outer, _) => outer != Why::Others,
        };
        let mut around = hole.path.ancestors().filter_map(|dir| by_path.get(dir));
        if !around.any(|at| kept[*at].level <= hole.level && same(&kept[*at])) {
            by_path.insert(hole.path.clone(), kept.len());
            kept.push(hole);
        }
    }
    kept
}

fn not_there(view: &CommandView, hole: &Hole) -> Option<String> {
    let lent =
        matches!(hole.why, Why::Scope | Why::Others) && view.granted(&hole.path) == Level::Write;
    lent.then(|| format!("{} does not exist yet and could be made", hole.path.display()))
}

/// Whether this user can read the path, or change its permissions.
fn within_reach(path: &Path) -> bool {
    let own =
        || fs::metadata(path).is_ok_and(|meta| meta.uid() == rustix::process::getuid().as_raw());
    access(path, Access::READ_OK).is_ok() || own()
}

/// The mounts that make these holes, outer ones first.
pub fn mounts(view: &CommandView, holes: &[Hole]) -> Vec<Mount> {
    let (mut all, sealed) = (BTreeMap::new(), sealed(view, holes));
    let shut: Vec<&Path> = holes.iter().map(|hole| hole.path.as_path()).collect();
    for path in shut.iter().copied().chain(sealed.iter().map(PathBuf::as_path)) {
        for dir in pins(view, path) {
            all.entry(dir).or_insert(Kind::Pinned);
        }
    }
    for dir in &sealed {
        all.extend(siblings(dir).into_iter().map(|path| (path, Kind::Open)));
    }
    all.extend(kept_open(view, holes).into_iter().map(|path| (path, Kind::Open)));
    all.extend(sealed.iter().map(|dir| (dir.clone(), Kind::ReadOnly)));
    all.extend(holes.iter().map(|hole| {
        let kind = match hole.level {
            Level::Hidden => Kind::Hidden,
            Level::Read => Kind::ReadOnly,
            Level::Write => Kind::Pinned,
        };
        (hole.path.clone(), kind)
    }));
    all.into_iter().map(|(path, kind)| Mount { path, kind }).collect()
}

/// Directories in which no new file can be created, because they contain a file of another Pod: a
/// mount over the file alone is lost when its owner replaces it.
fn sealed(view: &CommandView, holes: &[Hole]) -> BTreeSet<PathBuf> {
    let theirs = holes.iter().filter(|hole| matches!(hole.why, Why::Scope | Why::Others));
    let files = theirs.filter(|hole| hole.level == Level::Read && !hole.path.is_dir());
    let parents = files.filter_map(|hole| hole.path.parent());
    let whole = |dir: &Path| {
        let writes = |grant: &&Grant| grant.depth == Depth::Whole && grant.level == Level::Write;
        view.grants.iter().filter(writes).any(|grant| dir.starts_with(&grant.path))
    };
    parents.filter(|dir| whole(dir)).map(Path::to_owned).collect()
}

/// The entries of a directory that can be mounted.
fn siblings(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let plain =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()));
    plain.take(SIBLINGS).map(|entry| entry.path()).collect()
}

/// Grants inside a directory of another Pod.
fn kept_open(view: &CommandView, holes: &[Hole]) -> Vec<PathBuf> {
    let others: Vec<&Hole> = holes.iter().filter(|hole| hole.why == Why::Others).collect();
    let inside = |path: &Path| others.iter().any(|hole| hole.is_around(path));
    let own = view.grants.iter().filter(|grant| inside(&grant.path) && grant.path.exists());
    // Writes to a cache go to the Pod's layer and not to this path.
    let own = own.filter(|grant| grant.depth != Depth::Cache);
    let open = own.filter(|grant| capped(grant.level, &grant.path, holes) == Level::Write);
    open.map(|grant| grant.path.clone()).collect()
}

/// The directories between the outermost writable grant and a hole in it.
fn pins(view: &CommandView, hole: &Path) -> Vec<PathBuf> {
    let writable = view.grants.iter().filter(|grant| grant.level == Level::Write);
    let whole = writable.filter(|grant| matches!(grant.depth, Depth::Whole | Depth::Cache));
    let covering = whole.filter(|grant| hole.starts_with(&grant.path));
    let Some(root) = covering.map(|grant| &grant.path).min_by_key(|path| path.as_os_str().len())
    else {
        return Vec::new();
    };
    let between = |dir: &&Path| dir.starts_with(root) && *dir != root;
    hole.ancestors().skip(1).filter(between).map(Path::to_owned).collect()
}

/// Sentences about directories in which no file can be created, because they contain a file of
/// another Pod.
pub fn sealed_cost(view: &CommandView, holes: &[Hole]) -> Vec<String> {
    sealed(view, holes).iter().map(|dir| nothing_new(dir)).collect()
}

/// The rules without mounts: each sibling of a hole is granted separately.
pub fn around_holes(view: &CommandView, holes: &[Hole]) -> Plan {
    let mut plan = Plan::default();
    for grant in &view.grants {
        match grant.depth {
            Depth::Flat => plan.flat(&grant.path, grant.level, holes),
            Depth::Whole | Depth::Cache => plan.around(&grant.path, grant.level, holes),
            Depth::Device => plan.add(&grant.path, Some(Right::Device)),
        }
    }
    plan
}

fn right(level: Level) -> Option<Right> {
    match level {
        Level::Hidden => None,
        Level::Read => Some(Right::Read),
        Level::Write => Some(Right::Write),
    }
}

/// The access that the holes leave of a grant at this path.
pub fn capped(level: Level, path: &Path, holes: &[Hole]) -> Level {
    let around = holes.iter().filter(|hole| hole.restricts(path));
    around.map(|hole| hole.level).fold(level, Level::min)
}

impl Plan {
    fn add(&mut self, path: &Path, right: Option<Right>) {
        let Some(right) = right else { return };
        self.rules.push(PathRule { path: path.to_owned(), right });
    }

    /// Grants a directory without its subdirectories.
    fn flat(&mut self, dir: &Path, level: Level, holes: &[Hole]) {
        if !dir.is_dir() {
            return self.add(dir, right(capped(level, dir, holes)));
        }
        self.add(dir, Some(Right::List));
        for file in fs::read_dir(dir).into_iter().flatten().flatten() {
            if file.file_type().is_ok_and(|kind| kind.is_file()) {
                let level = capped(level, &file.path(), holes);
                self.add(&file.path(), right(level));
            }
        }
        if level == Level::Write {
            self.cost.push(nothing_new(dir));
        }
    }

    fn around(&mut self, path: &Path, level: Level, holes: &[Hole]) {
        let level = capped(level, path, holes);
        let inside: Vec<Hole> = holes
            .iter()
            .filter(|hole| hole.path.starts_with(path) && hole.path != path && hole.level < level)
            .cloned()
            .collect();
        if inside.is_empty() {
            return self.add(path, right(level));
        }
        let least = inside.iter().map(|hole| hole.level).min().unwrap_or(Level::Hidden);
        self.add(path, Some(right(least).unwrap_or(Right::List)));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.around(&entry.path(), level, &inside);
            }
        }
        if level == Level::Write {
            self.cost.push(nothing_new(path));
        }
    }
}

pub fn nothing_new(dir: &Path) -> String {
    format!("nothing new can be made directly in {}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::access::limits::CommandLimits;
    use crate::sandbox::access::view::{Links, Network, Sockets};

    /// A workspace with a repository, a lent directory and a secret in it.
    fn workspace() -> (tempfile::TempDir, PathBuf, CommandView) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        for dir in ["src", "deep/lent/x", ".git/modules/a/b/objects", ".git/modules/a/b/refs"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["secret", "deep/free", ".git/HEAD", ".git/config", ".git/index"] {
            fs::write(root.join(file), "").unwrap();
        }
        for file in ["HEAD", "config"] {
            fs::write(root.join(".git/modules/a/b").join(file), "").unwrap();
        }
        let hole = |path: &str, level, why| Hole { path: root.join(path), level, why };
        let view = CommandView {
            grants: vec![Grant {
                path: root.clone(),
                level: Level::Write,
                depth: Depth::Whole,
                links: Links::Refused,
            }],
            holes: vec![
                hole("deep/lent", Level::Read, Why::Scope),
                hole("deep/lent/x", Level::Read, Why::Scope),
                hole("secret", Level::Hidden, Why::Secret),
                hole("not-yet", Level::Read, Why::Scope),
            ],
            repositories: vec![root.join(".git")],
            outside: vec![],
            names: vec![],
            given: vec![],
            scripts: vec![],
            home: None,
            network: Network::Off,
            sockets: Sockets::Refused,
            isolation: Isolation::Namespaces,
            shares_network: false,
            outputs: None,
            private: None,
            in_background: false,
            writes: vec![],
            checks_out: None,
            files: vec![],
            limits: CommandLimits::default(),
        };
        (top, root, view)
    }

    fn holes(view: &CommandView) -> (Vec<Hole>, Vec<String>) {
        super::holes(view, &search::find(view, view))
    }

    #[test]
    fn holes_are_mounted_and_everything_above_them_is_pinned() {
        let (_top, root, view) = workspace();
        let (holes, open) = holes(&view);
        let not_yet =
            format!("{} does not exist yet and could be made", root.join("not-yet").display());
        assert_eq!(open, [not_yet]);
        let mounts: Vec<(String, Kind)> = mounts(&view, &holes)
            .into_iter()
            .map(|mount| {
                (mount.path.strip_prefix(&root).unwrap().display().to_string(), mount.kind)
            })
            .collect();
        let expected = [
            (".git", Kind::Pinned),
            (".git/config", Kind::ReadOnly),
            (".git/hooks", Kind::ReadOnly),
            (".git/modules", Kind::Pinned),
            (".git/modules/a", Kind::Pinned),
            (".git/modules/a/b", Kind::Pinned),
            (".git/modules/a/b/config", Kind::ReadOnly),
            (".git/modules/a/b/hooks", Kind::ReadOnly),
            (".git/modules/a/b/objects", Kind::Pinned),
            (".git/modules/a/b/refs", Kind::Pinned),
            ("deep", Kind::Pinned),
            ("deep/lent", Kind::ReadOnly),
            ("secret", Kind::Hidden),
        ];
        let expected: Vec<(String, Kind)> =
            expected.into_iter().map(|(path, kind)| (path.to_owned(), kind)).collect();
        assert_eq!(mounts, expected);
    }

    #[test]
    fn without_mounts_what_lies_around_a_hole_is_granted_one_by_one() {
        let (_top, root, view) = workspace();
        let (holes, _) = holes(&view);
        let plan = around_holes(&view, &holes);
        let right = |path: &str| {
            let path = root.join(path);
            let covering = plan.rules.iter().filter(|rule| path.starts_with(&rule.path));
            covering.map(|rule| rule.right).max()
        };
        assert_eq!(right("src/a"), Some(Right::Write));
        assert_eq!(right("deep/free"), Some(Right::Write));
        assert_eq!(right(".git/index"), Some(Right::Write));
        assert_eq!(right("deep/lent/x"), Some(Right::Read));
        assert_eq!(right(".git/hooks"), Some(Right::Read));
        assert_eq!(right(".git/modules/a/b/config"), Some(Right::Read));
        assert_eq!(right("secret"), Some(Right::List));
        assert!(plan.cost.contains(&nothing_new(&root)), "{:?}", plan.cost);
    }

    #[test]
    fn a_rule_that_is_not_recursive_gives_files_and_no_subdirectory() {
        let (_top, root, mut view) = workspace();
        view.grants[0].depth = Depth::Flat;
        let (holes, _) = holes(&view);
        let plan = around_holes(&view, &holes);
        let given: Vec<&PathRule> = plan.rules.iter().filter(|rule| rule.path != root).collect();
        assert!(given.is_empty(), "the only file is secret: {given:?}");
        fs::write(root.join("plain"), "").unwrap();
        let plan = around_holes(&view, &holes);
        let plain = PathRule { path: root.join("plain"), right: Right::Write };
        assert!(plan.rules.contains(&plain));
        assert_eq!(plan.cost, [nothing_new(&root)]);
    }
}
