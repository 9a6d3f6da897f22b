//! Divides long texts into parts. Each part is read, drawn and dropped by itself, so that the cost of a
//! text follows the parts near the view and not its length. The borders depend on the text alone: a
//! text that streamed has the same ones as its entry in the log.

use crate::screen::pane::transcript::markdown::{Fence, Fences};
use unicode_width::UnicodeWidthChar as _;
use yoi::protocol::{EntryId, NotJson, Unescape, encoded_len};
use yoi::text::SafeStream;

/// A part ends with the line in which it reaches this size, in bytes of its text.
pub const PART: usize = 64 * 1024;
/// From this size on, a part also ends after a space.
const LONG_LINE: usize = PART + 4 * 1024;
/// From this size on, a part ends after any character.
const LONG_WORD: usize = LONG_LINE + 256;
/// At most this much of a line of the log is fetched at once, in bytes.
const BATCH: u64 = 768 * 1024;

/// A text of the log of which a block holds the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongText {
    pub entry: EntryId,
    /// The field of the entry's line that holds the text; several of them follow each other.
    pub fields: &'static [&'static str],
    /// How many texts of this field come before it.
    pub skip: usize,
    /// How much of the text the block holds, in bytes.
    pub kept: usize,
}

/// The place of a part in the line of its entry.
#[derive(Clone, Debug)]
pub struct Part {
    pub start: u64,
    pub end: u64,
    /// The size of its text in bytes.
    pub bytes: usize,
    pub begin: Begin,
}

/// The state of the text at the beginning of a part.
#[derive(Clone, Debug, Default)]
pub struct Begin {
    /// The block of code that is open.
    pub fence: Option<Fence>,
    /// Whether the line above is empty.
    pub blank: bool,
    /// Set if the part begins inside a line: the state of the safe text there.
    pub safe: Option<Box<SafeStream>>,
}

/// The parts behind the beginning that a block holds, in their order.
#[derive(Clone, Debug)]
pub struct PartTable {
    /// The entry, named by its place in the log.
    pub entry: EntryId,
    pub parts: Vec<Part>,
}

/// Some parts that follow each other, to be fetched at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// The entry whose text it is.
    pub entry: EntryId,
    /// The same entry, named by its place in the log.
    pub place: EntryId,
    /// The number of the first part; the block itself is number 0.
    pub first: usize,
    pub count: usize,
    /// Bytes of the line.
    pub start: u64,
    pub end: u64,
}

impl PartTable {
    /// The part with this number and those next to it that are missing, as far as one request may
    /// reach: the later ones, or with `back` the earlier ones. At most `most` of them.
    pub fn range(
        &self,
        number: usize,
        back: bool,
        most: usize,
        missing: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize)> {
        let at = number.checked_sub(1)?;
        let (mut first, mut last) = (at, at);
        self.parts.get(at)?;
        while last - first + 1 < most {
            let next = if back { first.checked_sub(1) } else { Some(last + 1) };
            let Some(next) = next.filter(|n| *n < self.parts.len() && missing(n + 1)) else {
                break;
            };
            let (a, b) = (first.min(next), last.max(next));
            let adjoins = self.parts[a..b].iter().zip(&self.parts[a + 1..=b]);
            let whole = adjoins.into_iter().all(|(one, other)| one.end == other.start);
            if !whole || self.parts[b].end - self.parts[a].start > BATCH {
                break;
            }
            (first, last) = (a, b);
        }
        Some((first + 1, last - first + 1))
    }
}

/// The length of the beginning that a block holds of a shortened text: whole lines, if there is one.
pub fn beginning(shortened: &str) -> usize {
    let text = shortened.strip_suffix('…').unwrap_or(shortened);
    text.rfind('\n').map_or(text.len(), |at| at + 1)
}

/// Divides a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Splitter {
    /// The size of the part so far, in bytes.
    size: usize,
    /// The size of the beginning that the block itself holds, until it is reached.
    kept: Option<usize>,
    fences: Fences,
    safe: SafeStream,
    inside_line: bool,
}

