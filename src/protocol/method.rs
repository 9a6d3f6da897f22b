//! Methods: what a client requests of a Pod or of the host.

use crate::protocol::approval::Verdict;
use crate::protocol::client::McpClient;
use crate::protocol::item::Effort;
use crate::protocol::name::{EntryId, PodName};
use crate::protocol::piece::ByteRange;
use crate::protocol::worktree::{NewWorktree, WorktreeChange};
use crate::protocol::{CompletionKind, RewindTargetId};
use crate::scope::Rule;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every method. The first group is the frozen vocabulary of a Pod's own socket
/// ([`Method::is_classic`]); the second exists on the host socket only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Method {
    /// Start a run with this input. With `queue`, wait in the Pod's queue while it is busy instead of
    /// being refused.
    #[serde(rename = "run")]
    Send {
        input: Vec<Segment>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queue: bool,
    },
    /// Background text; always accepted, wakes an idle Pod.
    Notify {
        message: String,
    },
    /// An event of a child.
    PodEvent(PodEvent),
    /// Go on with a paused run.
    Resume,
    /// Go on with a run that failed or is paused, without a result of a tool that its provider refuses: the one whose
    /// entry has an id that ends so.
    LeaveOut {
        result: String,
    },
    /// Abort the run.
    Cancel,
    /// Interrupt the run so that it can go on later.
    Pause,
    /// Compact the history now.
    Compact,
    ListRewindTargets,
    /// Go back to before a user input.
    #[serde(rename = "rewind_to")]
    Rewind {
        target: RewindTargetId,
        expected_head_entries: usize,
    },
    /// Stop the Pod; without a Pod, on the host socket, stop the host.
    #[serde(rename = "shutdown")]
    Stop,
    ListCompletions {
        kind: CompletionKind,
        prefix: String,
    },
    ListPods,
    /// Bring a stopped Pod back. The name is free text: what it names may not exist.
    #[serde(rename = "restore_pod")]
    Restore {
        name: String,
    },
    /// Make this Pod and another one peers.
    #[serde(rename = "register_peer")]
    Peer {
        name: String,
    },

    /// Subscribe this connection to the family and to every Pod's events.
    Watch,
    /// Entries of a Pod's transcript, walking backwards from `before` (`None`: from the end).
    Page {
        before: Option<EntryId>,
        /// How many bytes of log the page may hold; one entry is always given.
        max_bytes: u64,
    },
    /// One entry whole, or a range of its line: an entry may be larger than a line of this protocol.
    Fetch {
        entry: EntryId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<ByteRange>,
    },
    /// Create a Pod.
    New(NewPod),
    /// Offer this client's environment to a Pod's commands.
    Open {
        env: BTreeMap<String, String>,
    },
    /// Delete a stopped Pod and its session.
    Remove,
    /// Choose the model of a Pod: `provider/model`, `provider/` or `rehearsal:<file>`.
    SetModel {
        model: String,
    },
    /// Choose how much the model of a Pod is to think, from its next request on; `None`: what the settings say.
    SetEffort {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
    },
    /// Agree to what `model_sends` says of this Pod's model. It holds for every Pod whose text goes there
    /// with that key.
    Consent {
        sends: String,
    },
    /// Look for the model that a new Pod in this directory and environment would get, or for one by name.
    FindModel {
        cwd: PathBuf,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Replace a queued input, or take it out of the queue (`input` absent).
    EditQueued {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Vec<Segment>>,
    },
    /// Put a text into the run under way: a queued input by its id, or this one.
    Steer {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        input: Vec<Segment>,
    },
    /// A person has looked at this Pod's transcript.
    Seen,
    /// A person puts off what this Pod waits for, or how it ended: it comes last among what needs a person.
    Later,
    /// The same of the approval request of a client.
    PutOff {
        approval: String,
    },
    /// The Pods that this screen shows from now on, in place of those before. While a screen shows a Pod, its runs
    /// and those of the Pods below it wait for their provider without end.
    Show {
        pods: Vec<PodName>,
        /// The Pods whose text this connection gets from now on: of the others it gets no event that
        /// [`Event::is_text`](crate::protocol::Event::is_text), so that their `seq` has gaps. Missing: the text of
        /// every Pod.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follows: Option<Vec<PodName>>,
    },
    /// Whether the messages that this connection sends from now on are its own work: when it is closed while it still
    /// attends them, those that wait are taken back, and runs that they began are paused.
    Attend {
        attends: bool,
    },
    /// What this host is: version, process id, directories.
    HostStatus,
    /// Call the person by the command and the address of `[notify]`, as a test.
    TryNotify,
    /// The newest log lines of the host that contain `filter` in any case.
    Trace {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        filter: String,
    },
    /// Create a child of the addressed Pod, lend it scope and give it its first message.
    Spawn(SpawnPod),
    /// Stop the addressed Pod; with `tree`, everything below it first. With `unless_busy`, nothing is
    /// stopped while the addressed Pod works, waits for a decision or has a message in its mailbox;
    /// the reply then names no Pod.
    #[serde(rename = "stop")]
    StopPods {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tree: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unless_busy: bool,
        /// Their parents are not notified.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    },
    /// The texts of the addressed Pod's model since the requesting Pod last read them.
    ReadOutput,
    /// The addressed Pod, whose directory is gone, works in `cwd` from now on, an absolute path, and its whole family
    /// follows: directories, scopes and leases below the old directory get their places in the new one.
    Relocate {
        cwd: PathBuf,
    },
    /// Bring the addressed Pod back, with `tree` everything below it, too; with `plan` only say
    /// what that would do.
    #[serde(rename = "restore")]
    RestorePods {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tree: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        plan: bool,
    },
    /// End the addressed Pod's relation to a peer.
    Unpeer {
        name: String,
    },
    /// Lend a part of the addressed Pod's scope to another live Pod.
    Lend {
        to: String,
        rule: Rule,
        #[serde(default, skip_serializing_if = "WhileRunning::is_refuse")]
        running: WhileRunning,
    },
    /// Take back what the addressed Pod lent at or below, or above, this path.
    Reclaim {
        path: PathBuf,
        #[serde(default, skip_serializing_if = "WhileRunning::is_refuse")]
        running: WhileRunning,
    },
    /// The Pods that may read or write a path.
    Who {
        path: PathBuf,
    },
    /// What the Pods did since a time, in milliseconds since the Unix epoch.
    Since {
        at: u64,
    },
    /// A person's decision on an approval request.
    #[serde(rename = "answer")]
    Decide {
        #[serde(rename = "ask")]
        approval: String,
        verdict: Verdict,
    },
    /// Every rule of policy that is in force.
    ListPolicy,
    /// What the next command of the addressed Pod gets of this machine.
    ExplainCommand,
    /// End a rule of policy that an answer made, a consent, or the trust in a workspace's file.
    Revoke {
        rule: u64,
    },
    /// What the settings file of a workspace asks for beyond narrowing. With the hash that was shown, a
    /// person trusts the file with this content.
    Trust {
        /// The root of the workspace.
        workspace: PathBuf,
        /// SHA-256, hex.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// The MCP servers that run, and those that the user's settings and a workspace name.
    #[serde(rename = "list_mcp_servers")]
    ListServers {
        /// The root of the workspace.
        workspace: PathBuf,
    },
    /// The commands of every Pod that run in the background, and those that ended lately.
    ListJobs,
    /// End one of the addressed Pod.
    StopJob {
        id: String,
    },
    /// The working tree of the addressed Pod, before or after a change.
    Worktree {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<WorktreeChange>,
    },
    /// Take a rewind back, or the undo of one: the entry is the one of `rewind_targets`.
    UndoRewind {
        entry: EntryId,
        expected_head_entries: usize,
    },
    /// Have the addressed Pod join the agent mesh, now and whenever it becomes live.
    MeshJoin,
    /// Have it leave the mesh, and join no more.
    MeshLeave,
    /// The agents that the addressed Pod can reach; without a Pod, how this host takes part in the mesh.
    MeshAgents,
    /// Send a message to agents in the name of the addressed Pod.
    MeshSend {
        to: Addressees,
        body: Value,
        /// The id of the message that this one answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        re: Option<String>,
    },
    /// Take no messages of this agent of the mesh, in no Pod; with `end`, take them again.
    MeshBlock {
        name: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        end: bool,
    },
    /// Say that this connection belongs to an MCP client. All later requests are made in the name of that client,
    /// which may do less than a person and needs a person's consent.
    ActAs(McpClient),
    /// A new Pod with this one's history, up to and including an entry; `None` is all of it.
    Fork {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<PodName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<EntryId>,
    },
}

impl Method {
    /// Whether this method exists on a Pod's own socket.
    pub fn is_classic(&self) -> bool {
        matches!(
            self,
            Self::Send { .. }
                | Self::Notify { .. }
                | Self::PodEvent(_)
                | Self::Resume
                | Self::Cancel
                | Self::Pause
                | Self::Compact
                | Self::ListRewindTargets
                | Self::Rewind { .. }
                | Self::Stop
                | Self::ListCompletions { .. }
                | Self::ListPods
                | Self::Restore { .. }
                | Self::Peer { .. }
        )
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Send { .. } => "run",
            Self::Notify { .. } => "notify",
            Self::PodEvent(_) => "pod_event",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Compact => "compact",
            Self::ListRewindTargets => "list_rewind_targets",
            Self::Rewind { .. } => "rewind_to",
            Self::Stop => "shutdown",
            Self::ListCompletions { .. } => "list_completions",
            Self::ListPods => "list_pods",
            Self::Restore { .. } => "restore_pod",
            Self::Peer { .. } => "register_peer",
            Self::Watch => "watch",
            Self::Page { .. } => "page",
            Self::Fetch { .. } => "fetch",
            Self::New(_) => "new",
            Self::Open { .. } => "open",
            Self::Remove => "remove",
            Self::SetModel { .. } => "set_model",
            Self::SetEffort { .. } => "set_effort",
            Self::Consent { .. } => "consent",
            Self::FindModel { .. } => "find_model",
            Self::EditQueued { .. } => "edit_queued",
            Self::Steer { .. } => "steer",
            Self::Seen => "seen",
            Self::Later => "later",
            Self::PutOff { .. } => "put_off",
            Self::Show { .. } => "show",
            Self::Attend { .. } => "attend",
            Self::HostStatus => "host_status",
            Self::Trace { .. } => "trace",
            Self::TryNotify => "try_notify",
            Self::Spawn(_) => "spawn",
            Self::StopPods { .. } => "stop",
            Self::ReadOutput => "read_output",
            Self::Relocate { .. } => "relocate",
            Self::RestorePods { .. } => "restore",
            Self::Unpeer { .. } => "unpeer",
            Self::Lend { .. } => "lend",
            Self::Reclaim { .. } => "reclaim",
            Self::Who { .. } => "who",
            Self::Since { .. } => "since",
            Self::Decide { .. } => "answer",
            Self::ListPolicy => "list_policy",
            Self::ExplainCommand => "explain_command",
            Self::Revoke { .. } => "revoke",
            Self::Trust { .. } => "trust",
            Self::ListServers { .. } => "list_mcp_servers",
            Self::ListJobs => "list_jobs",
            Self::StopJob { .. } => "stop_job",
            Self::Worktree { .. } => "worktree",
            Self::UndoRewind { .. } => "undo_rewind",
            Self::LeaveOut { .. } => "leave_out",
            Self::MeshJoin => "mesh_join",
            Self::MeshLeave => "mesh_leave",
            Self::MeshAgents => "mesh_agents",
            Self::MeshSend { .. } => "mesh_send",
            Self::MeshBlock { .. } => "mesh_block",
            Self::ActAs(_) => "act_as",
            Self::Fork { .. } => "fork",
        }
    }

    /// An input of plain text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::Send { input: vec![Segment::Text { content: text.into() }], queue: false }
    }

    /// Lends what no command is writing.
    pub fn lend(to: impl Into<String>, rule: Rule) -> Self {
        Self::Lend { to: to.into(), rule, running: WhileRunning::Refuse }
    }

    /// Takes back what no command is writing.
    pub fn reclaim(path: impl Into<PathBuf>) -> Self {
        Self::Reclaim { path: path.into(), running: WhileRunning::Refuse }
    }
}

