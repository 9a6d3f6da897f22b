//! Pods of this host and agents of other machines as peers. A person of each side agrees: the one by `:peer`, the other
//! in the inbox. Messages of a peer wake its Pod; nothing else of the way that they take differs.

use crate::host::Shared;
use crate::host::mesh::delivery;
use crate::host::mesh::machines::outgoing::{Sending, Stored};
use crate::host::mesh::machines::{Machines, Task, incoming};
use crate::host::mesh::roster::{self, Change};
use crate::host::pod::Fact;
use crate::mesh::machines::{Credentials, Link, MachineName, Message, NotStored, Peering, address};
use crate::mesh::{Id, Status};
use crate::protocol::mesh::MeshAgent;
use crate::protocol::{ApprovalRequest, Pattern, PodName, Refusal, Verdict};
use crate::run::Notification;
use crate::store::{MachinePeer, PeerChange, PeerState, Said, StoreError, agent_key};
use crate::text::SafeText;
use serde_json::value::to_raw_value;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The tool that a request to become peers names.
const PEER: &str = "Peer";

/// Characters that are shown of the reason of another machine.
const REASON: usize = 200;

/// How long agents of a machine may not ask for a Pod after a person denied that to one of them.
const PAUSE: Duration = Duration::from_secs(600);
/// What an older host shows as the message where a peering ends without a reason.
const NO_REASON: &str = "is no peer of yours, and asks no more to become one";

/// What became of a person's `:peer`.
pub(crate) enum Asked {
    /// They are peers now, or were before.
    Peers,
    /// The other side was asked, under this id.
    Sent(Id, Stored),
}

impl Shared {
    /// Makes a Pod the peer of an agent of another machine, if that one asked, or asks it.
    pub(crate) async fn request_peer(
        &self,
        pod: &PodName,
        machine: MachineName,
        agent: &str,
    ) -> Result<Asked, Refusal> {
        self.mesh.machines.must_reach().await?;
        let (id, name) = (Id::new(), format!("{machine}:{agent}"));
        let changing = self.mesh.machines.pairs.lock().await;
        let (before, after) = self.said_here(pod, &name, true, id, "", None).await?;
        let Some(asked) = after.filter(|pair| pair.state() == Some(PeerState::Asked)) else {
            self.peers_changed(before, None, &Verdict::Once);
            return Ok(Asked::Peers);
        };
        drop(changing);
        let (re, peering) = (None, asked.owed());
        let body = to_raw_value(&sentence(true, "")).map_err(invalid)?;
        let sending = Sending { pod, machine, agent, id, re, body: &body, peering };
        let (status, reason) = self.send_to_machine(sending, true).await;
        match status {
            Status::Received | Status::Queued => self.store.peer_notified(&asked).await?,
            // It is not known whether the server has it: it is said again on the next connection.
            Status::Timeout => {}
            _ => {
                self.request_refused(&asked).await?;
                return Err(Refusal::invalid(reason.unwrap_or_default()));
            }
        }
        roster::changed(self, Change::Member);
        Ok(Asked::Sent(id, (status, reason)))
    }

    /// The other side does not take what this one asks or agreed to. It may know of an earlier request.
    async fn request_refused(&self, of: &MachinePeer) -> Result<(), StoreError> {
        let _changing = self.mesh.machines.pairs.lock().await;
        let only_after = Some(of.id.clone());
        let said = self.said_here(&of.pod, &of.agent, false, Id::new(), "", only_after);
        let (before, after) = said.await?;
        self.peers_changed(before, after, &Verdict::Once);
        Ok(())
    }

    /// Ends a pair, takes a request back, or denies one.
    pub(crate) async fn end_peer(&self, pod: &PodName, agent: &str) -> Result<(), Refusal> {
        let _changing = self.mesh.machines.pairs.lock().await;
        let (before, after) = self.said_here(pod, agent, false, Id::new(), "", None).await?;
        if before.as_ref().and_then(MachinePeer::state).is_none() {
            let agent = SafeText::line(agent);
            return Err(Refusal::invalid(format!("{pod} and {agent} are no peers")));
        }
        let was_request = before.as_ref().and_then(MachinePeer::state) == Some(PeerState::Pending);
        if was_request && let Some((machine, _)) = address(agent) {
            self.mesh.machines.note_denied(machine, pod);
        }
        self.peers_changed(before, after, &Verdict::Deny { reason: String::new() });
        Ok(())
    }

