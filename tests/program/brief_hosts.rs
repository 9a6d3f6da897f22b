//! Hosts that `yoi -p` and other commands start: in the background, needed by no other program, and gone with the
//! last of them.

use crate::bench::{Bench, eventually, signal};
use crate::pty::Terminal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Child;

const SCRIPT: &str = r#"
[[when]]
says = "held"
[[when.step]]
call = [{ name = "Bash", args = { command = "touch began; until [ -e go ]; do sleep 0.05; done" } }]
[[when.step]]
text = "let go"

[[when]]
says = "other"
[[when.step]]
call = [{ name = "Bash", args = { command = "until [ -e other ]; do sleep 0.05; done; echo whole" } }]
[[when.step]]
text = "gone on: {result}"

[[when]]
says = "asks"
[[when.step]]
call = [{ name = "Bash", args = { command = "until [ -e other ]; do sleep 0.05; done; echo whole", needs = ["network"], reason = "r" } }]
[[when.step]]
text = "gone on: {result}"

[[when]]
any = true
text = "heard: {1}"
"#;

/// A message that started a host and works until the file `go` exists.
fn held(bench: &Bench) -> Child {
    bench.play(SCRIPT);
    let program = bench.command(&["--model", &bench.model(), "-p", "held"]).spawn();
    let program = program.expect("the program starts");
    let works = || bench.pod("ws").is_some_and(|ws| ws["state"] == "running");
    eventually("the message is worked on", works);
    assert_ne!(bench.host_pid(), Some(program.id()), "the host is another process");
    program
}

fn lets_go(bench: &Bench) {
    std::fs::write(bench.ws().join("go"), "").expect("a writable workspace");
}

/// A message in a directory of its own that is answered when the file `go` lies there.
fn held_in(bench: &Bench, name: &str) -> (PathBuf, Child) {
    let place = bench.path(name);
    std::fs::create_dir_all(&place).expect("a new directory");
    let mut command = bench.command(&["--model", &bench.model(), "-p", "held"]);
    (place.clone(), command.current_dir(place).spawn().expect("the program starts"))
}

#[test]
fn a_host_that_a_command_started_ends_with_it() {
    let bench = Bench::new();
    let model = bench.model();
    let new = ["--model", &model, "-c", ":new bob"];
    for args in [&["ls"] as &[&str], &new, &["--model", &model, "-p", "one"]] {
        assert_eq!(bench.yoi_reading(args, "").code, Some(0), "{args:?}");
        eventually("the host is gone", || bench.host_pid().is_none());
    }
    // Each finds a host that ends, or none.
    for _ in 0..20 {
        let done = bench.yoi(&["--model", &bench.model(), "-p", "one"]);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: one\n"), "{done:?}");
    }
}

#[test]
fn messages_at_once_without_a_host_share_one_and_leave_none() {
    let bench = Bench::new();
    for _ in 0..5 {
        let say = |_| {
            let program = bench.command(&["--model", &bench.model(), "-p", "one"]).spawn();
            program.expect("the program starts")
        };
        let programs: Vec<Child> = (0..4).map(say).collect();
        for program in programs {
            let done = bench.finish(program);
            assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: one\n"), "{done:?}");
        }
        eventually("the host is gone", || bench.host_pid().is_none());
    }
}

#[test]
fn a_message_that_is_killed_beside_others_ends_its_own_run_only() {
    let bench = Bench::new();
    bench.play(SCRIPT);
    for (round, name) in ["KILL", "TERM", "KILL", "INT", "HUP"].into_iter().enumerate() {
        // In the first rounds the first one started the host.
        let (first, killed) = held_in(&bench, &format!("killed{round}"));
        let others = ["a", "b"].map(|other| held_in(&bench, &format!("{other}{round}")));
        let running = || {
            let all = bench.yoi(&["ls", "--all", "--json"]).events();
            let works = |place: &PathBuf| {
                let of = |info: &&Value| info["cwd"] == place.to_str().expect("text");
                all.iter().find(of).is_some_and(|info| info["state"] == "running")
            };
            others.iter().map(|(place, _)| place).chain([&first]).all(works)
        };
        eventually("all work", running);
        signal(killed.id(), name);
        assert_ne!(bench.finish(killed).code, Some(0));
        for (place, program) in others {
            std::fs::write(place.join("go"), "").expect("a writable directory");
            let done = bench.finish(program);
            assert_eq!((done.code, done.out.as_str()), (Some(0), "let go\n"), "{name}: {done:?}");
        }
        eventually("the host is gone", || bench.host_pid().is_none());
        let all = bench.yoi(&["ls", "--all", "--json"]).events();
        assert!(all.iter().all(|info| info["state"] == "stopped"), "{name}: {all:?}");
    }
}

