//! The lines of a session one by one, the newest first: each reader that goes backwards goes this
//! way, past what was taken back and into the segments from before a compaction.

use crate::disk::open_regular;
use crate::protocol::name::SegmentId;
use crate::session::jump::{Jump, line_at};
use crate::session::line::{Backward, Raw};
use crate::session::lineage::{Lineage, LogPosition};
use crate::session::{Files, LogError};

/// A walk through a session towards its beginning. Each step may read from the disk.
pub struct Walk<'f> {
    files: &'f Files,
    lineage: Lineage<'f>,
    segment: SegmentId,
    /// The lines before which the walk stands; `None` at the beginning of the session.
    lines: Option<Backward>,
}

/// What a walk comes to.
pub enum Step {
    Line(SegmentId, Raw),
    /// The segment from before a compaction is not there; the walk ends.
    Missing(SegmentId),
}

impl<'f> Walk<'f> {
    /// From the end of a session. `end` is where its newest segment ends for this reader, in bytes;
    /// `None`: at the end of the file.
    pub fn new(files: &'f Files, head: SegmentId, end: Option<u64>) -> Result<Self, LogError> {
        let offset = end.unwrap_or(u64::MAX);
        Self::from(files, head, LogPosition { segment: head, offset })
    }

    /// From before the line at a place in the session that ends in the segment `head`.
    pub fn before(files: &'f Files, head: SegmentId, at: LogPosition) -> Result<Self, LogError> {
        let mut walk = Self::from(files, head, at)?;
        let path = files.segment(at.segment);
        let read = || -> std::io::Result<_> {
            let file = open_regular(&path)?;
            let end = file.metadata()?.len();
            // A line that long is no jump.
            let head = [at.offset, at.offset.saturating_add(1 << 16).min(end)];
            Ok(line_at(&file, head[0], head[1])?.and_then(|line| Jump::of_line(&line)))
        };
        if let Some(jump) = read().map_err(LogError::reading(&path))? {
            walk.jump(jump, at.offset)?;
        }
        Ok(walk)
    }

    fn from(files: &'f Files, head: SegmentId, at: LogPosition) -> Result<Self, LogError> {
        let lines = Some(lines(files, at)?);
        Ok(Self { files, lineage: Lineage::new(files, head), segment: at.segment, lines })
    }

    /// The next older line; `None` at the beginning of the session.
    pub fn next(&mut self) -> Result<Option<Step>, LogError> {
        loop {
            if let Some(line) = self.next_in_segment()? {
                return Ok(Some(Step::Line(self.segment, line)));
            }
            if self.lines.take().is_none() {
                return Ok(None);
            }
            let Some(older) = self.lineage.compacted_from(self.segment) else { return Ok(None) };
            if !self.files.segment(older).exists() {
                return Ok(Some(Step::Missing(older)));
            }
            if !self.lineage.is_older(older, self.segment) {
                return Ok(None);
            }
            self.go_to(LogPosition { segment: older, offset: u64::MAX })?;
        }
    }

    /// The next older line; `None` where a segment begins that nothing jumps out of. What such a
    /// segment goes on from is in its first line.
    pub fn next_in_segment(&mut self) -> Result<Option<Raw>, LogError> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let path = self.files.segment(self.segment);
        let Some(line) = lines.next_line().map_err(LogError::reading(&path))? else {
            return Ok(None);
        };
        if let Some(jump) = Jump::of_line(&line.bytes) {
            self.jump(jump, line.start)?;
        }
        Ok(Some(line))
    }

    fn jump(&mut self, jump: Jump, offset: u64) -> Result<(), LogError> {
        let at = LogPosition { segment: self.segment, offset };
        match jump.target(at, &mut self.lineage, self.files)? {
            Some(to) => self.go_to(to),
            None => Ok(()),
        }
    }

    fn go_to(&mut self, to: LogPosition) -> Result<(), LogError> {
        match &mut self.lines {
            Some(lines) if to.segment == self.segment => lines.jump(to.offset),
            _ => self.lines = Some(lines(self.files, to)?),
        }
        self.segment = to.segment;
        Ok(())
    }
}

/// The lines before a place.
fn lines(files: &Files, before: LogPosition) -> Result<Backward, LogError> {
    let path = files.segment(before.segment);
    let open = || -> std::io::Result<_> {
        let file = open_regular(&path)?;
        let end = before.offset.min(file.metadata()?.len());
        Backward::new(file, end)
    };
    open().map_err(LogError::reading(&path))
}
