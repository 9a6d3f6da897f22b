//! One connection of a member to its leader: what was read, what waits to be written, and who waits for an answer.

use crate::disk::FileId;
use crate::mesh::envelope::{Fate, confirmed};
use crate::mesh::id::Id;
use crate::mesh::member::resending::{Outgoing, Resends};
use crate::mesh::member::seen::Seen;
use crate::mesh::member::{Peer, Received, Standing};
use crate::mesh::watch::Watch;
use crate::protocol::{Frame, Framer};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Result};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// A connection that has registered.
pub(super) struct Session {
    pub(super) stream: UnixStream,
    pub(super) framer: Framer,
    /// Bytes to be written.
    pub(super) out: Vec<u8>,
    /// The name that was assigned.
    pub(super) name: String,
    /// Whether the leader is yoi.
    pub(super) ours: bool,
    /// The socket that the path led to.
    pub(super) socket: FileId,
    pub(super) watch: Watch,
    /// Messages whose acknowledgement is waited for, with their place in the order of sending.
    pub(super) pending: HashMap<Id, (u64, Outgoing)>,
    /// The place of the next one.
    pub(super) place: u64,
    pub(super) resends: Resends,
    pub(super) lists: HashMap<Id, oneshot::Sender<Vec<Peer>>>,
    /// What was read and has no room in the inbox yet.
    pub(super) parked: VecDeque<Received>,
    /// The messages that were given, of a member that confirms.
    pub(super) seen: Option<Seen>,
    /// The request that says to a leader of ours that this member leaves, and until when its answer is waited for.
    pub(super) farewell: Option<(Id, Instant)>,
    /// Whether the leader gives this member no further messages.
    pub(super) has_left: bool,
    /// Whether anything came since the last heartbeat.
    pub(super) alive: bool,
    /// Heartbeats in a row without a sign of the leader.
    pub(super) silent: u32,
}

impl Session {
    pub(super) fn standing(&self, leading: bool) -> Standing {
        Standing { name: self.name.clone(), leading, led_by_yoi: self.ours }
    }

    /// Writes what the leader takes now.
    pub(super) fn write(&mut self) -> Result<()> {
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the bytes that have arrived and handles each whole line.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.resize(PIECE, 0);
        let count = match self.stream.try_read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        self.alive = true;
        self.take(&buffer[..count]);
        Ok(())
    }

    /// Takes bytes that arrived.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.framer.feed(bytes);
        self.take_lines();
    }

    /// Takes the lines that have arrived.
    pub(super) fn take_lines(&mut self) {
        while let Some(frame) = self.framer.line() {
            if let Frame::Line(line) = frame {
                self.line(&line);
            }
        }
    }

    /// Writes a message and waits for its acknowledgement.
    pub(super) fn send(&mut self, message: Outgoing) {
        self.out.extend(message.line(&self.name));
        self.pending.insert(message.id, (self.place, message));
        self.place += 1;
    }

    /// Tells a leader of ours what became of a message.
    pub(super) fn confirm(&mut self, message: Id, fate: &Fate) {
        if self.ours {
            self.out.extend(confirmed(&self.name, Id::new(), message, fate));
        }
    }

    /// Whether this member may end: the leader knows that it leaves, and each message that it gave is confirmed or
    /// denied.
    pub(super) fn may_end(&self) -> bool {
        self.has_left && self.parked.is_empty() && self.seen.as_ref().is_none_or(Seen::is_settled)
    }

    /// Sends what waits for its turn and whose turn it is.
    pub(super) fn send_due(&mut self) {
        if self.resends.is_empty() {
            return;
        }
        let pending = &self.pending;
        for message in self.resends.next(|id| pending.contains_key(id)) {
            self.send(message);
        }
    }

    /// The messages whose outcome is not known, in the order of sending. Those that were sent are in doubt.
    pub(super) fn undecided(self) -> Vec<Outgoing> {
        let mut sent: Vec<(u64, Outgoing)> = self.pending.into_values().collect();
        sent.sort_by_key(|(place, _)| *place);
        let sent = sent.into_iter().map(|(_, message)| Outgoing { in_doubt: true, ..message });
        sent.chain(self.resends.into_messages()).collect()
    }
}
