use super::*;
use crate::scope::{Permission, Rule, Scope};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A hostile workspace, and the files of the person who opens it.
struct Hostile {
    top: tempfile::TempDir,
}

impl Hostile {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let bench = Self { top };
        fs::create_dir_all(bench.path("ws/.yoi")).unwrap();
        fs::create_dir_all(bench.path("home/.ssh")).unwrap();
        fs::write(bench.path("home/.ssh/id_ed25519"), "PRIVATE KEY").unwrap();
        fs::write(bench.path("ws/real.md"), "inside").unwrap();
        bench
    }

    fn path(&self, below: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(below)
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let root = self.path("ws");
        let found = WorkspaceFiles::of(&root).read(&self.path("ws").join(name), Limit::head(64));
        found.map(|found| String::from_utf8(found.bytes).unwrap()).map_err(|e| e.to_string())
    }
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_link_out_of_the_workspace_is_never_followed_and_both_ends_are_named() {
    let bench = Hostile::new();
    let key = bench.path("home/.ssh/id_ed25519");
    symlink(&key, bench.path("ws/absolute")).unwrap();
    symlink("../home/.ssh/id_ed25519", bench.path("ws/relative")).unwrap();
    symlink("../home", bench.path("ws/dir")).unwrap();
    symlink("relative", bench.path("ws/chain")).unwrap();
    for name in ["absolute", "relative", "dir/.ssh/id_ed25519", "chain", "../home/.ssh/id_ed25519"]
    {
        let error = bench.read(name).unwrap_err();
        assert!(error.starts_with("symbolic link leads out of the workspace: "), "{name}: {error}");
        assert!(error.contains(&format!("-> {}", key.display())), "{name}: {error}");
    }
}

#[test]
fn a_link_inside_the_workspace_is_followed() {
    let bench = Hostile::new();
    symlink("real.md", bench.path("ws/CLAUDE.md")).unwrap();
    assert_eq!(bench.read("CLAUDE.md"), Ok("inside".into()));
}

#[test]
fn only_regular_files_are_opened_and_opening_never_waits() {
    let bench = Hostile::new();
    fifo(&bench.path("ws/fifo"));
    fs::create_dir(bench.path("ws/dir")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("ws/socket")).unwrap();
    for (name, kind) in [("fifo", "a FIFO"), ("dir", "a directory"), ("socket", "a socket")] {
        let error = bench.read(name).unwrap_err();
        assert!(error.starts_with(&format!("path is {kind}, not a file: ")), "{error}");
    }
    for (name, to) in [
        ("zero", "/dev/zero"),
        ("magic", "/proc/self/fd/0"),
        ("root", "/proc/self/root/etc/passwd"),
    ] {
        symlink(to, bench.path("ws").join(name)).unwrap();
        let error = bench.read(name).unwrap_err();
        assert!(error.starts_with("symbolic link leads out of the workspace: "), "{name}: {error}");
    }
    symlink("loop", bench.path("ws/loop")).unwrap();
    assert!(bench.read("loop").unwrap_err().starts_with("cannot resolve "));
}

#[test]
fn of_a_long_file_only_the_beginning_is_read_or_nothing() {
    let bench = Hostile::new();
    let huge = fs::File::create(bench.path("ws/huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(bench.read("huge").unwrap().len(), 64);
    let root = bench.path("ws");
    let whole = WorkspaceFiles::of(&root).read(&bench.path("ws/huge"), Limit::whole(64));
    let error = whole.unwrap_err().to_string();
    assert!(error.ends_with("huge has 1024.0 GiB, the limit is 64 bytes"), "{error}");
}

#[test]
fn a_missing_file_is_missing_and_a_broken_link_is_named() {
    let bench = Hostile::new();
    assert!(bench.read("none.md").unwrap_err().starts_with("file not found: "));
    assert!(bench.read("real.md/none").unwrap_err().contains("not a directory"));
    symlink("gone", bench.path("ws/broken")).unwrap();
    assert!(bench.read("broken").unwrap_err().starts_with("broken symbolic link: "));
    assert!(bench.read("broken/").unwrap_err().starts_with("broken symbolic link: "));
}

#[test]
fn a_pod_with_a_part_of_the_workspace_gets_no_other_part_through_a_link() {
    let bench = Hostile::new();
    let (root, part) = (bench.path("ws"), bench.path("ws/part"));
    fs::create_dir(&part).unwrap();
    fs::write(bench.path("ws/private.md"), "private").unwrap();
    symlink("../private.md", part.join("AGENTS.md")).unwrap();
    symlink("/etc/hostname", part.join("out")).unwrap();
    let scope =
        Scope::new(vec![Rule::new(&part, Permission::Write), Rule::new("/etc", Permission::Read)]);
    let files = WorkspaceFiles::for_scope(&root, &scope, &[]);
    let error = files.read(&part.join("AGENTS.md"), Limit::head(64)).unwrap_err().to_string();
    assert!(error.starts_with("symbolic link leads out of the scope: "), "{error}");
    let error = files.read(&part.join("out"), Limit::head(64)).unwrap_err().to_string();
    assert!(error.starts_with("symbolic link leads out of the workspace: "), "{error}");
    let found = files.read(&bench.path("ws/real.md"), Limit::head(64)).unwrap();
    assert_eq!(
        found.bytes, b"inside",
        "the instructions of the whole workspace are for each Pod in it"
    );
    let closed = scope.with_deny([bench.path("ws/real.md")]);
    let files = WorkspaceFiles::for_scope(&root, &closed, &[]);
    assert!(files.read(&bench.path("ws/real.md"), Limit::head(64)).is_err());
}

#[test]
fn a_secret_in_the_workspace_is_not_read() {
    let bench = Hostile::new();
    let (root, secrets) = (bench.path("home"), vec![bench.path("home/.ssh")]);
    symlink(".ssh/id_ed25519", bench.path("home/AGENTS.md")).unwrap();
    let scope = Scope::new(vec![Rule::new(&root, Permission::Read)]);
    let files = WorkspaceFiles::for_scope(&root, &scope, &secrets);
    let error = files.read(&bench.path("home/AGENTS.md"), Limit::head(64)).unwrap_err().to_string();
    assert!(error.starts_with("path is secret, no tool reads or writes it: "), "{error}");
}

/// A file is exchanged for a link to a secret, back and forth, between the check and the opening:
/// the secret is never read.
#[test]
fn a_file_that_is_swapped_for_a_link_while_it_is_opened_leads_nowhere() {
    let bench = Hostile::new();
    symlink(bench.path("home/.ssh/id_ed25519"), bench.path("ws/evil")).unwrap();
    let (file, evil) = (bench.path("ws/real.md"), bench.path("ws/evil"));
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = stop.clone();
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &file, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let mut read = 0;
    for _ in 0..3_000 {
        match bench.read("real.md") {
            Ok(text) => {
                assert_eq!(text, "inside");
                read += 1;
            }
            Err(error) => assert!(
                error.starts_with("symbolic link leads out") || error.starts_with("path changes"),
                "{error}"
            ),
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(read > 0, "the file itself was read now and then");
}
