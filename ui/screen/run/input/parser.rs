//! From the bytes of a terminal to events. Nothing is read or written here: the bytes and the time come
//! in as arguments.

use crate::screen::reply::Reply;
use crate::screen::run::input::sequence::{self, Sequence};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// How long the rest of a sequence that has begun beyond doubt is awaited.
const SEQUENCE: Duration = Duration::from_secs(1);
/// How long the next byte of a paste is awaited. A paste whose end is lost ends here.
const PASTE: Duration = Duration::from_secs(1);
/// Two keys that a person types are further apart than this. Lines that come faster are a paste without its marks.
const BURST: Duration = Duration::from_millis(10);
/// The longest sequence that means something, in bytes.
const LONGEST: usize = 64;
/// The longest control string that means something.
const LONGEST_TEXT: usize = 512;
/// A paste that is longer, in bytes, becomes several.
const PASTE_BYTES: usize = 8 * 1024 * 1024;
/// The beginning and the end of a paste.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Collects bytes until they are events.
pub struct Parser {
    /// How long a byte ESC waits for the rest of its sequence before it is the key Esc.
    escape: Duration,
    state: State,
    /// The bytes of the unfinished sequence, character or paste.
    buffer: Vec<u8>,
    /// Whether a byte ESC stands before the character or sequence: it was pressed with Alt.
    alt: bool,
    /// When the unfinished state ends by itself.
    deadline: Option<Instant>,
    /// When the last character was typed.
    typed: Option<Instant>,
    /// When the last paste ended.
    pasted: Option<Instant>,
    events: Vec<Event>,
    replies: Vec<Reply>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    /// A character of several bytes.
    Character,
    Escape,
    /// Behind ESC O.
    Ss3,
    /// Behind ESC [.
    Csi,
    /// Behind ESC [ [, a function key of the Linux console.
    Console,
    /// Behind ESC [ M, a mouse event of three bytes.
    Mouse,
    /// A control string, such as a reply of the terminal.
    Text(ControlString),
    /// Behind an ESC in a control string.
    TextEscape(ControlString),
    /// A control string whose rest did not come for a long time.
    LateText(ControlString),
    Paste,
    /// Directly after the end of a paste. If a second end follows, the first one was a part of the pasted text, and so was
    /// the text between the two.
    Pasted,
    /// An Enter directly behind typed text. It is a newline if more text follows at once.
    Enter,
    /// A paste without its marks.
    Burst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ControlString {
    /// The byte behind ESC.
    introducer: u8,
    /// Whether anything followed. A person who presses Alt and the introducer sends the same two bytes.
    begun: bool,
}

impl Parser {
    /// A parser in which a byte ESC waits this long for the rest of its sequence.
    pub fn new(escape: Duration) -> Self {
        Self {
            escape,
            state: State::Ground,
            buffer: Vec::new(),
            alt: false,
            deadline: None,
            typed: None,
            pasted: None,
            events: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// When [`Parser::expire`] has something to do if no byte comes before.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The replies of the terminal that came since the last call.
    pub fn take_replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }

    /// The events that follow from the passing of time.
    pub fn expire(&mut self, now: Instant) -> Vec<Event> {
        self.time_out(now);
        std::mem::take(&mut self.events)
    }

    /// Ends the unfinished state once it has waited for long enough.
    fn time_out(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        if self.state == State::Pasted {
            // No second end has come: these bytes were typed.
            let held = std::mem::take(&mut self.buffer);
            self.end();
            return self.read(&held, now);
        }
        if let State::Text(string) = self.state
            && string.begun
        {
            (self.state, self.deadline) = (State::LateText(string), None);
            return;
        }
        self.abandon();
    }

    /// The events that follow from bytes that were read together.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) -> Vec<Event> {
        self.time_out(now);
        self.read(bytes, now);
        std::mem::take(&mut self.events)
    }

    fn read(&mut self, bytes: &[u8], now: Instant) {
        let mut rest = match self.state {
            State::LateText(string) => self.rest_of_text(string, bytes),
            _ => bytes,
        };
        while let Some(&byte) = rest.first() {
            let plain = match self.state {
                State::Ground | State::Enter | State::Burst => plain_length(rest),
                _ => 0,
            };
            if plain > 0 {
                self.plain(&rest[..plain], now);
            } else {
                self.byte(byte, now);
            }
            rest = &rest[plain.max(1)..];
        }
    }

