//! Text of models, tools and logs, prepared for the transcript: safe to show, with spaces for tabs.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;
use yoi::text::{SafeStream, SafeText};

/// Cells between tab stops.
const TAB: usize = 4;

/// Text of a person or a model, with its lines.
pub fn words(text: &str) -> Cow<'_, str> {
    fill_tabs(SafeText::lines(text).into(), &mut 0)
}

/// The output of a command.
pub fn output(text: &str) -> Cow<'_, str> {
    fill_tabs(SafeText::output(text).into(), &mut 0)
}

/// The same of a text that streams.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    safe: SafeStream,
    /// The cells before the next character of its line.
    column: usize,
}

impl Stream {
    /// A stream that begins behind a part of its text, at the border of a line.
    pub fn behind(safe: SafeStream) -> Self {
        Self { safe, column: 0 }
    }

    /// The next delta of the text.
    pub fn push(&mut self, delta: &str) -> String {
        fill_tabs(self.safe.push(delta).into(), &mut self.column).into_owned()
    }

    /// What follows is another part of the text.
    pub fn begin_part(&mut self) {
        self.column = 0;
    }
}

/// The argument of a tool call. Its lines stay, and every hidden character but the first half of a CRLF line end is
/// spelled out, because a person decides by this text.
pub fn argument(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\t']) {
        let end = line.find(['\n', '\t']).unwrap_or(line.len());
        let body = line[..end].strip_suffix('\r').filter(|_| line.ends_with('\n'));
        shown.push_str(&SafeText::spelled_row(body.unwrap_or(&line[..end])));
        shown.push_str(&line[end..]);
    }
    fill_tabs(shown.into(), &mut 0).into_owned()
}

/// The first line that is not blank.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let lines = text.lines().map(|line| words(line.trim()));
    lines.into_iter().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Puts spaces up to the next tab stop in place of each tab. `column` is where the text begins, and then where it ends.
fn fill_tabs<'a>(text: Cow<'a, str>, column: &mut usize) -> Cow<'a, str> {
    if !text.contains('\t') {
        let line = text.rsplit('\n').next().unwrap_or_default();
        let before = if line.len() == text.len() { *column } else { 0 };
        *column = before + cells(line);
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for piece in text.split_inclusive(['\t', '\n']) {
        let words = piece.trim_end_matches(['\t', '\n']);
        out.push_str(words);
        *column += cells(words);
        if piece.ends_with('\t') {
            let wide = TAB - *column % TAB;
            out.extend(std::iter::repeat_n(' ', wide));
            *column += wide;
        } else if piece.ends_with('\n') {
            out.push('\n');
            *column = 0;
        }
    }
    Cow::Owned(out)
}

fn cells(words: &str) -> usize {
    words.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_fills_up_to_the_next_stop() {
        assert_eq!(words("a\tb\n日\tc"), "a   b\n日  c");
        assert_eq!(output("10%\r100%\t|"), "100%    |");
        let mut stream = Stream::default();
        let streamed: Vec<String> = ["a", "\tb\n", "日", "\tc"].map(|it| stream.push(it)).into();
        assert_eq!(streamed.concat(), "a   b\n日  c");
    }

    #[test]
    fn an_argument_shows_every_character_of_a_command() {
        let command = "rm -rf x\u{1b}[2K\u{202e}\r\n\tls\r";
        assert_eq!(argument(command), "rm -rf x\\x1b[2K\\u{202e}\n    ls\\r");
    }

    #[test]
    fn one_line_is_the_first_that_is_not_blank() {
        assert_eq!(one_line("\n  \n a\u{1b}[31mb \nc"), "ab");
        assert_eq!(one_line("\u{1b}[0m\nno space"), "no space");
    }
}
