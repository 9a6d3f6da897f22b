//! What must be true of the files and of the living after a kill, found out without the program's
//! own code.

use crate::bench::Bench;
use crate::disk::{Disk, PodRow};
use crate::family;
use crate::hub::Hub;
use crate::ledger::{Acknowledged, Entry};
use crate::provider::{blocks, said};
use crate::traces;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Its run stands at this question.
    WaitsForApproval(String),
    /// The question was answered, and the run has not gone on yet.
    Answered,
}

/// What each Pod shall be after the next start, from what its host left behind.
pub fn expected(bench: &Bench) -> BTreeMap<String, Expected> {
    let disk = Disk::read(bench);
    assert!(disk.wrong.is_empty(), "{}", disk.wrong.join("\n"));
    let finished = disk.pods.iter().filter(|row| !disk.is_unfinished(row));
    finished.map(|row| (row.name.clone(), expected_of(&disk, row))).collect()
}

fn expected_of(disk: &Disk, row: &PodRow) -> Expected {
    if !row.live {
        return Expected::Stopped;
    }
    if let Some(approval) = open_question(disk, row) {
        let stored = disk.questions.iter().find(|question| question.id == approval);
        let answered = stored.is_some_and(|question| question.verdict.is_some());
        return if answered { Expected::Answered } else { Expected::WaitsForApproval(approval) };
    }
    let mut segment = row.segment.clone();
    while let Some(name) = segment.take() {
        let lines = disk.lines(row, &name).unwrap_or_else(|| panic!("{row:?} has no segment"));
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
                    // The file of the segment in which a fork parts ends at that place.
                    let older = older.or(entry["forked_from"]["segment_id"].as_str());
                    segment = older.map(str::to_owned);
                }
                _ => {}
            }
        }
    }
    Expected::Idle
}

/// The question at which the log of a Pod ends. Behind it nothing may stand but that its run was
/// interrupted.
fn open_question(disk: &Disk, row: &PodRow) -> Option<String> {
    for entry in disk.lines(row, row.segment.as_ref()?)?.iter().rev() {
        match (entry["kind"].as_str()?, entry["domain"].as_str().unwrap_or_default()) {
            // What was copied with the log of another Pod is that one's to ask.
            ("extension", "yoi.asked") if entry["payload"]["pod"] != row.name => return None,
            ("extension", "yoi.asked") => {
                return entry["payload"]["id"].as_str().map(str::to_owned);
            }
            ("extension", "yoi.answered" | "yoi.rolled_back") => return None,
            ("run_errored", _) if entry["interrupted"] == true => {
                if entry["message"] == "Cancelled" {
                    return None;
                }
            }
            ("run_completed", _) if entry["interrupted"] == true => {}
            ("extension" | "turn_end" | "llm_usage", _) => {}
            _ => return None,
        }
    }
    None
}

/// Whether the Pods live on as they should: nobody runs, nobody is missing or there without reason.
pub fn alive(hub: &Hub, expected: &BTreeMap<String, Expected>) -> Vec<String> {
    let pods = hub.pods();
    let stranger =
        |info: &&Value| !expected.contains_key(info["name"].as_str().unwrap_or_default());
    let strangers = pods.iter().filter(stranger);
    let mut wrong: Vec<String> =
        strangers.map(|info| format!("nobody should be {}", info["name"])).collect();
    for (name, expected) in expected {
        let Some(info) = pods.iter().find(|info| info["name"] == name.as_str()) else {
            wrong.push(format!("{name} is missing"));
            continue;
        };
        let why = info["why"].as_str().unwrap_or_default();
        let is = match (info["state"].as_str().unwrap_or_default(), why) {
            ("stopped", _) => Some(Expected::Stopped),
            ("idle", _) => Some(Expected::Idle),
            ("paused", why) if why.starts_with("interrupted ") => Some(Expected::CutOff),
            ("paused", why) if why.starts_with("paused") => Some(Expected::Paused),
            ("paused", why) if why.ends_with(" is decided") => Some(Expected::Answered),
            ("needs_you", why) if why.starts_with("waits for you") => {
                hub.question(name).and_then(|approval| {
                    Some(Expected::WaitsForApproval(approval["id"].as_str()?.into()))
                })
            }
            _ => None,
        };
        if is.as_ref() != Some(expected) {
            wrong.push(format!("{name} should be {expected:?}: {info}"));
        }
    }
    wrong
}

/// Whether a host that has just started tells of the family what is on disk.
pub fn differences(bench: &Bench, hub: &Hub) -> Vec<String> {
    family::differences(&Disk::read(bench), hub)
}

/// Everything that contradicts what clients were told, what tools left and what the model was
/// asked.
pub fn contradictions(bench: &Bench) -> Vec<String> {
    let mut disk = Disk::read(bench);
    let acknowledged = bench.acknowledged.lock().expect("no test panics with it");
    let mut wrong = std::mem::take(&mut disk.wrong);
    let entries = disk.entries();
    wrong.extend(lost(&disk, &entries, &acknowledged));
    wrong.extend(messages(&disk, &entries, &acknowledged));
    wrong.extend(effects(&bench.effects(), &entries));
    wrong.extend(family::contradictions(&disk, &acknowledged));
    wrong.extend(traces::contradictions(bench, &disk, &acknowledged));
    bench.provider.asked().iter().for_each(|body| wrong.extend(conversation(body)));
    wrong
}

