//! Which parts of the segments stand: what jumps do not pass over, for readers that go forwards.

use crate::disk::open_regular;
use crate::protocol::name::SegmentId;
use crate::session::lineage::{Lineage, LogPosition};
use crate::session::{Files, LogError};
use std::fs::File;
use std::ops::Range;

/// Whole lines of a segment that follow each other and stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub segment: SegmentId,
    /// Bytes of the segment.
    pub range: Range<u64>,
}

/// The stretches of which the history of a segment is made, oldest first: those of the segment, and
/// those of older ones into which it jumps. The first begins where a segment begins. `end` is where
/// the segment ends for this reader, in bytes; `None`: at the end of its file. Blocking.
pub fn stretches(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<Vec<Stretch>, LogError> {
    let mut walk = Stretches::new(files, segment);
    let mut found = walk.of(LogPosition { segment, offset: end.unwrap_or(u64::MAX) })?;
    found.reverse();
    Ok(found)
}

/// As [`stretches`], with those from before compactions, as far as they are there.
pub fn all_stretches(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<Vec<Stretch>, LogError> {
    let mut walk = Stretches::new(files, segment);
    let mut found = Vec::new();
    let mut next = Some(LogPosition { segment, offset: end.unwrap_or(u64::MAX) });
    while let Some(at) = next.take() {
        match walk.of(at) {
            Ok(of) => found.extend(of),
            Err(error) if found.is_empty() => return Err(error),
            // A segment that cannot be read any more takes only its own part away.
            Err(_) => break,
        }
        next = found.last().and_then(|oldest| walk.compacted_from(oldest.segment));
    }
    found.reverse();
    Ok(found)
}

/// The stretches of a segment behind a line end, oldest first; `None` when the history goes back to
/// before it. Blocking.
pub fn stretches_behind(
    files: &Files,
    segment: SegmentId,
    from: u64,
) -> Result<Option<Vec<Stretch>>, LogError> {
    let path = files.segment(segment);
    let open = || -> std::io::Result<_> {
        let file = open_regular(&path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    };
    let (file, mut end) = open().map_err(LogError::reading(&path))?;
    let mut walk = Stretches::new(files, segment);
    let mut found = Vec::new();
    while let Some((start, to)) = walk.last_jump(&file, segment, from..end)? {
        if to.segment != segment || to.offset < from {
            return Ok(None);
        }
        found.push(Stretch { segment, range: start..end });
        end = to.offset;
    }
    found.push(Stretch { segment, range: from..end });
    found.reverse();
    Ok(Some(found))
}

struct Stretches<'f> {
    files: &'f Files,
    lineage: Lineage<'f>,
}

impl<'f> Stretches<'f> {
    fn new(files: &'f Files, head: SegmentId) -> Self {
        Self { files, lineage: Lineage::new(files, head) }
    }

    /// From a place back to where a segment begins, newest first.
    fn of(&mut self, mut at: LogPosition) -> Result<Vec<Stretch>, LogError> {
        let mut newest_first = Vec::new();
        loop {
            let path = self.files.segment(at.segment);
            let open = || -> std::io::Result<_> {
                let file = open_regular(&path)?;
                let length = file.metadata()?.len();
                Ok((file, length))
            };
            let (file, length) = open().map_err(LogError::reading(&path))?;
            let end = at.offset.min(length);
            let (start, before) = match self.last_jump(&file, at.segment, 0..end)? {
                Some((start, to)) => (start, Some(to)),
                None => (0, None),
            };
            newest_first.push(Stretch { segment: at.segment, range: start..end });
            match before {
                Some(to) => at = to,
                None => return Ok(newest_first),
            }
        }
    }

    /// The last jump in a range that leads somewhere: where its line begins, and its target.
    fn last_jump(
        &mut self,
        file: &File,
        segment: SegmentId,
        range: Range<u64>,
    ) -> Result<Option<(u64, LogPosition)>, LogError> {
        let path = self.files.segment(segment);
        let indexes = self.files.segment_indexes();
        let Range { start: from, end: mut before } = range;
        while let Some((offset, jump)) =
            indexes.last_jump(file, segment, from..before).map_err(LogError::reading(&path))?
        {
            let at = LogPosition { segment, offset };
            if let Some(to) = jump.target(at, &mut self.lineage, self.files)? {
                return Ok(Some((offset, to)));
            }
            before = offset;
        }
        Ok(None)
    }

    /// The end of the segment that a compaction closed with this one.
    fn compacted_from(&mut self, segment: SegmentId) -> Option<LogPosition> {
        let older = self.lineage.compacted_from(segment)?;
        let is_older = self.lineage.is_older(older, segment);
        is_older.then_some(LogPosition { segment: older, offset: u64::MAX })
    }
}
