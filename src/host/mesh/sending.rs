//! Where a message of a Pod goes: to peers in this host directly, to every other agent over the mesh. Inside the
//! host the relations of Pods hold, as for `SendToPeerPod`.

use crate::config::settings::Wake;
use crate::host::Shared;
use crate::host::authority;
use crate::host::mesh::machines::{self, Named};
use crate::host::mesh::{Seat, delivery, view};
use crate::host::verb::Caller;
use crate::mesh::machines::MachineName;
use crate::mesh::{Id, Status, To};
use crate::protocol::method::Addressees;
use crate::protocol::{AgentOrigin, Event, PeerEdge, PodName, Refusal};
use crate::text::SafeText;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A message of a Pod that has joined.
pub(crate) struct Sending<'a> {
    shared: &'a Shared,
    seat: Seat,
    id: Id,
    re: Option<Id>,
    body: Box<RawValue>,
}

/// One addressee.
enum Target {
    /// The sender.
    Itself,
    /// A Pod of this host.
    Pod(PodName),
    /// An agent of the mesh, by its name there.
    Agent(String),
    /// An agent of another machine.
    OfAnotherMachine(MachineName, String),
}

/// The outcome of a message.
struct Outcome {
    status: Status,
    /// The reason, as a sentence.
    reason: Option<String>,
    /// The Pods of this host whose mailbox has the message.
    pods: Vec<PodName>,
    handed_over: bool,
}

impl Outcome {
    fn new(status: Status, reason: Option<String>) -> Self {
        Self { status, reason, pods: Vec::new(), handed_over: false }
    }

    fn refused(reason: impl Into<String>) -> Self {
        Self::new(Status::Refused, Some(reason.into()))
    }

    fn event(self, id: Id) -> Event {
        let Self { status, reason, pods, handed_over } = self;
        let status = status.as_str().to_owned();
        Event::MeshSent { id: id.to_string(), status, reason, pods, handed_over }
    }
}

/// Sends a message in the name of a Pod and says what became of it.
pub(crate) async fn send(
    shared: &Shared,
    pod: &PodName,
    to: Addressees,
    body: &Value,
    re: Option<String>,
) -> Result<Event, Refusal> {
    let seat = shared.mesh.seat(pod).ok_or_else(|| not_joined(pod))?;
    let id = Id::new();
    let refused = |reason: String| Ok(Outcome::refused(reason).event(id));
    let re = match re.as_deref().map(|text| Id::parse(text.trim()).ok_or(text)) {
        None => None,
        Some(Ok(re)) => Some(re),
        Some(Err(text)) => {
            let text = SafeText::brief(text, 80);
            return refused(format!(
                "`re` is the id of the message that you answer, like {id}; `{text}` is no id"
            ));
        }
    };
    let body = to_raw_value(body).map_err(|error| Refusal::invalid(error.to_string()))?;
    if let Some(limit) = delivery::over_size(shared, body.get().len()) {
        return refused(format!(
            "the body of a message has at most {limit} KiB; send less, or the path of a file"
        ));
    }
    let sending = Sending { shared, seat, id, re, body };
    let to = match to {
        Addressees::One(name) => To::named(name),
        Addressees::Many(names) => To::Many(names),
    };
    let outcome = match to {
        To::One(name) => sending.to_one(&name).await?,
        To::Many(names) => sending.to_many(names).await?,
        To::Broadcast => sending.to_all().await?,
    };
    Ok(outcome.event(id))
}

/// The refusal for a Pod that is not on the mesh.
pub(crate) fn not_joined(pod: &PodName) -> Refusal {
    Refusal::invalid(format!(
        "pod `{pod}` is not on the mesh; a person has it join with :mesh join"
    ))
}

