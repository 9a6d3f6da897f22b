//! Finding an entry by its id without reading the whole log: ids ascend with time, so halving the
//! file finds the place; only where a clock went backwards is everything searched.

use crate::disk::open_regular;
use crate::protocol::name::{EntryId, SegmentId};
use crate::session::line::{self, Forward};
use crate::session::lineage::{Lineage, LogPosition};
use crate::session::{Files, LogError};
use std::fs::File;
use std::io;

/// Around the place where an id should be, this much is searched on both sides: entries that were
/// made at the same time may stand in another order.
const NEAR: u64 = 1 << 18;

/// Finds an entry in a segment or in those that it goes on from, also one that was taken back since.
/// `end` is where the first of them ends.
pub fn locate(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
    id: EntryId,
) -> Result<LogPosition, LogError> {
    let mut lineage = Lineage::new(files, segment);
    if let Some(place) = of_place_id(id, &mut lineage) {
        return Ok(place);
    }
    for search in [by_halves, by_reading] {
        let mut index = 0;
        while let Some(segment) = lineage.get(index) {
            let path = files.segment(segment);
            let within = || -> io::Result<_> {
                let file = open_regular(&path)?;
                let length = file.metadata()?.len();
                let end = end.filter(|_| index == 0).map_or(length, |end| end.min(length));
                search(&file, end, id)
            };
            if let Some(offset) = within().map_err(LogError::reading(&path))? {
                return Ok(LogPosition { segment, offset });
            }
            index += 1;
        }
    }
    Err(LogError::NoSuchEntry { entry: id, path: files.segment(segment) })
}

/// Whether a segment holds an entry with this id. The search relies on ids that ascend, so it can miss an
/// entry that was written after the clock was set back.
pub fn holds(files: &Files, segment: SegmentId, id: EntryId) -> Result<bool, LogError> {
    let path = files.segment(segment);
    let within = || -> io::Result<_> {
        let file = open_regular(&path)?;
        let end = file.metadata()?.len();
        by_halves(&file, end, id)
    };
    Ok(within().map_err(LogError::reading(&path))?.is_some())
}

/// Finds the line with an id in one file.
pub fn by_halves(file: &File, end: u64, id: EntryId) -> io::Result<Option<u64>> {
    let Some(first) = lines_from(file, 0, end)?.next_line()? else { return Ok(None) };
    if line::id(&first.bytes) == Some(id) {
        return Ok(Some(0));
    }
    // The first line of a fork is younger than those it copies, so it takes no part.
    let (mut low, mut high) = (first.end(), end);
    while high.saturating_sub(low) > NEAR {
        let middle = low + (high - low) / 2;
        match first_id(file, middle, high)? {
            Some((offset, found)) if found <= id => low = offset,
            Some(_) | None => high = middle,
        }
    }
    let from = next_line_start(file, low.saturating_sub(NEAR).max(first.end()), end)?;
    scan(file, from, high.saturating_add(NEAR).min(end), end, id)
}

fn by_reading(file: &File, end: u64, id: EntryId) -> io::Result<Option<u64>> {
    scan(file, 0, end, end, id)
}

/// The line with this id among those that begin between two offsets.
fn scan(file: &File, from: u64, to: u64, end: u64, id: EntryId) -> io::Result<Option<u64>> {
    let mut lines = lines_from(file, from, end)?;
    while let Some((start, found)) = lines.next_id()? {
        if start > to {
            break;
        }
        if found == Some(id) {
            return Ok(Some(start));
        }
    }
    Ok(None)
}

/// The first line with an id that begins between two offsets.
fn first_id(file: &File, from: u64, to: u64) -> io::Result<Option<(u64, EntryId)>> {
    let start = next_line_start(file, from, to)?;
    let mut lines = lines_from(file, start, to)?;
    while let Some((start, id)) = lines.next_id()? {
        if let Some(id) = id {
            return Ok(Some((start, id)));
        }
    }
    Ok(None)
}

/// The beginning of the first line at or behind an offset.
fn next_line_start(file: &File, from: u64, end: u64) -> io::Result<u64> {
    let Some(before) = from.checked_sub(1) else { return Ok(0) };
    let mut lines = lines_from(file, before, end)?;
    Ok(if lines.skip_line()? { lines.offset() } else { end })
}

fn lines_from(file: &File, start: u64, end: u64) -> io::Result<Forward> {
    Forward::new(file.try_clone()?, start, end)
}

/// An id for a line that has none: it names the line's place. UUIDs of version 8 are free for
/// such use, and no entry has one.
pub fn place_id(segment: SegmentId, offset: u64) -> EntryId {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&offset.to_be_bytes()[2..]);
    bytes[6] = 0x80;
    bytes[8] = 0x80;
    bytes[10..].copy_from_slice(&segment.0.as_bytes()[10..]);
    EntryId(uuid::Uuid::from_bytes(bytes))
}

fn of_place_id(id: EntryId, lineage: &mut Lineage<'_>) -> Option<LogPosition> {
    const VERSION: u8 = 0x80;
    let bytes = id.0.as_bytes();
    let mut offset = [0; 8];
    offset[2..].copy_from_slice(&bytes[..6]);
    let offset = u64::from_be_bytes(offset);
    let mut index = 0;
    while let Some(segment) = lineage.get(index).filter(|_| bytes[6] == VERSION) {
        if place_id(segment, offset) == id {
            return Some(LogPosition { segment, offset });
        }
        index += 1;
    }
    None
}
