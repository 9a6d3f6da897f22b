//! Makes random file operations for a tree, and says how each has to end.

use super::Dice;
use super::model::{Expect, Model, Op, Spelled, Zone};
use std::path::{Path, PathBuf};

const NAMES: [&str; 10] =
    ["one", "two", "sub", "near", "new", "a b", "-rf", "línea\nnueva", "\\040", ".dot"];
const ON_ONE: [&str; 24] = [
    "create",
    "write",
    "put",
    "put",
    "append",
    "truncate",
    "map",
    "read",
    "list",
    "mkdir",
    "rmdir",
    "unlink",
    "symlink",
    "symlink",
    "mkfifo",
    "mknod",
    "device",
    "chmod",
    "chmod",
    "chown",
    "keep_owner",
    "utimes",
    "setxattr",
    "capability",
];
const ON_TWO: [&str; 7] = ["rename", "rename", "exchange", "link", "link", "copy", "unnamed"];
const RAW: [&str; 14] = [
    "bind", "tmpfs", "umount", "chroot", "handle", "openat2", "listen", "first", "hold", "held",
    "held", "race", "race", "race",
];
/// Where the operations themselves need a place.
const LEFT_OUT: [&str; 2] = ["ws/race", "play"];
const MODES: [u64; 6] = [0o700, 0o711, 0o750, 0o755, 0o777, 0o4755];

/// Operations in their order, each with the end it has to have.
pub type Script = Vec<(Op, Expect)>;

/// Makes a script of this length, and brings the model to its end.
pub fn write(dice: &mut Dice, model: &mut Model, length: usize) -> Script {
    let mut script = Script::new();
    while script.len() < length {
        let op = match dice.below(10) {
            0..=5 => on_one(dice, model),
            6..=8 => on_two(dice, model),
            _ => raw(dice, model),
        };
        if let Some(op) = op {
            let expect = model.apply(&op);
            script.push((op, expect));
        }
    }
    script
}

fn on_one(dice: &mut Dice, model: &Model) -> Option<Op> {
    let name = *dice.of(&ON_ONE);
    let makes = ["create", "mkdir", "symlink", "mkfifo", "mknod"].contains(&name);
    let target = match makes && dice.one_in(2) {
        true => directory(dice, model).join(dice.of(&NAMES)),
        false => place(dice, model),
    };
    // A link in a place of which the model knows nothing would lead it astray.
    if name == "symlink" && model.is_unknown(&target) {
        return None;
    }
    let through = ["write", "append", "truncate", "map", "read", "chmod", "utimes", "setxattr"];
    let fd = through.contains(&name) && dice.one_in(4);
    let n = match name {
        "chmod" => *dice.of(&MODES),
        "device" => *dice.of(&[0, 0x103, 0xfe00, 5]),
        "chown" => *dice.of(&[1, 65534]),
        "utimes" => 1_000_000_000 + dice.below(1_000_000),
        _ => dice.below(40),
    };
    let s = match name {
        "symlink" => leads(dice, model),
        _ => format!("text {}", dice.below(1000)),
    };
    Some(Op { p: Some(spell(dice, model, &target, fd)), n, s, ..Op::plain(name) })
}

fn on_two(dice: &mut Dice, model: &Model) -> Option<Op> {
    let name = *dice.of(&ON_TWO);
    let (p, q) = match dice.one_in(2) {
        true => {
            let p = existing(dice, model, |zone| zone == Zone::Write);
            (p, directory(dice, model).join(dice.of(&NAMES)))
        }
        false => (place(dice, model), place(dice, model)),
    };
    if name == "copy" && model.is_unknown(&p) {
        return None;
    }
    // A file without a name that gets one inside would be one that the model does not know.
    if name == "unnamed" && model.zone(&q) == Zone::Write {
        return None;
    }
    let (p, q) = (spell(dice, model, &p, false), spell(dice, model, &q, false));
    Some(Op { p: Some(p), q: Some(q), ..Op::plain(name) })
}

