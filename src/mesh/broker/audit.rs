//! The audit of a mesh: one line of JSON for each envelope that was routed, without its body, in the order of
//! routing. Lines are collected and written by a thread of their own, so the disk delays no message.

use crate::disk::RotatedFile;
use crate::mesh::id::{Id, now_ms};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Collected lines are handed over at this size, in bytes.
const BATCH: usize = 32 * 1024;
/// Batches that wait for the disk; when there are as many, further lines are counted and left out.
const WAITING: usize = 64;
/// How large the file may become before it is rotated, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Collects the lines of one leader.
pub(crate) struct Audit {
    lines: Vec<u8>,
    /// Lines that were left out because the disk was too slow.
    lost: u64,
    batches: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

/// What happened to an envelope.
pub(crate) struct Entry<'a> {
    /// Names are JSON already.
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
    pub(crate) id: Id,
    pub(crate) re: Option<Id>,
    pub(crate) status: &'static str,
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
        Self { lines: Vec::new(), lost: 0, batches: Some(batches), writer: writer.ok() }
    }

    /// Adds a line; `delivered` appends the names of the members that got the envelope, as JSON.
    pub(crate) fn add(&mut self, entry: &Entry<'_>, delivered: impl FnOnce(&mut Vec<u8>)) {
        let lines = &mut self.lines;
        lines.extend_from_slice(b"{\"ts\":");
        lines.extend_from_slice(now_ms().to_string().as_bytes());
        lines.extend_from_slice(b",\"from\":");
        lines.extend_from_slice(entry.from);
        lines.extend_from_slice(b",\"to\":");
        lines.extend_from_slice(entry.to);
        lines.extend_from_slice(b",\"id\":\"");
        lines.extend_from_slice(entry.id.as_bytes());
        match &entry.re {
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
        lines.extend_from_slice(entry.status.as_bytes());
        lines.extend_from_slice(b"\",\"via\":\"uds\"}\n");
        if lines.len() >= BATCH {
            self.hand_over();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Gives the collected lines to the thread that writes them.
    pub(crate) fn hand_over(&mut self) {
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
                // The line that says how many were lost before is none of them.
                self.lost += count as u64 - u64::from(self.lost > 0);
            }
        }
    }

    /// Writes what was collected. Blocking.
    pub(crate) fn close(mut self) {
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
