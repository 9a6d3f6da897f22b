//! A second session with the same past: the segments come along as they are, and a new one goes on
//! from a place in them.

use crate::disk::{self, Appender, DiskError, open_regular};
use crate::protocol::RunOutcome;
use crate::protocol::entry::{Entry, Fact, SegmentOrigin};
use crate::protocol::name::{EntryId, SegmentId, SessionId};
use crate::session::journal::{committed, encode};
use crate::session::jump::{Jump, JumpKind, line_at};
use crate::session::line::{Backward, decode, first_line};
use crate::session::lineage::{Lineage, LogPosition};
use crate::session::locate::locate;
use crate::session::walk::{Step, Walk};
use crate::session::{Files, Journal, LogError, open};
use serde_json::json;
use std::io::{self, Read as _};
use std::path::Path;

/// Where a fork parts from its session.
#[derive(Clone, Copy, Debug)]
pub struct ForkPoint {
    /// The end of the last entry that the fork gets.
    position: LogPosition,
    /// Turns that had ended there.
    turns: u64,
    /// Whether a run was under way there.
    in_run: bool,
}

/// Finds where a fork parts: behind the entry `at`, wherever it stands in the session that ends in
/// `segment`, or at its end. Blocking.
pub fn fork_point(
    files: &Files,
    segment: SegmentId,
    at: Option<EntryId>,
) -> Result<ForkPoint, LogError> {
    let position = match at {
        Some(id) => behind(files, locate(files, segment, None, id)?)?,
        None => LogPosition { segment, offset: end_of_lines(&files.segment(segment))? },
    };
    let mut walk = Walk::new(files, position.segment, Some(position.offset))?;
    let mut turns = 0;
    while let Some(Step::Line(_, line)) = walk.next()? {
        if let Ok(Entry { fact: Fact::TurnEnd { turn_count }, .. }) = decode(&line.bytes) {
            turns = turn_count;
            break;
        }
    }
    Ok(ForkPoint { position, turns, in_run: open::run_is_open(files, position)? })
}

/// The end of the line that begins at a place.
fn behind(files: &Files, at: LogPosition) -> Result<LogPosition, LogError> {
    let path = files.segment(at.segment);
    let read = || -> io::Result<_> {
        let file = open_regular(&path)?;
        line_at(&file, at.offset, file.metadata()?.len())
    };
    let line = read().map_err(LogError::reading(&path))?;
    let torn = || LogError::Damaged { path, byte: at.offset, reason: "the line is torn".into() };
    let length = line.ok_or_else(torn)?.len() as u64 + 1;
    Ok(LogPosition { offset: at.offset + length, ..at })
}

/// Where the last whole line of a file ends.
fn end_of_lines(path: &Path) -> Result<u64, LogError> {
    let read = || -> io::Result<_> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        let last = Backward::new(file, length)?.next_line()?;
        Ok(last.map_or(0, |line| line.end()))
    };
    match read().map_err(LogError::reading(path))? {
        0 => Err(LogError::Empty(path.to_owned())),
        end => Ok(end),
    }
}

/// Begins the session `to` with the history of another session up to a place, in a new segment. Entries
/// behind that place are left out. Older segments become hard links, because they are never written
/// again; the segment that holds the place is copied up to it. The new segment begins with the entries
/// `more`.
pub async fn fork(
    files: &Files,
    point: ForkPoint,
    to: &Files,
    session: SessionId,
    more: Vec<Entry>,
) -> Result<(Journal, SegmentId), LogError> {
    let segment = SegmentId::new();
    let path = to.segment(segment);
    let (from, into, target) = (files.clone(), to.clone(), path.clone());
    let appender = committed(&path, move || {
        disk::private_dir(into.dir())?;
        share_all(&from.blobs(), &into.blobs())?;
        share_segments(&from, point.position, &into)?;
        let mut entries = beginning(&from, point, session)?;
        entries.extend(more);
        disk::create(&target, &encode(&entries, &target)?, 0o600)?;
        Ok(Appender::open(&target)?.0)
    });
    let appender = appender.await?;
    Ok((Journal::start(to, segment, appender), segment))
}

/// The first lines of the new segment: what it is, where its past ends, and the end of a run that was
/// under way there.
fn beginning(from: &Files, point: ForkPoint, session: SessionId) -> Result<Vec<Entry>, LogError> {
    let (start, _) = first_line(&from.segment(point.position.segment))?;
    let mut fact = start.fact;
    if let Fact::SegmentStart { session_id, history, forked_from, compacted_from, .. } = &mut fact {
        *session_id = session;
        history.clear();
        *compacted_from = None;
        let (segment_id, at_turn_index) = (point.position.segment, point.turns);
        *forked_from = Some(SegmentOrigin { segment_id, at_turn_index });
    }
    let mut entries =
        vec![Entry::new(fact), Jump::entry(JumpKind::Forked, point.position, json!({}))];
    entries.extend(point.in_run.then(|| RunOutcome::CutOff(open::FORKED).entry()));
    Ok(entries)
}

fn share_segments(from: &Files, parts: LogPosition, to: &Files) -> Result<(), LogError> {
    let (source, target) = (from.segment(parts.segment), to.segment(parts.segment));
    let mut past = open_regular(&source).map_err(LogError::reading(&source))?.take(parts.offset);
    disk::create_with(&target, 0o600, |out| io::copy(&mut past, out).map(drop))?;
    for older in Lineage::new(from, parts.segment).older(parts.segment) {
        share(&from.segment(older), &to.segment(older))?;
    }
    Ok(())
}

/// Images and former contents are named after what they hold and never change: a link is a copy.
fn share_all(from: &Path, to: &Path) -> Result<(), LogError> {
    let Ok(entries) = std::fs::read_dir(from) else { return Ok(()) };
    disk::private_dir(to)?;
    for entry in entries.flatten() {
        share(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Links a file that is not written any more; where the file system has no links it is copied.
fn share(from: &Path, to: &Path) -> Result<(), LogError> {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).map_err(DiskError::at("copy", from))?;
    }
    Ok(())
}
