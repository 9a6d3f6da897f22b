//! How a Pod's last run ended, read from the end of its log.

use crate::protocol::entry::domain;
use crate::protocol::{ApprovalRequest, Entry, EntryId, Fact, Item, RunOutcome, SegmentId};
use crate::run::context;
use crate::session::{self, Files, Jump, JumpKind, LogError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How far back the beginning of the last run is looked for, in bytes; a run that began further
/// back counts as under way.
const FAR: u64 = 4 * 1024 * 1024;
/// How far back open calls are looked for, in bytes.
const NEAR: u64 = 64 * 1024;

/// What the end of a log says.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The last run has no end in the log: its host died.
    pub(crate) open: bool,
    /// How the last run was interrupted, if it was.
    pub(crate) interrupted: Option<Interrupted>,
    /// Why the last run failed, if it did.
    pub(crate) failed: Option<String>,
    /// When the last run ended; `None` where no run ended. Milliseconds since the Unix epoch.
    pub(crate) ended: Option<u64>,
    /// The time of the newest entry, also in milliseconds; 0 for an empty log.
    pub(crate) newest: u64,
    /// Tokens of the last request.
    pub(crate) context_tokens: u64,
    /// Mailbox rows that the newest entries took; the host may have died before it marked them.
    pub(crate) taken: Vec<String>,
    /// The newest entry, if it is a rewind or the undo of one. The host may have died before it stored the messages about
    /// what that entry dropped.
    pub(crate) jump: Option<EntryId>,
    /// The approval request at which the last run stands.
    pub(crate) approval: Option<ApprovalRequest>,
}

/// How a run was interrupted, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// Milliseconds since the Unix epoch.
    pub(crate) at: u64,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Paused,
    HostEnded,
    /// The log says why.
    Other(String),
}

impl Interrupted {
    /// By a person, at this time.
    pub(super) fn paused(at: u64) -> Self {
        Self { at, why: Why::Paused }
    }

    /// For another reason than the end of the host; the log names it.
    pub(super) fn aborted(at: u64, why: &str) -> Self {
        let why = why.strip_prefix("cut off: ").unwrap_or(why);
        Self { at, why: Why::Other(why.to_owned()) }
    }

    fn host_ended(at: u64) -> Self {
        Self { at, why: Why::HostEnded }
    }

    pub(super) fn is_by_host(&self) -> bool {
        self.why == Why::HostEnded
    }

    /// In words: `paused 12:40`, `interrupted 12:40 (host ended)`.
    pub(crate) fn sentence(&self) -> String {
        let at = clock(self.at);
        match &self.why {
            Why::Paused => format!("paused {at}"),
            Why::HostEnded => format!("interrupted {at} (host ended)"),
            Why::Other(why) => format!("interrupted {at} ({why})"),
        }
    }
}

/// Reads backwards until the last run's end or beginning.
pub(crate) fn read(files: &Files, segment: SegmentId) -> Result<Tail, LogError> {
    let tail = Tail { open: has_open_block(files, segment), ..Tail::default() };
    let mut reader = Reader { tail, ..Reader::default() };
    let mut entries = session::backwards(files, segment, None).within(FAR);
    for recent in entries.by_ref() {
        reader.read(&recent?.entry);
        if reader.is_done() {
            return Ok(reader.tail);
        }
    }
    if entries.is_cut_short() && !reader.decided {
        let last = reader.last.unwrap_or_default();
        reader.tail.cut_off(last);
    }
    Ok(reader.tail)
}

/// What the entries that were read say so far.
#[derive(Default)]
struct Reader {
    tail: Tail,
    /// Whether it is known how the last run ended.
    decided: bool,
    /// The time of the newest entry.
    last: Option<u64>,
    /// The next entry may say when the run was cut off.
    cut_may_follow: bool,
    approvals: WaitsForApproval,
}

