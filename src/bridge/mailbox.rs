//! Messages that arrived and that the client has not taken, in a file of lines: a message is in the file before its
//! sender reads `received`, and leaves it after the client took it. A line is appended whole, so a crash leaves the
//! messages that were kept, and no part of another one.

use crate::disk::{self, Appender, DiskError};
use crate::mesh::{Message, To};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

/// Bytes of messages that may wait.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Messages of one batch.
const BATCH: usize = 100;
/// Bytes of one batch. A batch has one message at least.
const BATCH_BYTES: usize = 48 * 1024;
/// Ids of messages that are known after they were taken, so that one sent again is not kept again.
const KNOWN: usize = 4_096;
/// Bytes of the file beyond those of the messages that wait, above which it is written anew.
const SLACK: u64 = 1024 * 1024;

/// A message as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub from: String,
    pub id: String,
    /// The id of the message that this one answers.
    pub re: Option<String>,
    pub to: Addressed,
    /// When it arrived, in milliseconds since 1970.
    pub at: u64,
    /// JSON as its sender wrote it.
    pub body: Box<RawValue>,
}

/// Whom a message was addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressed {
    /// This agent alone.
    You,
    Several,
    Everyone,
}

impl Kept {
    pub fn new(message: &Message, at: u64) -> Self {
        let to = match message.to {
            To::One(_) => Addressed::You,
            To::Many(_) => Addressed::Several,
            To::Broadcast => Addressed::Everyone,
        };
        let (id, re) = (message.id.to_string(), message.re.map(|re| re.to_string()));
        Self { from: message.from.clone(), id, re, to, at, body: message.body.clone() }
    }

    fn size(&self) -> usize {
        self.from.len() + self.body.get().len() + 128
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A message arrived.
    Kept(Kept),
    /// These messages are part of a batch that the client is sent.
    Given(Vec<String>),
    /// The client took these messages.
    Taken(Vec<String>),
}

/// What became of a message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Kept,
    /// It was here before.
    Known,
    /// So many messages wait that this one is not kept.
    Full,
}

/// Messages for the client, in the order in which they arrived.
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<Given>,
    /// Messages that wait behind this batch.
    pub waiting: usize,
}

/// A message of a batch.
#[derive(Clone, Debug)]
pub struct Given {
    pub message: Kept,
    /// Whether an earlier batch had it, so that the client may know it.
    pub again: bool,
}

/// The mailbox of one agent. Blocking; the lock of the agent makes this process its only writer.
pub struct Mailbox {
    path: PathBuf,
    /// `None` after a failure, until the file is written anew.
    file: Option<Appender>,
    waiting: VecDeque<Given>,
    bytes: usize,
    /// How many of the oldest ones the last batch had.
    outstanding: usize,
    known: HashSet<String>,
    /// The ids of messages that were taken, oldest first.
    taken: VecDeque<String>,
}

