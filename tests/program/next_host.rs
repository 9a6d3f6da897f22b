//! The host in a program without a screen ends with the program; dashboards that are attached go on with the
//! next one.

use crate::bench::{Bench, eventually, signal};
use crate::pty::Terminal;
use std::io::{BufRead as _, BufReader};
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
call = [{ name = "Bash", args = { command = "sleep 1000" } }]
[[when.step]]
text = "gone on"

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

#[test]
fn a_run_of_a_dashboard_is_waited_for_and_goes_on_in_the_background_after_an_interrupt() {
    let (bench, mut program, mut terminal) = host_and_dashboard();
    terminal.press("other\r");
    let works = || bench.pod("bob").is_some_and(|bob| bob["state"] == "running");
    eventually("the other Pod works", works);
    lets_go(&bench);
    let mut lines = BufReader::new(program.stderr.take().expect("its errors")).lines();
    let mut lines = lines.by_ref().map_while(Result::ok);
    let sentence = lines.find(|line| line.contains("waiting for bob, at work for other clients"));
    assert!(
        sentence.is_some_and(|line| line.contains("an interrupt")),
        "it says what it waits for"
    );
    assert!(program.try_wait().expect("a child").is_none(), "it is the host of the other Pod");
    let first = program.id();
    signal(first, "INT");
    // It writes little, so it never waits for this reader.
    assert_eq!(program.wait().expect("a program that ran").code(), Some(130));
    assert_eq!(lines.collect::<Vec<String>>(), ["yoi: ended by SIGINT"]);
    // The command is not run again: the model reads that it was cut off.
    terminal.waits_for("gone on");
    assert_ne!(bench.host_pid(), Some(first));
}
