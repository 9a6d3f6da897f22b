//! An entry of the log that is too large to send in one line: pieces of its JSON, and where the
//! words that a person reads lie in it.

use serde::{Deserialize, Serialize};

/// A part of an entry's line, in bytes of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: u64,
    /// The most bytes that are asked for; the host sends at most [`MAX_PIECE`].
    pub bytes: u64,
}

/// The longest piece that is sent at once, in bytes.
pub const MAX_PIECE: u64 = 1024 * 1024;

/// A JSON string inside a line, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSpan {
    /// The name of its field: `text`, `refusal`, `arguments`, `summary`, `content` or `body`.
    pub field: String,
    pub start: u64,
    /// The byte behind it.
    pub end: u64,
}

/// What the first piece of a line says about all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineShape {
    /// The size of the line in bytes, without its end.
    pub total: u64,
    /// Its texts, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextSpan>,
}

/// Decodes the inside of a JSON string that arrives in pieces: a piece may end inside an escape.
#[derive(Debug, Default)]
pub struct Unescape {
    /// The beginning of an escape that is not complete.
    rest: String,
}

/// The inside of a JSON string has an invalid escape or a bare quote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a text of the log is not valid JSON: {0}")]
pub struct NotJson(String);

impl Unescape {
    /// The beginning of an escape at the end of the pieces so far.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// The text that the next piece stands for.
    pub fn push(&mut self, piece: &str) -> Result<String, NotJson> {
        let mut raw = std::mem::take(&mut self.rest);
        raw.push_str(piece);
        self.rest = raw.split_off(complete(&raw));
        let quoted = format!("\"{raw}\"");
        serde_json::from_str(&quoted).map_err(|error| NotJson(error.to_string()))
    }
}

/// The length of the shortest beginning of `raw`, the inside of a JSON string, that decodes to `text` bytes.
pub fn encoded_len(raw: &str, text: usize) -> usize {
    let bytes = raw.as_bytes();
    let (mut at, mut left) = (0, text);
    while left > 0 && at < bytes.len() {
        let end = bytes.len().min(at.saturating_add(left));
        let Some(plain) = bytes[at..end].iter().position(|byte| *byte == b'\\') else { return end };
        let (length, character) = match Escape::at(&bytes[at + plain..]) {
            Some(Escape::Character { length, bytes }) => (length, bytes),
            // The two halves stand for one character of four bytes.
            Some(Escape::FirstHalf) => (PAIR, 4),
            None => (bytes.len(), 0),
        };
        at += plain + length;
        left = left.saturating_sub(plain + character);
    }
    at.min(bytes.len())
}

/// The length of the two escapes of a character beyond the first 65,536.
const PAIR: usize = 12;

/// An escape in a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `length` is that of the escape, `bytes` that of its character in UTF-8.
    Character { length: usize, bytes: usize },
    /// The first half of a surrogate pair, of six bytes; the second half follows.
    FirstHalf,
}

impl Escape {
    /// The escape that begins with the backslash at the beginning of `json`; `None` where it is not complete or not
    /// JSON. The second half of a pair alone is not an escape.
    pub fn at(json: &[u8]) -> Option<Self> {
        match json.get(1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                Some(Self::Character { length: 2, bytes: 1 })
            }
            b'u' => {
                let digits = json.get(2..6)?.iter();
                let number = digits.map(|digit| (*digit as char).to_digit(16));
                let number = number.reduce(|sum, digit| Some(sum? * 16 + digit?))??;
                match char::from_u32(number) {
                    Some(c) => Some(Self::Character { length: 6, bytes: c.len_utf8() }),
                    None => (number < 0xdc00).then_some(Self::FirstHalf),
                }
            }
            _ => None,
        }
    }
}

/// Where the last complete character or escape ends.
fn complete(raw: &str) -> usize {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(escape) = raw[at..].find('\\').map(|found| at + found) {
        let length = match Escape::at(&bytes[escape..]) {
            Some(Escape::Character { length, .. }) => length,
            // The first half of a pair is decoded together with the second.
            Some(Escape::FirstHalf) => PAIR,
            // The escape is not complete, or not JSON, which the decoder refuses.
            None if bytes.get(escape + 1) == Some(&b'u') => 6,
            None => 2,
        };
        if escape + length > raw.len() {
            return escape;
        }
        at = escape + length;
        if !raw.is_char_boundary(at) {
            return raw.len();
        }
    }
    raw.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_pieces_of_a_string_decode_to_the_string_wherever_it_is_cut(
            text in "([a\\\\\"\n\u{1}日🎈]|\\PC){0,40}",
            ascii in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut raw = serde_json::to_string(&text).unwrap();
            if ascii {
                raw = raw.encode_utf16().map(|unit| match u8::try_from(unit) {
                    Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
                    _ => format!("\\u{unit:04x}"),
                }).collect();
            }
            let raw = &raw[1..raw.len() - 1];
            let mut cuts: Vec<usize> = cuts.iter().map(|at| at.index(raw.len() + 1))
                .map(|at| raw.floor_char_boundary(at)).chain([0, raw.len()]).collect();
            cuts.sort_unstable();
            let mut decoder = Unescape::default();
            let decoded: String =
                cuts.windows(2).map(|cut| decoder.push(&raw[cut[0]..cut[1]]).unwrap()).collect();
            prop_assert_eq!(&decoded, &text);
            for (at, _) in text.char_indices() {
                let (before, behind) = raw.split_at(encoded_len(raw, at));
                prop_assert_eq!(Unescape::default().push(before).unwrap(), &text[..at]);
                prop_assert_eq!(Unescape::default().push(behind).unwrap(), &text[at..]);
            }
        }
    }

    #[test]
    fn what_is_no_string_is_refused() {
        assert!(Unescape::default().push("a\\qb").is_err());
        assert!(Unescape::default().push("a\"b").is_err());
    }
}
