//! What must be true of the files and of the living after a kill, found out without the program's
//! own code.

use crate::bench::Bench;
use crate::hub::Hub;
use crate::ledger::Told;
use crate::provider::{blocks, said};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An entry over this size is told cut.
const CUT_OVER: usize = 60_000;

/// What a Pod shall be after the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Stopped,
    Idle,
    /// Paused by a person.
    Paused,
    /// Paused because its run was cut off.
    CutOff,
    /// Waits for a person.
    Asks,
    /// A person answered as the host died.
    Answered,
}

/// A Pod as the store has it.
#[derive(Debug)]
struct Row {
    name: String,
    live: bool,
    segment: Option<String>,
}

/// What is on disk.
struct Disk {
    pods: Vec<Row>,
    /// What waits: Pod, row id, payload.
    mail: Vec<(String, String, String)>,
    /// Questions that a person answered.
    answered: BTreeSet<String>,
    /// Every segment by its name; whole lines only.
    segments: BTreeMap<String, Vec<Value>>,
    wrong: Vec<String>,
}

impl Disk {
    fn read(bench: &Bench) -> Self {
        let mut disk = Self {
            pods: Vec::new(),
            mail: Vec::new(),
            answered: BTreeSet::new(),
            segments: BTreeMap::new(),
            wrong: Vec::new(),
        };
        disk.read_store(&bench.data().join("yoi.db"));
        for path in bench.files(".jsonl") {
            disk.read_segment(&path);
        }
        disk
    }

    fn read_store(&mut self, path: &Path) {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let db = rusqlite::Connection::open_with_flags(path, flags).expect("the store");
        let mut rows = db.prepare("SELECT name, wanted, segment FROM pods").expect("pods");
        let pods = rows.query_map([], |row| {
            let wanted: String = row.get(1)?;
            let live = wanted == "live";
            Ok(Row { name: row.get(0)?, live, segment: row.get(2)? })
        });
        self.pods = pods.expect("pods").map(|row| row.expect("a pod")).collect();
        let mut rows =
            db.prepare("SELECT pod, id, payload FROM mail WHERE taken = 0").expect("mail");
        let mail = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        self.mail = mail.expect("mail").map(|row| row.expect("mail")).collect();
        let mut rows = db.prepare("SELECT id FROM asks WHERE verdict NOT NULL").expect("asks");
        let answered = rows.query_map([], |row| row.get(0)).expect("asks");
        self.answered = answered.map(|row| row.expect("an ask")).collect();
    }

    fn read_segment(&mut self, path: &Path) {
        let bytes = std::fs::read(path).expect("a segment");
        let mut lines = Vec::new();
        let mut ids = BTreeSet::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(entry) => {
                    let id = entry["id"].as_str().unwrap_or_default().to_owned();
                    if id.is_empty() || !ids.insert(id) {
                        let text = format!("{}: no id of its own: {entry}", path.display());
                        self.wrong.push(text);
                    }
                    lines.push(entry);
                }
                Err(error) => {
                    let text = String::from_utf8_lossy(line);
                    self.wrong.push(format!("{}: {error}: {text}", path.display()));
                }
            }
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        self.segments.insert(name, lines);
    }

    /// Every entry once, also when segments share it.
    fn entries(&self) -> BTreeMap<&str, &Value> {
        let all = self.segments.values().flatten();
        all.filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect()
    }
}

/// What each Pod shall be after the next start, from what its host left behind.
pub fn expected(bench: &Bench) -> BTreeMap<String, Expected> {
    let disk = Disk::read(bench);
    assert!(disk.wrong.is_empty(), "{}", disk.wrong.join("\n"));
    disk.pods.iter().map(|row| (row.name.clone(), expected_of(&disk, row))).collect()
}

fn expected_of(disk: &Disk, row: &Row) -> Expected {
    if !row.live {
        return Expected::Stopped;
    }
    let mut segment = row.segment.clone();
    while let Some(name) = segment.take() {
        let lines = disk.segments.get(&name).unwrap_or_else(|| panic!("{row:?} has no segment"));
        if let Some(ask) = question(lines) {
            let answered = disk.answered.contains(ask);
            return if answered { Expected::Answered } else { Expected::Asks };
        }
        for entry in lines.iter().rev() {
            let domain = entry["domain"].as_str().unwrap_or_default();
            match entry["kind"].as_str().unwrap_or_default() {
                "invoke" | "assistant_item" | "tool_result" => return Expected::CutOff,
                "extension" if domain == "yoi.resumed" => return Expected::CutOff,
                "extension" if domain == "yoi.rolled_back" => return Expected::Idle,
                "run_completed" if entry["result"] == "paused" => return Expected::Paused,
                "run_errored"
                    if entry["interrupted"] == true && entry["message"] != "Cancelled" =>
                {
                    return Expected::CutOff;
                }
                "run_completed" | "run_errored" => return Expected::Idle,
                "segment_start" => {
                    let older = entry["compacted_from"]["segment_id"].as_str();
                    segment = older.map(str::to_owned);
                }
                _ => {}
            }
        }
    }
    Expected::Idle
}

