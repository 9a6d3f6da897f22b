//! Facts: what happened in a Pod or in the host, and the replies to requests.

use crate::protocol::approval::{
    ApprovalRequest, PolicyConsent, PolicyRule, PolicyTrust, Verdict, WorkspaceFile,
};
use crate::protocol::client::PolicyClient;
use crate::protocol::command_sheet::CommandSheet;
use crate::protocol::entry::{Entry, Fact, SystemItem, Trigger, domain};
use crate::protocol::family::{Lent, PeerEdge, PodInfo, is_false};
use crate::protocol::item::Effort;
use crate::protocol::job::JobInfo;
use crate::protocol::matter::TriedWay;
use crate::protocol::mesh::{MachineView, MeshAgent, MeshView};
use crate::protocol::method::Segment;
use crate::protocol::name::{EntryId, PodName, SegmentId};
use crate::protocol::piece::LineShape;
use crate::protocol::reply::{
    Comeback, Completion, CompletionKind, FoundModel, PathHolder, PeerRegistered, PlanStep,
    PodOutput, RewindSummary, RewindTarget, StoppedPod,
};
use crate::protocol::server::McpServerInfo;
use crate::protocol::work::PodWork;
use crate::protocol::worktree::WorktreeState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// Every event and reply. The first group is the frozen vocabulary of a Pod's own socket
/// ([`Event::is_classic`]); the second is for connections that use request ids and for the host
/// socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum Event {
    UserMessage {
        segments: Vec<Segment>,
    },
    SystemItem {
        item: SystemItem,
    },
    InvokeStart {
        kind: Trigger,
    },
    TurnStart {
        turn: u64,
    },
    TurnEnd {
        turn: u64,
        result: TurnResult,
    },
    LlmCallStart {
        llm_call: u64,
    },
    LlmCallEnd {
        llm_call: u64,
    },
    LlmRetry {
        llm_call: u64,
        failed_attempt: u32,
        max_attempts: u32,
        wait_ms: u64,
        elapsed_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        error: String,
    },
    LlmContinuation {
        llm_call: u64,
        attempt: u32,
        max_attempts: u32,
        reason: String,
    },
    TextDelta {
        text: String,
    },
    TextDone {
        text: String,
    },
    ThinkingStart,
    ThinkingDelta {
        text: String,
    },
    ThinkingDone {
        text: String,
    },
    ToolCallStart {
        id: String,
        name: String,
    },
    ToolCallArgsDelta {
        id: String,
        json: String,
    },
    ToolCallDone {
        id: String,
        name: String,
        arguments: String,
    },
    ToolResult {
        id: String,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(default)]
        is_error: bool,
    },
    Usage {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_read_input_tokens: Option<u64>,
    },
    RunEnd {
        result: RunResult,
        /// The entry that ended the run; missing when its log failed. No classic client gets it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<EntryId>,
        /// The run, as its entries name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<EntryId>,
    },
    Error {
        code: ErrorCode,
        message: String,
    },
    Snapshot {
        entries: Vec<Entry>,
        greeting: Box<Greeting>,
        #[serde(default)]
        status: PodStatus,
        /// Blocks that were streaming when the snapshot was taken, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_flight: Vec<InFlight>,
    },
    SegmentRotated {
        entry: Box<Entry>,
    },
    Status {
        status: PodStatus,
    },
    Completions {
        kind: CompletionKind,
        entries: Vec<Completion>,
    },
    RewindTargets {
        head_entries: usize,
        targets: Vec<RewindTarget>,
        /// The rewind that can be taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undo: Option<Box<Comeback>>,
        /// The undo that can be taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redo: Option<Box<Comeback>>,
    },
    RewindApplied {
        entries: Vec<Entry>,
        input: Vec<Segment>,
        summary: RewindSummary,
    },
    PodsListed {
        pods: Vec<Value>,
    },
    PodRestored {
        result: Value,
    },
    PeerRegistered {
        result: PeerRegistered,
    },
    Alert(Alert),
    MemoryWorker(Value),
    CompactStart,
    CompactDone {
        new_segment_id: SegmentId,
    },
    CompactFailed {
        error: String,
    },
    #[serde(rename = "shutdown")]
    Stopped,

    /// The request is durable and under way; `entry` is its entry in the log, if any.
    Accepted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<EntryId>,
        /// The id of the input, if it was queued; for a message of a peer, its id in the mailbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<String>,
        /// The run that the request began or let go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<EntryId>,
    },
    /// All Pods, once after `watch`.
    Family {
        pods: Vec<PodInfo>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        peers: Vec<PeerEdge>,
        /// The approval requests that wait, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "asks")]
        approvals: Vec<ApprovalRequest>,
        /// As in `mesh_roster`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<MeshAgent>,
    },
    /// All agents of the mesh that are not Pods of this host, sent whenever they change. Every Pod that has joined
    /// the mesh reaches them. There are at most 1,024, and each name has at most 256 bytes.
    MeshRoster {
        agents: Vec<MeshAgent>,
    },
    /// How this machine takes part among others, sent after `family` if it does, and whenever it changes; without a machine,
    /// it does not any more.
    Machine {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<Box<MachineView>>,
    },
    /// All current notices about the host: repaired damage, why the host ends, and the mistakes in its settings. Sent
    /// before `family` if there are any, and whenever they change.
    HostNotices {
        notices: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mistakes: Vec<SettingsMistake>,
    },
    /// A Pod is new or something about it changed.
    PodChanged {
        info: Box<PodInfo>,
    },
    /// A Pod was deleted.
    PodRemoved {
        name: PodName,
    },
    /// An entry was committed to the log. Over 64 KiB its long strings are shortened, and
    /// `cut_bytes` is the size of the whole line; `fetch` gives it.
    Entry {
        entry: Box<Entry>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut_bytes: Option<u64>,
    },
    /// Output of a running command, as it appears; the whole follows as the tool's result.
    ToolOutput {
        id: String,
        text: String,
    },
    /// The reply to `page`: entries oldest first, valid as of `seq`.
    Page {
        entries: Vec<Line>,
        /// The end of the next page; `None` at the beginning of the transcript.
        before: Option<EntryId>,
        in_flight: Vec<InFlight>,
        seq: u64,
    },
    /// The reply to `fetch` without a range.
    Fetched {
        entry: Box<Entry>,
    },
    /// The reply to `fetch` with a range. `start` is the requested offset, moved back to the start
    /// of a character; the next piece begins at `start` plus the length of `line`.
    FetchedRange {
        /// The entry with its position in the log, so that the next range is found without a
        /// search.
        entry: EntryId,
        start: u64,
        /// A part of the log's JSON, unchanged.
        line: String,
        /// Said with the piece that begins at 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shape: Option<LineShape>,
    },
    /// The reply to `new`.
    Created {
        info: Box<PodInfo>,
    },
    /// The reply to `host_status`.
    Host {
        version: String,
        pid: u32,
        data_dir: std::path::PathBuf,
        runtime_dir: std::path::PathBuf,
    },
    /// The reply to `find_model`, and to `set_model` and `set_effort`: the model that the Pod uses now.
    ModelFound {
        /// `None`: there is nothing to connect to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<FoundModel>,
        /// The effort that the settings name for new Pods.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// The path of the settings, which need not exist.
        config: std::path::PathBuf,
        /// The mistakes in the settings, each with its place.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mistakes: Vec<String>,
    },
    /// The reply to `try_notify`: what came of each way.
    NotifyTried {
        ways: Vec<TriedWay>,
    },
    /// The reply to `trace`: log lines of the host, oldest first.
    Trace {
        lines: Vec<String>,
    },
    /// Two Pods are peers of each other; `source` is the addressed one.
    Peered {
        source: PodName,
        peer: PodName,
    },
    /// Two Pods are no longer peers.
    Unpeered {
        source: PodName,
        peer: PodName,
    },
    /// A Pod wants an approval.
    #[serde(rename = "asked")]
    ApprovalRequested {
        #[serde(rename = "ask")]
        approval: Box<ApprovalRequest>,
    },
    /// A person decided an approval request, or it was withdrawn.
    #[serde(rename = "answered")]
    ApprovalDecided {
        #[serde(rename = "ask")]
        approval: String,
        pod: PodName,
        verdict: Verdict,
    },
    /// The reply to `spawn`.
    Spawned {
        info: Box<PodInfo>,
        socket: std::path::PathBuf,
    },
    /// The reply to `stop`: the Pods that were stopped, children first, and what each gave back.
    PodsStopped {
        stopped: Vec<StoppedPod>,
    },
    /// The reply to `read_output`.
    Output(Box<PodOutput>),
    /// The reply to `restore`: what it does with each Pod, or would do.
    Plan {
        steps: Vec<PlanStep>,
        /// Whether it was carried out.
        done: bool,
    },
    /// The reply to `relocate`: the Pods that were below `from` and have their places below `to` now.
    Relocated {
        from: PathBuf,
        to: PathBuf,
        pods: Vec<PodName>,
    },
    /// The reply to `who`.
    Holders {
        holders: Vec<PathHolder>,
    },
    /// The reply to `since`: what each Pod did whose runs ended in that time.
    Since {
        pods: Vec<PodWork>,
    },
    /// The reply to `lend`.
    PathLent {
        /// Whether there is a file or directory at the path.
        exists: bool,
    },
    /// The reply to `reclaim`: what came back, and from which Pods.
    Reclaimed {
        #[serde(rename = "loans")]
        leases: Vec<Lent>,
        /// The access that Pods to which the path was lent still have.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<Lent>,
    },
    /// The reply to `list_policy`: the rules in the order of evaluation, and the consents, trusts
    /// and clients. The reply to `revoke` has only the one that ended: `closed` are the grants of
    /// that rule that ended with it, `kept` those that remain because a Pod has lent a part of them
    /// on.
    Policy {
        rules: Vec<PolicyRule>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        consents: Vec<PolicyConsent>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        trusts: Vec<PolicyTrust>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        clients: Vec<PolicyClient>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        closed: Vec<Lent>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<Lent>,
    },
    /// The reply to `trust`.
    WorkspaceFile(WorkspaceFile),
    /// The reply to `list_mcp_servers`.
    McpServers {
        servers: Vec<McpServerInfo>,
        /// A sentence for each configured server that is not used, with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
    },
    /// The reply to `list_jobs`; the reply to `stop_job` has the one that ended.
    Jobs {
        jobs: Vec<JobInfo>,
    },
    /// The reply to `worktree`.
    Worktree(Box<WorktreeState>),
    /// The reply to `explain_command`.
    CommandSheet(Box<CommandSheet>),
    /// The reply to `mesh_agents`, `mesh_join`, `mesh_leave` and `mesh_block`.
    Mesh(MeshView),
    /// The reply to `mesh_send`.
    MeshSent {
        /// The id of the message.
        id: String,
        /// received, queued, denied, timeout, sent or refused.
        status: String,
        /// A sentence behind the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// For a message of a Pod: as in [`SentMessage`](crate::protocol::mesh::SentMessage).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pods: Vec<PodName>,
        #[serde(default, skip_serializing_if = "is_false")]
        handed_over: bool,
    },
    /// This subscriber was too slow: what it holds of this Pod is to be read again with `page`.
    Lagged,
    /// From a newer program; kept as it came, by [`Outgoing::decode`](crate::protocol::Outgoing::decode).
    #[serde(skip)]
    Unknown(Value),
}

