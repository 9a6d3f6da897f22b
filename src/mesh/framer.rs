//! Cuts a byte stream into lines as it arrives. Each byte is searched once; only a line that arrives in
//! pieces is copied, and one that is too long is skipped without being kept.

use std::ops::ControlFlow;

/// What was cut out of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut<'a> {
    /// A line without its newline, not empty.
    Line(&'a [u8]),
    /// A line longer than the limit ended here.
    TooLong,
}

/// The beginning of a line that has not ended yet. Its memory is bounded by the limit.
#[derive(Debug)]
pub(crate) struct Framer {
    begun: Vec<u8>,
    skipping: bool,
    /// The longest line, in bytes without its newline.
    limit: usize,
}

impl Framer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { begun: Vec::new(), skipping: false, limit }
    }

    /// Changes the limit. It holds for the line that has begun, too.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes what arrived and gives each line that ended in it to `take`, until that breaks; then the rest is
    /// dropped.
    pub(crate) fn feed(
        &mut self,
        mut arrived: &[u8],
        mut take: impl FnMut(&mut Self, Cut<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(at) = memchr::memchr(b'\n', arrived) {
            let (line, rest) = (&arrived[..at], &arrived[at + 1..]);
            arrived = rest;
            if std::mem::take(&mut self.skipping) || self.begun.len() + line.len() > self.limit {
                self.begun = Vec::new();
                take(self, Cut::TooLong)?;
            } else if self.begun.is_empty() {
                if !line.is_empty() {
                    take(self, Cut::Line(line))?;
                }
            } else {
                let mut whole = std::mem::take(&mut self.begun);
                whole.extend_from_slice(line);
                take(self, Cut::Line(&whole))?;
            }
        }
        self.keep(arrived);
        ControlFlow::Continue(())
    }

    fn keep(&mut self, arrived: &[u8]) {
        self.skipping |= self.begun.len() + arrived.len() > self.limit;
        if self.skipping {
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(arrived);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that arrives in pieces of `size` bytes; a line that is too long as `!`.
    fn lines(text: &str, size: usize, limit: usize) -> Vec<String> {
        let (mut framer, mut found) = (Framer::new(limit), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            let flow = framer.feed(piece, |_, cut| {
                found.push(match cut {
                    Cut::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                    Cut::TooLong => "!".to_owned(),
                });
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue() && framer.begun.len() <= limit);
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "one\n\n\u{e9}t\u{e9}\r\n0123456789\nlast is longer\n1234567890\nopen";
        for size in 1..text.len() {
            let expected = ["one", "\u{e9}t\u{e9}\r", "0123456789", "!", "1234567890"];
            assert_eq!(lines(text, size, 10), expected, "{size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_memory_and_the_next_one_arrives() {
        let mut framer = Framer::new(1_000);
        for _ in 0..10_000 {
            assert!(framer.feed(&[b'x'; 900], |_, _| panic!("no line ended")).is_continue());
            assert!(framer.begun.capacity() <= 2_000);
        }
        let mut found = Vec::new();
        let _ = framer.feed(b"\nnext\n", |_, cut| {
            found.push(cut == Cut::TooLong);
            ControlFlow::Continue(())
        });
        assert_eq!(found, [true, false]);
    }

    #[test]
    fn a_lower_limit_holds_for_the_line_that_has_begun() {
        let (mut framer, mut found) = (Framer::new(10), Vec::new());
        assert!(framer.feed(b"12345", |_, _| panic!("no line ended")).is_continue());
        framer.set_limit(4);
        let _ = framer.feed(b"\n1234\n", |_, cut| {
            found.push(cut == Cut::TooLong);
            ControlFlow::Continue(())
        });
        assert_eq!(found, [true, false]);
    }

    #[test]
    fn no_line_is_taken_after_the_one_that_breaks() {
        let (mut framer, mut count) = (Framer::new(10), 0);
        let flow = framer.feed(b"a\nb\nc\n", |_, _| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(flow.is_break() && count == 2);
    }
}
