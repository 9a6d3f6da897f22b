//! The way to other machines. One connection, the gateway, takes what is addressed to agents of other machines, and brings
//! what those answer in their names. It is no member: no message can be addressed to it, and it hears of no other one.

use crate::mesh::broker::connection::{Registered, Stage};
use crate::mesh::broker::routing::Routed;
use crate::mesh::broker::{Broker, MAX_MEMBERS};
use crate::mesh::envelope::{
    Addressed, Elsewhere, Envelope, OURS, Ours, RegisterAck, Text, json_line,
};
use crate::mesh::id::Id;
use crate::mesh::machines::address;
use crate::mesh::name::{BROADCAST, GATEWAY, is_broker};
use crate::text::SafeText;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

pub(super) struct Gateway {
    key: u64,
    /// The agents of other machines that members are shown.
    agents: Vec<String>,
}

impl Gateway {
    pub(super) fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(String::as_str)
    }
}

impl Broker {
    /// Takes a connection as the gateway if there is none.
    pub(super) fn register_gateway(&mut self, key: u64) -> ControlFlow<()> {
        let (None, Some(connection)) = (&self.gateway, self.connections.get_mut(&key)) else {
            return Break(());
        };
        let ack = json_line(&RegisterAck {
            kind: "register_ack".into(),
            address_assigned: None,
            name_assigned: GATEWAY.into(),
            yoi: Some(Ours { version: OURS, confirms: false }),
        });
        let json = serde_json::to_vec(GATEWAY).expect("a name is text").into();
        let (name, ours, confirms) = (GATEWAY.into(), true, true);
        let registered = Registered { name, json, ours, confirms, joined: 0, leaving: true };
        connection.stage = Stage::Member(registered);
        self.queued += connection.queue.reply(|bytes| bytes.extend_from_slice(&ack));
        self.mark(key);
        self.gateway = Some(Gateway { key, agents: Vec::new() });
        Continue(())
    }

    pub(super) fn is_gateway(&self, key: u64) -> bool {
        self.gateway.as_ref().is_some_and(|gateway| gateway.key == key)
    }

    /// The gateway, for messages of anyone else.
    pub(super) fn gateway_for(&self, sender: u64) -> Option<u64> {
        self.gateway.as_ref().map(|gateway| gateway.key).filter(|key| *key != sender)
    }

    /// The gateway, if one of these is a name of another machine.
    pub(super) fn gateway_to(&self, names: &[Text<'_>]) -> Option<u64> {
        let is_elsewhere = names.iter().any(|name| address(&name.0).is_some());
        self.gateway.as_ref().map(|gateway| gateway.key).filter(|_| is_elsewhere)
    }

    /// Whether a message is denied because the name of its sender looks like one of another machine.
    pub(super) fn refuses_sender(&mut self, routed: &Routed<'_>, to: &Addressed<'_>) -> bool {
        if self.gateway.is_none() || address(routed.name).is_none() {
            return false;
        }
        let json = match to {
            Addressed::One(to) => serde_json::to_vec(to),
            Addressed::Many(names) => serde_json::to_vec(names),
        };
        let json = json.expect("names are text");
        self.audit.add(&routed.entry(&json, "denied"), |_| {});
        // A message to several members is not acknowledged.
        if let Addressed::One(to) = to
            && to != BROADCAST
        {
            let reason = format!(
                "{} looks like an agent of another machine, and is one of this machine's; join under another name",
                SafeText::quoted(routed.name)
            );
            self.acknowledge(routed.sender, routed.id, "denied", &json, Some(&reason));
        }
        true
    }

    /// Notes which agents of other machines the gateway reaches.
    pub(super) fn reaches(&mut self, key: u64, body: &str) {
        let Some(gateway) = self.gateway.as_mut().filter(|gateway| gateway.key == key) else {
            return;
        };
        let Ok(Elsewhere { mut agents, .. }) = serde_json::from_str(body) else { return };
        agents.retain(|name| is_address(name));
        agents.truncate(MAX_MEMBERS);
        gateway.agents = agents;
    }

    /// Delivers a message of an agent of another machine to a member of this one.
    pub(super) fn of_gateway(&mut self, key: u64, envelope: &Envelope<'_>, id: Id, re: Option<Id>) {
        let Addressed::One(to) = &envelope.to else { return };
        if !is_address(&envelope.from) {
            let target = serde_json::to_vec(to).expect("a name is text");
            let reason = Some("the sender is no agent of another machine");
            return self.acknowledge(key, id, "denied", &target, reason);
        }
        let from: Arc<[u8]> = serde_json::to_vec(&envelope.from).expect("a name is text").into();
        let (name, body, again) = (&*envelope.from, envelope.body, envelope.again);
        let routed = Routed { sender: key, ours: true, name, from: &from, id, re, body, again };
        self.deliver_to_one(&routed, to);
    }

    /// Notes that the gateway is gone, if it was this connection.
    pub(super) fn forget_gateway(&mut self, key: u64) {
        self.gateway.take_if(|gateway| gateway.key == key);
    }
}

/// Whether a name is one of another machine that no member takes for its leader.
fn is_address(name: &str) -> bool {
    address(name).is_some() && !is_broker(name)
}
