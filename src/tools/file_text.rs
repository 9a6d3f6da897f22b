//! The text of a file as a model reads it, and a new text as it belongs into that file: a result shows neither
//! line ends nor a byte order mark, so a model cannot write them.

use crate::tools::line_diff::line_operations;
use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of a file.
#[derive(Debug)]
pub struct FileText<'a> {
    /// Without a byte order mark, with the line ends of the file.
    pub text: Cow<'a, str>,
    pub has_mark: bool,
    /// The encoding in words, if it is not UTF-8.
    pub encoding: Option<&'static str>,
    pub ends: LineEnds,
}

/// The line ends of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    Lf,
    CrLf,
    /// As old programs of Apple write them.
    Cr,
    /// LF and CRLF.
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Self {
        let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
        match (all, crlf) {
            (0, _) if text.contains('\r') => Self::Cr,
            (_, 0) => Self::Lf,
            _ if all == crlf => Self::CrLf,
            _ => Self::Mixed,
        }
    }
}

impl<'a> FileText<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let (text, encoding) = decoded(bytes);
        let has_mark = text.starts_with(BYTE_ORDER_MARK);
        let text = match (has_mark, text) {
            (true, Cow::Borrowed(text)) => Cow::Borrowed(&text[BYTE_ORDER_MARK.len_utf8()..]),
            (true, Cow::Owned(text)) => Cow::Owned(text[BYTE_ORDER_MARK.len_utf8()..].to_owned()),
            (false, text) => text,
        };
        let ends = LineEnds::of(&text);
        Self { text, has_mark, encoding, ends }
    }

    /// The text with LF at the end of each line.
    pub fn plain(&self) -> Cow<'_, str> {
        match self.ends {
            LineEnds::Lf => Cow::Borrowed(&self.text),
            LineEnds::Cr => Cow::Owned(self.text.replace('\r', "\n")),
            LineEnds::CrLf | LineEnds::Mixed => Cow::Owned(self.text.replace("\r\n", "\n")),
        }
    }

    /// A whole new text for this file as it is written. Its byte order mark stays, and so do its line ends,
    /// unless the new text has CRLF itself.
    pub fn rewritten(&self, new: &str) -> String {
        let new = if self.has_mark { new.trim_start_matches(BYTE_ORDER_MARK) } else { new };
        match new.contains("\r\n") {
            true => self.marked(new),
            false => self.changed(new),
        }
    }

    /// A new version of [`FileText::plain`] as it is written.
    pub fn changed(&self, plain: &str) -> String {
        match self.ends {
            LineEnds::Lf => self.marked(plain),
            LineEnds::Cr => self.marked(&plain.replace('\n', "\r")),
            LineEnds::CrLf => self.marked(&plain.replace('\n', "\r\n")),
            LineEnds::Mixed => self.marked(&mixed(&self.text, plain)),
        }
    }

    /// A new version of the text, with the byte order mark of the file.
    pub fn marked(&self, text: &str) -> String {
        let mark = if self.has_mark { BYTE_ORDER_MARK.to_string() } else { String::new() };
        mark + text
    }
}

/// Bytes as text, and the encoding in words if it is not UTF-8. Which of the 8-bit encodings a file has cannot be
/// seen; the most frequent one is assumed, in which each byte is a character.
fn decoded(bytes: &[u8]) -> (Cow<'_, str>, Option<&'static str>) {
    for (mark, encoding, words) in [
        (b"\xff\xfe", UTF_16LE, "UTF-16 (little endian)"),
        (b"\xfe\xff", UTF_16BE, "UTF-16 (big endian)"),
    ] {
        let Some(rest) = bytes.strip_prefix(mark) else { continue };
        let (text, is_damaged) = encoding.decode_without_bom_handling(rest);
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

/// The new lines, each with the line end of the line that it comes from or that stood in its place; a further one
/// has that of the line before it.
fn mixed(former: &str, plain: &str) -> String {
    let split = |line: &'_ str| -> (String, bool) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let content = line.strip_suffix('\r');
        (content.unwrap_or(line).to_owned(), content.is_some())
    };
    let (old, is_crlf): (Vec<String>, Vec<bool>) = former.split_inclusive('\n').map(split).unzip();
    let new: Vec<&str> = plain.split('\n').collect();
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let mut written =
        String::with_capacity(plain.len() + former.len() - plain.len().min(former.len()));
    let mut end = is_crlf.first().copied().unwrap_or_default();
    for (from, to) in line_operations(&old, &new) {
        for (index, line) in new[to.clone()].iter().enumerate() {
            let last = from.end.saturating_sub(1);
            if !from.is_empty() {
                end = is_crlf[(from.start + index).min(last)];
            }
            written.push_str(line);
            if to.start + index + 1 < new.len() {
                written.push_str(if end { "\r\n" } else { "\n" });
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_mixed_file_keeps_its_own_end_and_a_new_one_has_that_of_the_line_before() {
        let former = "a\nb\r\nc\nd\r\n";
        for (plain, written) in [
            ("a\nb\nc\nd\n", former),
            ("a\nB\nc\nd\n", "a\nB\r\nc\nd\r\n"),
            ("a\nb\nb2\nb3\nc\nd\n", "a\nb\r\nb2\r\nb3\r\nc\nd\r\n"),
            ("b\nc\nd\ne\n", "b\r\nc\nd\r\ne\r\n"),
            ("x\na\nb\nc\nd", "x\na\nb\r\nc\nd"),
            ("", ""),
        ] {
            assert_eq!(FileText::of(former.as_bytes()).changed(plain), written, "{plain:?}");
        }
        let doubled = FileText::of(b"a\r\r\nb\r\n");
        assert_eq!(doubled.changed(&doubled.plain()), "a\r\r\nb\r\n");
    }

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
            let read = FileText::of(&bytes);
            assert_eq!(read.text, text, "{bytes:?}");
            assert_eq!(
                read.encoding.map(|said| words.is_some_and(|part| said.contains(part))),
                words.map(|_| true),
                "{read:?}"
            );
        }
    }
}
