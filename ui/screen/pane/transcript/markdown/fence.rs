//! Fenced code blocks in a markdown text that comes in pieces.

use crate::screen::code::{Highlighter, LONGEST};

/// How many bytes of a line outside of code are kept: enough for a fence and its language.
pub const FENCE_LINE: usize = 256;
/// How many bytes of a line of code are kept: one that is cut is still too long to be coloured.
const CODE_LINE: usize = LONGEST + 4;

/// An open code block: the fence that closes it, and the colours of its next line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    mark: char,
    count: usize,
    pub code: Highlighter,
}

impl Fence {
    /// Reads the fence at the start of a line that is known to open a code block.
    pub fn opened_by(line: &str, language: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let count = line.chars().take_while(|c| *c == mark).count();
        Some(Self { mark, count, code: Highlighter::new(language) })
    }

    /// The fence of a line that opens a code block outside of lists and quotes (CommonMark 4.5).
    fn of_line(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let fence = Self::opened_by(text, "").filter(|fence| text.starts_with(fence.mark))?;
        let found = Some(fence).filter(|fence| indent < 4 && fence.count >= 3)?;
        let info = &text[found.count..];
        let inline = found.mark == '`' && info.contains('`');
        (!inline).then(|| Self { code: Highlighter::new(language_of(info.trim())), ..found })
    }

    pub fn closed_by(&self, line: &str) -> bool {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.trim();
        indent < 4 && line.len() >= self.count && line.chars().all(|c| c == self.mark)
    }
}

/// The language in the words after a fence.
pub fn language_of(info: &str) -> &str {
    info.split([' ', ',', '{']).next().unwrap_or("")
}

/// The code block that is open after the last complete line of a text that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    /// The beginning of the line that is not complete.
    line: String,
    open: Option<Fence>,
    blank: bool,
}

impl Fences {
    pub fn push(&mut self, piece: &str) {
        for line in piece.split_inclusive('\n') {
            let most = if self.open.is_some() { CODE_LINE } else { FENCE_LINE };
            let room = most.saturating_sub(self.line.len());
            self.line.push_str(&line[..line.floor_char_boundary(room)]);
            if line.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end_matches('\n');
        self.blank = line.trim().is_empty();
        match &mut self.open {
            Some(fence) if fence.closed_by(line) => self.open = None,
            // Only what the line leaves open is needed here.
            Some(fence) => drop(fence.code.line(line)),
            None => self.open = Fence::of_line(line),
        }
    }

    /// The code block that is open after the last complete line.
    pub fn open(&self) -> Option<&Fence> {
        self.open.as_ref()
    }

    /// Whether the last complete line was blank.
    pub fn after_blank(&self) -> bool {
        self.blank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_after(text: &str) -> Option<Highlighter> {
        let mut fences = Fences::default();
        fences.push(text);
        fences.open().map(|fence| fence.code.clone())
    }

    #[test]
    fn a_fence_follows_nothing_but_spaces() {
        assert_eq!(open_after("   ~~~ rust\n"), Some(Highlighter::new("rust")));
        for line in
            ["    ~~~\n", "\t~~~\n", "\u{a0}\u{a0}~~~\n", "\u{3000}```\n", "~~\n", "``` a`b\n"]
        {
            assert_eq!(open_after(line), None, "{line:?}");
        }
    }
}
