//! Where one can go back to: before each thing a person said, also before a compaction; and which
//! rewind can be taken back.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact, SystemItem};
use crate::protocol::method::Segment;
use crate::protocol::name::{EntryId, PodName, SegmentId};
use crate::protocol::{Comeback, RewindTarget, RewindTargetId};
use crate::session::jump::{Jump, JumpKind, line_at};
use crate::session::line::{decode, id};
use crate::session::lineage::LogPosition;
use crate::session::scan::{Input, Scan};
use crate::session::segment_index::SegmentReader;
use crate::session::stretches::{Stretch, all_stretches, stretches};
use crate::session::{Files, LogError};
use crate::text::SafeText;
use std::collections::BTreeMap;

/// Characters of an input that a target shows.
const PREVIEW: usize = 120;
const WARNING: &str = "history suffix will be discarded; tool side effects are not undone";

/// What a session can go back to.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Lines in the newest segment.
    pub head_entries: usize,
    /// Newest first.
    pub targets: Vec<Target>,
    pub undo: Option<Box<Comeback>>,
    pub redo: Option<Box<Comeback>>,
}

/// A place to go back to.
#[derive(Clone, Debug)]
pub struct Target {
    pub listed: RewindTarget,
    /// Where the session ends after the rewind.
    pub to: LogPosition,
    /// The entries that the rewind drops.
    pub entries: usize,
    /// Where the input stands that is taken back.
    pub input: LogPosition,
}

