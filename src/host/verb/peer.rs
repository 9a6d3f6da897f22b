//! Peer: two Pods that may message each other and nothing else, or a Pod and an agent of another machine.

use crate::host::mesh::machines::{Asked, Named};
use crate::host::mesh::sending::not_joined;
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::mesh::machines::MachineName;
use crate::protocol::mesh::{MeshAgent, MeshView};
use crate::protocol::name::InvalidName;
use crate::protocol::{Event, PeerEdge, PeerRegistered, PodName, Refusal};
use crate::text::SafeText;

pub(crate) struct Peer {
    pub(crate) name: String,
}

impl Verb for Peer {
    const ALLOWED: Caller = Caller::Itself;

    /// Changes nothing if the two are peers already.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let source = cx.to()?.clone();
        let name = match cx.shared.mesh.machines.named(&self.name) {
            Named::OfAnother(machine, agent) => return of_machine(&cx, machine, agent).await,
            Named::OfThisMachine(name) => name.to_owned(),
        };
        crate::crash_point!("peer-asked");
        let result = cx.family(move |family| {
            let (source, peer) = pair(family, &source, &name)?;
            if !are_peers(family, &source, &peer) {
                family.peer(source.clone(), peer.clone());
            }
            Ok(PeerRegistered { source, peer })
        });
        let result = result.await?;
        crate::crash_point!("peer-stored");
        Ok(Event::PeerRegistered { result })
    }
}

/// Asks an agent of another machine, whose person decides.
async fn of_machine(cx: &Cx, machine: MachineName, agent: &str) -> Result<Event, Refusal> {
    let (pod, machines) = (cx.pod()?.name, &cx.shared.mesh.machines);
    if machines.own().is_none() {
        // These are the words of the predecessor, because programs may compare them, and the reason.
        let name = SafeText::line(format!("{machine}:{agent}"));
        let why = machines.unreachable();
        return Err(Refusal::invalid(format!("pod store error: invalid pod name: {name} ({why})")));
    }
    if cx.by.is_some() {
        let text = "only a person can ask for a peer on another machine, with `:peer`";
        return Err(Refusal::invalid(text));
    }
    if cx.shared.mesh.seat(&pod).is_none() {
        return Err(not_joined(&pod));
    }
    if PodName::parse(agent).is_err() {
        let agent = SafeText::quoted(agent);
        return Err(Refusal::invalid(format!(
            "{agent} cannot be the name of a Pod, and only Pods can be peers"
        )));
    }
    let name = format!("{machine}:{agent}");
    Ok(match cx.shared.request_peer(&pod, machine, agent).await? {
        Asked::Peers => {
            let agent = MeshAgent { peers: vec![pod], ..MeshAgent::away(name) };
            Event::Mesh(MeshView { agents: vec![agent], ..MeshView::default() })
        }
        Asked::Sent(id, (status, reason)) => {
            let (id, status) = (id.to_string(), status.as_str().to_owned());
            Event::MeshSent { id, status, reason, pods: Vec::new(), handed_over: false }
        }
    })
}

/// Both ends under their own names, if they can be a pair.
pub(crate) fn pair(
    family: &Family,
    source: &PodName,
    name: &str,
) -> Result<(PodName, PodName), Refusal> {
    // These are the words of the predecessor, because programs may compare them.
    let invalid =
        |InvalidName(name)| Refusal::invalid(format!("pod store error: invalid pod name: {name}"));
    let peer = PodName::parse(name).map_err(invalid)?;
    let source = family.pod(source)?.name;
    if peer.key() == source.key() {
        let text = format!("pod `{source}` cannot be registered as a peer of itself");
        return Err(Refusal::invalid(text));
    }
    let missing = || Refusal::invalid(format!("pod `{peer}` does not exist"));
    let peer = family.shared.pod(&peer).ok_or_else(missing)?.name;
    Ok((source, peer))
}

pub(crate) fn are_peers(family: &Family, source: &PodName, peer: &PodName) -> bool {
    let edge = PeerEdge::new(source.clone(), peer.clone());
    family.shared.peers.borrow().contains(&edge)
}
