//! Text from models, files and commands, made safe for a terminal: escape sequences, control and
//! bidirectional override characters go, tabs become spaces.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;
use unicode_width::UnicodeWidthChar;

/// Cells between tab stops.
const TAB: usize = 4;

/// Words that somebody wrote: a lone carriage return is a line end.
pub fn words(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c != '\n' && unsafe_to_show(c)) {
        Cow::Owned(Cleaner::new(Return::EndsTheLine).run(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// What a command printed: a lone carriage return starts its line over, a backspace takes back.
pub fn output(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c != '\n' && unsafe_to_show(c)) {
        Cow::Owned(Cleaner::new(Return::StartsOver).run(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first line that says something, on one line, safe to show.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    words(line)
}

fn unsafe_to_show(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || reorders(c)
}

/// Characters that let a line read otherwise than it is.
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[derive(Clone, Copy, PartialEq)]
enum Return {
    EndsTheLine,
    StartsOver,
}

struct Cleaner {
    out: String,
    line: usize,
    column: usize,
    lone_return: Return,
}

impl Cleaner {
    fn new(lone_return: Return) -> Self {
        Self { out: String::new(), line: 0, column: 0, lone_return }
    }

    fn run(mut self, text: &str) -> String {
        self.out.reserve(text.len());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => self.end_line(),
                '\r' => self.carriage_return(&mut chars),
                '\t' => self.tab(),
                '\u{8}' => self.backspace(),
                '\u{1b}' => escape(&mut chars),
                '\u{9b}' => control_sequence(&mut chars),
                '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => control_string(&mut chars),
                c if c.is_control() || reorders(c) => {}
                c => {
                    self.column += c.width().unwrap_or(0);
                    self.out.push(c);
                }
            }
        }
        self.out
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.line = self.out.len();
        self.column = 0;
    }

    fn carriage_return(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match (chars.peek(), self.lone_return) {
            (Some('\n'), _) => {}
            (Some(_), Return::StartsOver) => {
                self.out.truncate(self.line);
                self.column = 0;
            }
            (None, Return::StartsOver) => {}
            (_, Return::EndsTheLine) => self.end_line(),
        }
    }

    fn tab(&mut self) {
        let wide = TAB - self.column % TAB;
        self.out.extend(std::iter::repeat_n(' ', wide));
        self.column += wide;
    }

    fn backspace(&mut self) {
        if self.lone_return == Return::StartsOver && self.out.len() > self.line {
            self.out.pop();
            self.column = self.column.saturating_sub(1);
        }
    }
}

/// What follows an ESC, up to the end of its sequence.
fn escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            control_string(chars);
        }
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => drop(chars.next()),
        _ => {}
    }
}

fn control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// A control string ends with BEL or ST, and at the latest with its line.
fn control_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if(|c| *c == '\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_leave_only_their_words() {
        let text = "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ \u{9b}2Jend\u{1b}(B";
        assert_eq!(output(text), "red link end");
    }

    #[test]
    fn a_progress_line_shows_its_last_state() {
        assert_eq!(output("10%\r50%\r100%\r\ndone\r\n"), "100%\ndone\n");
        assert_eq!(output("abc\u{8}\u{8}x"), "ax");
        assert_eq!(words("one\rtwo\r\nthree"), "one\ntwo\nthree");
    }

    #[test]
    fn tabs_go_to_the_next_stop_and_overrides_vanish() {
        assert_eq!(words("a\tb\n日\tc"), "a   b\n日  c");
        assert_eq!(words("a\u{202e}b\u{2066}c"), "abc");
    }

    proptest! {
        #[test]
        fn nothing_that_moves_a_cursor_is_left(text in any::<String>()) {
            for clean in [words(&text), output(&text)] {
                prop_assert!(clean.chars().all(|c| c == '\n' || !unsafe_to_show(c)));
            }
        }
    }
}
