//! Whether a session has anything to lose.

use crate::disk::open_regular;
use crate::protocol::entry::Fact;
use crate::session::Files;
use crate::session::line::{Forward, Head, decode};
use std::io;
use std::path::Path;

/// Whether any segment holds a message, also one that was rolled back since, or carries on another
/// segment. A segment that cannot be read counts as one with a message. Blocking.
pub fn is_begun(files: &Files) -> bool {
    files.segments().into_iter().any(|segment| begins(&files.segment(segment)).unwrap_or(true))
}

fn begins(path: &Path) -> io::Result<bool> {
    let file = open_regular(path)?;
    let end = file.metadata()?.len();
    let mut lines = Forward::new(file, 0, end)?;
    let mut line = Vec::new();
    while lines.next_into(&mut line)?.is_some() {
        let begun = match Head::read(&line).map(|head| head.kind).as_deref() {
            None | Some("user_input") => true,
            Some("segment_start") => carries_on(&line),
            Some(_) => false,
        };
        if begun {
            return Ok(true);
        }
    }
    Ok(false)
}

fn carries_on(line: &[u8]) -> bool {
    match decode(line).map(|entry| entry.fact) {
        Ok(Fact::SegmentStart { forked_from, compacted_from, .. }) => {
            forked_from.is_some() || compacted_from.is_some()
        }
        Ok(_) | Err(_) => true,
    }
}
