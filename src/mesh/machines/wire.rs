//! What machines send each other, as JSON. Which machine sent it is known from the subject alone.

use crate::mesh::Id;
use crate::mesh::broker::MAX_MEMBERS;
use crate::mesh::machines::name::MachineName;
use crate::mesh::name::is_agent_name;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest reason in an outcome, in bytes; a longer one is cut.
const LONGEST_REASON: usize = 500;

/// A message of an agent to an agent of another machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The sender, as its machine names it.
    pub from: String,
    pub to: String,
    pub id: String,
    /// The id of the message that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
    /// The body as its sender wrote it.
    pub body: Box<RawValue>,
    /// What the host of the sender says about the sender and the addressee as peers; no agent wrote such a message. The
    /// body is a sentence, which a host that does not know this delivers as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peering: Option<Peering>,
}

/// Whether an agent of the sender's machine wants to be a peer of one of the receiver's. The next generation begins when
/// one of them does not want it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peering {
    pub generation: u64,
    pub wants: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is committed to the mailbox of its addressee.
    Received,
    Denied,
    /// Whether its addressee has got it is not known; a host that does not know this drops it.
    Unknown,
    /// The model of its addressee has got it. It follows `Received`; a host that does not know it drops it.
    Read,
}

/// What the machine of an addressee says about a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The id of the message.
    pub id: String,
    /// Who sent the message.
    pub to: String,
    /// Its addressee.
    pub from: String,
    pub fate: Fate,
    /// Why it was denied, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which agents of a machine can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    pub agents: Vec<String>,
    /// The connection that says it, as a random id.
    #[serde(default)]
    pub connection: String,
    /// Whether the machine wants to know the same of the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub solicits: bool,
    /// Whether the machine is about to leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves: bool,
}

impl Message {
    /// `None`: the bytes are no message. They come from another machine.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let message: Self = serde_json::from_slice(bytes).ok()?;
        let ids = [Some(&message.id), message.re.as_ref()];
        let has_ids = ids.into_iter().flatten().all(|id| Id::parse(id).is_some());
        (has_ids && is_agent_name(&message.from) && is_agent_name(&message.to)).then_some(message)
    }
}

impl Outcome {
    /// One that a machine sends itself. It is about no message, so whoever gets it drops it.
    pub(super) fn about_itself(machine: &MachineName, id: Id) -> Self {
        let (to, from) = (machine.to_string(), machine.to_string());
        Self { id: id.to_string(), to, from, fate: Fate::Read, reason: None }
    }

    /// `None`: the bytes are no outcome. They come from another machine.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut outcome: Self = serde_json::from_slice(bytes).ok()?;
        if let Some(reason) = &mut outcome.reason {
            reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
        }
        let fits = Id::parse(&outcome.id).is_some()
            && is_agent_name(&outcome.from)
            && is_agent_name(&outcome.to);
        fits.then_some(outcome)
    }
}

impl Presence {
    /// `None`: the bytes say nothing of the kind. They come from another machine.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut presence: Self = serde_json::from_slice(bytes).ok()?;
        presence.agents.retain(|name| is_agent_name(name));
        presence.agents.truncate(MAX_MEMBERS);
        Some(presence)
    }
}

/// A value of this room as JSON.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("names, ids and raw JSON are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a1ffb6-a2cb-7796-b04c-890887088394";

    #[test]
    fn a_message_has_an_id_and_names_without_control_characters() {
        let good = format!(r#"{{"from":"a","to":"b","id":"{ID}","body":[1.0],"more":1}}"#);
        let message = Message::read(good.as_bytes()).unwrap();
        assert_eq!((message.body.get(), message.re), ("[1.0]", None));
        for (part, other) in [
            (r#""from":"a""#, r#""from":"""#),
            (r#""from":"a""#, r#""from":"a\u001b""#),
            (ID, "7"),
            (r#""body":[1.0],"#, ""),
        ] {
            assert!(Message::read(good.replace(part, other).as_bytes()).is_none(), "{other}");
        }
        // What the server itself says when a message names this subject for the answer.
        assert!(Message::read(br#"{"stream":"yoi_docs", "seq":1}"#).is_none());
    }

    #[test]
    fn a_long_reason_is_cut_and_names_that_are_none_are_left_out() {
        let reason = "\u{e9}".repeat(400);
        let text =
            format!(r#"{{"id":"{ID}","to":"a","from":"b","fate":"denied","reason":"{reason}"}}"#);
        assert_eq!(Outcome::read(text.as_bytes()).unwrap().reason.unwrap().len(), 500);
        // A host drops an outcome that it does not know, as one that knows no `read` drops that.
        assert_eq!(Outcome::read(text.replace("denied", "later").as_bytes()), None);
        assert_eq!(
            Outcome::read(text.replace("denied", "unknown").as_bytes()).unwrap().fate,
            Fate::Unknown
        );
        let presence = Presence::read(br#"{"agents":["a","","b\n"]}"#).unwrap();
        assert_eq!(presence, Presence { agents: vec!["a".into()], ..Presence::default() });
    }
}
