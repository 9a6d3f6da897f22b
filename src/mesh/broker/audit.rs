//! The audit of a mesh: one line of JSON for each envelope that was routed, without its body, in the order of
//! routing. Lines are collected and written by a thread of their own, so the disk delays no message.
//!
//! A line has the outcome of its envelope, so the line of an unacknowledged message is held back,
//! with the lines after it. After [`HELD_FOR`], or when too many are held, it is written with the
//! status `none`, and an acknowledgement that comes later gets a line of its own.

use crate::disk::RotatedFile;
use crate::mesh::id::Id;
use crate::protocol::now_ms;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Collected lines are handed over at this size, in bytes.
const BATCH: usize = 32 * 1024;
/// The most batches that wait for the disk; further lines are dropped and counted.
const WAITING: usize = 128;
/// The size at which the file is rotated, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// How long the line of a message waits for its acknowledgement.
const HELD_FOR: Duration = Duration::from_secs(1);
/// The most lines that are held back. They are released at once, so they fit the batches that may wait.
const MAX_HELD: usize = 8 * 1024;

/// Collects the lines of one leader.
pub(crate) struct Audit {
    lines: Vec<u8>,
    /// The held lines, from the oldest one without an acknowledgement on.
    held: VecDeque<Held>,
    /// The number of the first line that is held.
    first_held: u64,
    /// Lines that were left out because the disk was too slow.
    lost: u64,
    batches: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

/// The outcome of an envelope.
pub(crate) struct Entry<'a> {
    /// Names are JSON already.
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
    pub(crate) id: Id,
    pub(crate) re: Option<Id>,
    pub(crate) status: &'static str,
    /// Why it was denied, as JSON, where that is noted.
    pub(crate) why: Option<&'a [u8]>,
}

/// A message to one member that is not acknowledged yet.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The name of the sender, and that of the addressee, as JSON.
    pub(crate) from: Arc<[u8]>,
    pub(crate) to: Arc<[u8]>,
    pub(crate) id: Id,
    pub(crate) re: Option<Id>,
}

/// The number of the line of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineNumber(u64);

/// A line that is held back.
enum Held {
    /// The line of a message to one member, and its outcome once that is known.
    Message { ts: u64, since: Instant, message: Message, status: Option<&'static str> },
    /// A complete line after a held one.
    Whole(Vec<u8>),
}

impl Held {
    fn is_due(&self) -> bool {
        match self {
            Self::Message { since, status, .. } => status.is_some() || since.elapsed() > HELD_FOR,
            Self::Whole(_) => true,
        }
    }

    fn write(self, lines: &mut Vec<u8>) {
        match self {
            Self::Message { ts, message, status, .. } => {
                message.write(lines, ts, status.unwrap_or("none"));
            }
            Self::Whole(line) => lines.extend(line),
        }
    }
}

impl Message {
    fn write(&self, lines: &mut Vec<u8>, ts: u64, status: &'static str) {
        let Self { from, to, id, re } = self;
        let entry = Entry { from, to, id: *id, re: *re, status, why: None };
        // A denied message reached no agent.
        let delivered: &[u8] = if status == "denied" { b"" } else { to };
        entry.write(lines, ts, |names| names.extend_from_slice(delivered));
    }
}

impl Entry<'_> {
    fn write(&self, lines: &mut Vec<u8>, ts: u64, delivered: impl FnOnce(&mut Vec<u8>)) {
        lines.extend_from_slice(b"{\"ts\":");
        lines.extend_from_slice(ts.to_string().as_bytes());
        lines.extend_from_slice(b",\"from\":");
        lines.extend_from_slice(self.from);
        lines.extend_from_slice(b",\"to\":");
        lines.extend_from_slice(self.to);
        lines.extend_from_slice(b",\"id\":\"");
        lines.extend_from_slice(self.id.as_bytes());
        match &self.re {
            None => lines.extend_from_slice(b"\",\"re\":null"),
            Some(re) => {
                lines.extend_from_slice(b"\",\"re\":\"");
                lines.extend_from_slice(re.as_bytes());
                lines.push(b'"');
            }
        }
        lines.extend_from_slice(b",\"delivered\":[");
        delivered(lines);
        lines.extend_from_slice(b"],\"ack_status\":\"");
        lines.extend_from_slice(self.status.as_bytes());
        lines.extend_from_slice(b"\",\"via\":\"uds\"");
        if let Some(why) = self.why {
            lines.extend_from_slice(b",\"why\":");
            lines.extend_from_slice(why);
        }
        lines.extend_from_slice(b"}\n");
    }
}

impl Audit {
    pub(crate) fn start(path: &Path) -> Self {
        let (batches, waiting) = sync_channel(WAITING);
        let file = RotatedFile::at(path, MAX_FILE);
        let writer = std::thread::Builder::new().name("mesh-audit".to_owned());
        let writer = writer.spawn(move || write(file, &waiting));
        if let Err(error) = &writer {
            tracing::warn!("the mesh is not audited: no thread can be started: {error}");
        }
        Self {
            lines: Vec::new(),
            held: VecDeque::new(),
            first_held: 0,
            lost: 0,
            batches: Some(batches),
            writer: writer.ok(),
        }
    }

    /// Adds a line; `delivered` appends the names of the members that got the envelope, as JSON.
    pub(crate) fn add(&mut self, entry: &Entry<'_>, delivered: impl FnOnce(&mut Vec<u8>)) {
        if self.held.is_empty() {
            entry.write(&mut self.lines, now_ms(), delivered);
            self.hand_over_if_full();
        } else {
            let mut line = Vec::new();
            entry.write(&mut line, now_ms(), delivered);
            self.hold(Held::Whole(line));
        }
    }

