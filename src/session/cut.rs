//! Shortens entries that are too long to send to screens. Their kind, ids and summaries stay.

use crate::protocol::entry::{Entry, Fact};
use crate::protocol::item::{Content, Item};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// A longer line, in bytes, is sent cut.
pub const CUT_OVER: u64 = 64 * 1024;
/// What a text may keep, in bytes, tried in this order until the whole is short enough.
const KEEP: [usize; 4] = [8 * 1024, 2 * 1024, 256, 64];
/// Elements that a list keeps when shortening its texts is not enough.
const KEEP_ELEMENTS: usize = 16;
/// Room for the fields around a fact, in bytes.
const ENVELOPE: u64 = 128;
/// Fields that no screen shows.
const OPAQUE: [&str; 3] = ["native", "encrypted_content", "signature"];

/// The shortened form of an entry whose line is too long to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// With its long texts shortened.
    pub entry: Entry,
    /// The size of the line before it was shortened, in bytes.
    pub cut_bytes: u64,
}

/// The shortened form of an entry whose line is over 64 KiB; `None` for every other.
pub fn cut(entry: &Entry) -> Option<Cut> {
    let cut_bytes = json_size(entry);
    (cut_bytes > CUT_OVER).then(|| {
        let entry = Entry { fact: clipped(&entry.fact), ..*entry };
        Cut { entry: shorten(entry), cut_bytes }
    })
}

/// The line of an event, with its long texts shortened if it is over 64 KiB.
pub fn shorten_line(line: Vec<u8>) -> Vec<u8> {
    if line.len() as u64 <= CUT_OVER {
        return line;
    }
    let Ok(event) = serde_json::from_slice(&line) else { return line };
    let mut line = shorten_value(event).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Copies a fact that is over the limit without copying megabytes of text: of the texts that may be that long, only a
/// prefix.
fn clipped(fact: &Fact) -> Fact {
    match fact {
        Fact::AssistantItem { item, origin, partial, .. } => {
            let (item, origin) = (clipped_item(item), origin.clone());
            Fact::AssistantItem { item, origin, native: None, partial: *partial }
        }
        Fact::ToolResult { item, files, sent } => {
            Fact::ToolResult { item: clipped_item(item), files: files.clone(), sent: sent.clone() }
        }
        fact => fact.clone(),
    }
}

fn clipped_item(item: &Item) -> Item {
    match item {
        Item::Message { role, content } if content.len() == 1 => {
            let content = content.iter().map(|content| match content {
                Content::Text { text } => Content::Text { text: prefix_over_limit(text) },
                content => content.clone(),
            });
            Item::Message { role: *role, content: content.collect() }
        }
        Item::Reasoning { text, summary, .. } => Item::Reasoning {
            text: prefix_over_limit(text),
            summary: summary.clone(),
            encrypted_content: None,
            signature: None,
        },
        Item::ToolResult { call_id, summary, content, is_error, images } => Item::ToolResult {
            call_id: call_id.clone(),
            summary: summary.clone(),
            content: content.as_deref().map(prefix_over_limit),
            is_error: *is_error,
            images: images.clone(),
        },
        item => item.clone(),
    }
}

/// A prefix that is just longer than the limit, so that the text is still found to be too long.
fn prefix_over_limit(text: &str) -> String {
    text[..text.floor_char_boundary(CUT_OVER as usize + 4)].to_owned()
}

/// Shortens an entry until its line is at most 64 KiB. Kind, ids and summaries stay.
pub fn shorten(entry: Entry) -> Entry {
    let Entry { id, ts, run, fact } = entry;
    let fact = shorten_value(serde_json::to_value(fact).unwrap_or(Value::Null));
    let fact = serde_json::from_value(fact.clone()).unwrap_or(Fact::Unknown(fact));
    Entry { id, ts, run, fact }
}

/// Shortens a fact, or an event with a fact in it.
fn shorten_value(mut fact: Value) -> Value {
    if fact["kind"] == "segment_start"
        && let Some(history) = fact["history"].as_array_mut()
    {
        // The first item is the summary of a compaction; the others stand in the segment before.
        history.truncate(1);
    }
    drop_opaque(&mut fact);
    for keep in KEEP {
        if json_size(&fact) <= CUT_OVER - ENVELOPE {
            break;
        }
        shorten_texts(&mut fact, keep);
    }
    if json_size(&fact) > CUT_OVER - ENVELOPE {
        shorten_lists(&mut fact);
    }
    fact
}

fn drop_opaque(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            OPAQUE.iter().for_each(|name| drop(fields.remove(*name)));
            fields.values_mut().for_each(drop_opaque);
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_opaque),
        _ => {}
    }
}

