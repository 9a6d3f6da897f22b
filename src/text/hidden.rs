//! Which characters a terminal acts on or does not show, and how they are spelled.

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The most marks upon one character that are shown. Words of no language need more; a heap of them covers the rows around
/// it, and is slow to draw.
const MARKS: usize = 8;

/// Which marks may follow the character before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// A blank, a joiner, or nothing yet: a mark would be invisible.
    #[default]
    Blank,
    Visible,
    /// A variation selector; a joiner may still follow.
    Variation,
}

/// Decides character by character what a person can see: joiners and variation selectors shape the
/// visible character before them, and hide something wherever else they stand. Of a heap of marks upon one character the
/// first few are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    last: Last,
    /// How many marks stand upon the last character.
    marks: usize,
}

impl Sight {
    /// Whether a character can be seen behind those that were shown so far; if so, it is shown.
    pub fn shows(&mut self, c: char) -> bool {
        let (shown, next) = match c {
            '\n' | '\t' => (true, Last::Blank),
            c if is_variation(c) => (self.last == Last::Visible, Last::Variation),
            c if is_joiner(c) => (self.last != Last::Blank, Last::Blank),
            c if is_mark(c) => {
                self.marks += 1;
                (self.marks <= MARKS && !is_removed(c), Last::Visible)
            }
            c if c.is_whitespace() => (!is_removed(c), Last::Blank),
            c => (!is_removed(c), Last::Visible),
        };
        if !shapes(c) {
            self.marks = 0;
        }
        if shown {
            self.last = next;
        }
        shown
    }

    /// The character before the next one is none of those that were shown.
    pub fn interrupt(&mut self) {
        *self = Self::default();
    }
}

/// Whether a character is drawn upon the one before it.
fn is_mark(c: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark};
    c >= '\u{300}'
        && matches!(
            CodePointMapData::<GeneralCategory>::new().get(c),
            NonspacingMark | EnclosingMark
        )
}

/// Whether a character belongs to the one before it.
fn shapes(c: char) -> bool {
    is_joiner(c) || is_variation(c) || is_mark(c)
}

/// A text in which the marks of a heap upon one character that are too many are their number: `⟨392 marks⟩`.
pub fn marks_counted(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut heap = 0;
    let heaps = |c| {
        heap = if shapes(c) { heap + 1 } else { 0 };
        heap > MARKS
    };
    if !text.chars().any(heaps) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let (mut marks, mut more) = (0, 0);
    for c in text.chars() {
        if !shapes(c) {
            note_heap(&mut more, &mut out);
            marks = 0;
        } else if is_mark(c) || more > 0 {
            marks += 1;
        }
        if marks > MARKS {
            more += 1;
        } else {
            out.push(c);
        }
    }
    note_heap(&mut more, &mut out);
    Cow::Owned(out)
}

fn note_heap(more: &mut usize, out: &mut String) {
    if *more > 0 {
        // Writing into a string cannot fail.
        let _ = write!(out, "⟨{more} marks⟩");
    }
    *more = 0;
}

/// Whether a character is removed from text of several lines wherever it stands.
pub fn is_removed(c: char) -> bool {
    c.is_control() || is_separator(c) || (is_invisible(c) && !is_joiner(c) && !is_variation(c))
}

/// Line and paragraph separators: some terminals break the line at them.
pub fn is_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Joiners shape the characters around them: emoji of families, Persian and Indic words.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Selects one of several forms of the character before it.
pub fn is_variation(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Characters that take part in the text but leave no mark on the screen: the default ignorable
/// characters of Unicode with bidi controls and tags among them, and interlinear annotations.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Blanks that look like a space and are another character, to a shell too.
fn is_other_blank(c: char) -> bool {
    c == '\u{2800}' || (c != ' ' && c.is_whitespace())
}

/// The spelled form of a line break. It is no escape such as `\n`, which can also be two characters of the text. One
/// that stands in the text is taken for a line break; a command with it runs no more than it seems to.
pub const LINE_BREAK: char = '⏎';

/// Whether the spelled form writes a character in another way.
pub fn is_spelled(c: char) -> bool {
    !matches!(c, ' '..='~')
        && (c.is_control() || is_separator(c) || is_invisible(c) || is_other_blank(c))
}

/// Appends a character as the spelled form shows it.
pub fn spell(c: char, out: &mut String) {
    match c {
        '\n' => out.push(LINE_BREAK),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        // Writing into a string cannot fail.
        c if c.is_ascii_control() => drop(write!(out, "\\x{:02x}", u32::from(c))),
        c if is_spelled(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        c => out.push(c),
    }
}

/// Whether a character of encoded JSON has to be replaced. Newlines and tabs between its values
/// stay.
pub fn is_hidden_in_json(c: char) -> bool {
    !matches!(c, '\n' | '\t') && is_spelled(c)
}

/// Appends a character of encoded JSON, as its `\u` escapes if it is hidden.
pub fn escape_for_json(c: char, out: &mut String) {
    match c {
        // Strings in JSON hold no bare carriage return, so this one is a blank between two values.
        '\r' => return out.push(' '),
        c if !is_hidden_in_json(c) => return out.push(c),
        _ => {}
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing into a string cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}