/// An input, as the reply to its request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The entry of the input in the log, which began a run of the same id.
    Entry(EntryId),
    /// The id of the input in the queue.
    Queued(String),
}

impl Begun {
    /// The input that a reply names, if it names one.
    pub fn of(reply: &Event) -> Option<Self> {
        match reply {
            Event::Accepted { queued: Some(row), .. } => Some(Self::Queued(row.clone())),
            Event::Accepted { entry: Some(entry), .. } => Some(Self::Entry(*entry)),
            _ => None,
        }
    }

    /// Whether it is the input with this entry, which had this id while it waited in the queue.
    pub fn names(&self, entry: EntryId, taken: Option<&str>) -> bool {
        match self {
            Self::Entry(own) => *own == entry,
            Self::Queued(own) => taken == Some(own),
        }
    }
}

impl Event {
    /// The reply to a request that was carried out, where there is no more to say.
    pub const fn done() -> Self {
        Self::Accepted { entry: None, queued: None, run: None }
    }

    /// Whether it changes the transcript of its Pod and nothing that is shown of the Pod elsewhere. A message that an
    /// interrupted run gives back is no text: it returns to the line of whoever sent it.
    pub fn is_text(&self) -> bool {
        match self {
            Self::Entry { entry, .. } => !matches!(
                &entry.fact,
                Fact::Extension { domain, .. } if domain == domain::ROLLED_BACK
            ),
            Self::UserMessage { .. }
            | Self::SystemItem { .. }
            | Self::InvokeStart { .. }
            | Self::TurnStart { .. }
            | Self::TurnEnd { .. }
            | Self::LlmCallStart { .. }
            | Self::LlmCallEnd { .. }
            | Self::LlmRetry { .. }
            | Self::LlmContinuation { .. }
            | Self::TextDelta { .. }
            | Self::TextDone { .. }
            | Self::ThinkingStart
            | Self::ThinkingDelta { .. }
            | Self::ThinkingDone { .. }
            | Self::ToolCallStart { .. }
            | Self::ToolCallArgsDelta { .. }
            | Self::ToolCallDone { .. }
            | Self::ToolResult { .. }
            | Self::ToolOutput { .. }
            | Self::Usage { .. } => true,
            _ => false,
        }
    }