impl Sending<'_> {
    async fn to_one(&self, name: &str) -> Result<Outcome, Refusal> {
        match self.target(name) {
            Target::Itself => Ok(Outcome::refused("a message to oneself is not sent")),
            Target::Pod(pod) => self.to_pod(&pod, true).await,
            Target::OfAnotherMachine(machine, agent) => {
                Ok(self.to_machine(machine, &agent, true).await)
            }
            Target::Agent(name) => {
                let sent = self.over_mesh(To::One(name)).await;
                let handed_over =
                    !self.seat.member.standing().led_by_yoi && sent.status == Status::Received;
                let note = "another program leads the mesh: the message was handed over, and nothing is \
                            known of whether it is kept";
                let reason = if handed_over { Some(note.to_owned()) } else { sent.reason };
                Ok(Outcome { reason, handed_over, ..sent })
            }
        }
    }

    /// To several: each peer in this host, and the others over the mesh. None is waited for.
    async fn to_many(&self, mut names: Vec<String>) -> Result<Outcome, Refusal> {
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        if names.is_empty() {
            return Ok(Outcome::refused("a message needs an addressee"));
        }
        let (mut agents, mut pods, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let outcome = match self.target(&name) {
                Target::Agent(name) => {
                    agents.push(name);
                    continue;
                }
                Target::Pod(pod) => self.to_pod(&pod, true).await?,
                Target::OfAnotherMachine(machine, agent) => {
                    self.to_machine(machine, &agent, false).await
                }
                Target::Itself => continue,
            };
            pods.extend(outcome.pods);
            reasons.extend(outcome.reason.map(|reason| format!("{name}: {reason}")));
        }
        if !agents.is_empty() {
            let sent = self.over_mesh(To::Many(agents)).await;
            if sent.status == Status::Refused {
                return Ok(Outcome { pods, ..sent });
            }
            reasons.extend(sent.reason);
        }
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(Outcome { pods, ..Outcome::new(Status::Sent, reason) })
    }

    async fn to_all(&self) -> Result<Outcome, Refusal> {
        let wakes = self.shared.settings.last().settings.mesh.wake.contains(&Wake::Broadcasts);
        let edges = self.shared.peers.borrow().clone();
        let mut pods = Vec::new();
        for peer in edges.iter().filter_map(|edge| edge.other(&self.seat.pod)) {
            // A broadcast does not wait, so a peer that does not take it is passed over.
            pods.extend(self.to_pod(&peer.clone(), wakes).await?.pods);
        }
        Ok(Outcome { pods, ..self.over_mesh(To::Broadcast).await })
    }

    /// Which addressee a name means. A Pod of this host that joined goes by its name on the mesh: the same name may
    /// belong to another agent there.
    fn target(&self, name: &str) -> Target {
        let mesh = &self.shared.mesh;
        let name = match mesh.machines.named(name) {
            Named::OfAnother(machine, agent) if mesh.machines.own().is_some() => {
                return Target::OfAnotherMachine(machine, agent.to_owned());
            }
            // Another program that leads the mesh of this machine may know other machines.
            Named::OfAnother(..) => name,
            Named::OfThisMachine(name) => name,
        };
        let pod = mesh.pod_named(name).or_else(|| {
            let pod = self.shared.pod(&PodName::parse(name).ok()?)?.name;
            let renamed = |seat: Seat| !seat.standing.name.eq_ignore_ascii_case(name);
            (!mesh.seat(&pod).is_some_and(renamed)).then_some(pod)
        });
        match pod {
            Some(pod) if pod.key() == self.seat.pod.key() => Target::Itself,
            Some(pod) => Target::Pod(pod),
            None => Target::Agent(name.to_owned()),
        }
    }

    async fn to_pod(&self, pod: &PodName, wakes: bool) -> Result<Outcome, Refusal> {
        let (shared, me) = (self.shared, &self.seat.pod);
        if let Err(refusal) = authority::may(shared, me, pod, Caller::Peer) {
            let edge = PeerEdge::new(me.clone(), pod.clone());
            let is_peer = shared.peers.borrow().contains(&edge);
            if is_peer {
                return Ok(Outcome::new(Status::Denied, Some(refusal.message)));
            }
            let why = refusal.message;
            return Ok(Outcome::refused(format!("{why}; a person makes them peers with :peer")));
        }
        let from = AgentOrigin {
            name: view::address(shared, me),
            id: self.id.to_string(),
            re: self.re.map(|re| re.to_string()),
            pod: true,
        };
        let body = self.body.get().to_owned();
        let reason = delivery::send_to_pod(shared, from, pod, body, wakes).await?;
        Ok(match reason {
            None => Outcome { pods: vec![pod.clone()], ..Outcome::new(Status::Received, None) },
            Some(reason) => Outcome::new(Status::Denied, Some(reason)),
        })
    }

    /// To an agent of another machine.
    async fn to_machine(&self, machine: MachineName, agent: &str, waits: bool) -> Outcome {
        let (pod, id, re, body) = (&self.seat.pod, self.id, self.re, &*self.body);
        let sending = machines::Sending { pod, machine, agent, id, re, body, peering: None };
        let (status, reason) = self.shared.send_to_machine(sending, waits).await;
        Outcome::new(status, reason)
    }

    async fn over_mesh(&self, to: To) -> Outcome {
        let sent = self.seat.member.send_as(self.id, to, &self.body, self.re).await;
        Outcome::new(sent.status, sent.reason)
    }
}
