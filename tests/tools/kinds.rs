//! Kinds of files as people have them, each through Read, Edit and Write; `rewinds.rs` takes them through a rewind.

use crate::bench::Bench;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use yoi::tools::Output;

/// What stands in the file after a change, or a part of the refusal.
pub type After = Result<Vec<u8>, &'static str>;

/// Makes the file of a kind.
pub type Make = Box<dyn Fn(&Bench, &Path)>;

pub struct Kind {
    pub name: &'static str,
    /// The name of the file in the workspace.
    pub file: &'static str,
    pub make: Make,
    /// Done between Read and the change.
    pub meanwhile: fn(&Path),
    /// A part of what Read says, or of its refusal.
    pub read: Result<&'static str, &'static str>,
    /// After `one` was replaced by `two`.
    pub edited: After,
    /// After `two` and `last` were written.
    pub written: After,
}

fn kind(
    name: &'static str,
    file: &'static str,
    make: impl Fn(&Bench, &Path) + 'static,
    read: Result<&'static str, &'static str>,
    (edited, written): (After, After),
) -> Kind {
    Kind { name, file, make: Box::new(make), meanwhile: |_| {}, read, edited, written }
}

/// A file with this content.
fn holds(bytes: impl AsRef<[u8]> + 'static) -> impl Fn(&Bench, &Path) {
    move |_, path| fs::write(path, &bytes).unwrap()
}

