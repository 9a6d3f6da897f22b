//! The sequences that terminals send for keys, the mouse and the focus, one whole sequence at a time.

use crate::screen::keys::latin;
use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// The meaning of a sequence behind ESC [.
#[derive(Debug, PartialEq, Eq)]
pub enum Sequence {
    Key(KeyEvent),
    Other(Event),
    PasteBegins,
}

/// A typed character.
pub fn character(c: char) -> KeyEvent {
    let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    KeyEvent::new(KeyCode::Char(c), shift)
}

/// The key of a control character.
pub fn control(byte: u8) -> KeyEvent {
    let letter = match byte {
        b'\r' => return KeyCode::Enter.into(),
        b'\t' => return KeyCode::Tab.into(),
        0x7f => return KeyCode::Backspace.into(),
        0 => ' ',
        0x01..=0x1a => char::from(byte - 1 + b'a'),
        _ => char::from(byte.wrapping_sub(0x1c) % 4 + b'4'),
    };
    KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

/// The key of the letter behind ESC O.
pub fn ss3(letter: u8) -> Option<KeyEvent> {
    Some(match letter {
        b'M' => KeyCode::Enter.into(),
        b'j'..=b'y' => character(char::from(letter - 0x40)),
        _ => lettered(letter)?.into(),
    })
}

/// The meaning of a whole sequence behind ESC [: its parameters, and the byte that ends it. `None` for a
/// reply of the terminal, and for what nobody knows.
pub fn csi(parameters: &[u8], last: u8) -> Option<Sequence> {
    let text = std::str::from_utf8(parameters).ok()?;
    if let Some(text) = text.strip_prefix('<') {
        return mouse(&Numbers::of(text)?, last).map(Sequence::Other);
    }
    let numbers = Numbers::of(text)?;
    match (last, numbers.first()) {
        (b'I', 0) => Some(Sequence::Other(Event::FocusGained)),
        (b'O', 0) => Some(Sequence::Other(Event::FocusLost)),
        (b'Z', _) => Some(Sequence::Key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT))),
        (b'~', 200) => Some(Sequence::PasteBegins),
        (b'~', 27) => encoded(numbers.get(2, 0), &numbers).map(Sequence::Key),
        (b'~', number) => numbers.key(numbered(number)?).map(Sequence::Key),
        (b'u', code) => encoded(code, &numbers).map(Sequence::Key),
        // The position of the cursor is reported in the same form as F3 with a modifier.
        (b'R', _) => None,
        _ => numbers.key(lettered(last)?).map(Sequence::Key),
    }
}

/// A mouse event of the old form: three bytes, each with 32 added.
pub fn old_mouse(button: u8, column: u8, row: u8) -> Option<Event> {
    let cell = |byte: u8| u16::from(byte.saturating_sub(0x21));
    mouse_event(button.checked_sub(0x20)?, cell(column), cell(row))
}

/// The parameters of a sequence: numbers, each with its subparameters. A missing number is 0.
struct Numbers(Vec<Vec<u32>>);

impl Numbers {
    fn of(text: &str) -> Option<Self> {
        let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok() };
        let group = |text: &str| text.split(':').map(number).collect();
        text.split(';').map(group).collect::<Option<_>>().map(Self)
    }

    fn get(&self, group: usize, at: usize) -> u32 {
        self.0.get(group).and_then(|group| group.get(at)).copied().unwrap_or(0)
    }

    fn first(&self) -> u32 {
        self.get(0, 0)
    }

    fn modifiers(&self) -> KeyModifiers {
        let mask = self.get(1, 0).saturating_sub(1);
        let all = [
            KeyModifiers::SHIFT,
            KeyModifiers::ALT,
            KeyModifiers::CONTROL,
            KeyModifiers::SUPER,
            KeyModifiers::HYPER,
            KeyModifiers::META,
        ];
        let held = all.into_iter().enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
        held.map(|(_, modifier)| modifier).collect()
    }

    /// The key with the modifiers and the kind of the second parameter.
    fn key(&self, code: KeyCode) -> Option<KeyEvent> {
        let kind = match self.get(1, 1) {
            0 | 1 => KeyEventKind::Press,
            2 => KeyEventKind::Repeat,
            3 => KeyEventKind::Release,
            _ => return None,
        };
        Some(KeyEvent::new_with_kind(code, self.modifiers(), kind))
    }
}

