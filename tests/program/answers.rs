//! Answers of any size arrive whole and once, at any speed of the model and of the reader.

use crate::bench::{Bench, Done, eventually, files};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::process::Child;

/// A line with characters of one to four bytes, JSON escapes, and what a terminal must not see.
const LINE: &str = "日本 é 🎈 \u{1b}[2K\"plain\" \\words\\,\ta tab\u{202e} and a line end\n";

/// An answer, and how fast the model says it.
struct Answer {
    repeat: usize,
    chunk: usize,
    delay_ms: u64,
}

/// 80 kB flat out.
const SHORT: Answer = Answer { repeat: 1_250, chunk: 40, delay_ms: 0 };
/// 1 MB flat out.
const LONG: Answer = Answer { repeat: 15_000, chunk: 60, delay_ms: 0 };
/// 80 kB and 1 MB, 100 pieces a second.
const SHORT_PACED: Answer = Answer { repeat: 1_250, chunk: 800, delay_ms: 10 };
const LONG_PACED: Answer = Answer { repeat: 15_000, chunk: 9_000, delay_ms: 10 };
/// 50 MB flat out; 13 MB of an unoptimized host, which also beside other load writes so much
/// within the time that its client waits for it.
const HUGE: Answer = Answer {
    repeat: if cfg!(debug_assertions) { 200_000 } else { 750_000 },
    chunk: 20_000,
    delay_ms: 0,
};

impl Answer {
    fn text(&self) -> String {
        LINE.repeat(self.repeat)
    }

    /// What a terminal may see of it.
    fn safe(&self) -> String {
        self.text().replace("\u{1b}[2K", "").replace('\u{202e}', "")
    }

    /// A bench whose model says this.
    fn bench(&self) -> Bench {
        let bench = Bench::new();
        let line = serde_json::to_string(LINE).expect("a string");
        let Self { repeat, chunk, delay_ms } = self;
        bench.play(&format!(
            "[[when]]\nany = true\n[[when.step]]\ntext = {line}\nrepeat = {repeat}\n\
             chunk = {chunk}\ndelay_ms = {delay_ms}\n"
        ));
        bench
    }
}

/// The text of the answers among these entries.
fn said<'a>(entries: impl Iterator<Item = &'a Value>) -> String {
    let said = entries.filter(|entry| entry["kind"] == "assistant_item");
    let texts = said.flat_map(|entry| entry["item"]["content"].as_array().into_iter().flatten());
    texts.filter_map(|content| content["text"].as_str()).collect()
}

/// Says where two long texts differ, which a failed comparison would print in full.
fn assert_same(what: &str, found: &str, expected: &str) {
    if found == expected {
        return;
    }
    let at = found.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(found.len().min(expected.len()));
    let around = |text: &str| {
        let (from, to) = (text.floor_char_boundary(at), text.ceil_char_boundary(at + 40));
        text.get(from..to.min(text.len())).unwrap_or("").to_owned()
    };
    panic!(
        "{what}: {} bytes instead of {}, other from byte {at} on: {:?} instead of {:?}",
        found.len(),
        expected.len(),
        around(found),
        around(expected)
    );
}

fn done(done: Done) -> String {
    assert_eq!(done.code, Some(0), "{}", done.err);
    done.out
}

/// The body of the answer in `yoi log`, without its indentation.
fn from_log(log: &str) -> String {
    let (_, body) = log.split_once("\nws\n").expect("an answer");
    body.split_inclusive('\n').map(|line| line.strip_prefix("  ").expect("indented")).collect()
}

fn check_every_way(answer: &Answer) {
    let bench = answer.bench();
    let model = bench.model();
    let (text, safe) = (answer.text(), answer.safe());
    let plain = done(bench.yoi(&["--model", &model, "-p", "go"]));
    assert_same("-p", &plain, &safe);
    let raw = done(bench.yoi(&["--model", &model, "--raw", "-p", "go"]));
    assert_same("-p --raw", &raw, &text);
    let json = bench.yoi(&["--model", &model, "--json", "-p", "go"]);
    assert_eq!(json.code, Some(0), "{}", json.err);
    let entries: Vec<Value> = json.events().into_iter().filter(|e| e["event"] == "entry").collect();
    assert_same("--json", &said(entries.iter().map(|event| &event["data"]["entry"])), &text);
    assert_same("log --json", &said(bench.log("ws").iter()), &text);
    assert_same("log", &from_log(&done(bench.yoi(&["log", "ws"]))), &safe);
    assert_same("log --raw", &from_log(&done(bench.yoi(&["log", "ws", "--raw"]))), &text);
}

#[test]
fn an_answer_of_80_kb_flat_out_is_the_same_text_in_every_way_out() {
    check_every_way(&SHORT);
}

#[test]
fn an_answer_of_80_kb_at_100_pieces_a_second_is_the_same_text_in_every_way_out() {
    check_every_way(&SHORT_PACED);
}

#[test]
fn an_answer_of_1_mb_flat_out_is_the_same_text_in_every_way_out() {
    check_every_way(&LONG);
}

#[test]
fn an_answer_of_1_mb_at_100_pieces_a_second_is_the_same_text_in_every_way_out() {
    check_every_way(&LONG_PACED);
}

