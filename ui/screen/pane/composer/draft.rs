//! One draft: the text, the pastes that stand in it as chips, the files it names.

use crate::screen::pane::composer::saved::SavedMessage;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Widget as _;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use tui_textarea::{CursorMove, TextArea, WrapMode};
use yoi::protocol::{Segment, flatten};

/// A paste longer than this, in bytes or lines, becomes a chip.
const CHIP_BYTES: usize = 1024;
const CHIP_LINES: usize = 10;
/// Marks the cell of the cursor while the draft is painted; no other cell of the screen blinks.
pub const CARET: Modifier = Modifier::RAPID_BLINK;

/// A pasted text with the line ends of a draft. Terminals send a carriage return for each.
pub fn pasted(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A text being written.
#[derive(Clone)]
pub struct Draft {
    pub text: TextArea<'static>,
    pastes: Vec<Paste>,
    files: BTreeSet<String>,
    /// Width and rows of the last measurement.
    measured: Cell<Option<(u16, u16)>>,
}

/// A long paste and the chip that stands for it. No two pastes of a draft have the same id, and so no
/// chip stands for the text of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Paste {
    id: u32,
    chip: String,
    pub segment: Segment,
}

/// A draft that was taken out: the segments that are sent, and the text with its chips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedMessage", into = "SavedMessage")]
pub struct Message {
    pub text: String,
    pub segments: Vec<Segment>,
    pub pastes: Vec<Paste>,
    pub files: BTreeSet<String>,
}

impl Paste {
    /// The paste of a segment, if it is one.
    pub fn of(segment: Segment) -> Option<Self> {
        let Segment::Paste { id, .. } = segment else { return None };
        Some(Self { id, chip: String::new(), segment }.numbered(id))
    }

    /// The same text under this id.
    fn numbered(mut self, number: u32) -> Self {
        if let Segment::Paste { id, chars, lines, .. } = &mut self.segment {
            *id = number;
            let many = if *lines == 1 { "line" } else { "lines" };
            self.chip = format!("[paste #{number} · {chars} chars, {lines} {many}]");
        }
        self.id = number;
        self
    }
}

impl Message {
    /// A message of plain text.
    pub fn plain(text: &str) -> Self {
        Draft::of(&Self { text: text.into(), ..Self::default() }).message()
    }

    /// A message as it was queued, to be edited again.
    pub fn of(segments: &[Segment]) -> Self {
        let mut draft = Draft::default();
        for segment in segments {
            match segment {
                Segment::Paste { id, content, .. } => drop(draft.paste(content, *id)),
                Segment::FileRef { path } => draft.file(path),
                other => _ = draft.text.insert_str(other.flat()),
            }
        }
        draft.message()
    }
}

impl Default for Draft {
    fn default() -> Self {
        Self::with(TextArea::default())
    }
}

impl Draft {
    fn with(mut text: TextArea<'static>) -> Self {
        text.set_wrap_mode(WrapMode::WordOrGlyph);
        text.set_cursor_line_style(Style::new());
        text.set_cursor_style(Style::new().add_modifier(CARET));
        text.set_selection_style(Style::new().add_modifier(Modifier::REVERSED));
        text.set_tab_length(4);
        Self { text, pastes: Vec::new(), files: BTreeSet::new(), measured: Cell::new(None) }
    }

    /// The draft a message was, with the cursor at its end.
    pub fn of(message: &Message) -> Self {
        let lines = message.text.split('\n').map(str::to_owned).collect();
        let mut draft = Self::with(TextArea::new(lines));
        draft.text.move_cursor(CursorMove::Bottom);
        draft.text.move_cursor(CursorMove::End);
        draft.pastes.clone_from(&message.pastes);
        draft.files.clone_from(&message.files);
        draft
    }

    /// Replaces the text so that undo brings the old one back.
    pub fn replace(&mut self, message: &Message) {
        self.text.select_all();
        self.text.cut();
        let mut text = message.text.clone();
        for paste in &message.pastes {
            let kept = self.keep(paste.clone());
            text = text.replacen(&paste.chip, &kept, 1);
        }
        self.text.insert_str(&text);
        self.files.extend(message.files.iter().cloned());
        self.touched();
    }

    pub fn is_empty(&self) -> bool {
        self.text.lines().iter().all(String::is_empty)
    }

