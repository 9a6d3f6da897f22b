//! A message of an agent of another machine. It comes into the mailbox on the path of every message of an agent, with
//! the same limits. Only then its sender's machine learns that it is received.

use crate::config::settings::Wake;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::Task;
use crate::host::mesh::membership;
use crate::mesh::machines::{Fate, Link, MachineName, Message, Outcome, Peering, Receipt};
use crate::protocol::{AgentOrigin, PodName};
use crate::run::AgentMessage;
use crate::store::{MailboxKind, StoreError};
use std::time::{Instant, SystemTime};

/// The reason why a message to a name that no agent has is denied.
pub(super) const NO_AGENT: &str = "no agent of this name takes messages of other machines";

impl Task {
    /// Commits a message, and says what became of it. One that cannot be stored now comes again.
    pub(super) async fn take_message(
        &self,
        link: &Link,
        from: MachineName,
        message: Message,
        receipt: Receipt,
    ) {
        let (id, pod, sender) = (message.id.clone(), message.to.clone(), message.from.clone());
        let peering = message.peering;
        let taken = match peering {
            Some(peering) => self.take_peering(&from, &message, peering, when(receipt.taken)).await,
            None => self.commit(&from, message, receipt.taken).await,
        };
        let reason = match taken {
            Ok(reason) => reason,
            Err(error) => {
                tracing::warn!(%from, "a message of another machine cannot be stored now: {error}");
                return;
            }
        };
        if matches!(peering, Some(Peering { wants: false, .. })) {
            return link.acknowledge(receipt).await;
        }
        let fate = if reason.is_some() { Fate::Denied } else { Fate::Received };
        let outcome = Outcome { id, to: sender, from: pod, fate, reason };
        link.decided(&from, &outcome, receipt).await;
    }

    /// Commits a message to the mailbox of its Pod. The reason if it was not taken.
    async fn commit(
        &self,
        from: &MachineName,
        message: Message,
        taken: SystemTime,
    ) -> Result<Option<String>, StoreError> {
        let shared = &self.shared;
        let Some(name) = self.addressee(&message).await? else {
            return Ok(Some(NO_AGENT.to_owned()));
        };
        let sender = format!("{from}:{}", message.from);
        let body = message.body.get().to_owned();
        let refused = delivery::refused(shared, &name, &sender, body.len(), when(taken));
        let from = AgentOrigin { name: sender, id: message.id, re: message.re, pod: false };
        let strangers = shared.settings.last().settings.mesh.wake.contains(&Wake::Strangers);
        let wakes = strangers || shared.store.are_machine_peers(&name, &from.name).await?;
        let message = AgentMessage { from, body, wakes };
        let mut offer = delivery::offer(message.row(), MailboxKind::Agent, message.payload());
        offer.refused = refused;
        let outcomes = delivery::deliver(shared, &name, vec![offer]).await?;
        Ok(outcomes.first().and_then(|outcome| delivery::refusal(shared, &name, outcome)))
    }
}

impl Task {
    /// The Pod that takes a message, if it takes part in the mesh.
    pub(super) async fn addressee(&self, message: &Message) -> Result<Option<PodName>, StoreError> {
        let pod = PodName::parse(&message.to).ok().and_then(|pod| self.shared.pod(&pod));
        let Some(pod) = pod else { return Ok(None) };
        let info = pod.info.borrow().clone();
        let is_own = info.parent.is_none() && !info.ephemeral;
        let is_wanted = membership::is_wanted(&self.shared, &pod.name, is_own).await?;
        Ok(is_wanted.then_some(pod.name))
    }
}

/// The time of a message for its sender's rate: when the server took it, so that what waited for a machine that was
/// away does not count as sent at once.
fn when(taken: SystemTime) -> Instant {
    let age = SystemTime::now().duration_since(taken).unwrap_or_default();
    let now = Instant::now();
    now.checked_sub(age).unwrap_or(now)
}
