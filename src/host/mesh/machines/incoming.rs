//! Messages of agents of other machines. They come into the mailbox on the path of every message of an agent, with the
//! same limits. Only then their sender's machine learns that they are received.

use crate::config::settings::Wake;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::Task;
use crate::host::mesh::membership;
use crate::mesh::machines::{Arrived, Fate, Link, MachineName, Message, Outcome, Peering, Receipt};
use crate::protocol::{AgentOrigin, PodName};
use crate::run::AgentMessage;
use crate::store::{MailboxKind, Offer, Offered, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime};

/// The reason why a message to a name that no agent has is denied.
pub(super) const NO_AGENT: &str = "no agent of this name takes messages of other machines";

/// A message with the machine that sent it.
struct Pending {
    from: MachineName,
    message: Message,
    receipt: Receipt,
}

impl Task {
    /// Takes what is due of the stream, in this order.
    ///
    /// # Errors
    /// The place of the first message that cannot be stored now. It comes again, with those that follow it.
    pub(super) async fn take_in_order(
        &self,
        link: &Link,
        due: Vec<(u64, Arrived)>,
    ) -> Result<(), u64> {
        let mut together = Vec::new();
        for (place, arrived) in due {
            match arrived {
                Arrived::Message { from, message, receipt } if message.peering.is_none() => {
                    together.push(Pending { from, message, receipt });
                    continue;
                }
                other => {
                    self.take_messages(link, std::mem::take(&mut together)).await?;
                    self.take_alone(link, other).await.map_err(|()| place)?;
                }
            }
        }
        self.take_messages(link, together).await
    }

    /// Takes what is no message of an agent.
    async fn take_alone(&self, link: &Link, arrived: Arrived) -> Result<(), ()> {
        match arrived {
            Arrived::Message { from, message, receipt } => {
                let Some(peering) = message.peering else { return Ok(()) };
                let taken = self.take_peering(&from, &message, peering, when(receipt.taken)).await;
                let reason = taken.map_err(|error| not_stored(&from, &error))?;
                match peering {
                    Peering { wants: false, .. } => link.acknowledge(receipt).await,
                    _ => self.decided(link, Pending { from, message, receipt }, reason).await,
                }
            }
            Arrived::Outcome { from, outcome, receipt } => {
                if self.machines().own().as_ref() == Some(&from) {
                    self.compare_clocks(link, &outcome, &receipt).await;
                } else {
                    let taken = self.take_outcome(&from, outcome).await;
                    taken.map_err(|error| not_stored(&from, &error))?;
                }
                link.acknowledge(receipt).await;
            }
            Arrived::Unreadable { from, receipt } => {
                tracing::warn!(%from, "another machine sent what is no message");
                link.acknowledge(receipt).await;
            }
            Arrived::Presence { .. } | Arrived::SameName => {}
        }
        Ok(())
    }

    /// Commits messages, those to one Pod together, and says what became of each.
    async fn take_messages(&self, link: &Link, messages: Vec<Pending>) -> Result<(), u64> {
        // By the Pod, with the numbers of the messages.
        let mut offers: BTreeMap<String, (PodName, Vec<usize>, Vec<Offer>)> = BTreeMap::new();
        let mut reasons: Vec<Result<Option<String>, ()>> = Vec::new();
        for (number, taken) in messages.iter().enumerate() {
            // What follows a message that cannot be offered must not come before it.
            let offered = match self.offer(taken).await {
                Ok(offered) => offered,
                Err(error) => {
                    not_stored(&taken.from, &error);
                    reasons.push(Err(()));
                    break;
                }
            };
            reasons.push(Ok(match offered {
                None => Some(NO_AGENT.to_owned()),
                Some((pod, offer)) => {
                    let of_pod = offers.entry(pod.key()).or_insert((pod, Vec::new(), Vec::new()));
                    of_pod.1.push(number);
                    of_pod.2.push(offer);
                    None
                }
            }));
        }
        for (pod, numbers, offers) in offers.into_values() {
            let counted: Vec<bool> = offers.iter().map(|offer| offer.refused.is_none()).collect();
            let outcomes = delivery::deliver(&self.shared, &pod, offers).await;
            let outcomes = outcomes.map_err(|error| {
                let from = numbers.iter().map(|number| &messages[*number].from);
                let from: BTreeSet<&MachineName> = from.collect();
                from.into_iter().for_each(|machine| not_stored(machine, &error));
            });
            for (at, number) in numbers.into_iter().enumerate() {
                let outcome = outcomes.as_ref().map(|all| all.get(at));
                if counted[at] && matches!(outcome, Err(()) | Ok(Some(Offered::Known))) {
                    // It comes again, or came before.
                    let Pending { from, message, .. } = &messages[number];
                    delivery::not_sent(&self.shared, &pod, &format!("{from}:{}", message.from));
                }
                reasons[number] = match outcome {
                    Ok(of) => Ok(of.and_then(|of| delivery::refusal(&self.shared, &pod, of))),
                    Err(()) => Err(()),
                };
            }
        }
        for (taken, reason) in messages.into_iter().zip(reasons) {
            let reason = reason.map_err(|()| taken.receipt.place)?;
            self.decided(link, taken, reason).await;
        }
        Ok(())
    }

    /// Says what became of a message.
    async fn decided(&self, link: &Link, taken: Pending, reason: Option<String>) {
        let Pending { from, message, receipt } = taken;
        let fate = if reason.is_some() { Fate::Denied } else { Fate::Received };
        let Message { id, from: sender, to: pod, .. } = message;
        let outcome = Outcome { id, to: sender, from: pod, fate, reason };
        self.machines().note_taken(&from, &outcome);
        link.decided(&from, &outcome, receipt).await;
    }

    /// A message as it is offered to the mailbox of its Pod; `None`: no Pod takes it.
    async fn offer(&self, taken: &Pending) -> Result<Option<(PodName, Offer)>, StoreError> {
        let (shared, message) = (&self.shared, &taken.message);
        let Some(name) = self.addressee(message).await? else { return Ok(None) };
        let sender = format!("{}:{}", taken.from, message.from);
        let body = message.body.get().to_owned();
        let at = when(taken.receipt.taken);
        let strangers = shared.settings.last().settings.mesh.wake.contains(&Wake::Strangers);
        let wakes = strangers || shared.store.are_machine_peers(&name, &sender).await?;
        // It counts the message, so no step that follows it fails.
        let refused = delivery::refused(shared, &name, &sender, body.len(), at);
        let (id, re) = (message.id.clone(), message.re.clone());
        let from = AgentOrigin { name: sender, id, re, pod: false };
        let message = AgentMessage { from, body, wakes };
        let mut offer = delivery::offer(message.row(), MailboxKind::Agent, message.payload());
        offer.refused = refused;
        if offer.refused.is_some() {
            // Not stored, so it need not be held.
            offer.message.payload = serde_json::Value::Null;
        }
        Ok(Some((name, offer)))
    }

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

fn not_stored(from: &MachineName, error: &StoreError) {
    tracing::warn!("a message of the machine {from} cannot be stored now: {error}");
}

/// The time of a message for its sender's rate: when the server took it, so that what waited for a machine that was
/// away does not count as sent at once.
fn when(taken: SystemTime) -> Instant {
    let age = SystemTime::now().duration_since(taken).unwrap_or_default();
    let now = Instant::now();
    now.checked_sub(age).unwrap_or(now)
}
