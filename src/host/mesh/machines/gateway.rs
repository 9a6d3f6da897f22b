//! Agents of this machine that are no Pods, and Pods of other machines. Through the gateway these agents write to
//! `casa:bob`, and get what `casa:bob` writes to them after that; to an agent that never wrote to it, it cannot write. An
//! agent has no mailbox, so a message is given to it while it is there, or denied.

use crate::backoff::Backoff;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::incoming::{NO_AGENT, Pending, when};
use crate::host::mesh::machines::outgoing::Stored;
use crate::host::mesh::machines::{FIRST_PAUSE, LONGEST_PAUSE, Machines, Named, Task};
use crate::host::mesh::membership;
use crate::mesh::machines::{Fate, Link, MachineName, Message, address};
use crate::mesh::{self, Id, Inbox, MAX_MEMBERS, Member, Options, Received, Status, To};
use crate::protocol::PodName;
use crate::store::agent_key;
use crate::text::SafeText;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// How long the outcome of a message of an agent is waited for: shorter than a client of remote-pi waits.
const OUTCOME: Duration = Duration::from_secs(3);
/// How long an agent may take to take a message: shorter than the server waits until it repeats one.
const TAKEN: Duration = Duration::from_secs(4);
/// Messages of agents whose outcome is waited for, in all and of one agent.
const SENT: usize = 64;
const SENT_OF_ONE: usize = 8;
/// Messages to agents that are not taken yet: in all, of one machine and to one agent. The server hands over no more than 32
/// messages before one is decided, and these must not hold back those to Pods.
const GIVEN: usize = 8;
const GIVEN_OF_ONE: usize = 4;
const GIVEN_TO_ONE: usize = 2;
/// Addresses to which agents have written: in all and of one agent. The oldest are forgotten.
const WRITTEN: usize = 2048;
const WRITTEN_OF_ONE: usize = 32;

pub(super) const BUSY: &str =
    "too many messages wait there for agents that are no Pods; try again when some are taken";

impl Machines {
    pub(super) fn gateway(&self) -> MutexGuard<'_, Option<mpsc::Sender<Pending>>> {
        // Each step leaves it whole.
        self.gateway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What agents sent that are no Pods is not waited for any more.
    fn forget_outcomes_of_agents(&self) {
        self.waiting().retain(|_, sent| sent.pod.is_some());
    }

    /// The Pods of other machines that agents are shown, as many of each machine.
    fn shown(&self) -> Vec<String> {
        let state = self.state.borrow();
        let each = MAX_MEMBERS / state.present.len().max(1);
        let of_one = |(machine, agents): (&MachineName, &[String])| {
            // Another machine names its Pods as it likes.
            let pods = agents.iter().filter(|agent| PodName::parse(agent).is_ok());
            pods.take(each).map(|pod| format!("{machine}:{pod}")).collect::<Vec<_>>()
        };
        let present = state.present.iter();
        present.flat_map(|(machine, present)| of_one((machine, &present.agents))).collect()
    }
}

impl Task {
    /// Keeps the gateway while this machine has joined others and a Pod of it is on the mesh.
    pub(super) async fn keep_gateway(&self) {
        let machines = self.machines();
        let (mut state, mut seats) =
            (machines.state.subscribe(), self.shared.mesh.seats.subscribe());
        let wanted = || {
            let own = machines.state.borrow().own.clone();
            own.filter(|_| !self.shared.mesh.seats.borrow().is_empty())
        };
        loop {
            let own = wanted();
            let changed = async {
                while wanted() == own {
                    // Both senders live as long as this host.
                    let _ = tokio::select! {
                        changed = state.changed() => changed,
                        changed = seats.changed() => changed,
                    };
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.keep_registered(), if own.is_some() => {}
            }
            machines.forget_outcomes_of_agents();
        }
    }

    /// Registers whenever the leader is new or has no gateway. It never ends by itself.
    async fn keep_registered(&self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut written = VecDeque::new();
        loop {
            match membership::join(&self.shared, Options::gateway).await {
                Ok((member, inbox)) => {
                    backoff.reset();
                    let (sent, turns) = (Vec::new(), Vec::new());
                    let written = &mut written;
                    Gateway { task: self, written, sent, turns }.serve(&member, inbox).await;
                    self.machines().forget_outcomes_of_agents();
                }
                Err(why) => tracing::debug!("agents of this machine reach no others: {why}"),
            }
            sleep(backoff.pause()).await;
        }
    }
}

/// A message that is to be given to an agent.
#[derive(Clone, PartialEq)]
struct Turn {
    id: String,
    to: String,
    of: MachineName,
}

impl Turn {
    fn of(taken: &Pending) -> Self {
        let Message { id, to, .. } = &taken.message;
        Self { id: id.clone(), to: to.clone(), of: taken.from.clone() }
    }
}

struct Gateway<'t> {
    task: &'t Task,
    /// The agents that wrote, with the [keys](agent_key) of the addresses to which they did. The oldest first.
    written: &'t mut VecDeque<(String, String)>,
    /// The senders of the messages whose outcome is waited for.
    sent: Vec<String>,
    /// The messages that are not taken yet.
    turns: Vec<Turn>,
}

