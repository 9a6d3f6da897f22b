//! The text of a file as a model reads it, and a new text as it is written to that file: a result shows neither
//! line ends nor a byte order mark, so a model cannot write them.

use crate::text::{BYTE_ORDER_MARK, Decoded};
use crate::tools::line_diff::line_operations;
use std::borrow::Cow;

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
        let Decoded { text, has_mark, encoding } = Decoded::of(bytes);
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
}
