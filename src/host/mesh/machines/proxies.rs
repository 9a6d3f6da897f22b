//! Agents of other machines as members of the mesh of this machine: a stand-in has the whole name of its agent, as in
//! `trab:bob`, so agents of this machine that are no Pods see it and write to it, and get what its agent answers. Pods need
//! none: what they send goes the way of [`outgoing`](super::outgoing).

use crate::backoff::Backoff;
use crate::host::Shared;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::incoming::NO_AGENT;
use crate::host::mesh::machines::outgoing::{Sender, Sending, Stored};
use crate::host::mesh::machines::{COLLECT, FIRST_PAUSE, LONGEST_PAUSE, Machines, Task, incoming};
use crate::host::mesh::membership;
use crate::mesh::machines::{MachineName, Message, Receipt, address};
use crate::mesh::{self, Id, Inbox, Member, Received, Status, To};
use crate::protocol::PodName;
use crate::text::SafeText;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The most agents of other machines that have one, so that the mesh of this machine has room for its own.
const MOST: usize = 128;
/// Messages that wait for one stand-in, and those of it whose outcome is not known.
const WAITING: usize = 32;
/// How long the outcome is waited for: shorter than its sender waits.
const OUTCOME: Duration = Duration::from_secs(3);
/// Messages to agents of this machine that are known when they come again.
const KNOWN: usize = 256;

/// All of them, by their names.
pub(super) type Proxies = HashMap<String, Proxy>;

/// Dropping it leaves the mesh.
pub(super) struct Proxy {
    messages: mpsc::Sender<Handed>,
    leaving: CancellationToken,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.leaving.cancel();
    }
}

/// A message of its agent to an agent of this machine that is no Pod.
pub(super) struct Handed {
    pub(super) message: Message,
    pub(super) receipt: Receipt,
}

impl Machines {
    fn proxies(&self) -> MutexGuard<'_, Proxies> {
        // Each step leaves the map whole.
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all of them leave.
    pub(super) fn end_proxies(&self) {
        self.proxies().clear();
    }

    /// Whether a member of the mesh of this machine stands for an agent of another one.
    pub(crate) fn is_proxy(&self, name: &str) -> bool {
        self.proxies().contains_key(name)
    }

    /// Gives a message of another machine to the stand-in of its sender.
    ///
    /// # Errors
    /// Why it is not taken, as a sentence.
    pub(super) fn hand_over(&self, sender: &str, handed: Handed) -> Result<(), String> {
        let messages = self.proxies().get(sender).map(|found| found.messages.clone());
        let messages = messages.ok_or(NO_AGENT)?;
        messages.try_send(handed).map_err(|_| {
            format!("{WAITING} messages wait for agents there; try again when some are taken")
        })
    }

    /// The agents that are to have one, with their machines.
    fn wanted_proxies(&self) -> BTreeSet<String> {
        let state = self.state.borrow();
        let all = state.present.iter().flat_map(|(machine, present)| {
            // Another machine names its agents as it likes.
            let pods = present.agents.iter().filter(|agent| PodName::parse(agent).is_ok());
            pods.map(move |agent| format!("{machine}:{agent}"))
        });
        all.take(MOST).collect()
    }
}

impl Task {
    /// Keeps a stand-in for each agent of the machines that are present, while a Pod of this host is on the mesh.
    pub(super) async fn keep_proxies(&self) {
        let (mut state, mut seats) =
            (self.machines().state.subscribe(), self.shared.mesh.seats.subscribe());
        loop {
            state.mark_unchanged();
            self.renew_proxies(!seats.borrow_and_update().is_empty());
            // Both senders live as long as this host.
            let _ = tokio::select! {
                changed = state.changed() => changed,
                changed = seats.changed() => changed,
            };
            sleep(COLLECT).await;
        }
    }

    fn renew_proxies(&self, is_on_mesh: bool) {
        let machines = self.machines();
        let wanted = if is_on_mesh { machines.wanted_proxies() } else { BTreeSet::new() };
        let mut proxies = machines.proxies();
        proxies.retain(|name, _| wanted.contains(name));
        for name in wanted {
            if let Some((machine, agent)) = address(&name)
                && !proxies.contains_key(&name)
            {
                let agent = agent.to_owned();
                proxies.insert(name.clone(), start(&self.shared, name, machine, agent));
            }
        }
    }
}

fn start(shared: &Shared, name: String, machine: MachineName, agent: String) -> Proxy {
    let (messages, waiting) = mpsc::channel(WAITING);
    let leaving = CancellationToken::new();
    let task = Actor {
        shared: shared.clone(),
        name,
        machine,
        agent,
        leaving: leaving.clone(),
        under_way: HashSet::new(),
        known: VecDeque::new(),
    };
    shared.mesh.members.spawn(task.run(waiting));
    Proxy { messages, leaving }
}

/// What became of a message to an agent of this machine: the reason if it was not taken.
type Given = (Handed, Option<String>);

struct Actor {
    shared: Shared,
    /// The agent with its machine.
    name: String,
    machine: MachineName,
    agent: String,
    leaving: CancellationToken,
    /// The ids of the messages to agents of this machine whose outcome is not known.
    under_way: HashSet<String>,
    /// The last ones whose outcome is known, the oldest first.
    known: VecDeque<(String, Option<String>)>,
}

