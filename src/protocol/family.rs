//! What a screen knows of every Pod without reading its transcript.

use crate::protocol::RunResult;
use crate::protocol::circling::Circling;
use crate::protocol::item::Effort;
use crate::protocol::limit_met::LimitMet;
use crate::protocol::mesh::MeshStanding;
use crate::protocol::method::Segment;
use crate::protocol::name::{EntryId, PodName, SegmentId};
use crate::protocol::worktree::WorktreeInfo;
use crate::scope::Rule;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The state of a Pod, as the host knows it from its own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A run is under way.
    Running,
    /// Only a person can get it further: `why` says what is needed.
    NeedsYou,
    /// A run was interrupted and can go on.
    Paused,
    /// Live, nothing to do.
    Idle,
    /// Not live; can be restored.
    Stopped,
    /// The runtime cannot go on with it: `why` says so; can be restored.
    Failed,
    /// Its record in the store cannot be read: it can only be looked at and deleted.
    Damaged,
    /// From a newer host.
    #[serde(other)]
    Unknown,
}

impl State {
    /// Whether a restore brings a Pod in this state back.
    pub fn can_be_restored(self) -> bool {
        match self {
            Self::Stopped | Self::Failed => true,
            Self::Running
            | Self::NeedsYou
            | Self::Paused
            | Self::Idle
            | Self::Damaged
            | Self::Unknown => false,
        }
    }

    /// Whether a Pod in this state holds nothing and does nothing.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Stopped | Self::Damaged)
    }
}

/// One Pod, whole: every change of it is sent as a new one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodInfo {
    pub name: PodName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<PodName>,
    pub state: State,
    /// When `state` began; milliseconds since the Unix epoch.
    pub since: u64,
    /// The number of the Pod's last event.
    pub seq: u64,
    /// A sentence behind the state: what it waits for, why it failed, how it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What lets it go on, where that is not `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on_by: Option<GoesOnBy>,
    /// What it does now or did last, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// When a request that its provider did not take is made again; milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<u64>,
    /// The limit that its last commands met; `None` again once commands ended without meeting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitMet>,
    /// What its run does again and again, where it goes in circles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circling: Option<Circling>,
    /// The end of the last run was not looked at yet.
    #[serde(default)]
    pub unseen: bool,
    /// When a person put off what it waits for or how it ended; milliseconds since the Unix epoch. What came after that is
    /// not put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<u64>,
    pub cwd: PathBuf,
    pub workspace: PathBuf,
    /// The identity of `cwd` when its last run began: the directory with this identity is the same one at another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
    /// `provider/model`, or empty when there is none.
    pub model: String,
    /// Where the choice of the model comes from, in words: `--model`, `ANTHROPIC_API_KEY is set` …
    pub model_why: String,
    /// Whether a person chose this model.
    pub model_chosen: bool,
    /// What a message would send where, with which key; `None` once a person chose the model or agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_sends: Option<String>,
    /// The host that requests go to, with its port where the address names one; `None` for a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_address: Option<String>,
    /// The source of the key in words: `key from ANTHROPIC_API_KEY` …; `None` for a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_key: Option<String>,
    /// How much the model is to think; `None`: as much as its provider chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Why no request carries that effort, and what changes that; `None` where requests carry it, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort_unsent: Option<String>,
    /// The word or the number of tokens in which requests carry that effort, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort_sent: Option<String>,
    pub context_tokens: u64,
    pub context_window: u64,
    /// US dollars so far by the price table; `None` when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What it may read and write now, before `deny`.
    pub scope: Vec<Rule>,
    /// Where that ends: what it lent, what others hold, what no Pod may touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
    /// What others have of it for now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lent: Vec<Lent>,
    /// How its last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<LastRun>,
    /// When it last did anything; milliseconds since the Unix epoch.
    #[serde(default)]
    pub last_activity: u64,
    /// When the end of a host interrupted its run, in milliseconds since the Unix epoch, while a screen offers to go on
    /// with all of these together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// How well its commands are confined; `None` until that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<Confined>,
    /// What a person should know about it, each a sentence: a read-only scope and why, an
    /// unconfined shell.
    #[serde(default)]
    pub notes: Vec<String>,
    #[serde(default)]
    pub queue: Vec<Queued>,
    /// The ids of the messages that other Pods of this host sent and that its history does not hold yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<SegmentId>,
    /// Whether the Pod is deleted once it has rested for [`EPHEMERAL_MS`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
    /// How it takes part in the agent mesh; `None`: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshStanding>,
    /// The number of its commands that run in the background.
    #[serde(default, skip_serializing_if = "has_none")]
    pub jobs: u32,
    /// The working tree of git that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeInfo>,
}

