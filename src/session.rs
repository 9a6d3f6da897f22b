//! What was said and done: append-only JSONL in segments. A journal writes them, replay folds
//! them, pages read them backwards from the end. Nothing of them is ever taken away: an entry that is a jump
//! says that what stands before it ends at an earlier place.

mod backwards;
mod begun;
mod cut;
mod error;
mod fold;
mod fork;
mod glance;
mod journal;
mod json_text;
mod jump;
mod line;
mod lineage;
mod locate;
mod open;
mod outputs;
mod page;
mod partial;
mod replay;
mod rewind;
mod scan;
mod segment_index;
mod snapshot;
mod stretches;
mod range;
mod texts;
mod two_threads;
mod walk;

pub use backwards::{Recent, backwards};
pub use begun::is_begun;
pub use cut::{CUT_OVER, Cut, cut, json_size, shorten_line};
pub use error::LogError;
pub use fold::{Fold, fold};
pub use fork::{ForkPoint, fork, fork_point};
pub use journal::Journal;
pub use jump::{Jump, JumpKind};
pub use line::Damaged;
pub use lineage::{Lineage, LogPosition, newest_first};
pub use locate::{holds, locate};
pub use open::{HOST_ENDED, Opened, cut_off};
pub use outputs::load as load_output;
pub use page::{Page, fetch, page};
pub use partial::Partial;
pub use range::{Piece, piece};
pub use replay::{Replay, replay};
pub use rewind::{
    LostOfChildren, StandingJump, Target, Targets, find_jump, head_entries, input_at,
    lost_of_children, rewind_targets, standing_entries,
};
pub use snapshot::{records, spans};
pub use stretches::{Stretch, all_stretches, stretches};

use crate::protocol::{SegmentId, SessionId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Where the files of one session lie. All clones know of the writers of each other, and of what one
/// of them found in the segments.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
    /// Each writer of a segment holds a receiver until its last write is done.
    writers: Arc<watch::Sender<()>>,
    indexes: Arc<segment_index::SegmentIndexes>,
}

/// The segment of which a compaction closed the history into this one, also where the line that says
/// so is damaged. Blocking.
pub fn compacted_from(files: &Files, segment: SegmentId) -> Option<SegmentId> {
    lineage::Lineage::new(files, segment).compacted_from(segment)
}

impl Files {
    /// The files of a session below a data directory.
    pub fn new(data: &Path, session: SessionId) -> Self {
        let writers = Arc::new(watch::Sender::new(()));
        let dir = data.join("sessions").join(session.to_string());
        Self { dir, writers, indexes: Arc::default() }
    }

    fn segment_indexes(&self) -> &segment_index::SegmentIndexes {
        &self.indexes
    }

    /// The same files, of which so many bytes and more are read by two threads.
    #[cfg(test)]
    fn with_two_threads_from(self, bytes: u64) -> Self {
        let indexes = segment_index::SegmentIndexes::with_two_threads_from(bytes);
        Self { indexes: Arc::new(indexes), ..self }
    }

    /// Counts as a writer of a segment until it is dropped.
    fn writer(&self) -> watch::Receiver<()> {
        self.writers.subscribe()
    }

    /// Waits until no writer is left. The writer of a run that was aborted ends a moment after the
    /// run: a commit that is under way is finished first.
    pub async fn no_writer(&self) {
        self.writers.closed().await;
    }

    /// The directory that holds them all.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A segment of the log.
    pub fn segment(&self, segment: SegmentId) -> PathBuf {
        self.dir.join(format!("{segment}.jsonl"))
    }

    /// The segments whose files exist, sorted by id, the newest first. An id holds the time at which its
    /// segment was begun, so a clock that was set back changes the order. Reads the directory.
    pub fn segments(&self) -> Vec<SegmentId> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut segments: Vec<SegmentId> =
            names.filter_map(|name| name.strip_suffix(".jsonl")?.parse().ok()).collect();
        segments.sort_unstable_by(|a, b| b.cmp(a));
        segments
    }

    /// The block that is being streamed into a segment.
    pub fn open_block(&self, segment: SegmentId) -> PathBuf {
        self.dir.join(format!("{segment}.open"))
    }

    /// The fold of the beginning of a segment; it may be deleted at any time.
    pub fn fold(&self, segment: SegmentId) -> PathBuf {
        self.dir.join(format!("{segment}.fold"))
    }

    /// Images, and the former content of changed files, each under its blake3 name.
    pub fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    /// Tool output that was too long for the log.
    pub fn outputs(&self) -> PathBuf {
        self.dir.join("outputs")
    }

    /// What the Pod's commands keep for themselves: `/tmp`, and what they write to caches.
    pub fn private(&self) -> PathBuf {
        self.dir.join("private")
    }
}

#[cfg(test)]
mod tests;
