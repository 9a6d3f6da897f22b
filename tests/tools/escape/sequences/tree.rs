//! A workspace with every kind of grant, files outside it, and their comparison.

use super::Dice;
use super::model::{Kind, Model, Zone};
use crate::escape::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use yoi::sandbox::Isolation;
use yoi::scope::{Permission, Rule};

/// Private files of the Pod's commands, which are neither outside nor part of the model.
const OWN: [&str; 2] = ["private", "outputs"];
/// The content of the files outside, which no command may print.
pub const HIDDEN: &str = "hidden-from-commands";

/// Everything that a change of a file changes, but the time at which it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub kind: Kind,
    pub mode: u32,
    owner: (u32, u32),
    pub mtime: (i64, i64),
    ctime: (i64, i64),
    links: u64,
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

pub struct Tree {
    pub cell: Cell,
    pub model: Model,
}

impl Tree {
    /// Makes the files and the grants. No command has run there yet.
    pub fn grow(dice: &mut Dice) -> Self {
        let mut cell = Cell::outside_of_tmp();
        cell.bench.ctx.env.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        cell.env("USER", "test");
        let mut tree = Self { cell, model: Model::default() };
        tree.model.root = tree.cell.path("").components().collect();
        for dir in ["outside", "home/.ssh", "own", "other", "wsx"] {
            tree.fill(dice, dir, HIDDEN);
        }
        tree.file("ws.conf", HIDDEN);
        tree.zone("home", Zone::Memory);
        tree.file("home/.ssh/id", HIDDEN);
        tree.file("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n");
        tree.zone("ws", Zone::Write);
        tree.fill(dice, "ws", "inside");
        tree.fill(dice, "ws/deep/down", "inside");
        tree.dir("ws/race/real");
        tree.model.zones.insert("ws/race".into(), Zone::Loose);
        tree.grants(dice);
        tree.holes(dice);
        tree
    }

    /// Grants beside the workspace.
    fn grants(&mut self, dice: &mut Dice) {
        self.fill(dice, "lib", "to-read");
        self.grant("lib", Permission::Read, true);
        self.file("outside/twin", "to-read");
        fs::hard_link(self.cell.path("outside/twin"), self.cell.path("lib/twin")).unwrap();
        if dice.one_in(2) {
            self.fill(dice, "lib/part/of", "inside");
            self.grant("lib/part", Permission::Write, true);
        }
        if dice.one_in(2) {
            self.fill(dice, "lib/kept", HIDDEN);
            self.deny("lib/kept", Permission::Read);
        }
        if dice.one_in(3) {
            self.fill(dice, "flat", "inside");
            self.fill(dice, "flat/below", HIDDEN);
            self.grant("flat", Permission::Write, false);
        }
        self.dir("play");
        self.grant("play", Permission::Read, true);
    }

    /// Creates guarded paths in the workspace.
    fn holes(&mut self, dice: &mut Dice) {
        if dice.one_in(2) {
            self.fill(dice, "ws/deep/lent", "lent");
            self.deny("ws/deep/lent", Permission::Write);
        }
        if dice.one_in(2) {
            self.fill(dice, "ws/deep/down/kept", HIDDEN);
            self.deny("ws/deep/down/kept", Permission::Read);
        }
        if dice.one_in(3) {
            self.file("ws/single", HIDDEN);
            self.deny("ws/single", Permission::Read);
        }
        if dice.one_in(3) {
            self.fill(dice, "ws/shelf", "inside");
            self.file("ws/shelf/lent", "lent");
            self.deny("ws/shelf/lent", Permission::Write);
        }
        if dice.one_in(3) {
            self.fill(dice, "ws/bin", "program");
            self.zone("ws/bin", Zone::Read);
            let path = self.cell.path("ws/bin").display().to_string();
            let path = format!("{path}:{}", self.cell.bench.ctx.env["PATH"]);
            self.cell.env("PATH", path);
        }
        if dice.one_in(3) {
            self.file("ws/.yoi/config.toml", "");
            self.zone("ws/.yoi", Zone::Read);
        }
        if dice.one_in(3) {
            self.fill(dice, "ws/house", "inside");
            self.fill(dice, "ws/house/.ssh", HIDDEN);
            self.zone("ws/house/.ssh", Zone::Hidden);
            // If it is missing, one that a command creates is moved aside.
            self.fill(dice, "ws/house/bin", "program");
            self.zone("ws/house/bin", Zone::Read);
            self.cell.env("HOME", self.cell.path("ws/house").display().to_string());
            self.model.zones.insert("home".into(), Zone::Missing);
        }
        if dice.one_in(2) {
            self.repository();
        }
    }