/// What lets a Pod at rest go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoesOnBy {
    /// It is not live: it could not be restored, or a fault stopped it.
    Restore,
    /// Its history could not be compacted.
    Compact,
    /// Its run reached a limit.
    Message,
    /// From a newer program.
    #[serde(other)]
    Unknown,
}

/// How long an ephemeral Pod rests before it is deleted, in milliseconds.
pub const EPHEMERAL_MS: u64 = 24 * 60 * 60 * 1000;

/// How the activity of a run begins that waits for other Pods to write.
pub const WAITS_TO_WRITE: &str = "waits until ";

/// How the note of a Pod begins while a request for a part of its scope waits for its commands.
pub const WAITS_TO_LEND: &str = "a lend waits until ";

impl PodInfo {
    /// A Pod of which no more is known than this: no model, no scope, no run.
    pub fn bare(name: PodName, state: State, since: u64, cwd: PathBuf, workspace: PathBuf) -> Self {
        Self {
            name,
            parent: None,
            state,
            since,
            seq: 0,
            why: None,
            activity: None,
            retry_at: None,
            limit: None,
            goes_on_by: None,
            circling: None,
            unseen: false,
            later: None,
            cwd,
            workspace,
            model: String::new(),
            model_why: String::new(),
            model_chosen: false,
            model_sends: None,
            model_address: None,
            model_key: None,
            effort: None,
            effort_unsent: None,
            effort_sent: None,
            context_tokens: 0,
            context_window: 0,
            cost: None,
            scope: Vec::new(),
            deny: Vec::new(),
            lent: Vec::new(),
            last_result: None,
            last_activity: 0,
            cut_at: None,
            directory_id: None,
            confined: None,
            notes: Vec::new(),
            queue: Vec::new(),
            waiting: Vec::new(),
            segment: None,
            ephemeral: false,
            mesh: None,
            jobs: 0,
            worktree: None,
        }
    }

    /// Whether the family of this root is done: its last run finished, it waits for nothing, and no Pod of `below` works
    /// or needs a person.
    pub fn is_root_of_done<'a>(&self, mut below: impl Iterator<Item = &'a Self>) -> bool {
        let finished = |run: &LastRun| run.result == RunResult::Finished.word();
        self.parent.is_none()
            && self.state == State::Idle
            && self.last_result.as_ref().is_some_and(finished)
            && !below.any(|pod| matches!(pod.state, State::Running | State::NeedsYou))
    }

    /// Whether lists show the Pod unless all Pods are asked for: an ephemeral one that is stopped
    /// is left out.
    pub fn is_listed(&self) -> bool {
        !self.ephemeral || self.state != State::Stopped
    }

    /// Whether its run waits for another Pod that writes where it wants to; the activity names that Pod.
    pub fn waits_to_write(&self) -> bool {
        let waits = |activity: &str| activity.starts_with(WAITS_TO_WRITE);
        self.state == State::Running && self.activity.as_deref().is_some_and(waits)
    }

    /// When an ephemeral Pod is deleted unless it is used before; milliseconds since the Unix epoch.
    pub fn deleted_at(&self) -> u64 {
        let rests_since = match self.state {
            State::Stopped => self.since,
            _ => self.since.max(self.last_activity),
        };
        rests_since.saturating_add(EPHEMERAL_MS)
    }
}

fn has_none(count: &u32) -> bool {
    *count == 0
}

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// How well the sandbox holds commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    Enforced,
    Partly,
    NotEnforced,
}

impl std::fmt::Display for Confined {
    /// Behind the word *sandbox*: `on`, `partly on` or `off`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Enforced => "on",
            Self::Partly => "partly on",
            Self::NotEnforced => "off",
        })
    }
}

/// An input that waits for the Pod to be free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: String,
    pub input: Vec<Segment>,
    /// The run under way has it, and takes it before its next request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enters: bool,
}

/// A part of a Pod's scope that another one has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lent {
    pub to: PodName,
    pub rule: Rule,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// The entry that ended it.
    pub entry: EntryId,
    /// finished, paused, limit_reached, rolled_back, cancelled or failed.
    pub result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
}

/// Two Pods that may message each other; `a` sorts before `b`, ignoring case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEdge {
    pub a: PodName,
    pub b: PodName,
}

impl PeerEdge {
    /// The edge between two Pods, in its one form.
    pub fn new(one: PodName, two: PodName) -> Self {
        if one.key() <= two.key() { Self { a: one, b: two } } else { Self { a: two, b: one } }
    }

    /// The other end, seen from this Pod; `None` when it is not an end of it.
    pub fn other(&self, pod: &PodName) -> Option<&PodName> {
        if self.a.key() == pod.key() {
            return Some(&self.b);
        }
        (self.b.key() == pod.key()).then_some(&self.a)
    }
}
