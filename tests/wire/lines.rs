//! Cutting a byte stream into lines, under any chunking.

use bytes::Bytes;
use futures_util::FutureExt as _;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use yoi::protocol::Frame;
use yoi::protocol::frame::Lines;

/// Gives the chunks one by one, and between any two of them has nothing for once.
struct Chunks {
    chunks: VecDeque<Vec<u8>>,
    dry: bool,
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.dry = !self.dry;
        if self.dry {
            return Poll::Pending;
        }
        if let Some(mut chunk) = self.chunks.pop_front() {
            let rest = chunk.split_off(chunk.len().min(into.remaining()));
            into.put_slice(&chunk);
            if !rest.is_empty() {
                self.chunks.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// All frames of the stream. Every pending read is dropped and begun anew.
fn frames(chunks: Vec<Vec<u8>>, limit: usize) -> Vec<Frame> {
    let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
    let mut lines = Lines::new(Chunks { chunks, dry: false }, limit);
    let mut found = Vec::new();
    loop {
        match lines.next().now_or_never() {
            None => {}
            Some(Ok(Some(frame))) => found.push(frame),
            Some(Ok(None)) => return found,
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

/// What the frames of `bytes` are, said plainly.
fn expected(bytes: &[u8], limit: usize) -> Vec<Frame> {
    let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    lines.pop();
    let frame = |line: &[u8]| match line.len() > limit {
        true => Some(Frame::TooLong(line.len())),
        false if line.iter().all(u8::is_ascii_whitespace) => None,
        false => Some(Frame::Line(Bytes::copy_from_slice(line))),
    };
    lines.into_iter().filter_map(frame).collect()
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_lines(
        bytes in proptest::collection::vec(prop_oneof![2 => Just(b'\n'), 1 => Just(b' '), 6 => any::<u8>()], 0..300),
        cuts in proptest::collection::vec(0..300_usize, 0..20),
        limit in 1..40_usize,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect();
        prop_assert_eq!(frames(chunks, limit), expected(&bytes, limit));
    }
}

#[test]
fn a_line_in_two_writes_is_one_line() {
    let chunks = vec![b"{\"met".to_vec(), b"hod\":\"pause\"}\n".to_vec()];
    let whole = Bytes::from_static(b"{\"method\":\"pause\"}");
    assert_eq!(frames(chunks, 64), [Frame::Line(whole)]);
}

#[test]
fn a_line_of_two_mebibytes_arrives_whole() {
    let mut bytes = vec![b'x'; 2 * 1024 * 1024];
    bytes.push(b'\n');
    let found = frames(bytes.chunks(4096).map(<[u8]>::to_vec).collect(), 4 * 1024 * 1024);
    let [Frame::Line(line)] = found.as_slice() else { panic!("one line") };
    assert_eq!(line.len(), 2 * 1024 * 1024);
}

#[test]
fn after_a_line_that_is_too_long_the_next_one_is_read() {
    let chunks = vec![b"0123456789".to_vec(), b"0123456789\nok\n".to_vec()];
    let found = frames(chunks, 8);
    assert_eq!(found, [Frame::TooLong(20), Frame::Line(Bytes::from_static(b"ok"))]);
}
