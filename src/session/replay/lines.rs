//! How the fold reads the lines of a log: all that stand, and of the others what they say for good.

use crate::protocol::name::SegmentId;
use crate::session::glance::{Glance, whole_lines};
use crate::session::jump::line_at;
use crate::session::line::{Damaged, decode};
use crate::session::lineage::LogPosition;
use crate::session::outputs::LongResult;
use crate::session::replay::{Outputs, Replay};
use crate::session::segment_index::SegmentReader;
use crate::session::stretches::Stretch;
use crate::session::{Files, LogError};
use std::io;
use std::ops::Range;

/// How the names of the tools of the task list begin.
const TASKS: &str = "Task";

/// Whose lines a stretch holds.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    /// Those of the segment that is folded: they are counted, and damaged ones are listed.
    Own,
    /// Those of an older segment, into which the segment jumps.
    Older,
}

impl Replay {
    /// Takes the lines of stretches, which all lie in one segment. Lines of the own segment that lie
    /// between them do not stand.
    pub(super) fn stretches(
        &mut self,
        files: &Files,
        stretches: &[Stretch],
        lines: Lines,
        outputs: Outputs,
    ) -> Result<(), LogError> {
        let Some(Stretch { segment, .. }) = stretches.first() else { return Ok(()) };
        let read = self.read_stretches(files, *segment, stretches, lines, outputs);
        read.map_err(LogError::reading(&files.segment(*segment)))
    }

    fn read_stretches(
        &mut self,
        files: &Files,
        segment: SegmentId,
        stretches: &[Stretch],
        lines: Lines,
        outputs: Outputs,
    ) -> io::Result<()> {
        let reader = SegmentReader::open(files, segment)?;
        let long = |stretch: &Stretch| match outputs {
            Outputs::Whole => &[],
            Outputs::Places => reader.long_lines(&stretch.range),
        };
        let all: Vec<Range<u64>> = stretches.iter().flat_map(long).cloned().collect();
        // For all stretches at once: each may be too short for two threads.
        let mut results = reader.results(&all)?.into_iter();
        for stretch in stretches {
            match lines {
                Lines::Own => self.taken_back(&reader, self.end..stretch.range.start)?,
                Lines::Older => {}
            }
            let long = long(stretch).iter().zip(results.by_ref());
            self.read_stretch(&reader, stretch, long, lines, outputs)?;
        }
        Ok(())
    }

    /// Counts lines of the segment that do not stand, and notes what they say for good.
    fn taken_back(&mut self, reader: &SegmentReader, range: Range<u64>) -> io::Result<()> {
        reader.glance(range, |line: Glance<'_>| {
            self.entries += 1;
            self.end = line.end;
            let says_nothing = matches!(line.kind()?.0.as_ref(), "assistant_item" | "tool_result");
            if !says_nothing && let Ok(entry) = decode(&line.line()?) {
                self.note(&entry.fact);
            }
            Ok(())
        })
    }

    /// Takes the lines of a stretch; `long` are the long ones, with the tool results that they are.
    fn read_stretch<'l>(
        &mut self,
        reader: &SegmentReader,
        Stretch { segment, range }: &Stretch,
        long: impl Iterator<Item = (&'l Range<u64>, Option<LongResult>)>,
        lines: Lines,
        outputs: Outputs,
    ) -> io::Result<()> {
        let at = |offset| LogPosition { segment: *segment, offset };
        let mut from = range.start;
        for (long, result) in long {
            whole_lines(&reader.file, from..long.start, |offset, line| {
                self.line(at(offset), line, lines, outputs);
            })?;
            match result {
                Some(result) if !self.is_of_tasks(&result) => {
                    self.count(long.end, lines);
                    self.output(at(long.start), result);
                }
                Some(_) | None => {
                    let line = line_at(&reader.file, long.start, long.end)?.unwrap_or_default();
                    self.line(at(long.start), &line, lines, outputs);
                }
            }
            from = long.end;
        }
        whole_lines(&reader.file, from..range.end, |offset, line| {
            self.line(at(offset), line, lines, outputs);
        })
    }

    /// Takes a line that stands. A long output of a tool may be taken as its place.
    fn line(&mut self, at: LogPosition, line: &[u8], lines: Lines, outputs: Outputs) {
        self.count(at.offset + line.len() as u64 + 1, lines);
        let result = (outputs == Outputs::Places).then(|| LongResult::read(line)).flatten();
        if let Some(result) = result.filter(|result| !self.is_of_tasks(result)) {
            return self.output(at, result);
        }
        match (decode(line), lines) {
            (Ok(entry), Lines::Own) => {
                self.note(&entry.fact);
                self.take(entry);
            }
            (Ok(entry), Lines::Older) => self.take(entry),
            (Err(reason), Lines::Own) => {
                let line = Some(self.entries);
                self.damaged.push(Damaged { byte: at.offset, line, reason });
            }
            (Err(_), Lines::Older) => {}
        }
    }

    /// Counts a line that ends at an offset.
    fn count(&mut self, end: u64, lines: Lines) {
        match lines {
            Lines::Own => {
                self.entries += 1;
                self.end = end;
            }
            Lines::Older => {}
        }
    }

    /// Whether a tool of the task list said it: the host reads that.
    fn is_of_tasks(&self, result: &LongResult) -> bool {
        let mut open = self.open_calls.iter();
        open.any(|(id, name)| id == result.call_id() && name.starts_with(TASKS))
    }

    /// Takes a long output of a tool as its place.
    fn output(&mut self, at: LogPosition, result: LongResult) {
        let (kept, files) = result.kept(at);
        self.result(kept, files);
    }
}
