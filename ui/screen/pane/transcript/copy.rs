//! What a copy consists of: loaded text, or text in the log where only a part of it is loaded.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::block::{Block, Kind};
use crate::screen::pane::transcript::markdown::{self, FENCE_LINE, Fences};
use crate::screen::pane::transcript::tool::Tool;
use yoi::protocol::EntryId;

/// The content of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    Text(String),
    FromLog(LogCopy),
    /// A long text that streams: it is not in the log yet, and only a part of it is kept.
    Incomplete,
}

/// A text to read from the log, because only a part of it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCopy {
    /// The entry that the copy is named after.
    pub entry: Option<EntryId>,
    /// Its sources, in this order.
    pub sources: Vec<Source>,
    /// Only its last block of code.
    pub code: bool,
}

/// A source of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Text(String),
    /// The texts of some fields of an entry.
    Fields(EntryId, &'static [&'static str]),
    /// The message of a person.
    Message(EntryId),
    /// The command of a call.
    Command(EntryId),
}

impl Copy {
    fn text(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self::Text(text))
    }

    fn from_log(entry: EntryId, sources: Vec<Source>, code: bool) -> Self {
        Self::FromLog(LogCopy { entry: Some(entry), sources, code })
    }
}

impl Transcript {
    /// The block under the cursor as text.
    pub fn yank(&self) -> Option<Copy> {
        let focus = self.focus()?.head();
        match self.group_files(focus) {
            Some(files) => Copy::text(files),
            None => self.pages.get(focus)?.copy(),
        }
    }

    /// The name of the block under the cursor, for a sentence.
    pub fn name_under_cursor(&self) -> &'static str {
        let block = self.focus().and_then(|focus| self.pages.get(focus.head()));
        match block.map(|block| &block.kind) {
            Some(Kind::User { from: None, .. }) => "your message",
            Some(Kind::User { .. }) => "the message",
            Some(Kind::Said { .. }) => "the answer",
            Some(Kind::Thought(_)) => "the thought",
            Some(Kind::Tool(_) | Kind::Result { .. }) => "the call",
            Some(_) | None => "the row",
        }
    }

    /// The message that the block under the cursor belongs to: the last one above it.
    pub fn yank_message(&self) -> Option<Copy> {
        let focus = self.focus()?.head();
        let above = self.pages.newest_first().skip_while(|(pos, _)| *pos > focus);
        let mut said = above.map(|(_, block)| block).filter(|block| {
            !block.gone && matches!(block.kind, Kind::Said { .. } | Kind::User { .. })
        });
        said.next()?.copy()
    }

    /// The last block of code under the cursor.
    pub fn yank_code(&self) -> Option<Copy> {
        let block = self.pages.get(self.focus()?.head())?;
        match (&block.kind, block.long(), block.id) {
            (Kind::Said { .. }, Some(long), _) => {
                let sources = vec![Source::Fields(long.entry, long.fields)];
                Some(Copy::from_log(long.entry, sources, true))
            }
            (Kind::Said { .. }, None, _) if block.is_incomplete() => Some(Copy::Incomplete),
            (Kind::Said { text, .. }, None, _) => {
                markdown::code_blocks(text).pop().and_then(Copy::text)
            }
            (Kind::Tool(_), _, Some(id)) if block.cut.is_some() => {
                Some(Copy::from_log(id, vec![Source::Command(id)], false))
            }
            (Kind::Tool(tool), ..) => tool.argument("command").and_then(Copy::text),
            _ => None,
        }
    }

    /// The last text of the model.
    pub fn yank_last_answer(&self) -> Option<Copy> {
        let said = |block: &&Block| !block.gone && matches!(block.kind, Kind::Said { .. });
        self.pages.newest_first().map(|(_, block)| block).find(said)?.copy()
    }
}

/// The last block of code of a text of any length: a first reading counts the blocks, a second one lets
/// the last of them through.
#[derive(Default)]
pub struct CodeLines {
    fences: Fences,
    /// The beginning of the line that is not complete.
    line: String,
    /// How many blocks of code have begun.
    seen: usize,
    /// The number of the block that is let through.
    wanted: Option<usize>,
}

