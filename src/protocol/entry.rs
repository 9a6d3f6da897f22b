//! Entries of the session log: one JSON object a line.

use crate::protocol::item::{Content, Image, Item, RequestConfig, Role};
use crate::protocol::mesh::SentMessage;
use crate::protocol::method::{PodEvent, Segment};
use crate::protocol::name::{EntryId, PodName, SegmentId, SessionId};
use crate::protocol::work::Work;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Absent only in logs that the predecessor wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntryId>,
    /// Milliseconds since the Unix epoch.
    #[serde(default)]
    pub ts: u64,
    #[serde(flatten)]
    pub fact: Fact,
    /// The run that wrote it: the id of the input that began the run. A run that goes on, or that a Pod below begins,
    /// has the id of the run before. Absent outside of runs and in logs of earlier versions. It stands behind the fact:
    /// readers that look for a kind of entry take the beginning of a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<EntryId>,
}

/// What an entry says. Only optional fields and `extension` domains may ever be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    SegmentStart {
        session_id: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        config: RequestConfig,
        /// The history this segment begins with, after a compaction.
        history: Vec<Kept>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<SegmentOrigin>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compacted_from: Option<SegmentOrigin>,
    },
    Invoke {
        trigger: Trigger,
    },
    UserInput {
        segments: Vec<Segment>,
        /// The queue row it came from; a row whose id the log holds is never delivered again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<String>,
        /// The Pod that said it; absent when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<PodName>,
    },
    AssistantItem {
        item: Item,
        /// Which model said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// The provider's own block, replayed verbatim to the same origin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Value>,
        /// Set when the block was cut off: shown, and replayed to a model as text only.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    ToolResult {
        item: Item,
        /// What files look like after this call: read-before-edit is rebuilt from it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileMark>,
        /// The message that the call sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentMessage>,
    },
    SystemItem {
        item: SystemItem,
        /// The mailbox row it came from; a row whose id the log holds is never delivered again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<String>,
    },
    TurnEnd {
        turn_count: u64,
    },
    RunCompleted {
        interrupted: bool,
        /// finished, paused, limit_reached or yielded.
        result: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<Work>>,
    },
    RunErrored {
        interrupted: bool,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<Work>>,
    },
    ConfigChanged {
        config: RequestConfig,
    },
    LlmUsage {
        history_len: u64,
        input_total_tokens: u64,
        cache_read_tokens: u64,
        cache_write_tokens: u64,
        output_tokens: u64,
        /// Cost in US dollars by the price table, when the model's price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    Extension {
        domain: String,
        payload: Value,
    },
    /// A kind from a newer program; kept as it came.
    #[serde(untagged)]
    Unknown(Value),
}

/// An item inside `segment_start.history`, with the id of the entry it was copied from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Value>,
    #[serde(flatten)]
    pub item: Item,
    /// Where the content of a tool result stands, when it may be left out of memory. Never written
    /// to a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputPlace>,
    /// Set where requests no longer carry the content of this tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
}

/// What is left of an output that requests no longer carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The file that holds the text; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<std::path::PathBuf>,
    /// Whether a person left the result out, because the provider refuses it; `yoi.pruned` entries have the same field.
    #[serde(default, skip_serializing_if = "crate::protocol::family::is_false")]
    pub refused: bool,
}

/// A tool result whose output leaves the context, in a `yoi.pruned` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedResult {
    /// The entry of the result.
    pub id: EntryId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<std::path::PathBuf>,
}

/// What an image takes in a request, in bytes of text.
pub const IMAGE_BYTES: u64 = 4_000;

/// A long output of a tool in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPlace {
    pub segment: SegmentId,
    /// Where the line begins, in bytes.
    pub offset: u64,
    /// The length of the content.
    pub bytes: u64,
}

impl Kept {
    /// An item without a provider's form.
    pub fn new(id: Option<EntryId>, item: Item) -> Self {
        Self { id, origin: None, native: None, item, output: None, pruned: None }
    }

