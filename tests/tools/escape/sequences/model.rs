//! Files with grants, as far as operations on them can be predicted.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// What a command gets at a path and below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    Write,
    Read,
    /// It is there and empty, or cannot be opened.
    Hidden,
    /// It is not there.
    Missing,
    /// The command has memory of its own there: anything can be made, and what lies there outside stays.
    Memory,
    /// It may be written, and this model does not follow what becomes of it.
    Loose,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    File(String),
    #[default]
    Dir,
    /// Where it leads, as it is written.
    Link(PathBuf),
    Fifo,
}

/// One file and what is known of it, under one name or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    pub mode: u32,
    /// Seconds, where an operation set it and no other one changed it since.
    pub mtime: Option<i64>,
    pub xattr: Option<String>,
}

/// A path as an operation spells it.
#[derive(Clone, Debug, Serialize)]
pub struct Spelled {
    /// Where it leads, below the root of the tree.
    #[serde(skip)]
    pub target: PathBuf,
    pub path: String,
    /// The directory that is opened first, to which the path is relative then.
    pub at: Option<String>,
    /// Whether the file is opened by this path and used through its descriptor.
    pub fd: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Op {
    pub op: &'static str,
    pub p: Option<Spelled>,
    pub q: Option<Spelled>,
    /// A mode, a length, an owner or a time.
    pub n: u64,
    /// A text, or where a link leads.
    pub s: String,
    /// A path that is taken as it is.
    pub raw: Option<String>,
}

/// How an operation has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Done,
    /// It returns this.
    Text(String),
    Refused,
    /// It changes nothing that the model knows, whether it succeeds or not.
    Any,
}

/// Where a path leads.
enum Found {
    Node(PathBuf),
    /// The directory is there, and the name is free.
    Free(PathBuf),
    Nothing,
    /// Into a place of which the model knows nothing.
    Unknown,
}

/// The whole tree, also what a command does not see. Paths are relative to its root.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub root: PathBuf,
    /// The zone of the nearest path at or above one counts.
    pub zones: BTreeMap<PathBuf, Zone>,
    /// What is a mount, so that it cannot be moved, and no file can be moved across.
    pub mounts: BTreeSet<PathBuf>,
    pub entries: BTreeMap<PathBuf, usize>,
    pub nodes: Vec<Node>,
    /// Whether files here have attributes at all.
    pub xattrs: bool,
}

impl Model {
    pub fn zone(&self, path: &Path) -> Zone {
        path.ancestors().find_map(|dir| self.zones.get(dir)).copied().unwrap_or(Zone::Missing)
    }

    pub fn node(&self, path: &Path) -> Option<&Node> {
        self.entries.get(path).map(|id| &self.nodes[*id])
    }

    pub fn is_dir(&self, path: &Path) -> bool {
        self.node(path).is_some_and(|node| node.kind == Kind::Dir)
    }

    pub fn insert(&mut self, path: PathBuf, kind: Kind, mode: u32) {
        self.nodes.push(Node { kind, mode, mtime: None, xattr: None });
        self.entries.insert(path, self.nodes.len() - 1);
    }

    /// How an operation ends, after which the model is as the tree is then.
    pub fn apply(&mut self, op: &Op) -> Expect {
        let (p, q) = (op.p.as_ref().map(|p| &*p.target), op.q.as_ref().map(|q| &*q.target));
        match (op.op, p, q) {
            ("chmod", ..) if op.n & 0o6000 != 0 => Expect::Refused,
            ("rename" | "exchange" | "link" | "copy", Some(p), Some(q)) => self.two(op, p, q),
            ("create" | "mkdir" | "symlink" | "mkfifo" | "mknod", Some(p), _) => self.make(op, p),
            ("rmdir" | "unlink", Some(p), _) => self.remove(op, p),
            ("read" | "list", Some(p), _) => self.look(op, p),
            ("put", Some(p), _) => match self.walk(p, true) {
                Found::Free(_) => self.make(op, p),
                _ => self.change(op, p),
            },
            ("race" | "hold", ..) => Expect::Any,
            ("device" | "chown" | "capability" | "unnamed", ..) | (_, None, _) => Expect::Refused,
            (_, Some(p), _) => self.change(op, p),
        }
    }

    /// Whether this model does not know what lies at a path, or at the end of a link that lies there.
    pub fn is_unknown(&self, path: &Path) -> bool {
        matches!(self.walk(path, true), Found::Unknown)
    }

    /// Whether a path leads to something that may be written.
    pub fn writes(&self, path: &Path) -> bool {
        match self.walk(path, true) {
            Found::Node(path) => self.zone(&path) == Zone::Write,
            Found::Free(path) => self.enters(&path),
            Found::Nothing | Found::Unknown => false,
        }
    }

