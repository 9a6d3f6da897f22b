//! A text that streams: made safe piece by piece, and divided into parts once it is long.

use crate::screen::pane::transcript::block::{Block, Kind};
use crate::screen::pane::transcript::clean;
use crate::screen::pane::transcript::parts::{Begin, PART, Splitter, beginning};
use crate::screen::pane::transcript::rest::Form;

/// How much of a long text the host sends with its entry, in bytes.
const KEPT: usize = 8 * 1024;

/// The state of a text that streams.
#[derive(Default)]
pub struct LiveText {
    shown: clean::Stream,
    /// The whole text, while it is short.
    raw: String,
    /// Divides the text, once it is long.
    splitter: Option<Splitter>,
}

/// A change of the block of a text that streams.
pub enum Piece {
    /// The text became long: the block keeps this beginning, and parts follow.
    Beginning(String),
    /// A part begins.
    Part(Begin),
    /// Safe text, and its size before it was made safe.
    Text(String, usize),
}

impl LiveText {
    pub fn push(&mut self, delta: &str) -> Vec<Piece> {
        if let Some(splitter) = &mut self.splitter {
            let borders = splitter.push(delta);
            return self.divide(delta, borders);
        }
        self.raw.push_str(delta);
        if self.raw.len() <= PART {
            return vec![Piece::Text(self.shown.push(delta), delta.len())];
        }
        self.become_long()
    }

    /// Divides the text so far into a beginning and parts.
    fn become_long(&mut self) -> Vec<Piece> {
        let raw = std::mem::take(&mut self.raw);
        let (kept, rest) = raw.split_at(beginning(&raw[..raw.floor_char_boundary(KEPT)]));
        self.shown = clean::Stream::default();
        let mut pieces = vec![Piece::Beginning(self.shown.push(kept))];
        let mut splitter = Splitter::behind(kept.len());
        pieces.extend(splitter.push(kept).into_iter().map(|(_, begin)| Piece::Part(begin)));
        let borders = splitter.push(rest);
        pieces.extend(self.divide(rest, borders));
        self.splitter = Some(splitter);
        pieces
    }

    fn divide(&mut self, text: &str, borders: Vec<(usize, Begin)>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut from = 0;
        for (at, begin) in borders {
            pieces.push(self.piece(&text[from..at]));
            pieces.push(Piece::Part(begin));
            self.shown.begin_part();
            from = at;
        }
        pieces.push(self.piece(&text[from..]));
        pieces
    }

    fn piece(&mut self, text: &str) -> Piece {
        Piece::Text(self.shown.push(text), text.len())
    }
}

impl Block {
    /// Adds a piece of the text.
    pub fn grow(&mut self, piece: Piece, form: Form) {
        match piece {
            Piece::Beginning(text) => {
                if let Some(own) = self.streamed() {
                    *own = text;
                }
                self.cache = None;
            }
            Piece::Part(begin) => self.rest.open(begin, form),
            Piece::Text(text, raw) => self.grow_by(&text, raw),
        }
    }

    fn grow_by(&mut self, text: &str, raw: usize) {
        if let Some(Some(last)) = self.rest.slots.last_mut() {
            if let Kind::Part(part) = &mut last.kind {
                part.push(text, raw);
            }
            return last.touch();
        }
        if let Some(own) = self.streamed() {
            own.push_str(text);
        }
        self.touch();
    }

    fn streamed(&mut self) -> Option<&mut String> {
        match &mut self.kind {
            Kind::Said { text, .. } => Some(text),
            Kind::Thought(thought) => Some(&mut thought.text),
            _ => None,
        }
    }
}
