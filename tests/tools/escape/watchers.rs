//! The processes that watch and end a command: the tests kill them, stop them or starve them. Also
//! the devices, which every command shares with the machine.

use crate::escape::cell::{Cell, no_world_to_test, seconds};
use crate::escape::git;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tokio_util::sync::CancellationToken;
use yoi::sandbox::{Command, Outcome, Sandbox, SandboxError, StartGroup};

async fn repository_in_a_world() -> Option<Cell> {
    let cell = git::repository();
    (!no_world_to_test()).then_some(cell)
}

#[tokio::test]
async fn modes_and_times_of_devices_are_not_changed() {
    let cell = Cell::new();
    if no_world_to_test() {
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
    cell.only_in_a_world();
    let words = seconds(words);
    let program = format!("echo ../.alt > .git/commondir; touch ready; exec sleep {words}");
    let strike = async {
        // The shell becomes the sleep, and has no command line for a moment.
        let sleeping = loop {
            match pids(&format!("sleep {words}")).first() {
                Some(pid) if cell.path("ws/ready").exists() => break *pid,
                Some(_) | None => tokio::task::yield_now().await,
            }
        };
        let first = parent(sleeping).to_string();
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
    let Some(cell) = repository_in_a_world().await else { return };
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
    let Some(cell) = repository_in_a_world().await else { return };
    let did = struck(&cell, "973.25", "-STOP", true).await;
    assert_eq!(did.ended.outcome, Outcome::Cancelled);
}

/// They leave nothing of the processor for what ends them, and take no request to end.
#[tokio::test]
async fn processes_that_spin_and_ignore_a_request_to_end_are_ended() {
    let Some(mut cell) = repository_in_a_world().await else { return };
    cell.only_where_processes_are_counted();
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

#[tokio::test]
async fn a_report_without_end_is_not_read_whole() {
    let cell = Cell::new();
    let report = |bytes: &str| {
        format!(
            "#!/bin/sh\nread -r _\necho prepared\nread -r _\nprintf '{{\"ordered\":false,\"ended\":[],\"stuck\":[],\"undone\":[\"'\n\
             head -c {bytes} /dev/zero | tr '\\0' x\nprintf '\"]}}\\n'\n"
        )
    };
    let helper = cell.path("ws/helper");
    fs::write(&helper, "").unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    for (bytes, is_read) in [("1M", true), ("8M", false)] {
        fs::write(cell.path("ws/made"), report(bytes)).unwrap();
        // A fork of this process could keep a file that it has open for writing, which could not be executed then.
        cell.run("cat made > helper").await.well();
        let sandbox = Sandbox { helper: helper.clone(), ..Sandbox::default() };
        let command = Command {
            program: ":".into(),
            cwd: "/".into(),
            env: std::collections::BTreeMap::new(),
            timeout: std::time::Duration::from_secs(60),
            view: None,
            group: StartGroup::default(),
        };
        let ended = sandbox.run(&command, &CancellationToken::new(), |_| {}).await;
        match ended {
            Ok(ended) => assert!(is_read && ended.undone.len() == 1),
            Err(error) => {
                assert!(!is_read && matches!(error, SandboxError::HelperLost { .. }), "{error}");
            }
        }
    }
}