    fn walk(&self, path: &Path, follow: bool) -> Found {
        let mut todo: Vec<OsString> = names(path).rev().collect();
        let (mut at, mut links) = (PathBuf::new(), 0);
        while let Some(name) = todo.pop() {
            if name == ".." {
                if !at.pop() {
                    return Found::Nothing;
                }
                continue;
            }
            let next = at.join(&name);
            match self.zone(&next) {
                Zone::Memory | Zone::Loose => return Found::Unknown,
                Zone::Missing => return Found::Nothing,
                Zone::Hidden if !self.zones.contains_key(&next) => return Found::Nothing,
                Zone::Hidden | Zone::Read | Zone::Write => {}
            }
            match self.node(&next).map(|node| &node.kind) {
                None if todo.is_empty() => return Found::Free(next),
                None => return Found::Nothing,
                Some(Kind::Link(to)) if follow || !todo.is_empty() => {
                    links += 1;
                    let inside = match to.is_absolute() {
                        true => to.strip_prefix(&self.root).ok(),
                        false => Some(to.as_path()),
                    };
                    let Some(inside) = inside.filter(|_| links <= 40) else {
                        return Found::Nothing;
                    };
                    if to.is_absolute() {
                        at = PathBuf::new();
                    }
                    todo.extend(names(inside).rev());
                }
                Some(Kind::Dir) => at = next,
                Some(_) if todo.is_empty() => return Found::Node(next),
                Some(_) => return Found::Nothing,
            }
        }
        Found::Node(at)
    }

    /// Whether names can be made and removed in the directory of this path.
    fn enters(&self, path: &Path) -> bool {
        path.parent().is_some_and(|dir| self.zone(dir) == Zone::Write)
    }

    fn mount_of(&self, path: &Path) -> Option<&PathBuf> {
        path.ancestors().find_map(|dir| self.mounts.get(dir))
    }