    /// The length of the content of a tool result, also where it is left in the log; 0 for others.
    pub fn output_bytes(&self) -> u64 {
        match (&self.item, &self.output) {
            (Item::ToolResult { content: Some(content), .. }, _) => content.len() as u64,
            (Item::ToolResult { content: None, .. }, Some(place)) => place.bytes,
            _ => 0,
        }
    }

    /// The tokens that the content and the images of a tool result take in a request, by the rule of thumb
    /// of four bytes each; 0 for others.
    pub fn output_tokens(&self) -> u64 {
        let images = match &self.item {
            Item::ToolResult { images, .. } => images.len() as u64,
            _ => 0,
        };
        (self.output_bytes() + images * IMAGE_BYTES).div_ceil(4)
    }

    /// Whether the content is left in the log.
    pub fn is_left(&self) -> bool {
        self.output.is_some() && matches!(self.item, Item::ToolResult { content: None, .. })
    }
}

/// The model that produced an item; a native block is valid only for the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub wire: String,
    pub provider: String,
    pub model: String,
}

/// Where a segment comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentOrigin {
    pub segment_id: SegmentId,
    pub at_turn_index: u64,
}

/// A file after a tool touched it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Canonical, absolute.
    pub path: std::path::PathBuf,
    /// blake3 of the content, hex.
    pub hash: String,
    /// Where the content before the change is kept (a file name under `blobs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Why a run starts (`InvokeKind` of the protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    UserSend,
    Notify,
    PodEvent,
    SystemReminder,
    Wakeup,
}

/// Text that the runtime, not a person or a model, put into the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SystemItem {
    Notification {
        message: String,
        body: String,
        /// The Pod that the notification comes from or is about, where the log says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<NotificationSource>,
    },
    PodEvent {
        event: PodEvent,
        body: String,
    },
    FileAttachment {
        path: String,
        body: String,
        /// The file itself where it is an image.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    Knowledge {
        slug: String,
        body: String,
    },
    Workflow {
        slug: String,
        body: String,
    },
    TaskReminder {
        source: String,
        body: String,
    },
    Interrupt {
        body: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

/// The Pod or agent that a notification comes from or is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationSource {
    /// A peer sent it.
    Peer(PodName),
    /// The host sent it, because this child waits for an approval.
    WaitingChild(PodName),
    /// An agent sent it with `agent_send`, or over the mesh.
    Agent(AgentOrigin),
    /// A person sent it to an agent, in the name of the Pod.
    Person(Box<SentByPerson>),
    #[serde(untagged)]
    Unknown(Value),
}

/// A message that a person sent in the name of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentByPerson {
    /// The name that the person gave.
    pub to: String,
    pub sent: SentMessage,
    /// The reason for this state, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where the message of an agent comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOrigin {
    /// Its name, which the leader of the mesh gave it, or the Pod's.
    pub name: String,
    /// The id of the message.
    pub id: String,
    /// The id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
    /// Whether it is a Pod of the same host.
    #[serde(default, skip_serializing_if = "crate::protocol::family::is_false")]
    pub pod: bool,
}

impl SystemItem {
    /// The message with which the model reads it.
    pub fn message(&self) -> Item {
        let mut content = vec![Content::Text { text: self.body().to_owned() }];
        if let Self::FileAttachment { images, .. } = self {
            content.extend(images.iter().cloned().map(Content::Image));
        }
        Item::Message { role: Role::System, content }
    }

    /// What the model reads.
    pub fn body(&self) -> &str {
        match self {
            Self::Notification { body, .. }
            | Self::PodEvent { body, .. }
            | Self::FileAttachment { body, .. }
            | Self::Knowledge { body, .. }
            | Self::Workflow { body, .. }
            | Self::TaskReminder { body, .. }
            | Self::Interrupt { body } => body,
            Self::Unknown(value) => value.get("body").and_then(Value::as_str).unwrap_or(""),
        }
    }
}