    fn repository(&mut self) {
        let ws = self.cell.path("ws");
        for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "x"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(&ws);
            assert!(git.status().unwrap().success());
        }
        self.zone("ws/.git", Zone::Loose);
        for name in ["hooks", "config"] {
            self.zone(&format!("ws/.git/{name}"), Zone::Read);
        }
    }

    fn dir(&self, dir: &str) {
        fs::create_dir_all(self.cell.path(dir)).unwrap();
    }

    fn file(&self, file: &str, text: &str) {
        self.dir(Path::new(file).parent().unwrap().to_str().unwrap());
        fs::write(self.cell.path(file), text).unwrap();
    }

    /// Creates a directory with files, a link to one of them, a link to a path outside, and a FIFO.
    fn fill(&self, dice: &mut Dice, dir: &str, text: &str) {
        self.dir(dir);
        for name in ["one", "two", "sub/three"] {
            self.file(&format!("{dir}/{name}"), &format!("{text} {dir}"));
        }
        if dice.one_in(2) {
            symlink("sub", self.cell.path(dir).join("near")).unwrap();
        }
        if dice.one_in(2) {
            symlink(self.cell.path("outside"), self.cell.path(dir).join("away")).unwrap();
        }
        if dice.one_in(3) {
            let fifo = self.cell.path(dir).join("fifo");
            assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }
    }

    /// A place with rights of its own, which is a mount.
    fn zone(&mut self, path: &str, zone: Zone) {
        self.model.zones.insert(path.into(), zone);
        self.model.mounts.insert(path.into());
        // The directories between the workspace and a hole in it cannot be moved.
        let between = Path::new(path).ancestors().skip(1).filter(|dir| dir.starts_with("ws"));
        self.model.mounts.extend(between.map(Path::to_owned));
    }

    fn grant(&mut self, path: &str, permission: Permission, recursive: bool) {
        let rule = Rule { recursive, ..Rule::new(self.cell.path(path), permission) };
        self.cell.bench.ctx.scope.allow.push(rule);
        let zone = if permission == Permission::Write { Zone::Write } else { Zone::Read };
        self.zone(path, zone);
        if !recursive {
            self.model.zones.insert(path.into(), Zone::Read);
        }
    }

    fn deny(&mut self, path: &str, permission: Permission) {
        let rule = Rule::new(self.cell.path(path), permission);
        self.cell.bench.ctx.scope.deny.push(rule);
        let zone = if permission == Permission::Write { Zone::Read } else { Zone::Hidden };
        self.zone(path, zone);
    }

    /// Adds the files on the disk to the model, after a first command.
    pub fn learn(&mut self) {
        let found = self.everything();
        self.model.insert(PathBuf::new(), Kind::Dir, 0o700);
        for (path, facts) in &found {
            self.model.insert(path.clone(), facts.kind.clone(), facts.mode & 0o7777);
        }
        let probe = self.cell.path("wsx/one");
        self.model.xattrs = can_have_attributes(&probe);
        // Around a single lent file everything is a mount; of a flat grant only files are shown.
        self.one_by_one("ws/shelf", &[Kind::Dir], Zone::Read, &found);
        self.one_by_one("flat", &[], Zone::Missing, &found);
    }

    /// Each file in a directory, and all that is of these kinds, may be written; the rest is this.
    fn one_by_one(
        &mut self,
        dir: &str,
        kinds: &[Kind],
        rest: Zone,
        found: &BTreeMap<PathBuf, Facts>,
    ) {
        for (path, facts) in found.iter().filter(|(path, _)| path.parent() == Some(dir.as_ref())) {
            let written = matches!(facts.kind, Kind::File(_)) || kinds.contains(&facts.kind);
            let zone = if written { Zone::Write } else { rest };
            let sealed = self.model.mounts.contains(Path::new("ws/shelf/lent"));
            if !self.model.zones.contains_key(path) && (sealed || dir == "flat") {
                self.model.zones.insert(path.clone(), zone);
                self.model.mounts.extend(written.then(|| path.clone()));
                self.model.zones.insert(dir.into(), Zone::Read);
            }
        }
    }

    /// Every file of the tree but what the Pod keeps.
    fn everything(&self) -> BTreeMap<PathBuf, Facts> {
        let (mut found, mut open) = (BTreeMap::new(), vec![PathBuf::new()]);
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(self.cell.path("").join(&dir)).unwrap() {
                let entry = entry.unwrap();
                let path = dir.join(entry.file_name());
                if OWN.iter().any(|own| path == Path::new(own)) {
                    continue;
                }
                let facts = Facts::of(&entry.path());
                if facts.kind == Kind::Dir {
                    open.push(path.clone());
                }
                found.insert(path, facts);
            }
        }
        found
    }

    /// The facts that no command may change: without namespaces only names and contents.
    pub fn outside(&self) -> BTreeMap<PathBuf, Facts> {
        let mut all = self.everything();
        all.retain(|path, _| !matches!(self.model.zone(path), Zone::Write | Zone::Loose));
        if self.cell.isolation == Isolation::LandlockOnly {
            all.values_mut().for_each(|facts| {
                *facts = Facts { kind: facts.kind.clone(), ..Facts::default() };
            });
        }
        all
    }

    /// The facts that the model must predict for the end of the script.
    pub fn inside(&self) -> BTreeMap<PathBuf, Facts> {
        let mut all = self.everything();
        all.retain(|path, _| self.model.zone(path) == Zone::Write);
        all
    }
}

impl Facts {
    fn of(path: &Path) -> Self {
        let meta = path.symlink_metadata().unwrap();
        let (kind, form) = (meta.file_type(), path.display());
        let kind = match () {
            () if kind.is_file() => Kind::File(fs::read_to_string(path).unwrap_or_default()),
            () if kind.is_dir() => Kind::Dir,
            () if kind.is_symlink() => Kind::Link(fs::read_link(path).unwrap()),
            () if kind.is_fifo() => Kind::Fifo,
            () => panic!("{form} is neither file, directory, link nor FIFO"),
        };
        Self {
            kind,
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
            links: meta.nlink(),
            xattrs: attributes(path),
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    let value = |name: &str| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap_or(0);
        value.truncate(length);
        (name.to_owned(), value)
    };
    names.split_terminator('\0').map(value).collect()
}

fn can_have_attributes(path: &Path) -> bool {
    rustix::fs::setxattr(path, "user.probe", b"x", rustix::fs::XattrFlags::empty()).is_ok()
}
