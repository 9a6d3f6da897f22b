//! Paths outside the scope that a command names: these and nothing beside them.

use crate::bench::{argument_error, content};
use crate::escape::cell::{Cell, no_world_to_test};
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use yoi::protocol::OutsideAccess::{Read, Socket, Write};
use yoi::sandbox::{Isolation, Need};
use yoi::tools::{CommandNeeds, command_needs};

/// `data` and `out` are named; `data-beside` and `secret` are their siblings.
fn named() -> Cell {
    let cell = Cell::naming(&[(Read, "outside/data"), (Write, "outside/out")]);
    for dir in ["data/deep", "out", "data-beside"] {
        fs::create_dir_all(cell.path("outside").join(dir)).unwrap();
    }
    fs::write(cell.path("outside/data/deep/a"), "named").unwrap();
    fs::write(cell.path("outside/data-beside/a"), "outside\n").unwrap();
    cell
}

#[tokio::test]
async fn a_path_next_to_the_named_one_is_neither_seen_nor_changed_landlock_1() {
    let cell = named();
    if !cell.covered(1, "files") {
        return;
    }
    if cell.has_world() {
        assert_eq!(cell.run("ls ../outside").await.well(), "data\nout\n");
    }
    assert_eq!(cell.run("cat ../outside/data/deep/a").await.well(), "named");
    assert_eq!(cell.run("echo x > ../outside/out/a; cat ../outside/out/a").await.well(), "x\n");
    for program in [
        "cat ../outside/secret",
        "cat ../outside/data-beside/a",
        "cat ../outside/data/../data-beside/a",
        "echo x > ../outside/data/deep/a",
        "echo x > ../outside/data/new",
        "mv ../outside/data ../outside/moved",
        "ln ../outside/secret ../outside/out/linked",
        "ln -s ../data-beside ../outside/out/way; cat ../outside/out/way/a",
    ] {
        cell.run(program).await.refused();
    }
    // In its namespaces the directory that contains them is in memory, and its files never reach
    // the disk.
    cell.run("echo x > ../outside/new; mv ../outside/out/a ../outside/a").await;
    let mut names: Vec<_> = fs::read_dir(cell.path("outside")).unwrap().flatten().collect();
    names.sort_by_key(fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["data", "data-beside", "out", "secret"]);
    fs::remove_dir_all(cell.path("outside/out")).unwrap();
    fs::create_dir(cell.path("outside/out")).unwrap();
}

