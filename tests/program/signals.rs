//! Signals: what runs is paused, and nothing is left behind.

use crate::bench::{Bench, Done, eventually, files, signal};
use std::fs;
use std::path::Path;

/// Starts a message whose tool writes a file and sleeps, sends a signal to the program, and waits for
/// its end.
fn interrupted(bench: &Bench, name: &str) -> Done {
    interrupted_by(bench, &[name])
}

fn interrupted_by(bench: &Bench, names: &[&str]) -> Done {
    let prompt = "run echo $$ > pid; sleep 1000";
    let args = ["--no-ui", "--model", &bench.model(), "-p", prompt];
    let child = bench.command(&args).spawn().expect("the program starts");
    let file = bench.ws().join("pid");
    let written = |file: &Path| fs::read_to_string(file).is_ok_and(|t| t.ends_with('\n'));
    eventually("the command runs", || written(&file));
    eventually("the command is seen", || command_lives(bench));
    names.iter().for_each(|name| signal(child.id(), name));
    bench.finish(child)
}

/// Whether a command of the workspace lives. Its number inside its world is not that of this machine.
fn command_lives(bench: &Bench) -> bool {
    let there = format!("PWD={}", bench.ws().display());
    fs::read_dir("/proc").expect("processes").flatten().any(|process| {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let here = environ.split(|byte| *byte == 0).any(|variable| variable == there.as_bytes());
        here && String::from_utf8_lossy(&command).contains("sleep")
    })
}

fn sockets(bench: &Bench) -> Vec<std::path::PathBuf> {
    files(&bench.runtime()).into_iter().filter(|path| path.ends_with("sock")).collect()
}

#[test]
fn a_signal_leaves_no_socket_lock_or_child_and_the_pod_stopped() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let bench = Bench::new();
        let done = interrupted(&bench, name);
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.last_words().contains(name), "{done:?}");
        eventually("the command is gone", || !command_lives(&bench));
        // The host that the message started ends a moment after its client.
        let lock = bench.data().join("host.lock");
        let is_free = || fs::File::open(&lock).map_or(true, |file| file.try_lock().is_ok());
        eventually("the host is gone", || sockets(&bench).is_empty() && is_free());
        assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped");
    }
}

/// `timeout` signals its child, and then the whole group.
#[test]
fn a_signal_that_comes_twice_stops_the_pod_as_one_does() {
    for serves in [true, false] {
        let bench = Bench::new();
        let _host = serves.then(|| bench.serve());
        let done = interrupted_by(&bench, &["TERM", "TERM", "INT"]);
        assert!(done.last_words().contains("ended by SIG"), "{done:?}");
        eventually("the command is gone", || !command_lives(&bench));
        assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped");
    }
}

#[test]
fn an_interrupted_turn_goes_on_after_restore_and_repeats_no_tool() {
    let bench = Bench::new();
    interrupted(&bench, "TERM");
    fs::remove_file(bench.ws().join("pid")).expect("the file of the first run");
    let done = bench.yoi(&["-c", "restore ws", "-c", "resume ws"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!bench.ws().join("pid").exists(), "the command did not run again");
    let calls = bench.log("ws").iter().filter(|e| e["item"]["kind"] == "tool_call").count();
    assert_eq!(calls, 1);
}

#[test]
fn a_serving_host_ends_on_sigterm_and_leaves_nothing() {
    let bench = Bench::new();
    let mut host = bench.serve();
    assert_eq!(bench.yoi(&["ls"]).code, Some(0));
    let second = bench.yoi(&["--no-ui", "--serve"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.last_words().contains("a host runs already"), "{second:?}");
    signal(host.child.id(), "TERM");
    let status = host.child.wait().expect("a program that ran");
    assert_eq!(status.code(), Some(143));
    assert_eq!(sockets(&bench), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_signal_ends_the_message_and_not_the_host_that_runs_it() {
    let bench = Bench::new();
    let host = bench.serve();
    let done = interrupted(&bench, "TERM");
    assert_eq!(done.code, Some(143), "{done:?}");
    eventually("the command is gone", || !command_lives(&bench));
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped");
    assert_eq!(bench.host_pid(), Some(host.child.id()), "the host goes on");
}
