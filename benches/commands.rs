//! What a trivial command costs: the time from a call of a model to its result, for `true` and for a Read of a small file.
//!
//! `cargo bench --bench commands` prints the medians of 50 calls. `YOI` may name another build of the program.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The measured calls of a row, after a first one that is not measured.
const CALLS: usize = 50;
/// The time that the model takes before it calls, in milliseconds; a real one takes longer.
const THINKS: u64 = 200;
const CACHES: [&str; 8] = [
    ".cache/pip",
    ".cache/uv",
    ".npm",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg/mod",
    ".gradle/caches",
    ".m2/repository",
];

const BASH: &str = r#"{ name = "Bash", args = { command = "true" } }"#;
const READ: &str = r#"{ name = "Read", args = { file_path = "{cwd}/a" } }"#;

fn main() {
    if !std::env::args().any(|word| word == "--bench") {
        println!("nothing is measured here: cargo bench --bench commands");
        return;
    }
    println!("| from the call to the result | median | 9 of 10 within |\n|---|---|---|");
    row("Read", READ, &[]);
    row("`true`", BASH, &[]);
    row("`true`, with eight caches", BASH, &CACHES);
    row("two `true` in one reply, each", &format!("{BASH}, {BASH}"), &CACHES);
}

fn row(what: &str, calls: &str, caches: &[&str]) {
    let mut times = measured(calls, caches);
    times.sort_unstable();
    let millis = |part: usize| times[times.len() * part / 10].as_secs_f64() * 1000.0;
    println!("| {what} | {:.1} ms | {:.1} ms |", millis(5), millis(9));
}

/// A new Pod makes these calls again and again.
fn measured(calls: &str, caches: &[&str]) -> Vec<Duration> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (ws, home) = (dir.path().join("ws"), dir.path().join("home"));
    fs::create_dir_all(&ws).expect("a new directory");
    fs::write(ws.join("a"), "a\n").expect("a new file");
    for cache in caches.iter().chain(&[""]) {
        fs::create_dir_all(home.join(cache)).expect("a new directory");
    }
    let script = dir.path().join("script.toml");
    let steps = format!("[[when.step]]\nwait_ms = {THINKS}\ncall = [{calls}]\n").repeat(CALLS + 1);
    fs::write(&script, format!("[[when]]\nany = true\n{steps}[[when.step]]\ntext = \"done\"\n"))
        .expect("a new file");
    times(&ws, &home, &script)
}

fn times(ws: &Path, home: &Path, script: &Path) -> Vec<Duration> {
    let program = std::env::var("YOI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_yoi").into());
    let model = format!("rehearsal:{}", script.display());
    let mut child = Command::new(program)
        .args(["--json", "--model", &model, "-p", "go"])
        .current_dir(ws)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (mut begun, mut times) = (Instant::now(), Vec::new());
    for line in BufReader::new(child.stdout.take().expect("its output")).lines() {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("a JSON object");
        match event["event"].as_str() {
            // The last call of a reply, before any runs.
            Some("tool_call_done") => begun = Instant::now(),
            Some("tool_result") => {
                assert_eq!(event["data"]["is_error"], false, "{event}");
                times.push(begun.elapsed());
            }
            Some(_) | None => {}
        }
    }
    assert!(child.wait().expect("its end").success());
    let each = times.len() / (CALLS + 1);
    times.split_off(each)
}