/// Where a message to agents goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Addressees {
    /// The name of an agent, or `broadcast`.
    One(String),
    Many(Vec<String>),
}

/// What a new Pod shall be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewPod {
    /// `None`: named after the workspace, numbered when that is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<PodName>,
    /// The working directory; its workspace becomes the Pod's scope.
    pub cwd: PathBuf,
    /// `None`: what the host's rules choose (contracts 7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The scope to ask for instead of write on the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<Rule>>,
    /// The name of a profile; `None` is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How much its model is to think; `None`: what the profile or the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How many model requests one run may make; `None` = the configured limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The environment that its commands inherit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether it is deleted, with its children, once it has rested for a day. A later use makes it
    /// an ordinary Pod.
    #[serde(default, skip_serializing_if = "crate::protocol::family::is_false")]
    pub ephemeral: bool,
    /// It works in a working tree of its own, which is its scope; `cwd` names the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
}

/// What a new child shall be. The name is free text: it is checked with everything else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpawnPod {
    pub name: String,
    /// Its first message.
    pub task: String,
    /// What it is lent; nothing stands for read of all that its parent may read.
    pub scope: Vec<Rule>,
    /// `default`, `inherit` or the name of a profile; `None` is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Stands in the place of the general instruction in its system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// How much its model is to think; `None`: what the profile says, else the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Its working directory; `None` is the parent's when it may read that, else its first target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// It works in a working tree of its own, which is its scope, so that it is lent nothing; `cwd` names the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
    #[serde(default, skip_serializing_if = "WhileRunning::is_refuse")]
    pub running: WhileRunning,
}

