//! The fold of a segment: the history that the model gets when the Pod goes on, and the state of the
//! Pod at the end of the segment.

use crate::protocol::approval::ApprovalRequest;
use crate::protocol::entry::{Entry, Fact, FileMark, Kept, SegmentOrigin, domain};
use crate::protocol::item::{Item, RequestConfig, Role, flatten};
use crate::protocol::method::Segment;
use crate::protocol::name::{EntryId, SessionId};
use crate::session::LogError;
use crate::session::line::{Damaged, Forward, decode};
use crate::session::rollback::{self, Skip};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A segment, folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub session_id: SessionId,
    pub system_prompt: Option<String>,
    pub config: RequestConfig,
    /// What the model reads, oldest first.
    pub history: Vec<Kept>,
    pub turn_count: u64,
    /// Whether the last run ended before its work did, or has not ended.
    pub interrupted: bool,
    /// Calls without a result, oldest first: call id and tool name.
    pub open_calls: Vec<(String, String)>,
    /// Approval requests without a decision in the log; see [`Replay::open_approval`].
    approvals: Vec<ApprovalRequest>,
    /// Lines in the segment, damaged ones included.
    pub entries: usize,
    /// Bytes of whole lines.
    pub end: u64,
    /// blake3 of each file as the last call that touched it left it.
    pub files: BTreeMap<PathBuf, String>,
    /// Ids of mailbox rows that are in the history.
    pub taken: BTreeSet<String>,
    /// The length of the history and the input tokens it took, when last measured.
    pub usage: Option<(u64, u64)>,
    /// US dollars in this segment, as far as prices were known.
    pub cost: Option<f64>,
    pub damaged: Vec<Damaged>,
    /// The last `yoi.pod` record.
    pub pod: Option<Value>,
    /// When the last run was cut off by the end of its host; milliseconds since the Unix epoch.
    pub cut_at: Option<u64>,
    /// What was said by a person: which line of the segment, counted from 0; when, in milliseconds
    /// since the Unix epoch; and the words.
    pub user_inputs: Vec<(usize, u64, Vec<Segment>)>,
    pub forked_from: Option<SegmentOrigin>,
    pub compacted_from: Option<SegmentOrigin>,
    /// Whether a run has begun and not ended.
    run_is_open: bool,
}

/// Folds a segment, or its first `upto` bytes. Blocking. Damaged lines are skipped and listed; a
/// torn tail is not a line.
pub fn replay(path: &Path, upto: Option<u64>) -> Result<Replay, LogError> {
    let read = || -> std::io::Result<Replay> {
        let length = File::open(path)?.metadata()?.len();
        let end = upto.map_or(length, |upto| upto.min(length));
        let mut skip = Skip::read(path, end)?;
        let mut replay = empty(path);
        let mut lines = Forward::new(File::open(path)?, 0, end)?;
        let mut line = Vec::new();
        while let Some(start) = lines.next_into(&mut line)? {
            replay.line(&mut skip, start, &line);
        }
        replay.interrupted |= replay.run_is_open;
        Ok(replay)
    };
    let replay = read().map_err(LogError::reading(path))?;
    if replay.entries == 0 { Err(LogError::Empty(path.to_owned())) } else { Ok(replay) }
}

impl Replay {
    /// Takes in an entry that was just committed, as a replay of the longer log would.
    pub fn apply(&mut self, entry: &Entry) {
        let index = self.entries;
        self.entries += 1;
        self.note_taken(&entry.fact);
        if let Some(from) = rollback::from(&entry.fact) {
            self.roll_back(from);
        }
        self.take(index, entry.clone());
    }

    /// The approval request of an open call, which has not started.
    pub fn open_approval(&self) -> Option<&ApprovalRequest> {
        let is_open = |approval: &&ApprovalRequest| {
            self.open_calls.iter().any(|(id, _)| *id == approval.call_id)
        };
        self.approvals.last().filter(is_open)
    }

    fn line(&mut self, skip: &mut Skip, start: u64, line: &[u8]) {
        let index = self.entries;
        self.entries += 1;
        self.end = start + line.len() as u64 + 1;
        let entry = decode(line);
        if let Ok(entry) = &entry {
            self.note_taken(&entry.fact);
        }
        if skip.skips(start, entry.as_ref().ok().and_then(|entry| entry.id)) {
            // What is taken back was paid for all the same.
            if let Ok(Entry { fact: Fact::LlmUsage { cost, .. }, .. }) = entry {
                self.add_cost(cost);
            }
            return;
        }
        match entry {
            Ok(entry) => {
                if let Some(from) = rollback::from(&entry.fact)
                    && !skip.has_met(from)
                {
                    self.roll_back(from);
                }
                self.take(index, entry);
            }
            Err(reason) => {
                self.damaged.push(Damaged { byte: start, line: Some(index + 1), reason });
            }
        }
    }

    /// A row that was taken stays taken when its entry is rolled back.
    fn note_taken(&mut self, fact: &Fact) {
        let id = match fact {
            Fact::UserInput { taken, .. } | Fact::SystemItem { taken, .. } => taken.as_deref(),
            Fact::Extension { domain, payload } if domain == domain::TAKEN => {
                payload.get("id").and_then(Value::as_str)
            }
            _ => None,
        };
        self.taken.extend(id.map(str::to_owned));
    }