impl Splitter {
    /// A text whose first part has this size.
    pub fn behind(kept: usize) -> Self {
        Self { kept: Some(kept), ..Self::default() }
    }

    /// The borders in the next piece: the byte, and the state of the text there.
    pub fn push(&mut self, piece: &str) -> Vec<(usize, Begin)> {
        let mut borders = Vec::new();
        let mut from = 0;
        while let Some(at) = self.border(&piece[from..]) {
            self.pass(&piece[from..from + at]);
            from += at;
            borders.push((from, self.begin()));
        }
        self.pass(&piece[from..]);
        borders
    }

    fn pass(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.fences.push(text);
        // Only the state is needed here, for a part that begins inside a line.
        let _ = self.safe.push(text);
        self.size += text.len();
        self.inside_line = !text.ends_with('\n');
    }

    /// Begins a part here.
    pub fn begin(&mut self) -> Begin {
        (self.size, self.kept) = (0, None);
        Begin {
            fence: self.fences.open().cloned(),
            blank: self.fences.after_blank() && !self.inside_line,
            safe: self.inside_line.then(|| Box::new(self.safe.clone())),
        }
    }

    fn border(&self, text: &str) -> Option<usize> {
        if let Some(kept) = self.kept {
            return kept.checked_sub(self.size).filter(|at| *at <= text.len());
        }
        let from = text.ceil_char_boundary(PART.saturating_sub(self.size).min(text.len()));
        for (at, c) in text[from..].char_indices() {
            let (at, size) = (from + at, self.size + from + at);
            // A combining mark belongs to the character before it and begins no part.
            if size >= LONG_WORD && c.width().unwrap_or(0) > 0 {
                return Some(at);
            }
            if c == '\n' || size >= LONG_LINE && c == ' ' {
                return Some(at + c.len_utf8());
            }
        }
        None
    }
}

/// Finds the parts of a text in the line of its entry, which comes in pieces.
pub struct TableBuilder {
    splitter: Splitter,
    decoder: Unescape,
    parts: Vec<Part>,
    /// The part that is being measured.
    open: Option<Part>,
    /// How many bytes of the line were read.
    at: u64,
}

impl TableBuilder {
    /// For a text whose first `kept` bytes are in the block itself.
    pub fn behind(kept: usize) -> Self {
        let (splitter, decoder) = (Splitter::behind(kept), Unescape::default());
        Self { splitter, decoder, parts: Vec::new(), open: None, at: 0 }
    }

    /// A text begins at this byte of the line; the first one, or one that follows it.
    pub fn begin(&mut self, start: u64) {
        if self.at > 0 {
            self.open(start);
        }
        (self.at, self.decoder) = (start, Unescape::default());
    }

    fn open(&mut self, start: u64) {
        self.close(start);
        let begin = self.splitter.begin();
        self.open = Some(Part { start, end: start, bytes: 0, begin });
    }

    fn close(&mut self, end: u64) {
        self.parts
            .extend(self.open.take().map(|part| Part { end, ..part }).filter(|p| p.bytes > 0));
    }

    /// The next piece of that text.
    pub fn push(&mut self, piece: &str) -> Result<(), NotJson> {
        let raw = format!("{}{piece}", self.decoder.rest());
        let (start, mut read, mut passed) = (self.at - self.decoder.rest().len() as u64, 0, 0);
        let text = self.decoder.push(piece)?;
        for (border, begin) in self.splitter.push(&text) {
            read += encoded_len(&raw[read..], border - passed);
            let at = start + read as u64;
            self.more(border - passed);
            passed = border;
            self.close(at);
            self.open = Some(Part { start: at, end: at, bytes: 0, begin });
        }
        self.more(text.len() - passed);
        self.at += piece.len() as u64;
        Ok(())
    }

    fn more(&mut self, bytes: usize) {
        if let Some(part) = &mut self.open {
            part.bytes += bytes;
        }
    }

    /// That text ends here.
    pub fn end(&mut self) {
        self.close(self.at);
    }

    pub fn table(self, entry: EntryId) -> PartTable {
        PartTable { entry, parts: self.parts }
    }
}

#[cfg(test)]
mod tests;
