//! Ways to lead git, a shell or a watcher of commands astray that take two steps: take away what marks a
//! place as guarded, then change the place.

use crate::escape::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use yoi::sandbox::Outcome;

/// Git as the person runs it, in a directory of the bench.
fn git(dir: &Path, words: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
    let done = git.args(words).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

async fn repository() -> Option<Cell> {
    let cell = Cell::new();
    let ws = &cell.bench.ctx.cwd;
    git(ws, &["init", "-q"]);
    git(ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
    cell.mounted().await.then_some(cell)
}

/// Writes a file in the workspace, with the directories above it.
fn put(cell: &Cell, file: &str, text: &str) {
    cell.bench.file(file, text);
}

fn read(cell: &Cell, file: &str) -> String {
    fs::read_to_string(cell.path("ws").join(file)).unwrap()
}

#[tokio::test]
async fn a_repository_is_not_exchanged_for_a_bare_one_around_it() {
    let Some(cell) = repository().await else { return };
    let head = read(&cell, ".git/HEAD");
    for dir in ["objects", "refs"] {
        cell.run(&format!("mv .git/{dir} {dir}")).await.refused();
    }
    let program = "mv .git/HEAD .git/was && cp .git/was HEAD && ln -s .git/objects objects && \
                   ln -s .git/refs refs && echo '[core]' > config";
    let did = cell.run(program).await;
    assert_eq!(did.ended.outcome, Outcome::Exited(0), "{}", did.text);
    assert!(did.ended.undone[0].contains(".git/HEAD was removed"), "{:?}", did.ended.undone);
    assert_eq!(read(&cell, ".git/HEAD"), head);
    // A branch that is changed in the ordinary way stays changed.
    let did =
        cell.run("git checkout -q -b other && git commit -q --allow-empty -m y || true").await;
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
    assert_eq!(read(&cell, ".git/HEAD"), "ref: refs/heads/other\n");
}

#[tokio::test]
async fn no_submodule_is_taken_from_the_list_of_those_that_are_guarded() {
    let Some(cell) = repository().await else { return };
    let (ws, other) = (cell.path("ws"), cell.path("outside/other"));
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&ws, &["submodule", "--quiet", "add", &other.display().to_string(), "lib/deep/m"]);
    let module = "$(dirname $(find .git/modules -name config))";
    cell.run(&format!("cd {module} && mv HEAD was; cd $OLDPWD && : > .gitmodules")).await;
    for program in [
        format!("echo evil >> {module}/config"),
        format!("echo evil > {module}/hooks/post-checkout"),
        "echo 'gitdir: /evil' > lib/deep/m/.git".to_owned(),
    ] {
        cell.run(&program).await.refused();
    }
}

#[tokio::test]
async fn a_submodule_in_a_part_of_a_working_tree_is_guarded_for_who_holds_that_part() {
    let Some(mut cell) = repository().await else { return };
    let (ws, other) = (cell.path("ws"), cell.path("outside/other"));
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&ws, &["submodule", "--quiet", "add", &other.display().to_string(), "lib/deep/m"]);
    let rule = yoi::scope::Rule::new(ws.join("lib"), yoi::scope::Permission::Write);
    cell.bench.ctx.scope.allow = vec![rule];
    cell.bench.ctx.cwd = ws.join("lib");
    cell.run("echo 'gitdir: /evil' > deep/m/.git").await.refused();
    cell.run("echo x > deep/m/file").await.well();
}

/// Each configuration as a person may write it, and the file that it leads to.
#[tokio::test]
async fn what_a_configuration_names_is_guarded_however_it_is_written() {
    for (file, text, named) in [
        (".git/config", "[core]\nhooksPath = .hooks ; shared\n", ".hooks/pre-commit"),
        (".git/config", "[core]\nhooksPath = \\\n .hooks\n", ".hooks/pre-commit"),
        (".git/config.worktree", "[core]\nhooksPath = .hooks\n", ".hooks/pre-commit"),
        (".git/config", "[include]\npath = ../team.conf # x\n", "team.conf"),
        ("../home/.gitconfig", "[core]\nhooksPath = .hooks\n", ".hooks/pre-commit"),
    ] {
        let Some(cell) = repository().await else { return };
        let before = fs::read_to_string(cell.path("ws").join(file)).unwrap_or_default();
        fs::write(cell.path("ws").join(file), before + text).unwrap();
        put(&cell, named, "person");
        cell.run(&format!("echo evil > {named}")).await.refused();
        assert_eq!(read(&cell, named), "person", "{text}");
        // What does not exist yet is moved away when the command is over.
        fs::remove_file(cell.path("ws").join(named)).unwrap();
        if let Some(dir) = Path::new(named).parent().filter(|dir| dir.iter().count() > 0) {
            fs::remove_dir(cell.path("ws").join(dir)).unwrap();
        }
        let did = cell.run(&format!("mkdir -p $(dirname {named}); echo evil > {named}")).await;
        assert!(
            did.ended.undone[0].contains("is guarded and was not there"),
            "{text}: {:?}",
            did.ended.undone
        );
        assert!(!cell.path("ws").join(named).exists(), "{text}");
    }
}

