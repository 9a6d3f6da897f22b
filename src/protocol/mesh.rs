//! What clients learn of the agent mesh.

use crate::protocol::family::is_false;
use crate::protocol::name::PodName;
use serde::{Deserialize, Serialize};

/// How a Pod takes part in the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStanding {
    /// The name that the leader assigned; `None`: the Pod has not joined yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the leader is a task of this host.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leads: bool,
    /// Whether the leader is yoi. Another leader says `received` when the kernel has a message.
    #[serde(default, skip_serializing_if = "is_false")]
    pub led_by_yoi: bool,
    /// Why it has not joined, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The mesh as a Pod or a host sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshView {
    /// The Pods of this host that take part, or the addressed one.
    #[serde(default)]
    pub members: Vec<MeshMember>,
    /// The agents that can be reached.
    #[serde(default)]
    pub agents: Vec<MeshAgent>,
    /// The agents whose messages no Pod of this host takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// How this machine reaches others; `None`: it reaches none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<MachineView>>,
}

/// This machine among those of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineView {
    /// Its name there; empty where the file that holds it cannot be used.
    pub name: String,
    /// The host and port of the server.
    pub server: String,
    pub connected: bool,
    /// Why it is not connected, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The other machines that are present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// The last 100 messages to other machines since the host began, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MachineMessage>,
    /// By how many milliseconds the clock of the server is ahead of this machine's; `None`: it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ms: Option<i64>,
}

/// A message of a Pod of this host to an agent of another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineMessage {
    pub id: String,
    pub pod: PodName,
    /// The agent with its machine, as in `casa:reviewer`.
    pub to: String,
    pub state: MessageState,
    /// Since when, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// What became of a message to another machine. Later ones follow earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// The server holds it.
    Queued,
    /// It is in the mailbox of its addressee.
    Received,
    /// The model of its addressee has got it.
    Read,
    Denied,
    /// From a newer host.
    #[serde(other)]
    Unknown,
}

impl MessageState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Received => "received",
            Self::Read => "read",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

/// A Pod of this host on the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshMember {
    pub pod: PodName,
    /// `None`: it is wanted to take part and is not live, or takes no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<MeshStanding>,
}

/// The result of sending a message of a Pod. [`PodInfo::waiting`](crate::protocol::PodInfo::waiting) of a receiving
/// Pod says whether that Pod has read the message since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentMessage {
    pub id: String,
    /// received, queued, denied, timeout, sent or refused.
    pub status: String,
    /// The Pods of this host whose mailbox has the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodName>,
    /// Whether `received` means only that the leader, another program, handed the message over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub handed_over: bool,
}

/// An agent that a Pod can send messages to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshAgent {
    pub name: String,
    pub kind: AgentKind,
    /// Whether a message can be delivered now.
    pub reachable: bool,
    /// Whether a person blocked the agent: no Pod of this host takes its messages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub blocked: bool,
    /// The Pods of this host of which an agent of another machine is a peer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PodName>,
    /// The Pods of this host that asked it to become a peer, and have no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<PodName>,
}

impl MeshAgent {
    /// An agent of a yoi elsewhere that cannot be reached now.
    pub fn away(name: String) -> Self {
        let (reachable, blocked) = (false, false);
        Self {
            name,
            kind: AgentKind::Yoi,
            reachable,
            blocked,
            peers: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// The same as one Pod sees it.
    #[must_use]
    pub fn of(mut self, pod: &PodName) -> Self {
        self.peers.retain(|name| name == pod);
        self.asked.retain(|name| name == pod);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// A peer in this host.
    Pod,
    /// A member of yoi elsewhere, such as a Pod of another host: it says when it has kept a message.
    Yoi,
    /// An agent of another program.
    Agent,
    /// From a newer host.
    #[serde(other)]
    Unknown,
}