/// Waits until a run that works until the file `go` exists can be paused: before its first reply it is taken back.
fn begins(bench: &Bench) {
    eventually("the command of the run has begun", || bench.ws().join("began").exists());
    assert_eq!(state(bench, "named"), "running");
}

/// The state of the Pod with this name.
fn state(bench: &Bench, name: &str) -> Value {
    bench.pod(name).map_or(Value::Null, |pod| pod["state"].clone())
}

/// A message for the Pod `named`.
fn named(bench: &Bench, what: &str) -> Child {
    let args = ["--model", &bench.model(), "--pod", "named", "-p", what];
    bench.command(&args).spawn().expect("the program starts")
}

#[test]
fn a_message_that_is_killed_leaves_its_run_paused_in_a_pod_that_was_live_before() {
    let codes = [("TERM", Some(143)), ("INT", Some(130)), ("HUP", Some(129)), ("KILL", None)];
    for (name, code) in codes {
        let bench = Bench::new();
        bench.play(SCRIPT);
        let new = bench.yoi(&["--model", &bench.model(), "-c", ":new named"]);
        assert_eq!(new.code, Some(0), "{new:?}");
        let program = named(&bench, "held");
        begins(&bench);
        signal(program.id(), name);
        let done = bench.finish(program);
        assert_eq!(done.code, code, "{done:?}");
        if code.is_some() {
            assert!(done.err.contains("paused named · `yoi resume named` continues"), "{done:?}");
        }
        eventually("the run is paused", || state(&bench, "named") == "paused");
        eventually("the host is gone", || bench.host_pid().is_none());
    }
}

#[test]
fn a_message_that_is_killed_while_it_waits_is_taken_back_and_the_run_before_it_goes_on() {
    for name in ["TERM", "KILL"] {
        let bench = Bench::new();
        bench.play(SCRIPT);
        let first = named(&bench, "held");
        begins(&bench);
        let second = named(&bench, "never");
        let queued = || bench.pod("named").map_or(Value::Null, |pod| pod["queue"].clone());
        eventually("the second one waits", || queued().as_array().is_some_and(|q| q.len() == 1));
        signal(second.id(), name);
        let done = bench.finish(second);
        assert_ne!(done.code, Some(0), "{done:?}");
        if name == "TERM" {
            assert!(done.err.contains("took the message to named back"), "{done:?}");
        }
        eventually("it is taken back", || queued().as_array().is_none_or(Vec::is_empty));
        assert_eq!(state(&bench, "named"), "running");
        lets_go(&bench);
        let done = bench.finish(first);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "let go\n"), "{name}: {done:?}");
        let log = Value::from(bench.log("named")).to_string();
        assert!(!log.contains("never"), "{log}");
    }
}

