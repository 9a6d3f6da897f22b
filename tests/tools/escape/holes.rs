//! Guarded paths in the scope: lent directories, files that git executes, programs.

use crate::escape::cell::{Cell, no_world_to_test};
use std::fs;
use yoi::protocol::OutsideAccess::Write;
use yoi::scope::{Permission, Rule};

/// A workspace in which `deep/lent` is lent to another Pod and `kept` is hidden.
fn lending() -> Cell {
    let mut cell = Cell::new();
    cell.bench.file("deep/lent/file", "theirs");
    cell.bench.file("deep/free", "mine");
    cell.bench.file("kept/file", "hidden");
    let scope = &mut cell.bench.ctx.scope;
    scope.deny.push(Rule::new(cell.bench.ctx.cwd.join("deep/lent"), Permission::Write));
    scope.deny.push(Rule::new(cell.bench.ctx.cwd.join("kept"), Permission::Read));
    cell
}

const CHANGES: [&str; 11] = [
    "echo x > deep/lent/new",
    "echo x >> deep/lent/file",
    "rm deep/lent/file",
    "mkdir deep/lent/dir",
    "mv deep/lent elsewhere",
    "mv deep elsewhere",
    "rm -r deep/lent",
    "mv deep/lent/file .",
    "mv deep/free deep/lent/",
    "ln deep/lent/file linked && echo x >> linked",
    "python3 -c 'import os; os.truncate(\"deep/lent/file\", 0)'",
];

#[tokio::test]
async fn a_lent_directory_is_read_and_not_changed_landlock_3() {
    let cell = lending();
    if !cell.covered(3, "holes") {
        return;
    }
    for program in CHANGES {
        cell.run(program).await.refused();
    }
    let did = cell.run("cat kept/file; ls -R kept").await;
    // Without mounts the names can be listed.
    let listed = cell.has_world() && did.text.contains("file\n");
    assert!(!did.text.contains("hidden") && !listed, "{}", did.text);
    assert_eq!(cell.run("cat deep/lent/file; echo x >> deep/free").await.well(), "theirs");
    assert_eq!(fs::read_to_string(cell.path("ws/deep/lent/file")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(cell.path("ws/kept/file")).unwrap(), "hidden");
    assert_eq!(fs::read_dir(cell.path("ws/deep/lent")).unwrap().count(), 1);
}

/// Replaces the file from outside while the command runs, and says how often.
async fn replaced(cell: &Cell, file: &str, program: &str) -> crate::escape::cell::Did {
    let program = format!("touch deep/ready; until [ -e deep/go ]; do sleep 0.01; done; {program}");
    let replace = async {
        while !cell.path("ws/deep/ready").exists() {
            tokio::task::yield_now().await;
        }
        fs::write(cell.path("outside/new"), "replaced").unwrap();
        fs::rename(cell.path("outside/new"), cell.path(file)).unwrap();
        fs::write(cell.path("ws/deep/go"), "").unwrap();
    };
    let (did, ()) = tokio::join!(cell.run(&program), replace);
    fs::remove_file(cell.path("ws/deep/go")).unwrap();
    fs::remove_file(cell.path("ws/deep/ready")).unwrap();
    did
}

/// Its owner replaces it as a whole, by renaming, and with it goes a mount over it.
#[tokio::test]
async fn a_lent_file_stays_lent_when_it_is_replaced_landlock_3() {
    let mut cell = Cell::new();
    if !cell.covered(3, "holes") {
        return;
    }
    for file in ["lent", "mine", "deep/a", "deep/ready", "dir/b"] {
        cell.bench.file(file, "first");
    }
    fs::remove_file(cell.path("ws/deep/ready")).unwrap();
    let rule = Rule::new(cell.bench.ctx.cwd.join("lent"), Permission::Write);
    cell.bench.ctx.scope.deny.push(rule);
    replaced(&cell, "ws/lent", "echo evil >> lent").await.refused();
    assert_eq!(fs::read_to_string(cell.path("ws/lent")).unwrap(), "replaced");
    let program = "cat lent; echo x >> mine; echo x >> deep/a; touch deep/new; mv deep/new deep/b";
    cell.run(program).await.well();
    let did = cell.run("touch new").await;
    did.refused();
    let price = format!("nothing new can be made directly in {}", cell.bench.ctx.cwd.display());
    assert!(did.confinement().cost.contains(&price), "{:?}", did.confinement());
}

/// Written down as not covered: a hidden file in what may be written, replaced while a command runs.
#[tokio::test]
async fn not_covered_is_a_secret_file_that_is_replaced_where_the_command_may_write() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.bench.file("deep/a", "");
    cell.bench.file("home/.netrc", "hidden");
    cell.env("HOME", cell.path("ws/home").display().to_string());
    assert!(!cell.run("cat home/.netrc").await.text.contains("hidden"));
    let did = replaced(&cell, "ws/home/.netrc", "cat home/.netrc").await;
    assert_eq!(did.well(), "replaced");
    // A command that may only read does not see the new file either.
    let rule = Rule::new(cell.path("ws/home"), Permission::Read);
    let deep = Rule::new(cell.path("ws/deep"), Permission::Write);
    cell.bench.ctx.scope.allow = vec![rule, deep];
    cell.bench.file("home/plain", "plain");
    cell.needs = Vec::new();
    let program = "cat home/.netrc home/plain; cat home/.netrc";
    let did = replaced(&cell, "ws/home/.netrc", program).await;
    did.refused();
    assert!(did.text.contains("plain") && !did.text.contains("replaced"), "{}", did.text);
}

