//! Reads the lines of a session one by one, the newest first: past what was taken back, and into the
//! segments from before a compaction.

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
    /// The lines of `segment` that were not returned yet; `None` once the session has begun.
    lines: Option<Backward>,
}

/// What a walk comes to.
pub enum Step {
    /// A line, and the segment it stands in.
    Line(SegmentId, Raw),
    /// The segment from before a compaction is not there; the walk ends.
    Missing(SegmentId),
}

impl<'f> Walk<'f> {
    /// From the end of a session. `end` is where its newest segment ends for this reader, in bytes;
    /// `None`: at the end of the file.
    pub fn new(files: &'f Files, head: SegmentId, end: Option<u64>) -> Result<Self, LogError> {
        let offset = end.unwrap_or(u64::MAX);
        Self::at(files, head, LogPosition { segment: head, offset })
    }

    /// From before the line at `at`, or from the target of that line if it is a jump; the session
    /// ends in the segment `head`.
    pub fn before(files: &'f Files, head: SegmentId, at: LogPosition) -> Result<Self, LogError> {
        let mut walk = Self::at(files, head, at)?;
        let path = files.segment(at.segment);
        let read = || -> std::io::Result<_> {
            let file = open_regular(&path)?;
            let end = file.metadata()?.len();
            Ok(line_at(&file, at.offset, end)?.and_then(|line| Jump::of_line(&line)))
        };
        if let Some(jump) = read().map_err(LogError::reading(&path))? {
            walk.jump(jump, at.offset)?;
        }
        Ok(walk)
    }

    fn at(files: &'f Files, head: SegmentId, at: LogPosition) -> Result<Self, LogError> {
        let lines = Some(lines_before(files, at)?);
        Ok(Self { files, lineage: Lineage::new(files, head), segment: at.segment, lines })
    }

    /// The next older line; `None` at the beginning of the session.
    pub fn next(&mut self) -> Result<Option<Step>, LogError> {
        loop {
            // Behind a jump, the walk stands in another segment than the line that it returns.
            let segment = self.segment;
            if let Some(line) = self.next_before_compaction()? {
                return Ok(Some(Step::Line(segment, line)));
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

    /// As [`Walk::next`], but stops where a segment begins that follows a compaction or a fork: its
    /// first line names the segment that it goes on from. A jump may lead into an older segment.
    pub fn next_before_compaction(&mut self) -> Result<Option<Raw>, LogError> {
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
            _ => self.lines = Some(lines_before(self.files, to)?),
        }
        self.segment = to.segment;
        Ok(())
    }
}

/// The lines before a position, which the reader goes through backwards.
fn lines_before(files: &Files, before: LogPosition) -> Result<Backward, LogError> {
    let path = files.segment(before.segment);
    let open = || -> std::io::Result<_> {
        let file = open_regular(&path)?;
        let end = before.offset.min(file.metadata()?.len());
        Backward::new(file, end)
    };
    open().map_err(LogError::reading(&path))
}
