//! One connection of a member to its leader: what was read, what waits to be written, and who waits for an answer.

use crate::disk::FileId;
use crate::mesh::framer::{Cut, Framer};
use crate::mesh::id::Id;
use crate::mesh::member::{Received, Sent, Standing, Status};
use crate::mesh::watch::Watch;
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Result};
use std::ops::ControlFlow;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// What is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// A message whose acknowledgement is waited for.
pub(super) struct Pending {
    pub(super) to: String,
    pub(super) done: oneshot::Sender<Sent>,
}

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
    pub(super) pending: HashMap<Id, Pending>,
    pub(super) lists: HashMap<Id, oneshot::Sender<Vec<String>>>,
    /// What was read and has no room in the inbox yet.
    pub(super) parked: VecDeque<Received>,
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
        let mut framer = std::mem::take(&mut self.framer);
        let _ = framer.feed(bytes, |_, cut| {
            if let Cut::Line(line) = cut {
                self.line(line);
            }
            ControlFlow::Continue(())
        });
        self.framer = framer;
    }

    /// Says that nothing is known of the messages in flight: the leader is gone.
    pub(super) fn fail(self) {
        for (id, pending) in self.pending {
            let reason =
                Some("the mesh leader ended before it acknowledged the message".to_owned());
            // A caller that gave up waits no more.
            let _ = pending.done.send(Sent { id, status: Status::Timeout, reason });
        }
    }
}