/// While commands run that may write what a request takes from their Pod: it is refused and names them, waits for their end
/// unless the asker is gone before, or ends them first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WhileRunning {
    #[default]
    Refuse,
    Wait,
    End,
}

impl WhileRunning {
    fn is_refuse(&self) -> bool {
        *self == Self::Refuse
    }
}

/// A piece of user input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Segment {
    Text {
        content: String,
    },
    Paste {
        id: u32,
        chars: u32,
        lines: u32,
        content: String,
    },
    FileRef {
        path: String,
    },
    KnowledgeRef {
        slug: String,
    },
    WorkflowInvoke {
        slug: String,
    },
    /// From a newer client; kept as it came, read by the model as a placeholder.
    #[serde(untagged)]
    Unknown(Value),
}

impl Segment {
    /// What the model reads.
    pub fn flat(&self) -> Cow<'_, str> {
        match self {
            Self::Text { content } | Self::Paste { content, .. } => content.into(),
            Self::FileRef { path } => format!("@{path}").into(),
            Self::KnowledgeRef { slug } => format!("#{slug}").into(),
            Self::WorkflowInvoke { slug } => format!("/{slug}").into(),
            Self::Unknown(_) => "[unknown input segment]".into(),
        }
    }
}

/// What a child tells its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PodEvent {
    TurnEnded {
        pod_name: String,
        /// The last message of the turn, or its beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    },
    Errored {
        pod_name: String,
        message: String,
    },
    ShutDown {
        pod_name: String,
    },
    /// Control plane only: a child lent scope on; the agent is not told.
    ScopeSubDelegated {
        parent_pod: String,
        sub_pod: String,
        sub_socket: PathBuf,
        scope: Vec<Rule>,
    },
}

impl PodEvent {
    /// The child that it is about.
    pub fn pod_name(&self) -> &str {
        match self {
            Self::TurnEnded { pod_name, .. }
            | Self::Errored { pod_name, .. }
            | Self::ShutDown { pod_name } => pod_name,
            Self::ScopeSubDelegated { sub_pod, .. } => sub_pod,
        }
    }

    /// What the parent agent reads, `None` when it is not told.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::TurnEnded { pod_name, .. } => Some(format!("pod `{pod_name}` finished a turn")),
            Self::Errored { pod_name, message } => {
                Some(format!("pod `{pod_name}` errored: {message}"))
            }
            Self::ShutDown { pod_name } => Some(format!("pod `{pod_name}` stopped")),
            Self::ScopeSubDelegated { .. } => None,
        }
    }
}
