use super::*;
use crate::theme::{Depth, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use serde_json::json;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use yoi::protocol::event::{Event, InFlight, Line, RunResult};
use yoi::protocol::{Fact, Item, Role, Segment};

mod behind;
mod group;
mod history;
mod long;
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
    family: yoi::client::family::Family,
    /// Long lines of the log that were read.
    lines: RefCell<HashMap<EntryId, Rc<String>>>,
}

impl Bench {
    fn new(log: Vec<Entry>) -> Self {
        let transcript = Transcript::in_zone(jiff::tz::TimeZone::UTC);
        let (size, page_bytes) = ((80, 24), 64 * 1024);
        let lines = RefCell::default();
        let family = yoi::client::family::Family::default();
        Self { log, transcript, seq: 0, now: NOON, size, page_bytes, family, lines }
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
        if let Some(text) = self.transcript.wants_table() {
            self.transcript.table(text.entry, Ok(self.table(&text)));
            return true;
        }
        let Some(wanted) = self.transcript.wants() else { return false };
        self.transcript.asked();
        match wanted {
            Wanted::Page(before) => {
                let (lines, older) = self.page(before);
                self.transcript.page(lines, older, Vec::new(), self.seq);
            }
            Wanted::Parts(range) => {
                let line = self.line(range.place);
                let (start, end) = (range.start as usize, range.end as usize);
                self.transcript.parts(range, range.start, &line[start..end]);
            }
        }
        true
    }

    /// The line of an entry in the log.
    fn line(&self, id: EntryId) -> Rc<String> {
        let encode = || {
            let entry = self.log.iter().find(|entry| entry.id == Some(id)).expect("a known entry");
            Rc::new(serde_json::to_string(entry).expect("encoded"))
        };
        Rc::clone(self.lines.borrow_mut().entry(id).or_insert_with(encode))
    }

    fn table(&self, text: &LongText) -> PartTable {
        let line = self.line(text.entry);
        let mut builder = TableBuilder::behind(text.kept);
        for (start, end) in spans(&line, text.fields).into_iter().skip(text.skip) {
            builder.begin(start as u64);
            let mut at = start;
            while at < end {
                let next = line.ceil_char_boundary((at + 1000).min(end));
                builder.push(&line[at..next]).expect("a text");
                at = next;
            }
            builder.end();
        }
        builder.table(text.entry)
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
        let line = |entry: &Entry| match yoi::session::cut(entry) {
            Some(cut) => Line::Cut { cut_bytes: cut.cut_bytes, entry: Box::new(cut.entry) },
            None => Line::Whole(Box::new(entry.clone())),
        };
        let lines = self.log[start..end].iter().map(line).collect();
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
        let (entry, cut_bytes) = match yoi::session::cut(&entry) {
            Some(cut) => (cut.entry, Some(cut.cut_bytes)),
            None => (entry, None),
        };
        self.event(&Event::Entry { entry: Box::new(entry), cut_bytes });
    }

    fn buffer(&self) -> Buffer {
        self.buffer_in(&Theme::load_for("mono", None, Depth::Mono).0)
    }

    fn buffer_in(&self, theme: &Theme) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        let view = View {
            transcript: &self.transcript,
            theme,
            focused: true,
            root: std::path::Path::new("/w"),
            parent: Some("lead"),
            family: &self.family,
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

/// Where the strings of these fields lie in a line, without their quotes.
fn spans(line: &str, fields: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for field in fields {
        let name = format!("\"{field}\":\"");
        let mut from = 0;
        while let Some(start) = line[from..].find(&name).map(|at| from + at + name.len()) {
            let mut end = start;
            while line.as_bytes()[end] != b'"' {
                end += if line.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            found.push((start, end));
            from = end;
        }
    }
    found.sort_unstable();
    found
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
    entry(after, Fact::ToolResult { item, files: Vec::new(), sent: None })
}

fn thought(text: &str) -> Entry {
    let (encrypted_content, signature) = (None, None);
    let summary = Vec::new();
    item(900, Item::Reasoning { text: text.into(), summary, encrypted_content, signature })
}

fn delta(text: &str) -> Event {
    Event::TextDelta { text: text.into() }
}
