//! The rest of a long text behind the beginning that its block holds: the loaded parts and their table.

use crate::screen::pane::transcript::block::{Block, Kind};
use crate::screen::pane::transcript::clean;
use crate::screen::pane::transcript::parts::{Begin, LongText, PartTable, beginning};
use std::rc::Rc;
use yoi::protocol::item::Item;
use yoi::protocol::{Entry, Fact, Segment};

/// The parts of a long text behind its beginning.
#[derive(Default)]
pub struct Rest {
    pub state: Reading,
    /// The places of the parts in the log; `None` while they are unknown.
    pub table: Option<Rc<PartTable>>,
    /// The loaded parts; the first one is number 1.
    pub slots: Vec<Option<Block>>,
}

/// The state of the table of parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    #[default]
    Wanted,
    UnderWay,
    Failed(String),
    Done,
}

/// One part.
pub struct PartText {
    pub text: String,
    pub form: Form,
    /// The size of its text in the log, in bytes.
    pub raw: usize,
    pub begin: Begin,
    /// Whether it ends a text that was cut off.
    pub partial: bool,
}

/// How a part is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Markdown,
    Thought,
    Input,
    Output,
}

impl Rest {
    /// The size of the loaded parts, in bytes.
    pub fn bytes(&self) -> usize {
        self.slots.iter().flatten().map(Block::bytes).sum()
    }

    pub fn slot(&self, part: usize) -> Option<&Block> {
        self.slots.get(part.checked_sub(1)?)?.as_ref()
    }

    pub fn slot_mut(&mut self, part: usize) -> Option<&mut Block> {
        self.slots.get_mut(part.checked_sub(1)?)?.as_mut()
    }

    /// Takes the table of the committed text. Parts that streamed stay if they are equal.
    pub fn attach(&mut self, table: Rc<PartTable>) {
        let size = |slot: &Option<Block>| match slot.as_ref().map(|block| &block.kind) {
            Some(Kind::Part(part)) => Some(part.raw),
            _ => None,
        };
        let sizes = table.parts.iter().map(|part| part.bytes);
        let same = self.slots.len() == table.parts.len()
            && self
                .slots
                .iter()
                .zip(sizes)
                .all(|(slot, bytes)| size(slot).is_none_or(|n| n == bytes));
        if !same {
            self.slots = table.parts.iter().map(|_| None).collect();
        }
        self.slots.iter_mut().flatten().for_each(|block| block.live = false);
        (self.table, self.state) = (Some(table), Reading::Done);
    }

    /// Begins a part of a text that streams.
    pub fn open(&mut self, begin: Begin, form: Form) {
        if let Some(Some(last)) = self.slots.last_mut() {
            last.live = false;
        }
        let part = PartText { text: String::new(), form, raw: 0, begin, partial: false };
        self.slots.push(Some(Block::live(Kind::Part(Box::new(part)))));
    }

    /// Drops the loaded parts that lie farther than `within` from all of these.
    pub fn keep_near(&mut self, near: &[usize], within: usize) {
        let streams = self.table.is_none();
        let last = self.slots.len();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let number = at + 1;
            let far = near.iter().all(|near| near.abs_diff(number) > within);
            if far && !(streams && last - number <= within) {
                *slot = None;
            }
        }
    }
}

impl PartText {
    /// Adds a piece of a text that streams; `raw` is its size before it was made safe.
    pub fn push(&mut self, safe: &str, raw: usize) {
        self.text.push_str(safe);
        self.raw += raw;
    }
}

impl Block {
    /// The long text in the log of which the block shows the beginning.
    pub fn long(&self) -> Option<&LongText> {
        match &self.kind {
            Kind::Tool(tool) => tool.outcome.as_ref()?.long.as_ref(),
            Kind::Result { outcome, .. } => outcome.long.as_ref(),
            _ => self.long.as_deref(),
        }
    }

    /// Whether its table is unknown and can be requested.
    pub fn awaits_table(&self) -> bool {
        !self.gone && self.long().is_some() && self.rest.state == Reading::Wanted
    }

    /// Whether its table is unknown.
    pub fn lacks_table(&self) -> bool {
        let reading = matches!(self.rest.state, Reading::Wanted | Reading::UnderWay);
        !self.gone && self.long().is_some() && reading
    }

    fn form(&self) -> Form {
        match &self.kind {
            Kind::Thought(_) => Form::Thought,
            Kind::Tool(_) | Kind::Result { .. } => Form::Output,
            Kind::User { .. } => Form::Input,
            _ => Form::Markdown,
        }
    }

    /// Fills the slot of a part with its text.
    pub fn fill(&mut self, part: usize, text: &str) {
        let form = self.form();
        let last = part == self.rest.slots.len();
        let partial = last && matches!(self.kind, Kind::Said { partial: true, .. });
        let Some(table) = &self.rest.table else { return };
        let Some(found) = part.checked_sub(1).and_then(|at| table.parts.get(at)) else { return };
        let begin = found.begin.clone();
        let shown = match form {
            Form::Output => clean::output(text).into_owned(),
            _ => {
                let safe = begin.safe.as_deref().cloned().unwrap_or_default();
                clean::Stream::behind(safe).push(text)
            }
        };
        let part_text = PartText { text: shown, form, raw: text.len(), begin, partial };
        if let Some(slot) = self.rest.slots.get_mut(part - 1) {
            *slot = Some(Block::new(Kind::Part(Box::new(part_text))));
        }
    }
}

/// Reduces an entry that came shortened to the beginning of its long text, and returns the place of that
/// text with the segments of a message behind it; `None` for an entry that is not read in parts.
pub fn shortened(entry: &mut Entry) -> Option<(LongText, Vec<Segment>)> {
    let id = entry.id?;
    let place = |fields, skip, kept| LongText { entry: id, fields, skip, kept };
    let long = |fields, kept| (place(fields, 0, kept), Vec::new());
    match &mut entry.fact {
        Fact::UserInput { segments, .. } => {
            let (skip, kept, behind) = shorten_segments(segments)?;
            Some((place(&["content"], skip, kept), behind))
        }
        Fact::ToolResult { item: Item::ToolResult { content: Some(content), .. }, .. } => {
            content.truncate(beginning(content));
            Some(long(&["content"], content.len()))
        }
        Fact::AssistantItem { item: Item::Reasoning { text, .. }, .. } if !text.is_empty() => {
            text.truncate(beginning(text));
            Some(long(&["text"], text.len()))
        }
        Fact::AssistantItem { item: Item::Message { content, .. }, .. } => {
            let first = content.first()?.text();
            let kept = first[..beginning(first)].to_owned();
            let size = kept.len();
            *content = vec![yoi::protocol::item::Content::Text { text: kept }];
            Some(long(&["text", "refusal"], size))
        }
        _ => None,
    }
}

/// Keeps the segments of a message up to the first long one, and the beginning of that. Returns how many
/// texts come before it, how many bytes of it are kept, and the segments behind it.
fn shorten_segments(segments: &mut Vec<Segment>) -> Option<(usize, usize, Vec<Segment>)> {
    let mut texts = 0;
    for at in 0..segments.len() {
        let (Segment::Text { content } | Segment::Paste { content, .. }) = &mut segments[at] else {
            continue;
        };
        if content.ends_with('…') {
            content.truncate(beginning(content));
            let kept = content.len();
            let behind = segments.split_off(at + 1);
            return Some((texts, kept, behind));
        }
        texts += 1;
    }
    None
}