impl Gateway<'_> {
    /// Passes messages on both ways, until the mesh is lost.
    async fn serve(&mut self, member: &Member, mut inbox: Inbox) {
        let (task, machines) = (self.task, self.task.machines());
        let (handed, mut pending) = mpsc::channel(GIVEN);
        *machines.gateway() = Some(handed);
        let (mut sent, mut given) = (FuturesUnordered::new(), FuturesUnordered::new());
        // An acknowledgement names only the id of a message. So messages with the same id are given one after the other.
        let mut later = VecDeque::new();
        let (mut state, mut shown) = (machines.state.subscribe(), None);
        loop {
            let now = machines.shown();
            if shown.as_ref() != Some(&now) {
                member.reaches(now.clone()).await;
                shown = Some(now);
            }
            tokio::select! {
                received = inbox.next() => match received {
                    Some(Received::Message(message)) => {
                        for address in addressees(&message.to) {
                            match self.admitted(&message, &address) {
                                Ok(link) => sent.push(task.pass_on(link, message.clone(), address)),
                                Err(why) => inbox.deny(&message, why).await,
                            }
                        }
                    }
                    // A new leader knows of none.
                    Some(Received::Rejoined(_)) => shown = None,
                    Some(Received::PeerJoined(_) | Received::PeerLeft(_)) => {}
                    None => return,
                },
                Some((message, stored)) = sent.next() => {
                    if let Some(at) = self.sent.iter().position(|from| *from == message.from) {
                        self.sent.swap_remove(at);
                    }
                    report(&inbox, &message, stored).await;
                }
                Some(taken) = pending.recv() => {
                    let refused = self.refused(&taken);
                    let turn = Turn::of(&taken);
                    if refused.is_some() {
                        given.push(task.give(member, taken, refused));
                    } else if self.turns.iter().any(|other| other.id == turn.id) {
                        later.push_back(taken);
                        self.turns.push(turn);
                    } else {
                        given.push(task.give(member, taken, None));
                        self.turns.push(turn);
                    }
                }
                Some(done) = given.next() => if let Some(turn) = done {
                    if let Some(at) = self.turns.iter().position(|other| *other == turn) {
                        self.turns.swap_remove(at);
                    }
                    let next = later.iter().position(|next: &Pending| next.message.id == turn.id);
                    let next = next.and_then(|at| later.remove(at));
                    given.extend(next.map(|next| task.give(member, next, None)));
                },
                changed = state.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The connection over which a message of an agent goes to this address.
    ///
    /// # Errors
    /// Why it is not passed on, as a sentence.
    fn admitted(&mut self, message: &mesh::Message, to: &str) -> Result<Arc<Link>, String> {
        let (shared, machines, from) = (&self.task.shared, self.task.machines(), &message.from);
        if PodName::parse(from).is_ok_and(|pod| shared.any_pod(&pod).is_some()) {
            // What is answered would come to that Pod.
            let from = SafeText::quoted(from);
            return Err(format!(
                "{from} is the name of a Pod of this host; join under another one"
            ));
        }
        if let Named::OfThisMachine(name) = machines.named(to) {
            return Err(format!(
                "that agent is on this machine: write to {}",
                SafeText::quoted(name)
            ));
        }
        if let Some(limit) = delivery::over_size(shared, message.body.get().len()) {
            return Err(format!("the body of a message has at most {limit} KiB"));
        }
        let own = self.sent.iter().filter(|sender| *sender == from).count();
        if own >= SENT_OF_ONE || self.sent.len() >= SENT {
            return Err("too many messages of agents are on their way; send it again later".into());
        }
        let Some(link) = machines.link() else {
            machines.wanted.notify_one();
            return Err(machines.unreachable());
        };
        let over_rate = delivery::agent_over_rate(shared, "other machines", from, Instant::now());
        over_rate.map_or(Ok(()), Err)?;
        self.sent.push(from.clone());
        let pair = (from.clone(), agent_key(to));
        self.written.retain(|other| *other != pair);
        let is_its = |other: &(String, String)| other.0 == *from;
        if self.written.iter().filter(|other| is_its(other)).count() >= WRITTEN_OF_ONE
            && let Some(oldest) = self.written.iter().position(is_its)
        {
            self.written.remove(oldest);
        }
        if self.written.len() >= WRITTEN {
            self.written.pop_front();
        }
        self.written.push_back(pair);
        Ok(link)
    }

    /// Why a message is not given to an agent, as a sentence.
    fn refused(&self, taken: &Pending) -> Option<String> {
        let (shared, message, sender) = (&self.task.shared, &taken.message, taken.sender());
        let to = &message.to;
        let key = agent_key(&sender);
        if !self.written.iter().any(|(agent, address)| agent == to && *address == key) {
            return Some(NO_AGENT.to_owned());
        }
        if let Some(limit) = delivery::over_size(shared, message.body.get().len()) {
            return Some(format!("the body of a message to `{to}` has at most {limit} KiB"));
        }
        let count =
            |is_its: &dyn Fn(&Turn) -> bool| self.turns.iter().filter(|t| is_its(t)).count();
        if self.turns.len() >= GIVEN
            || count(&|turn| turn.of == taken.from) >= GIVEN_OF_ONE
            || count(&|turn| turn.to == *to) >= GIVEN_TO_ONE
        {
            return Some(BUSY.to_owned());
        }
        delivery::agent_over_rate(shared, &format!("`{to}`"), &sender, when(taken.receipt.taken))
    }
}

/// The agents of other machines to which a message goes. A broadcast stays on its machine.
fn addressees(to: &To) -> impl Iterator<Item = String> + use<> {
    let names: &[String] = match to {
        To::One(name) => std::slice::from_ref(name),
        To::Many(names) => names,
        To::Broadcast => &[],
    };
    let elsewhere = names.iter().filter(|name| address(name).is_some());
    // An agent that is named twice gets it once.
    let elsewhere: BTreeMap<String, String> =
        elsewhere.map(|name| (agent_key(name), name.clone())).collect();
    elsewhere.into_values()
}

impl Task {
    /// Sends a message of an agent of this machine to an agent of another one.
    async fn pass_on(
        &self,
        link: Arc<Link>,
        message: mesh::Message,
        to: String,
    ) -> (mesh::Message, Stored) {
        let Some((machine, agent)) = address(&to) else {
            return (message, (Status::Denied, Some(NO_AGENT.to_owned())));
        };
        let mesh::Message { from, id, re, body, .. } = message.clone();
        let (id, re) = (id.to_string(), re.map(|re| re.to_string()));
        let passed = Message { from, to: agent.to_owned(), id, re, body, peering: None };
        let wait = matches!(message.to, To::One(_)).then_some(OUTCOME);
        let stored = self.shared.send_over(&link, &machine, passed, None, wait).await;
        (message, stored)
    }

    /// Gives a message to an agent of this machine, unless it is refused, and says to the other machine what became of it.
    async fn give(&self, member: &Member, taken: Pending, refused: Option<String>) -> Option<Turn> {
        let turn = refused.is_none().then(|| Turn::of(&taken));
        let (fate, why) = match refused {
            Some(why) => (Fate::Denied, Some(why)),
            None => given(member, &taken).await,
        };
        let mut state = self.machines().state.subscribe();
        let link = state.wait_for(|state| state.link.is_some()).await.ok()?.link.clone()?;
        self.settled(&link, taken, fate, why).await;
        turn
    }
}

/// Gives a message to an agent of this machine, and waits for what becomes of it.
async fn given(member: &Member, taken: &Pending) -> (Fate, Option<String>) {
    let Message { to, id, re, body, .. } = &taken.message;
    let Some(id) = Id::parse(id) else { return (Fate::Denied, Some(NO_AGENT.to_owned())) };
    let re = re.as_deref().and_then(Id::parse);
    let sent = member.pass_on(Some(taken.sender()), id, To::One(to.clone()), body, re);
    match timeout(TAKEN, sent).await {
        Ok(sent) => match sent.status {
            Status::Received => (Fate::Received, None),
            Status::Timeout => (Fate::Unknown, sent.reason),
            _ => (Fate::Denied, sent.reason),
        },
        Err(_) => (Fate::Unknown, Some(format!("the agent did not take it within {TAKEN:?}"))),
    }
}

/// Says to the sender of a message what became of it.
async fn report(inbox: &Inbox, message: &mesh::Message, (status, reason): Stored) {
    let reason = reason.unwrap_or_default();
    match status {
        Status::Received | Status::Sent => inbox.confirm(message).await,
        Status::Queued => inbox.queue(message, reason).await,
        Status::Timeout => inbox.leave_unknown(message, reason).await,
        Status::Denied | Status::Refused => inbox.deny(message, reason).await,
    }
}
