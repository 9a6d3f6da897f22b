//! The words on the wire and in the log, shared by every room: ids, items, entries, methods,
//! events and the framing of lines. Wire names that differ from ours stand in serde attributes.

pub mod approval;
pub mod circling;
pub mod client;
pub mod command_sheet;
pub mod credential;
#[cfg(test)]
pub mod damaged;
pub mod entry;
pub mod event;
pub mod family;
pub mod frame;
pub mod framer;
pub mod item;
pub mod job;
pub mod json_values;
pub mod limit_met;
pub mod matter;
pub mod mesh;
pub mod method;
pub mod name;
pub mod outcome;
pub mod outside;
pub mod piece;
pub mod question;
pub mod reply;
pub mod script;
pub mod server;
pub mod tool_words;
pub mod work;
pub mod worktree;

pub use approval::{
    Action, ApprovalRequest, CHANGED_TOOLS, Pattern, PolicyConsent, PolicyRule, PolicyTrust,
    START_SERVER, Verdict, WorkspaceFile,
};
pub use circling::{CircleKind, Circling};
pub use client::{McpClient, PolicyClient};
pub use command_sheet::{CommandSheet, InstructionFile, OwnPlace, ShutPlace};
pub use credential::Credential;
pub use entry::{
    AgentOrigin, Entry, Fact, FileMark, NotificationSource, Origin, SegmentOrigin, SentByPerson,
    SystemItem, Trigger,
};
pub use event::{
    Alert, AlertLevel, AlertSource, Begun, ErrorCode, Event, Greeting, HEAD_CHANGED, InFlight,
    PodStatus, Refusal, RunResult, SettingsMistake, TurnResult,
};
pub use family::{GoesOnBy, LastRun, Lent, PeerEdge, PodInfo, Queued, State, WAITS_TO_WRITE};
pub use frame::{ClientKind, IN_FLIGHT, Incoming, MAX_LINE, Outgoing};
pub use framer::{Frame, Framer};
pub use item::{Content, Effort, Item, RequestConfig, Role, flatten};
pub use job::JobInfo;
pub use json_values::{MAX_VALUES, ValueCount, value_memory};
pub use limit_met::{LimitKind, LimitMet};
pub use matter::{Matter, TEST_CALL, TriedWay};
pub use method::{Method, PodEvent, Segment, SpawnPod, WhileRunning};
pub use name::{EntryId, InvalidName, PodName, SegmentId, SessionId};
pub use outcome::{CANCELLED, RunOutcome};
pub use outside::{OutsideAccess, OutsidePath};
pub use piece::{ByteRange, LineShape, MAX_PIECE, NotJson, TextSpan, Unescape, encoded_len};
pub use question::{Choice, Field, FieldKind, QUESTION_TOOL, Question, Values, answer_words};
pub use reply::{
    Comeback, Completion, CompletionKind, FoundModel, Losses, PathHolder, PeerRegistered, PlanStep,
    PodOutput, Restoring, RewindSummary, RewindTarget, RewindTargetId, StoppedPod,
};
pub use script::ScriptHash;
pub use server::{McpServerInfo, McpServerState};
pub use work::{LinesChanged, PodWork, Work};
pub use worktree::{NewWorktree, WorktreeChange, WorktreeInfo, WorktreeState};

/// The number both sides name in their first line on the host socket. It rises with every change of the lines but
/// optional fields; `watch`, `family` and `shutdown` stay as they are, so that a newer program can end an older host.
pub const PROTOCOL: u32 = 2;

/// Milliseconds since the Unix epoch, the unit of every time on the wire and in the log.
pub fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