#[tokio::test]
async fn a_repository_elsewhere_in_the_scope_and_the_way_to_it_are_guarded() {
    for link in [true, false] {
        let Some(cell) = repository().await else { return };
        let ws = cell.path("ws");
        fs::rename(ws.join(".git"), ws.join(".gd")).unwrap();
        if link {
            symlink(".gd", ws.join(".git")).unwrap();
        } else {
            fs::write(ws.join(".git"), "gitdir: .gd\n").unwrap();
        }
        cell.run("echo evil >> .gd/config").await.refused();
        cell.run("echo evil > .gd/hooks/pre-commit").await.refused();
        cell.run("cp -r .gd evil && rm .git && ln -s evil .git").await;
        let kept = fs::read_link(ws.join(".git")).map_or_else(
            |_| read(&cell, ".git").trim().replace("gitdir: ", ""),
            |target| target.display().to_string(),
        );
        assert_eq!(kept, ".gd");
    }
}

#[tokio::test]
async fn links_on_the_way_to_programs_and_hooks_are_put_back() {
    let Some(mut cell) = repository().await else { return };
    put(&cell, "v1/bin/tool", "person");
    put(&cell, "tools/hooks/pre-commit", "person");
    symlink("v1", cell.path("ws/cur")).unwrap();
    symlink("tools", cell.path("ws/.husky")).unwrap();
    git(&cell.path("ws"), &["config", "core.hooksPath", ".husky/hooks"]);
    let path = format!("{}:{}", cell.path("ws/cur/bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    let program = "mkdir -p v2/bin v3/hooks; echo evil > v2/bin/tool; ln -sfn v2 cur; \
                   rm .husky; mv v3 .husky; echo evil > .husky/hooks/pre-commit";
    let did = cell.run(program).await;
    assert_eq!(did.ended.undone.len(), 2, "{:?}", did.ended.undone);
    assert_eq!(read(&cell, "cur/bin/tool"), "person");
    assert_eq!(read(&cell, ".husky/hooks/pre-commit"), "person");
}

#[tokio::test]
async fn modes_and_times_of_devices_are_not_changed() {
    let cell = Cell::new();
    if !cell.mounted().await {
        return;
    }
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        let mode = fs::metadata(format!("/dev/{device}")).unwrap().mode() & 0o7777;
        cell.run(&format!("chmod {mode:o} /dev/{device}")).await.refused();
        cell.run(&format!("touch -c /dev/{device}")).await.refused();
    }
    cell.run("echo x > /dev/null && head -c 1 /dev/zero | wc -c").await.well();
}

/// The processes of this machine whose command line holds these words, by the words of their parents.
fn pids(words: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pid = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pid.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
    .collect()
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs a command, signals the first process of its world when the command is ready, and cancels it or
/// not.
async fn struck(cell: &Cell, words: &str, signal: &str, cancel: bool) -> crate::escape::cell::Did {
    let program = format!("echo ../.alt > .git/commondir; touch ready; exec sleep {words}");
    let strike = async {
        while !cell.path("ws/ready").exists() || pids(&format!("sleep {words}")).is_empty() {
            tokio::task::yield_now().await;
        }
        let first = parent(pids(&format!("sleep {words}"))[0]).to_string();
        let done = std::process::Command::new("kill").args([signal, &first]).status().unwrap();
        assert!(done.success());
        if cancel {
            cell.bench.cancel.cancel();
        }
    };
    let (did, ()) = tokio::join!(cell.run(&program), strike);
    assert!(pids(&format!("sleep {words}")).is_empty(), "nothing outlives the command");
    assert!(!cell.path("ws/.git/commondir").exists(), "what it left is removed");
    did
}

#[tokio::test]
async fn a_command_whose_watcher_is_killed_is_said_to_have_run_and_is_mended() {
    let Some(cell) = repository().await else { return };
    let did = struck(&cell, "973.75", "-KILL", false).await;
    assert_eq!(did.ended.outcome, Outcome::Signalled(9));
    let said = did.ended.undone.join("\n");
    assert!(said.contains("the process that watches this command was killed"), "{said}");
    // The watcher is not what the kernel ends first.
    let program = "until [ $(cat /proc/1/oom_score_adj) = 0 ]; do :; done; \
                   cat /proc/self/oom_score_adj";
    assert_eq!(cell.run(program).await.well(), "800\n");
}

#[tokio::test]
async fn a_world_whose_first_process_does_not_end_it_is_ended_all_the_same() {
    let Some(cell) = repository().await else { return };
    let did = struck(&cell, "973.25", "-STOP", true).await;
    assert_eq!(did.ended.outcome, Outcome::Cancelled);
}

/// They leave nothing of the processor for what ends them, and take no request to end.
#[tokio::test]
async fn processes_that_spin_and_ignore_a_request_to_end_are_ended() {
    let Some(mut cell) = repository().await else { return };
    cell.limits.processes = 310;
    let bomb = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                while True:\n    try: os.fork()\n    except OSError:\n        \
                if not os.path.exists('ready'): open('ready', 'w').close()";
    fs::write(cell.path("ws/bomb.py"), bomb).unwrap();
    let full = async {
        while !cell.path("ws/ready").exists() {
            tokio::task::yield_now().await;
        }
        cell.bench.cancel.cancel();
    };
    let (did, ()) = tokio::join!(cell.run("exec python3 bomb.py"), full);
    assert_eq!(did.ended.outcome, Outcome::Cancelled);
    assert!(did.ended.stuck.is_empty(), "{:?}", did.ended.stuck);
}
