//! Repositories that a command makes: git of a person who works in the repository around them enters those at gitlinks,
//! with their configuration and hooks.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{git, repository};
use std::fs;
use std::path::Path;

/// Makes a repository `$1` with a commit, and a program that its git starts as `$2` says.
const MAKE: &str = r#"
make() {
    git init -q "$1"; here=$PWD; cd "$1"
    git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    printf '#!/bin/sh\ntouch %s/ran\n' "$here" > x.sh; chmod +x x.sh
    case $2 in
    monitor) git config core.fsmonitor ./x.sh ;;
    include) printf '[core]\nfsmonitor = ./x.sh\n' > .git/more; git config include.path more ;;
    hook) mkdir -p .git/hooks; cp x.sh .git/hooks/post-index-change; touch -d '1 hour ago' x.sh; git add x.sh; touch x.sh ;;
    esac
    cd "$here"
}
link() { git update-index --add --cacheinfo 160000,$(git -c core.fsmonitor= -C "$1" rev-parse HEAD),"$1"; }
"#;

/// Runs the git commands of an ordinary day, and fails if one of them started a program of the workspace.
#[track_caller]
fn person_is_safe(ws: &Path, attack: &str) {
    for words in [["status", "-s"], ["diff", "--stat"], ["add", "-u"]] {
        let mut git = std::process::Command::new("git");
        // Its exit code does not matter: a broken repository starts nothing either.
        git.args(words).current_dir(ws).output().unwrap();
    }
    assert!(!ws.join("ran").exists(), "{attack}");
}

fn attacked() -> Cell {
    let cell = repository();
    git(&cell.path("ws"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    cell
}

#[tokio::test]
async fn a_new_repository_at_a_new_gitlink_starts_nothing() {
    if no_world_to_test() {
        return;
    }
    for attack in [
        "make sub monitor; link sub",
        "make sub hook; link sub",
        "make sub include; link sub",
        "mkdir deep; make deep/sub monitor; link deep/sub",
        "make sub clean; cd sub; make in monitor; link in; cd ..; link sub",
        "make sub monitor; mv sub/.git elsewhere; echo 'gitdir: ../elsewhere' > sub/.git; link sub",
        "make sub monitor; mv sub/.git elsewhere; ln -s ../elsewhere sub/.git; link sub",
        "make a clean; make b monitor; mkdir c; git -C a config core.worktree ../../c; mv b c/in; link a; \
         (cd c; GIT_DIR=../a/.git git update-index --add --cacheinfo 160000,$(git -C in -c core.fsmonitor= rev-parse HEAD),in)",
        "make sub monitor; link sub; git update-index --split-index",
        "make sub monitor; link sub; git commit -q -m x",
    ] {
        let cell = attacked();
        let did = cell.run(&format!("{MAKE}{attack}; rm -f ran")).await;
        did.undone(1);
        person_is_safe(&cell.path("ws"), attack);
        assert!(cell.run("git status").await.ended.undone.is_empty());
    }
}

#[tokio::test]
async fn a_gitlink_and_its_repository_may_come_from_two_commands() {
    if no_world_to_test() {
        return;
    }
    let cell = attacked();
    let made = cell.run(&format!("{MAKE} make sub monitor")).await;
    let [said] = made.ended.undone.as_slice() else { panic!("{made:?}") };
    let sub = cell.path("ws/sub");
    let begins = format!("the command made a git repository in {}", sub.display());
    assert!(said.starts_with(&begins) && said.ends_with("sets core.fsmonitor"), "{said}");
    cell.run(&format!("{MAKE} link sub; rm -f ran")).await.undone(1);
    person_is_safe(&cell.path("ws"), "two commands");

    let cell = attacked();
    fs::create_dir_all(cell.path("ws/deep")).unwrap();
    let link =
        "make deep/sub clean; link deep/sub; git commit -q -m x; rm -rf deep/sub; mkdir deep/sub";
    let did = cell.run(&format!("{MAKE}{link}")).await;
    assert!(did.ended.undone.is_empty(), "{did:?}");
    let did = cell.run(&format!("{MAKE} make deep/sub monitor; rm -f ran")).await;
    did.undone(1);
    person_is_safe(&cell.path("ws"), "a repository at an empty submodule");
    assert!(!cell.path("ws/deep/sub/.git").exists(), "{did:?}");
}

#[tokio::test]
async fn a_workspace_without_a_repository_gets_none_that_starts_a_program() {
    if no_world_to_test() {
        return;
    }
    let bare = "git init -q --bare .; git config core.bare false; git config core.worktree .";
    for attack in [
        "make . monitor",
        "git init -q; git config core.hooksPath .",
        &format!("{bare}; git config core.fsmonitor ./x.sh"),
    ] {
        let cell = Cell::new();
        let did = cell.run(&format!("{MAKE}{attack}; rm -f ran")).await;
        did.undone(1);
        person_is_safe(&cell.path("ws"), attack);
    }
}

#[tokio::test]
async fn ordinary_repositories_of_a_command_stay_and_are_guarded_from_the_next_command_on() {
    let cell = attacked();
    if no_world_to_test() {
        return;
    }
    let ordinary = "mkdir deep && make other clean && git clone -q other deep/sub && link deep/sub && \
                    git -C deep/sub config user.email a@b && git -C deep/sub config commit.gpgsign false && \
                    git -C deep/sub remote add up https://example.org/x && git commit -q -m x";
    let did = cell.run(&format!("set -e; {MAKE} {ordinary}")).await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");
    cell.run("echo >> deep/sub/.git/config").await.refused();
    cell.run("echo > deep/sub/.git/hooks/pre-commit").await.refused();
    let commit = "cd deep/sub && git commit -q --allow-empty -m y && cd ../.. && git add deep/sub && git commit -q -m y";
    let did = cell.run(commit).await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");

    let cell = Cell::new();
    let did = cell.run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x").await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");
}
