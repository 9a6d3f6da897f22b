//! Messages of agents of other machines. They come into the mailbox on the path of every message of an agent, with the
//! same limits. Only then their sender's machine learns that they are received.

use crate::config::settings::Wake;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::{Task, gateway};
use crate::host::mesh::membership;
use crate::mesh::machines::{Arrived, Fate, Link, MachineName, Message, Outcome, Peering, Receipt};
use crate::protocol::{AgentOrigin, PodName};
use crate::run::AgentMessage;
use crate::store::{MailboxKind, Offer, Offered, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc::error::TrySendError;

/// The reason why a message to a name that no agent has is denied.
pub(super) const NO_AGENT: &str = "no agent of this name takes messages of other machines";

/// A message with the machine that sent it.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) from: MachineName,
    pub(super) message: Message,
    pub(super) receipt: Receipt,
}

impl Pending {
    /// The agent that sent it, with its machine.
    pub(super) fn sender(&self) -> String {
        format!("{}:{}", self.from, self.message.from)
    }
}

/// What is done with a message.
enum Done {
    /// It is in the mailbox of a Pod, or not taken for this reason.
    Decided(Option<String>),
    /// It cannot be stored now.
    Failed,
    /// No Pod takes it; an agent that is none may.
    ForAgent,
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
        let mut all_done: Vec<Done> = Vec::new();
        for (number, taken) in messages.iter().enumerate() {
            // What follows a message that cannot be offered must not come before it.
            let offered = match self.offer(taken).await {
                Ok(offered) => offered,
                Err(error) => {
                    not_stored(&taken.from, &error);
                    all_done.push(Done::Failed);
                    break;
                }
            };
            all_done.push(match offered {
                None => Done::ForAgent,
                Some((pod, offer)) => {
                    let of_pod = offers.entry(pod.key()).or_insert((pod, Vec::new(), Vec::new()));
                    of_pod.1.push(number);
                    of_pod.2.push(offer);
                    Done::Decided(None)
                }
            });
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
                    delivery::not_sent(&self.shared, &pod, &messages[number].sender());
                }
                all_done[number] = match outcome {
                    Ok(of) => {
                        Done::Decided(of.and_then(|of| delivery::refusal(&self.shared, &pod, of)))
                    }
                    Err(()) => Done::Failed,
                };
            }
        }
        for (taken, done) in messages.into_iter().zip(all_done) {
            let (from, place) = (taken.from.clone(), taken.receipt.place);
            match done {
                Done::Decided(reason) => self.decided(link, taken, reason).await,
                Done::Failed => return Err(place),
                Done::ForAgent => self.give_to_agent(link, taken).await.map_err(|error| {
                    not_stored(&from, &error);
                    place
                })?,
            }
        }
        Ok(())
    }

    /// Hands a message over for an agent of this machine that is no Pod, once: up to where the stream was taken is stored
    /// before, so of a message that comes again after that it is not known whether the agent has it.
    async fn give_to_agent(&self, link: &Link, taken: Pending) -> Result<(), StoreError> {
        let (shared, place, to) = (&self.shared, taken.receipt.place, taken.message.to.clone());
        // Whoever has the name of a Pod that is not on the mesh is not that Pod.
        let is_pod = PodName::parse(&to).is_ok_and(|pod| shared.any_pod(&pod).is_some());
        if !is_pod && taken.receipt.is_repeated && shared.store.taken_of_stream().await? >= place {
            let why = "the connection was lost, or the host there ended, at that moment".to_owned();
            self.settled(link, taken, Fate::Unknown, Some(why)).await;
            return Ok(());
        }
        let gateway = self.machines().gateway().clone().filter(|_| !is_pod);
        let sender = taken.sender();
        let denied = match gateway {
            None => (taken, NO_AGENT.to_owned()),
            Some(_) if shared.mesh.is_blocked(&sender) => {
                let why = format!("the person of `{to}` has blocked `{sender}`");
                (taken, why)
            }
            Some(gateway) => {
                shared.store.note_taken_of_stream(place).await?;
                match gateway.try_send(taken) {
                    Ok(()) => return Ok(()),
                    Err(TrySendError::Closed(taken)) => (taken, NO_AGENT.to_owned()),
                    Err(TrySendError::Full(taken)) => (taken, gateway::BUSY.to_owned()),
                }
            }
        };
        self.decided(link, denied.0, Some(denied.1)).await;
        Ok(())
    }

    /// Says that a message is in the mailbox, or why it was not taken.
    async fn decided(&self, link: &Link, taken: Pending, reason: Option<String>) {
        let fate = if reason.is_some() { Fate::Denied } else { Fate::Received };
        self.settled(link, taken, fate, reason).await;
    }

    /// Says what became of a message.
    pub(super) async fn settled(
        &self,
        link: &Link,
        taken: Pending,
        fate: Fate,
        reason: Option<String>,
    ) {
        let Pending { from, message, receipt } = taken;
        let Message { id, from: sender, to: pod, .. } = message;
        let outcome = Outcome { id, to: sender, from: pod, fate, reason };
        self.machines().note_taken(&from, &outcome);
        link.decided(&from, &outcome, receipt).await;
    }

    /// A message as it is offered to the mailbox of its Pod; `None`: no Pod takes it.
    async fn offer(&self, taken: &Pending) -> Result<Option<(PodName, Offer)>, StoreError> {
        let (shared, message) = (&self.shared, &taken.message);
        let Some(name) = self.addressee(message).await? else { return Ok(None) };
        let sender = taken.sender();
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
pub(super) fn when(taken: SystemTime) -> Instant {
    let age = SystemTime::now().duration_since(taken).unwrap_or_default();
    let now = Instant::now();
    now.checked_sub(age).unwrap_or(now)
}
