//! A message on a long log: what the host holds of it, and what it reads again.

use crate::answers::peak_memory;
use crate::bench::{Bench, eventually, files};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

/// The most output that a tool gives, in bytes.
const OUTPUT: usize = 64 * 1024;
/// How many of them stand in the log: 60 MB.
const TURNS: usize = 940;

/// The log of the only session.
fn log(bench: &Bench) -> PathBuf {
    let is_log = |file: &PathBuf| file.extension().is_some_and(|end| end == "jsonl");
    files(&bench.data()).into_iter().find(is_log).expect("a log")
}

/// Adds turns, each with a long output of a tool.
fn lengthen(log: &PathBuf) {
    let file = File::options().append(true).open(log).expect("the log");
    let mut file = BufWriter::new(file);
    let output = "fn main() {} // \"日本\"\n".repeat(OUTPUT / 24);
    let mut lines = 0;
    let mut put = |fact: Value| {
        lines += 1;
        let id = format!("01a20461-98c1-7000-8000-{lines:012}");
        let mut entry = json!({"ts": 1_700_000_000_000_u64 + lines});
        let fields = entry.as_object_mut().expect("an object");
        fields.extend(fact.as_object().expect("an object").clone());
        let rest = entry.to_string();
        writeln!(file, "{{\"id\":\"{id}\",{}", &rest[1..]).expect("room on the disk");
    };
    for turn in 0..TURNS {
        let call = format!("call-{turn}");
        put(json!({"kind": "invoke", "trigger": "user_send"}));
        put(json!({"kind": "user_input", "segments": [{"kind": "text", "content": "look"}]}));
        put(json!({"kind": "assistant_item", "item": {"kind": "tool_call", "call_id": call,
            "name": "Read", "arguments": "{}"}}));
        put(json!({"kind": "tool_result", "item": {"kind": "tool_result", "call_id": call,
            "summary": "Read", "content": output}}));
        put(json!({"kind": "run_completed", "interrupted": false, "result": "finished"}));
    }
    put(json!({"kind": "llm_usage", "history_len": 3 * TURNS + 2, "input_total_tokens": 1000,
        "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 1}));
}

#[test]
fn a_message_on_a_long_log_holds_none_of_its_old_outputs_and_reads_it_once() {
    let bench = Bench::new();
    let first = bench.yoi(&["--model", &bench.model(), "--keep", "-p", "hello"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let log = log(&bench);
    lengthen(&log);
    let checkpoint = log.with_extension("fold");
    let peaks = ["before", "after"].map(|checkpointed| {
        let host = bench.serve();
        let again = bench.yoi(&["--pod", "ws", "-p", "again"]);
        assert_eq!((again.code, again.out.trim()), (Some(0), "heard: again"), "{}", again.err);
        eventually("the checkpoint is written", || checkpoint.exists());
        let peak = peak_memory(host.child.id());
        assert!(peak < 100 << 20, "the host held {peak} bytes {checkpointed} the checkpoint");
        peak
    });
    let covered = fs::metadata(&checkpoint).expect("the checkpoint").len();
    assert!(covered < 4 << 20, "the checkpoint has {covered} bytes, peaks {peaks:?}");
}