    /// Text and line ends that were read together: typed keys, or a paste without its marks.
    fn plain(&mut self, run: &[u8], now: Instant) {
        if self.state == State::Enter && !run.first().is_some_and(is_text) {
            self.abandon();
        }
        let recent = self.typed.is_some_and(|at| now.duration_since(at) < BURST);
        match self.state {
            State::Enter => {
                self.buffer.push(b'\r');
                self.burst(run, now);
            }
            State::Burst => self.burst(run, now),
            _ if has_inner_line_end(run, recent) => self.burst(run, now),
            _ => self.keys(run, recent, now),
        }
    }

    fn burst(&mut self, run: &[u8], now: Instant) {
        self.buffer.extend_from_slice(run);
        self.wait(State::Burst, BURST, now);
        if self.buffer.len() >= PASTE_BYTES {
            self.abandon();
        }
    }

    fn keys(&mut self, run: &[u8], recent: bool, now: Instant) {
        let text = run.strip_suffix(b"\r");
        let text = text.filter(|text| recent || text.iter().any(is_text));
        for &byte in text.unwrap_or(run) {
            self.byte(byte, now);
        }
        match (text, self.state) {
            (Some(_), State::Ground) => self.wait(State::Enter, BURST, now),
            (Some(_), _) => self.byte(b'\r', now),
            (None, _) => {}
        }
    }

    fn byte(&mut self, byte: u8, now: Instant) {
        match self.state {
            State::Ground => self.ground(byte, now),
            State::Character => self.character(byte, now),
            State::Escape => self.escape(byte, now),
            State::Ss3 => self.ss3(byte, now),
            State::Csi => self.csi(byte, now),
            State::Console => self.console(byte, now),
            State::Mouse => self.mouse(byte, now),
            State::Text(string) => self.text(string, byte, now),
            State::TextEscape(string) => self.text_escape(string, byte, now),
            State::LateText(_) => self.abandoned_by(byte, now),
            State::Paste => self.paste(byte, now),
            State::Pasted => self.pasted(byte, now),
            State::Enter | State::Burst => self.abandoned_by(byte, now),
        }
    }

    fn ground(&mut self, byte: u8, now: Instant) {
        match byte {
            0x1b => self.wait(State::Escape, self.escape, now),
            0x20..=0x7e | 0x80.. => {
                self.state = State::Character;
                self.character(byte, now);
            }
            _ => self.finish(sequence::control(byte)),
        }
    }

    fn character(&mut self, byte: u8, now: Instant) {
        self.buffer.push(byte);
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => {
                let Some(c) = text.chars().next() else { return };
                self.typed = Some(now).filter(|_| !self.alt);
                self.finish(sequence::character(c));
            }
            Err(error) => match error.error_len() {
                // The rest of the character follows.
                None => {}
                // The byte is part of the character that it breaks.
                Some(_) if self.buffer.len() == 1 => self.abandon(),
                Some(_) => self.abandoned_by(byte, now),
            },
        }
    }

    fn escape(&mut self, byte: u8, now: Instant) {
        match byte {
            b'[' => self.wait(State::Csi, self.escape, now),
            b'O' => self.wait(State::Ss3, self.escape, now),
            b']' | b'P' | b'_' | b'^' | b'X' => {
                let string = ControlString { introducer: byte, begun: false };
                self.wait(State::Text(string), self.escape, now);
            }
            0x1b => {
                if self.alt {
                    self.push(KeyCode::Esc.into());
                }
                self.alt = true;
                self.wait(State::Escape, self.escape, now);
            }
            _ => {
                if self.alt {
                    self.push(KeyCode::Esc.into());
                }
                self.end();
                self.alt = true;
                self.ground(byte, now);
            }
        }
    }

    fn ss3(&mut self, byte: u8, now: Instant) {
        match sequence::ss3(byte) {
            Some(key) => self.finish(key),
            None => self.abandoned_by(byte, now),
        }
    }

    fn csi(&mut self, byte: u8, now: Instant) {
        match byte {
            0x20..=0x3f => {
                if self.buffer.is_empty() {
                    self.wait(State::Csi, SEQUENCE, now);
                }
                // One byte more than the longest is kept, so that the end shows that it was too long.
                if self.buffer.len() <= LONGEST {
                    self.buffer.push(byte);
                }
            }
            b'[' if self.buffer.is_empty() => self.wait(State::Console, SEQUENCE, now),
            b'M' if self.buffer.is_empty() => self.wait(State::Mouse, SEQUENCE, now),
            0x40..=0x7e => self.dispatch(byte, now),
            _ => self.abandoned_by(byte, now),
        }
    }

