//! A command in the background tries to write in the scope. If it could, it would change a guarded file that another command has
//! just noted as the person's own.

use crate::escape::cell::Cell;
use crate::escape::git::repository;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use yoi::scope::{Permission, Rule, Scope};

/// The files of the workspace and of its repository with their contents.
fn files(cell: &Cell) -> BTreeMap<PathBuf, String> {
    let dirs = ["ws", "ws/.git", "ws/.git/hooks"].map(|dir| fs::read_dir(cell.path(dir)));
    let paths = dirs.into_iter().flatten().flatten().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_command_in_the_background_writes_nothing_in_the_scope_landlock_1() {
    let mut cell = repository();
    if !cell.covered(1, "files") {
        return;
    }
    fs::write(cell.path("ws/plain"), "plain\n").unwrap();
    fs::hard_link(cell.path("ws/plain"), cell.path("ws/linked")).unwrap();
    // This fails where `/tmp` is another mount.
    cell.run("ln plain \"$TMPDIR/hard\"").await;
    let before = files(&cell);
    cell.in_background = true;
    assert_eq!(cell.run("cat plain").await.well(), "plain\n");
    for program in [
        "echo x >> plain",
        "echo x >> linked",
        "echo x > new",
        "mkdir new",
        "rm plain",
        "mv plain new",
        "ln plain \"$TMPDIR/new\"",
        "ln -sf \"$PWD/plain\" \"$TMPDIR/soft\"; echo x >> \"$TMPDIR/soft\"",
        "ln -sfn \"$PWD\" \"$TMPDIR/dir\"; echo x > \"$TMPDIR/dir/new\"",
        "exec 3< plain; echo x >> /proc/self/fd/3",
        "exec 3< .; echo x > /proc/self/fd/3/new",
        "echo ../x > .git/commondir",
        "echo x > .git/index.lock",
        "echo x > .git/hooks/pre-commit",
        "git config core.fsmonitor ./x",
        "git init -q new",
    ] {
        cell.run(program).await.refused();
    }
    cell.run("echo x >> \"$TMPDIR/hard\"").await;
    assert_eq!(files(&cell), before);
}

#[tokio::test]
async fn a_link_at_the_place_of_a_cache_leads_a_command_in_the_background_nowhere() {
    let mut cell = Cell::new();
    fs::create_dir_all(cell.path("home/go")).unwrap();
    cell.bench.ctx.scope = Scope::new(
        ["home/go", "ws"].map(|dir| Rule::new(cell.path(dir), Permission::Write)).to_vec(),
    );
    let other = cell.path("home/documents");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("letter"), "private").unwrap();
    cell.run(&format!("ln -s {} ~/go/pkg", other.display())).await.well();
    cell.in_background = true;
    let read = format!("cat ~/go/pkg/letter || cat {}/letter", other.display());
    cell.run(&read).await.refused();
}

/// A workspace with a repository of the person, in which a command in the background writes `dist`.
fn with_dist() -> Cell {
    let mut cell = repository();
    fs::create_dir(cell.path("ws/dist")).unwrap();
    fs::write(cell.path("ws/plain"), "plain\n").unwrap();
    (cell.in_background, cell.writes) = (true, vec!["ws/dist"]);
    cell
}

#[tokio::test]
async fn a_command_in_the_background_writes_the_directory_that_it_names_and_nothing_else_landlock_1()
 {
    let cell = with_dist();
    if !cell.covered(1, "files") {
        return;
    }
    cell.run(
        "echo out > dist/out; mkdir dist/sub; mv dist/out dist/sub/; ln dist/sub/out dist/two",
    )
    .await
    .well();
    let before = files(&cell);
    for program in [
        "echo x >> plain",
        "echo x > new",
        "ln plain dist/hard && echo x >> dist/hard",
        "mv plain dist/",
        "mv dist/two .",
        "ln dist/two three",
        "mv dist old",
        "rmdir dist/sub/none dist",
        "ln -sf ../plain dist/soft; echo x >> dist/soft",
        "ln -sfn .. dist/up; echo x > dist/up/new",
        "cd dist; echo x > ../new",
        "exec 3< .; cd dist; echo x > /proc/self/fd/3/new",
        "echo x > dist/../.git/index.lock",
        "echo x > .git/hooks/pre-commit",
        "python3 -c 'import os; a = os.open(\".\", os.O_RDONLY); b = os.open(\"dist\", os.O_RDONLY); os.rename(\"plain\", \"p\", src_dir_fd=a, dst_dir_fd=b)'",
    ] {
        cell.run(program).await.refused();
    }
    assert_eq!(files(&cell), before);
    assert_eq!(fs::read_to_string(cell.path("ws/dist/sub/out")).unwrap(), "out\n");
}

