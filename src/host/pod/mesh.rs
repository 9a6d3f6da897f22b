//! Whether a Pod takes part in the mesh, and the tools that it has then.

use crate::host::mesh::membership;
use crate::host::pod::Pod;
use crate::protocol::AlertSource;
use crate::protocol::mesh::MeshStanding;
use crate::run::alert;
use crate::store::MailboxMessage;

impl Pod {
    /// Joins the mesh if a person had the Pod join, or else if the settings say so.
    pub(super) async fn join_mesh_if_wanted(&mut self) {
        let choice = match self.shared.store.mesh_choice(&self.row.name).await {
            Ok(choice) => choice,
            Err(error) => {
                let text = format!("it is not known whether this Pod joins the mesh: {error}");
                return self.publisher.publish(&alert(AlertSource::Pod, text));
            }
        };
        let own = self.row.parent.is_none() && !self.row.ephemeral;
        let settings = self.shared.settings.last().settings;
        if choice.unwrap_or_else(|| settings.mesh.joins(&self.row.name, own)) {
            self.join_mesh();
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
        }
    }
}