    fn dispatch(&mut self, last: u8, now: Instant) {
        let parsed = match self.buffer.len() {
            0..=LONGEST => sequence::csi(&self.buffer, last),
            _ => None,
        };
        match parsed {
            Some(Sequence::Key(key)) => self.finish(key),
            Some(Sequence::Other(event)) => {
                self.events.push(event);
                self.end();
            }
            Some(Sequence::PasteBegins) => {
                self.end();
                self.wait(State::Paste, PASTE, now);
            }
            None => {
                self.replies.extend(Reply::of_sequence(&self.buffer, last));
                self.end();
            }
        }
    }

    fn console(&mut self, byte: u8, now: Instant) {
        match byte {
            b'A'..=b'E' => self.finish(KeyCode::F(byte - b'A' + 1).into()),
            _ => self.abandoned_by(byte, now),
        }
    }

    fn mouse(&mut self, byte: u8, now: Instant) {
        if byte < 0x20 {
            return self.abandoned_by(byte, now);
        }
        self.buffer.push(byte);
        if let [button, column, row] = self.buffer[..] {
            self.events.extend(sequence::old_mouse(button, column, row));
            self.end();
        }
    }

    /// A byte of a control string. A control character other than its end is a key of a person who
    /// waits: no terminal sends one.
    fn text(&mut self, string: ControlString, byte: u8, now: Instant) {
        match byte {
            0x07 => self.end_text(string),
            0x1b => self.wait(State::TextEscape(string), self.escape, now),
            0x00..0x20 | 0x7f => self.abandoned_by(byte, now),
            _ => {
                // One byte more than the longest is kept, so that the end shows that it was too long.
                if self.buffer.len() <= LONGEST_TEXT {
                    self.buffer.push(byte);
                }
                if !string.begun {
                    let string = ControlString { begun: true, ..string };
                    self.wait(State::Text(string), SEQUENCE, now);
                }
            }
        }
    }

