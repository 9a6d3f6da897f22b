//! The door of text of several lines: a machine over characters that knows where an escape sequence
//! ends, so that a text can pass in pieces.

use crate::text::hidden::Sight;

/// What a carriage return does that no newline follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    EndsLine,
    /// The line begins again, and what stood on it is replaced.
    StartsOver,
}

/// Where the next character stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// Behind an ESC.
    Escape,
    /// Behind an ESC and intermediate characters, such as `ESC (`.
    Intermediate,
    /// In a control sequence, behind its `ESC [`.
    Sequence,
    /// In a control string (a title, the clipboard, a link). It ends with BEL or ST, and at the
    /// latest with its line, so that an open one hides no more than the rest of that line.
    ControlString,
    /// Behind an ESC in a control string: the string ends, or another sequence begins.
    StringEscape,
}

/// Lets text through and removes what a terminal would act on or not show. The pieces pushed in
/// turn give what the whole text would have given.
#[derive(Clone, Debug)]
pub struct Cleaner {
    lone_return: Return,
    state: State,
    sight: Sight,
    /// A carriage return came, and nothing was let through since.
    returned: bool,
}

/// Whether text of several lines passes unchanged.
pub fn is_safe(text: &str) -> bool {
    let mut sight = Sight::default();
    text.bytes().all(is_plain) || text.chars().all(|c| sight.shows(c))
}

/// The bytes that are safe wherever they stand: printable ASCII, newline and tab.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

impl Cleaner {
    pub fn new(lone_return: Return) -> Self {
        Self { lone_return, state: State::Text, sight: Sight::default(), returned: false }
    }

    /// Appends the safe form of a piece to `out`, which holds the lines before it as far as a
    /// carriage return can start them over.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        let mut rest = piece;
        while let Some(c) = rest.chars().next() {
            let run = if self.state == State::Text { plain_run(rest) } else { 0 };
            if run > 0 {
                self.before_visible(out);
                out.push_str(&rest[..run]);
                self.sight.shows(rest.as_bytes()[run - 1].into());
                rest = &rest[run..];
            } else {
                self.character(c, out);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    fn character(&mut self, c: char, out: &mut String) {
        match self.state {
            State::Text => self.text(c, out),
            State::Escape => match c {
                '[' => self.state = State::Sequence,
                ']' | 'P' | 'X' | '^' | '_' => self.state = State::ControlString,
                ' '..='/' => self.state = State::Intermediate,
                '0'..='~' => self.state = State::Text,
                c => self.broken_off(c, out),
            },
            State::Intermediate => match c {
                ' '..='/' => {}
                '0'..='~' => self.state = State::Text,
                c => self.broken_off(c, out),
            },
            State::Sequence => match c {
                ' '..='?' => {}
                '@'..='~' => self.state = State::Text,
                c => self.broken_off(c, out),
            },
            State::ControlString => match c {
                '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}' => self.state = State::Text,
                '\u{1b}' => self.state = State::StringEscape,
                c if ends_line(c) => self.broken_off(c, out),
                _ => {}
            },
            State::StringEscape => match c {
                '\\' => self.state = State::Text,
                c => {
                    self.state = State::Escape;
                    self.character(c, out);
                }
            },
        }
    }

    /// A sequence that this character cannot go on: the character is text again.
    fn broken_off(&mut self, c: char, out: &mut String) {
        self.state = State::Text;
        self.text(c, out);
    }

    fn text(&mut self, c: char, out: &mut String) {
        match c {
            '\n' if self.returned && self.lone_return == Return::EndsLine => self.returned = false,
            '\r' => self.carriage_return(out),
            '\u{8}' => self.backspace(out),
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Sequence,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                self.state = State::ControlString;
            }
            c if ends_line(c) => {
                self.returned = false;
                self.end_line(out);
            }
            c if self.sight.shows(c) => self.visible(c, out),
            _ => {}
        }
    }

    fn visible(&mut self, c: char, out: &mut String) {
        self.before_visible(out);
        out.push(c);
    }

    /// Starts the line over if a carriage return asked for it.
    fn before_visible(&mut self, out: &mut String) {
        if std::mem::take(&mut self.returned) && self.lone_return == Return::StartsOver {
            out.truncate(line_start(out));
        }
    }

    fn end_line(&mut self, out: &mut String) {
        out.push('\n');
        self.sight.interrupt();
    }

    fn carriage_return(&mut self, out: &mut String) {
        if self.lone_return == Return::EndsLine {
            self.end_line(out);
        }
        self.sight.interrupt();
        self.returned = true;
    }

    fn backspace(&mut self, out: &mut String) {
        if self.lone_return == Return::StartsOver && !out.ends_with('\n') {
            out.pop();
            self.sight.interrupt();
        }
    }
}

/// How many bytes at the beginning of a text are printable ASCII.
fn plain_run(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b' '..=b'~')).count()
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn line_start(out: &str) -> usize {
    out.rfind('\n').map_or(0, |at| at + 1)
}
