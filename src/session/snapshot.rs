//! Reading a segment through: what a snapshot is spliced from (its lines are JSON already), and
//! the records of one domain.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact};
use crate::protocol::name::SegmentId;
use crate::session::line::{Forward, decode};
use crate::session::stretches::{Stretch, stretches};
use crate::session::{Files, LogError};
use std::path::Path;

/// Where the entries of a session lie, oldest first, each without its line end: those of a segment
/// up to `end`, and those of older segments that it jumps into. Damaged lines and what was taken back
/// are left out. Blocking.
pub fn spans(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<Vec<Stretch>, LogError> {
    let mut spans = Vec::new();
    for Stretch { segment, range } in stretches(files, segment, end)? {
        let path = files.segment(segment);
        let mut read = || -> std::io::Result<()> {
            let mut lines = Forward::new(open_regular(&path)?, range.start, range.end)?;
            let mut line = Vec::new();
            while let Some(start) = lines.next_into(&mut line)? {
                if decode(&line).is_ok() {
                    spans.push(Stretch { segment, range: start..start + line.len() as u64 });
                }
            }
            Ok(())
        };
        read().map_err(LogError::reading(&path))?;
    }
    Ok(spans)
}

/// The extension entries of one domain, oldest first. Other lines are left after a glance.
/// Blocking.
pub fn records(path: &Path, domain: &str) -> Result<Vec<Entry>, LogError> {
    let is_record = |entry: &Entry| match &entry.fact {
        Fact::Extension { domain: found, .. } => found == domain,
        _ => false,
    };
    let read = || -> std::io::Result<_> {
        let mut lines = Forward::new(open_regular(path)?, 0, u64::MAX)?;
        let mut records = Vec::new();
        let mut line = Vec::new();
        while lines.next_into(&mut line)?.is_some() {
            if std::str::from_utf8(&line).is_ok_and(|text| text.contains(domain)) {
                records.extend(decode(&line).ok().filter(is_record));
            }
        }
        Ok(records)
    };
    read().map_err(LogError::reading(path))
}
