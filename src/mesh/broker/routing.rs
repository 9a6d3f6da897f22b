//! Handles one line of a member: its registration, a request to the leader, or a message to other members.

use crate::mesh::broker::audit::{Entry, Message};
use crate::mesh::broker::connection::{Connection, Registered, Stage};
use crate::mesh::broker::gateway::Gateway;
use crate::mesh::broker::queue::Receipt;
use crate::mesh::broker::{Broker, MAX_MEMBERS};
use crate::mesh::envelope::{
    AROUND, Ack, Addressed, Confirmed, Detailed, Elsewhere, Envelope, First, Kind, MAX_FRAME, OURS,
    Ours, Parts, RegisterAck, Roster, Text, json_line, text_of,
};
use crate::mesh::id::Id;
use crate::mesh::machines::{MachineName, address};
use crate::mesh::member::NO_AGENT;
use crate::mesh::name::{self, BROADCAST, BROKER, GATEWAY};
use crate::protocol::{Frame, Framer};
use rustix::net::{Shutdown, shutdown};
use serde::Serialize;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

/// `"broker"` as JSON.
const BROKER_JSON: &[u8] = b"\"broker\"";

/// The status of a message that a member sends again to a new leader while the addressee cannot take it: the member has to
/// send it once more.
pub(crate) const ABSENT: &str = "absent";

/// Messages that a member may leave unconfirmed.
const MAX_UNCONFIRMED: usize = 4096;

/// A body that names a member.
#[derive(Serialize)]
struct Presence<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    name: &'a str,
    address: &'a str,
}

/// An envelope on its way, with the sender that is known.
pub(super) struct Routed<'a> {
    pub(super) sender: u64,
    pub(super) ours: bool,
    pub(super) name: &'a str,
    pub(super) from: &'a Arc<[u8]>,
    pub(super) id: Id,
    pub(super) re: Option<Id>,
    pub(super) body: &'a str,
    /// Whether a leader that is gone may have delivered it.
    pub(super) again: bool,
}

impl Routed<'_> {
    fn parts<'a>(&'a self, to: &'a [u8]) -> Parts<'a> {
        Parts { from: self.from, to, id: self.id, re: self.re, body: self.body.as_bytes() }
    }

    pub(super) fn entry<'a>(&'a self, to: &'a [u8], status: &'static str) -> Entry<'a> {
        Entry { from: self.from, to, id: self.id, re: self.re, status, why: None }
    }
}

impl Broker {
    /// Takes one line of a connection; breaks where the connection has to be closed.
    pub(super) fn line(&mut self, key: u64, framer: &mut Framer, frame: Frame) -> ControlFlow<()> {
        let is_member = self.connections.get(&key).is_some_and(|connection| connection.is_member());
        match frame {
            Frame::Line(line) if is_member => self.envelope(key, &text_of(&line)),
            Frame::Line(line) => return self.first(key, framer, &text_of(&line)),
            // It is no envelope, and such lines are dropped.
            Frame::TooLong(_) if is_member => {}
            Frame::TooLong(_) => return Break(()),
        }
        Continue(())
    }

    fn first(&mut self, key: u64, framer: &mut Framer, line: &str) -> ControlFlow<()> {
        match First::read(line) {
            Some(First::Register { name, yoi }) => {
                framer.set_limit(MAX_FRAME);
                self.register(key, &name, serde_json::from_value(yoi).ok())
            }
            Some(First::YoiGateway) => {
                framer.set_limit(MAX_FRAME);
                self.register_gateway(key)
            }
            Some(First::ListPeers) => {
                self.list(key, b"\"observer\"", None);
                Continue(())
            }
            None => Break(()),
        }
    }

