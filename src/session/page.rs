//! The transcript, read backwards from its end: cost follows what is shown, whatever the length of
//! the log.

use crate::protocol::entry::Entry;
use crate::protocol::event::Line;
use crate::protocol::name::{EntryId, SegmentId};
use crate::session::cut::{CUT_OVER, shorten};
use crate::session::line::{Backward, Forward, Raw, decode};
use crate::session::locate::{LogPosition, by_halves, compacted_from, locate, place_id};
use crate::session::rollback;
use crate::session::{Files, LogError};
use std::fs::File;

/// Some entries, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub entries: Vec<Line>,
    /// Where the next page ends; `None` at the beginning of the transcript.
    pub before: Option<EntryId>,
}

/// Reads the entries before `before`, or the last ones, back into the segments that this one was
/// compacted from. `end` is how much of the segment counts, all of it when absent; `max_bytes`
/// bounds the page, but one entry is always given. Blocking.
///
/// What was rolled back is left out. Entries over 64 KiB come cut. A line without an id gets one
/// that names its place.
pub fn page(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
    before: Option<EntryId>,
    max_bytes: u64,
) -> Result<Page, LogError> {
    let mut place = match before {
        Some(id) => locate(files, segment, end, id)?,
        None => LogPosition { segment, offset: end.unwrap_or(u64::MAX) },
    };
    let mut draft = Draft { files, newest_first: Vec::new(), left: max_bytes };
    loop {
        if let Some(before) = draft.segment(place)? {
            return Ok(draft.page(Some(before)));
        }
        match compacted_from(files, place.segment) {
            Ok(Some(older)) if files.segment(older).exists() => {
                place = LogPosition { segment: older, offset: u64::MAX };
            }
            Ok(Some(older)) => {
                draft.missing(older);
                return Ok(draft.page(None));
            }
            Ok(None) | Err(_) => return Ok(draft.page(None)),
        }
    }
}

/// Reads one entry whole. Blocking.
pub fn fetch(files: &Files, segment: SegmentId, id: EntryId) -> Result<Entry, LogError> {
    let LogPosition { segment, offset } = locate(files, segment, None, id)?;
    let path = files.segment(segment);
    let read = || Forward::new(File::open(&path)?, offset, u64::MAX)?.next_line();
    let line = read().map_err(LogError::reading(&path))?;
    let entry = line.map_or_else(|| Err("the line is torn".into()), |line| decode(&line.bytes));
    let mut entry = entry.map_err(|reason| LogError::Damaged { path, byte: offset, reason })?;
    entry.id.get_or_insert(id);
    Ok(entry)
}

/// A page under construction.
struct Draft<'f> {
    files: &'f Files,
    newest_first: Vec<(Line, EntryId)>,
    left: u64,
}

impl Draft<'_> {
    /// Takes lines of one segment from a place on backwards. `Some` when the page is full: where
    /// the next one ends.
    fn segment(&mut self, place: LogPosition) -> Result<Option<EntryId>, LogError> {
        let path = self.files.segment(place.segment);
        let mut read = || {
            let file = File::open(&path)?;
            let end = place.offset.min(file.metadata()?.len());
            let end = match Forward::new(file.try_clone()?, end, u64::MAX)?.next_line()? {
                Some(line) => before_rollback(&file, &line)?.unwrap_or(end),
                None => end,
            };
            self.lines(&file, place.segment, end)
        };
        read().map_err(LogError::reading(&path))
    }

    fn lines(
        &mut self,
        file: &File,
        segment: SegmentId,
        end: u64,
    ) -> std::io::Result<Option<EntryId>> {
        let mut lines = Backward::new(file, end)?;
        while let Some(line) = lines.next_line()? {
            let full = !self.newest_first.is_empty() && cost(&line) > self.left;
            if full {
                return Ok(self.newest_first.last().map(|(_, id)| *id));
            }
            self.left = self.left.saturating_sub(cost(&line));
            if let Some(offset) = before_rollback(file, &line)? {
                lines.jump(offset);
            }
            self.newest_first.push(shown(line, segment));
        }
        Ok(None)
    }

    fn missing(&mut self, segment: SegmentId) {
        let path = self.files.segment(segment);
        let damaged = LogError::Missing(path).to_string();
        self.newest_first.push((Line::Damaged { damaged, byte: 0 }, place_id(segment, 0)));
    }

    fn page(self, before: Option<EntryId>) -> Page {
        let entries = self.newest_first.into_iter().rev().map(|(line, _)| line).collect();
        Page { entries, before }
    }
}

/// Where the transcript goes on before a line, when that line is a rollback.
fn before_rollback(file: &File, line: &Raw) -> std::io::Result<Option<u64>> {
    match rollback::from_line(&line.bytes) {
        Some(from) => by_halves(file, line.start, from),
        None => Ok(None),
    }
}

/// What a line takes of the page.
fn cost(raw: &Raw) -> u64 {
    (raw.bytes.len() as u64 + 1).min(CUT_OVER)
}

fn shown(raw: Raw, segment: SegmentId) -> (Line, EntryId) {
    let place = place_id(segment, raw.start);
    match decode(&raw.bytes) {
        Err(reason) => (Line::Damaged { damaged: reason, byte: raw.start }, place),
        Ok(mut entry) => {
            let id = *entry.id.get_or_insert(place);
            let cut_bytes = raw.bytes.len() as u64;
            let line = if cut_bytes > CUT_OVER {
                Line::Cut { cut_bytes, entry: Box::new(shorten(entry)) }
            } else {
                Line::Whole(Box::new(entry))
            };
            (line, id)
        }
    }
}