    /// Takes the rest of a control string after a long pause, and returns what follows it. The end of the string comes with
    /// the rest; bytes without one were typed, as the string may have lost its end.
    fn rest_of_text<'a>(&mut self, string: ControlString, bytes: &'a [u8]) -> &'a [u8] {
        let text = bytes.iter().take_while(|byte| is_text(byte)).count();
        let (text, end) = bytes.split_at(text);
        match end.strip_prefix(b"\x07").or_else(|| end.strip_prefix(b"\x1b\\")) {
            Some(behind) => {
                self.buffer.extend_from_slice(text);
                self.end_text(string);
                behind
            }
            None => {
                self.end();
                bytes
            }
        }
    }

    fn end_text(&mut self, string: ControlString) {
        if string.introducer == b']' && self.buffer.len() <= LONGEST_TEXT {
            self.replies.extend(Reply::of_string(&self.buffer));
        }
        self.end();
    }

    fn text_escape(&mut self, string: ControlString, byte: u8, now: Instant) {
        if byte == b'\\' {
            return self.end_text(string);
        }
        self.state = State::Text(string);
        self.abandon();
        self.wait(State::Escape, self.escape, now);
        self.escape(byte, now);
    }

    fn paste(&mut self, byte: u8, now: Instant) {
        self.buffer.push(byte);
        self.wait(State::Paste, PASTE, now);
        if self.buffer.ends_with(PASTE_ENDS) {
            self.buffer.truncate(self.buffer.len() - PASTE_ENDS.len());
            return self.paste_ends(now);
        }
        let ends = || (1..PASTE_ENDS.len()).any(|n| self.buffer.ends_with(&PASTE_ENDS[..n]));
        if self.buffer.len() >= PASTE_BYTES && byte < 0x80 && !ends() {
            self.abandon();
            self.wait(State::Paste, PASTE, now);
        }
    }

    fn paste_ends(&mut self, now: Instant) {
        self.abandon();
        self.pasted = Some(now);
        self.wait(State::Pasted, BURST, now);
    }

    fn pasted(&mut self, byte: u8, now: Instant) {
        self.buffer.push(byte);
        let ends = self.buffer.ends_with(PASTE_ENDS);
        if ends || self.buffer.len() >= PASTE_BYTES {
            let marks = if ends { PASTE_ENDS.len() } else { 0 };
            self.buffer.truncate(self.buffer.len() - marks);
            // With a beginning, it was a paste of its own.
            if self.buffer.starts_with(PASTE_BEGINS) {
                self.buffer.drain(..PASTE_BEGINS.len());
            }
            return self.paste_ends(now);
        }
        let until = self.pasted.unwrap_or(now) + PASTE;
        self.deadline = Some(until.min(now + BURST));
    }

    /// Goes on with a byte that does not belong to the unfinished state.
    fn abandoned_by(&mut self, byte: u8, now: Instant) {
        self.abandon();
        self.byte(byte, now);
    }

    /// Ends the unfinished state. What a person may have typed or pasted becomes events; the beginning of
    /// a longer sequence is dropped.
    fn abandon(&mut self) {
        match self.state {
            State::Ground | State::Console | State::Mouse | State::LateText(_) => {}
            State::Character => self.push(sequence::character(char::REPLACEMENT_CHARACTER)),
            State::Escape => {
                let times = if self.alt { 2 } else { 1 };
                self.alt = false;
                (0..times).for_each(|_| self.push(KeyCode::Esc.into()));
            }
            State::Ss3 => self.push_introducer(b'O'),
            State::Csi if self.buffer.is_empty() => self.push_introducer(b'['),
            State::Csi => {}
            State::Text(string) => self.abandon_text(string),
            State::TextEscape(string) => {
                self.abandon_text(string);
                self.alt = false;
                self.push(KeyCode::Esc.into());
            }
            State::Enter => self.push(KeyCode::Enter.into()),
            State::Paste | State::Pasted => self.push_paste(),
            State::Burst => return self.end_burst(),
        }
        self.end();
    }

    /// A character may be cut where the burst ends: its rest follows as typed bytes.
    fn end_burst(&mut self) {
        let cut = self.buffer.len() - unfinished_character(&self.buffer);
        let character = self.buffer.split_off(cut);
        self.push_paste();
        self.end();
        if !character.is_empty() {
            self.buffer = character;
            self.state = State::Character;
        }
    }

    fn push_paste(&mut self) {
        if !self.buffer.is_empty() {
            let text = String::from_utf8_lossy(&self.buffer).into_owned();
            self.events.push(Event::Paste(text));
        }
    }

    fn abandon_text(&mut self, string: ControlString) {
        if !string.begun {
            self.push_introducer(string.introducer);
        }
    }

    /// A sequence of which only the introducer came was that key with Alt.
    fn push_introducer(&mut self, byte: u8) {
        if self.alt {
            self.alt = false;
            self.push(KeyCode::Esc.into());
        }
        self.alt = true;
        self.push(sequence::character(char::from(byte)));
    }

    fn finish(&mut self, key: KeyEvent) {
        self.push(key);
        self.end();
    }

    fn push(&mut self, mut key: KeyEvent) {
        key.modifiers.set(KeyModifiers::ALT, self.alt || key.modifiers.contains(KeyModifiers::ALT));
        self.events.push(Event::Key(key));
    }

    fn wait(&mut self, state: State, wait: Duration, now: Instant) {
        self.state = state;
        self.deadline = Some(now + wait);
    }

    fn end(&mut self) {
        self.state = State::Ground;
        self.buffer.clear();
        self.alt = false;
        self.deadline = None;
    }
}

fn is_text(byte: &u8) -> bool {
    matches!(byte, 0x20..=0x7e | 0x80..)
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// How many bytes at the beginning are text, tabs and line ends.
fn plain_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_text(byte) || is_line_end(byte) || **byte == b'\t').count()
}

/// How many bytes at the end are the beginning of a character.
fn unfinished_character(bytes: &[u8]) -> usize {
    let is_unfinished = |count: &usize| {
        let end = bytes.len().checked_sub(*count).map(|at| &bytes[at..]);
        end.and_then(|end| std::str::from_utf8(end).err())
            .is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=3).find(is_unfinished).unwrap_or(0)
}

/// Whether a line ends between texts. `recent` tells that text came directly before.
fn has_inner_line_end(run: &[u8], recent: bool) -> bool {
    let first = if recent { Some(0) } else { run.iter().position(is_text) };
    let last = run.iter().rposition(is_text);
    let (Some(first), Some(last)) = (first, last) else { return false };
    run.get(first..last).is_some_and(|between| between.iter().any(is_line_end))
}
