//! One connection to the leader: its stream, the line that has not ended, and what waits to be written.

use crate::mesh::broker::now;
use crate::mesh::broker::queue::{Queue, Receipt};
use crate::mesh::id::Id;
use crate::protocol::Framer;
use std::collections::HashMap;
use std::io::{ErrorKind, Result};
use std::sync::Arc;
use std::time::Instant;
use tokio::net::UnixStream;

/// The longest line before a connection has registered, in bytes.
const FIRST_LINE: usize = 64 * 1024;

pub(crate) struct Connection {
    pub(crate) stream: Arc<UnixStream>,
    pub(crate) framer: Framer,
    pub(crate) queue: Queue,
    pub(crate) stage: Stage,
    /// Messages that were given to a member that confirms, by their ids.
    pub(crate) unconfirmed: HashMap<Id, Receipt>,
    /// Whether it stands in the list of those that have something to be written.
    pub(crate) dirty: bool,
    /// Since when it takes nothing.
    pub(crate) blocked: Option<Instant>,
}

pub(crate) enum Stage {
    /// Open since then.
    Unregistered(Instant),
    Member(Registered),
}

pub(crate) struct Registered {
    pub(crate) name: Arc<str>,
    /// The name as JSON.
    pub(crate) json: Arc<[u8]>,
    /// Whether it is a member of yoi.
    pub(crate) ours: bool,
    /// Whether it confirms each message that goes to it alone.
    pub(crate) confirms: bool,
    /// The place in the roster.
    pub(crate) joined: u64,
    /// Whether the member said that it leaves, and is off the roster. The gateway is on none.
    pub(crate) leaving: bool,
}

/// How far the queue of a connection was written.
pub(crate) enum Written {
    All,
    /// The connection takes no more now.
    Blocked,
    /// It took no more before and has not been ready since.
    StillBlocked,
}

impl Connection {
    pub(crate) fn new(stream: Arc<UnixStream>) -> Self {
        Self {
            stream,
            framer: Framer::new(FIRST_LINE),
            queue: Queue::default(),
            stage: Stage::Unregistered(now()),
            unconfirmed: HashMap::new(),
            dirty: false,
            blocked: None,
        }
    }

    pub(crate) fn is_member(&self) -> bool {
        matches!(self.stage, Stage::Member(_))
    }

    pub(crate) fn registered(&self) -> Option<&Registered> {
        match &self.stage {
            Stage::Member(registered) => Some(registered),
            Stage::Unregistered(_) => None,
        }
    }

    /// Writes until the queue is empty or the connection takes no more.
    pub(crate) fn write(&mut self) -> Result<Written> {
        if self.blocked.is_some() {
            return Ok(Written::StillBlocked);
        }
        while self.queue.len() > 0 {
            match self.stream.try_write(self.queue.pending()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.queue.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = Some(now());
                    return Ok(Written::Blocked);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Written::All)
    }
}
