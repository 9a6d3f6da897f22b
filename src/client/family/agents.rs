//! The agents of the mesh that are no Pods of this host, and what a Pod can reach.

use crate::client::family::Family;
use crate::protocol::PodName;
use crate::protocol::mesh::{AgentKind, MeshAgent};
use crate::text::SafeText;

/// An agent of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name, to which messages go.
    pub name: String,
    /// The name as it is shown.
    pub shown: SafeText<'static>,
    pub kind: AgentKind,
    pub blocked: bool,
    /// Whether it is there. An agent of another machine that is a peer is listed while it is away.
    pub reachable: bool,
    /// The Pods of which it is a peer.
    pub peers: Vec<PodName>,
}

/// The agents, and the most that were there at once.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// By name.
    all: Vec<Agent>,
    most: usize,
}

/// A peer of a Pod, or an agent that it reaches over the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact<'a> {
    Pod(&'a PodName),
    Agent(&'a Agent),
}

impl Agents {
    /// Replaces all agents by those that the host sent.
    pub(super) fn replace(&mut self, agents: Vec<MeshAgent>) {
        let agent = |MeshAgent { name, kind, blocked, reachable, peers, .. }: MeshAgent| Agent {
            shown: SafeText::line(name.as_str()).into_owned(),
            name,
            kind,
            blocked,
            reachable,
            peers,
        };
        self.all = agents.into_iter().map(agent).collect();
        self.most = self.most.max(self.all.len());
    }

    /// Forgets all agents, because the connection to the host ended.
    pub(super) fn lose(&mut self) {
        self.all.clear();
    }
}

impl Agent {
    /// The kind of the agent in a word: `yoi` for one that says when it has kept a message, else `agent`.
    pub fn word(&self) -> &'static str {
        match self.kind {
            AgentKind::Pod | AgentKind::Yoi => "yoi",
            AgentKind::Agent | AgentKind::Unknown => "agent",
        }
    }

    /// The name as a word of a command line; `None` for one that cannot be typed, because it has invisible
    /// characters.
    pub fn typed(&self) -> Option<&str> {
        (self.shown.as_str() == self.name).then_some(&self.name)
    }
}

impl Contact<'_> {
    /// The name, to which messages go.
    pub fn name(&self) -> &str {
        match self {
            Self::Pod(name) => name.as_str(),
            Self::Agent(agent) => &agent.name,
        }
    }
}

impl Family {
    /// The agents of the mesh, by name.
    pub fn agents(&self) -> &[Agent] {
        &self.agents.all
    }

    /// The agents that a Pod reaches: all, while it takes part in the mesh.
    pub fn agents_of(&self, name: &PodName) -> &[Agent] {
        if self.is_on_mesh(name) { self.agents() } else { &[] }
    }

    /// Whether a Pod takes part in the mesh and has joined it.
    pub fn is_on_mesh(&self, name: &PodName) -> bool {
        let standing = self.get(name).and_then(|info| info.mesh.as_ref());
        standing.is_some_and(|standing| standing.name.is_some())
    }

    /// The peers and agents that a Pod reaches: peers by name, then agents by name.
    pub fn contacts_of<'a>(&'a self, name: &'a PodName) -> Vec<Contact<'a>> {
        let peers = self.peers_of(name).into_iter().map(Contact::Pod);
        peers.chain(self.agents_of(name).iter().map(Contact::Agent)).collect()
    }

    /// Whether any Pod has a peer or reaches an agent.
    pub fn has_contacts(&self) -> bool {
        self.has_peers() || self.agents.most > 0
    }

    /// The most that one Pod has reached since the host sent the family. The number does not shrink when agents
    /// leave.
    pub fn most_contacts(&self) -> usize {
        self.most_peers() + self.agents.most
    }
}
