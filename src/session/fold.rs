//! The fold of a segment for a run: read in pieces, from a checkpoint where there is one, with long
//! outputs of tools left in the log.
//!
//! `<segment>.fold` holds the fold of the beginning of a segment and says how many bytes that is. It
//! may be deleted at any time. It is used when the segment still begins with these bytes, as far as
//! their first and last ones say, and when nothing behind them goes back to before their end.

use crate::disk;
use crate::protocol::item::Item;
use crate::protocol::name::SegmentId;
use crate::session::replay::Replay;
use crate::session::stretches::{stretches, stretches_behind};
use crate::session::{Files, LogError};
use crate::trace::OrLog as _;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// To be raised when the same log is folded into something else, or the form of the file changes.
const VERSION: u32 = 2;
/// Bytes of log that are folded without a new checkpoint.
const EVERY: u64 = 16 * 1024 * 1024;
/// How much at the beginning and at the end of the covered bytes is compared, in bytes.
const COMPARED: u64 = 64 * 1024;

/// A fold, and what is to be kept of it.
pub struct Fold {
    pub replay: Replay,
    /// How many bytes of the segment were read.
    pub read: u64,
    checkpoint: Option<Checkpoint>,
}

/// The content of `<segment>.fold`.
struct Checkpoint {
    files: Files,
    head: Head,
    body: Vec<u8>,
}

/// The first line of the file. A fold, as JSON, is the second.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    version: u32,
    segment: SegmentId,
    /// How many bytes of the segment are folded.
    end: u64,
    /// blake3 of the beginning and the end of these bytes.
    log: String,
    /// blake3 of the second line.
    body: String,
}

/// Folds a segment as [`crate::session::replay`] does. Long outputs of tools are left in the log,
/// but for the newest, until they have `held` bytes together. Blocking.
pub fn fold(files: &Files, segment: SegmentId, held: u64) -> Result<Fold, LogError> {
    fold_with(files, segment, held, EVERY)
}

/// As [`fold`], with a new checkpoint after so many bytes.
pub(super) fn fold_with(
    files: &Files,
    segment: SegmentId,
    held: u64,
    every: u64,
) -> Result<Fold, LogError> {
    let finish = |mut replay: Replay, read: u64| {
        let new = (read >= every).then(|| Checkpoint::of(files, segment, &mut replay)).flatten();
        replay.finish();
        replay.hold_newest(files, held)?;
        Ok(Fold { replay, read, checkpoint: new })
    };
    let went_on = go_on_from_checkpoint(files, segment)
        .and_then(|found| found.map(|(replay, read)| finish(replay, read)).transpose());
    match went_on {
        Ok(Some(fold)) => return Ok(fold),
        Ok(None) => {}
        // A line that was damaged below the checkpoint is found only when it is read again. The fold
        // of the whole log leaves it out.
        Err(error) => tracing::warn!(%segment, "the checkpoint is not used: {error}"),
    }
    let replay = Replay::without_outputs(files, segment, &stretches(files, segment, None)?)?;
    let read = replay.end;
    finish(replay, read)
}

/// The fold that begins with the checkpoint, and how many bytes behind it were read.
fn go_on_from_checkpoint(
    files: &Files,
    segment: SegmentId,
) -> Result<Option<(Replay, u64)>, LogError> {
    let Some((head, mut replay)) = load(files, segment) else { return Ok(None) };
    let Some(behind) = stretches_behind(files, segment, head.end)? else {
        tracing::info!(%segment, "the checkpoint is not used: the log went back to before its end");
        return Ok(None);
    };
    replay.go_on(files, &behind)?;
    let read = replay.end - head.end;
    Ok(Some((replay, read)))
}

/// The checkpoint, if there is one that fits; why another one does not is traced.
fn load(files: &Files, segment: SegmentId) -> Option<(Head, Replay)> {
    let path = files.fold(segment);
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("{} is not used: {error}", path.display());
            return None;
        }
    };
    match checked(files, segment, &content) {
        Ok(found) => Some(found),
        Err(why) => {
            tracing::warn!("{} is not used: {why}", path.display());
            None
        }
    }
}

fn checked(files: &Files, segment: SegmentId, content: &[u8]) -> Result<(Head, Replay), String> {
    let line = memchr::memchr(b'\n', content).ok_or("it has no first line")?;
    let (head, body) = (&content[..line], &content[line + 1..]);
    let head: Head = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    if head.version != VERSION || head.segment != segment {
        return Err("it is of another version or another segment".into());
    }
    if head.body != hash(body) {
        return Err("it is damaged".into());
    }
    let of_log = of_log(&files.segment(segment), head.end).map_err(|error| error.to_string())?;
    if of_log != head.log {
        return Err("the log does not begin with what it covers".into());
    }
    let replay = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok((head, replay))
}

/// The hash of the first and the last of the first `end` bytes of a segment, which end with a line.
fn of_log(path: &Path, end: u64) -> io::Result<String> {
    let file = disk::open_regular(path)?;
    let size = COMPARED.min(end);
    let mut bytes = vec![0; 2 * usize::try_from(size).unwrap_or(0)];
    let (first, last) = bytes.split_at_mut(usize::try_from(size).unwrap_or(0));
    file.read_exact_at(first, 0)?;
    file.read_exact_at(last, end - size)?;
    if last.last() != Some(&b'\n') {
        return Err(io::Error::other("no line ends where it ends"));
    }
    Ok(hash(&bytes))
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

impl Checkpoint {
    /// `None` where the log cannot be read once more.
    fn of(files: &Files, segment: SegmentId, replay: &mut Replay) -> Option<Self> {
        replay.leave_outputs();
        let body = serde_json::to_vec(replay).ok()?;
        let log = of_log(&files.segment(segment), replay.end).ok()?;
        let head = Head { version: VERSION, segment, end: replay.end, log, body: hash(&body) };
        Some(Self { files: files.clone(), head, body })
    }

    fn write(self) -> Result<(), disk::DiskError> {
        let mut content = serde_json::to_vec(&self.head).unwrap_or_default();
        content.push(b'\n');
        content.extend(self.body);
        disk::replace(&self.files.fold(self.head.segment), &content, 0o600)
    }
}

impl Fold {
    /// Writes the checkpoint, if this fold made one, and gives the fold back at once. The next
    /// open of the segment waits until it is written.
    pub fn keep(self) -> Replay {
        if let Some(checkpoint) = self.checkpoint {
            let writer = checkpoint.files.writer();
            tokio::task::spawn_blocking(move || {
                checkpoint.write().or_log("write the checkpoint of a log");
                drop(writer);
            });
        }
        self.replay
    }

    /// As [`Fold::keep`], before this returns.
    #[cfg(test)]
    pub(super) fn keep_now(self) -> Replay {
        if let Some(checkpoint) = self.checkpoint {
            checkpoint.write().unwrap();
        }
        self.replay
    }
}

impl Replay {
    /// Leaves the contents of long outputs out that stand in the log.
    fn leave_outputs(&mut self) {
        for kept in self.history.iter_mut().filter(|kept| kept.output.is_some()) {
            if let Item::ToolResult { content, .. } = &mut Arc::make_mut(kept).item {
                *content = None;
            }
        }
    }

    /// Reads the contents of the newest long outputs until they have `held` bytes together.
    fn hold_newest(&mut self, files: &Files, held: u64) -> Result<(), LogError> {
        let mut newer = 0;
        for kept in self.history.iter_mut().rev() {
            if newer >= held {
                break;
            }
            newer += kept.output_bytes();
            crate::session::outputs::load(files, Arc::make_mut(kept))?;
        }
        Ok(())
    }
}
