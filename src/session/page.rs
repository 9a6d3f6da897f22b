//! The transcript, read backwards from its end: cost follows what is shown, whatever the length of
//! the log.

use crate::disk::open_regular;
use crate::protocol::entry::Entry;
use crate::protocol::event::Line;
use crate::protocol::name::{EntryId, SegmentId};
use crate::session::cut::{CUT_OVER, shorten};
use crate::session::line::{Forward, Raw, decode};
use crate::session::lineage::LogPosition;
use crate::session::locate::{locate, place_id};
use crate::session::walk::{Step, Walk};
use crate::session::{Files, LogError};

/// Some entries, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub entries: Vec<Line>,
    /// Where the next page ends; `None` at the beginning of the transcript.
    pub before: Option<EntryId>,
}

/// Reads the entries before `before`, or the last ones, back into the segments that this one was
/// compacted from or jumps into. `end` is how much of the segment counts, all of it when absent; `max_bytes`
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
    let mut walk = match before {
        Some(id) => Walk::before(files, segment, locate(files, segment, end, id)?)?,
        None => Walk::new(files, segment, end)?,
    };
    let mut newest_first: Vec<(Line, EntryId)> = Vec::new();
    let mut left = max_bytes;
    while let Some(step) = walk.next()? {
        let (segment, line) = match step {
            Step::Line(segment, line) => (segment, line),
            Step::Missing(older) => {
                let damaged = LogError::Missing(files.segment(older)).to_string();
                newest_first.push((Line::Damaged { damaged, byte: 0 }, place_id(older, 0)));
                break;
            }
        };
        if !newest_first.is_empty() && cost(&line) > left {
            let before = newest_first.last().map(|(_, id)| *id);
            return Ok(Page::of(newest_first, before));
        }
        left = left.saturating_sub(cost(&line));
        newest_first.push(shown(line, segment));
    }
    Ok(Page::of(newest_first, None))
}

impl Page {
    fn of(newest_first: Vec<(Line, EntryId)>, before: Option<EntryId>) -> Self {
        let entries = newest_first.into_iter().rev().map(|(line, _)| line).collect();
        Self { entries, before }
    }
}

/// Reads one entry whole. Blocking.
pub fn fetch(files: &Files, segment: SegmentId, id: EntryId) -> Result<Entry, LogError> {
    let LogPosition { segment, offset } = locate(files, segment, None, id)?;
    let path = files.segment(segment);
    let read = || Forward::new(open_regular(&path)?, offset, u64::MAX)?.next_line();
    let line = read().map_err(LogError::reading(&path))?;
    let entry = line.map_or_else(|| Err("the line is torn".into()), |line| decode(&line.bytes));
    let mut entry = entry.map_err(|reason| LogError::Damaged { path, byte: offset, reason })?;
    entry.id.get_or_insert(id);
    Ok(entry)
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
