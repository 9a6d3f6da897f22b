//! Sessions made for tests.

use crate::protocol::entry::{Entry, Fact, GO_ON, SegmentOrigin, SystemItem, Trigger, domain};
use crate::protocol::item::{Item, RequestConfig, Role};
use crate::protocol::method::Segment;
use crate::protocol::name::{SegmentId, SessionId};
use crate::session::Files;
use crate::session::journal::encode;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;

/// A session in a directory of its own.
pub struct Bench {
    pub temp: tempfile::TempDir,
    pub files: Files,
    pub session: SessionId,
    pub segment: SegmentId,
}

impl Bench {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let session = SessionId::new();
        let files = Files::new(temp.path(), session);
        std::fs::create_dir_all(files.dir()).unwrap();
        Self { temp, files, session, segment: SegmentId::new() }
    }

    /// The same files, as a program that knows of no writer of this one has them.
    pub fn files_of_another_program(&self) -> Files {
        Files::new(self.temp.path(), self.session)
    }

    /// Writes the current segment as it is, without the journal.
    pub fn write(&self, entries: &[Entry]) -> Vec<u8> {
        let lines = lines(entries);
        std::fs::write(self.path(), &lines).unwrap();
        lines
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.files.segment(self.segment)
    }

    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    pub fn start(&self) -> Entry {
        start(self.session, None)
    }
}

pub fn start(session_id: SessionId, compacted_from: Option<SegmentId>) -> Entry {
    let origin = |segment_id| SegmentOrigin { segment_id, at_turn_index: 1 };
    Entry::new(Fact::SegmentStart {
        session_id,
        system_prompt: Some("be good".into()),
        config: RequestConfig::default(),
        history: Vec::new(),
        forked_from: None,
        compacted_from: compacted_from.map(origin),
    })
}

pub fn lines(entries: &[Entry]) -> Vec<u8> {
    encode(entries, Path::new("lines")).unwrap()
}

pub fn invoke() -> Entry {
    Entry::new(Fact::Invoke { trigger: Trigger::UserSend })
}

pub fn user(text: &str) -> Entry {
    let segments = vec![Segment::Text { content: text.into() }];
    Entry::new(Fact::UserInput { segments, taken: None, from: None })
}

pub fn said(text: &str) -> Entry {
    assistant(Item::message(Role::Assistant, text), false)
}

pub fn assistant(item: Item, partial: bool) -> Entry {
    Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial })
}

pub fn call(call_id: &str, name: &str) -> Entry {
    let (call_id, name) = (call_id.into(), name.into());
    assistant(Item::ToolCall { call_id, name, arguments: "{}".into() }, false)
}

pub fn result(call_id: &str, content: &str) -> Entry {
    let item = Item::ToolResult {
        call_id: call_id.into(),
        summary: "done".into(),
        content: Some(content.into()),
        is_error: false,
        images: Vec::new(),
    };
    Entry::new(Fact::ToolResult { item, files: Vec::new(), sent: None })
}

pub fn notified(text: &str) -> Entry {
    let item = SystemItem::Notification { message: text.into(), body: text.into(), from: None };
    Entry::new(Fact::SystemItem { item, taken: None })
}

pub fn completed() -> Entry {
    Entry::new(Fact::RunCompleted { interrupted: false, result: "finished".into(), work: None })
}

pub fn rolled_back(from: &Entry) -> Entry {
    Entry::extension(domain::ROLLED_BACK, json!({ "from": from.id }))
}

/// One thing that happens in a session.
#[derive(Clone, Debug)]
pub enum Act {
    Turn {
        said: usize,
    },
    Tool {
        output: usize,
    },
    Notify,
    /// `input`: bytes of the message that goes back into the composer.
    RolledBack {
        input: usize,
    },
    /// The outputs so far leave the context, in a run that is taken back or not.
    Pruned {
        stands: bool,
    },
    /// A reply breaks so often and is continued.
    Broken {
        times: usize,
    },
    Unknown,
}