/// The question that a log ends with; only the end of an interrupted run may follow it.
fn question(lines: &[Value]) -> Option<&str> {
    for entry in lines.iter().rev() {
        let domain = entry["domain"].as_str().unwrap_or_default();
        match entry["kind"].as_str().unwrap_or_default() {
            "extension" if domain == "yoi.asked" => return entry["payload"]["id"].as_str(),
            "extension" if domain == "yoi.answered" => return None,
            "extension" | "turn_end" => {}
            "run_errored" if entry["message"] != "Cancelled" => {}
            "run_completed" if entry["result"] == "paused" => {}
            _ => return None,
        }
    }
    None
}

/// Whether the Pods live on as they should: nobody runs, nobody is missing.
pub fn alive(hub: &Hub, expected: &BTreeMap<String, Expected>) -> Vec<String> {
    let pods = hub.pods();
    let mut wrong = Vec::new();
    for (name, expected) in expected {
        let Some(info) = pods.iter().find(|info| info["name"] == name.as_str()) else {
            wrong.push(format!("{name} is missing"));
            continue;
        };
        let why = info["why"].as_str().unwrap_or_default();
        let is = match (info["state"].as_str().unwrap_or_default(), why) {
            ("stopped", _) => Some(Expected::Stopped),
            ("idle", _) => Some(Expected::Idle),
            ("paused", why) if why.starts_with("cut off") => Some(Expected::CutOff),
            ("paused", why) if why.contains(" is answered; ") => Some(Expected::Answered),
            ("paused", why) if why.starts_with("paused") => Some(Expected::Paused),
            ("needs_you", _) => Some(Expected::Asks),
            _ => None,
        };
        if is.as_ref() != Some(expected) {
            wrong.push(format!("{name} should be {expected:?}: {info}"));
        }
    }
    wrong
}

/// Everything that contradicts what clients were told, what tools left and what the model was
/// asked.
pub fn contradictions(bench: &Bench) -> Vec<String> {
    let mut disk = Disk::read(bench);
    let told = bench.told.lock().expect("no test panics with it");
    let mut wrong = std::mem::take(&mut disk.wrong);
    let entries = disk.entries();
    wrong.extend(lost(&entries, &told));
    wrong.extend(messages(&disk, &entries, &told));
    wrong.extend(effects(&bench.effects(), &entries));
    bench.provider.asked().iter().for_each(|body| wrong.extend(conversation(body)));
    wrong
}

/// As [`contradictions`], when everything came to its end.
pub fn unfinished(bench: &Bench) -> Vec<String> {
    let disk = Disk::read(bench);
    let mut wrong = contradictions(bench);
    wrong.extend(disk.mail.iter().map(|row| format!("never delivered: {row:?}")));
    for path in bench.files(".jsonl") {
        let bytes = std::fs::read(&path).expect("a segment");
        if bytes.last() != Some(&b'\n') {
            wrong.push(format!("{} ends in a torn line", path.display()));
        }
    }
    let entries = disk.entries();
    let results = count(entries.values().filter_map(|entry| result_of(entry)));
    for call in entries.values().filter_map(|entry| call_of(entry)) {
        if results.get(call) != Some(&1) {
            wrong.push(format!("the call {call} has {:?} results", results.get(call)));
        }
    }
    wrong
}

fn lost(entries: &BTreeMap<&str, &Value>, told: &Told) -> Vec<String> {
    let lost = told.entries.iter().filter(|(id, sent)| {
        let whole = sent.to_string().len() < CUT_OVER;
        entries.get(id.as_str()).is_none_or(|there| whole && there != sent)
    });
    lost.map(|(_, sent)| format!("told and lost, or another now: {sent}")).collect()
}

