//! Applies events as they come: committed entries, and the reply that streams.

use crate::screen::pane::transcript::block::{Block, Kind, Reading, Retry, Thought};
use crate::screen::pane::transcript::pages::Pos;
use crate::screen::pane::transcript::rest::{Form, Rest};
use crate::screen::pane::transcript::stream::{LiveText, Piece};
use crate::screen::pane::transcript::tool::{Outcome, Progress, Tool};
use crate::screen::pane::transcript::{Transcript, clean};
use crate::theme::Role;
use std::rc::Rc;
use yoi::protocol::event::Event;
use yoi::protocol::{Entry, Fact, Item};

/// Calls that a run leaves without a result are looked for among this many last blocks at least.
const RECENT: usize = 256;

impl Transcript {
    /// Applies an event of this Pod; an event that the loaded page covers is skipped.
    pub fn apply(&mut self, seq: Option<u64>, event: &Event) {
        if !self.load.is_new(seq, event) {
            return;
        }
        match event {
            Event::Entry { entry, cut_bytes } => self.committed(entry, *cut_bytes),
            Event::TextDelta { text } => self.text(text),
            Event::ThinkingStart => drop(self.begin_thought()),
            Event::ThinkingDelta { text } => self.think(text),
            Event::ToolCallStart { id, name } => {
                self.begin(Kind::Tool(Box::new(Tool::asked(id.clone(), name.clone()))));
            }
            Event::ToolCallArgsDelta { id, json } => {
                self.with_call(id, |tool| tool.more_arguments(json));
            }
            Event::ToolCallDone { id, name, arguments } => self.call_known(id, name, arguments),
            Event::ToolOutput { id, text } => {
                self.with_call(id, |tool| {
                    tool.progress = Progress::Running;
                    tool.more_output(text);
                });
            }
            Event::ToolResult { id, summary, output, is_error } => {
                // Its entry says when it came; until then the time shown stands in.
                let mut outcome = Outcome::new(summary.clone(), *is_error, self.now);
                outcome.content.clone_from(output);
                if !self.is_answered(id) {
                    self.answer(id, Rc::new(outcome));
                }
            }
            Event::LlmCallStart { .. } => self.forget_retry(),
            // The sentence names the status.
            Event::LlmRetry { wait_ms, error, failed_attempt, max_attempts, .. } => {
                let attempt = (failed_attempt.saturating_add(1), *max_attempts);
                self.retry(error, Retry { wait_ms: *wait_ms, since: None, attempt });
            }
            Event::LlmContinuation { reason, .. } => {
                // Text that is not committed by now is not part of the history.
                self.drop_streaming();
                self.retry(&format!("stream cut, going on: {reason}"), Retry::default());
            }
            Event::RunEnd { .. } => self.run_ended(),
            Event::CompactStart => {
                self.begin(Kind::Note { role: Role::Dim, text: "compacting …".into() });
            }
            Event::CompactFailed { error } => {
                self.run_ended();
                self.add(Block::note(Role::Error, format!("compaction failed: {error}")));
            }
            Event::SegmentRotated { .. } | Event::CompactDone { .. } => self.load.again(),
            Event::RewindApplied { .. } => self.load.jumped(),
            _ => {}
        }
    }

    /// Adds a committed entry in the place of its streaming block.
    fn committed(&mut self, entry: &Entry, cut_bytes: Option<u64>) {
        let mut block = match Block::read(entry.clone(), cut_bytes) {
            Reading::Nothing => return self.drop_hidden(&entry.fact),
            Reading::TakenBack(from) => {
                // The entry that begins a run shows no block: the page of the log says what is left.
                if !self.pages.take_back(from) {
                    self.load.again();
                }
                return self.find_visible_rows();
            }
            Reading::Block(block) => block,
        };
        match &mut block.kind {
            Kind::Result { call_id, outcome } => {
                let answered = self.answer(&call_id.clone(), Rc::clone(outcome));
                self.add(Block { gone: answered, ..block });
                self.pages.end_waits();
            }
            Kind::Decision { approval, verdict } => {
                let answered = self.pages.decide(approval, verdict);
                self.pages.go_on(verdict);
                self.add(Block { gone: answered, ..block });
                self.pages.end_waits();
            }
            Kind::Approval(request) => {
                request.in_call = self.pages.wait_for(&request.call_id, block.ts);
                self.add(block);
            }
            Kind::Said { .. } | Kind::Thought(_) | Kind::Tool(_) => self.commit(block),
            _ => drop(self.add(block)),
        }
    }