fn raw(dice: &mut Dice, model: &Model) -> Option<Op> {
    let name = *dice.of(&RAW);
    let outside = foreign(dice, model);
    // A link in what may be read can lead to what may be written.
    if model.is_unknown(&outside) || model.writes(&outside) {
        return None;
    }
    let absolute = text(&model.root.join(&outside));
    let inside = directory(dice, model);
    let (raw, s) = match name {
        "bind" => (text(&model.root.join(&inside)), absolute),
        "tmpfs" | "umount" => (text(&model.root.join(&inside)), "none".into()),
        "chroot" => {
            (text(&inside.strip_prefix("ws").map_or("/".into(), Path::to_owned)), "".into())
        }
        "hold" => (text(&model.root.join(&inside)), "".into()),
        "held" => (format!("{}{absolute}", "../".repeat(12)), "".into()),
        "race" => {
            let dir = outside.parent()?;
            let name = outside.file_name()?.to_str()?.to_owned();
            (text(&model.root.join(dir)), name)
        }
        "listen" if absolute.len() > 100 => return None,
        _ => (absolute, String::new()),
    };
    let n = if name == "first" { 1 } else { dice.below(50) };
    Some(Op { raw: Some(raw), s, n, ..Op::plain(name) })
}

/// A path below the root: mostly one that may be written, else one that may not.
fn place(dice: &mut Dice, model: &Model) -> PathBuf {
    match dice.below(10) {
        0..=3 => existing(dice, model, |zone| zone == Zone::Write),
        4..=5 => directory(dice, model).join(dice.of(&NAMES)),
        6 => linked(dice, model),
        _ => foreign(dice, model),
    }
}

fn existing(dice: &mut Dice, model: &Model, zone: impl Fn(Zone) -> bool) -> PathBuf {
    let left_out = |path: &Path| LEFT_OUT.iter().any(|dir| path.starts_with(dir));
    let fits = |path: &&PathBuf| !left_out(path) && zone(model.zone(path));
    let all: Vec<&PathBuf> = model.entries.keys().filter(fits).collect();
    (*dice.of(&all)).clone()
}

/// A directory that may be written.
fn directory(dice: &mut Dice, model: &Model) -> PathBuf {
    let fits = |path: &&PathBuf| model.zone(path) == Zone::Write && model.is_dir(path);
    let all: Vec<&PathBuf> = model.entries.keys().filter(fits).collect();
    (*dice.of(&all)).clone()
}

/// A name behind something, which may be a link.
fn linked(dice: &mut Dice, model: &Model) -> PathBuf {
    existing(dice, model, |zone| zone == Zone::Write).join(dice.of(&NAMES))
}

/// What exists and may not be written, or a new name beside it.
fn foreign(dice: &mut Dice, model: &Model) -> PathBuf {
    let path = existing(dice, model, |zone| zone != Zone::Write);
    match (dice.one_in(3), path.parent()) {
        (true, Some(dir)) if model.zone(dir) != Zone::Write => dir.join(dice.of(&NAMES)),
        _ => path,
    }
}

/// Where a new link leads, relative or not.
fn leads(dice: &mut Dice, model: &Model) -> String {
    let target = place(dice, model);
    match dice.below(3) {
        0 => text(&relative(&target)),
        1 => text(&Path::new("..").join(relative(&target))),
        _ => text(&model.root.join(target)),
    }
}

/// The same path from within the workspace.
fn relative(target: &Path) -> PathBuf {
    match target.strip_prefix("ws") {
        Ok(inner) if inner.as_os_str().is_empty() => ".".into(),
        Ok(inner) => inner.into(),
        Err(_) => Path::new("..").join(target),
    }
}

/// One of the ways to write a path.
fn spell(dice: &mut Dice, model: &Model, target: &Path, fd: bool) -> Spelled {
    let absolute = text(&model.root.join(target));
    let near = text(&relative(target));
    let inside: PathBuf = match directory(dice, model) {
        dir if dir.starts_with("ws") => dir.strip_prefix("ws").unwrap_or(Path::new("")).into(),
        _ => PathBuf::new(),
    };
    let up = "../".repeat(inside.components().count());
    let mut at = None;
    let path = match dice.below(8) {
        0 => absolute,
        1 => format!("/proc/self/root{absolute}"),
        2 => format!("/proc/self/cwd/{near}"),
        3 => format!("./{}/{up}{near}", text(&inside)).replace("/./", "//./"),
        4 if !fd => {
            at = Some(format!("./{}", text(&inside)));
            format!("{up}{near}")
        }
        5 => format!("/proc/thread-self/root/proc/self/cwd/{near}"),
        _ => near,
    };
    // "./" and the path of a directory that is the workspace itself make an empty name.
    let path = if path.starts_with(".//") { path.replacen(".//", "./", 1) } else { path };
    Spelled { target: target.into(), path, at, fd }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap_or_default().to_owned()
}