impl CodeLines {
    /// After the first reading: lets the last block through in the second.
    pub fn last(self) -> Self {
        Self { wanted: Some(self.seen), ..Self::default() }
    }

    /// The part of the next piece that belongs to that block.
    pub fn push(&mut self, piece: &str) -> String {
        let mut through = String::new();
        for line in piece.split_inclusive('\n') {
            self.line.push_str(line);
            // A line longer than any fence is code, whatever its end is.
            if line.ends_with('\n') || self.line.len() > FENCE_LINE {
                self.take_line(&mut through);
            }
        }
        through
    }

    fn take_line(&mut self, through: &mut String) {
        let line = std::mem::take(&mut self.line);
        let was_open = self.fences.open().is_some();
        self.fences.push(&line);
        match (was_open, self.fences.open().is_some()) {
            (false, true) => self.seen += 1,
            (true, true) if self.wanted == Some(self.seen) => through.push_str(&line),
            _ => {}
        }
    }

    /// The last line of a text that ends without a line end.
    pub fn end(&mut self) -> String {
        if self.line.is_empty() { String::new() } else { self.push("\n") }
    }
}

impl Block {
    fn is_incomplete(&self) -> bool {
        self.long().is_none() && !self.rest.slots.is_empty()
    }

    fn copy(&self) -> Option<Copy> {
        match (&self.kind, self.long(), self.id) {
            (Kind::Tool(tool), ..) => self.copy_call(tool),
            (Kind::User { .. }, Some(long), _) => {
                Some(Copy::from_log(long.entry, vec![Source::Message(long.entry)], false))
            }
            (Kind::Result { outcome, .. }, Some(long), _) => {
                let summary = Source::Text(format!("{}\n", outcome.summary));
                let content = Source::Fields(long.entry, long.fields);
                Some(Copy::from_log(long.entry, vec![summary, content], false))
            }
            (_, Some(long), _) => {
                let sources = vec![Source::Fields(long.entry, long.fields)];
                Some(Copy::from_log(long.entry, sources, false))
            }
            (Kind::System(_), None, Some(id)) if self.cut.is_some() => {
                Some(Copy::from_log(id, vec![Source::Fields(id, &["body"])], false))
            }
            _ if self.is_incomplete() => Some(Copy::Incomplete),
            _ => Copy::text(self.plain()),
        }
    }

    /// A call with its result; either may be long.
    fn copy_call(&self, tool: &Tool) -> Option<Copy> {
        let call = self.id.filter(|_| self.cut.is_some());
        let Some(named) = self.long().map(|long| long.entry).or(call) else {
            return Copy::text(self.plain());
        };
        let mut sources = match call {
            Some(id) => {
                let name = Source::Text(format!("{} ", tool.name));
                vec![name, Source::Fields(id, &["arguments"])]
            }
            None => vec![Source::Text(tool.requested())],
        };
        match (self.long(), &tool.outcome) {
            (Some(long), Some(outcome)) => {
                sources.push(Source::Text(format!("\n{}\n", outcome.summary)));
                sources.push(Source::Fields(long.entry, long.fields));
            }
            _ => sources.push(Source::Text(format!("\n{}", tool.answered()))),
        }
        Some(Copy::from_log(named, sources, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_of_code_is_let_through_wherever_the_pieces_end() {
        let long = "x".repeat(1000);
        for (text, code) in [
            (
                format!("a\n```\none\n```\n~~~ rs\n```\n{long}\n\n~~~\nb"),
                format!("```\n{long}\n\n"),
            ),
            ("```\nopen".to_owned(), "open\n".to_owned()),
            ("a\n```sh\nls\n```".to_owned(), "ls\n".to_owned()),
            ("no `code` here".to_owned(), String::new()),
        ] {
            for size in [1, 7, 5000] {
                let pieces: Vec<String> = text
                    .chars()
                    .collect::<Vec<char>>()
                    .chunks(size)
                    .map(|chars| chars.iter().collect())
                    .collect();
                let mut first = CodeLines::default();
                let read = |lines: &mut CodeLines| -> String {
                    let through: String = pieces.iter().map(|piece| lines.push(piece)).collect();
                    through + &lines.end()
                };
                assert_eq!(read(&mut first), "");
                assert_eq!(read(&mut first.last()), code);
            }
        }
    }
}