/// Extension domains that are ours.
pub mod domain {
    /// name, cwd, scope, resolved configuration without secrets, parent: enough to rebuild the store.
    pub const POD: &str = "yoi.pod";
    /// `{id}`: a mailbox or queue row that was taken without becoming an entry of its own.
    pub const TAKEN: &str = "yoi.taken";
    /// `{results, why}`: outputs of tools that no request behind this entry carries; each of the results is a
    /// [`super::PrunedResult`].
    pub const PRUNED: &str = "yoi.pruned";
    /// `{reason, words}`: a reply ended in another way than at its own end: cut by its limit, declined, paused; or
    /// a part of it could not be read.
    pub const STOPPED: &str = "yoi.stopped";
    /// The run goes on with another model, because its own is away: `{from, to, why}`.
    pub const FALLBACK: &str = "yoi.fallback";
    /// `{writers, refused}`: a run only reads where these Pods write; whether a call of it could not write there.
    pub const TURN: &str = "yoi.turn";
    /// `{sentences}`: a provider refused something, and requests do without it from here on.
    pub const LEARNED: &str = "yoi.learned";
    /// An interrupted run goes on.
    pub const RESUMED: &str = "yoi.resumed";
    /// A run was cut off by the end of its host; `{at}` in milliseconds.
    pub const CUT: &str = "yoi.cut";
    /// An [`crate::protocol::ApprovalRequest`]: a tool call waits for a person.
    pub const ASKED: &str = "yoi.asked";
    /// `{approval, verdict}`: it may go on or not. A call that was allowed and has no result may have run.
    pub const ANSWERED: &str = "yoi.answered";
    /// `{from, to, input}`: a run was taken back; entries from the id `from` on are not part of the
    /// history. `to` is the place of that entry, as in [`REWOUND`]; earlier versions wrote none.
    pub const ROLLED_BACK: &str = "yoi.rolled_back";
    /// A rewind `{to}`, its undo `{undo}`, the undo of that `{redo}`, or the beginning of a fork
    /// `{fork}`: what stands before this entry ends at the given place, `{segment, offset}` in bytes.
    pub const REWOUND: &str = "yoi.rewound";
    /// A model ended its answer without text and without a tool call; it may have sent reasoning.
    pub const EMPTY_ANSWER: &str = "yoi.empty_answer";
}

impl Fact {
    /// Whether this records that a model's answer was empty.
    pub fn is_empty_answer(&self) -> bool {
        matches!(self, Self::Extension { domain, .. } if domain == domain::EMPTY_ANSWER)
    }
}

/// The note behind a partial reply whose connection broke.
pub const GO_ON: &str = "[The connection broke in the middle of your answer. What arrived of it \
                         stands above. Go on exactly where it ends; repeat nothing.]";

/// The first words of the item with which a segment begins after a compaction.
pub const COMPACTED: &str = "[The conversation so far was compacted. What follows is the handover \
                             of it; the newest messages stand after it unchanged.]";

/// The handover text of a compaction, when the item is one, without [`COMPACTED`].
pub fn compaction_summary(item: &Item) -> Option<String> {
    let text = item.text()?;
    Some(text.strip_prefix(COMPACTED)?.trim().to_owned())
}

impl Entry {
    /// An entry of now, with a fresh id.
    pub fn new(fact: Fact) -> Self {
        Self { id: Some(EntryId::new()), ts: crate::protocol::now_ms(), run: None, fact }
    }

    /// The run that the entry belongs to, as far as the entry alone tells: an input that names no run began one.
    pub fn run(&self) -> Option<EntryId> {
        self.run.or(self.id.filter(|_| matches!(self.fact, Fact::UserInput { .. })))
    }

    /// An extension entry of one of our domains.
    pub fn extension(domain: &str, payload: Value) -> Self {
        Self::new(Fact::Extension { domain: domain.into(), payload })
    }
}
