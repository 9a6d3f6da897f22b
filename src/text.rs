//! Text that a terminal can show and that hides nothing. Names, files, tools, models, providers and
//! peers write text that may hold escape sequences and characters that a person cannot see; what
//! goes to a screen, a terminal, a notice or a log passes one of the constructors of `SafeText` first.

mod cleaner;
mod decoded;
mod hidden;
mod nearest;
mod spelled;
mod terminal;
mod typed;
#[cfg(test)]
mod tests;

use cleaner::{Cleaner, Lines};
use hidden::{LINE_BREAK, Sight};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

pub use decoded::{BYTE_ORDER_MARK, Decoded, without_cut_character};
pub use nearest::nearest;
pub use terminal::Terminal;
pub use typed::{shell_quoted, shell_word, verb_word};

/// Text without escape sequences, control characters (newline and tab stay in some forms) and
/// characters that hide or reorder others. Its constructors are the only way to make one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafeText<'a>(Cow<'a, str>);

impl<'a> SafeText<'a> {
    /// Text of several lines: newlines and tabs stay, escape sequences and hidden characters are
    /// removed, every other kind of line end becomes a newline.
    pub fn lines(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if cleaner::is_safe(&text) {
            return Self(text);
        }
        let mut lines = Lines::default();
        lines.out.reserve(text.len());
        Cleaner::default().push(&text, &mut lines);
        Self(Cow::Owned(lines.out))
    }

    /// The output of a command: as [`SafeText::lines`], but of what was drawn in place only the last
    /// state is left, as on a [`Terminal`].
    pub fn output(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if cleaner::is_safe(&text) {
            return Self(text);
        }
        let mut terminal = Terminal::default();
        let out = terminal.push(&text) + &terminal.finish();
        Self(Self::lines(out).into_owned().0)
    }

    /// One line for a person to read: newlines, tabs and what a terminal would not show are
    /// spelled: `\n`, `\x1b`, `\u{202e}`, and a heap of marks upon one character is counted. Joiners that shape a visible
    /// character stay.
    pub fn line(text: impl Into<Cow<'a, str>>) -> Self {
        let text = hidden::marks_counted(text.into());
        let mut sight = Sight::default();
        if text.chars().all(|c| !matches!(c, '\n' | '\t') && sight.shows(c)) {
            return Self(text);
        }
        let (mut sight, mut out) = (Sight::default(), String::with_capacity(text.len() + 8));
        for c in text.chars() {
            if !matches!(c, '\n' | '\t') && sight.shows(c) {
                out.push(c);
            } else {
                hidden::spell(c, &mut out);
                sight.interrupt();
            }
        }
        Self(Cow::Owned(out))
    }

    /// One line for a person to judge: a newline is `⏎`, tabs and every character that leaves no mark of its own on
    /// the screen are spelled, and more than a few of these or of blanks in a row are their number.
    pub fn spelled(text: impl Into<Cow<'a, str>>) -> Self {
        Self(spelled::spelled(hidden::marks_counted(text.into()), spelled::IN_A_LINE))
    }

    /// The same for a text that may be indented or hold columns, such as a command or a row of a file: only long runs
    /// are their number.
    pub fn spelled_row(text: impl Into<Cow<'a, str>>) -> Self {
        Self(spelled::spelled(hidden::marks_counted(text.into()), spelled::IN_A_ROW))
    }

    /// The beginning of [`SafeText::spelled`]: at most this many characters, and `…` where some are left out.
    pub fn brief(text: impl Into<Cow<'a, str>>, characters: usize) -> Self {
        let line = Self::spelled(text);
        match line.char_indices().nth(characters) {
            Some((end, _)) => Self(Cow::Owned(format!("{}…", &line[..end]))),
            None => line,
        }
    }

    /// A name in quotes, as JSON writes it, with its invisible characters spelled: no name looks like another one or
    /// like the end of its quotes.
    pub fn quoted(name: &str) -> SafeText<'static> {
        SafeText::spelled(serde_json::Value::from(name).to_string())
    }

    /// The rows of a text that a person has to judge: as [`SafeText::spelled_row`], but each line of
    /// the text is a row. A row that a line break follows ends in `⏎`.
    pub fn spelled_rows(text: &str) -> Vec<SafeText<'static>> {
        let mut rows: Vec<String> = text
            .split('\n')
            .map(|line| SafeText::spelled_row(line).into_string() + &LINE_BREAK.to_string())
            .collect();
        if let Some(last) = rows.last_mut() {
            last.pop();
        }
        rows.into_iter().map(|row| SafeText(Cow::Owned(row))).collect()
    }

    /// An encoded JSON value in which each character that [`SafeText::spelled`] would spell stands
    /// as its `\u` escape. It decodes to the same value.
    pub fn json(encoded: impl Into<Cow<'a, str>>) -> Self {
        let encoded = encoded.into();
        if !encoded.chars().any(hidden::is_hidden_in_json) {
            return Self(encoded);
        }
        let mut out = String::with_capacity(encoded.len() + 16);
        for c in encoded.chars() {
            hidden::escape_for_json(c, &mut out);
        }
        Self(Cow::Owned(out))
    }

    /// This text with two blanks in front of each of its lines. `line_begins` says whether a line begins with it, and
    /// afterwards whether one begins behind it.
    pub fn indented(self, line_begins: &mut bool) -> SafeText<'static> {
        let mut out = String::with_capacity(self.len() + self.len() / 16);
        for line in self.split_inclusive('\n') {
            if *line_begins {
                out.push_str("  ");
            }
            out.push_str(line);
            *line_begins = line.ends_with('\n');
        }
        SafeText(Cow::Owned(out))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0.into_owned()
    }

    /// The same text, independent of what it was made from.
    pub fn into_owned(self) -> SafeText<'static> {
        SafeText(Cow::Owned(self.into_string()))
    }
}

/// [`SafeText::lines`] for a text that arrives in pieces: a piece may end anywhere, inside an
/// escape sequence too, and the pieces together are what the whole text would have become.
#[derive(Clone, Debug, Default)]
pub struct SafeStream(Cleaner, Lines);

impl SafeStream {
    /// The safe form of the next piece.
    pub fn push(&mut self, piece: &str) -> SafeText<'static> {
        self.0.push(piece, &mut self.1);
        SafeText(Cow::Owned(std::mem::take(&mut self.1.out)))
    }
}

impl Deref for SafeText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SafeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for SafeText<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<SafeText<'a>> for Cow<'a, str> {
    fn from(text: SafeText<'a>) -> Self {
        text.0
    }
}

impl From<SafeText<'_>> for String {
    fn from(text: SafeText<'_>) -> Self {
        text.into_string()
    }
}

impl PartialEq<&str> for SafeText<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// The SHA-256 of some bytes in lower-case hex, as a person compares it with what `sha256sum` prints.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
