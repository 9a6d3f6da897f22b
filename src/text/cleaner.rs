//! The door of text of several lines: a machine over characters that knows where an escape sequence
//! ends, so that a text can pass in pieces.

use crate::text::hidden::Sight;

/// Takes what is not part of an escape sequence, and the control sequences.
pub trait Sink {
    /// Printable ASCII.
    fn run(&mut self, run: &str);
    /// Any other character, control characters included.
    fn character(&mut self, c: char);
    /// A control sequence: what stands behind its `ESC [`, and the character that ends it.
    fn sequence(&mut self, _parameters: &str, _last: char) {}
}

/// The parameters of a control sequence are a few numbers; of longer ones the beginning counts.
const MAX_PARAMETERS: usize = 32;

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

/// Parts a text from its escape sequences. The pieces pushed in turn give what the whole text would
/// have given.
#[derive(Clone, Debug)]
pub struct Cleaner {
    state: State,
    parameters: String,
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

impl Default for Cleaner {
    fn default() -> Self {
        Self { state: State::Text, parameters: String::new() }
    }
}

impl Cleaner {
    /// Whether the next character stands outside of every sequence.
    pub fn is_in_text(&self) -> bool {
        self.state == State::Text
    }

    pub fn push(&mut self, piece: &str, out: &mut impl Sink) {
        let mut rest = piece;
        while let Some(c) = rest.chars().next() {
            if self.is_in_text() && is_ignored(c) {
                rest = rest.trim_start_matches(is_ignored);
                continue;
            }
            let run = if self.is_in_text() { plain_run(rest) } else { 0 };
            if run > 0 {
                out.run(&rest[..run]);
                rest = &rest[run..];
            } else {
                self.character(c, out);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    fn character(&mut self, c: char, out: &mut impl Sink) {
        match self.state {
            State::Text => self.text(c, out),
            State::Escape => match c {
                '[' => self.begin_sequence(),
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
                ' '..='?' if self.parameters.len() == MAX_PARAMETERS => {}
                ' '..='?' => self.parameters.push(c),
                '@'..='~' => {
                    self.state = State::Text;
                    out.sequence(&self.parameters, c);
                }
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
    fn broken_off(&mut self, c: char, out: &mut impl Sink) {
        self.state = State::Text;
        self.text(c, out);
    }

    fn begin_sequence(&mut self) {
        self.state = State::Sequence;
        self.parameters.clear();
    }

    fn text(&mut self, c: char, out: &mut impl Sink) {
        match c {
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.begin_sequence(),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                self.state = State::ControlString;
            }
            c => out.character(c),
        }
    }
}

/// Lines without what a terminal would act on or not show: every kind of line end is a newline.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The safe form of what came since it was taken.
    pub out: String,
    sight: Sight,
    /// A carriage return came, and nothing was let through since.
    returned: bool,
}

impl Sink for Lines {
    fn run(&mut self, run: &str) {
        self.returned = false;
        self.out.push_str(run);
        if let Some(last) = run.chars().next_back() {
            self.sight.shows(last);
        }
    }

    fn character(&mut self, c: char) {
        match c {
            '\n' if self.returned => self.returned = false,
            c if c == '\r' || ends_line(c) => {
                self.returned = c == '\r';
                self.out.push('\n');
                self.sight.interrupt();
            }
            c if self.sight.shows(c) => {
                self.returned = false;
                self.out.push(c);
            }
            _ => {}
        }
    }
}

/// Control characters that do nothing on a terminal that draws text.
fn is_ignored(c: char) -> bool {
    matches!(c, '\0'..='\u{7}' | '\u{e}'..='\u{1a}' | '\u{1c}'..='\u{1f}' | '\u{7f}')
}

/// How many bytes at the beginning of a text are printable ASCII.
fn plain_run(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b' '..=b'~')).count()
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