    /// Whether it is one of many parts that follow each other quickly: of a reply, of a call, or of what a command prints.
    pub fn is_piece(&self) -> bool {
        matches!(
            self,
            Self::TextDelta { .. }
                | Self::ThinkingDelta { .. }
                | Self::ToolCallArgsDelta { .. }
                | Self::ToolOutput { .. }
        )
    }

    /// Whether a classic client may receive it.
    pub fn is_classic(&self) -> bool {
        !matches!(
            self,
            Self::Accepted { .. }
                | Self::Family { .. }
                | Self::MeshRoster { .. }
                | Self::Machine { .. }
                | Self::HostNotices { .. }
                | Self::PodChanged { .. }
                | Self::PodRemoved { .. }
                | Self::Entry { .. }
                | Self::ToolOutput { .. }
                | Self::Page { .. }
                | Self::Fetched { .. }
                | Self::FetchedRange { .. }
                | Self::Created { .. }
                | Self::Host { .. }
                | Self::ModelFound { .. }
                | Self::Trace { .. }
                | Self::NotifyTried { .. }
                | Self::Peered { .. }
                | Self::Unpeered { .. }
                | Self::ApprovalRequested { .. }
                | Self::ApprovalDecided { .. }
                | Self::Spawned { .. }
                | Self::PodsStopped { .. }
                | Self::Output(_)
                | Self::Plan { .. }
                | Self::Relocated { .. }
                | Self::Holders { .. }
                | Self::Since { .. }
                | Self::CommandSheet(_)
                | Self::PathLent { .. }
                | Self::Reclaimed { .. }
                | Self::Policy { .. }
                | Self::WorkspaceFile(_)
                | Self::Mesh(_)
                | Self::MeshSent { .. }
                | Self::McpServers { .. }
                | Self::Jobs { .. }
                | Self::Worktree(_)
                | Self::Lagged
                | Self::Unknown(_)
        )
    }
}

