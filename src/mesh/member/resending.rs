//! What was in flight when a leader ended, and what is sent to the same addressees behind it. The next leader of
//! yoi gets such a message again under its id, marked as sent again, and passes it on to a member that confirms
//! only: that one knows by the id whether it has the message. Each addressee gets one message after the other, so
//! the messages of a pair stay in order.

use crate::mesh::envelope::{To, line, line_again};
use crate::mesh::id::Id;
use crate::mesh::member::{Sent, Status};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Between two tries to reach an addressee that has not joined the next leader yet.
const AGAIN: Duration = Duration::from_millis(20);

/// How long an addressee is waited for under the next leader: members of yoi find it within 2 s.
const PATIENCE: Duration = Duration::from_millis(2500);

/// A message to one member whose outcome is not known.
pub(super) struct Outgoing {
    /// In whose name the gateway sends it; `None`: in its own, as every member.
    pub(super) from: Option<String>,
    pub(super) id: Id,
    pub(super) to: String,
    pub(super) re: Option<Id>,
    pub(super) body: String,
    pub(super) done: oneshot::Sender<Sent>,
    /// Whether a leader that is gone may have delivered it.
    pub(super) in_doubt: bool,
}

impl Outgoing {
    /// Its line, under the name of this member.
    pub(super) fn line(&self, from: &str) -> Vec<u8> {
        let write = if self.in_doubt { line_again } else { line };
        let from = self.from.as_deref().unwrap_or(from);
        write(from, &To::One(self.to.clone()), self.id, self.re, &self.body)
    }

    /// Says what became of it.
    pub(super) fn finish(self, status: Status, reason: Option<String>) {
        // A caller that gave up waits no more.
        let _ = self.done.send(Sent { id: self.id, status, reason });
    }

    /// Says that nothing is known of it.
    pub(super) fn fail(self) {
        let reason = "the mesh leader ended before it acknowledged the message";
        self.finish(Status::Timeout, Some(reason.to_owned()));
    }
}

/// Messages that wait for their turn, by their addressee.
pub(super) struct Resends {
    queues: HashMap<String, VecDeque<Outgoing>>,
    /// The message of an addressee that is in flight.
    in_flight: HashMap<String, Id>,
    /// When the first messages of addressees that were not there are tried again.
    pub(super) again: Option<Instant>,
    /// Until when an addressee that is not there is waited for.
    until: Instant,
}

impl Resends {
    /// Messages in their order, under a leader that was just joined.
    pub(super) fn of(messages: Vec<Outgoing>) -> Self {
        let until = Instant::now() + PATIENCE;
        let (queues, in_flight) = (HashMap::new(), HashMap::new());
        let mut resends = Self { queues, in_flight, again: None, until };
        for message in messages {
            resends.queues.entry(message.to.clone()).or_default().push_back(message);
        }
        resends
    }

    /// Takes a new message if older ones to its addressee wait; otherwise gives it back.
    pub(super) fn behind(&mut self, message: Outgoing) -> Option<Outgoing> {
        let Some(queue) = self.queues.get_mut(&message.to) else { return Some(message) };
        queue.push_back(message);
        None
    }

    /// The messages to send now: the first one of each addressee without one in flight.
    pub(super) fn next(&mut self, is_pending: impl Fn(&Id) -> bool) -> Vec<Outgoing> {
        self.in_flight.retain(|_, id| is_pending(id));
        let mut due = Vec::new();
        let in_flight = &mut self.in_flight;
        self.queues.retain(|to, queue| {
            queue.retain(|message| !message.done.is_closed());
            if in_flight.contains_key(to) {
                return true;
            }
            if let Some(message) = queue.pop_front() {
                in_flight.insert(to.clone(), message.id);
                due.push(message);
                return true;
            }
            false
        });
        due
    }

    /// Puts back a message whose addressee is not there yet, or gives it up.
    pub(super) fn put_back(&mut self, message: Outgoing) {
        self.in_flight.remove(&message.to);
        if Instant::now() > self.until {
            let reason = "the mesh leader ended before it acknowledged the message, and the agent has not joined \
                          the next one";
            message.finish(Status::Timeout, Some(reason.to_owned()));
            self.again.get_or_insert_with(Instant::now);
            return;
        }
        self.queues.entry(message.to.clone()).or_default().push_front(message);
        self.again.get_or_insert_with(|| Instant::now() + AGAIN);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Every message that waits; those of one addressee in their order.
    pub(super) fn into_messages(self) -> Vec<Outgoing> {
        self.queues.into_values().flatten().collect()
    }
}