/// The places to go back to. Those from before a compaction name the older segment. Blocking; looks
/// at the beginning of each line, and reads whole only the inputs and the changes of files.
pub fn rewind_targets(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<Targets, LogError> {
    let standing = all_stretches(files, segment, end)?;
    let scan = Scan::read(files, segment, &standing)?;
    let head_entries = scan.head_entries;
    let target = |(index, input): (usize, &Input)| target(&scan, head_entries, index, input);
    Ok(Targets {
        head_entries,
        targets: scan.inputs.iter().enumerate().rev().map(target).collect(),
        undo: comeback(files, segment, &standing, &[JumpKind::Rewound, JumpKind::Redone])?,
        redo: comeback(files, segment, &standing, &[JumpKind::Undone])?,
    })
}

/// How many lines the newest segment has.
pub fn head_entries(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<usize, LogError> {
    let path = files.segment(segment);
    let count = || {
        let lines = SegmentReader::open(files, segment)?;
        let end = end.unwrap_or(u64::MAX).min(lines.file.metadata()?.len());
        lines.count_lines(0..end)
    };
    count().map_err(LogError::reading(&path))
}

fn target(scan: &Scan, head: usize, index: usize, input: &Input) -> Target {
    let losses = scan.losses(Some(input));
    let listed = RewindTarget {
        id: RewindTargetId {
            segment_id: input.place.segment,
            user_input_entry_index: input.place.index,
        },
        expected_head_entries: head,
        truncate_entries: input.first_dropped.index,
        turn_index: index + 1,
        timestamp_ms: Some(input.ts),
        preview: preview(&input.segments),
        eligible: true,
        disabled_reason: None,
        warning: (losses.tool_calls > 0).then(|| WARNING.into()),
        drops: Some(losses),
    };
    let at = |place: crate::session::scan::Place| LogPosition {
        segment: place.segment,
        offset: place.offset,
    };
    let entries = scan.lines - input.first_dropped.ordinal;
    Target { listed, to: at(input.first_dropped), entries, input: at(input.place) }
}

/// How many lines of a segment stand, with those of older segments that it jumps into.
pub fn standing_entries(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
) -> Result<usize, LogError> {
    let mut lines = 0;
    for Stretch { segment, range } in stretches(files, segment, end)? {
        let path = files.segment(segment);
        let count = || SegmentReader::open(files, segment)?.count_lines(range);
        lines += count().map_err(LogError::reading(&path))?;
    }
    Ok(lines)
}

/// The newest jump of these kinds that stands, and what taking it back would change.
fn comeback(
    files: &Files,
    head: SegmentId,
    standing: &[Stretch],
    kinds: &[JumpKind],
) -> Result<Option<Box<Comeback>>, LogError> {
    let jump = standing_jump(files, standing, |jump| kinds.contains(&jump.kind))?;
    let comeback = jump.map(|jump| taken_back(files, head, standing, &jump));
    Ok(comeback.transpose()?.map(Box::new))
}

/// What taking a jump back would change.
fn taken_back(
    files: &Files,
    head: SegmentId,
    standing: &[Stretch],
    jump: &StandingJump,
) -> Result<Comeback, LogError> {
    let (dropped, returned) = difference(standing, &before(files, jump)?);
    let dropped = Scan::read(files, head, &dropped)?;
    let returned = Scan::read(files, head, &returned)?;
    let first = returned.inputs.first().or(dropped.inputs.first());
    Ok(Comeback {
        entry: jump.entry,
        preview: first.map(|input| preview(&input.segments)).unwrap_or_default(),
        returns: returned.losses(None),
        drops: dropped.losses(None),
    })
}

/// What stood before a jump. The segment where it stands may have been compacted since, so it is read from there.
fn before(files: &Files, jump: &StandingJump) -> Result<Vec<Stretch>, LogError> {
    all_stretches(files, jump.at.segment, Some(jump.at.offset))
}

/// What a rewind, or the undo of one, dropped from the history about the Pod's children.
#[derive(Debug, Default)]
pub struct LostOfChildren {
    /// Those that were spawned in what was dropped.
    pub spawned: Vec<PodName>,
    /// For each other child, by its name, what the dropped part said of it, oldest first: how its last run ended, that it
    /// was stopped after that, and the last notification after both.
    pub dropped: BTreeMap<String, Vec<SystemItem>>,
    /// The earlier jump that was taken back, whose losses are in the history again.
    pub returned: Option<EntryId>,
}

/// What the jump with this id took out of the history of a segment about children. `is_of` says whether a mailbox row says
/// what an earlier jump had dropped: what that one dropped is back. Blocking.
pub fn lost_of_children(
    files: &Files,
    segment: SegmentId,
    wanted: EntryId,
    is_of: impl Fn(&str, EntryId) -> bool,
) -> Result<LostOfChildren, LogError> {
    let standing = all_stretches(files, segment, None)?;
    let jump = standing_jump(files, &standing, |jump| jump.entry == wanted)?;
    let Some(jump) = jump else { return Ok(LostOfChildren::default()) };
    let (dropped, _) = difference(&before(files, &jump)?, &standing);
    let Scan { spawned, mut of_children, .. } = Scan::read(files, segment, &dropped)?;
    of_children.retain(|child, _| !spawned.iter().any(|spawned| spawned.as_str() == child));
    let returned = match jump.kind {
        JumpKind::Undone | JumpKind::Redone => match jump.to {
            Some(to) => id(&line_of(files, to)?),
            None => None,
        },
        JumpKind::RolledBack | JumpKind::Rewound | JumpKind::Forked => None,
    };
    let is_back = |taken: &Option<String>| {
        returned.zip(taken.as_deref()).is_some_and(|(entry, row)| is_of(row, entry))
    };
    let lost = of_children.into_iter().map(|(child, mut lost)| {
        lost.retain(|lost| !is_back(&lost.taken));
        (child, lost.into_iter().map(|lost| lost.item).collect())
    });
    let dropped = lost.collect();
    Ok(LostOfChildren { spawned, dropped, returned })
}

/// A jump that is part of a session.
#[derive(Clone, Copy, Debug)]
pub struct StandingJump {
    pub at: LogPosition,
    pub kind: JumpKind,
    entry: EntryId,
    /// Where the session goes on, for a jump that says it.
    to: Option<LogPosition>,
}

/// The jump with this id, and what taking it back would change; `None` when it does not stand any more.
pub fn find_jump(
    files: &Files,
    segment: SegmentId,
    end: Option<u64>,
    wanted: EntryId,
) -> Result<Option<(StandingJump, Comeback)>, LogError> {
    let standing = all_stretches(files, segment, end)?;
    let found = standing_jump(files, &standing, |jump| jump.entry == wanted)?;
    let found = found.map(|jump| Ok((jump, taken_back(files, segment, &standing, &jump)?)));
    found.transpose()
}

/// The newest jump that stands and is the wanted one: a stretch begins with each.
fn standing_jump(
    files: &Files,
    standing: &[Stretch],
    is_wanted: impl Fn(&StandingJump) -> bool,
) -> Result<Option<StandingJump>, LogError> {
    for Stretch { segment, range } in standing.iter().rev().filter(|s| s.range.start > 0) {
        let path = files.segment(*segment);
        let read = || line_at(&open_regular(&path)?, range.start, range.end);
        let line = read().map_err(LogError::reading(&path))?.unwrap_or_default();
        let (Some(jump), Some(entry)) = (Jump::of_line(&line), id(&line)) else { continue };
        let at = LogPosition { segment: *segment, offset: range.start };
        let jump = StandingJump { at, kind: jump.kind, entry, to: jump.position() };
        if is_wanted(&jump) {
            return Ok(Some(jump));
        }
    }
    Ok(None)
}

/// What only the one and only the other of two sessions with a common beginning holds.
fn difference(one: &[Stretch], other: &[Stretch]) -> (Vec<Stretch>, Vec<Stretch>) {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (mut one, mut other) = (one[same..].to_vec(), other[same..].to_vec());
    if let (Some(a), Some(b)) = (one.first_mut(), other.first_mut())
        && (a.segment, a.range.start) == (b.segment, b.range.start)
    {
        let end = a.range.end.min(b.range.end);
        (a.range.start, b.range.start) = (end, end);
    }
    (one, other)
}

/// The input at a place; empty when it cannot be read.
pub fn input_at(files: &Files, at: LogPosition) -> Result<Vec<Segment>, LogError> {
    match decode(&line_of(files, at)?) {
        Ok(Entry { fact: Fact::UserInput { segments, .. }, .. }) => Ok(segments),
        Ok(_) | Err(_) => Ok(Vec::new()),
    }
}

/// The line at a place.
fn line_of(files: &Files, at: LogPosition) -> Result<Vec<u8>, LogError> {
    let path = files.segment(at.segment);
    let read = || line_at(&open_regular(&path)?, at.offset, std::fs::metadata(&path)?.len());
    Ok(read().map_err(LogError::reading(&path))?.unwrap_or_default())
}

/// The beginning of an input, on one line.
fn preview(segments: &[Segment]) -> String {
    let text: Vec<_> = segments.iter().map(Segment::flat).collect();
    let words: Vec<&str> = text.iter().flat_map(|flat| flat.split_whitespace()).collect();
    SafeText::brief(words.join(" "), PREVIEW).into_string()
}