/// A line of a transcript page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// An entry whose text was too long to send along: its long strings are shortened, `cut_bytes`
    /// is the size of the whole line; `fetch` gives it.
    Cut {
        cut_bytes: u64,
        entry: Box<Entry>,
    },
    /// A line of the log that could not be read, shown in its place.
    Damaged {
        damaged: String,
        byte: u64,
    },
    Whole(Box<Entry>),
}

impl Line {
    /// The entry, whole or shortened; `None` for a damaged line.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Whole(entry) | Self::Cut { entry, .. } => Some(entry),
            Self::Damaged { .. } => None,
        }
    }

    /// As [`entry`](Self::entry), of a line that is not needed any more.
    pub fn into_entry(self) -> Option<Entry> {
        match self {
            Self::Whole(entry) | Self::Cut { entry, .. } => Some(*entry),
            Self::Damaged { .. } => None,
        }
    }

    /// The id of its entry.
    pub fn id(&self) -> Option<EntryId> {
        self.entry()?.id
    }
}

/// A block that is being streamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InFlight {
    Text {
        text: String,
        /// Bytes of the block before `text` that are left out.
        #[serde(default, skip_serializing_if = "is_zero")]
        skipped: u64,
    },
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        skipped: u64,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: String,
    },
    /// A tool that runs, with the output it has shown so far.
    Tool {
        id: String,
        name: String,
        output: String,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PodStatus {
    #[default]
    Idle,
    Running,
    Paused,
}

/// A mistake in the settings of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsMistake {
    /// The sentence for a person: where it is, what is wrong and which value is used instead.
    pub text: String,
    /// What is wrong, without its place: the same until it is corrected, also when its line moves.
    pub about: String,
    /// No Pod runs until it is corrected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stops_runs: bool,
}

