//! Data directories that earlier releases wrote, opened by the program of today (`tests/earlier`).

use crate::bench::{Bench, eventually, files};
use serde_json::Value;
use std::path::Path;

/// The directory below which the recorded program worked.
const RECORDED: &[u8] = b"/tmp/yoi-000000";

/// Copies a recorded directory, with `base` for the directory that it was recorded in.
fn unpack(commit: &str, base: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier").join(commit);
    let now = base.to_str().expect("a plain name").as_bytes();
    assert_eq!(now.len(), RECORDED.len(), "pages of a database keep their form");
    for file in files(&from) {
        let to = base.join(file.strip_prefix(&from).expect("a file below it"));
        let mut bytes = std::fs::read(&file).expect("a readable file");
        let places: Vec<usize> = memchr::memmem::find_iter(&bytes, RECORDED).collect();
        for at in places {
            bytes[at..at + now.len()].copy_from_slice(now);
        }
        std::fs::create_dir_all(to.parent().expect("a file in a directory")).expect("a directory");
        std::fs::write(&to, bytes).expect("a writable directory");
        let mode = if to.extension().is_some_and(|kind| kind == "sh") { 0o755 } else { 0o600 };
        std::fs::set_permissions(&to, PermissionsExt::from_mode(mode)).expect("a file of ours");
    }
}

fn recorded(commit: &str) -> Bench {
    let bench = Bench::of_earlier_data();
    unpack(commit, bench.ws().parent().expect("the directory of the bench"));
    for pod in ["runs", "waits", "scripts", "equal", "history"] {
        std::fs::create_dir_all(bench.path(pod)).expect("a new directory");
    }
    bench
}

/// The texts of all messages in a log, in order.
fn texts(log: &[Value]) -> String {
    log.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_data_directory_of_063d18d_opens_with_everything_in_it() {
    let bench = recorded("063d18d");
    let _host = bench.serve();
    let state = |pod: &str| bench.pod(pod).unwrap_or_default()["state"].clone();
    eventually("the Pods are back", || state("runs") == "paused" && state("waits") == "needs_you");
    for pod in ["scripts", "equal", "history"] {
        assert_eq!(state(pod), "idle", "{pod}");
    }

    let runs = bench.pod("runs").expect("the Pod that ran");
    assert_eq!(runs["queue"].as_array().map(Vec::len), Some(2), "{runs}");
    let partial = texts(&bench.log("runs"));
    assert!(partial.contains("I begin with this sentence"), "{partial}");

    let equal = bench.log("equal");
    let calls = equal.iter().filter(|entry| entry["item"]["name"] == "Glob").count();
    let results = equal.iter().filter(|entry| entry["kind"] == "tool_result").count();
    assert_eq!((calls, results), (2, 2), "{equal:?}");

    let history = texts(&bench.log("history"));
    assert!(history.contains("after the compaction"), "{history}");
    let rewinds = bench.yoi(&["rewind", "--pod", "history"]);
    assert!(rewinds.out.contains("message 0") && rewinds.out.contains("after the"), "{rewinds:?}");

    let policy = bench.yoi(&["policy"]);
    assert!(policy.out.contains("127.0.0.1:18431"), "the consent stays: {policy:?}");
    assert!(!policy.out.contains("sha256="), "the rule for a script ends: {policy:?}");
    let notices = bench.yoi(&["ls"]);
    let ended = "rules for the content of scripts allow nothing any more: `Bash+network+sha256=";
    assert!(format!("{}{}", notices.out, notices.err).contains(ended), "{notices:?}");
}

#[test]
fn a_run_of_063d18d_that_waited_and_one_that_was_cut_off_go_on() {
    let bench = recorded("063d18d");
    let _host = bench.serve();
    let state = |pod: &str| bench.pod(pod).unwrap_or_default()["state"].clone();
    eventually("the request is there", || bench.yoi(&["inbox"]).out.contains("waits asks"));
    let inbox = bench.yoi(&["inbox"]).out;
    let request = inbox.split(['[', ']']).nth(1).expect("the end of an id").to_owned();
    assert_eq!(bench.yoi(&["allow", &request]).code, Some(0));
    eventually("the run has ended", || state("waits") == "idle");
    let log = texts(&bench.log("waits"));
    assert!(log.contains("It said: ") && log.contains("from the network"), "{log}");

    assert_eq!(bench.yoi(&["cancel", "runs"]).code, Some(0));
    assert_eq!(bench.yoi(&["send", "runs", "the third"]).code, Some(0));
    // The message is sent while the queue is taken already, or before.
    let sent = ["heard: the third", "heard: queued one", "heard: queued two"];
    let done = || {
        let log = texts(&bench.log("runs"));
        sent.iter().all(|text| log.contains(text))
    };
    eventually("the queue and the message were taken", done);
    let log = texts(&bench.log("runs"));
    for text in sent {
        assert_eq!(log.matches(text).count(), 1, "{text}: {log}");
    }
    assert!(log.contains("a message of another program"), "{log}");
    assert_eq!(bench.yoi(&["send", "history", "go on"]).code, Some(0));
    let answered = || texts(&bench.log("history")).contains("heard: go on");
    eventually("the compacted history goes on", answered);
}