    /// Takes back what is in the history from an entry on. The entry itself may lie in an older
    /// segment, so the ids say what came after it.
    fn roll_back(&mut self, from: EntryId) {
        let stays = |kept: &Kept| kept.id.is_none_or(|id| id < from);
        self.history.truncate(self.history.iter().rposition(stays).map_or(0, |last| last + 1));
        self.usage = self.usage.filter(|(measured, _)| *measured <= self.history.len() as u64);
        self.open_calls = open_calls(&self.history);
        self.run_is_open = false;
    }

    fn take(&mut self, index: usize, Entry { id, ts, fact }: Entry) {
        match fact {
            Fact::SegmentStart { .. } => self.segment_start(fact),
            Fact::Invoke { .. } => self.under_way(),
            Fact::UserInput { segments, .. } => {
                self.cut_at = None;
                self.keep(id, Item::message(Role::User, flatten(&segments)));
                self.user_inputs.push((index, ts, segments));
            }
            Fact::AssistantItem { item, origin, native, partial } => {
                self.under_way();
                let native = native.filter(|_| !partial);
                if !partial || is_text(&item) {
                    self.remember(Kept { id, origin, native, item });
                }
            }
            Fact::ToolResult { item, files } => {
                self.under_way();
                if let Item::ToolResult { call_id, .. } = &item {
                    // A call that has ended needs no decision, not even where a fork closed its copy
                    // of a call for which another Pod still waits.
                    self.approvals.retain(|approval| approval.call_id != *call_id);
                }
                self.keep(id, item);
                let marks = files.into_iter().map(|FileMark { path, hash, .. }| (path, hash));
                self.files.extend(marks);
            }
            Fact::SystemItem { item, .. } => {
                self.keep(id, Item::message(Role::System, item.body()));
            }
            Fact::TurnEnd { turn_count } => self.turn_count = turn_count,
            Fact::RunCompleted { interrupted, .. } | Fact::RunErrored { interrupted, .. } => {
                self.interrupted = interrupted;
                self.run_is_open = false;
            }
            Fact::ConfigChanged { config } => self.config = config,
            Fact::LlmUsage { history_len, input_total_tokens, cost, .. } => {
                self.usage = Some((history_len, input_total_tokens));
                self.add_cost(cost);
            }
            Fact::Extension { domain, payload } => self.extension(&domain, payload),
            Fact::Unknown(_) => {}
        }
    }

    fn segment_start(&mut self, fact: Fact) {
        let Fact::SegmentStart {
            session_id,
            system_prompt,
            config,
            history,
            forked_from,
            compacted_from,
        } = fact
        else {
            return;
        };
        self.session_id = session_id;
        self.system_prompt = system_prompt;
        self.config = config;
        self.open_calls = open_calls(&history);
        self.history = history;
        self.forked_from = forked_from;
        self.compacted_from = compacted_from;
    }

    fn extension(&mut self, name: &str, payload: Value) {
        match name {
            domain::POD => self.pod = Some(payload),
            domain::CUT => self.cut_at = payload.get("at").and_then(Value::as_u64),
            domain::ASKED => {
                self.approvals.extend(serde_json::from_value::<ApprovalRequest>(payload).ok())
            }
            domain::ANSWERED => {
                let id = payload.get("ask").and_then(Value::as_str).unwrap_or_default();
                self.approvals.retain(|approval| approval.id != id);
            }
            _ => {}
        }
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    fn under_way(&mut self) {
        self.run_is_open = true;
        self.cut_at = None;
    }

    fn keep(&mut self, id: Option<EntryId>, item: Item) {
        self.remember(Kept { id, origin: None, native: None, item });
    }

    fn remember(&mut self, kept: Kept) {
        note_call(&mut self.open_calls, &kept.item);
        self.history.push(kept);
    }
}

fn is_text(item: &Item) -> bool {
    item.text().is_some_and(|text| !text.is_empty())
}

/// Calls that have no result.
fn open_calls(history: &[Kept]) -> Vec<(String, String)> {
    let mut open = Vec::new();
    history.iter().for_each(|kept| note_call(&mut open, &kept.item));
    open
}

fn note_call(open: &mut Vec<(String, String)>, item: &Item) {
    match item {
        Item::ToolCall { call_id, name, .. } => open.push((call_id.clone(), name.clone())),
        Item::ToolResult { call_id, .. } => open.retain(|(id, _)| id != call_id),
        Item::Message { .. } | Item::Reasoning { .. } | Item::Unknown(_) => {}
    }
}

/// What is known of a segment before its first line: the directory it lies in names the session.
fn empty(path: &Path) -> Replay {
    let session = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let session_id = session.and_then(|name| name.parse().ok());
    Replay {
        session_id: session_id.unwrap_or(SessionId(uuid::Uuid::nil())),
        system_prompt: None,
        config: RequestConfig::default(),
        history: Vec::new(),
        turn_count: 0,
        interrupted: false,
        open_calls: Vec::new(),
        approvals: Vec::new(),
        entries: 0,
        end: 0,
        files: BTreeMap::new(),
        taken: BTreeSet::new(),
        usage: None,
        cost: None,
        damaged: Vec::new(),
        pod: None,
        cut_at: None,
        user_inputs: Vec::new(),
        forked_from: None,
        compacted_from: None,
        run_is_open: false,
    }
}
