//! A message of a Pod to an agent of another machine. The server holds it from the moment at which it is `queued`; it is
//! `received` when the other host said that it committed it.

use crate::host::mesh::delivery;
use crate::host::mesh::machines::Task;
use crate::host::pod::Fact;
use crate::mesh::machines::{Fate, Link, MachineName, Message, NotStored, Outcome, Peering};
use crate::mesh::{Id, Status};
use crate::protocol::PodName;
use crate::run::Notification;
use crate::store::StoreError;
use crate::text::SafeText;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the outcome is waited for where the other machine is present.
const OUTCOME: Duration = Duration::from_secs(5);
/// The most messages whose late outcome is told to the Pod that sent them. Of more only the first of a minute is.
const MOST_WAITING: usize = 10_000;
/// How long a Pod may take to note an outcome before the next message is taken.
const NOTED: Duration = Duration::from_secs(1);

/// The machine of the addressee of a message, its sender, its addressee there, and its id.
pub(super) type Key = (MachineName, String, String, String);

/// A message on its way.
pub(super) struct Waiting {
    /// The Pod that sent it; `None`: an agent that is no Pod did.
    pub(super) pod: Option<PodName>,
    done: Option<oneshot::Sender<Outcome>>,
}

/// A message to be sent.
pub(crate) struct Sending<'a> {
    pub(crate) pod: &'a PodName,
    pub(crate) machine: MachineName,
    pub(crate) agent: &'a str,
    pub(crate) id: Id,
    pub(crate) re: Option<Id>,
    pub(crate) body: &'a RawValue,
    /// What this host itself says with it.
    pub(crate) peering: Option<Peering>,
}

/// What became of a message, with the reason as a sentence.
pub(crate) type Stored = (Status, Option<String>);

impl crate::host::Shared {
    /// Sends a message, and waits for what becomes of it if the other machine is present and `waits` says so.
    pub(crate) async fn send_to_machine(&self, sending: Sending<'_>, waits: bool) -> Stored {
        let machines = &self.mesh.machines;
        let state = machines.connected_soon().await;
        let Some(link) = state.link.clone() else {
            return (Status::Refused, Some(state.unreachable()));
        };
        let Sending { pod, machine, agent, id, re, body, peering } = sending;
        let message = Message {
            from: pod.to_string(),
            to: agent.to_owned(),
            id: id.to_string(),
            re: re.map(|re| re.to_string()),
            body: body.to_owned(),
            peering,
        };
        let wait = waits.then_some(OUTCOME);
        self.send_over(&link, &machine, message, Some(pod), wait).await
    }

    /// Sends a message of a Pod or of an agent that is none, and waits so long for what becomes of it if the other machine is
    /// present. The late outcome of a message of a Pod is still known.
    pub(super) async fn send_over(
        &self,
        link: &Link,
        machine: &MachineName,
        message: Message,
        pod: Option<&PodName>,
        wait: Option<Duration>,
    ) -> Stored {
        let machines = &self.mesh.machines;
        let (done, outcome) = oneshot::channel();
        let waiting = Waiting { pod: pod.cloned(), done: Some(done) };
        let Message { from, to, id, .. } = &message;
        let key = (machine.clone(), from.clone(), to.clone(), id.clone());
        if pod.is_none() || machines.waiting().len() < MOST_WAITING {
            machines.waiting().insert(key.clone(), waiting);
        }
        let is_of_agent = message.peering.is_none();
        if let Err(error) = link.send(machine, &message).await {
            machines.waiting().remove(&key);
            let status = match error {
                NotStored::TooLarge(..) | NotStored::Refused(_) | NotStored::Full(_) => {
                    Status::Refused
                }
                NotStored::NoSuchMachine(_) => Status::Denied,
                NotStored::Silent | NotStored::Unknown => Status::Timeout,
            };
            return (status, Some(error.to_string()));
        }
        if is_of_agent {
            machines.note_queued(pod, machine, &message);
        }
        let is_present = machines.knows(machine.as_str());
        let outcome = match wait {
            Some(wait) if is_present => tokio::time::timeout(wait, outcome).await.ok(),
            Some(_) | None => None,
        };
        if pod.is_none() {
            machines.waiting().remove(&key);
        }
        if wait.is_none() {
            return (Status::Queued, None);
        }
        if let Some(Ok(outcome)) = outcome {
            return (status(outcome.fate), outcome.reason);
        }
        let away = if is_present { "has not taken it yet" } else { "is away" };
        let reason = format!("{machine} {away}; the server holds the message for it");
        (Status::Queued, Some(reason))
    }
}