/// The text of an entry that came from outside.
fn text_of(entry: &Value) -> Option<&str> {
    match entry["kind"].as_str()? {
        "user_input" => entry["segments"][0]["content"].as_str(),
        "system_item" => entry["item"]["message"].as_str(),
        _ => None,
    }
}

/// The id that a message or a piece of news holds.
fn id_of(text: &str) -> Option<&str> {
    let mut words = text.split(' ');
    words.next().filter(|first| first.starts_with('@') || *first == "news")?;
    words.next()
}

fn messages(disk: &Disk, entries: &BTreeMap<&str, &Value>, told: &Told) -> Vec<String> {
    let inputs: Vec<(&str, &Value)> =
        entries.values().filter_map(|entry| Some((id_of(text_of(entry)?)?, *entry))).collect();
    let delivered = count(inputs.iter().map(|(id, _)| *id));
    let mut wrong: Vec<String> = delivered
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(id, times)| format!("{id} was delivered {times} times"))
        .collect();
    let taken = count(entries.values().filter_map(|entry| entry["taken"].as_str()));
    for (row, times) in &taken {
        if *times > 1 || disk.mail.iter().any(|(_, id, _)| id == row) {
            wrong.push(format!("the row {row} is in the log {times} times, or waits as well"));
        }
    }
    for (id, accepted) in &told.accepted {
        let waits = disk.mail.iter().filter(|(pod, _, payload)| {
            let words = payload.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            *pod == accepted.pod && words.into_iter().any(|word| word == id)
        });
        let there = delivered.get(id.as_str()).copied().unwrap_or(0) + waits.count();
        let as_told = match (&accepted.entry, &accepted.row) {
            (Some(entry), _) => entries.contains_key(entry.as_str()),
            (None, Some(row)) => {
                taken.contains_key(row.as_str()) || disk.mail.iter().any(|(_, id, _)| id == row)
            }
            (None, None) => true,
        };
        if there != 1 || !as_told {
            wrong.push(format!("{id} was acknowledged and is there {there} times: {accepted:?}"));
        }
    }
    wrong
}

fn call_of(entry: &Value) -> Option<&str> {
    let item = &entry["item"];
    (entry["kind"] == "assistant_item" && item["kind"] == "tool_call")
        .then(|| item["call_id"].as_str())?
}

fn result_of(entry: &Value) -> Option<&str> {
    (entry["kind"] == "tool_result").then(|| entry["item"]["call_id"].as_str())?
}

/// A tool runs at most once, after its call was committed, and it ran when its result says so.
fn effects(effects: &str, entries: &BTreeMap<&str, &Value>) -> Vec<String> {
    let done = count(effects.lines());
    let calls: BTreeSet<&str> = entries.values().filter_map(|entry| call_of(entry)).collect();
    let mut wrong = Vec::new();
    for (call, times) in &done {
        if *times > 1 {
            wrong.push(format!("the tool of {call} ran {times} times"));
        }
        if !calls.contains(call) {
            wrong.push(format!("the tool of {call} ran and the log does not know it"));
        }
    }
    for entry in entries.values().filter(|entry| entry["item"]["is_error"] != true) {
        if let Some(call) = result_of(entry)
            && !done.contains_key(call)
        {
            wrong.push(format!("{call} has a result and no effect: {entry}"));
        }
    }
    wrong
}

/// What is wrong with a request: something said twice, a call without its one result.
fn conversation(body: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, times) in count(said(body).into_iter().filter_map(id_of)) {
        if times > 1 {
            wrong.push(format!("{id} stands {times} times in a request"));
        }
    }
    let news = said(body).into_iter().filter_map(|text| id_of(text.lines().nth(1)?));
    for (id, times) in count(news) {
        if times > 1 {
            wrong.push(format!("{id} stands {times} times in a request"));
        }
    }
    let of = |kind: &'static str, key: &'static str| {
        let all = blocks(body).into_iter().filter(move |(_, block)| block["type"] == kind);
        count(all.filter_map(move |(_, block)| block[key].as_str()))
    };
    let (calls, results) = (of("tool_use", "id"), of("tool_result", "tool_use_id"));
    if calls != results || calls.values().any(|times| *times > 1) {
        wrong.push(format!("calls and results of a request differ: {calls:?} {results:?}"));
    }
    wrong
}

fn count<'a>(all: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut times = BTreeMap::new();
    for one in all {
        *times.entry(one).or_insert(0) += 1;
    }
    times
}

/// Fails with everything that is wrong, one line each.
pub fn nothing_wrong(when: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
}
