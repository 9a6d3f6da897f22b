//! The segments of a session in the order in which they were begun, and places in them.

use crate::protocol::name::SegmentId;
use crate::session::line::first_raw;
use crate::session::{Files, LogError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A place in a session: before the line that begins at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    pub segment: SegmentId,
    /// Bytes from the beginning of the segment.
    pub offset: u64,
}

/// A segment, the one that it goes on from, and so on, the newest first. Each is looked for when it
/// is asked for. The order is that of the references in the files, so a clock that was set back
/// changes nothing, and no segment comes twice.
pub struct Lineage<'f> {
    files: &'f Files,
    known: Vec<SegmentId>,
    is_whole: bool,
}

impl<'f> Lineage<'f> {
    pub fn new(files: &'f Files, head: SegmentId) -> Self {
        Self { files, known: vec![head], is_whole: false }
    }

    /// The segment at an index; 0 is the newest.
    pub fn get(&mut self, index: usize) -> Option<SegmentId> {
        while self.known.len() <= index && self.extend() {}
        self.known.get(index).copied()
    }

    /// Whether a segment was begun before another one.
    pub fn is_older(&mut self, segment: SegmentId, than: SegmentId) -> bool {
        matches!((self.index(segment), self.index(than)), (Some(a), Some(b)) if a > b)
    }

    /// All segments that are older than this one, the newest first.
    pub fn older(&mut self, than: SegmentId) -> Vec<SegmentId> {
        let Some(at) = self.index(than) else { return Vec::new() };
        while self.extend() {}
        self.known.iter().skip(at + 1).copied().collect()
    }

    /// The segment that a compaction closed with this one. Where the first line, which says so, is
    /// damaged: the newest of the older ones.
    pub fn compacted_from(&mut self, segment: SegmentId) -> Option<SegmentId> {
        match origins(&self.files.segment(segment)) {
            Ok(origins) => origins.compacted_from.map(|origin| origin.segment_id),
            Err(LogError::Damaged { .. }) => {
                self.older(segment).into_iter().find(|older| *older < segment)
            }
            Err(_) => None,
        }
    }

    fn index(&mut self, segment: SegmentId) -> Option<usize> {
        let mut index = 0;
        while let Some(known) = self.get(index) {
            if known == segment {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    fn extend(&mut self) -> bool {
        let Some(last) = self.known.last().filter(|_| !self.is_whole) else { return false };
        let before = self.known.len();
        match origins(&self.files.segment(*last)) {
            Ok(origins) => {
                let of = [origins.forked_from, origins.compacted_from].into_iter().flatten();
                let mut of = of.map(|origin| origin.segment_id);
                let older = of.find(|older| {
                    !self.known.contains(older) && self.files.segment(*older).exists()
                });
                self.known.extend(older);
                self.is_whole = older.is_none();
            }
            // Its first line is damaged: each of the others may be older.
            Err(_) => {
                let others = self.files.segments();
                let others: Vec<_> =
                    others.into_iter().filter(|other| !self.known.contains(other)).collect();
                self.known.extend(others);
                self.is_whole = true;
            }
        }
        self.known.len() > before
    }
}

/// The segments of a session in the order of the references in their files, the newest first, whatever the
/// clock said when they were made. The newest is the one that no other goes on from; where damage leaves
/// several of these, the one with the most segments behind it. Reads the first line of each segment.
pub fn newest_first(files: &Files) -> Vec<SegmentId> {
    let segments = files.segments();
    let known = segments.iter().filter_map(|segment| origins(&files.segment(*segment)).ok());
    let older = known.flat_map(|of| [of.forked_from, of.compacted_from]).flatten();
    let older: Vec<SegmentId> = older.map(|origin| origin.segment_id).collect();
    let chain = |head: &SegmentId| {
        let mut chain = vec![*head];
        chain.extend(Lineage::new(files, *head).older(*head));
        chain
    };
    let heads = segments.iter().filter(|segment| !older.contains(segment));
    let longest = heads.map(chain).max_by_key(|chain| (chain.len(), chain.first().copied()));
    longest.unwrap_or(segments)
}

/// Where a segment comes from, as its first line says.
#[derive(Deserialize)]
pub struct Origins {
    kind: String,
    #[serde(default)]
    pub forked_from: Option<Origin>,
    #[serde(default)]
    pub compacted_from: Option<Origin>,
}

#[derive(Clone, Copy, Deserialize)]
pub struct Origin {
    pub segment_id: SegmentId,
}

/// Reads where a segment comes from. The history that it begins with is passed over.
pub fn origins(path: &Path) -> Result<Origins, LogError> {
    let line = first_raw(path)?;
    let damaged = |reason| LogError::Damaged { path: path.to_owned(), byte: 0, reason };
    let origins: Origins =
        serde_json::from_slice(&line.bytes).map_err(|error| damaged(error.to_string()))?;
    if origins.kind != "segment_start" {
        return Err(damaged("it does not begin with segment_start".into()));
    }
    Ok(origins)
}
