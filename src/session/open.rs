//! Opening a segment that a host left behind: the torn tail goes, the block that was streaming
//! becomes a partial item, and a run without an end gets one.

use crate::disk::{Appender, DiskError, open_regular};
use crate::protocol::entry::{Entry, Fact, domain};
use crate::protocol::item::{Item, Role};
use crate::protocol::name::SegmentId;
use crate::protocol::outcome::RunOutcome;
use crate::session::jump::Jump;
use crate::session::line::{Forward, Head, decode};
use crate::session::partial::{self, Left, Partial, Section};
use crate::session::walk::Walk;
use crate::session::{Files, LogError, journal};
use serde_json::json;
use std::io;
use std::path::Path;

/// What was found when a segment was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The length of the segment, with what the opening added.
    pub end: u64,
    /// Bytes of a half-written line that were removed.
    pub torn_bytes: Option<u64>,
    /// Whether text that was streaming when the host ended is now an entry.
    pub recovered: bool,
    /// Whether a run was under way when the host ended; it is closed as interrupted now.
    pub cut_run: bool,
    /// The time of the newest entry, in milliseconds since the Unix epoch; 0 without one.
    pub last_ts: u64,
}

/// What the log says of a run that its host did not live to end. The entry before it says when that was.
pub const HOST_ENDED: &str = "the host ended during this run";

/// The end of a run of which a fork has only the beginning.
pub(super) const FORKED: &str = "forked here";

/// Whether a run is under way at a place of a log.
pub(super) fn run_is_open(
    files: &Files,
    at: crate::session::LogPosition,
) -> Result<bool, LogError> {
    Ok(Tail::read(files, at.segment, at.offset)?.run_is_open)
}

/// Opens and repairs, and appends `more` in the same write as what the repair adds. Blocking.
pub fn open(
    files: &Files,
    segment: SegmentId,
    more: Vec<Entry>,
) -> Result<(Appender, Opened), LogError> {
    let (path, open_block) = (&files.segment(segment), &files.open_block(segment));
    let (mut appender, torn) = Appender::open(path)?;
    let tail = Tail::read(files, segment, appender.length())?;
    let left = unsaved(path, open_block, appender.length()).map_err(LogError::reading(path))?;
    let recovered = left.is_some();
    let cut_run = recovered || tail.run_is_open;
    let mut entries =
        if cut_run { closing(left, tail.last_ts, ends_run(&more)) } else { Vec::new() };
    entries.extend(more);
    if !entries.is_empty() {
        appender.append(&journal::encode(&entries, path)?)?;
        crate::crash_point!("log-closed");
    }
    partial::clear(open_block).map_err(DiskError::at("empty", open_block))?;
    let torn_bytes = (torn > 0).then_some(torn);
    let last_ts = tail.last_ts;
    let opened = Opened { end: appender.length(), torn_bytes, recovered, cut_run, last_ts };
    Ok((appender, opened))
}

fn ends_run(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| RunOutcome::of(&entry.fact).is_some())
}

/// The entries that close a run, unless entries that follow end it.
fn closing(left: Option<Left>, last_ts: u64, ends: bool) -> Vec<Entry> {
    let (sections, written) = left.map_or((Vec::new(), 0), |left| (left.sections, left.at));
    let at = written.max(last_ts);
    let mut entries: Vec<Entry> = sections.into_iter().map(partial_item).collect();
    if !ends {
        entries.extend(cut_off(at));
    }
    entries
}

/// The entries that end a run at the end of its host, which was at this time, in milliseconds since the Unix epoch.
pub fn cut_off(at: u64) -> [Entry; 2] {
    let cut = Entry::extension(domain::CUT, json!({ "at": at }));
    [cut, RunOutcome::CutOff(HOST_ENDED).entry()]
}

fn partial_item(Section { kind, text }: Section) -> Entry {
    let item = match kind {
        Partial::Text => Item::message(Role::Assistant, text),
        Partial::Thinking => {
            Item::Reasoning { text, summary: Vec::new(), encrypted_content: None, signature: None }
        }
    };
    Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: true })
}

/// The block in `<segment>.open`, unless it was committed before the file could be emptied.
fn unsaved(path: &Path, open_block: &Path, end: u64) -> io::Result<Option<Left>> {
    let Some(left) = partial::left(open_block) else { return Ok(None) };
    let mut lines = Forward::new(open_regular(path)?, left.after.min(end), end)?;
    while let Some(line) = lines.next_line()? {
        if Head::read(&line.bytes).is_some_and(|head| head.kind == "assistant_item") {
            return Ok(None);
        }
    }
    Ok(Some(left))
}

/// How a segment ends.
struct Tail {
    run_is_open: bool,
    /// The time of the last entry.
    last_ts: u64,
}

impl Tail {
    fn read(files: &Files, segment: SegmentId, end: u64) -> Result<Self, LogError> {
        let mut lines = Walk::new(files, segment, Some(end))?;
        let mut tail = Self { run_is_open: false, last_ts: 0 };
        while let Some(line) = lines.next_before_compaction()? {
            let Ok(entry) = decode(&line.bytes) else { continue };
            tail.last_ts = tail.last_ts.max(entry.ts);
            match sign(&entry.fact) {
                Sign::Open => return Ok(Self { run_is_open: true, ..tail }),
                Sign::Closed => break,
                Sign::None => {}
            }
        }
        Ok(tail)
    }
}

/// What one entry, read backwards, says of the run it may belong to.
enum Sign {
    Open,
    Closed,
    None,
}

fn sign(fact: &Fact) -> Sign {
    match fact {
        Fact::Invoke { .. } | Fact::AssistantItem { .. } | Fact::ToolResult { .. } => Sign::Open,
        Fact::RunCompleted { .. } | Fact::RunErrored { .. } | Fact::SegmentStart { .. } => {
            Sign::Closed
        }
        Fact::Extension { domain, .. } if domain == domain::RESUMED => Sign::Open,
        Fact::Extension { .. } if Jump::of(fact).is_some_and(|jump| jump.kind.ends_run()) => {
            Sign::Closed
        }
        Fact::Extension { .. } => Sign::None,
        // A compaction writes the count of turns without being a run.
        Fact::TurnEnd { .. }
        | Fact::UserInput { .. }
        | Fact::SystemItem { .. }
        | Fact::ConfigChanged { .. }
        | Fact::LlmUsage { .. }
        | Fact::Unknown(_) => Sign::None,
    }
}
