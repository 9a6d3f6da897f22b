//! Going back: a new segment that begins with the kept lines of another, which stays as it is.

use crate::disk::{self, Appender};
use crate::protocol::entry::{Entry, Fact, SegmentOrigin};
use crate::protocol::name::{EntryId, SegmentId, SessionId};
use crate::session::journal::{committed, encode};
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
    fork_into(files, from, keep_entries, forked, files, None).await
}

/// As [`fork`], into another session when there is one; what its entries refer to comes along.
pub async fn fork_into(
    files: &Files,
    from: SegmentId,
    keep_entries: usize,
    forked: SegmentOrigin,
    to: &Files,
    session: Option<SessionId>,
) -> Result<(Journal, SegmentId, u64), LogError> {
    let segment = SegmentId::new();
    let (source, path) = (files.segment(from), to.segment(segment));
    let (target, dir, blobs) = (path.clone(), to.dir().to_owned(), (files.blobs(), to.blobs()));
    let appender = committed(&path, move || {
        if session.is_some() {
            disk::private_dir(&dir)?;
            share(&blobs.0, &blobs.1)?;
        }
        copy(&source, &target, keep_entries, forked, session)
    });
    let appender = appender.await?;
    let end = appender.length();
    Ok((Journal::start(to, segment, appender), segment, end))
}

/// Images and former contents are named after what they hold and never change: a link is a copy.
fn share(from: &Path, to: &Path) -> Result<(), LogError> {
    let Ok(entries) = std::fs::read_dir(from) else { return Ok(()) };
    disk::private_dir(to)?;
    for entry in entries.flatten() {
        let path = to.join(entry.file_name());
        if std::fs::hard_link(entry.path(), &path).is_err() {
            std::fs::copy(entry.path(), &path).map_err(LogError::reading(&path))?;
        }
    }
    Ok(())
}

/// How many entries of a segment lead to `at` and include it (`None`: all of them), and how many
/// turns had ended there. An `at` that the segment does not hold is an error. Blocking, so it comes
/// as a closure.
pub fn entries_through(
    files: &Files,
    segment: SegmentId,
    at: Option<EntryId>,
) -> impl FnOnce() -> Result<(usize, u64), LogError> + Send + 'static {
    let path = files.segment(segment);
    move || count(&path, at)
}

fn count(path: &Path, at: Option<EntryId>) -> Result<(usize, u64), LogError> {
    let file = File::open(path).map_err(LogError::reading(path))?;
    let length = file.metadata().map_err(LogError::reading(path))?.len();
    let mut lines = Forward::new(file, 0, length).map_err(LogError::reading(path))?;
    let (mut line, mut entries, mut turns) = (Vec::new(), 0, 0);
    while lines.next_into(&mut line).map_err(LogError::reading(path))?.is_some() {
        entries += 1;
        let entry: Option<Entry> = serde_json::from_slice(&line).ok();
        turns += u64::from(entry.as_ref().is_some_and(|e| matches!(e.fact, Fact::TurnEnd { .. })));
        if at.is_some() && entry.is_some_and(|entry| entry.id == at) {
            return Ok((entries, turns));
        }
    }
    match at {
        Some(entry) => Err(LogError::NotThere { entry, path: path.to_owned() }),
        None => Ok((entries, turns)),
    }
}

fn copy(
    source: &Path,
    target: &Path,
    keep_entries: usize,
    forked: SegmentOrigin,
    session: Option<SessionId>,
) -> Result<Appender, LogError> {
    let (start, first_end) = first_line(source)?;
    let start = encode(&[forked_start(start, forked, session)], target)?;
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

fn forked_start(start: Entry, forked: SegmentOrigin, session: Option<SessionId>) -> Entry {
    let mut fact = start.fact;
    if let Fact::SegmentStart { forked_from, session_id, .. } = &mut fact {
        *forked_from = Some(forked);
        *session_id = session.unwrap_or(*session_id);
    }
    Entry::new(fact)
}