    fn register(&mut self, key: u64, wanted: &str, ours: Option<Ours>) -> ControlFlow<()> {
        let free = self.roster.len() < MAX_MEMBERS;
        let assigned = name::assigned(wanted, |name| self.names.contains_key(name));
        let (true, Some(name), Some(connection)) = (free, assigned, self.connections.get_mut(&key))
        else {
            return Break(());
        };
        let ack = json_line(&RegisterAck {
            kind: "register_ack".into(),
            address_assigned: Some(name.as_str().into()),
            name_assigned: name.as_str().into(),
            yoi: ours.is_some().then_some(Ours { version: OURS, confirms: false }),
        });
        let name: Arc<str> = name.into();
        let json: Arc<[u8]> = serde_json::to_vec(&*name).expect("a name is text").into();
        self.joined += 1;
        let confirms = ours.as_ref().is_some_and(|ours| ours.confirms);
        let (ours, joined) = (ours.is_some(), self.joined);
        let leaving = false;
        let registered = Registered { name: name.clone(), json, ours, confirms, joined, leaving };
        connection.stage = Stage::Member(registered);
        self.queued += connection.queue.reply(|bytes| bytes.extend_from_slice(&ack));
        self.mark(key);
        self.names.insert(name.clone(), key);
        self.announce("peer_joined", &name, key);
        self.roster.insert(self.joined, key);
        Continue(())
    }

    /// Tells every member but one that a member joined or left.
    fn announce(&mut self, kind: &str, name: &str, except: u64) {
        let body =
            serde_json::to_vec(&Presence { kind, name, address: name }).expect("names are text");
        let others: Vec<u64> = self.roster.values().copied().filter(|key| *key != except).collect();
        for key in others {
            self.reply(key, None, &body);
        }
    }

    /// Writes a line of the leader itself to a member.
    fn reply(&mut self, key: u64, re: Option<Id>, body: &[u8]) {
        self.reply_as(BROKER_JSON, key, re, body);
    }

    /// The same in the name of a leader, which is JSON.
    fn reply_as(&mut self, from: &[u8], key: u64, re: Option<Id>, body: &[u8]) {
        let id = self.ids.next();
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let Stage::Member(member) = &connection.stage else { return };
        let parts = Parts { from, to: &member.json, id, re, body };
        self.queued += connection.queue.reply(|bytes| parts.write(bytes));
        self.mark(key);
    }

    /// Answers with the names of the members.
    fn list(&mut self, key: u64, to: &[u8], re: Option<Id>) {
        let members =
            self.roster.values().filter_map(|key| self.connections.get(key)?.registered());
        let members: Vec<&Registered> = members.collect();
        let members = members.iter().map(|member| (&*member.name, member.confirms));
        let elsewhere = self.gateway.iter().flat_map(Gateway::agents);
        let elsewhere = elsewhere.filter(|name| !self.names.contains_key(*name));
        let elsewhere = elsewhere.map(|name| (name, true));
        let listed: Vec<(&str, bool)> = members.chain(elsewhere).collect();
        let detailed =
            listed.iter().map(|&(name, confirms)| Detailed { name, address: name, confirms });
        let body = serde_json::to_vec(&Roster {
            kind: "list_peers_reply".into(),
            peers: listed.iter().map(|(name, _)| Text((*name).into())).collect(),
            peers_detailed: detailed.collect(),
        });
        let body = body.expect("names are text");
        let parts = Parts { from: BROKER_JSON, to, id: self.ids.next(), re, body: &body };
        let Some(connection) = self.connections.get_mut(&key) else { return };
        self.queued += connection.queue.reply(|bytes| parts.write(bytes));
        self.mark(key);
    }