    /// Adds the line of a message to one member, whose acknowledgement comes later.
    pub(crate) fn add_unacknowledged(&mut self, message: Message) -> LineNumber {
        let held = Held::Message { ts: now_ms(), since: Instant::now(), message, status: None };
        self.hold(held)
    }

    /// Notes the outcome of a message to one member.
    pub(crate) fn acknowledged(
        &mut self,
        line: LineNumber,
        message: &Message,
        status: &'static str,
    ) {
        let held = line.0.checked_sub(self.first_held).and_then(|at| usize::try_from(at).ok());
        match held.and_then(|at| self.held.get_mut(at)) {
            Some(Held::Message { status: known, .. }) => *known = Some(status),
            // The line was written without the outcome.
            Some(Held::Whole(_)) | None => {
                let mut line = Vec::new();
                message.write(&mut line, now_ms(), status);
                self.hold(Held::Whole(line));
            }
        }
        self.release();
    }

    fn hold(&mut self, held: Held) -> LineNumber {
        self.held.push_back(held);
        let number = self.first_held + self.held.len() as u64 - 1;
        if self.held.len() > MAX_HELD {
            self.release_first();
        }
        LineNumber(number)
    }

    /// Removes the complete lines from the front.
    fn release(&mut self) {
        while self.held.front().is_some_and(Held::is_due) {
            self.release_first();
        }
    }

    fn release_first(&mut self) {
        if let Some(held) = self.held.pop_front() {
            self.first_held += 1;
            held.write(&mut self.lines);
            self.hand_over_if_full();
        }
    }

    fn hand_over_if_full(&mut self) {
        if self.lines.len() >= BATCH {
            self.hand_over();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.held.is_empty()
    }

    /// Gives the complete lines at the front to the thread that writes them.
    pub(crate) fn look(&mut self) {
        self.release();
        self.hand_over();
    }

    /// Gives the collected lines to the thread that writes them.
    fn hand_over(&mut self) {
        let Some(batches) = self.batches.as_ref().filter(|_| !self.lines.is_empty()) else {
            return;
        };
        let mut batch = std::mem::take(&mut self.lines);
        if self.lost > 0 {
            batch.extend_from_slice(
                format!("{{\"ts\":{},\"lost\":{}}}\n", now_ms(), self.lost).as_bytes(),
            );
        }
        match batches.try_send(batch) {
            Ok(()) => self.lost = 0,
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                let count = batch.split(|byte| *byte == b'\n').count() - 1;
                // The line with the number of lost lines is not one of them.
                self.lost += count as u64 - u64::from(self.lost > 0);
            }
        }
    }

    /// Writes what was collected. Blocking.
    pub(crate) fn close(mut self) {
        while !self.held.is_empty() {
            self.release_first();
        }
        self.hand_over();
        drop(self.batches.take());
        // A thread that panicked has written what it could.
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

/// Writes batches until there are no more. The first error is logged; later batches are tried again.
fn write(mut file: RotatedFile, batches: &Receiver<Vec<u8>>) {
    let mut failed = false;
    while let Ok(batch) = batches.recv() {
        match file.append(&batch) {
            Ok(()) => failed = false,
            Err(error) if !failed => {
                failed = true;
                tracing::warn!("lines of the mesh audit are lost: {error}");
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: &str) -> Message {
        let json = |name: &str| -> Arc<[u8]> { format!("\"{name}\"").into_bytes().into() };
        Message { from: json(from), to: json("pod"), id: Id::new(), re: None }
    }

    /// The senders and statuses of the lines that `fill` adds.
    fn lines(fill: impl FnOnce(&mut Audit)) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::start(&path);
        fill(&mut audit);
        audit.close();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let word = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap().to_owned();
        lines.map(|line| (word(&line, "from"), word(&line, "ack_status"))).collect()
    }

    fn pair(from: &str, status: &str) -> (String, String) {
        (from.to_owned(), status.to_owned())
    }

    #[test]
    fn a_line_waits_for_the_acknowledgement_and_those_behind_it_for_the_line() {
        let found = lines(|audit| {
            let (first, second) = (message("a"), message("b"));
            let of_first = audit.add_unacknowledged(first.clone());
            let of_second = audit.add_unacknowledged(second.clone());
            let many = Entry {
                from: b"\"c\"",
                to: b"[]",
                id: first.id,
                re: None,
                status: "none",
                why: None,
            };
            audit.add(&many, |_| {});
            audit.acknowledged(of_second, &second, "received");
            assert!(audit.lines.is_empty());
            audit.acknowledged(of_first, &first, "denied");
            assert!(audit.held.is_empty());
        });
        assert_eq!(found, [pair("a", "denied"), pair("b", "received"), pair("c", "none")]);
    }

    #[test]
    fn an_acknowledgement_that_comes_behind_too_many_lines_has_a_line_of_its_own() {
        let found = lines(|audit| {
            let first = message("a");
            let of_first = audit.add_unacknowledged(first.clone());
            for _ in 0..MAX_HELD {
                let next = message("b");
                let of_next = audit.add_unacknowledged(next.clone());
                audit.acknowledged(of_next, &next, "received");
            }
            assert!(audit.held.len() <= MAX_HELD);
            audit.acknowledged(of_first, &first, "denied");
            audit.add_unacknowledged(message("c"));
        });
        assert_eq!((found.len(), &found[0]), (MAX_HELD + 3, &pair("a", "none")));
        assert_eq!(found[MAX_HELD + 1..], [pair("a", "denied"), pair("c", "none")]);
    }
}