impl fmt::Display for SettingsMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnResult {
    Finished,
    Paused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    Finished,
    Paused,
    LimitReached,
    RolledBack,
    /// Never sent to a classic client: it gets the error "Cancelled" instead.
    Cancelled,
    /// Follows the `error` that says why. Never sent to a classic client: it gets that error only.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    AlreadyRunning,
    NotRunning,
    NotPaused,
    ProviderError,
    ToolError,
    InvalidRequest,
    Internal,
}

/// Why a request was not carried out: a code for programs, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

/// How a refusal begins because a Pod went on since its messages were listed. Programs compare it.
pub const HEAD_CHANGED: &str = "session head changed since picker opened";

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request itself is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// A run goes on, and the request needs a Pod that rests. Programs compare this text and the next two.
    pub fn already_running() -> Self {
        Self::new(ErrorCode::AlreadyRunning, "Pod is already executing a turn")
    }

    /// The log of the Pod has more or fewer entries than when it was listed.
    pub fn head_changed(expected: usize, current: usize) -> Self {
        Self::invalid(format!("{HEAD_CHANGED} (expected {expected}, current {current})"))
    }

    /// No run goes on that the request could end.
    pub fn not_running() -> Self {
        Self::new(ErrorCode::NotRunning, "Pod is not running")
    }

    /// No run waits to be continued.
    pub fn not_paused() -> Self {
        Self::new(ErrorCode::NotPaused, "Pod is not paused")
    }

    /// The runtime could not do it.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }
}

impl From<Refusal> for Event {
    fn from(refusal: Refusal) -> Self {
        Self::Error { code: refusal.code, message: refusal.message }
    }
}

/// A diagnostic that outlives its moment: kept in a ring and replayed to every new client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    pub level: AlertLevel,
    pub source: AlertSource,
    pub message: String,
    pub timestamp_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertLevel {
    Warn,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertSource {
    Pod,
    Worker,
    Compactor,
    AgentsMd,
}

/// The description of a Pod at the start of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    pub pod_name: String,
    pub cwd: String,
    /// The wire scheme, such as `anthropic`.
    pub provider: String,
    pub model: String,
    pub scope_summary: String,
    /// Sorted.
    pub tools: Vec<String>,
    #[serde(default)]
    pub context_window: u64,
    #[serde(default)]
    pub context_tokens: u64,
}