    /// The message that this draft makes.
    pub fn message(&self) -> Message {
        let text = self.text.lines().join("\n");
        let segments = self.segments(text.trim_end());
        let (pastes, files) = (self.pastes.clone(), self.files.clone());
        Message { text, segments, pastes, files }
    }

    /// The text with every paste in place of its chip.
    pub fn whole_text(&self) -> String {
        flatten(&self.message().segments)
    }

    /// The message of such a text after it was edited: a paste that was not changed stands as its chip again.
    pub fn folded(&self, text: &str) -> Message {
        let own = self.text.lines().join("\n");
        let mut text = text.to_owned();
        let mut pastes: Vec<(&str, Cow<'_, str>)> = self
            .pastes
            .iter()
            .filter(|paste| own.contains(&paste.chip))
            .map(|paste| (paste.chip.as_str(), paste.segment.flat()))
            .collect();
        // One paste may hold another one.
        pastes.sort_by_key(|(_, content)| std::cmp::Reverse(content.len()));
        for (chip, content) in pastes {
            // An editor ends a file with a newline, whatever the text ended with.
            let forms = [&*content, content.trim_end_matches('\n')];
            let found = forms.into_iter().find_map(|form| Some((text.find(form)?, form.len())));
            if let Some((at, length)) = found.filter(|(_, length)| *length > 0) {
                text.replace_range(at..at + length, chip);
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        Message {
            text,
            segments: Vec::new(),
            pastes: self.pastes.clone(),
            files: self.files.clone(),
        }
    }

    /// Cuts the text at chips and names of files.
    fn segments(&self, text: &str) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((at, length, segment)) = self.next_token(rest) {
            push_text(&mut segments, &rest[..at]);
            segments.push(segment);
            rest = &rest[at + length..];
        }
        push_text(&mut segments, rest);
        segments
    }

    /// The first chip or file in `text`: its byte, its length in bytes, and its segment.
    fn next_token(&self, text: &str) -> Option<(usize, usize, Segment)> {
        let chips = self.pastes.iter().filter_map(|paste| {
            text.find(&paste.chip).map(|at| (at, paste.chip.len(), paste.segment.clone()))
        });
        let files = self.files.iter().filter_map(|path| {
            let token = format!("@{path}");
            let mut found =
                text.match_indices(&token).filter(|(at, _)| ends(&text[at + token.len()..]));
            let (at, _) = found.next()?;
            Some((at, token.len(), Segment::FileRef { path: path.clone() }))
        });
        chips.chain(files).min_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)))
    }

    /// Where whole chips stand in a line, in bytes from its beginning, in order.
    pub fn chips(&self, line: &str) -> Vec<Range<usize>> {
        let found = self.pastes.iter().flat_map(|paste| {
            line.match_indices(&paste.chip).map(|(at, chip)| at..at + chip.len())
        });
        let mut chips: Vec<_> = found.collect();
        chips.sort_by_key(|chip| chip.start);
        chips
    }

    /// The number of a paste of which only a part of its chip is left, as an editor of the person may leave it.
    pub fn broken_paste(&self) -> Option<u32> {
        let mut text = self.text.lines().join("\n");
        for paste in &self.pastes {
            text = text.replace(&paste.chip, "");
        }
        let is_broken = |paste: &&Paste| {
            let halves = paste.chip.split_once(" · ");
            halves.is_some_and(|(begin, end)| text.contains(begin) || text.contains(end))
        };
        self.pastes.iter().find(is_broken).map(|paste| paste.id)
    }

    /// The highest id of a paste in this draft.
    pub fn last_paste(&self) -> u32 {
        self.pastes.iter().map(|paste| paste.id).max().unwrap_or(0)
    }

    /// Keeps a paste for its chip, under another id if that one is taken, and returns the chip.
    fn keep(&mut self, paste: Paste) -> String {
        if self.pastes.contains(&paste) {
            return paste.chip;
        }
        let taken = self.pastes.iter().any(|known| known.id == paste.id);
        let id = if taken { self.last_paste() + 1 } else { paste.id };
        let paste = paste.numbered(id);
        let chip = paste.chip.clone();
        self.pastes.push(paste);
        chip
    }

    /// Inserts pasted text, as a chip when it is long: then `id` is its number, or the next free one
    /// when this draft has that already. Gives back the number that was used.
    pub fn paste(&mut self, text: &str, id: u32) -> Option<u32> {
        let text = pasted(text);
        let lines = text.lines().count();
        if text.len() <= CHIP_BYTES && lines <= CHIP_LINES {
            self.text.insert_str(&text);
            self.touched();
            return None;
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (chars, lines) = (count(text.chars().count()), count(lines));
        let segment = Segment::Paste { id, chars, lines, content: text };
        let chip = self.keep(Paste { id, chip: String::new(), segment }.numbered(id));
        self.text.insert_str(&chip);
        self.touched();
        self.pastes.last().map(|paste| paste.id)
    }

    /// Names a file at the cursor.
    pub fn file(&mut self, path: &str) {
        self.text.insert_str(format!("@{path}"));
        self.files.insert(path.to_owned());
        self.touched();
    }

    /// Takes the `@` from every name of this file, which is plain text then. `false` where the draft does not name it.
    pub fn unname(&mut self, path: &str) -> bool {
        if !self.files.remove(path) {
            return false;
        }
        let token = format!("@{path}");
        let place = |text: &TextArea<'_>| {
            text.lines().iter().zip(0u16..).find_map(|(line, row)| {
                let mut found = line.match_indices(&token);
                let (at, _) = found.find(|(at, _)| ends(&line[at + token.len()..]))?;
                Some((row, cells(line[..at].chars().count())))
            })
        };
        let mut is_named = false;
        while let Some((row, column)) = place(&self.text) {
            let at = self.text.cursor();
            let (cursor_row, cursor_column) = (cells(at.0), cells(at.1));
            self.text.cancel_selection();
            self.text.move_cursor(CursorMove::Jump(row, column));
            self.text.delete_next_char();
            let moves = u16::from(cursor_row == row && cursor_column > column);
            self.text.move_cursor(CursorMove::Jump(cursor_row, cursor_column - moves));
            is_named = true;
        }
        self.touched();
        is_named
    }

    /// The line up to the cursor.
    pub fn before_cursor(&self) -> String {
        let at = self.text.cursor();
        self.text.lines()[at.0].chars().take(at.1).collect()
    }

    /// Whether the cursor is behind the last character.
    pub fn is_at_end(&self) -> bool {
        self.text.cursor().0 + 1 == self.text.lines().len() && self.after_cursor().is_empty()
    }

    /// The line from the cursor on.
    pub fn after_cursor(&self) -> String {
        let at = self.text.cursor();
        self.text.lines()[at.0].chars().skip(at.1).collect()
    }

    /// Deletes so many characters before the cursor.
    pub fn delete_before(&mut self, chars: usize) {
        for _ in 0..chars {
            self.text.move_cursor(CursorMove::Back);
        }
        self.text.delete_str(chars);
        self.touched();
    }

    /// To be called after every change: the height is measured anew.
    pub fn touched(&self) {
        self.measured.set(None);
    }

    /// Scrolls back where rows above are out of view although there is room for them in this area.
    pub fn fill(&mut self, area: Rect) {
        let top = self.text.scroll_offset().0;
        let empty = top.saturating_sub(self.rows(area.width).saturating_sub(area.height));
        let at = self.text.cursor();
        let cursor = u16::try_from(at.0).ok().zip(u16::try_from(at.1).ok());
        // Scrolling may take the cursor along, and with it the end of a selection.
        if let (Some(up), Some((row, column)), false) =
            (i16::try_from(empty).ok().filter(|up| *up > 0), cursor, self.text.is_selecting())
        {
            self.text.scroll((-up, 0));
            self.text.move_cursor(CursorMove::Jump(row, column));
        }
    }

    /// How many rows the text takes at this width.
    pub fn rows(&self, width: u16) -> u16 {
        if let Some((_, rows)) = self.measured.get().filter(|(of, _)| *of == width) {
            return rows;
        }
        // The row of the last character gives the height: the cursor of a copy goes there.
        let mut probe = self.text.clone();
        probe.cancel_selection();
        probe.move_cursor(CursorMove::Bottom);
        probe.move_cursor(CursorMove::End);
        let area = Rect::new(0, 0, width.max(1), 1);
        (&probe).render(area, &mut Buffer::empty(area));
        let rows = u16::try_from(probe.screen_cursor().row + 1).unwrap_or(u16::MAX);
        self.measured.set(Some((width, rows)));
        rows
    }
}

fn cells(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

fn push_text(segments: &mut Vec<Segment>, text: &str) {
    if !text.is_empty() {
        segments.push(Segment::Text { content: text.to_owned() });
    }
}

/// Whether the name of a file ends where `rest` begins.
fn ends(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-'))
}