fn status(fate: Fate) -> Status {
    match fate {
        Fate::Received | Fate::Read => Status::Received,
        Fate::Denied => Status::Denied,
        Fate::Unknown => Status::Timeout,
    }
}

impl Task {
    /// Hands an outcome to the call that waits for it; a late one is told to the Pod that sent the message. After an error
    /// the outcome must not be acknowledged, so that it comes again.
    pub(super) async fn take_outcome(
        &self,
        from: &MachineName,
        outcome: Outcome,
    ) -> Result<(), StoreError> {
        let note = || self.machines().note_outcome(from, &outcome);
        if outcome.fate == Fate::Read {
            note();
            return Ok(());
        }
        let waiting = {
            let Outcome { id, to: sender, from: agent, .. } = &outcome;
            let key = (from.clone(), sender.clone(), agent.clone(), id.clone());
            self.machines().waiting().remove(&key)
        };
        let is_known = waiting.is_some();
        let (pod, done) = match waiting {
            Some(Waiting { pod, done }) => (pod, done),
            // This host was started anew since, or the outcome is invented.
            None => (PodName::parse(&outcome.to).ok(), None),
        };
        let mut noted = None;
        if let Some(done) = done.filter(|done| !done.is_closed()) {
            noted = Some(note());
            if done.send(outcome.clone()).is_ok() {
                return Ok(());
            }
        }
        let pod = pod.and_then(|pod| self.shared.pod(&pod));
        let denied =
            (outcome.fate == Fate::Denied).then(|| outcome.reason.as_deref().unwrap_or_default());
        let was_request = match &pod {
            Some(pod) => self.took_request(&pod.name, from, &outcome.id, denied).await?,
            None => false,
        };
        // Not before this: after an error the outcome comes again, and is still new then.
        let is_new = noted.unwrap_or_else(note);
        let Some(pod) = pod.filter(|_| is_new && !was_request) else { return Ok(()) };
        let agent = format!("{from}:{}", outcome.from);
        if !is_known
            && delivery::denials_are_over_rate(&self.shared, &pod.name, &format!("{from}:"))
        {
            return Ok(());
        }
        // The outcome is acknowledged when the log of the Pod has it, or after a moment if the Pod is busy.
        let _ = tokio::time::timeout(NOTED, pod.tell(self.late_outcome(&agent, outcome))).await;
        Ok(())
    }

    /// What the sender of a message is told when it does not wait for the outcome any more.
    fn late_outcome(&self, agent: &str, outcome: Outcome) -> Fact {
        let named = SafeText::quoted(agent).into_string();
        match outcome.fate {
            Fate::Received | Fate::Read => {
                let text = format!("{named} received the message {}, which was queued", outcome.id);
                Fact::Noted(Notification { message: format!("[agent-network] {text}"), from: None })
            }
            Fate::Unknown => {
                let why = SafeText::line(outcome.reason.unwrap_or_default());
                let text =
                    format!("whether {named} got the message {} is not known: {why}", outcome.id);
                Fact::Noted(Notification { message: format!("[agent-network] {text}"), from: None })
            }
            Fate::Denied => {
                let why = outcome.reason.unwrap_or_default();
                let why = SafeText::line(why);
                let text = format!("{named} did not take the message {}: {why}", outcome.id);
                match self.shared.mesh.is_blocked(agent) {
                    true => Fact::Notice(text),
                    false => Fact::AgentRefused(text),
                }
            }
        }
    }
}
