//! The fold of a segment: the history that the model gets when the Pod goes on, and the state of the
//! Pod at the end of the segment.

mod lines;

use crate::protocol::approval::ApprovalRequest;
use crate::protocol::entry::{
    Entry, Fact, FileMark, GO_ON, Kept, Pruned, PrunedResult, SegmentOrigin, domain,
};
use crate::protocol::item::{Item, RequestConfig, Role, flatten};
use crate::protocol::name::{EntryId, SegmentId, SessionId};
use crate::session::jump::Jump;
use crate::session::line::Damaged;
use crate::session::replay::lines::Lines;
use crate::session::stretches::{Stretch, stretches};
use crate::session::{Files, LogError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A segment, folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    pub session_id: SessionId,
    pub system_prompt: Option<String>,
    pub config: RequestConfig,
    /// What the model reads, oldest first.
    pub history: Vec<Arc<Kept>>,
    pub turn_count: u64,
    /// Whether the last run ended before its work did, or has not ended.
    pub interrupted: bool,
    /// Calls without a result, oldest first: call id and tool name.
    pub open_calls: Vec<(String, String)>,
    /// Approval requests without a decision in the log; see [`Replay::open_approval`].
    approvals: Vec<ApprovalRequest>,
    /// Lines in the segment, damaged ones and those that were taken back included.
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
    /// The last run: the id of the input that began it.
    #[serde(default)]
    pub run: Option<EntryId>,
    pub forked_from: Option<SegmentOrigin>,
    pub compacted_from: Option<SegmentOrigin>,
    /// Whether a run has begun and not ended.
    run_is_open: bool,
    /// What was known before the last run began.
    before_run: Option<BeforeRun>,
}

/// To be restored when the run is taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct BeforeRun {
    /// The first entry of the run.
    first: EntryId,
    history: usize,
    approvals: usize,
    turn_count: u64,
    usage: Option<(u64, u64)>,
    config: RequestConfig,
    /// The places of the outputs that left the context since.
    pruned: Vec<usize>,
}

/// Folds a segment, or its first `upto` bytes, together with the parts of older segments that it
/// jumps into. Blocking. What was taken back is no part of the history, but its mailbox rows stay
/// taken and its cost stays paid. Damaged lines are skipped and listed; a torn tail is not a line.
pub fn replay(files: &Files, segment: SegmentId, upto: Option<u64>) -> Result<Replay, LogError> {
    let stretches = stretches(files, segment, upto)?;
    let mut replay = Replay::of(files, segment, &stretches, Outputs::Whole)?;
    replay.finish();
    Ok(replay)
}

/// What is taken of long outputs of tools.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outputs {
    Whole,
    /// Where they stand in the log.
    Places,
}

impl Replay {
    /// The fold of all stretches of a segment, with long outputs of tools left in the log. It is to
    /// be finished.
    pub(super) fn without_outputs(
        files: &Files,
        segment: SegmentId,
        stretches: &[Stretch],
    ) -> Result<Self, LogError> {
        Self::of(files, segment, stretches, Outputs::Places)
    }

    fn of(
        files: &Files,
        segment: SegmentId,
        stretches: &[Stretch],
        outputs: Outputs,
    ) -> Result<Self, LogError> {
        let path = files.segment(segment);
        let mut replay = empty(&path);
        let own = stretches.partition_point(|stretch| stretch.segment != segment);
        for older in stretches[..own].chunk_by(|a, b| a.segment == b.segment) {
            replay.stretches(files, older, Lines::Older, outputs)?;
        }
        replay.stretches(files, &stretches[own..], Lines::Own, outputs)?;
        if replay.entries == 0 { Err(LogError::Empty(path)) } else { Ok(replay) }
    }

    /// Goes on behind what is folded, with long outputs of tools left in the log.
    pub(super) fn go_on(&mut self, files: &Files, behind: &[Stretch]) -> Result<(), LogError> {
        self.stretches(files, behind, Lines::Own, Outputs::Places)
    }

