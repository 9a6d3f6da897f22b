//! A command may continue a rebase or a bisect, but cannot add programs to it.

use crate::escape::cell::{Cell, Did, no_world_to_test};
use crate::escape::git::{git, repository};
use std::fs;
use std::path::Path;

/// Three commits, of which the second is edited in the rebase that a person began.
fn history() -> Cell {
    let cell = repository();
    let ws = &cell.bench.ctx.cwd;
    for name in ["one", "two", "three", "four"] {
        fs::write(ws.join(name), name).unwrap();
        git(ws, &["add", name]);
        git(ws, &["commit", "-q", "-m", name]);
    }
    cell
}

/// Runs a rebase with the person's own git, unconfined.
fn rebase(dir: &Path, editor: &str, words: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.arg("rebase").args(words).current_dir(dir);
    let status = git.env("GIT_SEQUENCE_EDITOR", editor).env("GIT_EDITOR", "true").output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}

#[track_caller]
fn nothing_undone(did: &Did) {
    did.well();
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
}

#[tokio::test]
async fn a_command_rebases_and_bisects_without_a_grant() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    let edit = "GIT_SEQUENCE_EDITOR=\"sed -i 's/^pick/edit/'\" git rebase -q -i HEAD~2";
    nothing_undone(&cell.run(edit).await);
    nothing_undone(&cell.run("git commit -q --amend -m changed").await);
    nothing_undone(&cell.run("git rebase --continue").await);
    nothing_undone(&cell.run("git rebase --continue").await);
    assert!(!ws.join(".git/rebase-merge").exists());
    nothing_undone(&cell.run("git rebase -q -x 'touch ran' HEAD~2").await);
    assert!(ws.join("ran").exists());
    nothing_undone(&cell.run("git bisect start -- \"it's\" three && git bisect reset").await);
    nothing_undone(&cell.run("git bisect start HEAD HEAD~3").await);
    let did = cell.run("git bisect run sh -c '! test -e three'").await;
    nothing_undone(&did);
    assert!(did.text.contains("is the first bad commit"), "{}", did.text);
    nothing_undone(&cell.run("git bisect reset").await);
}

#[tokio::test]
async fn a_rebase_of_a_command_that_stops_before_its_programs_goes_on_and_the_result_says_so() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let did = cell.run("git rebase -x 'test -e go && touch ran' HEAD~2").await;
    did.undone(1);
    assert!(did.ended.undone[0].contains("will run 1 program(s)"), "{:?}", did.ended.undone);
    nothing_undone(&cell.run("touch go; git rebase --continue").await);
    assert!(cell.path("ws/ran").exists());
}

#[tokio::test]
async fn no_command_adds_a_program_to_a_rebase_that_is_under_way() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    rebase(ws, "sed -i '1s/^pick/edit/; $aexec touch mine'", &["-i", "HEAD~2"]);
    let todo = ws.join(".git/rebase-merge/git-rebase-todo");
    let before = fs::read_to_string(&todo).unwrap();
    assert!(before.contains("exec touch mine"), "{before}");
    for plant in [
        "echo 'exec touch ran' >> $t",
        "printf '\\t x\\ttouch ran\\n' > $t",
        "printf 'exec touch mine\\nexec touch mine\\n' > $t",
        "rm $t; echo 'x touch ran' > new; ln -s $PWD/new $t",
        "git rebase --abort; git rebase -x 'touch ran; false' HEAD~2",
    ] {
        let did =
            cell.run(&format!("t=.git/rebase-merge/git-rebase-todo; {plant}; rm -f ran")).await;
        did.undone(1);
        assert_eq!(fs::read_to_string(&todo).unwrap(), before, "{plant}");
    }
    let away = "mv .git/rebase-merge r; ln -s ../r .git/rebase-merge; echo 'x touch ran' > r/git-rebase-todo";
    let did = cell.run(away).await;
    did.undone(1);
    let left = fs::read_to_string(&todo).ok();
    assert_eq!(left, (!cell.has_world()).then_some(before));
    assert!(!ws.join(".git/rebase-merge").is_symlink() && !ws.join("ran").exists());
}

#[tokio::test]
async fn a_command_goes_on_with_the_rebase_of_a_person_and_its_programs() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    rebase(ws, "sed -i '1s/^pick/edit/; $aexec touch mine'", &["-i", "HEAD~2"]);
    nothing_undone(&cell.run("GIT_EDITOR=true git rebase --continue").await);
    assert!(ws.join("mine").exists() && !ws.join(".git/rebase-merge").exists());
}

#[tokio::test]
async fn the_paths_of_a_bisect_hold_no_program_after_a_command() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    let plant = "echo '$(touch ran)' > .git/BISECT_NAMES";
    let did = cell.run(plant).await;
    did.undone(1);
    assert!(!ws.join(".git/BISECT_NAMES").exists());
    git(ws, &["bisect", "start", "--", "three"]);
    let before = fs::read(ws.join(".git/BISECT_NAMES")).unwrap();
    let did = cell.run(plant).await;
    did.undone(1);
    assert_eq!(fs::read(ws.join(".git/BISECT_NAMES")).unwrap(), before);
}

/// The program of a filter is set in the configuration; a file of attributes only names the filter.
#[tokio::test]
async fn attributes_that_a_command_writes_run_nothing_without_a_configuration() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    let plant =
        "echo '* filter=evil diff=evil merge=evil' | tee .gitattributes > .git/info/attributes";
    let did = cell.run(plant).await;
    assert_eq!(did.text.is_empty(), cell.has_world(), "{}", did.text);
    did.undone(0);
    let config = "git config filter.evil.clean 'touch ran; cat'";
    cell.run(config).await.refused();
    git(ws, &["add", "-A"]);
    git(ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(ws, &["checkout", "-q", "HEAD~1"]);
    git(ws, &["diff", "HEAD~1"]);
    assert!(!ws.join("ran").exists());
}
