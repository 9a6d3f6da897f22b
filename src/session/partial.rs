//! The block that is being streamed, kept in `<segment>.open` so that kill -9 loses at most
//! 100 ms or 4 KiB of it. Without sync: a power cut may take it.

use crate::disk::open_regular;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::Instant;

/// What is kept at the latest after this time…
const EVERY: Duration = Duration::from_millis(100);
/// … or when there is this much of it.
const AT_LEAST: u64 = 4096;
/// When so much of a block is in the file, it is dropped from memory.
const DROP_AT: u64 = 64 * 1024;

/// What kind of text streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partial {
    Text,
    Thinking,
}

/// The handle to the block of one journal. Its text lies in a slot that the writing task reads
/// when it comes to it: pushing never waits, and nothing is lost when the disk is slow.
#[derive(Clone)]
pub struct Block {
    slot: watch::Sender<Slot>,
    /// Up to where the text is in the file, as [`Slot::start`] counts.
    kept: Arc<AtomicU64>,
}

#[derive(Default)]
struct Slot {
    /// Counts the blocks of this journal.
    number: u64,
    /// Where the log ended when the block began.
    after: u64,
    /// Whether the block has begun.
    streams: bool,
    /// What is left of the block: what is in the file is dropped now and then.
    sections: Vec<Section>,
    /// Where `sections` begin, in bytes of all text of this journal.
    start: u64,
    closing: bool,
}

impl Slot {
    fn end(&self) -> u64 {
        self.start + self.sections.iter().map(|section| section.text.len() as u64).sum::<u64>()
    }

    /// How many bytes of text follow the place up to which it was taken.
    fn fresh(&self, taken: u64) -> u64 {
        self.end() - taken.max(self.start)
    }

    /// Drops text up to a place.
    fn drop_to(&mut self, place: u64) {
        while let Some(first) = self.sections.first_mut() {
            let length = first.text.len() as u64;
            let over = place.saturating_sub(self.start).min(length);
            self.start += over;
            if over < length {
                first.text.drain(..usize::try_from(over).unwrap_or(0));
                break;
            }
            self.sections.remove(0);
        }
    }
}

/// A line of the file: some more text. Lines of the same kind that follow each other are one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub kind: Partial,
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct Piece {
    after: u64,
    block: u64,
    #[serde(flatten)]
    section: Section,
}

impl Block {
    /// A block whose writing task ends with its last handle, and drops `held` then.
    pub fn start(path: PathBuf, held: watch::Receiver<()>) -> Self {
        let (slot, changes) = watch::channel(Slot::default());
        let kept = Arc::new(AtomicU64::new(0));
        let written = Kept::new(path, Arc::clone(&kept));
        tokio::spawn(async move {
            writer(written, changes).await;
            drop(held);
        });
        Self { slot, kept }
    }

    /// Adds text. It wakes the writing task only if that task had taken everything before, or if `AT_LEAST` bytes wait now.
    pub fn push(&self, after: u64, kind: Partial, text: &str) {
        self.slot.send_if_modified(|slot| {
            if !std::mem::replace(&mut slot.streams, true) {
                slot.after = after;
            }
            let kept = self.kept.load(Ordering::Acquire);
            if kept.saturating_sub(slot.start) >= DROP_AT {
                slot.drop_to(kept);
            }
            let before = slot.fresh(kept);
            match slot.sections.last_mut() {
                Some(section) if section.kind == kind => section.text.push_str(text),
                _ => slot.sections.push(Section { kind, text: text.to_owned() }),
            }
            before == 0 || (before < AT_LEAST && slot.fresh(kept) >= AT_LEAST)
        });
    }

    pub fn done(&self) {
        self.slot.send_if_modified(|slot| {
            let streamed = std::mem::take(&mut slot.streams);
            if streamed {
                slot.number += 1;
                slot.start = slot.end();
                slot.sections = Vec::new();
            }
            streamed
        });
    }

    /// Waits until the text so far is taken by the task that writes.
    #[cfg(test)]
    pub async fn kept(&self) {
        while self.kept.load(Ordering::Acquire) < self.slot.borrow().end() {
            tokio::task::yield_now().await;
        }
    }

