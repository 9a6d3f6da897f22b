//! Whether a Pod takes part in the mesh, and the tools that it has then.

use crate::host::mesh::membership;
use crate::host::pod::Pod;
use crate::protocol::entry::Fact as LogFact;
use crate::protocol::mesh::MeshStanding;
use crate::protocol::{AlertSource, Entry, State};
use crate::run::{Notification, alert};
use crate::store::{MailboxKind, MailboxMessage};
use std::time::Duration;
use tokio::time::Instant;

/// How long messages come together before they are shown as waiting: that reads all that wait.
const SHOWN_TOGETHER: Duration = Duration::from_millis(100);

impl Pod {
    /// Joins the mesh if a person had the Pod join, or else if the settings say so.
    pub(super) async fn join_mesh_if_wanted(&mut self) {
        let own = self.row.parent.is_none() && !self.row.ephemeral;
        match membership::is_wanted(&self.shared, &self.row.name, own).await {
            Ok(true) => self.join_mesh(),
            Ok(false) => {}
            Err(error) => {
                let text = format!("it is not known whether this Pod joins the mesh: {error}");
                self.publisher.publish(&alert(AlertSource::Pod, text));
            }
        }
    }

    pub(super) fn mesh_chosen(&mut self, joined: bool) {
        if !joined {
            self.leave_mesh();
        } else if self.is_live() {
            self.join_mesh();
        }
    }

    fn join_mesh(&mut self) {
        if self.mesh.is_none() {
            self.mesh = Some(membership::start(&self.shared, self.row.name.clone()));
            self.change(|info| info.mesh = Some(MeshStanding::default()));
            self.choose_tools();
        }
    }

    /// Leaves the mesh: its leader denies messages to the Pod from now on.
    pub(super) fn leave_mesh(&mut self) {
        if self.mesh.take().is_some() {
            self.change(|info| info.mesh = None);
            self.choose_tools();
        }
    }

    pub(super) fn show_mesh(&mut self, standing: MeshStanding) {
        if self.mesh.is_some() {
            self.change(|info| info.mesh = Some(standing));
        }
    }

    /// Says and notes that a message to the Pod was not taken.
    pub(super) async fn agent_refused(&mut self, text: String) {
        self.publisher.publish(&alert(AlertSource::Pod, text.clone()));
        self.note(Notification { message: format!("[agent-network] {text}"), from: None }).await;
    }

    /// Notes in the log what happened to a message of the mesh, so that screens and the model know of it. A run
    /// writes it before its next request; a Pod that cannot be written now takes it with its next run.
    pub(super) async fn note(&mut self, message: Notification) {
        let payload = message.payload();
        if self.info.borrow().state == State::Idle && self.row.segment.is_some() {
            let item = message.item();
            let entry = Entry::new(LogFact::SystemItem { item, taken: None });
            match self.write_log(vec![entry]).await {
                Ok(()) => return,
                Err(refusal) => {
                    tracing::warn!("what happened to a message was not noted at once: {refusal}")
                }
            }
        }
        match self.put(MailboxKind::Notify, payload).await {
            Ok(row) => self.hand_over(row),
            Err(refusal) => tracing::warn!("what happened to a message was not noted: {refusal}"),
        }
    }

    /// Gives the Pod the tools that it has now.
    pub(super) fn choose_tools(&mut self) {
        let tools = self.shared.tools.borrow().clone();
        let tools = if self.mesh.is_some() { tools.with_mesh() } else { tools };
        self.tool_set.send_replace(tools);
    }

    /// Messages of agents or peers that are in the mailbox already: a run takes them before its next request, an
    /// idle Pod wakes if one of them says so, every other Pod takes them with its next run.
    pub(super) async fn delivered(&mut self, messages: Vec<MailboxMessage>) {
        self.show_waiting(&messages);
        if self.must_be_live().is_err() {
            return;
        }
        let wakes = messages.iter().any(MailboxMessage::wakes);
        for message in messages {
            self.hand_over(message);
        }
        if wakes {
            self.wake().await;
        } else {
            self.waiting_shown_at.get_or_insert_with(|| Instant::now() + SHOWN_TOGETHER);
        }
    }
}
