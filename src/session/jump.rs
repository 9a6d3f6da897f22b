//! Entries that say that what stands before them ends at an earlier place. The rollback of a run, a
//! rewind, its undo and the beginning of a fork are all such jumps: readers that go backwards go on
//! at that place, and nothing between is part of the session.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact, domain};
use crate::protocol::name::{EntryId, SegmentId};
use crate::session::line::{Backward, decode, id};
use crate::session::lineage::{Lineage, LogPosition};
use crate::session::{Files, LogError};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// What a jump is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// A run without a result was taken back.
    RolledBack,
    /// A person went back to before a message.
    Rewound,
    /// A person took a rewind back.
    Undone,
    /// A person took an undo back.
    Redone,
    /// The session goes on from another Pod's.
    Forked,
}

impl JumpKind {
    /// Whether the run before the jump's target counts as ended: the Pod is idle after it.
    pub fn ends_run(self) -> bool {
        matches!(self, Self::RolledBack | Self::Rewound)
    }
}

/// A jump, as its entry says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    pub kind: JumpKind,
    to: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Position(LogPosition),
    /// Before the entry with this id, in logs of versions that wrote no position.
    Entry(EntryId),
}

/// How far from the beginning of a line the domain of one of our entries stands, in bytes.
const HEAD: usize = 256;
/// The beginning of the domains of jumps; it stands in the first 256 bytes of their lines.
pub const DOMAIN: &[u8] = br#""domain":"yoi.r"#;

impl Jump {
    /// The jump that a fact is.
    pub fn of(fact: &Fact) -> Option<Self> {
        let Fact::Extension { domain, payload } = fact else { return None };
        let position = |key: &str| LogPosition::deserialize(payload.get(key)?).ok();
        match domain.as_str() {
            domain::ROLLED_BACK => {
                let entry = || payload.get("from").and_then(Value::as_str)?.parse().ok();
                let to = match position("to") {
                    Some(position) => Target::Position(position),
                    None => Target::Entry(entry()?),
                };
                Some(Self { kind: JumpKind::RolledBack, to })
            }
            domain::REWOUND => {
                let kinds = [
                    ("to", JumpKind::Rewound),
                    ("undo", JumpKind::Undone),
                    ("redo", JumpKind::Redone),
                    ("fork", JumpKind::Forked),
                ];
                kinds.into_iter().find_map(|(key, kind)| {
                    Some(Self { kind, to: Target::Position(position(key)?) })
                })
            }
            _ => None,
        }
    }

    /// As [`Jump::of`], for a line; any other line is left after a look at its beginning.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let head = &line[..line.len().min(HEAD)];
        memchr::memmem::find(head, DOMAIN)?;
        Self::of(&decode(line).ok()?.fact)
    }

    /// The entry before which the session goes on, for a jump of a version that wrote no position.
    pub fn entry_before(self) -> Option<EntryId> {
        match self.to {
            Target::Entry(id) => Some(id),
            Target::Position(_) => None,
        }
    }

    /// Where the session goes on, for a jump that says it.
    pub fn position(self) -> Option<LogPosition> {
        match self.to {
            Target::Position(position) => Some(position),
            Target::Entry(_) => None,
        }
    }

    /// The same jump, with the place that its target was found to be.
    pub fn leading_to(self, to: LogPosition) -> Self {
        Self { to: Target::Position(to), ..self }
    }

    /// The entry of a jump to a position. `more` is an object with the other fields of its payload.
    pub fn entry(kind: JumpKind, to: LogPosition, more: Value) -> Entry {
        let (domain, key) = match kind {
            JumpKind::RolledBack => (domain::ROLLED_BACK, "to"),
            JumpKind::Rewound => (domain::REWOUND, "to"),
            JumpKind::Undone => (domain::REWOUND, "undo"),
            JumpKind::Redone => (domain::REWOUND, "redo"),
            JumpKind::Forked => (domain::REWOUND, "fork"),
        };
        let mut payload = more;
        payload[key] = json!(to);
        Entry::extension(domain, payload)
    }

    /// The place before which the session goes on backwards, for the jump whose line begins at
    /// `at`. `None` when there is no such place: then the line counts as if it were no jump. A jump
    /// leads to a smaller offset or to an older segment, so no walk goes in a circle.
    pub fn target(
        self,
        at: LogPosition,
        lineage: &mut Lineage<'_>,
        files: &Files,
    ) -> Result<Option<LogPosition>, LogError> {
        match self.to {
            Target::Entry(id) => entry_before(at, id, lineage, files),
            Target::Position(to) => {
                let earlier = if to.segment == at.segment {
                    to.offset < at.offset
                } else {
                    lineage.is_older(to.segment, at.segment)
                };
                Ok((earlier && begins_line(files, to)?).then_some(to))
            }
        }
    }
}

/// Whether a line, or the end of the file, is at a place.
fn begins_line(files: &Files, at: LogPosition) -> Result<bool, LogError> {
    let path = files.segment(at.segment);
    let Some(before) = at.offset.checked_sub(1) else { return Ok(false) };
    let read = || {
        let mut byte = [0];
        let read = open_regular(&path)?.read_at(&mut byte, before)?;
        Ok(read == 1 && byte == *b"\n")
    };
    read().map_err(LogError::reading(&path))
}