/// As [`contradictions`], when everything came to its end.
pub fn unfinished(bench: &Bench) -> Vec<String> {
    let disk = Disk::read(bench);
    let mut wrong = contradictions(bench);
    wrong.extend(disk.waiting().map(|row| format!("never delivered: {row:?}")));
    wrong.extend(family::unfinished(&disk));
    for path in bench.files(".jsonl") {
        let bytes = std::fs::read(&path).expect("a segment");
        if bytes.last() != Some(&b'\n') {
            wrong.push(format!("{} ends in a torn line", path.display()));
        }
    }
    wrong.extend(disk.pods.iter().flat_map(|pod| open_calls(&disk, pod)));
    wrong
}

/// Calls of a Pod that have not one result.
fn open_calls(disk: &Disk, pod: &PodRow) -> Vec<String> {
    let entries = disk.entries_of(pod);
    let results = count(entries.values().filter_map(|entry| result_of(entry)));
    let calls = entries.values().filter_map(|entry| call_of(entry));
    let open = calls.filter(|call| results.get(call) != Some(&1));
    open.map(|call| format!("{} has {:?} results of {call}", pod.name, results.get(call))).collect()
}

fn lost(disk: &Disk, entries: &BTreeMap<&str, &Value>, acknowledged: &Acknowledged) -> Vec<String> {
    // A child that never had its task is nothing, and with it the beginning of its log.
    let is_gone = |sent: &Value| {
        sent["kind"] == "segment_start"
            && sent["session_id"].as_str().is_some_and(|id| !disk.sessions.contains(id))
    };
    let begun: BTreeSet<u64> = acknowledged
        .entries
        .values()
        .filter(|entry| is_gone(&entry.sent))
        .filter_map(|entry| entry.sent["ts"].as_u64())
        .collect();
    let begins = |sent: &Value| {
        let head = sent["kind"] == "segment_start" || sent["domain"] == "yoi.pod";
        head && sent["ts"].as_u64().is_some_and(|ts| begun.contains(&ts))
    };
    let lost = acknowledged.entries.iter().filter(|(id, Entry { sent, .. })| {
        let differs = |there: &Value| there != sent && there.to_string().len() < CUT_OVER;
        entries.get(id.as_str()).is_none_or(|there| differs(there)) && !begins(sent)
    });
    lost.map(|(_, entry)| format!("told and lost, or another now: {}", entry.sent)).collect()
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

fn messages(
    disk: &Disk,
    entries: &BTreeMap<&str, &Value>,
    acknowledged: &Acknowledged,
) -> Vec<String> {
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
        if *times > 1 || disk.waiting().any(|letter| letter.id == *row) {
            wrong.push(format!("the row {row} is in the log {times} times, or waits as well"));
        }
    }
    for (id, accepted) in &acknowledged.accepted {
        let waits = disk.waiting().filter(|letter| {
            let words = letter.payload.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            letter.pod == accepted.pod && words.into_iter().any(|word| word == id)
        });
        let there = delivered.get(id.as_str()).copied().unwrap_or(0) + waits.count();
        let as_acknowledged = match (&accepted.entry, &accepted.row) {
            (Some(entry), _) => entries.contains_key(entry.as_str()),
            (None, Some(row)) => {
                taken.contains_key(row.as_str()) || disk.waiting().any(|letter| letter.id == *row)
            }
            (None, None) => true,
        };
        if there != 1 || !as_acknowledged {
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

/// The id of a call in the log, and what its tool leaves: the id that the provider gave it, which its arguments hold.
fn effect_of(entry: &Value) -> Option<(&str, &str)> {
    let call = call_of(entry)?;
    let arguments = entry["item"]["arguments"].as_str()?;
    let effect = &arguments[arguments.find("toolu_")?..];
    let end = effect.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    Some((call, &effect[..end.unwrap_or(effect.len())]))
}

/// A tool runs at most once, after its call was committed, and it ran when its result says so.
fn effects(effects: &str, entries: &BTreeMap<&str, &Value>) -> Vec<String> {
    let done = count(effects.lines());
    let calls: BTreeMap<&str, &str> =
        entries.values().filter_map(|entry| effect_of(entry)).collect();
    let known: BTreeSet<&str> = calls.values().copied().collect();
    let mut wrong = Vec::new();
    for (call, times) in &done {
        if *times > 1 {
            wrong.push(format!("the tool of {call} ran {times} times"));
        }
        if !known.contains(call) {
            wrong.push(format!("the tool of {call} ran and the log does not know it"));
        }
    }
    for entry in entries.values().filter(|entry| !failed(&entry["item"])) {
        if let Some(call) = result_of(entry)
            && !calls.get(call).is_some_and(|effect| done.contains_key(effect))
        {
            wrong.push(format!("{call} has a result and no effect: {entry}"));
        }
    }
    wrong
}

/// Whether a result says that its tool did not do what it was told: a fork may not write where the
/// Pod does that it was forked from.
fn failed(item: &Value) -> bool {
    let summary = item["summary"].as_str().unwrap_or_default();
    item["is_error"] == true || summary.starts_with("Exit ") && !summary.starts_with("Exit 0 ")
}

/// What is wrong with a request: something said twice, a call without its one result.
fn conversation(body: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, times) in count(said(body).into_iter().filter_map(id_of)) {
        if times > 1 {
            wrong.push(format!("{id} stands {times} times in a request"));
        }
    }
    let events = said(body).into_iter().filter_map(|text| id_of(text.lines().nth(1)?));
    for (id, times) in count(events) {
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