/// A debug build takes a minute for it, so it runs when `YOI_LONG` is set.
#[test]
fn a_huge_answer_flat_out_is_the_same_text_in_every_way_out() {
    if std::env::var_os("YOI_LONG").is_some() {
        check_every_way(&HUGE);
    }
}

#[test]
fn a_huge_answer_arrives_whole_and_once_in_bounded_memory() {
    let (of_long, of_huge) = (peak_with_a_late_reader(&LONG), peak_with_a_late_reader(&HUGE));
    let bound = of_long + (HUGE.text().len() / 4 * 3) as u64;
    assert!(of_huge < bound, "the client held {of_huge} bytes, {of_long} of 1 MB");
}

/// Checks that the answer arrives whole although only half of it is read before the run ended, and
/// returns the most memory that the client held until then.
fn peak_with_a_late_reader(answer: &Answer) -> u64 {
    let bench = answer.bench();
    let _host = bench.serve();
    let text = answer.text();
    let mut child = bench
        .command(&["--model", &bench.model(), "--raw", "-p", "go"])
        .spawn()
        .expect("the program starts");
    until_the_run_ended(&bench);
    let mut read = vec![0; text.len() / 2];
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut read).expect("half of the text");
    let peak = peak_memory(child.id());
    out.read_to_end(&mut read).expect("the rest");
    let read = String::from_utf8(read).expect("text");
    assert_same("-p --raw", &read, &text);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    peak
}

#[test]
fn a_host_gives_the_memory_of_long_answers_back() {
    let bench = HUGE.bench();
    let host = bench.serve();
    // The pages of the program itself come when they are first used, and belong to no answer.
    let held = || memory(host.child.id(), "RssAnon:");
    let before = held();
    for _ in 0..4 {
        let said = bench.yoi(&["--model", &bench.model(), "--raw", "-p", "go"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    eventually("the host gave the memory back", || held() < before + (12 << 20));
}

/// The most memory that a process ever held, in bytes.
pub fn peak_memory(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// A line of what the kernel says of a process's memory, in bytes.
pub fn memory(pid: u32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let found = status.lines().find_map(|found| found.strip_prefix(line)).expect("this line");
    found.trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}

/// Waits until the log says that the run ended, whatever was printed of it by then.
fn until_the_run_ended(bench: &Bench) {
    eventually("the run ended", || {
        files(&bench.data()).iter().filter(|f| f.extension().is_some_and(|e| e == "jsonl")).any(
            |file| {
                let log = fs::read(file).unwrap_or_default();
                let tail = &log[log.len().saturating_sub(4096)..];
                String::from_utf8_lossy(tail).contains("\"run_completed\"")
            },
        )
    });
}

/// Reads in small pieces, and nothing until the run has ended.
fn read_late(bench: &Bench, child: &mut Child) -> String {
    until_the_run_ended(bench);
    let mut out = child.stdout.take().expect("a pipe");
    let (mut read, mut piece) = (Vec::new(), [0; 1000]);
    loop {
        match out.read(&mut piece).expect("a readable pipe") {
            0 => return String::from_utf8(read).expect("text"),
            more => read.extend_from_slice(&piece[..more]),
        }
    }
}

#[test]
fn a_reader_that_reads_nothing_until_the_run_ended_misses_nothing() {
    for answer in [SHORT, LONG] {
        for form in ["--raw", "--json"] {
            let bench = answer.bench();
            let mut child = bench
                .command(&["--model", &bench.model(), form, "-p", "go"])
                .spawn()
                .expect("the program starts");
            let out = read_late(&bench, &mut child);
            let ended = bench.finish(child);
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            if form == "--raw" {
                assert_same("a late reader", &out, &answer.text());
                continue;
            }
            let ended = Done { out, ..ended };
            let events = ended.events();
            let entries = events.iter().filter(|event| event["event"] == "entry");
            let entries = entries.map(|event| &event["data"]["entry"]);
            assert_same("a late reader of JSON", &said(entries), &answer.text());
        }
    }
}

#[test]
fn a_closed_pipe_ends_the_command_as_sigpipe_does_and_leaves_its_pod_stopped() {
    let bench = LONG.bench();
    let mut child = bench
        .command(&["--model", &bench.model(), "-p", "go"])
        .spawn()
        .expect("the program starts");
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut [0; 10]).expect("the beginning");
    drop(out);
    let ended = bench.finish(child);
    assert_eq!(ended.code, Some(141), "{}", ended.err);
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped");
    // Closed before the start: a short log is written whole before a reader could close it afterwards.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let log = bench.command(&["log", "ws"]).stdout(writer).spawn().expect("the program starts");
    assert_eq!(bench.finish(log).code, Some(141));
}

#[test]
fn the_end_of_a_run_flat_out_is_never_missed() {
    let answer = Answer { repeat: 2_000, chunk: 40, delay_ms: 0 };
    let bench = answer.bench();
    let _host = bench.serve();
    let expected = answer.safe();
    for _ in 0..50 {
        assert_same("-p", &done(bench.say("go")), &expected);
    }
}