fn shorten_texts(value: &mut Value, keep: usize) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(text) if name == "arguments" => shorten_json(text, keep),
                    field => shorten_texts(field, keep),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|e| shorten_texts(e, keep)),
        Value::String(text) => shorten_text(text, keep),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Shortens the texts inside the arguments of a call, so that these stay JSON. Arguments that are still too long are cut as
/// plain text.
fn shorten_json(text: &mut String, keep: usize) {
    let Ok(mut arguments) = serde_json::from_str::<Value>(text) else {
        return shorten_text(text, keep);
    };
    shorten_texts(&mut arguments, keep);
    *text = arguments.to_string();
    if text.len() as u64 > CUT_OVER / 2 {
        shorten_text(text, keep);
    }
}

fn shorten_text(text: &mut String, keep: usize) {
    if text.len() > keep {
        text.truncate(text.floor_char_boundary(keep));
        text.push('…');
    }
}

fn shorten_lists(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(shorten_lists),
        Value::Array(elements) => {
            elements.truncate(KEEP_ELEMENTS);
            elements.iter_mut().for_each(shorten_lists);
        }
        _ => {}
    }
}

/// The size of a value as JSON, in bytes. It is counted without building the text.
pub fn json_size(value: &impl Serialize) -> u64 {
    let mut line = Counter(0);
    // Counting does not fail, and neither does encoding what came as JSON.
    let _ = serde_json::to_writer(&mut line, value);
    line.0
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::item::Role;
    use serde_json::json;

    fn length(entry: &Entry) -> u64 {
        serde_json::to_string(entry).unwrap().len() as u64
    }

    fn result(content: String) -> Entry {
        Entry::new(Fact::ToolResult {
            item: Item::ToolResult {
                call_id: "c1".into(),
                summary: "Read 9 lines".into(),
                content: Some(content),
                is_error: false,
                images: Vec::new(),
            },
            files: Vec::new(),
            sent: None,
        })
    }

    #[test]
    fn an_entry_up_to_64_kib_is_left_whole() {
        assert_eq!(cut(&result("x".repeat(60_000))), None);
    }

    #[test]
    fn a_long_result_keeps_its_id_call_and_summary() {
        let long = result("日".repeat(1_000_000));
        let short = cut(&long).unwrap().entry;
        assert!(length(&short) <= CUT_OVER);
        assert_eq!((short.id, short.ts), (long.id, long.ts));
        let Fact::ToolResult { item: Item::ToolResult { call_id, summary, content, .. }, .. } =
            short.fact
        else {
            panic!("another kind: {short:?}");
        };
        assert_eq!((call_id.as_str(), summary.as_str()), ("c1", "Read 9 lines"));
        assert!(content.unwrap().ends_with("日…"));
    }

    #[test]
    fn the_arguments_of_a_long_call_stay_json() {
        let arguments = json!({"file_path": "/w/a.txt", "content": "y".repeat(200_000)});
        let call = Item::ToolCall {
            call_id: "c".into(),
            name: "Write".into(),
            arguments: arguments.to_string(),
        };
        let long = Entry::new(Fact::AssistantItem {
            item: call,
            origin: None,
            native: Some(json!({"input": "z".repeat(200_000)})),
            partial: false,
        });
        let short = cut(&long).unwrap().entry;
        assert!(length(&short) <= CUT_OVER);
        let Fact::AssistantItem { item: Item::ToolCall { arguments, .. }, .. } = short.fact else {
            panic!("another kind");
        };
        let read: Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(read["file_path"], "/w/a.txt");
    }

    #[test]
    fn every_kind_of_long_entry_fits_the_limit() {
        let segment_start: Entry = serde_json::from_value(json!({
            "kind": "segment_start", "ts": 1, "session_id": crate::protocol::SessionId::new(),
            "system_prompt": "p".repeat(100_000),
            "config": {"max_tokens": null, "temperature": null, "top_p": null, "top_k": null,
                       "stop_sequences": [], "reasoning": null},
            "history": vec![json!({"kind": "message", "role": "user",
                "content": [{"kind": "text", "text": "short"}]}); 5000],
        }))
        .unwrap();
        let many = Entry::extension("other", json!(vec!["z".repeat(30); 9000]));
        let numbers = Entry::extension("other", json!({"n": vec![vec![1; 100]; 9000]}));
        let text = Entry::new(Fact::AssistantItem {
            item: Item::message(Role::Assistant, "\u{1}".repeat(100_000)),
            origin: None,
            native: None,
            partial: false,
        });
        for long in [segment_start, many, numbers, text] {
            let short = cut(&long).unwrap().entry;
            assert!(length(&short) <= CUT_OVER, "{} bytes left", length(&short));
            assert!(!matches!(short.fact, Fact::Unknown(_)));
        }
    }
}
