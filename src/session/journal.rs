//! The one writer of a segment: what it commits is on disk before the caller goes on. Commits that
//! arrive while the disk is busy become the next group, one write and one sync for all of them.

use crate::disk::{self, Appender, DiskError};
use crate::protocol::entry::Entry;
use crate::protocol::name::SegmentId;
use crate::session::open::{self, Opened};
use crate::session::partial::{self, Partial};
use crate::session::{Files, LogError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Commits that wait for the disk; when so many do, the next caller waits.
const WAITING: usize = 64;

/// A handle to an open segment. When the last one is dropped the segment is closed.
#[derive(Clone)]
pub struct Journal {
    requests: mpsc::Sender<JournalRequest>,
    partial: partial::Block,
    end: Arc<AtomicU64>,
    path: Arc<Path>,
}

enum JournalRequest {
    Commit(Commit),
    /// Dropped when everything before it is done.
    Close(oneshot::Sender<()>),
}

struct Commit {
    lines: Vec<u8>,
    done: oneshot::Sender<Result<u64, LogError>>,
}

impl Journal {
    /// Creates a segment with its first entries, file and directories durable. Returns its length
    /// too.
    pub async fn create(
        files: &Files,
        segment: SegmentId,
        entries: Vec<Entry>,
    ) -> Result<(Self, u64), LogError> {
        let (dir, path) = (files.dir().to_owned(), files.segment(segment));
        let lines = encode(&entries, &path)?;
        let at = path.clone();
        let appender = committed(&path, move || {
            disk::private_dir(&dir)?;
            disk::create(&at, &lines, 0o600)?;
            Ok(Appender::open(&at)?.0)
        })
        .await?;
        let end = appender.length();
        Ok((Self::start(files, segment, appender), end))
    }

    /// Opens a segment for writing: removes a torn tail, keeps what was streaming when its host
    /// ended as a partial item, and closes a run that was cut off as interrupted. Waits until no
    /// other writer of these files is left.
    pub async fn open(files: &Files, segment: SegmentId) -> Result<(Self, Opened), LogError> {
        Self::open_with(files, segment, Vec::new()).await
    }

    /// As [`Journal::open`], with entries that stand in the log as soon as the repair does: nothing
    /// comes between them. Where they end the run, the repair does not.
    pub async fn open_with(
        files: &Files,
        segment: SegmentId,
        more: Vec<Entry>,
    ) -> Result<(Self, Opened), LogError> {
        let (path, of) = (files.segment(segment), files.clone());
        files.no_writer().await;
        let (appender, opened) = committed(&path, move || open::open(&of, segment, more)).await?;
        Ok((Self::start(files, segment, appender), opened))
    }

    /// The journal over a file that is ready.
    pub(crate) fn start(files: &Files, segment: SegmentId, appender: Appender) -> Self {
        let path: Arc<Path> = files.segment(segment).into();
        let end = Arc::new(AtomicU64::new(appender.length()));
        let (requests, waiting) = mpsc::channel(WAITING);
        let committing = committer(appender, waiting, Arc::clone(&end), Arc::clone(&path));
        let writer = files.writer();
        tokio::spawn(async move {
            committing.await;
            drop(writer);
        });
        let partial = partial::Block::start(files.open_block(segment), files.writer());
        Self { requests, partial, end, path }
    }

    /// Appends entries, whole or not at all, and returns the length of the file with them once
    /// they are durable. If the caller is cancelled while it waits they are committed all the
    /// same.
    pub async fn commit(&self, entries: impl AsRef<[Entry]>) -> Result<u64, LogError> {
        let has_ids = entries.as_ref().iter().all(|entry| entry.id.is_some());
        debug_assert!(has_ids, "every entry has an id");
        let lines = encode(entries.as_ref(), &self.path)?;
        drop(entries);
        let (done, outcome) = oneshot::channel();
        let request = JournalRequest::Commit(Commit { lines, done });
        self.requests.send(request).await.map_err(|_| self.closed())?;
        outcome.await.map_err(|_| self.closed())?
    }

    /// Keeps text that is being streamed, so that the end of the host does not take it: it is in
    /// `<segment>.open` after 100 ms or 4 KiB, whichever is first, without sync. Returns at once.
    pub fn stream(&self, kind: Partial, text: &str) {
        self.partial.push(self.end.load(Ordering::Acquire), kind, text);
    }

    /// Waits until what was streamed is in the file.
    #[cfg(test)]
    pub(crate) async fn streamed(&self) {
        self.partial.kept().await;
    }

    /// How much streamed text is held in memory, in bytes.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.partial.held()
    }

    /// What was streamed is committed or given up. To be called after each commit of streamed
    /// items, before the next text streams.
    pub fn stream_done(&self) {
        self.partial.done();
    }

    /// Bytes of the segment that are durable.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Where the segment lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for what is under way and closes the file, for every handle.
    pub async fn close(self) {
        let (closing, closed) = oneshot::channel();
        // Where this fails the task has ended already, as it should.
        let _ = self.requests.send(JournalRequest::Close(closing)).await;
        let _ = closed.await;
        self.partial.close().await;
    }

    fn closed(&self) -> LogError {
        LogError::Closed(self.path.to_path_buf())
    }
}

