//! Text of models, tools and logs, prepared for the transcript: safe to show, with spaces for tabs.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;
use yoi::text::{SafeStream, SafeText};

/// Cells between tab stops.
const TAB: usize = 4;

/// Written text of several lines.
pub fn words(text: &str) -> Cow<'_, str> {
    fill_tabs(SafeText::lines(text).into())
}

/// The output of a command.
pub fn output(text: &str) -> Cow<'_, str> {
    fill_tabs(SafeText::output(text).into())
}

/// The next piece of written text that streams.
pub fn piece(stream: &mut SafeStream, delta: &str) -> String {
    fill_tabs(stream.push(delta).into()).into_owned()
}

/// The argument of a tool call. Its lines stay, and every hidden character is spelled out, because a
/// person decides by this text.
pub fn argument(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\t']) {
        let end = line.find(['\n', '\t']).unwrap_or(line.len());
        let body = line[..end].strip_suffix('\r').filter(|_| line.ends_with('\n'));
        shown.push_str(&SafeText::spelled_row(body.unwrap_or(&line[..end])));
        shown.push_str(&line[end..]);
    }
    fill_tabs(shown.into()).into_owned()
}

/// The first line that is not blank.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    words(line)
}

/// Puts spaces up to the next tab stop in place of each tab.
fn fill_tabs(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains('\t') {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let wide = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', wide));
                column += wide;
            }
            '\n' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += c.width().unwrap_or(0);
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_fills_up_to_the_next_stop() {
        assert_eq!(words("a\tb\n日\tc"), "a   b\n日  c");
        assert_eq!(output("10%\r100%\t|"), "100%    |");
    }

    #[test]
    fn an_argument_shows_every_character_of_a_command() {
        let command = "rm -rf x\u{1b}[2K\u{202e}\r\n\tls\r";
        assert_eq!(argument(command), "rm -rf x\\x1b[2K\\u{202e}\n    ls\\r");
    }

    #[test]
    fn one_line_is_the_first_that_is_not_blank() {
        assert_eq!(one_line("\n  \n a\u{1b}[31mb \nc"), "ab");
    }
}
