//! Cuts a byte stream into lines as it arrives. Each byte is searched once, and a line that is too long is skipped
//! without being kept.

use bytes::{Bytes, BytesMut};

/// A line or an error in a byte stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<S = usize> {
    /// A line without its newline, not blank.
    Line(Bytes),
    /// A line longer than the limit was skipped; usually the number of its bytes.
    TooLong(S),
}

/// What is kept of a line that is skipped.
pub trait Skipped: Default {
    /// Takes the next piece of the line.
    fn skip(&mut self, piece: &[u8]);
}

impl Skipped for usize {
    fn skip(&mut self, piece: &[u8]) {
        *self += piece.len();
    }
}

/// The part of a stream whose lines were not taken yet. Its memory is bounded by the limit and what arrives at once.
#[derive(Debug)]
pub struct Framer<S = usize> {
    buffer: BytesMut,
    /// The length of the part of the buffer that was searched for a newline.
    searched: usize,
    skipped: Option<S>,
    /// The longest line, in bytes without its newline.
    limit: usize,
}

impl<S: Skipped> Framer<S> {
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, skipped: None, limit }
    }

    /// Changes the limit. It holds for the line that has begun, too.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes what arrived.
    pub fn feed(&mut self, arrived: &[u8]) {
        self.buffer.extend_from_slice(arrived);
    }

    /// The buffer with room for so many bytes more, to read into.
    pub fn room(&mut self, bytes: usize) -> &mut BytesMut {
        self.buffer.reserve(bytes);
        &mut self.buffer
    }

    /// The line that is being skipped.
    pub fn skipped(&self) -> Option<&S> {
        self.skipped.as_ref()
    }

    /// The next line that has ended.
    pub fn line(&mut self) -> Option<Frame<S>> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.skipped.is_some() || self.searched > self.limit {
                    self.skipped.get_or_insert_default().skip(&self.buffer);
                    self.buffer.clear();
                    self.searched = 0;
                }
                if self.buffer.is_empty() {
                    // A stream that rests keeps no memory.
                    self.buffer = BytesMut::new();
                }
                return None;
            };
            let mut line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            line.truncate(line.len() - 1);
            let is_too_long = line.len() > self.limit;
            if let Some(mut skipped) = self.skipped.take().or(is_too_long.then(S::default)) {
                skipped.skip(&line);
                return Some(Frame::TooLong(skipped));
            }
            if !line.trim_ascii().is_empty() {
                return Some(Frame::Line(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that arrives in pieces of `size` bytes; a line that is too long as its length.
    fn lines(text: &str, size: usize, limit: usize) -> Vec<String> {
        let (mut framer, mut found) = (Framer::<usize>::new(limit), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            framer.feed(piece);
            while let Some(frame) = framer.line() {
                found.push(match frame {
                    Frame::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                    Frame::TooLong(bytes) => format!("{bytes}!"),
                });
            }
            assert!(framer.buffer.len() <= limit);
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "one\n\n \n\u{e9}t\u{e9}\r\n0123456789\nlast is longer\n1234567890\nopen";
        for size in 1..text.len() {
            let expected = ["one", "\u{e9}t\u{e9}\r", "0123456789", "14!", "1234567890"];
            assert_eq!(lines(text, size, 10), expected, "{size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_memory_and_the_next_one_arrives() {
        let mut framer = Framer::<usize>::new(1_000);
        for _ in 0..10_000 {
            framer.feed(&[b'x'; 900]);
            assert_eq!(framer.line(), None);
            assert!(framer.buffer.capacity() <= 2_000);
        }
        framer.feed(b"\nnext\n");
        assert_eq!(framer.line(), Some(Frame::TooLong(9_000_000)));
        assert_eq!(framer.line(), Some(Frame::Line(Bytes::from_static(b"next"))));
    }

    #[test]
    fn a_lower_limit_holds_for_the_line_that_has_begun() {
        let mut framer = Framer::<usize>::new(10);
        framer.feed(b"12345");
        assert_eq!(framer.line(), None);
        framer.set_limit(4);
        framer.feed(b"\n1234\n");
        assert_eq!(framer.line(), Some(Frame::TooLong(5)));
        assert_eq!(framer.line(), Some(Frame::Line(Bytes::from_static(b"1234"))));
    }
}
