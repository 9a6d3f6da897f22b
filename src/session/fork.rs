//! Going back: a new segment that begins with the kept lines of another, which stays as it is.

use crate::disk::{self, Appender};
use crate::protocol::entry::{Entry, Fact, SegmentOrigin};
use crate::protocol::name::SegmentId;
use crate::session::journal::{blocking, encode};
use crate::session::line::{Forward, first_line};
use crate::session::{Files, Journal, LogError};
use std::fs::File;
use std::path::Path;

/// Opens a new segment with the first `keep_entries` lines of `from`, verbatim and with their ids;
/// only its first line says anew what the segment is and that it was `forked` there. Returns its
/// length too.
pub async fn fork(
    files: &Files,
    from: SegmentId,
    keep_entries: usize,
    forked: SegmentOrigin,
) -> Result<(Journal, SegmentId, u64), LogError> {
    let segment = SegmentId::new();
    let (source, path) = (files.segment(from), files.segment(segment));
    let target = path.clone();
    let appender = blocking(&path, move || copy(&source, &target, keep_entries, forked)).await?;
    let end = appender.length();
    Ok((Journal::start(files, segment, appender), segment, end))
}

fn copy(
    source: &Path,
    target: &Path,
    keep_entries: usize,
    forked: SegmentOrigin,
) -> Result<Appender, LogError> {
    let (start, first_end) = first_line(source)?;
    let start = encode(&[forked_start(start, forked)], target)?;
    let file = File::open(source).map_err(LogError::reading(source))?;
    let length = file.metadata().map_err(LogError::reading(source))?.len();
    let lines = Forward::new(file, first_end, length);
    let mut lines = lines.map_err(LogError::reading(source))?;
    disk::create_with(target, 0o600, |out| {
        out.write_all(&start)?;
        let mut line = Vec::new();
        for _ in 1..keep_entries {
            if lines.next_into(&mut line)?.is_none() {
                break;
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        Ok(())
    })?;
    Ok(Appender::open(target)?.0)
}

fn forked_start(start: Entry, forked: SegmentOrigin) -> Entry {
    let mut fact = start.fact;
    if let Fact::SegmentStart { forked_from, .. } = &mut fact {
        *forked_from = Some(forked);
    }
    Entry::new(fact)
}