/// A file of two lines with this mode.
fn has_mode(mode: u32) -> impl Fn(&Bench, &Path) {
    move |_, path| {
        fs::write(path, "one\nend\n").unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

fn becomes(edited: impl AsRef<[u8]>, written: impl AsRef<[u8]>) -> (After, After) {
    (Ok(edited.as_ref().to_vec()), Ok(written.as_ref().to_vec()))
}

fn refused(why: &'static str) -> (After, After) {
    (Err(why), Err(why))
}

/// The result of a change to two lines that end with LF.
fn plain() -> (After, After) {
    becomes("two\nend\n", "two\nlast\n")
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

pub fn kinds() -> Vec<Kind> {
    let two = || holds("one\nend\n");
    let line = Ok("     1\tone\n     2\tend\n");
    let long = |start: &str, rest: &str, times| format!("{start}{}", rest.repeat(times));
    let not_utf8 = "Write and Edit change text in UTF-8 only";
    let may_all = rustix::process::geteuid().is_root();
    let protected = if may_all { plain() } else { refused("file is write-protected") };
    let mut kinds = vec![
        kind("LF", "a", two(), line, plain()),
        kind(
            "CRLF",
            "a",
            holds("one\r\nend\r\n"),
            line,
            becomes("two\r\nend\r\n", "two\r\nlast\r\n"),
        ),
        kind("CR", "a", holds("one\rend\r"), line, becomes("two\rend\r", "two\rlast\r")),
        kind(
            "mixed ends",
            "a",
            holds("one\r\nend\n"),
            line,
            becomes("two\r\nend\n", "two\r\nlast\n"),
        ),
        kind("no end", "a", holds("one\nend"), line, becomes("two\nend", "two\nlast\n")),
        kind(
            "UTF-8 with a mark",
            "a",
            holds("\u{feff}one\nend\n"),
            line,
            becomes("\u{feff}two\nend\n", "\u{feff}two\nlast\n"),
        ),
        kind(
            "UTF-16 LE",
            "a",
            holds(utf16("\u{feff}one\nend\n", u16::to_le_bytes)),
            line,
            refused(not_utf8),
        ),
        kind(
            "UTF-16 BE",
            "a",
            holds(utf16("\u{feff}one\nend\n", u16::to_be_bytes)),
            line,
            refused(not_utf8),
        ),
        kind("latin-1", "a", holds(b"one \xe9\n"), Ok("\tone é\n"), refused(not_utf8)),
        kind("NUL", "a", holds("one\0end"), Err("is binary"), refused("file has not been read")),
        kind(
            "no bytes",
            "a",
            holds(""),
            Ok("(empty file)"),
            (Err("old_string was not found"), Ok(b"two\nlast\n".into())),
        ),
        kind(
            "one byte",
            "a",
            holds("x"),
            Ok("     1\tx\n"),
            (Err("old_string was not found"), Ok(b"two\nlast\n".into())),
        ),
        kind(
            "1 MiB",
            "a",
            holds(long("one\n", "1234567\n", 131_072)),
            Ok("more line(s); continue with offset"),
            becomes(long("two\n", "1234567\n", 131_072), "two\nlast\n"),
        ),
        kind(
            "over the limit",
            "a",
            |_, path| File::create(path).unwrap().set_len(65 << 20).unwrap(),
            Err("file is too large"),
            refused("file is too large"),
        ),
        kind(
            "a long line",
            "a",
            holds(long("one", "x", 100_000)),
            Ok(" more characters]"),
            becomes(long("two", "x", 100_000), "two\nlast\n"),
        ),
        kind("0755", "a", has_mode(0o755), line, plain()),
        kind("0600", "a", has_mode(0o600), line, plain()),
        kind("0444", "a", has_mode(0o444), line, protected),
        kind("set-group-id", "a", has_mode(0o2755), line, plain()),
        kind("another owner", "a", of_another_user, line, plain()),
        kind("attributes", "a", attributed, line, plain()),
        kind("brackets", "[id].ts", two(), line, plain()),
        kind("blanks", " a  b ", two(), line, plain()),
        kind("signs of shells and patterns", "\"'\\*?$`{x}", two(), line, plain()),
        kind("dash", "-rf", two(), line, plain()),
        kind("newline", "a\nb", two(), line, plain()),
        kind("NFC", "\u{e9}", beside("e\u{301}"), line, plain()),
        kind("NFD", "e\u{301}", beside("\u{e9}"), line, plain()),
        kind("link in the scope", "a", linked("ws/real"), line, plain()),
        kind(
            "directory that is a link",
            "to/a",
            |bench, path| {
                bench.file("real/a", "one\nend\n");
                fs::remove_dir(path.parent().unwrap()).unwrap();
                symlink("real", path.parent().unwrap()).unwrap();
            },
            line,
            plain(),
        ),
        kind("link out of the scope", "a", linked("outside/real"), Err("scope"), refused("scope")),
        kind(
            "dangling link",
            "a",
            |_, path| symlink("nowhere", path).unwrap(),
            Err("nowhere"),
            refused("nowhere"),
        ),
        kind(
            "hard link",
            "a",
            |bench, path| fs::hard_link(bench.file("other", "one\nend\n"), path).unwrap(),
            line,
            plain(),
        ),
        kind(
            "link to a directory",
            "a",
            |bench, path| {
                bench.file("real/inner", "one");
                symlink("real", path).unwrap();
            },
            Ok("inner\n"),
            refused("directory"),
        ),
        kind(
            "directory with a name that is no UTF-8",
            "a",
            |_, path| {
                fs::create_dir(path).unwrap();
                fs::write(path.join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
            },
            Ok("\u{fffd}.txt\n"),
            refused("directory"),
        ),
        kind(
            "FIFO",
            "a",
            |_, path| rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap(),
            Err("path is a FIFO, not a file"),
            refused("path is a FIFO, not a file"),
        ),
        kind(
            "closed directory",
            "dir/a",
            |bench, path| {
                bench.file("dir/a", "one\nend\n");
                let dir = path.parent().unwrap();
                fs::set_permissions(dir, Permissions::from_mode(0o555)).unwrap();
            },
            line,
            plain(),
        ),
        kind("a mount of its own", "a", mounted, line, plain()),
    ];
    let changed = kind("changed meanwhile", "a", two(), line, refused("file was modified since"));
    kinds.push(Kind { meanwhile: |path| fs::write(path, "one\nmore\n").unwrap(), ..changed });
    kinds
}

/// A file with an attribute of the person, where the file system has them.
fn attributed(_: &Bench, path: &Path) {
    fs::write(path, "one\nend\n").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if let Err(error) = rustix::fs::setxattr(path, "user.note", b"kept", flags) {
        eprintln!("skipped: attributes ({error})");
    }
}

/// A file beside one whose name looks the same.
fn beside(other: &'static str) -> impl Fn(&Bench, &Path) {
    move |bench, path| {
        bench.file(other, "one\nother\n");
        fs::write(path, "one\nend\n").unwrap();
    }
}

fn linked(to: &'static str) -> impl Fn(&Bench, &Path) {
    move |bench, path| {
        fs::write(bench.path(to), "one\nend\n").unwrap();
        symlink(bench.path(to), path).unwrap();
    }
}

/// A file over which another one is mounted, where that is permitted.
fn mounted(bench: &Bench, path: &Path) {
    fs::write(path, "one\nend\n").unwrap();
    let source = bench.path("outside/source");
    fs::write(&source, "one\nend\n").unwrap();
    let mounted = Command::new("mount").arg("--bind").args([&source, path]).output();
    if !mounted.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: a mount of its own (not permitted)");
    }
}

/// Only a file that could be mounted over is a mount.
pub fn unmount(path: &Path) {
    let _ = Command::new("umount").arg(path).stderr(std::process::Stdio::null()).status();
}

/// A file of another user, where one may be made.
fn of_another_user(_: &Bench, path: &Path) {
    fs::write(path, "one\nend\n").unwrap();
    if let Err(error) = std::os::unix::fs::chown(path, Some(65_533), Some(65_533)) {
        eprintln!("skipped: another owner ({error})");
    }
}

/// Mode, owner, number of names and attribute of a file, and whether its name is a link.
pub fn standing(path: &Path) -> Option<(u32, u32, u32, u64, Vec<u8>, bool)> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file())?;
    // A change takes the privileges of a program away, as the kernel does.
    let mode = found.mode() & 0o777;
    let mut note = vec![0; 64];
    let size = rustix::fs::getxattr(path, "user.note", &mut note[..]).unwrap_or(0);
    note.truncate(size);
    Some((mode, found.uid(), found.gid(), found.nlink(), note, path.is_symlink()))
}

pub fn bytes(path: &Path) -> Option<Vec<u8>> {
    path.is_file().then(|| fs::read(path).unwrap())
}

/// The content of all other files beside a file.
pub fn others(path: &Path) -> BTreeMap<std::ffi::OsString, Option<Vec<u8>>> {
    let own = fs::metadata(path).ok().map(|found| found.ino());
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().flatten();
    let other = |entry: &fs::DirEntry| {
        entry.path() != path && entry.metadata().ok().map(|found| found.ino()) != own
    };
    entries.filter(other).map(|entry| (entry.file_name(), bytes(&entry.path()))).collect()
}

pub fn says(output: &Output, expected: Result<&str, &str>) -> bool {
    let text = format!("{}\n{}", output.summary, output.content.as_deref().unwrap_or(""));
    match expected {
        Ok(part) => !output.is_error && text.contains(part),
        Err(part) => output.is_error && text.contains(part),
    }
}

/// What is wrong with a change of a file of this kind.
async fn wrong(kind: &Kind, is_edit: bool) -> Option<String> {
    let mut bench = Bench::new();
    let path = bench.path("ws").join(kind.file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    (kind.make)(&bench, &path);
    let read = bench.read(&path).await;
    (kind.meanwhile)(&path);
    let (former, stood, beside) = (bytes(&path), standing(&path), others(&path));
    let (output, expected) = match is_edit {
        true => (bench.edit(&path, "one", "two").await, &kind.edited),
        false => (bench.write(&path, "two\nlast\n").await, &kind.written),
    };
    let now = bytes(&path);
    let before = output.files.first().and_then(|mark| mark.before.as_ref());
    let kept = before.map(|hash| fs::read(bench.ctx.blobs.join(hash)).unwrap());
    let (left, aside) = (standing(&path), others(&path));
    unmount(&path);
    let (read_right, said_right) =
        (says(&read, kind.read), says(&output, expected.as_ref().map(|_| "").map_err(|why| *why)));
    let content_right = match expected {
        Ok(wanted) => now.as_ref() == Some(wanted) && kept == former,
        Err(_) => now == former && kept.is_none(),
    };
    let stands = left == stood && aside == beside;
    let is_right = read_right && said_right && content_right && stands;
    (!is_right).then(|| {
        let cut = |output: &Output| format!("{output:?}").chars().take(500).collect::<String>();
        format!(
            "{} (edit: {is_edit}): read {read_right}, said {said_right}, content {content_right}, \
             {stood:?} -> {left:?}, others {}\n  {}\n  {}",
            kind.name,
            aside == beside,
            cut(&read),
            cut(&output)
        )
    })
}

#[tokio::test]
async fn each_kind_of_file_is_read_changed_and_kept_as_it_is() {
    let mut found = Vec::new();
    for kind in kinds() {
        for is_edit in [true, false] {
            found.extend(wrong(&kind, is_edit).await);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
