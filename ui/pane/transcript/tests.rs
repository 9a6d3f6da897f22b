use super::*;
use crate::theme::{Depth, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use serde_json::json;
use yoi::protocol::event::{Event, InFlight, Line, RunResult};
use yoi::protocol::{Fact, Item, Role, Segment};

mod history;
mod reading;
mod screens;
mod streaming;

/// 2026-11-21 12:40:00 UTC.
const NOON: u64 = 1_795_264_800_000;

/// A log in memory that answers for pages as the host does, and a transcript over it.
struct Bench {
    log: Vec<Entry>,
    transcript: Transcript,
    seq: u64,
    now: u64,
    size: (u16, u16),
    /// How much text a page holds.
    page_bytes: usize,
}

impl Bench {
    fn new(log: Vec<Entry>) -> Self {
        let transcript = Transcript::in_zone(jiff::tz::TimeZone::UTC);
        let (size, page_bytes) = ((80, 24), 64 * 1024);
        Self { log, transcript, seq: 0, now: NOON, size, page_bytes }
    }

    fn sized(mut self, width: u16, height: u16) -> Self {
        self.size = (width, height);
        self
    }

    fn paged(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// Opened and at rest.
    fn open(mut self) -> Self {
        self.find_visible_rows();
        self
    }

    /// Answers one wish for a page; `false` when there is none.
    fn serve(&mut self) -> bool {
        let Some(before) = self.transcript.wants() else { return false };
        self.transcript.asked();
        let (lines, older) = self.page(before);
        self.transcript.page(lines, older, Vec::new(), self.seq);
        true
    }

    fn page(&self, before: Option<EntryId>) -> (Vec<Line>, Option<EntryId>) {
        let end = match before {
            Some(id) => self.log.iter().position(|e| e.id == Some(id)).expect("a known entry"),
            None => self.log.len(),
        };
        let (mut start, mut bytes) = (end, 0);
        while start > 0 {
            bytes += serde_json::to_string(&self.log[start - 1]).expect("encoded").len();
            if bytes > self.page_bytes && start < end {
                break;
            }
            start -= 1;
        }
        let lines = self.log[start..end].iter().map(|e| Line::Whole(Box::new(e.clone()))).collect();
        (lines, self.log[start..end].first().filter(|_| start > 0).and_then(|e| e.id))
    }

    /// Lays out and answers wishes until nothing is wanted.
    fn find_visible_rows(&mut self) {
        self.layout();
        while self.serve() {
            self.layout();
        }
    }

    fn layout(&mut self) {
        self.transcript.layout(self.size.0, self.size.1, self.now);
    }

    fn event(&mut self, event: &Event) {
        self.seq += 1;
        self.transcript.apply(Some(self.seq), event);
    }

    /// Commits an entry and tells of it.
    fn commit(&mut self, entry: Entry) {
        self.log.push(entry.clone());
        self.event(&Event::Entry { entry: Box::new(entry), cut_bytes: None });
    }

    fn buffer(&self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        let (theme, _) = Theme::load_for("mono", None, Depth::Mono);
        let view = View {
            transcript: &self.transcript,
            theme: &theme,
            focused: true,
            pod: "alice",
            parent: Some("lead"),
        };
        view.render(area, &mut buffer);
        buffer
    }

    fn rows(&mut self) -> Vec<String> {
        self.layout();
        rows(&self.buffer())
    }

    fn screen(&mut self) -> String {
        self.rows().iter().map(|row| row.trim_end().to_owned() + "\n").collect()
    }
}

/// The rows of a buffer as a terminal shows them: cells behind a wide one are not there.
fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y| {
        let (mut text, mut x) = (String::new(), area.left());
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += u16::try_from(crate::rows::width(symbol).max(1)).expect("a narrow cell");
        }
        text
    };
    (area.top()..area.bottom()).map(row).collect()
}

/// An entry so many milliseconds after noon.
fn entry(after: u64, fact: Fact) -> Entry {
    Entry { ts: NOON + after, ..Entry::new(fact) }
}

fn you(text: &str) -> Entry {
    entry(
        0,
        Fact::UserInput {
            segments: vec![Segment::Text { content: text.into() }],
            taken: None,
            from: None,
        },
    )
}

fn item(after: u64, item: Item) -> Entry {
    entry(after, Fact::AssistantItem { item, origin: None, native: None, partial: false })
}

fn said(text: &str) -> Entry {
    item(1000, Item::message(Role::Assistant, text))
}

fn call(id: &str, name: &str, arguments: serde_json::Value) -> Entry {
    let arguments = arguments.to_string();
    item(1000, Item::ToolCall { call_id: id.into(), name: name.into(), arguments })
}

fn result(after: u64, id: &str, summary: &str, content: Option<&str>, is_error: bool) -> Entry {
    let item = Item::ToolResult {
        call_id: id.into(),
        summary: summary.into(),
        content: content.map(String::from),
        is_error,
        images: Vec::new(),
    };
    entry(after, Fact::ToolResult { item, files: Vec::new() })
}

fn thought(text: &str) -> Entry {
    let (encrypted_content, signature) = (None, None);
    let summary = Vec::new();
    item(900, Item::Reasoning { text: text.into(), summary, encrypted_content, signature })
}

fn delta(text: &str) -> Event {
    Event::TextDelta { text: text.into() }
}
