//! Reading a segment through: what a snapshot is spliced from (its lines are JSON already), and
//! the records of one domain.

use crate::protocol::entry::{Entry, Fact};
use crate::session::LogError;
use crate::session::line::{Forward, decode, id};
use crate::session::rollback::Skip;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// Where the entries of a segment lie in its first `end` bytes, each without its line end. Damaged
/// lines and what was rolled back are left out. Blocking.
pub fn spans(path: &Path, end: u64) -> Result<Vec<Range<u64>>, LogError> {
    let read = || -> std::io::Result<_> {
        let mut skip = Skip::read(path, end)?;
        let mut lines = Forward::new(File::open(path)?, 0, end)?;
        let mut spans = Vec::new();
        let mut line = Vec::new();
        while let Some(start) = lines.next_into(&mut line)? {
            if !skip.skips(start, id(&line)) && decode(&line).is_ok() {
                spans.push(start..start + line.len() as u64);
            }
        }
        Ok(spans)
    };
    read().map_err(LogError::reading(path))
}

/// The extension entries of one domain, oldest first. Other lines are left after a glance.
/// Blocking.
pub fn records(path: &Path, domain: &str) -> Result<Vec<Entry>, LogError> {
    let is_record = |entry: &Entry| match &entry.fact {
        Fact::Extension { domain: found, .. } => found == domain,
        _ => false,
    };
    let read = || -> std::io::Result<_> {
        let mut lines = Forward::new(File::open(path)?, 0, u64::MAX)?;
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