    /// A person decided the request of an agent. The first decision counts.
    pub(crate) async fn decide_for_agent(
        &self,
        approval: &ApprovalRequest,
        agent: &str,
        verdict: Verdict,
    ) -> Result<(), Refusal> {
        let (wants, reason) = match &verdict {
            Verdict::Once => (true, String::new()),
            Verdict::Deny { reason } => (false, SafeText::brief(reason, REASON).to_string()),
            _ => return Err(Refusal::invalid("a person allows or denies that two become peers")),
        };
        let _changing = self.mesh.machines.pairs.lock().await;
        let only_after = Some(approval.id.clone());
        let said = self.said_here(&approval.pod, agent, wants, Id::new(), &reason, only_after);
        let (before, after) = said.await?;
        if before == after {
            return Err(Refusal::invalid("that request was decided or withdrawn already"));
        }
        if !wants && let Some((machine, _)) = address(agent) {
            self.mesh.machines.note_denied(machine, &approval.pod);
        }
        self.peers_changed(before, after, &verdict);
        Ok(())
    }

    /// Denies the requests of agents that a person has blocked.
    pub(crate) async fn deny_blocked(&self) -> Result<(), StoreError> {
        let _changing = self.mesh.machines.pairs.lock().await;
        for pair in self.store.machine_peers().await? {
            if pair.state() == Some(PeerState::Pending) && self.mesh.is_blocked(&pair.agent) {
                let said = self.said_here(&pair.pod, &pair.agent, false, Id::new(), "", None);
                let (before, after) = said.await?;
                let why = "you blocked the agent that asked".to_owned();
                self.peers_changed(before, after, &Verdict::Withdrawn { why });
            }
        }
        Ok(())
    }

    /// The pair before and after someone here wants it, or not any more.
    async fn said_here(
        &self,
        pod: &PodName,
        agent: &str,
        wants: bool,
        id: Id,
        reason: &str,
        only_after: Option<String>,
    ) -> Result<(Option<MachinePeer>, Option<MachinePeer>), StoreError> {
        let said = Said::Here { wants, only_after };
        let change = self.store.record_peer(pod, agent, said, id.to_string(), reason.to_owned());
        // What is said here makes no request that waits here.
        Ok(change.await?.map_or((None, None), |PeerChange { before, after }| (before, after)))
    }

    /// Shows on every screen what changed of a pair here, and has the other side told. `verdict` is the decision if a
    /// request waited.
    fn peers_changed(
        &self,
        before: Option<MachinePeer>,
        after: Option<MachinePeer>,
        verdict: &Verdict,
    ) {
        let is_pending = |pair: &MachinePeer| pair.state() == Some(PeerState::Pending);
        if let Some(request) = before.filter(is_pending) {
            self.approval_decided(&request.id, verdict);
        }
        if let Some(request) = after.filter(is_pending) {
            self.approval_requested(&card(&request));
        }
        self.mesh.machines.owes.notify_one();
        roster::changed(self, Change::Member);
    }

    /// The Pod was deleted, and the store has ended its pairs.
    pub(crate) fn peers_of_removed(&self, pod: &PodName) {
        let why = "the pod was deleted".to_owned();
        for request in self.approvals() {
            if request.agent.is_some() && request.pod.key() == pod.key() {
                self.approval_decided(&request.id, &Verdict::Withdrawn { why: why.clone() });
            }
        }
        self.mesh.machines.owes.notify_one();
    }

    /// Marks the agents that are peers of Pods here, and adds those that are away.
    pub(crate) async fn mark_peers(&self, agents: &mut Vec<MeshAgent>) -> Result<(), StoreError> {
        for pair in self.store.machine_peers().await? {
            let at = agents.iter().position(|agent| agent_key(&agent.name) == pair.agent);
            let Some(state @ (PeerState::Peers | PeerState::Asked)) = pair.state() else {
                continue;
            };
            let at = at.unwrap_or_else(|| {
                let blocked = self.mesh.is_blocked(&pair.agent);
                agents.push(MeshAgent { blocked, ..MeshAgent::away(pair.agent.clone()) });
                agents.len() - 1
            });
            let agent = &mut agents[at];
            match state {
                PeerState::Peers => agent.peers.push(pair.pod),
                _ => agent.asked.push(pair.pod),
            }
        }
        Ok(())
    }
}

