//! Long logs, made as the program would have written them.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use uuid::{ContextV7, Timestamp, Uuid};
use yoi::protocol::entry::Trigger;
use yoi::protocol::{Entry, EntryId, Fact, Item, Role, Segment};

/// The last words of a long log; they are on screen when its tail is.
pub const LAST: &str = "these are the last words";

/// What stands in one run of the log, over and over.
const RUN: u64 = 10;

/// Puts entries into the log of a Pod, between its beginning and what was said in it. The host
/// must not run. `words` is how long each answer is.
pub fn lengthen(segment: &Path, entries: u64, words: usize) {
    let text = fs::read_to_string(segment).expect("the log");
    let (first, rest) = text.split_once('\n').expect("its first line");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(segment).expect("the log"));
    writeln!(file, "{first}").expect("room on the disk");
    let answer = "lorem ipsum dolor sit amet ".repeat(words.div_ceil(5));
    let begin = yoi::protocol::now_ms() - 2 * entries;
    let context = ContextV7::new();
    for n in 0..entries {
        let ts = begin + n;
        let nanos = u32::try_from(ts % 1000 * 1_000_000).expect("less than a second");
        let id = Uuid::new_v7(Timestamp::from_unix(&context, ts / 1000, nanos));
        let fact = fact(n, &answer, n + RUN >= entries);
        let entry = Entry { id: Some(EntryId(id)), ts, run: None, fact };
        serde_json::to_writer(&mut file, &entry).expect("room on the disk");
        file.write_all(b"\n").expect("room on the disk");
    }
    file.write_all(rest.as_bytes()).expect("room on the disk");
    let file = file.into_inner().expect("room on the disk");
    file.sync_all().expect("room on the disk");
    forget(&file);
}

/// Makes the kernel forget what it holds of a file.
pub fn forget(file: &File) {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).expect("advice is taken");
}

fn fact(n: u64, answer: &str, last: bool) -> Fact {
    let run = n / RUN;
    match n % RUN {
        0 => Fact::Invoke { trigger: Trigger::UserSend },
        1 => Fact::UserInput {
            segments: vec![Segment::Text { content: format!("Question {run}: what does it say?") }],
            taken: None,
            from: None,
        },
        2 => said(Item::Reasoning {
            text: "I should look into the file first.".into(),
            summary: Vec::new(),
            encrypted_content: None,
            signature: None,
        }),
        3 => said(Item::message(Role::Assistant, "I look into the **file** first.")),
        4 => said(Item::ToolCall {
            call_id: format!("call-{run}"),
            name: "Read".into(),
            arguments: format!(r#"{{"file_path":"/w/src/file{run}.rs"}}"#),
        }),
        5 => Fact::ToolResult {
            item: Item::ToolResult {
                call_id: format!("call-{run}"),
                summary: "12 lines".into(),
                content: Some("     1\tfn main() {}\n".repeat(12)),
                is_error: false,
                images: Vec::new(),
            },
            files: Vec::new(),
            sent: None,
        },
        6 => Fact::TurnEnd { turn_count: run * 2 + 1 },
        7 => said(Item::message(Role::Assistant, words(run, answer, last))),
        8 => Fact::LlmUsage {
            history_len: n,
            input_total_tokens: 1000,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 100,
            cost: None,
        },
        _ => Fact::RunCompleted { interrupted: false, result: "finished".into(), work: None },
    }
}

fn words(run: u64, answer: &str, last: bool) -> String {
    let end = if last { LAST } else { "that is all" };
    format!("## Answer {run}\n\n{answer}\n\n- one `thing`\n- another\n\nAnd {end}.")
}

fn said(item: Item) -> Fact {
    Fact::AssistantItem { item, origin: None, native: None, partial: false }
}
