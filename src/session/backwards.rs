//! The entries of a transcript one by one, the newest first.

use crate::protocol::event::Line;
use crate::protocol::{Entry, EntryId, SegmentId};
use crate::session::{Files, LogError, page};
use std::vec::IntoIter;

/// The size of the first read, in bytes; for most callers it is the only one.
const FIRST: u64 = 64 * 1024;
/// The largest read, in bytes: each is twice as large as the one before.
const MOST: u64 = 256 * 1024;

/// An entry as the backward iterator returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    pub entry: Entry,
    /// Whether long texts of the entry were cut; [`crate::session::fetch`] reads it whole.
    pub is_cut: bool,
}

/// The entries of a transcript from the newest to the oldest, also those of the segments from before
/// a compaction. Damaged lines are left out. Each step may read from the disk.
pub struct Backwards<'f> {
    files: &'f Files,
    segment: SegmentId,
    /// Where the segment ends for this reader, in bytes; `None`: at the end of its file.
    end: Option<u64>,
    /// The lines of the last piece that were not returned yet, oldest first.
    lines: IntoIter<Line>,
    /// Where the next piece ends; `None` at the beginning of the transcript and after an error.
    next: Option<PieceEnd>,
    /// The size of the next read, in bytes.
    piece: u64,
    /// How many bytes may still be read.
    left: u64,
}

/// Where a piece ends.
#[derive(Clone, Copy)]
enum PieceEnd {
    Transcript,
    Before(EntryId),
}

/// Reads a transcript backwards. `end` is where the segment ends for this reader, in bytes; `None`: at
/// the end of its file.
pub fn backwards(files: &Files, segment: SegmentId, end: Option<u64>) -> Backwards<'_> {
    let (lines, next) = (Vec::new().into_iter(), Some(PieceEnd::Transcript));
    Backwards { files, segment, end, lines, next, piece: FIRST, left: u64::MAX }
}

impl Backwards<'_> {
    /// Reads about `bytes` bytes at most; older entries are left out.
    pub fn within(mut self, bytes: u64) -> Self {
        self.left = bytes;
        self
    }

    /// After the last entry: whether the limit of bytes left older ones out.
    pub fn is_cut_short(&self) -> bool {
        self.left == 0 && self.next.is_some()
    }

    /// Reads the next piece; false at the beginning of the transcript and at the limit.
    fn read_piece(&mut self) -> Result<bool, LogError> {
        let Some(end) = self.next.take_if(|_| self.left > 0) else { return Ok(false) };
        let before = match end {
            PieceEnd::Transcript => None,
            PieceEnd::Before(entry) => Some(entry),
        };
        let bytes = self.piece.min(self.left);
        let page = page(self.files, self.segment, self.end, before, bytes)?;
        self.left -= bytes;
        self.piece = (self.piece * 2).min(MOST);
        self.next = page.before.map(PieceEnd::Before);
        self.lines = page.entries.into_iter();
        Ok(true)
    }
}

impl Iterator for Backwards<'_> {
    type Item = Result<Recent, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next_back() {
                Some(Line::Whole(entry)) => {
                    return Some(Ok(Recent { entry: *entry, is_cut: false }));
                }
                Some(Line::Cut { entry, .. }) => {
                    return Some(Ok(Recent { entry: *entry, is_cut: true }));
                }
                Some(Line::Damaged { .. }) => {}
                None => match self.read_piece() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
