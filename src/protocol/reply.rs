//! What replies to requests carry.

use crate::protocol::family::{LastRun, Lent, State};
use crate::protocol::name::{EntryId, PodName, SegmentId};
use crate::scope::{Permission, Rule};
use serde::{Deserialize, Serialize};

/// The model that a new Pod would get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundModel {
    /// `provider/model`.
    pub model: String,
    /// Where the choice comes from, in words.
    pub why: String,
    /// What a message would send where, with which key; `None` once a person chose the model or agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<String>,
    /// Why no request to it carries an effort, and what changes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort_unsent: Option<String>,
}

/// A Pod that was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedPod {
    pub name: PodName,
    /// What it gave back to its lenders.
    pub returned: Vec<Rule>,
    /// The Pod that has that now; `None` when no Pod had lent it anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lender: Option<PodName>,
    /// What other Pods that had asked for it write now, because this one stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<Lent>,
}

/// The texts of a Pod's model since the requesting Pod last read them, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodOutput {
    pub name: PodName,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The new texts of its model, oldest first.
    pub texts: Vec<String>,
    /// Whether older new text was left out, because all of it would be too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The entry of the newest text: what is read next begins after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upto: Option<EntryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<LastRun>,
}

/// What a restore does with one Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    pub name: PodName,
    pub what: Restoring,
    /// Sentences: the part of its scope that comes back as read and the Pod that holds it, the calls
    /// that were cut off and are not repeated, why the Pod cannot come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What becomes of a Pod at a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restoring {
    /// It is live already.
    AlreadyLive,
    /// It comes back idle.
    Idle,
    /// It comes back paused: a run was cut off.
    Paused,
    /// It is not among the addressed Pods and stays stopped.
    StaysStopped,
    /// It cannot come back.
    Impossible,
}

/// A Pod that may read or write a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathHolder {
    pub pod: PodName,
    pub permission: Permission,
    /// The Pod that lent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lender: Option<PodName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRegistered {
    pub source: PodName,
    pub peer: PodName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionKind {
    File,
    Knowledge,
    Workflow,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub value: String,
    #[serde(default)]
    pub is_dir: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindTargetId {
    pub segment_id: SegmentId,
    pub user_input_entry_index: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindTarget {
    pub id: RewindTargetId,
    pub expected_head_entries: usize,
    pub truncate_entries: usize,
    pub turn_index: usize,
    pub timestamp_ms: Option<u64>,
    /// At most 120 characters of the input.
    pub preview: String,
    pub eligible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What leaves the history with the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Losses>,
}

/// A part of a history, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// What people and other Pods said.
    pub messages: usize,
    pub tool_calls: usize,
    /// Some of the files that tools changed; what commands changed is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How many other files tools changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: usize,
    /// The Pods that were spawned in it; a reply of the host has only those that still live and are children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodName>,
}

/// A rewind, or the undo of one, that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comeback {
    /// The entry that is taken back.
    pub entry: EntryId,
    /// At most 120 characters of the first message that comes back or goes.
    pub preview: String,
    /// What comes back.
    pub returns: Losses,
    /// What leaves the history, because it came after the entry.
    pub drops: Losses,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindSummary {
    pub truncated_to_entries: usize,
    pub discarded_entries: usize,
    pub tool_side_effect_warning: bool,
}
