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
