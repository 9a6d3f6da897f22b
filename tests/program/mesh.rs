//! `yoi mesh`: the program as a member, with programs that know the mesh from its wire alone (`tests/mesh`).

use crate::bench::{Bench, Done, eventually, signal};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program of `tests/mesh`.
pub fn python(script: &str) -> Command {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesh");
    let mut command = Command::new("python3");
    // -B: no compiled files beside the sources.
    command.arg("-B").arg(format!("{dir}/{script}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that ends with its test.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `yoi mesh tail` under a name, once it has joined; what it prints goes to files.
pub fn tail(bench: &Bench, name: &str) -> Running {
    let file = |end: &str| {
        File::create(bench.path(&format!("{name}.{end}"))).expect("a writable directory")
    };
    let mut command = bench.command(&["mesh", "tail", "--json", "--name", name]);
    let child =
        command.stdout(file("out")).stderr(file("err")).spawn().expect("the program starts");
    let running = Running(child);
    eventually("the program joins", || read(bench, &format!("{name}.err")).contains("joined as"));
    running
}

pub fn read(bench: &Bench, file: &str) -> String {
    std::fs::read_to_string(bench.path(file)).unwrap_or_default()
}

pub fn socket(bench: &Bench) -> PathBuf {
    bench.runtime().join(".mesh/sock")
}

fn names(done: &Done) -> Vec<&str> {
    assert_eq!(done.code, Some(0), "{done:?}");
    done.out.lines().collect()
}

#[test]
fn a_shell_lists_agents_sends_to_them_and_prints_what_comes() {
    let bench = Bench::new();
    let done = bench.yoi(&["mesh", "ls"]);
    assert_eq!(done.code, Some(1));
    assert!(done.last_words().contains("no agent leads a mesh at"), "{done:?}");
    let first = tail(&bench, "first");
    let _second = tail(&bench, "second");
    assert_eq!(names(&bench.yoi(&["mesh", "ls"])), ["first", "second"]);
    let sent = bench.yoi(&["mesh", "send", "second", "hello", "there"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let id = sent.out.strip_prefix("received ").expect("its status and id").trim();
    let body = bench.yoi(&["mesh", "send", "--json", "--re", id, "first,second", "{\"n\":1.0}"]);
    assert!(body.code == Some(0) && body.out.starts_with("sent "), "{body:?}");
    eventually("both messages are printed", || read(&bench, "second.out").lines().count() == 2);
    let printed = read(&bench, "second.out");
    let lines: Vec<Value> =
        printed.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(
        lines[0],
        json!({"from": "yoi", "to": "second", "id": id, "re": null, "body": "hello there"})
    );
    assert_eq!((&lines[1]["to"], &lines[1]["re"]), (&json!(["first", "second"]), &json!(id)));
    assert!(printed.contains("{\"n\":1.0}"), "{printed}");
    let piped = bench.yoi_reading(&["mesh", "send", "second", "-"], "read from a pipe\n");
    assert!(piped.code == Some(0) && piped.out.starts_with("received "), "{piped:?}");
    eventually("it is printed", || read(&bench, "second.out").contains("read from a pipe"));
    let denied = bench.yoi(&["mesh", "send", "nowhere", "hi"]);
    assert!(denied.code == Some(3) && denied.out.starts_with("denied "), "{denied:?}");
    assert!(denied.out.trim_end().ends_with(" no agent of this name is here"), "{denied:?}");
    let some = bench.yoi(&["mesh", "send", "[\"second\",\"a,b\"]", "hi"]);
    assert!(some.code == Some(0) && some.out.contains(" a,b: no agent of this name"), "{some:?}");
    let odd = bench.yoi(&["mesh", "tail", "--name", "a,b"]);
    assert!(odd.code == Some(2) && odd.err.contains("without a comma"), "{odd:?}");
    signal(first.0.id(), "TERM");
    eventually("the other one leads", || read(&bench, "second.err").contains("and leads the mesh"));
    assert_eq!(names(&bench.yoi(&["mesh", "ls"])), ["second"]);
}

#[test]
fn a_shell_prints_the_audit_in_order_over_all_its_files_and_of_the_agents_it_names() {
    let bench = Bench::new();
    let audit = bench.path("home/state/mesh-audit.jsonl");
    let none = bench.yoi(&["mesh", "audit"]);
    assert!(none.code == Some(0) && none.out.is_empty(), "{none:?}");
    assert!(none.last_words().contains("no message was noted yet"), "{none:?}");
    let _first = tail(&bench, "first");
    let _second = tail(&bench, "second");
    let send = |to: &str, text: &str| bench.yoi(&["mesh", "send", "--name", "eve", to, text]);
    for (to, words) in [("second", "received"), ("nowhere", "denied"), ("broadcast", "sent")] {
        assert!(send(to, "hi").out.starts_with(words), "{to}");
    }
    eventually("all is written", || {
        std::fs::read_to_string(&audit).unwrap_or_default().lines().count() == 3
    });
    let lines = |args: &[&str]| -> Vec<String> {
        let done = bench.yoi(&[["mesh", "audit"].as_slice(), args].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out.lines().map(str::to_owned).collect()
    };
    let all = lines(&[]);
    for (line, said) in all.iter().zip([
        "eve -> second: received id=",
        "eve -> nowhere: denied id=",
        "eve -> broadcast: delivered to first,second id=",
    ]) {
        assert!(line.contains(said), "{all:?}");
    }
    assert_eq!(lines(&["nowhere"]), [all[1].clone()]);
    assert_eq!(lines(&["first"]), [all[2].clone()], "it got what went to all");
    assert_eq!(lines(&["--json"]).join("\n") + "\n", std::fs::read_to_string(&audit).expect("it"));
    // What was rotated comes first, and a damaged line is left out.
    let older = audit.with_extension("jsonl.1");
    std::fs::rename(&audit, &older).expect("an older file");
    let text = std::fs::read_to_string(&older).expect("its lines");
    let (first, rest) = text.split_once('\n').expect("a line");
    std::fs::write(&older, format!("{first}\n{{broken\n")).expect("a writable directory");
    std::fs::write(&audit, rest).expect("a writable directory");
    assert_eq!(lines(&[]), all);
    let done = bench.yoi(&["mesh", "audit"]);
    assert!(done.last_words().contains("1 line is damaged"), "{done:?}");
}

#[test]
fn a_shell_follows_the_audit_into_the_next_file() {
    let bench = Bench::new();
    let audit = bench.path("home/state/mesh-audit.jsonl");
    std::fs::create_dir_all(bench.path("home/state")).expect("a writable home");
    let line = |id: &str| {
        format!(
            "{{\"ts\":0,\"from\":\"a\",\"to\":\"b\",\"id\":\"{id}\",\"re\":null,\"delivered\":[],\"ack_status\":\"none\",\"via\":\"uds\"}}\n"
        )
    };
    std::fs::write(&audit, line("one")).expect("a file");
    let out = File::create(bench.path("followed")).expect("a writable directory");
    let mut command = bench.command(&["mesh", "audit", "--follow"]);
    let _running = Running(command.stdout(out).spawn().expect("the program starts"));
    let shows = |count: usize| read(&bench, "followed").lines().count() == count;
    eventually("the first line is printed", || shows(1));
    let append = |path: &std::path::Path, text: &str| {
        let mut file = File::options().append(true).create(true).open(path).expect("a file");
        std::io::Write::write_all(&mut file, text.as_bytes()).expect("a write");
    };
    // A line is printed when it is whole.
    let two = line("two");
    append(&audit, &two[..20]);
    append(&audit, &two[20..]);
    eventually("the second line is printed", || shows(2));
    append(&audit, &line("three"));
    std::fs::rename(&audit, audit.with_extension("jsonl.1")).expect("an older file");
    append(&audit, &line("four"));
    eventually("the lines of both files are printed", || shows(4));
    let ids: Vec<String> = read(&bench, "followed")
        .lines()
        .map(|l| l.rsplit('=').next().unwrap_or("").to_owned())
        .collect();
    assert_eq!(ids, ["one", "two", "three", "four"]);
}

#[test]
fn a_leader_keeps_every_rule_of_the_wire() {
    let bench = Bench::new();
    let _leader = tail(&bench, "leader");
    let done = bench.finish(python("rules.py").arg(socket(&bench)).spawn().expect("python3"));
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let checked = done.out.split(' ').next().and_then(|count| count.parse::<u32>().ok());
    assert!(checked.is_some_and(|rules| rules >= 23), "{}", done.out);
}

#[test]
fn a_member_keeps_the_wire_under_a_leader_of_another_program() {
    let bench = Bench::new();
    bench.settings("[mesh]\nsocket = '~/other/local/broker.sock'\n");
    let path = bench.path("home/other/local/broker.sock");
    let mut leader = Running(python("leader.py").arg(&path).spawn().expect("python3"));
    let mut printed = BufReader::new(leader.0.stdout.take().expect("its output")).lines();
    let mut next = || -> Value {
        let line = printed.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(next()["listens"], json!(path));
    let _tail = tail(&bench, "bob");
    assert!(
        read(&bench, "bob.err").contains("another program leads"),
        "{}",
        read(&bench, "bob.err")
    );
    let sent = bench.yoi(&["mesh", "send", "--name", "alice", "bob", "hi"]);
    assert!(sent.code == Some(0) && sent.out.starts_with("received "), "{sent:?}");
    let seen = next();
    let id = sent.out.trim().trim_start_matches("received ");
    let line = json!({"from": "alice", "to": "bob", "id": id, "re": null, "body": "hi"});
    assert_eq!(seen, json!({"name": "alice", "line": line}));
    eventually("the message is printed", || read(&bench, "bob.out").lines().count() == 1);
    // A leader of 0.4.2 lists for members only, so this joins, and leaves itself out.
    assert_eq!(names(&bench.yoi(&["mesh", "ls"])), ["bob"]);
    leader.0.kill().expect("a running process");
    eventually("a member of yoi leads", || read(&bench, "bob.err").contains("and leads the mesh"));
    assert_eq!(names(&bench.yoi(&["mesh", "ls"])), ["bob"]);
}

#[test]
fn killed_leaders_split_no_mesh_and_lose_no_acknowledged_message() {
    let bench = Bench::new();
    // 200 kills take a minute; a few of them show that the election works.
    let count = std::env::var("YOI_ELECTIONS").unwrap_or_else(|_| "5".to_owned());
    let mut command = python("elections.py");
    command.arg(env!("CARGO_BIN_EXE_yoi")).arg(socket(&bench)).arg(&count);
    command.env("YOI_HOME", bench.path("home")).env("HOME", bench.path("home"));
    let output = command.output().expect("python3");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let figures: Value = serde_json::from_str(&out).expect("the figures");
    assert_eq!(figures["kills"].to_string(), count);
    assert!(figures["median_ms"].as_u64().is_some_and(|median| median < 250), "{figures}");
}

#[test]
fn a_leader_of_yoi_that_stops_is_replaced_and_joins_when_it_goes_on() {
    let bench = Bench::new();
    let first = tail(&bench, "first");
    let _second = tail(&bench, "second");
    signal(first.0.id(), "STOP");
    let begun = Instant::now();
    eventually("the other one leads", || read(&bench, "second.err").contains("and leads the mesh"));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(names(&bench.yoi(&["mesh", "ls"])), ["second"]);
    signal(first.0.id(), "CONT");
    eventually("the former leader joins", || {
        read(&bench, "first.err").contains("joined again as first\n")
    });
    let sent = bench.yoi(&["mesh", "send", "first", "hi"]);
    assert!(sent.out.starts_with("received "), "{sent:?}");
}

#[test]
fn a_leader_of_another_program_that_stops_is_named() {
    let bench = Bench::new();
    bench.settings("[mesh]\nsocket = '~/other/broker.sock'\n");
    let path = bench.path("home/other/broker.sock");
    let mut leader = Running(python("leader.py").arg(&path).spawn().expect("python3"));
    let mut line = String::new();
    let output = leader.0.stdout.as_mut().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line when it listens");
    signal(leader.0.id(), "STOP");
    let done = bench.yoi(&["mesh", "tail"]);
    let named = format!("(process {}) does not answer", leader.0.id());
    assert!(done.code == Some(1) && done.last_words().contains(&named), "{done:?}");
}