    /// Takes a line of a member; one that is no envelope is dropped.
    fn envelope(&mut self, key: u64, line: &str) {
        let Some(envelope) = Envelope::read(line) else { return };
        let Some((id, re)) = envelope.ids() else { return };
        let Some(sender) = self.connections.get(&key).and_then(|found| found.registered()) else {
            return;
        };
        let (name, from, ours) = (sender.name.clone(), sender.json.clone(), sender.ours);
        let (body, again) = (envelope.body, envelope.again && ours);
        if &*name == GATEWAY && envelope.to != Addressed::One(BROKER.into()) {
            // One that leaves says nothing more.
            if self.is_gateway(key) {
                self.of_gateway(key, &envelope, id, re);
            }
            return;
        }
        let routed = Routed { sender: key, ours, name: &name, from: &from, id, re, body, again };
        match envelope.to {
            Addressed::One(to) if to == BROKER => self.request(&routed),
            to if self.refuses_sender(&routed, &to) => {}
            Addressed::One(to) if to == BROADCAST => {
                let others = self.roster.values().copied().filter(|other| *other != key).collect();
                self.deliver_to_many(&routed, b"\"broadcast\"", others);
            }
            Addressed::One(to) => self.deliver_to_one(&routed, &to),
            Addressed::Many(names) => {
                let known =
                    names.iter().filter(|to| to.0 != *name).filter_map(|to| self.names.get(&*to.0));
                let known = known.copied().chain(self.gateway_to(&names)).collect();
                let json = serde_json::to_vec(&names).expect("names are text");
                self.deliver_to_many(&routed, &json, known);
            }
        }
    }