impl Mailbox {
    /// Opens the mailbox of an agent, or makes it.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        match disk::create(path, b"", 0o600) {
            Err(error) if error.source.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(error);
            }
            _ => {}
        }
        let (file, _) = Appender::open(path)?;
        let text = std::fs::read(path).map_err(DiskError::at("read", path))?;
        let mut mailbox = Self {
            path: path.to_owned(),
            file: Some(file),
            waiting: VecDeque::new(),
            bytes: 0,
            outstanding: 0,
            known: HashSet::new(),
            taken: VecDeque::new(),
        };
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(line) => mailbox.apply(line),
                Err(error) => tracing::warn!("a line of {} is damaged: {error}", path.display()),
            }
        }
        Ok(mailbox)
    }

    /// Writes messages that arrived to disk, and returns for each whether it was kept. At most `most` messages
    /// wait in all.
    pub fn keep(&mut self, arrived: Vec<Kept>, most: usize) -> Result<Vec<Arrival>, DiskError> {
        let (mut lines, mut outcome) = (Vec::new(), Vec::new());
        let (mut count, mut bytes) = (self.waiting.len(), self.bytes);
        let mut new = HashSet::new();
        for message in arrived {
            outcome.push(if self.known.contains(&message.id) || !new.insert(message.id.clone()) {
                Arrival::Known
            } else if count >= most || bytes + message.size() > MAX_BYTES {
                new.remove(&message.id);
                Arrival::Full
            } else {
                (count, bytes) = (count + 1, bytes + message.size());
                lines.push(Line::Kept(message));
                Arrival::Kept
            });
        }
        self.commit(lines)?;
        Ok(outcome)
    }

    /// The next messages for the client. `confirmed` says that it took the last batch; otherwise it is given that
    /// batch again.
    pub fn give(&mut self, confirmed: bool) -> Result<Batch, DiskError> {
        let mut lines = Vec::new();
        let ids = |given: &[&Given]| given.iter().map(|given| given.message.id.clone()).collect();
        let (skip, limit) = match (confirmed, self.outstanding) {
            (true, taken) => (taken, BATCH),
            (false, 0) => (0, BATCH),
            (false, again) => (0, again),
        };
        let taken: Vec<&Given> = self.waiting.iter().take(skip).collect();
        if !taken.is_empty() {
            lines.push(Line::Taken(ids(&taken)));
        }
        let mut bytes = 0;
        let batch: Vec<&Given> = self
            .waiting
            .iter()
            .skip(skip)
            .take(limit)
            .take_while(|given| {
                let first = bytes == 0;
                bytes += given.message.size();
                first || bytes <= BATCH_BYTES
            })
            .collect();
        let new: Vec<&Given> = batch.iter().copied().filter(|given| !given.again).collect();
        if !new.is_empty() {
            lines.push(Line::Given(ids(&new)));
        }
        let messages: Vec<Given> = batch.into_iter().cloned().collect();
        self.commit(lines)?;
        self.outstanding = messages.len();
        let waiting = self.waiting.len() - messages.len();
        Ok(Batch { messages, waiting })
    }

    /// Notes that the client took the last batch.
    pub fn confirm(&mut self) -> Result<(), DiskError> {
        let taken = self.waiting.iter().take(self.outstanding);
        let ids: Vec<String> = taken.map(|given| given.message.id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        self.commit(vec![Line::Taken(ids)])?;
        self.outstanding = 0;
        Ok(())
    }

    /// Whether the last batch has a message of this id.
    pub fn gave(&self, id: &str) -> bool {
        self.waiting.iter().take(self.outstanding).any(|given| given.message.id == id)
    }

    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Appends lines durably, and then applies them. After a failure the file is written anew, as it was before.
    fn commit(&mut self, lines: Vec<Line>) -> Result<(), DiskError> {
        if lines.is_empty() {
            return Ok(());
        }
        let live = self.bytes as u64;
        let file = match self.file.take() {
            Some(file) if file.length() <= 2 * live + SLACK => file,
            _ => self.rewrite()?,
        };
        let file = self.file.insert(file);
        if let Err(error) = file.append(&text(&lines)) {
            self.file = None;
            return Err(failure(error, &self.path));
        }
        lines.into_iter().for_each(|line| self.apply(line));
        Ok(())
    }

    /// Writes the file anew: what is known, and what waits.
    fn rewrite(&self) -> Result<Appender, DiskError> {
        let taken = Line::Taken(self.taken.iter().cloned().collect());
        let waiting = self.waiting.iter().map(|given| Line::Kept(given.message.clone()));
        let again = self.waiting.iter().filter(|given| given.again);
        let again = Line::Given(again.map(|given| given.message.id.clone()).collect());
        let lines: Vec<Line> =
            std::iter::once(taken).chain(waiting).chain(std::iter::once(again)).collect();
        disk::replace(&self.path, &text(&lines), 0o600)?;
        Ok(Appender::open(&self.path)?.0)
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Kept(message) => {
                if self.known.insert(message.id.clone()) {
                    self.bytes += message.size();
                    self.waiting.push_back(Given { message, again: false });
                }
            }
            Line::Given(ids) => {
                let ids: HashSet<String> = ids.into_iter().collect();
                let given = self.waiting.iter_mut().filter(|given| ids.contains(&given.message.id));
                given.for_each(|given| given.again = true);
            }
            Line::Taken(ids) => self.forget(ids),
        }
    }

    /// Drops messages that were taken; their ids stay known for a while.
    fn forget(&mut self, ids: Vec<String>) {
        let gone: HashSet<&String> = ids.iter().collect();
        self.waiting.retain(|given| !gone.contains(&given.message.id));
        self.bytes = self.waiting.iter().map(|given| given.message.size()).sum();
        self.known.extend(ids.iter().cloned());
        self.taken.extend(ids);
        let over = self.taken.len().saturating_sub(KNOWN);
        for id in self.taken.drain(..over) {
            self.known.remove(&id);
        }
    }
}

fn text(lines: &[Line]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).expect("names, ids and JSON are text");
        text.push(b'\n');
    }
    text
}

/// The failure of an append as one of the file.
fn failure(error: disk::AppendError, path: &Path) -> DiskError {
    match error {
        disk::AppendError::Disk(error) => error,
        other => DiskError::at("append to", path)(std::io::Error::other(other.to_string())),
    }
}

#[cfg(test)]
#[path = "tests/mailbox.rs"]
mod tests;
