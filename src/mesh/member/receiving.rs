//! What a member does with a line of its leader.

use crate::mesh::broker::{ABSENT, read_ack};
use crate::mesh::envelope::{Addressed, Envelope, Roster, Text, To, confirming, text_of};
use crate::mesh::id::Id;
use crate::mesh::machines::is_addressable;
use crate::mesh::member::session::Session;
use crate::mesh::member::{Message, Peer, Received, Status};
use crate::mesh::name::{BROADCAST, BROKER, is_broker};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The sender of errors between machines.
const RELAY: &str = "_relay";

/// A body that says that a member joined or left.
#[derive(Deserialize)]
struct Presence<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    name: String,
}

/// A body that says that a message did not get to another machine.
#[derive(Deserialize)]
struct TransportError<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    reason: String,
}

impl Session {
    /// Takes a line; one that is no envelope is dropped.
    pub(super) fn line(&mut self, line: &[u8]) {
        let text = text_of(line);
        let Some(envelope) = Envelope::read(&text) else { return };
        if envelope.from == RELAY {
            // A relay of 0.4.2 writes its own ids without dashes.
            if let Some(re) = envelope.re.as_ref().and_then(|re| re.loose()) {
                self.transport_error(re, envelope.body);
            }
            return;
        }
        let Some((id, re)) = envelope.ids() else { return };
        if is_broker(&envelope.from) {
            return self.of_broker(&envelope.from, re, envelope.body);
        }
        let to_one = match &envelope.to {
            Addressed::One(name) => Some(name),
            Addressed::Many(_) => None,
        };
        // Names stay in memory when their messages are gone, so each must have a limit.
        if !to_one.into_iter().chain([&envelope.from]).all(|name| is_addressable(name)) {
            return;
        }
        let Ok(body) = RawValue::from_string(envelope.body.to_owned()) else { return };
        let to = match envelope.to {
            Addressed::One(name) if name == BROADCAST => To::Broadcast,
            Addressed::One(name) => To::One(name.into_owned()),
            Addressed::Many(names) => {
                To::Many(names.into_iter().map(|name| name.0.into_owned()).collect())
            }
        };
        let message = Message { from: envelope.from.into_owned(), to, id, re, body };
        if self.is_new(&message) {
            self.parked.push_back(Received::Message(message));
        }
    }

    /// Whether a message was not given before; one that was is answered as before.
    fn is_new(&mut self, message: &Message) -> bool {
        let (Some(seen), To::One(to)) = (self.seen.as_mut(), &message.to) else { return true };
        match seen.note([&message.from, to], message.id) {
            None => return true,
            // It is confirmed when it is kept.
            Some(None) => {}
            Some(Some(fate)) => self.confirm(message.id, &fate),
        }
        false
    }

    /// Takes what a leader says. An acknowledgement counts if it comes from the leader that the message went to.
    fn of_broker(&mut self, from: &str, re: Option<Id>, body: &str) {
        if let (Some(re), Some(ack)) = (re, read_ack(body)) {
            let expected = |to: &str| {
                let label = from.strip_suffix(BROKER).unwrap_or_default();
                // Of one id, the gateway to other machines passes on one message after the other.
                let names_another =
                    self.ours && ack.target.as_deref().is_some_and(|target| target != to);
                (from == BROKER || to.starts_with(label)) && !names_another
            };
            if self.pending.get(&re).is_none_or(|(_, message)| !expected(&message.to)) {
                return;
            }
            if ack.status == ABSENT {
                self.put_back(re);
            } else if let Some(status) = status(&ack.status) {
                self.finish_send(re, status, ack.reason.map(Cow::into_owned));
            }
            return;
        }
        if from != BROKER {
            return;
        }
        if re.is_some() && re == self.farewell.map(|(id, _)| id) {
            self.has_left = true;
            return;
        }
        if let Some(done) = re.and_then(|re| self.lists.remove(&re)) {
            if let Ok(roster) = serde_json::from_str::<Roster<'_>>(body) {
                let confirming = confirming(body);
                let peer = |name: Text<'_>| {
                    let confirms = confirming.iter().any(|other| *other == name.0);
                    Peer { name: name.0.into_owned(), confirms }
                };
                // A caller that gave up waits no more.
                let _ = done.send(roster.peers.into_iter().map(peer).collect());
            }
            return;
        }
        let Ok(Presence { kind, name }) = serde_json::from_str(body) else { return };
        match &*kind {
            "peer_joined" => self.parked.push_back(Received::PeerJoined(name)),
            "peer_left" => self.parked.push_back(Received::PeerLeft(name)),
            _ => {}
        }
    }

    /// Takes an error of a message to another machine. A message to this machine is none of them.
    fn transport_error(&mut self, re: Id, body: &str) {
        let Ok(TransportError { kind, reason }) = serde_json::from_str(body) else { return };
        let goes_out = self.pending.get(&re).is_some_and(|(_, message)| message.to.contains(':'));
        if kind != "transport_error" || !goes_out {
            return;
        }
        let (status, sentence) = match reason.as_str() {
            "not_authorized" => {
                (Status::Denied, "the other machine does not admit this one".to_owned())
            }
            "bad_envelope" => {
                (Status::Denied, "the relay refused the message as malformed".to_owned())
            }
            "offline" => (Status::Timeout, "the other machine is offline".to_owned()),
            other => (Status::Timeout, format!("the way to the other machine failed: {other}")),
        };
        self.finish_send(re, status, Some(sentence));
    }

    fn finish_send(&mut self, id: Id, status: Status, reason: Option<String>) {
        if let Some((_, message)) = self.pending.remove(&id) {
            message.finish(status, reason);
            self.send_due();
        }
    }

    /// A message that was sent again did not get to its addressee: it is sent once more.
    fn put_back(&mut self, id: Id) {
        if let Some((_, message)) = self.pending.remove(&id) {
            self.resends.put_back(message);
        }
    }
}

/// The status of an acknowledgement; `None`: the word is unknown, so nothing is known of the message.
fn status(word: &str) -> Option<Status> {
    match word {
        "received" => Some(Status::Received),
        // Of leaders of yoi only: the addressee is on another machine.
        "queued" => Some(Status::Queued),
        // Leaders before 0.4.2 dropped a message to a busy agent.
        "denied" | "busy" => Some(Status::Denied),
        // Of leaders of yoi only: the addressee left and had not confirmed.
        "timeout" => Some(Status::Timeout),
        _ => None,
    }
}
