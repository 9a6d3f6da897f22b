//! Without a screen the program is there until its work is done: with what children have still to
//! do, to tell and to ask.

use crate::bench::{Bench, Done, eventually};
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

const SCRIPT: &str = r#"
[[when]]
says = "go"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "dig", scope = [{ target = "{cwd}/a", permission = "write" }] } }]
[[when.step]]
text = "spawned"

[[when]]
says = "ask"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "fetch", scope = [{ target = "{cwd}/a", permission = "write" }] } }]
[[when.step]]
text = "spawned"

[[when]]
says = "dig"
[[when.step]]
wait_ms = 300
text = "dug"

[[when]]
says = "fetch"
[[when.step]]
wait_ms = 300
call = [{ name = "Bash", args = { command = "echo fetched", needs = ["network"], reason = "crates" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "held"
[[when.step]]
call = [{ name = "Bash", args = { command = "until [ -e go ]; do sleep 0.05; done" } }]
[[when.step]]
text = "let go"

[[when]]
says = "long"
[[when.step]]
text = "word "
repeat = 100000
chunk = 5
delay_ms = 20

[[when]]
note = "*`kid` finished*"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/collected", content = "x" } }]
[[when.step]]
text = "collected"

[[when]]
any = true
text = "heard: {1}"
"#;

const WAY: &str = "no person is here to decide; --allow 'Bash+network:echo fetched' lets it pass";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.play(SCRIPT);
    std::fs::create_dir(bench.ws().join("a")).expect("a new directory");
    bench
}

/// What the parent does when it hears that its child is done.
fn collected(bench: &Bench) -> bool {
    bench.ws().join("collected").exists()
}

/// The three ways to say one thing and go.
fn three_ways(what: &str, more: &[&str], check: impl Fn(&Bench, &Done)) {
    let ways: [(&[&str], &str); 3] = [
        (&["-c", ":new ws", "-c", &format!(":send ws {what}")], ""),
        (&["--no-ui"], &format!("{what}\n")),
        (&["-p", what], ""),
    ];
    for (args, input) in ways {
        let bench = bench();
        let model = bench.model();
        let args = [&["--model", &model], more, args].concat();
        check(&bench, &bench.yoi_reading(&args, input));
    }
}

#[test]
fn the_exit_waits_until_a_parent_took_its_child_event_and_finished() {
    three_ways("go", &[], |bench, done| {
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.ends_with("collected\n"), "{done:?}");
        assert!(done.err.contains("waiting for kid"), "{done:?}");
        assert!(collected(bench), "{done:?}");
        // -p stops the children of its Pod, too.
        let state = &bench.pod("kid").expect("the child")["state"];
        assert!(state == "idle" || state == "stopped", "{state}");
    });
}

#[test]
fn a_childs_request_after_its_parent_ended_is_denied_and_exits_with_3() {
    three_ways("ask", &[], |bench, done| {
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.err.contains(WAY), "{done:?}");
        assert!(collected(bench), "{done:?}");
    });
}

#[test]
fn a_childs_request_after_its_parent_ended_is_decided_by_the_command_line() {
    three_ways("ask", &["--allow", "Bash+network:echo *"], |bench, done| {
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.err.contains("allowed by --allow"), "{done:?}");
        assert!(collected(bench), "{done:?}");
    });
}

#[test]
fn with_a_host_elsewhere_the_requests_of_own_pods_are_handled_until_the_pods_are_done() {
    let bench = bench();
    let _host = bench.serve();
    let done = bench.yoi(&["--model", &bench.model(), "-p", "ask"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.err.contains(WAY), "{done:?}");
    assert!(collected(&bench), "{done:?}");
    assert_eq!(bench.pod("ws").expect("the parent")["state"], "stopped");
}

#[test]
fn with_the_option_to_wait_the_program_stays_until_a_childs_request_is_decided() {
    let bench = bench();
    let _host = bench.serve();
    let mut command = bench.command(&["--ask", "wait", "--model", &bench.model(), "-p", "ask"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("the program starts");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    lines.find(|line| line.contains("] kid asks: ")).expect("the question");
    assert!(child.try_wait().expect("a child").is_none(), "it waits");
    std::thread::spawn(move || lines.for_each(drop));
    let answer = bench.yoi_reading(&["--no-ui"], ":allow 1\n");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let done = bench.finish(child);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(collected(&bench), "{done:?}");
}

#[test]
fn work_that_other_clients_gave_a_child_is_not_waited_for() {
    let bench = bench();
    let _host = bench.serve();
    let model = bench.model();
    let first = bench.yoi(&["--model", &model, "-c", ":new ws", "-c", ":send ws go"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(bench.yoi(&["send", "kid", "long"]).code, Some(0));
    let done = bench.yoi(&["--pod", "ws", "-p", "status"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: status\n"), "{done:?}");
    assert_eq!(bench.pod("kid").expect("the child")["state"], "running");
}

#[test]
fn a_message_is_done_while_another_client_uses_its_host_which_ends_with_that_client() {
    let bench = bench();
    let mut command = bench.command(&["--model", &bench.model(), "-p", "held"]);
    let child = command.spawn().expect("the program starts");
    let connect = || UnixStream::connect(bench.socket()?).ok();
    eventually("a host", || connect().is_some());
    let mut other = BufReader::new(connect().expect("a connection"));
    other.read_line(&mut String::new()).expect("the hello of the host");
    std::fs::write(bench.ws().join("go"), "").expect("a writable directory");
    let done = bench.finish(child);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "let go\n"), "{done:?}");
    assert!(bench.host_pid().is_some(), "the host of the other client");
    drop(other);
    eventually("the host is gone", || bench.host_pid().is_none());
}

#[test]
fn a_message_for_a_pod_that_works_for_another_program_is_queued_and_each_program_prints_its_own_answer()
 {
    let bench = bench();
    let model = bench.model();
    let say = |what: &str| {
        let args = ["--model", &model, "--pod", "same", "-p", what];
        bench.command(&args).spawn().expect("the program starts")
    };
    let _host = bench.serve();
    let first = say("held");
    let field = |name: &str| bench.pod("same").map(|info| info[name].clone());
    eventually("the first message runs", || field("state").is_some_and(|s| s == "running"));
    let second = say("two");
    eventually("the second message waits", || {
        field("queue").is_some_and(|queue| queue.as_array().is_some_and(|rows| rows.len() == 1))
    });
    std::fs::write(bench.ws().join("go"), "").expect("a writable workspace");
    let (first, second) = (bench.finish(first), bench.finish(second));
    assert_eq!((first.code, first.out.as_str()), (Some(0), "let go\n"), "{first:?}");
    assert_eq!((second.code, second.out.as_str()), (Some(0), "heard: two\n"), "{second:?}");
    assert!(second.err.contains("queued"), "{second:?}");
}

#[test]
fn two_messages_at_once_for_a_name_that_no_pod_has_are_both_answered() {
    let bench = bench();
    let model = bench.model();
    let _host = bench.serve();
    for round in 0..6 {
        let name = format!("same{round}");
        let say = |what: &str| {
            let args = ["--model", &model, "--pod", &name, "-p", what];
            bench.command(&args).spawn().expect("the program starts")
        };
        let both = ["one", "two"].map(|what| (what, say(what)));
        for (what, child) in both {
            let done = bench.finish(child);
            let answer = format!("heard: {what}\n");
            assert_eq!((done.code, done.out), (Some(0), answer), "{}", done.err);
        }
    }
}