    /// The names directly in a directory, also those that are not shown.
    fn children<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.entries.keys().filter(move |path| path.parent() == Some(dir))
    }

    fn touch_parent(&mut self, path: &Path) {
        if let Some(id) = path.parent().and_then(|dir| self.entries.get(dir)) {
            self.nodes[*id].mtime = None;
        }
    }

    fn make(&mut self, op: &Op, p: &Path) -> Expect {
        let path = match self.walk(p, op.op == "put") {
            Found::Free(path) if self.enters(&path) => path,
            Found::Unknown => return Expect::Any,
            _ => return Expect::Refused,
        };
        let (kind, mode) = match op.op {
            "mkdir" => (Kind::Dir, 0o755),
            "symlink" => (Kind::Link(op.s.clone().into()), 0o777),
            "mkfifo" => (Kind::Fifo, 0o644),
            "mknod" => (Kind::File(String::new()), 0o644),
            _ => (Kind::File(op.s.clone()), 0o644),
        };
        self.touch_parent(&path);
        self.insert(path, kind, mode);
        Expect::Done
    }

    fn remove(&mut self, op: &Op, p: &Path) -> Expect {
        let path = match self.walk(p, false) {
            Found::Node(path) if self.enters(&path) && !self.mounts.contains(&path) => path,
            Found::Unknown => return Expect::Any,
            _ => return Expect::Refused,
        };
        let full = self.children(&path).next().is_some();
        if full || self.is_dir(&path) != (op.op == "rmdir") {
            return Expect::Refused;
        }
        self.touch_parent(&path);
        self.entries.remove(&path);
        Expect::Done
    }

    fn look(&self, op: &Op, p: &Path) -> Expect {
        let path = match self.walk(p, true) {
            Found::Node(path) => path,
            Found::Unknown => return Expect::Any,
            _ => return Expect::Refused,
        };
        let hidden = self.zone(&path) == Zone::Hidden;
        match (op.op, self.node(&path).map(|node| &node.kind)) {
            // The way to what the Pod keeps for its commands begins there.
            ("list", Some(Kind::Dir)) if path.as_os_str().is_empty() => Expect::Any,
            ("list", Some(Kind::Dir)) => {
                let shown = |path: &&PathBuf| !hidden && self.zone(path) != Zone::Missing;
                let shown = self.children(&path).filter(shown).filter_map(|path| path.file_name());
                let mut names: Vec<&str> = shown.filter_map(|name| name.to_str()).collect();
                names.sort_unstable();
                Expect::Text(names.join("\n"))
            }
            ("read", Some(Kind::File(text))) if !hidden => Expect::Text(text.clone()),
            ("read", Some(Kind::Fifo)) if !hidden => Expect::Text(String::new()),
            _ => Expect::Refused,
        }
    }

    /// An operation on what exists, through links.
    fn change(&mut self, op: &Op, p: &Path) -> Expect {
        let path = match self.walk(p, true) {
            Found::Node(path) if self.zone(&path) == Zone::Write => path,
            Found::Unknown => return Expect::Any,
            _ => return Expect::Refused,
        };
        let (id, xattrs) = (self.entries[&path], self.xattrs);
        let node = &mut self.nodes[id];
        match (op.op, &mut node.kind) {
            ("chmod", _) => node.mode = u32::try_from(op.n).unwrap_or(0),
            ("keep_owner", _) => {}
            ("utimes", _) => node.mtime = i64::try_from(op.n).ok(),
            ("setxattr", Kind::File(_) | Kind::Dir) if xattrs => node.xattr = Some(op.s.clone()),
            (_, Kind::File(text)) => {
                match op.op {
                    "write" | "put" => text.clone_from(&op.s),
                    "append" => text.push_str(&op.s),
                    "map" if text.len() >= op.s.len() => text.replace_range(..op.s.len(), &op.s),
                    "truncate" => {
                        let length = usize::try_from(op.n).unwrap_or(0);
                        text.truncate(length);
                        text.extend(std::iter::repeat_n('\0', length - text.len()));
                    }
                    _ => return Expect::Refused,
                }
                node.mtime = None;
            }
            _ => return Expect::Refused,
        }
        Expect::Done
    }

    fn two(&mut self, op: &Op, p: &Path, q: &Path) -> Expect {
        if op.op == "copy" {
            return self.copy(p, q);
        }
        let a = match self.walk(p, false) {
            Found::Node(a) => a,
            Found::Unknown if matches!(self.walk(q, false), Found::Unknown) => return Expect::Any,
            _ => return Expect::Refused,
        };
        let (b, free) = match self.walk(q, false) {
            Found::Node(b) => (b, false),
            Found::Free(b) => (b, true),
            Found::Nothing | Found::Unknown => return Expect::Refused,
        };
        let parent = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        let from = if op.op == "link" { a.clone() } else { parent(&a) };
        let apart = self.mount_of(&from) != self.mount_of(&parent(&b));
        if apart || !self.enters(&a) || !self.enters(&b) {
            return Expect::Refused;
        }
        match op.op {
            "link" if free && !self.is_dir(&a) => {
                self.touch_parent(&b);
                self.entries.insert(b, self.entries[&a]);
                Expect::Done
            }
            "link" => Expect::Refused,
            _ if !free && self.entries[&a] == self.entries[&b] => Expect::Any,
            _ if self.mounts.contains(&a) || self.mounts.contains(&b) => Expect::Refused,
            _ if a.starts_with(&b) || b.starts_with(&a) => Expect::Refused,
            "exchange" if free => Expect::Refused,
            "exchange" => {
                let aside = PathBuf::from("\u{0}");
                self.carry(&a, &aside);
                self.carry(&b, &a);
                self.carry(&aside, &b);
                Expect::Done
            }
            _ if !free && !self.gives_way(&a, &b) => Expect::Refused,
            _ => {
                self.entries.remove(&b);
                self.carry(&a, &b);
                Expect::Done
            }
        }
    }

    /// Whether what lies at `b` can be replaced by what lies at `a`.
    fn gives_way(&self, a: &Path, b: &Path) -> bool {
        self.is_dir(a) == self.is_dir(b) && self.children(b).next().is_none()
    }

    fn carry(&mut self, from: &Path, to: &Path) {
        self.touch_parent(from);
        self.touch_parent(to);
        let moved: Vec<PathBuf> =
            self.entries.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in moved {
            let id = self.entries.remove(&path).unwrap_or_default();
            let inner = path.strip_prefix(from).unwrap_or(Path::new(""));
            let place = if inner.as_os_str().is_empty() { to.into() } else { to.join(inner) };
            self.entries.insert(place, id);
        }
    }

    /// Reads one file and writes what it holds over another one.
    fn copy(&mut self, p: &Path, q: &Path) -> Expect {
        let file = |path: &Path| match self.node(path).map(|node| &node.kind) {
            Some(Kind::File(text)) if self.zone(path) != Zone::Hidden => Some(text.clone()),
            _ => None,
        };
        let from = match self.walk(p, true) {
            Found::Node(from) => file(&from).map(|text| (from, text)),
            _ => None,
        };
        match (from, self.walk(q, true)) {
            (None, _) => Expect::Refused,
            (_, Found::Unknown) => Expect::Any,
            (Some((from, text)), Found::Node(to)) => {
                // It is emptied before it is read.
                let same = self.entries.get(&from) == self.entries.get(&to);
                let s = if same { String::new() } else { text };
                self.change(&Op { s, ..Op::plain("write") }, &to)
            }
            (Some(_), _) => Expect::Refused,
        }
    }
}

impl Op {
    pub fn plain(op: &'static str) -> Self {
        Self { op, p: None, q: None, n: 0, s: String::new(), raw: None }
    }
}

fn names(path: &Path) -> std::vec::IntoIter<OsString> {
    let name = |part: Component| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(name).collect::<Vec<_>>().into_iter()
}
