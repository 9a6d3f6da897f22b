//! The messages that were sent before, to be sent again.

use crate::screen::pane::composer::Message;
use serde::{Deserialize, Serialize};

/// How many messages are kept.
const KEPT: usize = 500;

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    pub message: Message,
}

/// Messages in the order they were sent, and the place while a person walks through them.
#[derive(Clone, Debug, Default)]
pub struct History {
    sent: Vec<Sent>,
    /// Where the walk is, and the draft it began with.
    walk: Option<(usize, Message)>,
}

impl History {
    /// Adds a message that is sent at `now`; the same one twice in a row is kept once.
    pub fn add(&mut self, message: &Message, now: u64) {
        if self.sent.last().is_some_and(|last| last.message.segments == message.segments) {
            return;
        }
        self.sent.push(Sent { at: now, message: message.clone() });
        if self.sent.len() > KEPT {
            self.sent.remove(0);
        }
    }

    /// Adds a message that leaves the line without being sent, unless it is in the history already.
    pub fn keep(&mut self, message: &Message, now: u64) {
        let known = |sent: &Sent| sent.message.segments == message.segments;
        if !message.segments.is_empty() && !self.sent.iter().any(known) {
            self.add(message, now);
        }
    }

    /// Ends the walk where it is. The draft that the walk began with is the newest message from then on.
    pub fn leave(&mut self) {
        if let Some((_, draft)) = self.walk.take() {
            self.keep_unsent(&draft);
        }
    }

    /// Adds a message that is still being written, as if it had been sent with the newest one: its time is the same at each
    /// call.
    pub fn keep_unsent(&mut self, message: &Message) {
        let newest = self.sent.last().map_or(0, |sent| sent.at);
        self.keep(message, newest);
    }

    /// The message before; `draft` is what the walk comes back to.
    pub fn older(&mut self, draft: impl FnOnce() -> Message) -> Option<Message> {
        let at = self.walk.as_ref().map_or(self.sent.len(), |(at, _)| *at).checked_sub(1)?;
        let draft = match self.walk.take() {
            Some((_, draft)) => draft,
            None => draft(),
        };
        self.walk = Some((at, draft));
        self.sent.get(at).map(|sent| sent.message.clone())
    }

    /// The message after, and at the end the draft the walk began with.
    pub fn newer(&mut self) -> Option<Message> {
        let (at, draft) = self.walk.take()?;
        match self.sent.get(at + 1) {
            Some(sent) => {
                self.walk = Some((at + 1, draft));
                Some(sent.message.clone())
            }
            None => Some(draft),
        }
    }

    /// All messages, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Message> {
        self.sent.iter().rev().map(|sent| &sent.message)
    }

    /// All messages, the oldest first, and the draft that a walk began with.
    pub fn all(&self) -> Vec<Sent> {
        let mut all = Self { walk: self.walk.clone(), sent: self.sent.clone() };
        all.leave();
        all.sent
    }

    /// The messages of an earlier screen.
    pub fn of(mut sent: Vec<Sent>) -> Self {
        sent.drain(..sent.len().saturating_sub(KEPT));
        Self { sent, walk: None }
    }
}
