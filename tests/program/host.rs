//! The host in the background: one for all, found by everyone, and back after it was killed.

use crate::bench::{Bench, alive, eventually, signal};
use std::fs;
use std::path::Path;

#[test]
fn a_message_sent_from_the_shell_runs_in_the_background() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let done = bench.yoi(&["send", "a", "greet", "you"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(bench.host_pid().is_some(), "a host runs in the background");
    eventually("the turn is done", || bench.pod("a").is_some_and(|p| p["state"] == "idle"));
    eventually("the file is there", || bench.ws().join("hello.txt").exists());
    let host = bench.yoi(&["host"]);
    assert!(host.out.contains(&bench.data().display().to_string()), "{host:?}");
    assert_eq!(bench.yoi(&["host", "stop"]).code, Some(0));
    eventually("the host is gone", || bench.host_pid().is_none());
    assert_eq!(bench.pod("a").expect("the pod")["state"], "idle", "its end stopped nobody");
}

#[test]
fn many_starters_find_one_host() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let starters: Vec<_> = (0..8)
        .map(|_| bench.command(&["restore", "a"]).spawn().expect("the program starts"))
        .collect();
    for starter in starters {
        let done = bench.finish(starter);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let first = bench.host_pid();
    assert!(first.is_some());
    bench.yoi(&["restore", "a"]);
    assert_eq!(bench.host_pid(), first);
}

#[test]
fn a_killed_host_comes_back_with_everything_and_its_run_paused() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    let before = bench.log("a");
    assert_eq!(bench.yoi(&["send", "a", "slow"]).code, Some(0));
    eventually("the turn runs", || bench.pod("a").is_some_and(|p| p["state"] == "running"));
    let pid = bench.host_pid().expect("a host in the background");
    signal(pid, "KILL");
    eventually("the host is gone", || !alive(pid));
    let info = bench.pod("a").expect("the pod");
    assert_eq!(info["state"], "paused", "{info}");
    assert!(info["why"].as_str().is_some_and(|why| why.contains("interrupted ")), "{info}");
    let after = bench.log("a");
    assert_eq!(after[..before.len()], before[..], "what was told is there, unchanged");
    let inputs = after.iter().filter(|entry| entry["kind"] == "user_input").count();
    assert_eq!(inputs, 2, "the message that was acknowledged is there, once");
}

#[test]
fn runs_that_the_end_of_the_host_interrupts_are_named_and_go_on_together() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "new b", "-c", "new c"]);
    let is = |pod: &str, state: &str| bench.pod(pod).is_some_and(|info| info["state"] == state);
    for pod in ["a", "b"] {
        assert_eq!(bench.yoi(&["send", pod, "slow"]).code, Some(0));
        eventually("the turn runs", || is(pod, "running"));
    }
    let ended = bench.yoi(&["host", "stop"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("interrupted the runs of a, b;"), "{ended:?}");
    assert!(is("a", "paused") && is("b", "paused") && is("c", "idle"));
    let resumed = bench.yoi(&["resume", "--all"]);
    assert!(resumed.code == Some(0) && resumed.err.ends_with("a, b go on\n"), "{resumed:?}");
    assert!(!is("a", "paused") && !is("b", "paused"));
}

#[test]
fn two_data_directories_are_two_hosts() {
    let (one, two) = (Bench::new(), Bench::new());
    for bench in [&one, &two] {
        bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
        bench.yoi(&["restore", "a"]);
    }
    assert!(one.host_pid().is_some() && one.host_pid() != two.host_pid());
}

#[test]
fn a_message_can_be_sent_over_a_pods_own_socket() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let _host = bench.serve();
    let socket = bench.runtime().join("a/sock").display().to_string();
    let done = bench.yoi(&["send", "--socket", &socket, "a", "greet", "you"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    eventually("the file is there", || bench.ws().join("hello.txt").exists());
    let other = bench.yoi(&["send", "--socket", &socket, "b", "hi"]);
    assert_eq!(other.code, Some(5), "{other:?}");
}

#[test]
fn a_host_that_hangs_is_named_with_the_way_out_and_goes_on_when_it_is_woken() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let host = bench.serve();
    let pid = bench.host_pid().expect("a host");
    signal(pid, "STOP");
    // The host is stopped until it is continued below, so the program gave up waiting by itself.
    let hung = bench.yoi(&["ls"]);
    assert_eq!(hung.code, Some(1), "{hung:?}");
    assert!(hung.err.contains(&format!("process {pid}")), "{hung:?}");
    assert!(hung.err.contains(&format!("kill -CONT {pid}")), "{hung:?}");
    signal(pid, "CONT");
    let woken = bench.yoi(&["ls"]);
    assert_eq!(woken.code, Some(0), "{woken:?}");
    assert!(woken.out.contains('a'), "{woken:?}");
    drop(host);
}

#[test]
fn a_host_whose_standard_descriptors_are_closed_keeps_its_own_files_out_of_them() {
    let bench = Bench::new();
    let mut child = bench.shell("exec yoi --no-ui --serve <&- >&- 2>&-").spawn().expect("a shell");
    let pid = child.id();
    eventually("the host serves", || bench.host_pid() == Some(pid) && bench.socket().is_some());
    assert_eq!(bench.yoi(&["new", "a"]).code, Some(0));
    for number in 0..3 {
        let file = fs::read_link(format!("/proc/{pid}/fd/{number}")).expect("an open descriptor");
        assert_eq!(file, Path::new("/dev/null"), "descriptor {number}");
    }
    assert_eq!(bench.yoi(&["host", "stop"]).code, Some(0));
    child.wait().expect("the host ends");
}