/// The key with this code point, with the alternatives that the kitty protocol reports in the first parameter:
/// the shifted character and the key of the same place on a Latin keyboard.
fn encoded(code: u32, numbers: &Numbers) -> Option<KeyEvent> {
    let mut modifiers = numbers.modifiers();
    let code = match code {
        27 => KeyCode::Esc,
        13 => KeyCode::Enter,
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        8 | 127 => KeyCode::Backspace,
        57344..=63743 => functional(code)?,
        _ => {
            let printed = |at| char::from_u32(numbers.get(0, at)).filter(|c| !c.is_control());
            let c = char::from_u32(code).filter(|c| !c.is_control())?;
            let chord = modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            let shifted = printed(1).filter(|c| !c.is_alphabetic());
            KeyCode::Char(match shifted {
                _ if chord && !c.is_ascii() => printed(2).or_else(|| latin(c)).unwrap_or(c),
                Some(shifted) if modifiers.contains(KeyModifiers::SHIFT) => {
                    modifiers -= KeyModifiers::SHIFT;
                    shifted
                }
                _ => c,
            })
        }
    };
    Some(KeyEvent { modifiers, ..numbers.key(code)? })
}

/// Keys without a character in the kitty protocol. Keys of the keypad are those that they stand for.
fn functional(code: u32) -> Option<KeyCode> {
    const OPERATORS: [char; 5] = ['.', '/', '*', '-', '+'];
    const MOVES: [KeyCode; 11] = [
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Insert,
        KeyCode::Delete,
        KeyCode::KeypadBegin,
    ];
    let from = |first: u32| usize::try_from(code - first).unwrap_or(usize::MAX);
    Some(match code {
        57376..=57398 => KeyCode::F(u8::try_from(code - 57376).ok()? + 13),
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409..=57413 => KeyCode::Char(*OPERATORS.get(from(57409))?),
        57414 => KeyCode::Enter,
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417..=57427 => *MOVES.get(from(57417))?,
        _ => return None,
    })
}

/// The keys of sequences that end with `~`.
fn numbered(number: u32) -> Option<KeyCode> {
    let function = |less: u32| Some(KeyCode::F(u8::try_from(number - less).ok()?));
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => return function(10),
        17..=21 => return function(11),
        23..=26 => return function(12),
        28..=29 => return function(15),
        31..=34 => return function(17),
        _ => return None,
    })
}

/// The keys of sequences that end with a letter.
fn lettered(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'E' => KeyCode::KeypadBegin,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

fn mouse(numbers: &Numbers, last: u8) -> Option<Event> {
    let cell = |at| Some(u16::try_from(numbers.get(at, 0)).ok()?.saturating_sub(1));
    let button = u8::try_from(numbers.first()).ok()?;
    let event = mouse_event(button, cell(1)?, cell(2)?)?;
    match (last, event) {
        (b'M', event) => Some(event),
        (
            b'm',
            Event::Mouse(MouseEvent { kind: MouseEventKind::Down(button), column, row, modifiers }),
        ) => {
            let kind = MouseEventKind::Up(button);
            Some(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
        }
        _ => None,
    }
}

/// The bits of `code`, from the lowest: two of the button, Shift, Alt, Ctrl, whether the pointer moved, two
/// more of the button.
fn mouse_event(code: u8, column: u16, row: u16) -> Option<Event> {
    let button = (code & 0b11) | ((code & 0b1100_0000) >> 4);
    let moved = code & 0b10_0000 != 0;
    let kind = match (button, moved) {
        (0, false) => MouseEventKind::Down(MouseButton::Left),
        (1, false) => MouseEventKind::Down(MouseButton::Middle),
        (2, false) => MouseEventKind::Down(MouseButton::Right),
        (3, false) => MouseEventKind::Up(MouseButton::Left),
        (0, true) => MouseEventKind::Drag(MouseButton::Left),
        (1, true) => MouseEventKind::Drag(MouseButton::Middle),
        (2, true) => MouseEventKind::Drag(MouseButton::Right),
        (3, true) => MouseEventKind::Moved,
        (4, false) => MouseEventKind::ScrollUp,
        (5, false) => MouseEventKind::ScrollDown,
        (6, false) => MouseEventKind::ScrollLeft,
        (7, false) => MouseEventKind::ScrollRight,
        _ => return None,
    };
    let mut modifiers = KeyModifiers::NONE;
    modifiers.set(KeyModifiers::SHIFT, code & 0b100 != 0);
    modifiers.set(KeyModifiers::ALT, code & 0b1000 != 0);
    modifiers.set(KeyModifiers::CONTROL, code & 0b1_0000 != 0);
    Some(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
}
