//! What waits to be written to one connection. It is bounded: a message that has no room is not accepted, so a
//! member that reads slowly, or not at all, costs a bounded amount of memory and delays no other member.

use crate::mesh::broker::audit::{LineNumber, Message};
use std::collections::VecDeque;

/// What one queue may always hold, in bytes; one message also has room in an empty queue.
const SMALL: usize = 128 * 1024;
/// The most that one queue holds of messages, in bytes.
const LARGE: usize = 8 * 1024 * 1024;
/// Room above [`LARGE`] for lines of the leader itself; those without room are dropped.
const REPLIES: usize = 1024 * 1024;
/// The most that all queues hold above [`SMALL`] each, in bytes.
pub(crate) const ALL: usize = 128 * 1024 * 1024;
/// The most memory that an empty queue keeps, in bytes.
const KEPT: usize = 64 * 1024;

/// The acknowledgement that a message to one member gets later.
#[derive(Debug)]
pub(crate) struct Receipt {
    /// The connection of the sender.
    pub(crate) sender: u64,
    pub(crate) message: Message,
    /// The line of the message in the audit.
    pub(crate) line: LineNumber,
}

/// Bytes for one connection, and the acknowledgements that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    bytes: Vec<u8>,
    /// Where in `bytes` the first byte stands that was not written.
    start: usize,
    /// Bytes written since the connection began.
    written: u64,
    /// Each with the count of bytes, since the connection began, at which its message ends.
    receipts: VecDeque<(u64, Receipt)>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Whether a message of `more` bytes is accepted while all queues together hold `all` bytes.
    pub(crate) fn has_room(&self, more: usize, all: usize) -> bool {
        let filled = self.len() + more;
        self.len() == 0 || filled <= SMALL || filled <= LARGE && all + more <= ALL
    }

    /// Appends a line of the leader itself, if there is room; returns how many bytes that were.
    pub(crate) fn reply(&mut self, line: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.len() > LARGE + REPLIES {
            return 0;
        }
        self.append(line)
    }

    /// Appends a message; returns how many bytes that were.
    pub(crate) fn append(&mut self, line: impl FnOnce(&mut Vec<u8>)) -> usize {
        let before = self.bytes.len();
        line(&mut self.bytes);
        self.bytes.len() - before
    }

    /// Acknowledges what was appended so far to its sender, once it is written.
    pub(crate) fn receipt(&mut self, receipt: Receipt) {
        let end = self.written + self.len() as u64;
        self.receipts.push_back((end, receipt));
    }

    /// Notes that the first `count` pending bytes were written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.start += count;
        self.written += count as u64;
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// The next acknowledgement whose message was written whole.
    pub(crate) fn due(&mut self) -> Option<Receipt> {
        let written = self.written;
        self.receipts.pop_front_if(|(end, _)| *end <= written).map(|(_, receipt)| receipt)
    }

    /// The acknowledgements of messages that were not written.
    pub(crate) fn undelivered(&mut self) -> impl Iterator<Item = Receipt> + use<> {
        std::mem::take(&mut self.receipts).into_iter().map(|(_, receipt)| receipt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::id::Id;
    use std::sync::Arc;

    fn receipt(sender: u64) -> Receipt {
        let id = Id::parse("01a1ffb6-a2cb-7796-b04c-890887088394").unwrap();
        let name: Arc<[u8]> = b"\"x\""[..].into();
        let message = Message { from: name.clone(), to: name, id, re: None };
        Receipt { sender, message, line: LineNumber::default() }
    }

    #[test]
    fn a_message_is_acknowledged_when_its_last_byte_was_written() {
        let mut queue = Queue::default();
        for sender in 1..=2 {
            queue.append(|bytes| bytes.extend([b'x'; 10]));
            queue.receipt(receipt(sender));
        }
        queue.advance(9);
        assert!(queue.due().is_none());
        queue.advance(1);
        assert_eq!(queue.due().map(|receipt| receipt.sender), Some(1));
        assert!(queue.due().is_none());
        let left: Vec<u64> = queue.undelivered().map(|receipt| receipt.sender).collect();
        assert_eq!((left, queue.len()), (vec![2], 10));
    }

    #[test]
    fn bytes_stay_in_order_while_the_queue_moves() {
        let (mut queue, mut written, mut expected) =
            (Queue::default(), Vec::<u8>::new(), Vec::new());
        for round in 0..200_u8 {
            let piece = vec![round; usize::from(round) * 7];
            queue.append(|bytes| bytes.extend(&piece));
            expected.extend(piece);
            let count = queue.len() * 2 / 3;
            written.extend(&queue.pending()[..count]);
            queue.advance(count);
        }
        written.extend(queue.pending());
        assert_eq!(written, expected);
    }

    #[test]
    fn a_full_queue_refuses_messages_and_an_empty_one_takes_any() {
        let mut queue = Queue::default();
        assert!(queue.has_room(2 * LARGE, ALL));
        queue.append(|bytes| bytes.extend([0; 1000]));
        assert!(queue.has_room(SMALL - 1000, ALL) && !queue.has_room(SMALL, ALL));
        assert!(queue.has_room(LARGE - 1000, 0) && !queue.has_room(LARGE, 0));
        queue.append(|bytes| bytes.resize(LARGE + REPLIES + 1, 0));
        assert_eq!(queue.reply(|bytes| bytes.push(0)), 0);
    }

    #[test]
    fn a_queue_that_was_written_gives_its_memory_back() {
        let mut queue = Queue::default();
        queue.append(|bytes| bytes.resize(LARGE, 0));
        queue.advance(LARGE);
        assert!(queue.bytes.capacity() <= KEPT);
    }
}