    /// Drops the streaming block of an item that shows nothing, such as a thought whose text the
    /// provider keeps to itself.
    fn drop_hidden(&mut self, fact: &Fact) {
        let Fact::AssistantItem { item, .. } = fact else { return };
        let same = |streamed: &Block| match item {
            Item::Reasoning { .. } => matches!(streamed.kind, Kind::Thought(_)),
            Item::Message { .. } => matches!(streamed.kind, Kind::Said { .. }),
            _ => false,
        };
        let place = self.streaming().filter(|(_, block)| same(block)).last().map(|(pos, _)| pos);
        if let Some(block) = place.and_then(|pos| self.pages.get_mut(pos)) {
            (block.gone, block.live) = (true, false);
            self.find_visible_rows();
        }
    }

    fn commit(&mut self, mut block: Block) {
        self.forget_retry();
        let same = |streamed: &Block| match (&streamed.kind, &block.kind) {
            (Kind::Said { .. }, Kind::Said { .. }) | (Kind::Thought(_), Kind::Thought(_)) => true,
            (Kind::Tool(streamed), Kind::Tool(tool)) => streamed.call_id == tool.call_id,
            _ => false,
        };
        let streamed = self.streaming().filter(|(_, streamed)| same(streamed)).last();
        let place = streamed.map(|(pos, _)| pos);
        match &mut block.kind {
            Kind::Tool(tool) => tool.progress = Progress::Running,
            Kind::Thought(thought) => {
                let since = place.and_then(|pos| match &self.pages.get(pos)?.kind {
                    Kind::Thought(streamed) => streamed.since,
                    _ => None,
                });
                thought.took_ms = since.and_then(|since| block.ts.checked_sub(since));
            }
            _ => {}
        }
        let Some(pos) = place else {
            self.add(block);
            return;
        };
        if let Some(streamed) = self.pages.get_mut(pos) {
            block.fold = streamed.fold;
            if block.long.is_some() {
                // Its parts stay until the table of the committed text is read.
                block.rest.slots = std::mem::take(&mut streamed.rest.slots);
            }
            if let (Kind::Tool(old), Kind::Tool(new)) = (&mut streamed.kind, &mut block.kind) {
                new.output = std::mem::take(&mut old.output);
                new.outcome = old.outcome.take();
            }
            *streamed = block;
        }
        self.pages.recount(pos.page);
    }

    /// Adds a block at the end.
    fn add(&mut self, block: Block) -> Pos {
        if !self.is_at_tail() && block.shown(self.detail) {
            self.new_below += 1;
        }
        let pos = self.pages.push(block);
        if pos.block == 0 {
            self.drop_pages();
        }
        pos
    }

    /// Begins a block that streams.
    pub(super) fn begin(&mut self, kind: Kind) -> Pos {
        self.forget_retry();
        self.unstamped = true;
        let pos = self.add(Block::live(kind));
        self.streams_at(pos);
        pos
    }

    /// Begins a streaming thought, without the text of an earlier one.
    pub(super) fn begin_thought(&mut self) -> Pos {
        self.thought = LiveText::default();
        self.begin(Kind::Thought(Thought::default()))
    }

    /// Adds a streaming block that is not counted as new to a person who reads above it.
    pub(super) fn push_streaming(&mut self, kind: Kind) -> Pos {
        self.unstamped = true;
        let pos = self.pages.push(Block::live(kind));
        self.streams_at(pos);
        pos
    }

    /// Notes that the block at this position streams or runs.
    pub(super) fn streams_at(&mut self, pos: Pos) {
        let first = self.streaming().last().map_or(pos, |(first, _)| first.min(pos));
        self.streams_from = Some(first);
    }

    /// The blocks that stream, newest first.
    fn streaming(&self) -> impl Iterator<Item = (Pos, &Block)> {
        let from = self.streams_from;
        let newest = self.pages.newest_first();
        let reach = newest.take_while(move |(pos, _)| from.is_some_and(|from| *pos >= from));
        reach.filter(|(_, block)| block.live && !block.gone)
    }

    pub(super) fn text(&mut self, delta: &str) {
        let last = self.streaming().next();
        let last = last.filter(|(_, block)| matches!(block.kind, Kind::Said { .. }));
        let pos = match last.map(|(pos, _)| pos) {
            Some(pos) => pos,
            None => {
                self.said = LiveText::default();
                self.begin(Kind::Said { text: String::new(), partial: false })
            }
        };
        let pieces = self.said.push(delta);
        self.grow(pos, pieces, Form::Markdown);
    }