#[tokio::test]
async fn what_a_command_in_the_background_leaves_for_git_is_moved_away_when_it_ends() {
    let cell = with_dist();
    let did = cell
        .run(
            "cd dist; git init -q x; git -C x config core.fsmonitor ./evil; \
             echo evil > x/.git/hooks/pre-commit; git init -q --bare bare; echo evil > bare/hooks/update; \
             git init -q --bare .; echo evil > hooks/update; mkdir y; echo 'gitdir: ../odd' > y/.git; mkdir odd; echo 'ref: refs/heads/main' > odd/HEAD",
        )
        .await;
    did.well();
    let dist = cell.path("ws/dist");
    for gone in ["x/.git/hooks/pre-commit", "bare/hooks/update", "hooks/update", "y/.git"] {
        assert!(!dist.join(gone).exists(), "{gone}: {:?}", did.ended.undone);
    }
    let config = fs::read_to_string(dist.join("x/.git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    assert!(did.ended.undone.len() >= 5, "{:?}", did.ended.undone);
}

#[tokio::test]
async fn what_a_command_in_the_background_makes_for_git_is_moved_away_while_it_runs() {
    let mut cell = with_dist();
    // A repository of the Pod whose directory lies where the command writes.
    cell.in_background = false;
    let made =
        "git init -q --separate-git-dir dist/git sub; git -C sub commit -q --allow-empty -m x";
    cell.run(&format!(
        "git config --global user.name a; git config --global user.email a@b; {made}"
    ))
    .await
    .well();
    cell.in_background = true;
    let did = cell
        .run(
            "echo evil > dist/git/hooks/pre-commit; while [ -e dist/git/hooks/pre-commit ]; do sleep 0.1; done; \
             echo it is gone",
        )
        .await;
    assert_eq!(did.well(), "it is gone\n");
    assert_eq!(did.ended.undone.len(), 1, "{:?}", did.ended.undone);
}

#[tokio::test]
async fn a_command_in_the_background_names_nothing_that_is_guarded_or_of_git() {
    let mut cell = repository();
    let ws = cell.path("ws");
    let run = |program: &str| {
        let mut bash = std::process::Command::new("bash");
        assert!(bash.args(["-ec", program]).current_dir(&ws).status().unwrap().success());
    };
    run(
        "mkdir -p dist/deep vendor .yoi .zed .claude tools/hooks bin/inner own linked out husky; git init -q vendor/lib; \
         git init -q dist/deep/theirs; git init -q --bare bare; git config core.hooksPath tools/hooks; \
         git config --file .git/more core.hooksPath husky/_; git config include.path more; \
         ln -s ../linked/mcp.json .mcp.json; rm .mcp.json; ln -s linked/mcp.json .mcp.json; ln -s ../outside away",
    );
    let path = format!("{}:{}", ws.join("bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    cell.in_background = true;
    for (dir, why) in [
        ("ws", "is guarded, and is in"),
        ("ws/.git", "which git obeys"),
        ("ws/.git/hooks", "which git obeys"),
        ("ws/.git/objects", "which git obeys"),
        ("ws/bare/hooks", "which git obeys"),
        ("ws/bare/objects", "which git obeys"),
        ("ws/vendor/lib", "is the top of a repository"),
        ("ws/vendor", "is guarded, and is in"),
        ("ws/dist", "is guarded, and is in"),
        ("ws/tools", "is guarded, and is in"),
        ("ws/tools/hooks", "is guarded"),
        ("ws/husky", "is guarded, and is in"),
        ("ws/.yoi", "is guarded"),
        ("ws/.zed", "is guarded, and is in"),
        ("ws/.claude", "is guarded, and is in"),
        ("ws/linked", "is guarded, and is in"),
        ("ws/bin", "is guarded"),
        ("ws/bin/inner", "is guarded"),
        ("ws/away", "is another place now"),
        ("ws/missing", "is another place now"),
        ("ws/.git/HEAD", "is another place now"),
    ] {
        cell.writes = vec!["ws/out", dir];
        let refused = cell.try_run("true").await.map(|did| did.text).unwrap_err().to_string();
        let top = dir == "ws" && refused.contains("top of a repository");
        assert!(refused.contains(why) || top, "{dir}: {refused}");
        assert!(
            refused.contains("name a directory that holds only what this command makes"),
            "{refused}"
        );
    }
    cell.writes = vec!["ws/out", "ws/own"];
    cell.run("echo x > out/x; echo x > own/x").await.well();
}

#[tokio::test]
async fn a_main_repository_without_a_head_starts_nothing_for_a_person_either() {
    let mut cell = with_dist();
    let config = |cell: &Cell, of: &str| fs::read_to_string(cell.path(of)).unwrap();
    cell.in_background = false;
    // Worktrees of repositories whose HEAD git does not need.
    let made = "git init -q --bare dist/y; mkdir -p t/.git y/objects y/refs; echo 'ref: refs/heads/main' > t/.git/HEAD; \
                echo ../../dist/y > t/.git/commondir; printf '[core]\\nfsmonitor = ./evil\\n' > y/config";
    cell.run(made).await.well();
    assert!(!config(&cell, "ws/y/config").contains("fsmonitor"));
    cell.in_background = true;
    cell.run("rm dist/y/HEAD; git config --file dist/y/config core.fsmonitor ./evil").await.well();
    assert!(!config(&cell, "ws/dist/y/config").contains("fsmonitor"));
}
