//! Every recorded line of the predecessor is understood and written back as the same JSON.

use serde_json::Value;
use yoi::protocol::{Entry, Event, Fact, Incoming, Method, Outgoing, Segment};

const SOCKET: &str = include_str!("../vectors/pod-socket.jsonl");
const LOG: &str = include_str!("../vectors/session-log.jsonl");

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The lines that one side said, with the scene they belong to.
fn said_by(side: &str) -> Vec<(String, String)> {
    let mut scene = String::new();
    let mut lines = Vec::new();
    for record in SOCKET.lines().map(json) {
        if let Some(name) = record["scene"].as_str() {
            scene = name.to_owned();
        } else if let Some(line) = record[side].as_str() {
            lines.push((scene.clone(), line.to_owned()));
        }
    }
    lines
}

#[test]
fn every_recorded_order_is_understood() {
    let lines = said_by("client");
    assert!(lines.len() > 20);
    for (scene, line) in lines {
        if scene == "malformed lines" {
            assert!(Incoming::decode(line.as_bytes()).is_err(), "{line}");
            continue;
        }
        let order = Incoming::decode(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(order.method.is_classic(), "{line}");
        let again: Value = serde_json::from_slice(&order.encode().expect("a line")).expect("JSON");
        assert_eq!(again, json(&line));
    }
}

#[test]
fn every_recorded_event_is_understood() {
    let lines = said_by("pod");
    assert!(lines.len() > 200);
    for (_, line) in lines {
        let outgoing = Outgoing::decode(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(outgoing.event.is_classic(), "{line}");
        if let Event::Snapshot { entries, .. } | Event::RewindApplied { entries, .. } =
            &outgoing.event
        {
            assert!(entries.iter().all(|e| !matches!(e.fact, Fact::Unknown(_))), "{line}");
        }
        let again: Value = serde_json::from_slice(&outgoing.encode()).expect("JSON");
        assert_eq!(again, json(&line));
    }
}

#[test]
fn every_recorded_entry_is_understood() {
    assert!(LOG.lines().count() > 70);
    for line in LOG.lines() {
        let entry: Entry = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(!matches!(entry.fact, Fact::Unknown(_)), "{line}");
        assert_eq!(serde_json::to_value(&entry).expect("JSON"), json(line));
    }
}

#[test]
fn a_segment_from_the_future_is_kept_whole() {
    let line = r#"{"method":"run","params":{"input":[{"kind":"from_the_future","x":1}]}}"#;
    let order = Incoming::decode(line.as_bytes()).expect("an order");
    let Method::Send { input, .. } = &order.method else { panic!("a message") };
    assert!(matches!(input.as_slice(), [Segment::Unknown(_)]));
    assert_eq!(
        serde_json::from_slice::<Value>(&order.encode().expect("a line")).expect("JSON"),
        json(line)
    );
}