impl Reader {
    /// Takes one entry more.
    fn read(&mut self, entry: &Entry) {
        if self.last.is_none() {
            let is_rewind = |jump: Jump| match jump.kind {
                JumpKind::Rewound | JumpKind::Undone | JumpKind::Redone => true,
                // A run that took a message of the mailbox is not rolled back.
                JumpKind::RolledBack | JumpKind::Forked => false,
            };
            self.tail.jump = entry.id.filter(|_| Jump::of(&entry.fact).is_some_and(is_rewind));
        }
        let last = *self.last.get_or_insert(entry.ts);
        self.tail.newest = self.tail.newest.max(entry.ts);
        if self.approvals == WaitsForApproval::Unknown {
            self.approvals = self.tail.read_approval(entry);
        }
        if !self.decided {
            self.tail.taken.extend(taken(&entry.fact));
            self.decided = decide(&mut self.tail, &entry.fact, entry.ts, last);
            self.cut_may_follow = self.decided;
        } else if std::mem::take(&mut self.cut_may_follow)
            && let Some(interrupted) = &mut self.tail.interrupted
            && let Some(at) = cut_at(&entry.fact)
        {
            *interrupted = Interrupted::host_ended(at);
        }
        if self.tail.context_tokens == 0 {
            self.tail.context_tokens = context_tokens(&entry.fact);
        }
    }

    /// Whether older entries say nothing more.
    fn is_done(&self) -> bool {
        self.decided
            && !self.cut_may_follow
            && self.tail.context_tokens > 0
            && self.approvals == WaitsForApproval::Known
    }
}

/// The tokens of the context behind this fact, where it says them: a request that carried the whole history, or the
/// beginning of a segment after a compaction.
fn context_tokens(fact: &Fact) -> u64 {
    match fact {
        Fact::LlmUsage { history_len: 1.., input_total_tokens, output_tokens, .. } => {
            input_total_tokens + output_tokens
        }
        Fact::SegmentStart { system_prompt, history, .. } if !history.is_empty() => {
            let history: Vec<_> = history.iter().cloned().map(Arc::new).collect();
            context::tokens(system_prompt.as_ref().map_or(0, String::len), &history, None)
        }
        _ => 0,
    }
}

/// The calls of the last run without a result, each in a few words; those that stand near the end.
pub(crate) fn open_calls(files: &Files, segment: SegmentId) -> Result<Vec<String>, LogError> {
    let (mut answered, mut open) = (BTreeSet::new(), Vec::new());
    for recent in session::backwards(files, segment, None).within(NEAR) {
        match recent?.entry.fact {
            Fact::Invoke { .. } | Fact::UserInput { .. } => break,
            Fact::ToolResult { item: Item::ToolResult { call_id, .. }, .. } => {
                answered.insert(call_id);
            }
            Fact::AssistantItem {
                item: Item::ToolCall { call_id, name, arguments, .. }, ..
            } if !answered.contains(&call_id) => open.push(crate::run::label(&name, &arguments)),
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

/// Whether it is known that the last run stands at an approval request, or that it does not.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WaitsForApproval {
    Known,
    #[default]
    Unknown,
}

impl Tail {
    /// Whether an entry, read backwards, is an approval request that still waits: only the end of an
    /// interrupted run may stand behind it.
    fn read_approval(&mut self, entry: &Entry) -> WaitsForApproval {
        match &entry.fact {
            Fact::Extension { domain, payload } if domain == domain::ASKED => {
                self.approval = serde_json::from_value(payload.clone()).ok();
                WaitsForApproval::Known
            }
            Fact::Extension { domain, .. } if domain == domain::ANSWERED => WaitsForApproval::Known,
            fact if Jump::of(fact).is_some_and(|jump| jump.kind.ends_run()) => {
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
        self.interrupted = Some(Interrupted::host_ended(last));
        true
    }
}

/// Whether this entry says how the last run ended.
fn decide(tail: &mut Tail, fact: &Fact, ts: u64, last: u64) -> bool {
    match (fact, RunOutcome::of(fact)) {
        (_, Some(RunOutcome::Paused)) => tail.interrupted = Some(Interrupted::paused(ts)),
        (_, Some(RunOutcome::CutOff(why))) => {
            tail.interrupted = Some(Interrupted::aborted(ts, why));
        }
        (_, Some(outcome)) => {
            tail.ended = Some(ts);
            if let RunOutcome::Failed(why) = outcome {
                tail.failed = Some(why.to_owned());
            }
        }
        (fact, None) if Jump::of(fact).is_some_and(|jump| jump.kind.ends_run()) => {}
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