    pub(super) fn think(&mut self, delta: &str) {
        let last = self.streaming().find(|(_, block)| matches!(block.kind, Kind::Thought(_)));
        let pos = match last.map(|(pos, _)| pos) {
            Some(pos) => pos,
            None => self.begin_thought(),
        };
        let pieces = self.thought.push(delta);
        self.grow(pos, pieces, Form::Thought);
    }

    /// Adds streamed pieces to a block and its parts.
    fn grow(&mut self, pos: Pos, pieces: Vec<Piece>, form: Form) {
        let Some(block) = self.pages.get_mut(pos) else { return };
        let parts = block.rest.slots.len();
        let mut begun = false;
        for piece in pieces {
            begun |= matches!(piece, Piece::Beginning(_));
            block.grow(piece, form);
        }
        let more = block.rest.slots.len() > parts;
        if begun {
            self.follow_into_parts(pos);
        }
        if more {
            self.pages.recount(pos.page);
            self.drop_pages();
        }
    }

    fn with_call(&mut self, id: &str, change: impl FnOnce(&mut Tool)) {
        let Some(block) = self.pages.find_call(id).and_then(|pos| self.pages.get_mut(pos)) else {
            return;
        };
        if let Kind::Tool(tool) = &mut block.kind {
            change(tool);
        }
        block.touch();
    }

    fn call_known(&mut self, id: &str, name: &str, arguments: &str) {
        if self.pages.find_call(id).is_none() {
            self.begin(Kind::Tool(Box::new(Tool::asked(id.into(), name.into()))));
        }
        self.with_call(id, |tool| {
            if tool.progress == Progress::Asked {
                let known = Tool::called(id.into(), name.into(), arguments.into(), tool.since);
                *tool = Tool { progress: Progress::Asked, ..known };
            }
        });
    }

    fn is_answered(&self, call_id: &str) -> bool {
        let call = self.pages.find_call(call_id).and_then(|pos| self.pages.get(pos));
        matches!(call.map(|block| &block.kind), Some(Kind::Tool(tool)) if tool.outcome.is_some())
    }

    /// Gives a call its result; `false` if the call is not loaded.
    pub(super) fn answer(&mut self, call_id: &str, outcome: Rc<Outcome>) -> bool {
        let Some(pos) = self.pages.find_call(call_id) else { return false };
        self.with_call(call_id, |tool| {
            tool.outcome = Some(outcome);
            tool.progress = Progress::Over;
            tool.output = String::new();
        });
        if let Some(block) = self.pages.get_mut(pos) {
            block.rest = Rest::default();
        }
        self.pages.recount(pos.page);
        true
    }

    fn retry(&mut self, text: &str, retry: Retry) {
        self.forget_retry();
        let text = clean::words(text).replace('\n', " ");
        self.push_streaming(Kind::Retry { text, retry });
    }

    fn forget_retry(&mut self) {
        self.drop_streaming_of(|kind| matches!(kind, Kind::Retry { .. }));
    }

    /// Drops the streaming blocks.
    fn drop_streaming(&mut self) {
        self.drop_streaming_of(|_| true);
        self.find_visible_rows();
    }

    fn drop_streaming_of(&mut self, of: impl Fn(&Kind) -> bool) {
        let all = self.streaming().filter(|(_, block)| of(&block.kind));
        let places: Vec<Pos> = all.map(|(pos, _)| pos).collect();
        for pos in places {
            if let Some(block) = self.pages.get_mut(pos) {
                (block.gone, block.live) = (true, false);
            }
        }
    }

    /// Ends all streams and calls: blocks that were not committed are not part of the history.
    fn run_ended(&mut self) {
        self.drop_streaming();
        let from = self.streams_from.take();
        let all = self.pages.newest_first().enumerate();
        let recent =
            all.take_while(|(n, (pos, _))| *n < RECENT || from.is_some_and(|at| *pos >= at));
        let recent: Vec<Pos> = recent.map(|(_, (pos, _))| pos).collect();
        for pos in recent {
            let Some(block) = self.pages.get_mut(pos) else { continue };
            if let Kind::Tool(tool) = &mut block.kind
                && tool.progress != Progress::Over
            {
                tool.progress = Progress::Over;
                block.cache = None;
            }
        }
        self.find_visible_rows();
    }
}