/// Sessions of some turns, with long and short texts.
pub fn acts() -> impl Strategy<Value = Vec<Act>> {
    let length = prop_oneof![8 => 0usize..300, 1 => 60_000usize..140_000];
    let act = prop_oneof![
        length.clone().prop_map(|said| Act::Turn { said }),
        length.clone().prop_map(|output| Act::Tool { output }),
        Just(Act::Notify),
        length.prop_map(|input| Act::RolledBack { input }),
        any::<bool>().prop_map(|stands| Act::Pruned { stands }),
        (1usize..4).prop_map(|times| Act::Broken { times }),
        Just(Act::Unknown),
    ];
    prop::collection::vec(act, 0..14)
}

/// What these acts put into a log.
pub fn play(acts: &[Act]) -> Vec<Entry> {
    let mut all = Vec::new();
    for (index, act) in acts.iter().enumerate() {
        let next = entries(index, act, &all);
        all.extend(next);
    }
    all
}

/// An entry by which these results leave the context.
pub fn pruned<'e>(results: impl IntoIterator<Item = &'e Entry>) -> Entry {
    let result = |entry: &Entry| json!({"id": entry.id, "file": "/outputs/a.txt"});
    let results: Vec<_> = results.into_iter().map(result).collect();
    Entry::extension(domain::PRUNED, json!({"results": results, "why": "it is full"}))
}

/// What a request used over so many items.
pub fn used(history_len: u64, input_total_tokens: u64) -> Entry {
    Entry::new(Fact::LlmUsage {
        history_len,
        input_total_tokens,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 1,
        cost: None,
    })
}

fn entries(index: usize, act: &Act, before: &[Entry]) -> Vec<Entry> {
    let turns = index as u64 + 1;
    let turn_end = Entry::new(Fact::TurnEnd { turn_count: turns });
    let id = format!("c{index}");
    match act {
        Act::Turn { said: length } => {
            let text = "é".repeat(length / 2);
            vec![invoke(), user(&format!("input {index}")), said(&text), turn_end, completed()]
        }
        Act::Tool { output } => {
            let output = "o".repeat(*output);
            let run = vec![invoke(), user("use it"), call(&id, "Read"), result(&id, &output)];
            run.into_iter().chain([turn_end, completed()]).collect()
        }
        Act::Notify => vec![notified(&format!("news {index}"))],
        Act::RolledBack { input } => {
            let run = vec![invoke(), user("nobody answers")];
            let input = [Segment::Text { content: "i".repeat(*input) }];
            let back = json!({ "from": run[0].id, "input": input });
            let back = Entry::extension(domain::ROLLED_BACK, back);
            run.into_iter().chain([back]).collect()
        }
        Act::Pruned { stands } => {
            let is_result = |entry: &&Entry| matches!(entry.fact, Fact::ToolResult { .. });
            let results = before.iter().filter(is_result);
            let run = vec![invoke(), user("more"), used(2, 50_000), pruned(results)];
            let end = if *stands { completed() } else { rolled_back(&run[0]) };
            run.into_iter().chain([end]).collect()
        }
        Act::Broken { times } => {
            let part = |n| {
                let item = SystemItem::Interrupt { body: GO_ON.into() };
                let text = Item::message(Role::Assistant, format!("part {n}, "));
                [assistant(text, true), Entry::new(Fact::SystemItem { item, taken: None })]
            };
            let parts = (0..*times).flat_map(part);
            let end = [said("the end"), turn_end, completed()];
            [invoke(), user("write")].into_iter().chain(parts).chain(end).collect()
        }
        Act::Unknown => {
            let line = json!({"id": crate::protocol::EntryId::new(), "ts": 5,
                "kind": "from_the_future", "n": index});
            vec![serde_json::from_value(line).unwrap()]
        }
    }
}

/// The entries that a reader is told of: what each rollback goes back over is left out.
pub fn without_rolled_back(entries: &[Entry]) -> Vec<Entry> {
    let mut shown: Vec<Entry> = Vec::new();
    for entry in entries {
        let payload = serde_json::to_value(&entry.fact).unwrap();
        if payload["domain"] == domain::ROLLED_BACK {
            let from = payload["payload"]["from"].as_str().unwrap().parse().unwrap();
            let at = shown.iter().position(|entry| entry.id == Some(from));
            shown.truncate(at.unwrap_or(shown.len()));
        }
        shown.push(entry.clone());
    }
    shown
}
