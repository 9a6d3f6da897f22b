//! The messages of other Pods of this host that wait in the mailbox: a screen shows their senders what was read.

use crate::host::pod::Pod;
use crate::protocol::{AgentOrigin, Entry, Fact, NotificationSource, SystemItem};
use crate::store::{MailboxKind, MailboxMessage};
use serde::Deserialize as _;
use serde_json::Value;

/// The ids of the messages of other Pods of this host among the rows of a mailbox.
pub(crate) fn waiting(rows: &[MailboxMessage]) -> Vec<String> {
    rows.iter().filter_map(id).collect()
}

/// The id of the message in a row; `None` if no Pod of this host sent it.
fn id(row: &MailboxMessage) -> Option<String> {
    let from = &row.payload["from"];
    let from = match row.kind {
        // A message from outside this host: these come by thousands.
        MailboxKind::Agent if from["pod"] != Value::Bool(true) => return None,
        MailboxKind::Agent => NotificationSource::Agent(AgentOrigin::deserialize(from).ok()?),
        MailboxKind::Notify => Option::<NotificationSource>::deserialize(from).ok()??,
        MailboxKind::Input | MailboxKind::PodEvent => return None,
    };
    of(&from, &row.id).map(str::to_owned)
}

fn of<'a>(from: &'a NotificationSource, row: &'a str) -> Option<&'a str> {
    match from {
        NotificationSource::Peer(_) => Some(row),
        NotificationSource::Agent(agent) => agent.pod.then_some(agent.id.as_str()),
        NotificationSource::WaitingChild(_)
        | NotificationSource::Person(_)
        | NotificationSource::Unknown(_) => None,
    }
}

impl Pod {
    /// Shows that messages wait, unless the history holds them already.
    pub(super) fn show_waiting(&mut self, messages: &[MailboxMessage]) {
        let new = messages.iter().filter(|message| !self.phase.has_taken(&message.id));
        let new: Vec<String> = new.filter_map(id).collect();
        if !new.is_empty() {
            self.change(|info| {
                for id in new {
                    if !info.waiting.contains(&id) {
                        info.waiting.push(id);
                    }
                }
            });
        }
    }

    /// Shows that the history holds messages now.
    pub(super) fn note_read(&mut self, entries: &[Entry]) {
        let mut read: Vec<&str> = Vec::new();
        for entry in entries {
            if let Fact::SystemItem { item, taken: Some(row) } = &entry.fact
                && let SystemItem::Notification { from: Some(from), .. } = item
            {
                if let Some(run) = self.phase.run_mut() {
                    run.taken.insert(row.clone());
                }
                if let NotificationSource::Agent(agent) = from {
                    self.shared.mesh.machines.note_read(&self.row.name, agent);
                }
                read.extend(of(from, row));
            }
        }
        if !read.is_empty() {
            self.change(|info| info.waiting.retain(|id| !read.contains(&id.as_str())));
        }
    }
}