    /// What is known at the end of a log, and would be wrong if more followed.
    pub(super) fn finish(&mut self) {
        self.interrupted |= self.run_is_open;
    }

    /// Takes in an entry that was just committed, as a replay of the longer log would. Of jumps, only
    /// the rollback of the last run can be taken in.
    pub fn apply(&mut self, entry: &Entry) {
        self.entries += 1;
        self.note(&entry.fact);
        if let Fact::Extension { domain, payload } = &entry.fact
            && domain == domain::ROLLED_BACK
        {
            let from = payload.get("from").and_then(Value::as_str);
            self.roll_back(from.and_then(|id| id.parse().ok()));
        }
        self.take(entry.clone());
    }

    /// The approval request of an open call, which has not started.
    pub fn open_approval(&self) -> Option<&ApprovalRequest> {
        let is_open = |approval: &&ApprovalRequest| {
            self.open_calls.iter().any(|(id, _)| *id == approval.call_id)
        };
        self.approvals.last().filter(is_open)
    }

    /// Notes what an entry of this segment says for good, also when the entry was taken back: where
    /// the segment comes from, which Pod it belongs to, what was paid and which rows were taken.
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::SegmentStart { session_id, forked_from, compacted_from, .. } => {
                self.session_id = *session_id;
                self.forked_from = *forked_from;
                self.compacted_from = *compacted_from;
            }
            Fact::UserInput { taken, .. } | Fact::SystemItem { taken, .. } => {
                self.taken.extend(taken.clone());
            }
            Fact::LlmUsage { cost, .. } => self.add_cost(*cost),
            Fact::Extension { domain, payload } if domain == domain::TAKEN => {
                let id = payload.get("id").and_then(Value::as_str);
                self.taken.extend(id.map(str::to_owned));
            }
            Fact::Extension { domain, payload } if domain == domain::POD => {
                self.pod = Some(payload.clone());
            }
            _ => {}
        }
    }

    /// Takes the last run back, if it began with this entry.
    fn roll_back(&mut self, from: Option<EntryId>) {
        let of_last = |before: &mut BeforeRun| Some(before.first) == from;
        let Some(before) = self.before_run.take_if(of_last) else { return };
        self.history.truncate(before.history);
        for place in before.pruned {
            if let Some(kept) = self.history.get_mut(place) {
                Arc::make_mut(kept).pruned = None;
            }
        }
        self.approvals.truncate(before.approvals);
        self.turn_count = before.turn_count;
        self.usage = before.usage;
        self.config = before.config;
        self.open_calls = open_calls(&self.history);
    }

    fn take(&mut self, entry: Entry) {
        self.run = entry.run().or(self.run);
        let Entry { id, fact, .. } = entry;
        match fact {
            Fact::SegmentStart { .. } => self.segment_start(fact),
            Fact::Invoke { .. } => {
                self.before_run = id.map(|first| self.before_run(first));
                self.under_way();
            }
            Fact::UserInput { segments, .. } => {
                self.cut_at = None;
                self.keep(id, Item::message(Role::User, flatten(&segments)));
            }
            Fact::AssistantItem { item, origin, native, partial } => {
                self.under_way();
                let native = native.filter(|_| !partial);
                if partial && self.continues(&item) {
                    return;
                }
                if !partial || is_text(&item) {
                    self.remember(Kept { origin, native, ..Kept::new(id, item) });
                }
            }
            Fact::ToolResult { item, files, .. } => self.result(Kept::new(id, item), files),
            Fact::SystemItem { item, .. } => {
                self.keep(id, item.message());
            }
            Fact::TurnEnd { turn_count } => self.turn_count = turn_count,
            Fact::RunCompleted { interrupted, .. } | Fact::RunErrored { interrupted, .. } => {
                self.interrupted = interrupted;
                self.run_is_open = false;
            }
            Fact::ConfigChanged { config } => self.config = config,
            Fact::LlmUsage { history_len, input_total_tokens, .. } => {
                self.usage = Some((history_len, input_total_tokens));
            }
            Fact::Extension { domain, payload } => self.extension(&domain, payload),
            Fact::Unknown(_) => {}
        }
    }

    /// Joins the next part of a reply whose connection broke to the part before it, in the place of the note between
    /// them: a reply that broke several times is one message and one note.
    fn continues(&mut self, item: &Item) -> bool {
        let Item::Message { role: Role::Assistant, content: more } = item else { return false };
        let [.., first, note] = self.history.as_mut_slice() else { return false };
        if note.item.text().as_deref() != Some(GO_ON) {
            return false;
        }
        let Item::Message { role: Role::Assistant, content } = &mut Arc::make_mut(first).item
        else {
            return false;
        };
        content.extend_from_slice(more);
        self.history.pop();
        true
    }

    fn result(&mut self, kept: Kept, files: Vec<FileMark>) {
        self.under_way();
        if let Item::ToolResult { call_id, .. } = &kept.item {
            // A call that has ended needs no decision, not even where a fork closed its copy of a
            // call for which another Pod still waits.
            self.approvals.retain(|approval| approval.call_id != *call_id);
        }
        self.remember(kept);
        self.files.extend(files.into_iter().map(|FileMark { path, hash, .. }| (path, hash)));
    }

    fn segment_start(&mut self, fact: Fact) {
        let Fact::SegmentStart { system_prompt, config, history, .. } = fact else { return };
        self.system_prompt = system_prompt;
        self.config = config;
        self.history = history.into_iter().map(Arc::new).collect();
        self.open_calls = open_calls(&self.history);
    }

    fn extension(&mut self, name: &str, payload: Value) {
        match name {
            domain::ROLLED_BACK | domain::REWOUND => {
                let jump = Jump::of(&Fact::Extension { domain: name.into(), payload });
                if jump.is_some_and(|jump| jump.kind.ends_run()) {
                    self.run_is_open = false;
                    self.interrupted = false;
                }
            }
            domain::PRUNED => {
                let results = payload.get("results").cloned().unwrap_or_default();
                let refused = payload.get("refused").and_then(Value::as_bool).unwrap_or(false);
                self.prune(serde_json::from_value(results).unwrap_or_default(), refused);
            }
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

    /// Marks outputs that leave the context. What they took is no part of the next request, so it is
    /// taken off the last count.
    fn prune(&mut self, results: Vec<PrunedResult>, refused: bool) {
        let mut files: HashMap<EntryId, _> =
            results.into_iter().map(|result| (result.id, result.file)).collect();
        for (place, kept) in self.history.iter_mut().enumerate() {
            let Some(file) = kept.id.and_then(|id| files.remove(&id)) else { continue };
            if kept.pruned.is_some() {
                continue;
            }
            if let Some((len, tokens)) = &mut self.usage
                && (place as u64) < *len
            {
                *tokens = tokens.saturating_sub(kept.output_tokens());
            }
            Arc::make_mut(kept).pruned = Some(Pruned { file, refused });
            if let Some(before) = &mut self.before_run {
                before.pruned.push(place);
            }
        }
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    fn before_run(&self, first: EntryId) -> BeforeRun {
        BeforeRun {
            first,
            history: self.history.len(),
            approvals: self.approvals.len(),
            turn_count: self.turn_count,
            usage: self.usage,
            config: self.config.clone(),
            pruned: Vec::new(),
        }
    }

    fn under_way(&mut self) {
        self.run_is_open = true;
        self.cut_at = None;
    }

    fn keep(&mut self, id: Option<EntryId>, item: Item) {
        self.remember(Kept::new(id, item));
    }

    fn remember(&mut self, kept: Kept) {
        note_call(&mut self.open_calls, &kept.item);
        self.history.push(Arc::new(kept));
    }
}

fn is_text(item: &Item) -> bool {
    item.text().is_some_and(|text| !text.is_empty())
}

/// Calls that have no result.
fn open_calls(history: &[Arc<Kept>]) -> Vec<(String, String)> {
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
        run: None,
        forked_from: None,
        compacted_from: None,
        run_is_open: false,
        before_run: None,
    }
}
