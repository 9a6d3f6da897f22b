//! Commands in the background of the real program: what they hold of the scope, how a person lists and ends them, and what
//! is said of them after the host was killed.

use crate::bench::{Bench, Host, eventually, signal};
use serde_json::Value;
use std::fs;

const SCRIPT: &str = r#"
[[when]]
note = "*ended in the background*"
text = "It has ended."

[[when]]
says = "start *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}", background = true } }]
[[when.step]]
text = "Bash said: {result}"

[[when]]
says = "write *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}", background = true, writes = ["part"] } }]
[[when.step]]
text = "Bash said: {result}"

[[when]]
says = "run *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}" } }]
[[when.step]]
text = "Bash said: {result}"

[[when]]
says = "give"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "hello", profile = "inherit", running = "end", scope = [{ target = "{cwd}/part", permission = "write" }] } }]
[[when.step]]
text = "Spawning said: {result}"

[[when]]
says = "net"
[[when.step]]
call = [{ name = "Bash", args = { command = "true", needs = ["network"], reason = "r" } }]
[[when.step]]
text = "went"

[[when]]
says = "spawn"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "hello", profile = "inherit", scope = [{ target = "{cwd}/part", permission = "write" }] } }]
[[when.step]]
text = "Spawning said: {result}"

[[when]]
any = true
text = "heard: {1}"
"#;

/// A command that tries to write to the directory `part` until it is ended. Its line is unlike every other one.
const WRITER: &str = "while sleep 0.01; do date > part/written-7531; done";

/// A host with the Pod `a`, which runs a command in the background.
fn with_a_job(command: &str) -> (Bench, Host) {
    with_a_job_of("start", command)
}

/// The same with a command that also writes the directory `part`.
fn with_a_writer() -> (Bench, Host) {
    let (bench, host) = with_a_job_of("write", WRITER);
    eventually("it writes", || bench.ws().join("part/written-7531").exists());
    (bench, host)
}

fn with_a_job_of(message: &str, command: &str) -> (Bench, Host) {
    let bench = Bench::new();
    bench.play(SCRIPT);
    fs::create_dir(bench.ws().join("part")).expect("a new directory");
    let host = bench.serve();
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new a"]).code, Some(0));
    send(&bench, "a", &format!("{message} {command}"));
    eventually("the command runs", || jobs(&bench) == 1);
    eventually("the run is over", || is(&bench, "a", "idle"));
    (bench, host)
}

fn send(bench: &Bench, pod: &str, text: &str) {
    let sent = bench.yoi(&["send", pod, text]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
}

fn is(bench: &Bench, pod: &str, state: &str) -> bool {
    bench.pod(pod).is_some_and(|info| info["state"] == state)
}

fn jobs(bench: &Bench) -> u64 {
    bench.pod("a").and_then(|info| info["jobs"].as_u64()).unwrap_or(0)
}

/// Whether a process with this word in its command line runs.
fn runs(word: &str) -> bool {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.contains(word))
}

/// What the model of `a` was told of commands that ended, in the order of its history.
fn notices(bench: &Bench) -> Vec<String> {
    let message = |entry: &Value| {
        let text = entry.to_string();
        (entry["kind"] == "system_item" && text.contains("in the background")).then_some(text)
    };
    bench.log("a").iter().filter_map(message).collect()
}