    /// How much text is held, in bytes.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.slot.borrow().sections.iter().map(|section| section.text.len()).sum()
    }

    /// Waits until all of it is kept.
    pub async fn close(&self) {
        self.slot.send_modify(|slot| slot.closing = true);
        self.slot.closed().await;
    }
}

/// Writes what is new, at its pace, until the journal is closed or dropped.
async fn writer(mut kept: Kept, mut changes: watch::Receiver<Slot>) {
    let mut due = Instant::now();
    while changes.changed().await.is_ok() {
        let mut alive = true;
        while alive && !kept.is_due(&changes.borrow_and_update()) {
            alive = tokio::select! {
                () = tokio::time::sleep_until(due) => break,
                changed = changes.changed() => changed.is_ok(),
            };
        }
        let (unwritten, closing) = {
            let slot = changes.borrow_and_update();
            (kept.take_unwritten(&slot), slot.closing)
        };
        kept = match crate::disk::commit(move || kept.write(unwritten)).await {
            Ok(kept) => kept,
            Err(_) => return,
        };
        if closing {
            return;
        }
        due = Instant::now() + EVERY;
    }
}

/// The file, and how much of which block is in it.
struct Kept {
    path: PathBuf,
    file: Option<File>,
    /// The disk refused: the block then lives in memory alone, and its commit will say so.
    failed: bool,
    number: u64,
    /// Up to where the text is taken, as [`Slot::start`] counts.
    taken: u64,
    /// The same as `taken`, for the handles of the block in other tasks.
    shared: Arc<AtomicU64>,
}

struct Unwritten {
    /// The file holds an earlier block.
    stale: bool,
    lines: Vec<u8>,
}

impl Kept {
    fn new(path: PathBuf, shared: Arc<AtomicU64>) -> Self {
        Self { path, file: None, failed: false, number: 0, taken: 0, shared }
    }

    fn is_due(&self, slot: &Slot) -> bool {
        slot.closing || slot.number != self.number || slot.fresh(self.taken) >= AT_LEAST
    }

    fn take_unwritten(&mut self, slot: &Slot) -> Unwritten {
        let stale = slot.number != self.number;
        self.number = slot.number;
        let mut lines = Vec::new();
        let mut end = slot.start;
        for Section { kind, text } in &slot.sections {
            let start = end;
            end += text.len() as u64;
            let written = usize::try_from(self.taken.saturating_sub(start)).unwrap_or(usize::MAX);
            let Some(text) = text.get(written..).filter(|text| !text.is_empty()) else { continue };
            let section = Section { kind: *kind, text: text.to_owned() };
            let piece = Piece { after: slot.after, block: slot.number, section };
            if serde_json::to_writer(&mut lines, &piece).is_ok() {
                lines.push(b'\n');
            }
        }
        self.taken = end;
        self.shared.store(end, Ordering::Release);
        Unwritten { stale, lines }
    }

    fn write(mut self, unwritten: Unwritten) -> Self {
        if !self.failed && self.try_write(&unwritten).is_err() {
            self.failed = true;
        }
        self
    }

    fn try_write(&mut self, unwritten: &Unwritten) -> std::io::Result<()> {
        if unwritten.stale
            && let Some(file) = &self.file
        {
            file.set_len(0)?;
        }
        if unwritten.lines.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(create(&self.path)?),
        };
        file.write_all(&unwritten.lines)
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// What an earlier host left in the file.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// Where the log ended when the block began.
    pub after: u64,
    pub sections: Vec<Section>,
    /// When it was last written; milliseconds since the Unix epoch.
    pub at: u64,
}

/// Reads what was streaming when the host ended; `None` when nothing was.
pub fn left(path: &Path) -> Option<Left> {
    let mut content = Vec::new();
    open_regular(path).ok()?.read_to_end(&mut content).ok()?;
    let pieces: Vec<Piece> = content
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let Piece { after, block, .. } = *pieces.last()?;
    let mut sections: Vec<Section> = Vec::new();
    for piece in pieces.into_iter().filter(|piece| piece.block == block) {
        match sections.last_mut() {
            Some(last) if last.kind == piece.section.kind => last.text += &piece.section.text,
            _ => sections.push(piece.section),
        }
    }
    let written = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let at = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(Left { after, sections, at: u64::try_from(at.as_millis()).unwrap_or(0) })
}

/// Empties the file: what it held is in the log.
pub fn clear(path: &Path) -> std::io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Ok(file) => file.set_len(0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