impl Actor {
    async fn run(mut self, mut waiting: mpsc::Receiver<Handed>) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            // A Pod of this host leads, or an agent does.
            let joined = tokio::select! {
                biased;
                () = self.leaving.cancelled() => return,
                joined = membership::join(&self.shared, self.name.clone(), false) => joined,
            };
            match joined {
                // Under another name it would be taken for another agent.
                Ok((member, _)) if member.standing().name != self.name => {
                    tracing::warn!("an agent of this machine has the name {} already", self.name);
                    member.leave().await;
                }
                Ok((member, inbox)) => {
                    backoff.reset();
                    self.serve(&member, inbox, &mut waiting).await;
                    member.leave().await;
                }
                Err(why) => tracing::debug!("{} cannot join the mesh: {why}", self.name),
            }
            tokio::select! {
                () = self.leaving.cancelled() => return,
                () = sleep(backoff.pause()) => {}
            }
        }
    }

    /// Takes messages both ways, each way in their order, until it leaves or has lost its name.
    async fn serve(
        &mut self,
        member: &Member,
        mut inbox: Inbox,
        waiting: &mut mpsc::Receiver<Handed>,
    ) {
        let (shared, leaving) = (self.shared.clone(), self.leaving.clone());
        let (machine, agent) = (self.machine.clone(), self.agent.clone());
        let (mut sent, mut given) = (FuturesUnordered::new(), FuturesUnordered::new());
        loop {
            tokio::select! {
                biased;
                () = leaving.cancelled() => return,
                Some((message, stored)) = sent.next() => report(&inbox, &message, stored).await,
                Some(done) = given.next() => self.decided(done).await,
                received = inbox.next(), if sent.len() < WAITING => match received {
                    Some(Received::Message(message)) => {
                        sent.push(pass_on(&shared, &machine, &agent, message));
                    }
                    Some(Received::Rejoined(standing)) if standing.name != self.name => return,
                    Some(_) => {}
                    None => return,
                },
                Some(handed) = waiting.recv(), if given.len() < WAITING => {
                    match self.known.iter().find(|(id, _)| *id == handed.message.id) {
                        Some((_, reason)) => {
                            let reason = reason.clone();
                            self.decided((handed, reason)).await;
                        }
                        // The outcome of one that is under way is told when it is known.
                        None if !self.under_way.insert(handed.message.id.clone()) => {}
                        None => given.push(give(member, handed)),
                    }
                }
            }
        }
    }

    /// Tells the other machine what became of its message.
    async fn decided(&mut self, (handed, reason): Given) {
        let id = &handed.message.id;
        if self.under_way.remove(id) {
            if self.known.len() >= KNOWN {
                self.known.pop_front();
            }
            self.known.push_back((id.clone(), reason.clone()));
        }
        let task = Task { shared: self.shared.clone() };
        // Without a connection the message comes again.
        if let Some(link) = task.machines().link() {
            let Handed { message, receipt } = handed;
            let taken = incoming::Pending { from: self.machine.clone(), message, receipt };
            task.decided(&link, taken, reason).await;
        }
    }
}

/// Sends a message of an agent of this machine to the agent for which this stands.
async fn pass_on(
    shared: &Shared,
    machine: &MachineName,
    agent: &str,
    message: mesh::Message,
) -> (mesh::Message, Stored) {
    let limit = match message.to {
        To::One(_) => Some(OUTCOME),
        To::Many(_) => None,
        // It stays on its machine.
        To::Broadcast => return (message, (Status::Sent, None)),
    };
    if let Some(why) = refused(shared, &message) {
        return (message, (Status::Denied, Some(why)));
    }
    let (from, id) = (Sender::Agent(&message.from), message.id);
    let (re, body, machine) = (message.re, &*message.body, machine.clone());
    let sending = Sending { from, machine, agent, id, re, body, peering: None };
    let stored = shared.send_and_wait(sending, limit).await;
    (message, stored)
}

/// Why a message does not go to another machine.
fn refused(shared: &Shared, message: &mesh::Message) -> Option<String> {
    let (from, mesh) = (&message.from, &shared.mesh);
    let named = SafeText::quoted(from);
    if address(from).is_some() {
        return Some(format!("{named} looks like an agent of another machine"));
    }
    let pod = PodName::parse(from).ok().and_then(|pod| shared.any_pod(&pod));
    if pod.is_some_and(|pod| mesh.pod_named(from).is_none_or(|named| named != pod.name)) {
        // What is answered would come to that Pod.
        return Some(format!(
            "{named} is the name of a Pod of this machine; join under another one"
        ));
    }
    let limit = delivery::over_size(shared, message.body.get().len())?;
    Some(format!("the body of a message has at most {limit} KiB"))
}

/// Says to the sender what became of its message.
async fn report(inbox: &Inbox, message: &mesh::Message, (status, reason): Stored) {
    let reason = reason.unwrap_or_default();
    match status {
        Status::Received | Status::Sent => inbox.confirm(message).await,
        Status::Queued => inbox.queue(message, reason).await,
        Status::Timeout => inbox.leave_unknown(message, reason).await,
        Status::Denied | Status::Refused => inbox.deny(message, reason).await,
    }
}

/// Gives an agent of this machine a message.
async fn give(member: &Member, handed: Handed) -> Given {
    let Message { id, to, re, body, .. } = &handed.message;
    let (id, re) = (Id::parse(id), re.as_deref().and_then(Id::parse));
    let reason = match (id, To::named(to.clone())) {
        (Some(id), to @ To::One(_)) => {
            let sent = member.send_as(id, to, body, re).await;
            let why = || sent.reason.unwrap_or_else(|| NO_AGENT.to_owned());
            (sent.status != Status::Received).then(why)
        }
        // A broadcast stays on its machine.
        _ => Some(NO_AGENT.to_owned()),
    };
    (handed, reason)
}
