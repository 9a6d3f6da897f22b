//! The words of a history, found wherever it is shown or stored: in entries, in the text of
//! `yoi log` and on the screen.

use yoi::protocol::entry::COMPACTED;
use yoi::protocol::{Entry, Fact, Item, flatten};

/// The words of an entry that a person reads.
pub fn of_entry(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::UserInput { segments, .. } => Some(flatten(segments)),
        Fact::AssistantItem { item, .. } | Fact::ToolResult { item, .. } => of_item(item),
        Fact::SegmentStart { compacted_from: Some(_), .. } => Some("compacted".into()),
        _ => None,
    }
}

pub fn of_item(item: &Item) -> Option<String> {
    match item {
        Item::ToolCall { .. } => Some("call".into()),
        Item::ToolResult { is_error: true, .. } => Some("failed".into()),
        Item::ToolResult { .. } => Some("result".into()),
        item => of_text(&item.text()?),
    }
}

/// The words of a text, but for what the runtime adds.
pub fn of_text(text: &str) -> Option<String> {
    let text = match text.strip_prefix(COMPACTED) {
        // What the runtime knows follows the words of the model.
        Some(summary) => summary.split("\n\n# ").next().unwrap_or_default(),
        None => text,
    };
    let text = text.trim();
    let is_of_the_runtime = ["[The ", "# "].iter().any(|start| text.starts_with(start));
    (!text.is_empty() && !is_of_the_runtime).then(|| text.to_owned())
}

pub fn is_message(words: &str) -> bool {
    ["say ", "tool ", "half ", "stall "].iter().any(|kind| words.starts_with(kind))
}

/// The words of what `yoi log` prints: a line for each speaker, and its text indented.
pub fn of_log(text: &str) -> Vec<String> {
    let (mut words, mut speaker) = (Vec::new(), "");
    for line in text.lines() {
        let Some(said) = line.strip_prefix("  ") else {
            speaker = line;
            match speaker {
                "error" | "system" => {}
                _ if speaker.starts_with("tool error") => words.push("failed".into()),
                _ if speaker.starts_with("tool") => words.push("result".into()),
                _ if speaker.starts_with("summary ") => words.push("compacted".into()),
                _ if speaker.contains(" ▸ ") => words.push("call".into()),
                _ => {}
            }
            continue;
        };
        let is_text = !["error", "system"].contains(&speaker)
            && !speaker.starts_with("tool")
            && !speaker.starts_with("summary ")
            && !speaker.contains(" ▸ ");
        if is_text {
            words.push(said.to_owned());
        }
    }
    words
}

/// The words of the transcript on a screen with a tree on its left.
pub fn of_screen(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    // The first row is that of the heads.
    for row in text.lines().skip(1) {
        let Some(row) = row.split('│').nth(1).map(message) else { continue };
        if row.starts_with("Write ") {
            let failed = row.contains(" failed") || row.contains(" refused");
            words.extend(["call".into(), if failed { "failed" } else { "result" }.into()]);
        } else if row.starts_with("compacted ") {
            words.push("compacted".into());
        } else if is_message(row) || row.starts_with("re ") || row.starts_with("begun ") {
            words.push(row.to_owned());
        }
    }
    words
}

/// A row without the sign and the time of a message of the person.
fn message(row: &str) -> &str {
    let row = row.trim_start_matches('▌').trim();
    let is_time = |word: &str| word.len() == 5 && word.as_bytes()[2] == b':';
    match row.rsplit_once(' ') {
        Some((text, time)) if is_time(time) => {
            let text = text.trim_end();
            text.strip_suffix("  you").unwrap_or(text).trim_end()
        }
        _ => row,
    }
}
