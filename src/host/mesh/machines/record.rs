//! What becomes of messages between machines: the last ones that Pods of this host sent, for screens, and all of them in
//! the audit.

use crate::host::Shared;
use crate::host::mesh::machines::Machines;
use crate::mesh::machines::{Fate, MachineName, Message, Outcome, address};
use crate::mesh::{Audit, AuditEntry, Id, Socket};
use crate::protocol::mesh::{MachineMessage, MessageState};
use crate::protocol::{AgentOrigin, PodName, now_ms};
use crate::store::agent_key;
use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

/// Sent messages that are remembered for screens.
const REMEMBERED: usize = 100;
/// The most messages of which another machine does not know yet that they were read. Of more it learns nothing.
const UNTOLD: usize = 1000;

/// What is known of messages between machines since this host began.
#[derive(Default)]
pub(super) struct Record {
    /// The oldest first.
    sent: VecDeque<MachineMessage>,
    audit: Option<Audit>,
    /// Messages of other machines that the model of their Pod has got, and the machines that are to be told.
    read: VecDeque<(MachineName, Outcome)>,
}

impl Record {
    fn audit(&mut self, [from, to]: [&str; 2], of: &Outcome, status: &'static str) {
        let (Some(audit), Some(id)) = (&mut self.audit, Id::parse(&of.id)) else { return };
        let json = |text: &str| serde_json::Value::from(text).to_string().into_bytes();
        let (from, to, why) = (json(from), json(to), of.reason.as_deref().map(json));
        let entry = AuditEntry { from: &from, to: &to, id, re: None, status, why: why.as_deref() };
        let reached = status == "received" || status == "read";
        audit.add(&entry, |names| names.extend_from_slice(if reached { &to } else { b"" }));
        audit.look();
    }
}

impl Machines {
    fn record(&self) -> MutexGuard<'_, Record> {
        // Each step leaves it whole.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to write the audit.
    pub(super) fn begin_audit(&self, shared: &Shared) {
        let settings = shared.settings.last().settings;
        match Socket::find(&settings.mesh, &shared.dirs, &shared.env, |_| true) {
            Ok(socket) => {
                self.record().audit.get_or_insert_with(|| Audit::start(&socket.audit));
            }
            Err(error) => tracing::warn!("messages between machines are not audited: {error}"),
        }
    }

    /// Writes what is left of the audit. Blocking.
    pub(super) fn end_audit(&self) {
        let audit = self.record().audit.take();
        if let Some(audit) = audit {
            audit.close();
        }
    }

    /// The last messages that were sent, oldest first.
    pub(super) fn sent(&self) -> Vec<MachineMessage> {
        self.record().sent.iter().cloned().collect()
    }

    /// The server holds a message for another machine, of a Pod or of an agent that is none.
    pub(super) fn note_queued(
        &self,
        pod: Option<&PodName>,
        machine: &MachineName,
        message: &Message,
    ) {
        let to = format!("{machine}:{}", message.to);
        let (id, state, at) = (message.id.clone(), MessageState::Queued, now_ms());
        let mut record = self.record();
        let (from, agent) = (message.to.clone(), message.from.clone());
        let of = Outcome { id: id.clone(), to: agent, from, fate: Fate::Received, reason: None };
        record.audit([&message.from, &to], &of, "queued");
        // Screens are shown what Pods sent.
        let Some(pod) = pod else { return };
        if record.sent.len() >= REMEMBERED {
            record.sent.pop_front();
        }
        record.sent.push_back(MachineMessage { id, pod: pod.clone(), to, state, at });
        drop(record);
        // What watches the state shows it.
        self.state.send_modify(|_| ());
    }

    /// Notes what another machine says about a message that was sent to it, and returns whether that is new. A machine
    /// says it again if its first outcome was not acknowledged.
    pub(super) fn note_outcome(&self, from: &MachineName, outcome: &Outcome) -> bool {
        let state = match outcome.fate {
            Fate::Received => MessageState::Received,
            Fate::Denied => MessageState::Denied,
            Fate::Unknown => MessageState::Unknown,
            Fate::Read => MessageState::Read,
        };
        let mut record = self.record();
        let agent = format!("{from}:{}", outcome.from);
        record.audit([&outcome.to, &agent], outcome, word(outcome.fate));
        let is_its = |sent: &&mut MachineMessage| {
            sent.id == outcome.id && agent_key(&sent.to) == agent_key(&agent)
        };
        let sent = record.sent.iter_mut().rev().find(is_its);
        let is_new = sent.is_none_or(|sent| {
            let is_new = match (sent.state, state) {
                (was, MessageState::Unknown) => was == MessageState::Queued,
                (MessageState::Unknown, _) => true,
                (was, is) => was < is,
            };
            if is_new {
                (sent.state, sent.at) = (state, now_ms());
            }
            is_new
        });
        drop(record);
        // What watches the state shows it.
        self.state.send_modify(|_| ());
        is_new
    }

    /// What became here of a message of another machine.
    pub(super) fn note_taken(&self, from: &MachineName, outcome: &Outcome) {
        let sender = format!("{from}:{}", outcome.to);
        self.record().audit([&sender, &outcome.from], outcome, word(outcome.fate));
    }

    /// The model of a Pod has got a message of an agent; its machine is told if it is another one.
    pub(crate) fn note_read(&self, pod: &PodName, message: &AgentOrigin) {
        let Some((machine, agent)) = address(&message.name) else { return };
        if self.own().is_none() {
            return;
        }
        let (id, to, from) = (message.id.clone(), agent.to_owned(), pod.to_string());
        let mut record = self.record();
        if record.read.len() < UNTOLD {
            let outcome = Outcome { id, to, from, fate: Fate::Read, reason: None };
            record.read.push_back((machine, outcome));
        }
        drop(record);
        self.read.notify_one();
    }

    /// The next machine that is to be told that a message was read.
    pub(super) fn next_read(&self) -> Option<(MachineName, Outcome)> {
        self.record().read.pop_front()
    }
}

/// The word of the audit for what became of a message.
fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Received => "received",
        Fate::Denied => "denied",
        Fate::Unknown => "timeout",
        Fate::Read => "read",
    }
}