/// The nearest line with an id before a place. A run in which the history was compacted began in the
/// segment before.
fn entry_before(
    at: LogPosition,
    id: EntryId,
    lineage: &mut Lineage<'_>,
    files: &Files,
) -> Result<Option<LogPosition>, LogError> {
    if let Some(offset) = find_before(files, at.segment, at.offset, id)? {
        return Ok(Some(LogPosition { segment: at.segment, offset }));
    }
    let Some(&segment) = lineage.older(at.segment).first() else { return Ok(None) };
    let offset = find_before(files, segment, u64::MAX, id)?;
    Ok(offset.map(|offset| LogPosition { segment, offset }))
}

fn find_before(
    files: &Files,
    segment: SegmentId,
    end: u64,
    wanted: EntryId,
) -> Result<Option<u64>, LogError> {
    let path = files.segment(segment);
    let read = || -> io::Result<_> {
        let file = open_regular(&path)?;
        let end = end.min(file.metadata()?.len());
        // Whether the id stands where no line of this program has it.
        let mut is_elsewhere = false;
        let found = last_hit(&file, 0..end, wanted.to_string().as_bytes(), |hit| {
            let line = line_around(&file, hit, end)?;
            let found = line.filter(|(_, line)| id(line) == Some(wanted));
            is_elsewhere |= found.is_none();
            Ok(found.map(|(start, _)| start))
        })?;
        if found.is_some() || !is_elsewhere { Ok(found) } else { by_lines(file, end, wanted) }
    };
    read().map_err(LogError::reading(&path))
}

/// The last line with an id, wherever in the line the id stands.
fn by_lines(file: File, end: u64, wanted: EntryId) -> io::Result<Option<u64>> {
    let mut lines = Backward::new(file, end)?;
    while let Some(line) = lines.next_line()? {
        if id(&line.bytes) == Some(wanted) {
            return Ok(Some(line.start));
        }
    }
    Ok(None)
}

/// The last jump whose line lies in a range of whole lines, and where that line begins. Only the
/// jumps themselves are read as lines.
pub fn last_jump(file: &File, range: Range<u64>) -> io::Result<Option<(u64, Jump)>> {
    let end = range.end;
    last_hit(file, range, DOMAIN, |hit| jump_around(file, hit, end))
}

fn jump_around(file: &File, hit: u64, end: u64) -> io::Result<Option<(u64, Jump)>> {
    let line = line_around(file, hit, end)?;
    Ok(line.and_then(|(start, line)| Some((start, Jump::of_line(&line)?))))
}

/// Reads what stands between two offsets, and behind it as much of a text of this length as can
/// begin there and end before `end`.
fn read_with_overlap(
    file: &File,
    from: u64,
    to: u64,
    end: u64,
    length: usize,
    chunk: &mut Vec<u8>,
) -> io::Result<()> {
    let behind = (to + length as u64 - 1).min(end);
    chunk.resize(usize::try_from(behind - from).unwrap_or(0), 0);
    file.read_exact_at(chunk, from)
}

/// The size of the first piece that is searched, in bytes, and of each later one. A larger buffer
/// would be mapped and unmapped for each search, of which a log with many jumps needs many.
const FIRST_CHUNK: usize = 1 << 15;
const CHUNK: usize = 1 << 16;

/// Looks at the places of a text in a range, the last one first, until one of them is what is
/// searched.
fn last_hit<T>(
    file: &File,
    range: Range<u64>,
    text: &[u8],
    mut look: impl FnMut(u64) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let Range { start, end } = range;
    let finder = memchr::memmem::Finder::new(text);
    let (mut chunk, mut size) = (Vec::with_capacity(CHUNK + text.len()), FIRST_CHUNK);
    let mut to = end;
    while to > start {
        let from = to.saturating_sub(size as u64).max(start);
        size = CHUNK;
        read_with_overlap(file, from, to, end, text.len(), &mut chunk)?;
        let hits: Vec<usize> = finder.find_iter(&chunk).collect();
        for hit in hits.into_iter().rev() {
            if let Some(found) = look(from + hit as u64)? {
                return Ok(Some(found));
            }
        }
        to = from;
    }
    Ok(None)
}

/// The line at whose beginning, within [`HEAD`], an offset lies, and where it begins. `None` for an
/// offset inside a longer line, and for a torn line.
fn line_around(file: &File, hit: u64, end: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let from = hit.saturating_sub(HEAD as u64);
    let mut head = vec![0; usize::try_from(hit - from).unwrap_or(0)];
    file.read_exact_at(&mut head, from)?;
    let start = match memchr::memrchr(b'\n', &head) {
        Some(at) => from + at as u64 + 1,
        None if from == 0 => 0,
        // Text inside a longer line.
        None => return Ok(None),
    };
    Ok(line_at(file, start, end)?.map(|line| (start, line)))
}

/// The line that begins at an offset, when it ends at or before `end`.
pub fn line_at(file: &File, start: u64, end: u64) -> io::Result<Option<Vec<u8>>> {
    const STEP: u64 = 4096;
    let mut line = Vec::new();
    loop {
        let at = start + line.len() as u64;
        let size = STEP.max(line.len() as u64).min(end.saturating_sub(at));
        if size == 0 {
            return Ok(None);
        }
        let known = line.len();
        line.resize(known + usize::try_from(size).unwrap_or(0), 0);
        file.read_exact_at(&mut line[known..], at)?;
        if let Some(length) = memchr::memchr(b'\n', &line[known..]) {
            line.truncate(known + length);
            return Ok(Some(line));
        }
    }
}