impl Machines {
    fn note_denied(&self, machine: MachineName, pod: &PodName) {
        // Each step leaves the map whole.
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.retain(|_, at| at.elapsed() < PAUSE);
        denied.insert((machine, pod.key()), tokio::time::Instant::now());
    }

    /// How long agents of a machine may not ask for a Pod yet, if a person has denied it.
    fn pause_after_denial(&self, machine: &MachineName, pod: &PodName) -> Option<Duration> {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let at = denied.get(&(machine.clone(), pod.key()))?;
        PAUSE.checked_sub(at.elapsed()).filter(|left| !left.is_zero())
    }
}

impl Task {
    /// Forgets the pairs of another network than that of these credentials.
    pub(super) async fn begin_network(&self, credentials: &Credentials) -> Result<(), StoreError> {
        let _changing = self.machines().pairs.lock().await;
        let why = "this machine has joined another network".to_owned();
        for pair in self.shared.store.begin_network(credentials.network()).await? {
            self.shared.approval_decided(&pair.id, &Verdict::Withdrawn { why: why.clone() });
        }
        Ok(())
    }

    /// Shows the requests that waited when the last host ended.
    pub(super) async fn show_requests(&self) {
        let _changing = self.machines().pairs.lock().await;
        match self.shared.store.machine_peers().await {
            Ok(pairs) => {
                for pair in pairs.iter().filter(|pair| pair.state() == Some(PeerState::Pending)) {
                    self.shared.approval_requested(&card(pair));
                }
            }
            Err(error) => tracing::warn!("the peers on other machines are not known: {error}"),
        }
    }

    /// Tells the other machines what they have not been told.
    pub(super) async fn tell_owed(&self, link: &Link) {
        let pairs = match self.shared.store.machine_peers().await {
            Ok(pairs) => pairs,
            Err(error) => return tracing::warn!("other machines are told later: {error}"),
        };
        // To find out that a machine has no stream takes seconds, in which this host takes no message.
        let mut gone = BTreeSet::new();
        for pair in pairs {
            let Some(owed) = pair.owed() else { continue };
            let Some((machine, agent)) = address(&pair.agent) else { continue };
            if gone.contains(&machine) {
                continue;
            }
            let Ok(body) = to_raw_value(&sentence(owed.wants, &pair.reason)) else { continue };
            let message = Message {
                from: pair.pod.to_string(),
                to: agent.to_owned(),
                id: pair.id.clone(),
                re: None,
                body,
                peering: Some(owed),
            };
            let noted = match link.send(&machine, &message).await {
                Ok(()) => self.shared.store.peer_notified(&pair).await,
                // It is owed until that machine can be told.
                Err(NotStored::NoSuchMachine(_)) => {
                    gone.insert(machine);
                    continue;
                }
                Err(NotStored::TooLarge(..) | NotStored::Refused(_) | NotStored::Full(_)) => {
                    continue;
                }
                // It is told later.
                Err(NotStored::Silent | NotStored::Unknown) => return,
            };
            if let Err(error) = noted {
                tracing::warn!("another machine is told once more: {error}");
            }
        }
    }

