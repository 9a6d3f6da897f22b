//! The text in bytes that a person or a program of theirs wrote, in whichever encoding.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Bytes as text.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// Without a byte order mark.
    pub text: Cow<'a, str>,
    pub has_mark: bool,
    /// The encoding in words, if it is not UTF-8.
    pub encoding: Option<&'static str>,
}

impl<'a> Decoded<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let (text, encoding) = decoded(bytes);
        let has_mark = text.starts_with(BYTE_ORDER_MARK);
        let text = match (has_mark, text) {
            (true, Cow::Borrowed(text)) => Cow::Borrowed(&text[BYTE_ORDER_MARK.len_utf8()..]),
            (true, Cow::Owned(text)) => Cow::Owned(text[BYTE_ORDER_MARK.len_utf8()..].to_owned()),
            (false, text) => text,
        };
        Self { text, has_mark, encoding }
    }
}

/// The bytes without a character that a limit cut in its middle.
pub fn without_cut_character(bytes: &[u8]) -> &[u8] {
    if utf16(bytes).is_some() {
        return &bytes[..bytes.len() & !1];
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// The encoding that a byte order mark of UTF-16 names, and the name in words.
fn utf16(bytes: &[u8]) -> Option<(&'static encoding_rs::Encoding, &'static str)> {
    match bytes {
        [0xff, 0xfe, ..] => Some((UTF_16LE, "UTF-16 (little endian)")),
        [0xfe, 0xff, ..] => Some((UTF_16BE, "UTF-16 (big endian)")),
        _ => None,
    }
}

/// Bytes as text, and the encoding in words if it is not UTF-8. Which of the 8-bit encodings a text has cannot be
/// seen; the most frequent one is assumed, in which each byte is a character.
fn decoded(bytes: &[u8]) -> (Cow<'_, str>, Option<&'static str>) {
    if let Some((encoding, words)) = utf16(bytes) {
        let (text, is_damaged) = encoding.decode_without_bom_handling(&bytes[2..]);
        // A text in Latin-1 may begin with these two letters.
        if !is_damaged || bytes.contains(&0) {
            return (text, Some(words));
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), None);
    }
    let (mut wide, mut bad) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    match wide >= bad {
        true => (String::from_utf8_lossy(bytes), Some("UTF-8 with bad bytes, shown as \u{fffd}")),
        false => (
            WINDOWS_1252.decode_without_bom_handling(bytes).0,
            Some("an 8-bit encoding, shown as Windows-1252"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_its_encoding_and_the_words_name_it() {
        let utf16 = |text: &str, swap: bool| -> Vec<u8> {
            let units = text.encode_utf16();
            units
                .flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect()
        };
        for (bytes, text, words) in [
            (b"caf\xe9\n".to_vec(), "café\n", Some("8-bit")),
            (
                "é ü ✓".as_bytes().iter().copied().chain(*b"\xff").collect(),
                "é ü ✓\u{fffd}",
                Some("bad bytes"),
            ),
            (utf16("\u{feff}é\r\n日", false), "é\r\n日", Some("little")),
            (utf16("\u{feff}日本", true), "日本", Some("big")),
            (b"\xff\xfe!".to_vec(), "ÿþ!", Some("8-bit")),
            ("\u{feff}é".into(), "é", None),
        ] {
            let read = Decoded::of(&bytes);
            assert_eq!(read.text, text, "{bytes:?}");
            assert_eq!(
                read.encoding.map(|said| words.is_some_and(|part| said.contains(part))),
                words.map(|_| true),
                "{read:?}"
            );
        }
    }

    #[test]
    fn a_character_that_a_limit_cut_is_left_out_and_decides_no_encoding() {
        for (bytes, kept) in [
            ("ab\u{2713}".as_bytes(), 5),
            (&"ab\u{2713}".as_bytes()[..4], 2),
            (b"\xff\xfea\0b", 4),
            (b"caf\xe9\n", 5),
        ] {
            assert_eq!(without_cut_character(bytes), &bytes[..kept], "{bytes:?}");
        }
    }
}