#[test]
fn a_message_that_is_killed_leaves_its_pod_to_the_message_that_waits_behind_it() {
    let bench = Bench::new();
    bench.play(SCRIPT);
    let first = named(&bench, "held");
    begins(&bench);
    let second = named(&bench, "later");
    let waits = |pod: Value| pod["queue"].as_array().is_some_and(|queue| queue.len() == 1);
    eventually("the second one waits", || bench.pod("named").is_some_and(waits));
    signal(first.id(), "TERM");
    assert_eq!(bench.finish(first).code, Some(143));
    let done = bench.finish(second);
    assert_eq!(done.code, Some(4), "{done:?}");
    let said = done.last_words();
    assert!(said.contains("waits in the queue of named") && said.contains("is paused"), "{done:?}");
    let done = bench.yoi(&["-c", ":resume named"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(Value::from(bench.log("named")).to_string().contains("heard: later"));
}

#[test]
fn a_message_whose_host_is_killed_fails_and_the_next_one_is_answered() {
    let bench = Bench::new();
    let program = held(&bench);
    signal(bench.host_pid().expect("a host"), "KILL");
    let done = bench.finish(program);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.last_words().contains("the connection to the host ended"), "{done:?}");
    let next = bench.yoi(&["--model", &bench.model(), "-p", "one"]);
    assert_eq!((next.code, next.out.as_str()), (Some(0), "heard: one\n"), "{next:?}");
    assert_eq!(bench.pod("ws").expect("the pod of -p")["state"], "stopped");
}

#[test]
fn a_host_that_a_dashboard_uses_stays_and_a_signal_to_the_message_ends_no_other_run() {
    let codes = [("", Some(0)), ("TERM", Some(143)), ("INT", Some(130)), ("KILL", None)];
    for (name, code) in codes {
        let bench = Bench::new();
        let program = held(&bench);
        let host = bench.host_pid();
        let mut terminal = Terminal::open(&bench, &["--model", &bench.model()]);
        terminal.waits_for("what to work on");
        terminal.press(":new bob\r");
        terminal.waits_for("bob is ready");
        terminal.press("other\r");
        let works = || bench.pod("bob").is_some_and(|bob| bob["state"] == "running");
        eventually("the other Pod works", works);
        if name.is_empty() {
            lets_go(&bench);
        } else {
            signal(program.id(), name);
        }
        let done = bench.finish(program);
        assert_eq!(done.code, code, "{done:?}");
        let is_stopped = || bench.pod("ws").is_some_and(|ws| ws["state"] == "stopped");
        eventually("the pod of the message is stopped", is_stopped);
        std::fs::write(bench.ws().join("other"), "").expect("a writable workspace");
        terminal.waits_for("gone on: whole");
        assert_eq!(bench.host_pid(), host);
    }
}

#[test]
fn a_run_outlives_the_verbs_that_began_it_and_the_host_ends_with_the_run() {
    let bench = Bench::new();
    bench.play(SCRIPT);
    let new = bench.yoi(&["--model", &bench.model(), "-c", ":new named"]);
    assert_eq!(new.code, Some(0), "{new:?}");
    let verb = |args: &[&str]| {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    let is_answered = || bench.yoi(&["log", "named"]).out.contains("let go");
    verb(&["send", "named", "held"]);
    begins(&bench);
    verb(&["pause", "named"]);
    eventually("the host is gone", || bench.host_pid().is_none());
    assert!(!is_answered());
    verb(&["resume", "named"]);
    eventually("the run has ended", is_answered);
    verb(&["send", "named", "held"]);
    assert_eq!(state(&bench, "named"), "running");
    lets_go(&bench);
    eventually("the host is gone", || bench.host_pid().is_none());
    assert_eq!(bench.yoi(&["log", "named"]).out.matches("let go").count(), 2);
}

#[test]
fn a_host_stays_where_a_verb_begins_a_run_and_a_pod_takes_part_in_the_mesh() {
    let bench = Bench::new();
    let new = ["--model", &bench.model(), "-c", ":new bob", "-c", ":mesh join bob"];
    let new = bench.yoi(&new);
    assert_eq!(new.code, Some(0), "{new:?}");
    let name = || bench.pod("bob").map(|bob| bob["mesh"]["name"].clone());
    eventually("the host is gone", || bench.host_pid().is_none());
    assert_eq!(name(), Some(Value::Null), "only a host that stays joins");
    let sent = bench.yoi(&["send", "bob", "one"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    eventually("bob has joined", || name().is_some_and(|name| name == "bob"));
    assert_eq!(bench.yoi(&["host", "stop"]).code, Some(0));
}

#[test]
fn an_allowed_command_outlives_the_verb_that_had_to_start_a_host() {
    let bench = Bench::new();
    bench.play(SCRIPT);
    let model = bench.model();
    let mut host = bench.serve();
    let new = bench.yoi(&["--model", &model, "-c", ":new bob"]);
    assert_eq!(new.code, Some(0), "{new:?}");
    assert_eq!(bench.yoi(&["send", "bob", "asks"]).code, Some(0));
    let state = || bench.pod("bob").map(|bob| bob["state"].clone());
    eventually("the request", || state().is_some_and(|state| state == "needs_you"));
    host.child.kill().expect("a child");
    host.child.wait().expect("a program that ran");
    let listed = bench.yoi(&["inbox"]).out;
    let name = listed.trim_start_matches('[').split(']').next().expect("a name");
    let allowed = bench.yoi(&["allow", name]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let works = || state().is_some_and(|state| state == "running");
    eventually("the command runs in a host in the background", works);
    std::fs::write(bench.ws().join("other"), "").expect("a writable workspace");
    eventually("the run ends", || !state().is_some_and(|state| state == "running"));
    let log = bench.yoi(&["log", "bob"]);
    assert!(log.out.contains("gone on: whole"), "{log:?}");
}