#[test]
fn a_command_in_the_background_writes_nothing_that_is_lent_meanwhile_and_a_person_ends_it() {
    let (bench, _host) = with_a_job(WRITER);
    send(&bench, "a", "spawn");
    eventually("the child has its scope", || bench.pod("kid").is_some());
    eventually("the run is over", || is(&bench, "a", "idle"));
    assert_eq!(jobs(&bench), 1);
    let listed = bench.yoi(&["jobs"]);
    assert!(listed.out.contains("job-1 of a: runs, for "), "{listed:?}");
    let refused = bench.yoi(&["jobs", "stop", "job-2", "a"]);
    assert!(refused.err.contains("has the id \"job-2\": job-1 run(s) now"), "{refused:?}");
    let ended = bench.yoi(&["jobs", "stop", "job-1", "a"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("job-1 of a has ended: cancelled after "), "{ended:?}");
    assert!(!runs("written-7531"));
    let output = fs::read_dir(bench.ws().join("part")).expect("a readable directory");
    assert_eq!(output.count(), 0);
    eventually("none is counted", || jobs(&bench) == 0);
}

#[test]
fn a_stopped_pod_takes_its_commands_in_the_background_with_it_and_says_so_when_it_is_back() {
    let (bench, _host) = with_a_job("sleep 7532");
    let stopped = bench.yoi(&["stop", "a"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(!runs("7532"));
    assert_eq!(bench.yoi(&["restore", "a"]).code, Some(0));
    send(&bench, "a", "hello");
    eventually("it is told", || notices(&bench).len() == 1);
    assert!(
        notices(&bench)[0].contains("was ended because this pod was stopped"),
        "{:?}",
        notices(&bench)
    );
}

#[test]
fn the_end_of_a_command_in_the_background_wakes_its_pod_once() {
    let (bench, _host) = with_a_job("until [ -e go ]; do sleep 0.01; done; echo all done");
    fs::write(bench.ws().join("go"), "").expect("a writable workspace");
    eventually("it is told", || notices(&bench).len() == 1);
    eventually("it has answered", || {
        bench.log("a").iter().any(|entry| entry.to_string().contains("It has ended."))
    });
    eventually("the run is over", || is(&bench, "a", "idle"));
    assert!(notices(&bench)[0].contains("Exit 0 after "), "{:?}", notices(&bench));
    assert!(notices(&bench)[0].contains("> all done"), "{:?}", notices(&bench));
}

#[test]
fn a_command_in_the_background_ends_with_a_host_that_is_killed_and_is_reported_once() {
    let (bench, host) = with_a_job("sleep 7533");
    signal(host.child.id(), "KILL");
    drop(host);
    eventually("its processes are gone", || !runs("sleep 7533"));
    for _ in 0..2 {
        let host = bench.serve();
        eventually("it is back", || is(&bench, "a", "idle"));
        assert_eq!(jobs(&bench), 0);
        assert!(!runs("sleep 7533"), "it is not started again");
        signal(host.child.id(), "KILL");
        drop(host);
    }
    let _host = bench.serve();
    assert_eq!(notices(&bench), [""; 0], "a message begins the next run");
    send(&bench, "a", "hello");
    eventually("it is told", || notices(&bench).len() == 1);
    eventually("the run is over", || is(&bench, "a", "idle"));
    let said = notices(&bench);
    assert!(
        said[0].contains("job-1 (sleep 7533) ended in the background when the host"),
        "{said:?}"
    );
    send(&bench, "a", "start sleep 7533");
    let is_new = |entry: &Value| entry.to_string().contains("job-2 runs");
    eventually("the next one runs", || bench.log("a").iter().any(is_new));
    assert_eq!(notices(&bench).len(), 1);
}

#[test]
fn a_request_for_more_rights_names_what_runs_beside_it_in_the_background_and_no_rule_answers_it() {
    let bench = Bench::new();
    bench.play(SCRIPT);
    let _host = bench.serve();
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new a"]).code, Some(0));
    send(&bench, "a", "net");
    eventually("it asks", || is(&bench, "a", "needs_you"));
    let decide = |words: &[&str]| {
        let listed = bench.yoi(&["inbox"]).out;
        let named = listed.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let name = named.unwrap_or_else(|| panic!("{listed}")).0;
        (bench.yoi(&[&["allow", name], words].concat()), listed)
    };
    assert_eq!(decide(&["pod", "--yes"]).0.code, Some(0));
    let went = || bench.log("a").iter().filter(|entry| entry.to_string().contains("went")).count();
    eventually("the run is over", || went() == 1 && is(&bench, "a", "idle"));
    send(&bench, "a", "net");
    eventually("the rule allows it", || went() == 2 && is(&bench, "a", "idle"));
    send(&bench, "a", "start sleep 7534");
    eventually("the command runs", || jobs(&bench) == 1 && is(&bench, "a", "idle"));
    send(&bench, "a", "net");
    eventually("it asks", || is(&bench, "a", "needs_you"));
    let (refused, shown) = decide(&["pod", "--yes"]);
    let beside = "with the same /tmp, run in the background: job-1 (sleep 7534)";
    assert!(shown.contains(beside), "{shown}");
    assert!(refused.err.contains("allowed once only"), "{refused:?}");
    assert_eq!(decide(&[]).0.code, Some(0));
    eventually("the run is over", || went() == 3 && is(&bench, "a", "idle"));
}

#[test]
fn what_a_command_in_the_background_writes_is_not_lent_and_no_other_pod_writes_beside_it() {
    let (bench, _host) = with_a_writer();
    let part = bench.ws().join("part");
    let listed = bench.yoi(&["jobs"]).out;
    assert!(listed.contains("writes") && listed.contains(part.to_str().unwrap()), "{listed}");
    let explained = bench.yoi(&["explain", "a"]).out;
    assert!(explained.contains("a command in the background writes there"), "{explained}");
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new b"]).code, Some(0));
    send(&bench, "b", "run echo b > new");
    eventually("the other pod only reads", || {
        is(&bench, "b", "idle") && !bench.log("b").is_empty()
    });
    assert!(!bench.ws().join("new").exists());
    let refused = bench.yoi(&["lend", "a", "b", "part"]);
    let why = format!("`a` runs job-1 ({WRITER}) in the background, which may write below");
    assert!(refused.code != Some(0) && refused.err.contains(&why), "{refused:?}");
    send(&bench, "a", "spawn");
    let said = |text: &str| bench.log("a").iter().any(|entry| entry.to_string().contains(text));
    eventually("the model reads why", || said("in the background, which may write below"));
    eventually("the run is over", || is(&bench, "a", "idle"));
    assert!(bench.pod("kid").is_none());
    assert_eq!(bench.yoi(&["jobs", "stop", "job-1", "a"]).code, Some(0));
    let lent = bench.yoi(&["lend", "a", "b", "part"]);
    assert_eq!(lent.code, Some(0), "{lent:?}");
    send(&bench, "b", "run echo b > new");
    eventually("the turn is free", || bench.ws().join("new").exists());
}

#[test]
fn a_lend_waits_for_what_writes_there_or_ends_it_and_is_given_up_with_its_asker() {
    let (bench, mut host) = with_a_writer();
    let part = bench.ws().join("part/written-7531");
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new b"]).code, Some(0));
    let begin = || {
        let mut lend = bench.command(&["lend", "--wait", "a", "b", "part"]);
        lend.spawn().expect("the program starts")
    };
    let of_a = |key: &str| bench.pod("a").map(|info| info[key].to_string()).unwrap_or_default();
    let waits = || of_a("notes").contains("a lend waits until job-");
    let lent = || of_a("lent").contains("part");
    let writes = || {
        fs::remove_file(&part).expect("a written file");
        send(&bench, "a", &format!("write {WRITER}"));
        eventually("it writes", || part.exists() && is(&bench, "a", "idle"));
    };
    let mut given_up = begin();
    eventually("it waits", waits);
    let explained = bench.yoi(&["explain", "a"]).out;
    let what = format!("a lend waits until job-1 ({WRITER}) in the background has ended");
    assert!(explained.contains(&what), "{explained}");
    signal(given_up.id(), "INT");
    assert!(!given_up.wait().expect("it has ended").success());
    eventually("the request is given up", || !waits());
    let mut asked = begin();
    eventually("the other one waits", waits);
    assert!(!lent() && asked.try_wait().expect("a process").is_none());
    assert_eq!(bench.yoi(&["jobs", "stop", "job-1", "a"]).code, Some(0));
    assert!(asked.wait().expect("it has ended").success());
    assert!(lent() && !waits());
    assert_eq!(bench.yoi(&["reclaim", "part"]).code, Some(0));
    // One that is ended first.
    eventually("the run is over", || is(&bench, "a", "idle"));
    writes();
    let ended = bench.yoi(&["lend", "--end", "a", "b", "part"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!runs("written-7531") && lent());
    send(&bench, "a", "hello");
    let notice = "was ended because another pod is to write what it wrote";
    eventually("the model is told", || notices(&bench).iter().any(|said| said.contains(notice)));
    assert_eq!(bench.yoi(&["reclaim", "part"]).code, Some(0));
    // The same by a model.
    eventually("the run is over", || is(&bench, "a", "idle"));
    writes();
    send(&bench, "a", "give");
    eventually("the child has its scope", || bench.pod("kid").is_some());
    assert!(!runs("written-7531"));
    assert_eq!(bench.yoi(&["reclaim", "part"]).code, Some(0));
    // A host that is killed while a request waits.
    eventually("the run is over", || is(&bench, "a", "idle"));
    writes();
    let mut cut = begin();
    eventually("it waits", waits);
    signal(bench.host_pid().expect("a host"), "KILL");
    host.child.wait().expect("the host has ended");
    assert!(!cut.wait().expect("it has ended").success());
    let _host = bench.serve();
    eventually("nothing writes any more", || !runs("written-7531"));
    assert!(!lent() && !waits());
}
