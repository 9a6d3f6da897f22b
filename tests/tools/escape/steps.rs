//! A command may continue a rebase or a bisect, but cannot add programs to it.

use crate::escape::cell::{Cell, Did, no_world_to_test};
use crate::escape::git::{git, repository};
use std::fs;
use std::os::unix::fs::PermissionsExt;
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
async fn a_command_continues_with_options_of_git() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let edit =
        "GIT_SEQUENCE_EDITOR=\"sed -i 's/^pick/edit/'\" git rebase -q -i -s ort -X theirs HEAD~1";
    let did = cell.run(&format!("{edit} && cat .git/rebase-merge/strategy_opts")).await;
    nothing_undone(&did);
    assert!(did.text.contains("theirs"), "{}", did.text);
    nothing_undone(&cell.run("git rebase --continue").await);
    let pick = "git cherry-pick -s --strategy=recursive -X patience HEAD~2 HEAD~1; cat .git/sequencer/opts";
    let did = cell.run(pick).await;
    nothing_undone(&did);
    assert!(did.text.contains("strategy-option = patience"), "{}", did.text);
    nothing_undone(&cell.run("git cherry-pick --abort").await);
    let patch = "git format-patch -1 --stdout > p; git am -C1 --whitespace=fix p; cat .git/rebase-apply/apply-opt";
    let did = cell.run(patch).await;
    nothing_undone(&did);
    assert!(did.text.contains("-C1"), "{}", did.text);
    nothing_undone(&cell.run("git am --abort").await);
}

/// Files from which git continues, and a content with which it runs a program of the working tree or writes another file.
const PLANTED: [(&str, &str); 8] = [
    ("rebase-merge/strategy", "x/evil"),
    ("rebase-merge/strategy_opts", "\"index-output=../out\""),
    ("rebase-apply/strategy", "x/evil"),
    ("rebase-apply/strategy_opts", "\"index-output=../out\""),
    ("rebase-apply/apply-opt", "'--build-fake-ancestor=../out'"),
    ("sequencer/opts", "[options]\n\tstrategy = x/evil\n"),
    ("sequencer/opts", "[options]\n\tstrategy-option = index-output=../out\n"),
    ("sequencer/opts", "[options] strategy = x/evil\n"),
];

#[tokio::test]
async fn no_command_adds_options_that_run_programs_or_write_files() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let git = cell.path("ws/.git");
    for dir in ["rebase-merge", "rebase-apply", "sequencer"] {
        fs::create_dir(git.join(dir)).unwrap();
    }
    for (file, text) in PLANTED {
        for before in
            [None, Some(if file == "sequencer/opts" { "[options]\n\tedit = true\n" } else { "" })]
        {
            let _ = fs::remove_file(git.join(file));
            before.iter().for_each(|text| fs::write(git.join(file), text).unwrap());
            fs::write(cell.path("ws/made"), text).unwrap();
            let did = cell.run(&format!("cat made > .git/{file}")).await;
            did.undone(1);
            assert_eq!(fs::read_to_string(git.join(file)).ok().as_deref(), before, "{file}");
        }
    }
    for dir in ["rebase-merge", "rebase-apply", "sequencer"] {
        fs::remove_dir_all(git.join(dir)).unwrap();
    }
    let linked = "mkdir rm; echo x/evil > rm/strategy; ln -s ../rm .git/rebase-merge";
    cell.run(linked).await.undone(1);
    assert!(!git.join("rebase-merge").is_symlink());
    std::os::unix::fs::symlink("../rm", git.join("rebase-merge")).unwrap();
    fs::create_dir_all(cell.path("ws/rm")).unwrap();
    fs::write(cell.path("ws/rm/strategy"), "ort\n").unwrap();
    nothing_undone(&cell.run("true").await);
    assert!(git.join("rebase-merge").is_symlink(), "it is the person's");
    cell.run("echo x/evil > .git/rebase-merge/strategy").await.refused();
    assert_eq!(fs::read_to_string(cell.path("ws/rm/strategy")).unwrap(), "ort\n");
    fs::remove_file(git.join("rebase-merge")).unwrap();
    let fresh = "git worktree add -q new && cd .git/worktrees/new && mkdir rebase-merge && \
                 echo x/evil > rebase-merge/strategy";
    cell.run(fresh).await.undone(1);
    assert!(!git.join("worktrees/new/rebase-merge/strategy").exists());
}

/// An executable `git-merge-x/evil`, which git runs for the strategy `x/evil`.
fn evil(ws: &Path) {
    fs::create_dir(ws.join("git-merge-x")).unwrap();
    let program = ws.join("git-merge-x/evil");
    fs::write(&program, "#!/bin/sh\ntouch ran\nexit 1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_person_continues_a_rebase_and_a_cherry_pick_without_programs_of_a_command() {
    let cell = history();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    evil(ws);
    let continue_with = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(words).current_dir(ws).env("GIT_EDITOR", "true").output().unwrap();
        assert!(!ws.join("ran").exists(), "{words:?}");
    };
    rebase(ws, "sed -i '1s/^pick/edit/'", &["-i", "--force-rebase", "HEAD~2"]);
    cell.run("printf x/evil > .git/rebase-merge/strategy").await.undone(1);
    continue_with(&["rebase", "--continue"]);
    assert!(!ws.join(".git/rebase-merge").exists());
    // Both commits are there already, so git stops at the first, and again at the second.
    continue_with(&["cherry-pick", "HEAD~1", "HEAD"]);
    assert!(ws.join(".git/sequencer").exists());
    cell.run("printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts").await.undone(1);
    continue_with(&["cherry-pick", "--skip"]);
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

/// Each repository has a rebase whose todo list is as large as one that can be restored.
#[tokio::test]
async fn directories_with_more_guarded_files_than_can_be_restored_are_read_only() {
    let cell = repository();
    let todo = "noop\n".repeat((1 << 20) / 5);
    let dir = |n: u32| cell.path(&format!("ws/r{n:02}/.git/rebase-merge"));
    for n in 0..20 {
        fs::create_dir_all(dir(n)).unwrap();
        fs::write(dir(n).join("git-rebase-todo"), &todo).unwrap();
    }
    fs::write(dir(0).join("git-rebase-todo"), todo.repeat(2)).unwrap();
    let did = cell
        .run("for r in r*; do echo exec evil >> $r/.git/rebase-merge/git-rebase-todo; done; true")
        .await;
    let written = |n: &u32| fs::read(dir(*n).join("git-rebase-todo")).unwrap() != todo.as_bytes();
    let cost = &did.confinement().cost;
    for n in [0, 16, 19] {
        let begin = format!("writing to {}: only 16 MiB of guarded files", dir(n).display());
        assert!(cost.iter().any(|line| line.starts_with(&begin)), "{begin}: {cost:?}");
    }
    assert!(!cost.iter().any(|line| line.contains("r01/.git")), "{cost:?}");
    assert_eq!((1..20).filter(written).count(), 0, "{:?}", did.ended.undone);
    assert_eq!(fs::read(dir(0).join("git-rebase-todo")).unwrap(), todo.repeat(2).as_bytes());
    let restored = did.ended.undone.iter().filter(|line| line.contains("put back")).count();
    assert!((10..17).contains(&restored), "{:?}", did.ended.undone);
}