    /// Keeps what another host says about a pair. The reason if it is not taken.
    pub(super) async fn take_peering(
        &self,
        from: &MachineName,
        message: &Message,
        peering: Peering,
        at: Instant,
    ) -> Result<Option<String>, StoreError> {
        let shared = &self.shared;
        let agent = format!("{from}:{}", message.from);
        let pod = match peering.wants {
            true => self.addressee(message).await?,
            false => {
                let pod = PodName::parse(&message.to).ok();
                pod.map(|pod| shared.pod(&pod).map_or(pod, |handle| handle.name))
            }
        };
        let Some(pod) = pod else { return Ok(Some(incoming::NO_AGENT.to_owned())) };
        // A request that is stored is seen by who blocks its agent.
        let _changing = self.machines().pairs.lock().await;
        if peering.wants {
            // All agents of a machine together, which names them as it likes.
            let refused = delivery::blocked(shared, &pod, &agent)
                .or_else(|| delivery::over_rate(shared, &pod, &format!("{from}:"), at));
            if refused.is_some() {
                return Ok(refused);
            }
        }
        let mut reason = serde_json::from_str::<String>(message.body.get()).unwrap_or_default();
        if reason == NO_REASON {
            reason.clear();
        }
        let pause = self.machines().pause_after_denial(from, &pod);
        let (says, id) =
            (Said::There { peering, may_request: pause.is_none() }, Id::new().to_string());
        let change = shared.store.record_peer(&pod, &agent, says, id, String::new());
        let change = change.await.inspect_err(|_| {
            // It comes again.
            if peering.wants {
                delivery::not_sent(shared, &pod, &format!("{from}:"));
            }
        })?;
        let Some(PeerChange { before, after }) = change else {
            roster::changed(shared, Change::Member);
            return Ok(Some(match pause {
                None => "too many requests to become peers wait there already".to_owned(),
                Some(left) => format!(
                    "a person there denied such a request; the next one can be made in {} min",
                    left.as_secs().div_ceil(60)
                ),
            }));
        };
        let [was, is] = [&before, &after].map(|pair| pair.as_ref().and_then(MachinePeer::state));
        if was != is {
            let why = "it does not ask any more".to_owned();
            shared.peers_changed(before, after, &Verdict::Withdrawn { why });
            self.note(&pod, &agent, was, is, &reason).await;
        } else if after.is_some_and(|pair| pair.owed().is_some()) {
            shared.mesh.machines.owes.notify_one();
        }
        Ok(None)
    }

    /// Tells a Pod what became of it and an agent.
    async fn note(
        &self,
        pod: &PodName,
        agent: &str,
        was: Option<PeerState>,
        is: Option<PeerState>,
        reason: &str,
    ) {
        let named = SafeText::quoted(agent);
        let why = match reason {
            "" => String::new(),
            reason => format!(": {}", SafeText::brief(reason, REASON)),
        };
        let fact = match (was, is) {
            (_, Some(PeerState::Peers)) => {
                let message = format!("[agent-network] {named} is a peer of yours now");
                Fact::Noted(Notification { message, from: None })
            }
            (Some(PeerState::Asked), None) => {
                Fact::AgentRefused(format!("{named} does not become a peer{why}"))
            }
            (Some(PeerState::Peers), None) => {
                Fact::AgentRefused(format!("{named} is no peer any more{why}"))
            }
            (Some(PeerState::Peers), Some(PeerState::Pending)) => {
                Fact::AgentRefused(format!("{named} is no peer any more, and asks anew"))
            }
            _ => return,
        };
        if let Some(handle) = self.shared.pod(pod) {
            handle.post(fact).await;
        }
    }

    /// Takes the outcome of a request or of an agreement that was queued; `false`: it is about something else.
    pub(super) async fn took_request(
        &self,
        pod: &PodName,
        from: &MachineName,
        id: &str,
        denied: Option<&str>,
    ) -> Result<bool, StoreError> {
        let pair = self.shared.store.pair_of(pod, id.to_owned()).await?;
        let is_from = |pair: &MachinePeer| address(&pair.agent).is_some_and(|(of, _)| of == *from);
        let Some(asked) = pair.filter(is_from) else { return Ok(false) };
        if let Some(reason) = denied {
            self.shared.request_refused(&asked).await?;
            self.note(pod, &asked.agent, asked.state(), None, reason).await;
        }
        Ok(true)
    }
}

/// What an older host shows as the message; where a peering ends, the reason.
fn sentence(wants: bool, reason: &str) -> String {
    match wants {
        true => "wants to be a peer, which needs a newer yoi on your machine".into(),
        false if reason.is_empty() => NO_REASON.into(),
        false => reason.to_owned(),
    }
}

fn invalid(error: serde_json::Error) -> Refusal {
    Refusal::invalid(error.to_string())
}

/// The request of an agent as the inbox shows it.
fn card(pair: &MachinePeer) -> ApprovalRequest {
    let because = format!(
        "your consent: the agent {} of another machine wants to become a peer of {}. Its messages then wake that pod; \
         they still approve nothing, and :unpeer ends it",
        SafeText::quoted(&pair.agent),
        pair.pod
    );
    let rule = Pattern { tool: PEER.to_owned(), pattern: pair.pod.to_string() };
    ApprovalRequest {
        agent: Some(pair.agent.clone()),
        action: pair.pod.to_string(),
        because,
        once_only: true,
        answered_once: false,
        since: pair.since,
        ..ApprovalRequest::new(pair.id.clone(), pair.pod.clone(), PEER, rule)
    }
}
