//! The host in a program without a screen ends with the program; dashboards that are attached go on with the
//! next one.

use crate::bench::{Bench, eventually, signal};
use crate::pty::Terminal;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

const SCRIPT: &str = r#"
[[when]]
says = "held"
[[when.step]]
call = [{ name = "Bash", args = { command = "until [ -e go ]; do sleep 0.05; done" } }]
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

/// A program that runs the host and works until the file `go` exists, and a dashboard on a Pod of its own.
fn host_and_dashboard() -> (Bench, Child, Terminal) {
    let bench = Bench::new();
    bench.play(SCRIPT);
    let model = bench.model();
    let program =
        bench.command(&["--model", &model, "-p", "held"]).spawn().expect("the program starts");
    eventually("the program is the host", || bench.host_pid() == Some(program.id()));
    let mut terminal = Terminal::open(&bench, &["--model", &model]);
    terminal.waits_for("No Pod is open");
    terminal.press(":new bob\r");
    terminal.waits_for("bob is ready");
    (bench, program, terminal)
}

fn lets_go(bench: &Bench) {
    std::fs::write(bench.ws().join("go"), "").expect("a writable workspace");
}

#[test]
fn a_message_is_done_while_a_dashboard_is_open_and_the_dashboard_goes_on() {
    let (bench, program, mut terminal) = host_and_dashboard();
    terminal.press("one\r");
    terminal.waits_for("heard: one");
    terminal.press("a dra");
    let first = program.id();
    lets_go(&bench);
    let done = bench.finish(program);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "let go\n"), "{done:?}");
    eventually("a host in the background", || bench.host_pid().is_some_and(|pid| pid != first));
    assert_eq!(bench.yoi(&["send", "bob", "two"]).code, Some(0));
    terminal.waits_for("heard: two");
    terminal.press("ft\r");
    terminal.waits_for("heard: a draft");
    assert_eq!(bench.pod("ws").expect("the pod of -p")["state"], "stopped");
}

/// Interrupts the program of `-p` while a Pod of the dashboard works in it, and returns when it has said
/// that it stays for that.
fn interrupted(name: &str) -> (Bench, Child, Terminal) {
    let (bench, mut program, mut terminal) = host_and_dashboard();
    terminal.press("other\r");
    let works = || bench.pod("bob").is_some_and(|bob| bob["state"] == "running");
    eventually("the other Pod works", works);
    lets_go(&bench);
    let mut errors = BufReader::new(program.stderr.take().expect("its errors"));
    let mut lines = errors.by_ref().lines().map_while(Result::ok);
    let sentence = lines.find(|line| line.contains("waiting for bob, at work for other clients"));
    assert!(
        sentence.is_some_and(|line| line.contains("a second interrupt")),
        "it says what it waits for"
    );
    assert!(program.try_wait().expect("a child").is_none(), "it is the host of the other Pod");
    signal(program.id(), name);
    let stays = lines.find(|line| line.contains("still at work for other clients"));
    assert!(stays.is_some_and(|line| line.ends_with("bob")), "it says for which Pod it stays");
    // It writes little, so it never waits for this reader.
    program.stderr = Some(errors.into_inner());
    (bench, program, terminal)
}

#[test]
fn an_interrupt_ends_a_program_after_the_command_of_another_client_is_whole() {
    for (name, code) in [("INT", 130), ("HUP", 129)] {
        let (bench, program, terminal) = interrupted(name);
        std::fs::write(bench.ws().join("other"), "").expect("a writable workspace");
        terminal.waits_for("gone on: whole");
        let done = bench.finish(program);
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.last_words().contains("ended by SIG"), "{done:?}");
    }
}

#[test]
fn a_second_interrupt_has_a_run_of_a_dashboard_go_on_in_the_background() {
    let (bench, mut program, terminal) = interrupted("INT");
    let first = program.id();
    // A signal right after the first one counts as the same.
    eventually("the second interrupt ends it", || {
        signal(first, "INT");
        program.try_wait().expect("a child").is_some()
    });
    assert_eq!(program.wait().expect("a program that ran").code(), Some(130));
    // The command is not run again: the model reads that it was cut off.
    terminal.waits_for("gone on");
    assert_ne!(bench.host_pid(), Some(first));
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