#[tokio::test]
async fn a_file_that_is_named_opens_no_other_file_of_its_directory_landlock_1() {
    let cell = Cell::naming(&[(Write, "outside/secret")]);
    if !cell.covered(1, "files") {
        return;
    }
    fs::write(cell.path("outside/other"), "outside\n").unwrap();
    cell.run("echo x > ../outside/secret").await.well();
    cell.run("cat ../outside/other").await.refused();
    assert_eq!(fs::read_to_string(cell.path("outside/secret")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_program_is_reached_only_through_the_socket_that_is_named() {
    let cell = Cell::naming(&[(Socket, "outside/named")]);
    if no_world_to_test() {
        return;
    }
    let servers =
        ["named", "other"].map(|name| UnixListener::bind(cell.path("outside").join(name)).unwrap());
    let connect = |name: &str| {
        let path = cell.path("outside").join(name);
        format!("import socket; socket.socket(socket.AF_UNIX).connect('{}')", path.display())
    };
    cell.python(&connect("named")).await.well();
    let [named, other] = servers;
    named.accept().unwrap();
    other.set_nonblocking(true).unwrap();
    let did = cell.python(&connect("other")).await;
    match cell.has_world() {
        true => did.refused(),
        // Landlock below 9 cannot restrict single sockets, and the result says so.
        false => {
            let said =
                "every socket of another program whose path a command sees can be connected to";
            assert_eq!(did.confinement().open.iter().any(|open| open == said), did.text.is_empty());
            return;
        }
    }
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// The needs of a call with these paths.
fn needed(cell: &Cell, paths: &[(&Path, bool)]) -> CommandNeeds {
    let outside: Vec<_> =
        paths.iter().map(|(path, write)| json!({"path": path, "write": write})).collect();
    let arguments = json!({"command": "true", "outside": outside, "reason": "r"});
    command_needs(&arguments.to_string(), &cell.bench.ctx)
}

#[test]
fn what_no_approval_opens_is_refused_before_a_person_is_asked() {
    let mut cell = Cell::new();
    cell.bench.ctx.isolation = Isolation::Namespaces;
    for dir in ["own", "home/.ssh", "theirs", "home/bin"] {
        fs::create_dir_all(cell.path(dir)).unwrap();
        fs::write(cell.path(dir).join("file"), "").unwrap();
    }
    cell.bench.ctx.others = vec![cell.path("theirs")];
    cell.env("PATH", format!("/usr/bin:{}", cell.path("home/bin").display()));
    let _listener = UnixListener::bind(cell.path("outside/door")).unwrap();
    let table: [(&str, bool, &str); 12] = [
        ("/", false, "/ is the whole machine"),
        ("/dev/null", false, "devices cannot be granted to a command"),
        ("/proc/self/environ", false, "the kernel's own"),
        ("/sys/kernel", true, "the kernel's own"),
        ("relative", false, "path must be absolute"),
        ("outside/missing", true, "does not exist; name the directory"),
        ("home/.ssh", false, "path is secret"),
        ("home/.ssh/file", false, "path is secret"),
        ("own/file", false, "is not opened for reading: it is yoi's own"),
        ("theirs/file", true, "is not opened for writing: another pod works there"),
        ("home/bin/file", true, "it is in a directory on PATH; name that directory"),
        ("outside/\n", false, "does not exist"),
    ];
    for (path, write, why) in table {
        let absolute = path.starts_with('/') || path == "relative";
        let path = if absolute { path.into() } else { cell.path(path) };
        let said = needed(&cell, &[(&path, write)]).closed.unwrap_or_default();
        assert!(said.contains(why), "{}: {said}", path.display());
    }
    let both = [("outside/door", true), ("outside", false)].map(|(p, w)| (cell.path(p), w));
    let both: Vec<(&Path, bool)> = both.iter().map(|(path, w)| (path.as_path(), *w)).collect();
    let said = needed(&cell, &both).closed.unwrap_or_default();
    assert!(said.contains("a socket and a directory are not given to one command"), "{said}");
    let old = json!({"command": "true", "needs": ["outside"], "reason": "r"}).to_string();
    let said = command_needs(&old, &cell.bench.ctx).closed.unwrap_or_default();
    assert!(said.contains("opens only the paths that the call names"), "{said}");
    // A path that another Pod writes can be named for reading, and a directory on PATH for writing.
    for (path, write) in [("theirs", false), ("home/bin", true), ("outside/door", false)] {
        assert_eq!(needed(&cell, &[(&cell.path(path), write)]).closed, None, "{path}");
    }
}

#[test]
fn a_socket_is_not_given_where_it_would_open_all_others() {
    let mut cell = Cell::new();
    fs::write(cell.path("outside/file"), "").unwrap();
    let _listener = UnixListener::bind(cell.path("outside/door")).unwrap();
    let socket = cell.path("outside/door");
    cell.bench.ctx.isolation = Isolation::LandlockOnly;
    for abi in [0, 7] {
        cell.bench.ctx.landlock = abi;
        let said = needed(&cell, &[(&socket, false)]).closed.unwrap_or_default();
        assert!(
            said.contains(
                "outside/door is not opened for connecting: commands run without namespaces"
            ),
            "{said}"
        );
        assert_eq!(needed(&cell, &[(&cell.path("outside/file"), true)]).closed, None);
    }
    cell.bench.ctx.landlock = 9;
    assert_eq!(needed(&cell, &[(&socket, false)]).closed, None);
}

#[tokio::test]
async fn a_path_that_leads_elsewhere_than_when_it_was_approved_is_not_opened() {
    let mut cell = named();
    let link = cell.path("outside/link");
    symlink("data", &link).unwrap();
    let asked = needed(&cell, &[(&link, false)]);
    assert_eq!(asked.outside[0].path, cell.path("outside/data"), "shown as it really is");
    cell.bench.ctx.needs = vec![Need::Outside];
    cell.bench.ctx.outside = asked.outside;
    let call = json!({"command": "cat ../outside/link/deep/a", "outside": [{"path": link}], "reason": "r"});
    let output = cell.bench.call("Bash", call.clone()).await;
    assert_eq!(
        content(&output).trim_end(),
        "named",
        "a link that is named leads there: {output:?}"
    );
    fs::remove_file(&link).unwrap();
    symlink("data-beside", &link).unwrap();
    let output = cell.bench.call("Bash", call).await;
    assert!(argument_error(&output).contains("another place now than when"), "{output:?}");
    // A link that replaces the directory itself is not followed at the start either.
    fs::rename(cell.path("outside/data"), cell.path("outside/was")).unwrap();
    symlink("data-beside", cell.path("outside/data")).unwrap();
    if Cell::new().has_world() {
        let refused = cell.try_run("cat ../outside/data/a").await.unwrap_err().to_string();
        assert!(refused.contains("/outside/data: Too many levels of symbolic links"), "{refused}");
    }
}
