//! What lies inside the scope and is worth less: lent directories, what git executes, programs.

use crate::escape::cell::Cell;
use std::fs;
use yoi::sandbox::{Mounts, Need};
use yoi::scope::{Permission, Rule};

/// A workspace of which `deep/lent` is somebody else's for now, and `kept` nobody's.
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
    let mut cell = lending();
    if !cell.covered(3, "holes").await {
        return;
    }
    for mounts in [Mounts::WhenPossible, Mounts::Never] {
        cell.mounts = mounts;
        for program in CHANGES {
            cell.run(program).await.refused();
        }
        let did = cell.run("cat kept/file; ls -R kept").await;
        // Without mounts the names can be listed.
        let listed = mounts == Mounts::WhenPossible && did.text.contains("file\n");
        assert!(!did.text.contains("hidden") && !listed, "{}", did.text);
        assert_eq!(cell.run("cat deep/lent/file; echo x >> deep/free").await.well(), "theirs");
        assert_eq!(fs::read_to_string(cell.path("ws/deep/lent/file")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(cell.path("ws/kept/file")).unwrap(), "hidden");
        assert_eq!(fs::read_dir(cell.path("ws/deep/lent")).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn without_mounts_the_price_of_a_hole_is_said() {
    let mut cell = lending();
    cell.mounts = Mounts::Never;
    let did = cell.run("echo x > new").await;
    did.refused();
    let cost = &did.confinement().cost;
    let said = format!("nothing new can be made directly in {}", cell.bench.ctx.cwd.display());
    assert!(cost.contains(&said), "{cost:?}");
    cell.mounts = Mounts::WhenPossible;
    if cell.mounted().await {
        cell.run("echo x > new").await.well();
    }
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
    if !cell.covered(1, "files").await {
        return;
    }
    cell.bench.file("bin/tool", "#!/bin/sh\necho tool");
    let path = format!("{}:{}", cell.path("ws/bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    cell.run("echo evil > bin/ls").await.refused();
    cell.run("mv bin other").await.refused();
    cell.needs = vec![Need::Outside];
    cell.run("echo x > bin/other").await.well();
}

#[tokio::test]
async fn a_child_reaches_nothing_its_parent_does_not_landlock_3() {
    let parent = lending();
    if !parent.covered(3, "holes").await {
        return;
    }
    // The child holds what the parent could give, and carries the parent's denies.
    let mut child = lending();
    let scope = &mut child.bench.ctx.scope;
    scope.allow = vec![Rule::new(child.bench.ctx.cwd.join("deep"), Permission::Write)];
    for program in CHANGES {
        child.run(program).await.refused();
    }
    child.run("echo x > beside").await.refused();
    child.run("cat ../outside/secret").await.refused();
    assert_eq!(child.run("echo x > deep/new; cat deep/new").await.well(), "x\n");
}

#[tokio::test]
async fn what_is_lent_before_it_is_there_is_said_to_be_open() {
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
    if !cell.covered(1, "files").await {
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