    fn request(&mut self, routed: &Routed<'_>) {
        let Ok(Kind { kind }) = serde_json::from_str(routed.body) else { return };
        match &*kind {
            "list_peers" => {
                // The answer comes behind the acknowledgements of what was sent before.
                self.write_out();
                self.list(routed.sender, routed.from, Some(routed.id));
            }
            "yoi_ping" if routed.ours => {
                self.reply(routed.sender, Some(routed.id), br#"{"type":"yoi_pong"}"#);
            }
            Confirmed::KIND => self.confirmed(routed),
            Elsewhere::KIND => self.reaches(routed.sender, routed.body),
            "yoi_leaving" if routed.ours => self.leaving(routed),
            _ => {}
        }
    }

    /// Routes no further message to a member that leaves. The member still confirms or denies the messages that it
    /// was given before.
    fn leaving(&mut self, routed: &Routed<'_>) {
        let Some(connection) = self.connections.get_mut(&routed.sender) else { return };
        let Stage::Member(member) = &mut connection.stage else { return };
        if !std::mem::replace(&mut member.leaving, true) {
            let (name, joined) = (member.name.clone(), member.joined);
            self.forget(routed.sender, &name, joined);
        }
        self.forget_gateway(routed.sender);
        self.reply(routed.sender, Some(routed.id), br#"{"type":"yoi_left"}"#);
    }

    /// Takes a member off the roster: its name is free.
    fn forget(&mut self, key: u64, name: &str, joined: u64) {
        self.names.remove(name);
        self.roster.remove(&joined);
        self.announce("peer_left", name, key);
    }

    /// Acknowledges a message that its addressee has confirmed or denied.
    fn confirmed(&mut self, routed: &Routed<'_>) {
        let Ok(Confirmed { id, denied, status, .. }) = serde_json::from_str(routed.body) else {
            return;
        };
        let Some(id) = Id::parse(&id) else { return };
        let Some(connection) = self.connections.get_mut(&routed.sender) else { return };
        if let Some(receipt) = connection.unconfirmed.remove(&id) {
            let status = match (&denied, status.as_deref()) {
                (None, _) => "received",
                (Some(_), Some("queued")) => "queued",
                (Some(_), Some("timeout")) => "timeout",
                (Some(_), _) => "denied",
            };
            self.decided(&receipt, status, denied.as_deref());
        }
    }

    pub(super) fn deliver_to_one(&mut self, routed: &Routed<'_>, to: &str) {
        if to == routed.name {
            return self.undeliverable(routed, to, "a message to oneself is not delivered");
        }
        let elsewhere = address(to).and_then(|_| self.gateway_for(routed.sender));
        let Some(target) = elsewhere.or_else(|| self.names.get(to).copied()) else {
            if routed.again {
                return self.acknowledge(routed.sender, routed.id, ABSENT, b"null", None);
            }
            let hint = if to.contains(':') && self.gateway.is_some() {
                "; an agent of another machine is addressed as `machine:name`, as it is listed"
            } else if to.contains(':') {
                "; agents of other machines are reached while a Pod of this one is on the mesh"
            } else if to.contains(',') {
                "; a message to several agents names them in an array"
            } else {
                ""
            };
            return self.undeliverable(routed, to, &format!("{NO_AGENT}{hint}"));
        };
        let queued = self.queued;
        let Some(connection) = self.connections.get_mut(&target) else { return };
        let Some(member) = connection.registered() else { return };
        let (mut json, confirms) = (member.json.clone(), member.confirms);
        if elsewhere.is_some() {
            json = serde_json::to_vec(to).expect("a name is text").into();
        }
        let size = routed.from.len() + json.len() + routed.body.len() + AROUND;
        if routed.again && !confirms {
            let reason = "the mesh leader ended before it acknowledged the message, and this \
                          agent may have got it";
            return self.acknowledge(routed.sender, routed.id, "timeout", &json, Some(reason));
        }
        let refused = if !connection.queue.has_room(size, queued) {
            Some("its queue is full: it does not read what was sent to it")
        } else if confirms && connection.unconfirmed.len() >= MAX_UNCONFIRMED {
            Some("its queue is full: it does not confirm what was sent to it")
        } else if confirms && connection.unconfirmed.contains_key(&routed.id) {
            Some("a message of the same id is on its way to it")
        } else {
            None
        };
        if routed.again && refused.is_some() {
            return self.acknowledge(routed.sender, routed.id, ABSENT, &json, None);
        }
        if let Some(reason) = refused {
            self.audit.add(&routed.entry(&json, "denied"), |_| {});
            return self.acknowledge(routed.sender, routed.id, "denied", &json, Some(reason));
        }
        self.queued += connection.queue.append(|bytes| routed.parts(&json).write(bytes));
        let message = Message { from: routed.from.clone(), to: json, id: routed.id, re: routed.re };
        let line = self.audit.add_unacknowledged(message.clone());
        let receipt = Receipt { sender: routed.sender, message, line };
        if confirms {
            connection.unconfirmed.insert(routed.id, receipt);
        } else {
            connection.queue.receipt(receipt);
        }
        self.mark(target);
    }

    /// Audits a message that goes nowhere. A member of yoi hears it at once; to others the leader of 0.4.2 says
    /// nothing.
    fn undeliverable(&mut self, routed: &Routed<'_>, to: &str, reason: &str) {
        let json = serde_json::to_vec(to).expect("a name is text");
        let status = if routed.ours { "denied" } else { "none" };
        self.audit.add(&routed.entry(&json, status), |_| {});
        if routed.ours {
            self.acknowledge(routed.sender, routed.id, "denied", &json, Some(reason));
        }
    }

    /// Delivers to each of these members that has room.
    fn deliver_to_many(&mut self, routed: &Routed<'_>, to: &[u8], targets: Vec<u64>) {
        let mut line = std::mem::take(&mut self.scratch);
        routed.parts(to).write(&mut line);
        let mut delivered: Vec<Arc<[u8]>> = Vec::with_capacity(targets.len());
        for target in targets {
            let Some(connection) = self.connections.get_mut(&target) else { continue };
            let Some(json) = connection.registered().map(|member| member.json.clone()) else {
                continue;
            };
            if connection.queue.has_room(line.len(), self.queued) {
                self.queued += connection.queue.append(|bytes| bytes.extend_from_slice(&line));
                self.mark(target);
                delivered.push(json);
            }
        }
        self.audit.add(&routed.entry(to, "none"), |names| {
            for (at, json) in delivered.iter().enumerate() {
                if at > 0 {
                    names.push(b',');
                }
                names.extend_from_slice(json);
            }
        });
        line.clear();
        line.shrink_to(crate::mesh::broker::PIECE);
        self.scratch = line;
    }

    /// Acknowledges the messages to a connection that were written whole.
    pub(super) fn acknowledge_written(&mut self, key: u64) {
        while let Some(receipt) = self.connections.get_mut(&key).and_then(|found| found.queue.due())
        {
            self.decided(&receipt, "received", None);
        }
    }

    /// Acknowledges a message, and notes in the audit the status that its sender got.
    fn decided(&mut self, receipt: &Receipt, status: &'static str, reason: Option<&str>) {
        let Receipt { sender, message, line } = receipt;
        self.audit.acknowledged(*line, message, status);
        let sender_is_ours =
            |connection: &Connection| connection.registered().is_some_and(|member| member.ours);
        // A member of another program does not know the word `queued`. For it, the fate of the message is not known yet.
        let status = match status {
            "queued" if !self.connections.get(sender).is_some_and(sender_is_ours) => "timeout",
            status => status,
        };
        self.acknowledge(*sender, message.id, status, &message.to, reason);
    }

    /// Tells a sender what became of its message; `target` is JSON.
    pub(super) fn acknowledge(
        &mut self,
        key: u64,
        re: Id,
        status: &str,
        target: &[u8],
        reason: Option<&str>,
    ) {
        let mut body = std::mem::take(&mut self.scratch);
        body.extend_from_slice(br#"{"type":"ack","status":""#);
        body.extend_from_slice(status.as_bytes());
        body.extend_from_slice(br#"","target":"#);
        body.extend_from_slice(target);
        if let Some(reason) = reason {
            body.extend_from_slice(br#","reason":"#);
            body.extend_from_slice(&serde_json::to_vec(reason).expect("a sentence is text"));
        }
        body.push(b'}');
        // Members of releases after 0.4.2 take no other leader's word for an agent of another machine.
        match self.gateway.as_ref().and_then(|_| machine_of(target)) {
            Some(machine) => {
                let leader = format!("\"{machine}:{BROKER}\"");
                self.reply_as(leader.as_bytes(), key, Some(re), &body);
            }
            None => self.reply(key, Some(re), &body),
        }
        body.clear();
        self.scratch = body;
    }

    /// Ends a connection. What was not written to it is denied to members of yoi.
    pub(super) fn close(&mut self, key: u64) {
        let Some(mut connection) = self.connections.remove(&key) else { return };
        self.queued -= connection.queue.len();
        // Wakes the task that waits until this socket is ready; the task finds that the connection is gone.
        let _ = shutdown(&connection.stream, Shutdown::Both);
        self.forget_gateway(key);
        let undelivered = connection.queue.undelivered();
        let Stage::Member(member) = connection.stage else { return };
        for receipt in undelivered {
            self.fail(&receipt, "denied", "it left before the message was handed to it");
        }
        for receipt in connection.unconfirmed.into_values() {
            self.fail(&receipt, "timeout", "it left before it confirmed the message");
        }
        if !member.leaving {
            self.forget(key, &member.name, member.joined);
        }
    }

    /// As `decided`, for a message whose addressee has left. Members of other programs get no message about it.
    fn fail(&mut self, receipt: &Receipt, status: &'static str, reason: &str) {
        let sender = self.connections.get(&receipt.sender).and_then(|found| found.registered());
        if sender.is_some_and(|sender| sender.ours) {
            self.decided(receipt, status, Some(reason));
        } else {
            self.audit.acknowledged(receipt.line, &receipt.message, status);
        }
    }
}

/// The machine of an address such as `casa:reviewer`, which is JSON.
fn machine_of(target: &[u8]) -> Option<MachineName> {
    let target = std::str::from_utf8(target.strip_prefix(b"\"")?).ok()?;
    let (machine, _) = target.split_once(':')?;
    MachineName::parse(machine).ok()
}

/// The body of an acknowledgement, as a member reads it.
pub(crate) fn read_ack(body: &str) -> Option<Ack<'_>> {
    serde_json::from_str(body).ok().filter(|ack: &Ack<'_>| ack.kind == "ack")
}
