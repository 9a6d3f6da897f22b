//! The entries of a transcript one by one, the newest first.

use crate::protocol::{Entry, SegmentId};
use crate::session::cut::{CUT_OVER, shorten};
use crate::session::line::decode;
use crate::session::lineage::LogPosition;
use crate::session::locate::place_id;
use crate::session::walk::{Step, Walk};
use crate::session::{Files, LogError};

/// An entry as the backward iterator returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    pub entry: Entry,
    /// Whether long texts of the entry were cut; [`crate::session::fetch`] reads it whole.
    pub is_cut: bool,
    /// Where its line begins.
    pub at: LogPosition,
}

/// The entries of a transcript from the newest to the oldest, also those of the segments from before
/// a compaction. What was taken back and damaged lines are left out. Each step may read from the
/// disk.
pub struct Backwards<'f> {
    walk: Result<Walk<'f>, Option<LogError>>,
    /// How many bytes may still be read.
    left: u64,
    is_cut_short: bool,
}

/// Reads a transcript backwards. `end` is where the segment ends for this reader, in bytes; `None`: at
/// the end of its file.
pub fn backwards(files: &Files, segment: SegmentId, end: Option<u64>) -> Backwards<'_> {
    let walk = Walk::new(files, segment, end).map_err(Some);
    Backwards { walk, left: u64::MAX, is_cut_short: false }
}

impl Backwards<'_> {
    /// Reads no entry more once `bytes` bytes were read.
    pub fn within(mut self, bytes: u64) -> Self {
        self.left = bytes;
        self
    }

    /// After the last entry: whether the limit of bytes left older ones out.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    fn read_next(&mut self) -> Result<Option<Recent>, LogError> {
        let walk = match &mut self.walk {
            Ok(walk) => walk,
            Err(error) => return error.take().map_or(Ok(None), Err),
        };
        while let Some(step) = walk.next()? {
            let Step::Line(segment, line) = step else { return Ok(None) };
            if self.left == 0 {
                self.is_cut_short = true;
                return Ok(None);
            }
            let bytes = line.bytes.len() as u64;
            self.left = self.left.saturating_sub(bytes + 1);
            let Ok(mut entry) = decode(&line.bytes) else { continue };
            entry.id.get_or_insert(place_id(segment, line.start));
            let is_cut = bytes > CUT_OVER;
            let entry = if is_cut { shorten(entry) } else { entry };
            let at = LogPosition { segment, offset: line.start };
            return Ok(Some(Recent { entry, is_cut, at }));
        }
        Ok(None)
    }
}

impl Iterator for Backwards<'_> {
    type Item = Result<Recent, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read_next().transpose()?;
        if next.is_err() {
            self.walk = Err(None);
        }
        Some(next)
    }
}