/// Owns the file; at most one write and sync is under way.
async fn committer(
    mut appender: Appender,
    mut waiting: mpsc::Receiver<JournalRequest>,
    end: Arc<AtomicU64>,
    path: Arc<Path>,
) {
    let mut closing = Vec::new();
    while let Some(group) = next_group(&mut waiting, &mut closing).await {
        let (lines, group) = joined(group);
        let before = appender.length();
        let appended = disk::commit(move || {
            let appended = appender.append(&lines);
            (appender, appended)
        });
        let (back, appended) = match appended.await {
            Ok(appended) => appended,
            Err(error) => return tell(group, before, &Err(LogError::not_committed(&path, &error))),
        };
        appender = back;
        end.store(appender.length(), Ordering::Release);
        tell(group, before, &appended.map_err(LogError::from).map(|_| ()));
    }
}

/// Waits for a commit and takes every other one that has come by then. `None` when no more can
/// come. Requests to close are kept until then.
async fn next_group(
    waiting: &mut mpsc::Receiver<JournalRequest>,
    closing: &mut Vec<oneshot::Sender<()>>,
) -> Option<Vec<Commit>> {
    let mut group = Vec::new();
    loop {
        let next = if group.is_empty() { waiting.recv().await } else { waiting.try_recv().ok() };
        match next {
            Some(JournalRequest::Commit(commit)) => group.push(commit),
            Some(JournalRequest::Close(closed)) => {
                closing.push(closed);
                waiting.close();
            }
            None => return (!group.is_empty()).then_some(group),
        }
    }
}

/// The lines of a group, and what is answered: one commit alone is not copied.
fn joined(group: Vec<Commit>) -> (Vec<u8>, Vec<Written>) {
    let mut lines = Vec::new();
    let mut written = Vec::with_capacity(group.len());
    for commit in group {
        written.push(Written { bytes: commit.lines.len() as u64, done: commit.done });
        if lines.is_empty() {
            lines = commit.lines;
        } else {
            lines.extend_from_slice(&commit.lines);
        }
    }
    (lines, written)
}

/// A commit of a group that is being written.
struct Written {
    bytes: u64,
    done: oneshot::Sender<Result<u64, LogError>>,
}

/// Answers each commit of a group with the length of the file behind its own entries.
fn tell(group: Vec<Written>, before: u64, outcome: &Result<(), LogError>) {
    let mut end = before;
    for commit in group {
        end += commit.bytes;
        // The caller may have been cancelled meanwhile.
        let _ = commit.done.send(outcome.clone().map(|()| end));
    }
}

/// Entries as lines.
pub(crate) fn encode(entries: &[Entry], path: &Path) -> Result<Vec<u8>, LogError> {
    let mut lines = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut lines, entry)
            .map_err(|error| DiskError::at("encode an entry for", path)(error.into()))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Runs file work that ends with a sync, on the threads for commits.
pub(crate) async fn committed<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    let ended = disk::commit(work).await;
    ended.unwrap_or_else(|error| Err(LogError::not_committed(path, &error)))
}
