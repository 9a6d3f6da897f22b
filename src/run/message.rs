//! Messages as rows of the mailbox hold them.

use crate::protocol::{AgentOrigin, NotificationSource, PodName, Segment, SystemItem};
use crate::run::prompt;
use crate::store::{MailboxKind, MailboxMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message to a Pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub segments: Vec<Segment>,
    /// The Pod that sent it; `None` is a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PodName>,
}

impl Input {
    /// As a row of the mailbox holds it.
    pub fn payload(&self) -> Value {
        // Texts and a name always encode.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a row of the mailbox holds; earlier rows are the segments alone.
    pub fn read(payload: &Value) -> Option<Self> {
        if payload.is_array() {
            let segments = Vec::deserialize(payload).ok()?;
            return Some(Self { segments, from: None });
        }
        Self::deserialize(payload).ok()
    }
}

/// Background text for a Pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    #[serde(default)]
    pub message: String,
    /// The Pod that it comes from or is about; `None` is a person, or an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NotificationSource>,
}

impl Notification {
    /// As a row of the mailbox holds it.
    pub fn payload(&self) -> Value {
        // Texts and a name always encode.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a row of the mailbox holds.
    pub fn read(payload: Value) -> Option<Self> {
        serde_json::from_value(payload).ok()
    }

    /// The item that the message becomes in the history.
    pub fn item(self) -> SystemItem {
        let Self { message, from } = self;
        let body = match &from {
            Some(NotificationSource::Person(sent)) => prompt::sent_by_person(sent, &message),
            _ => prompt::notification(&message),
        };
        SystemItem::Notification { message, body, from }
    }
}

/// A message of an agent for a Pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentMessage {
    pub from: AgentOrigin,
    /// JSON, as its sender wrote it.
    pub body: String,
    /// Whether it starts a run of an idle Pod.
    pub wakes: bool,
}

impl AgentMessage {
    /// As a row of the mailbox holds it.
    pub fn payload(&self) -> Value {
        // Texts always encode.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a row of the mailbox holds.
    pub fn read(payload: Value) -> Option<Self> {
        serde_json::from_value(payload).ok()
    }

    /// The id of its row: a sender gives each of its messages another id.
    pub fn row(&self) -> String {
        let AgentOrigin { name, id, .. } = &self.from;
        format!("agent:{}:{name}", id.to_ascii_lowercase())
    }

    /// Its text: the body itself where that is a text, else its JSON.
    pub fn text(&self) -> String {
        crate::mesh::text_of(&self.body)
    }
}

/// The agent or Pod that sent a mailbox message; `None` for a person and the host, also for what it says about a child.
pub fn sender(message: &MailboxMessage) -> Option<String> {
    let payload = || message.payload.clone();
    match message.kind {
        MailboxKind::Input => Some(Input::read(&message.payload)?.from?.to_string()),
        MailboxKind::Agent => Some(AgentMessage::read(payload())?.from.name),
        MailboxKind::PodEvent => None,
        MailboxKind::Notify => match Notification::read(payload())?.from? {
            NotificationSource::Peer(pod) => Some(pod.to_string()),
            NotificationSource::Agent(agent) => Some(agent.name),
            NotificationSource::WaitingChild(_)
            | NotificationSource::Person(_)
            | NotificationSource::Unknown(_) => None,
        },
    }
}
