//! An entry of the log that is too large to send in one line: pieces of its JSON, and where the
//! words that a person reads lie in it.

use serde::{Deserialize, Serialize};

/// A part of an entry's line, in bytes of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: u64,
    /// At most this much is sent; the host sends at most [`MAX_PIECE`].
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

/// What stands in a JSON string is no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a text of the log is not valid JSON: {0}")]
pub struct NotJson(String);

impl Unescape {
    /// What of the pieces before is not decoded yet.
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

/// How many bytes of the inside of a JSON string stand for this many bytes of its text.
pub fn encoded_len(raw: &str, text: usize) -> usize {
    let bytes = raw.as_bytes();
    let (mut at, mut left) = (0, text);
    while left > 0 && at < bytes.len() {
        let end = bytes.len().min(at.saturating_add(left));
        let Some(plain) = bytes[at..end].iter().position(|byte| *byte == b'\\') else { return end };
        let (length, character) = escape(&raw[at + plain..]);
        at += plain + length;
        left = left.saturating_sub(plain + character);
    }
    at.min(bytes.len())
}

/// The length of the escape at the beginning, and of the character that it stands for.
fn escape(raw: &str) -> (usize, usize) {
    if raw.as_bytes().get(1) != Some(&b'u') {
        return (2, 1);
    }
    let code = raw.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    match code.map(char::from_u32) {
        Some(Some(c)) => (6, c.len_utf8()),
        // The first half of a pair: the two escapes stand for one character of four bytes.
        _ => (12, 4),
    }
}

/// Where the last complete character or escape ends.
fn complete(raw: &str) -> usize {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(escape) = raw[at..].find('\\').map(|found| at + found) {
        let length = match bytes.get(escape + 1) {
            Some(b'u') => {
                let code = raw
                    .get(escape + 2..escape + 6)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                // The first half of a pair is decoded together with the second.
                if code.is_some_and(|code| (0xd800..0xdc00).contains(&code)) { 12 } else { 6 }
            }
            _ => 2,
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
