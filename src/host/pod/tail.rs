//! How a Pod's last run ended, read from the end of its log.

use crate::protocol::entry::domain;
use crate::protocol::event::Line;
use crate::protocol::{ApprovalRequest, Entry, Fact, Item, RunOutcome, SegmentId};
use crate::session::{Files, LogError, page};
use std::collections::BTreeSet;

/// How much is read at a time, in bytes.
const PIECE: u64 = 64 * 1024;
/// How far back is looked; a run whose beginning lies further away counts as under way.
const MAX_PIECES: usize = 64;

/// What the end of a log says.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The last run has no end in the log: its host died.
    pub(crate) open: bool,
    /// Why the Pod is paused, if it is.
    pub(crate) interrupted: Option<String>,
    /// Tokens of the last request.
    pub(crate) context_tokens: u64,
    /// Mailbox rows that the newest entries took; the host may have died before it marked them.
    pub(crate) taken: Vec<String>,
    /// The question at which the last run stands.
    pub(crate) asked: Option<ApprovalRequest>,
}

/// Reads backwards until the last run's end or beginning.
pub(crate) fn read(files: &Files, segment: SegmentId) -> Result<Tail, LogError> {
    let mut tail = Tail { open: has_open_block(files, segment), ..Tail::default() };
    let (mut before, mut decided, mut last, mut cut_may_follow) = (None, false, None, false);
    let mut approvals = WaitsForApproval::Unknown;
    for _ in 0..MAX_PIECES {
        let page = page(files, segment, None, before, PIECE)?;
        for line in page.entries.iter().rev() {
            let (Line::Whole(entry) | Line::Cut { entry, .. }) = line else { continue };
            last = last.or(Some(entry.ts));
            if approvals == WaitsForApproval::Unknown {
                approvals = tail.question(entry);
            }
            if !decided {
                tail.taken.extend(taken(&entry.fact));
                decided = decide(&mut tail, &entry.fact, entry.ts, last.unwrap_or(entry.ts));
                cut_may_follow = decided;
            } else if std::mem::take(&mut cut_may_follow) && tail.interrupted.is_some() {
                tail.interrupted = cut_at(&entry.fact).map(cut_off).or(tail.interrupted);
            }
            if let Fact::LlmUsage { input_total_tokens, output_tokens, .. } = entry.fact {
                tail.context_tokens = input_total_tokens + output_tokens;
            }
            if decided
                && !cut_may_follow
                && tail.context_tokens > 0
                && approvals == WaitsForApproval::Known
            {
                return Ok(tail);
            }
        }
        before = page.before;
        if before.is_none() {
            return Ok(tail);
        }
    }
    if !decided {
        tail.open = true;
        tail.interrupted = last.map(cut_off);
    }
    Ok(tail)
}

/// The calls of the last run that nothing answered, each in a few words; those that stand within
/// one piece of the end.
pub(crate) fn open_calls(files: &Files, segment: SegmentId) -> Result<Vec<String>, LogError> {
    let page = page(files, segment, None, None, PIECE)?;
    let (mut answered, mut open) = (BTreeSet::new(), Vec::new());
    for line in page.entries.iter().rev() {
        let (Line::Whole(entry) | Line::Cut { entry, .. }) = line else { continue };
        match &entry.fact {
            Fact::Invoke { .. } | Fact::UserInput { .. } => break,
            Fact::ToolResult { item: Item::ToolResult { call_id, .. }, .. } => {
                answered.insert(call_id.clone());
            }
            Fact::AssistantItem {
                item: Item::ToolCall { call_id, name, arguments, .. }, ..
            } if !answered.contains(call_id) => open.push(crate::run::label(name, arguments)),
            _ => {}
        }
    }
    open.reverse();
    Ok(open)
}

/// The mailbox row that an entry took.
fn taken(fact: &Fact) -> Option<String> {
    match fact {
        Fact::UserInput { taken, .. } | Fact::SystemItem { taken, .. } => taken.clone(),
        _ => None,
    }
}

/// When the run was cut off, as the entry before its end says.
fn cut_at(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Extension { domain, payload } if domain == domain::CUT => payload.get("at")?.as_u64(),
        _ => None,
    }
}

/// Whether it is settled that the last run stands at a question or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitsForApproval {
    Known,
    Unknown,
}

impl Tail {
    /// What an entry, read backwards, says of a question that still waits: only the end of an
    /// interrupted run may stand behind it.
    fn question(&mut self, entry: &Entry) -> WaitsForApproval {
        match &entry.fact {
            Fact::Extension { domain, payload } if domain == domain::ASKED => {
                self.asked = serde_json::from_value(payload.clone()).ok();
                WaitsForApproval::Known
            }
            Fact::Extension { domain, .. }
                if [domain::ANSWERED, domain::ROLLED_BACK].contains(&domain.as_str()) =>
            {
                WaitsForApproval::Known
            }
            Fact::RunErrored { .. } if is_cut_off(&entry.fact) => WaitsForApproval::Unknown,
            Fact::RunCompleted { interrupted: true, .. }
            | Fact::TurnEnd { .. }
            | Fact::Extension { .. }
            | Fact::LlmUsage { .. }
            | Fact::ConfigChanged { .. }
            | Fact::Unknown(_) => WaitsForApproval::Unknown,
            Fact::SegmentStart { .. }
            | Fact::Invoke { .. }
            | Fact::UserInput { .. }
            | Fact::AssistantItem { .. }
            | Fact::ToolResult { .. }
            | Fact::SystemItem { .. }
            | Fact::RunCompleted { .. }
            | Fact::RunErrored { .. } => WaitsForApproval::Known,
        }
    }

    fn cut_off(&mut self, last: u64) -> bool {
        self.open = true;
        self.interrupted = Some(cut_off(last));
        true
    }
}

/// Whether this entry settles how the last run ended.
fn decide(tail: &mut Tail, fact: &Fact, ts: u64, last: u64) -> bool {
    match (fact, RunOutcome::of(fact)) {
        (_, Some(RunOutcome::Paused)) => {
            tail.interrupted = Some(format!("paused {}; :resume goes on", clock(ts)));
        }
        (_, Some(RunOutcome::CutOff(_))) => tail.interrupted = Some(cut_off(ts)),
        (_, Some(_)) => {}
        (fact, None) => return decide_under_way(tail, fact, last),
    }
    true
}

/// The same for an entry that ends no run: it may stand in one that has no end.
fn decide_under_way(tail: &mut Tail, fact: &Fact, last: u64) -> bool {
    match fact {
        Fact::Invoke { .. } | Fact::AssistantItem { .. } | Fact::ToolResult { .. } => {
            tail.cut_off(last)
        }
        Fact::Extension { domain, .. } if domain == domain::RESUMED => tail.cut_off(last),
        _ => false,
    }
}

fn is_cut_off(fact: &Fact) -> bool {
    matches!(RunOutcome::of(fact), Some(RunOutcome::CutOff(_)))
}

fn cut_off(ts: u64) -> String {
    format!("cut off {}; :resume goes on", clock(ts))
}

/// The local time of day.
fn clock(ts: u64) -> String {
    let ms = i64::try_from(ts).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| "at an unknown time".into(),
        |t| t.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string(),
    )
}

fn has_open_block(files: &Files, segment: SegmentId) -> bool {
    std::fs::metadata(files.open_block(segment)).is_ok_and(|meta| meta.len() > 0)
}