/// `outside` grants no path that another Pod may write.
#[tokio::test]
async fn outside_changes_no_file_that_another_pod_writes_landlock_3() {
    let mut cell = Cell::new();
    if !cell.covered(3, "holes") {
        return;
    }
    cell.name(&[(Write, "team"), (Write, "team/named"), (Write, "file"), (Write, "outside")]);
    for dir in ["team/sibling", "team/mine", "team/named/lent", "file"] {
        fs::create_dir_all(cell.path(dir)).unwrap();
        fs::write(cell.path(dir).join("a"), "theirs").unwrap();
    }
    let mine = Rule::new(cell.path("team/mine"), Permission::Write);
    cell.bench.ctx.scope.allow.push(mine);
    let others = ["team", "team/sibling", "team/named/lent", "file/a", "ws"];
    let others = others.map(|path| cell.path(path));
    cell.bench.ctx.others = others.into();
    for program in [
        "echo x >> ../team/a",
        "echo x > ../team/new",
        "echo x >> ../team/sibling/a",
        "mv ../team/sibling ../elsewhere",
        "rm ../team/sibling/a",
        "echo x >> ../team/named/lent/a",
        "echo x >> ../file/a",
    ] {
        cell.run(program).await.refused();
    }
    cell.run("cat ../team/sibling/a; echo x >> ../team/mine/a; echo x > new").await.well();
    cell.run("echo x > $TMPDIR/a; echo x >> ../outside/secret").await.well();
    assert_eq!(fs::read_to_string(cell.path("team/sibling/a")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(cell.path("file/a")).unwrap(), "theirs");
}

#[tokio::test]
async fn without_mounts_the_price_of_a_hole_is_said() {
    let cell = lending();
    let did = cell.run("echo x > new").await;
    if cell.has_world() {
        did.well();
        return;
    }
    did.refused();
    let cost = &did.confinement().cost;
    let said = format!("nothing new can be made directly in {}", cell.bench.ctx.cwd.display());
    assert!(cost.contains(&said), "{cost:?}");
}

#[tokio::test]
async fn a_mount_is_not_taken_away_again() {
    let cell = lending();
    for program in [
        "umount deep/lent; echo x > deep/lent/new",
        "umount -l deep; echo x > deep/lent/new",
        "mount -o remount,rw,bind deep/lent; echo x > deep/lent/new",
        "unshare -Urm sh -c 'umount deep/lent; echo x > deep/lent/new'",
        "unshare -m true",
        "nsenter -t 1 -m true",
    ] {
        cell.run(program).await.refused();
    }
    assert!(!cell.path("ws/deep/lent/new").exists());
}

#[tokio::test]
async fn a_directory_of_programs_is_not_written_landlock_1() {
    let mut cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    cell.bench.file("bin/tool", "#!/bin/sh\necho tool");
    let path = format!("{}:{}", cell.path("ws/bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    cell.run("echo evil > bin/ls").await.refused();
    cell.run("mv bin other").await.refused();
    cell.name(&[(Write, "ws/bin")]);
    cell.run("echo x > bin/other").await.well();
}

#[tokio::test]
async fn a_child_reaches_nothing_its_parent_does_not_landlock_3() {
    let parent = lending();
    if !parent.covered(3, "holes") {
        return;
    }
    // The child holds what the parent could give, and carries the parent's denies.
    let mut child = lending();
    let scope = &mut child.bench.ctx.scope;
    scope.allow = vec![Rule::new(child.bench.ctx.cwd.join("deep"), Permission::Write)];
    for program in CHANGES {
        child.run(program).await.refused();
    }
    child.run("echo x > beside").await;
    assert!(!child.path("ws/beside").exists());
    child.run("cat ../outside/secret").await.refused();
    let did = child.run("echo x > deep/new; cat deep/new").await;
    assert_eq!(did.text == "x\n", child.has_world(), "{}", did.text);
}

#[tokio::test]
async fn a_lease_of_a_missing_path_is_reported_as_open() {
    let mut cell = Cell::new();
    let later = cell.bench.ctx.cwd.join("later");
    cell.bench.ctx.scope.deny.push(Rule::new(later, Permission::Write));
    let did = cell.run("true").await;
    let open = &did.confinement().open;
    assert!(open.iter().any(|text| text.contains("later does not exist yet")), "{open:?}");
}

/// The name of a directory on PATH that is not there yet could be given to a link.
#[tokio::test]
async fn a_link_in_the_place_of_programs_opens_nothing_for_the_next_command_landlock_1() {
    let mut cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    let path =
        format!("{}:{}", cell.path("ws/node_modules/.bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    cell.run("mkdir node_modules && ln -s ../../outside node_modules/.bin").await.well();
    cell.run("cat node_modules/.bin/secret").await.refused();
    cell.run("ln -s ../outside/.git .git; mkdir -p ../outside/.git").await;
    cell.run("true").await.well();
    assert_eq!(fs::read_dir(cell.path("outside")).unwrap().count(), 1);
}
