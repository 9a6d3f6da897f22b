//! The agents that a Pod can reach, and how this host takes part in the mesh.

use crate::host::Shared;
use crate::host::mesh::Seat;
use crate::protocol::mesh::{AgentKind, MeshAgent, MeshMember, MeshView};
use crate::protocol::{PodName, Refusal, State};
use std::collections::BTreeSet;

/// The Pods of this host that take part, and every agent that is no Pod of it.
pub(crate) async fn of_host(shared: &Shared) -> MeshView {
    let members = shared.members.borrow().clone();
    let standing = |pod: &PodName| shared.pod(pod).and_then(|pod| pod.info.borrow().mesh.clone());
    let members = members.0.values().filter_map(|handle| {
        let standing = standing(&handle.name)?;
        Some(MeshMember { pod: handle.name.clone(), standing: Some(standing) })
    });
    let seat = shared.mesh.seats.borrow().values().next().cloned();
    MeshView {
        members: members.collect(),
        agents: match seat {
            Some(seat) => outside(shared, &seat).await.unwrap_or_default(),
            None => Vec::new(),
        },
        blocked: shared.mesh.blocked().iter().cloned().collect(),
        machine: shared.mesh.machines.view().map(Box::new),
    }
}

/// A Pod, its peers, and the agents that are no Pods of this host.
pub(crate) async fn of_pod(shared: &Shared, pod: &PodName) -> Result<MeshView, Refusal> {
    let mut agents = peers(shared, pod);
    if let Some(seat) = shared.mesh.seat(pod) {
        let is_its = |agent: &MeshAgent| agent.reachable || agent.peers.contains(pod);
        let outside = outside(shared, &seat).await?;
        agents.extend(outside.into_iter().map(|agent| agent.of(pod)).filter(is_its));
    }
    let members = vec![member(shared, pod)];
    let blocked = shared.mesh.blocked().iter().cloned().collect();
    Ok(MeshView { members, agents, blocked, machine: shared.mesh.machines.view().map(Box::new) })
}

/// How a Pod takes part.
pub(crate) fn member(shared: &Shared, pod: &PodName) -> MeshMember {
    let standing = shared.pod(pod).and_then(|handle| handle.info.borrow().mesh.clone());
    MeshMember { pod: pod.clone(), standing }
}

fn peers(shared: &Shared, pod: &PodName) -> Vec<MeshAgent> {
    let edges = shared.peers.borrow().clone();
    let others = edges.iter().filter_map(|edge| edge.other(pod));
    let peer = |name: &PodName| {
        let state = shared.pod(name)?.info.borrow().state;
        let reachable = !matches!(state, State::Stopped | State::Damaged);
        let name = address(shared, name);
        Some(MeshAgent { kind: AgentKind::Pod, reachable, ..MeshAgent::away(name) })
    };
    others.filter_map(peer).collect()
}

/// The name under which a Pod of this host gets messages.
pub(crate) fn address(shared: &Shared, pod: &PodName) -> String {
    let seat = shared.mesh.seat(pod);
    seat.map_or_else(|| pod.to_string(), |seat| seat.standing.name)
}

/// The agents other than the Pods of this host: those that the leader lists, and those of other machines.
pub(super) async fn outside(shared: &Shared, seat: &Seat) -> Result<Vec<MeshAgent>, Refusal> {
    let roster = seat.member.peers_in_detail().await;
    let roster = roster.map_err(|error| Refusal::internal(error.to_string()))?;
    let agent = |peer: crate::mesh::Peer| {
        let kind = if peer.confirms { AgentKind::Yoi } else { AgentKind::Agent };
        let blocked = shared.mesh.is_blocked(&peer.name);
        MeshAgent { kind, reachable: true, blocked, ..MeshAgent::away(peer.name) }
    };
    let elsewhere = shared.mesh.machines.agents(|name| shared.mesh.is_blocked(name));
    let known: BTreeSet<&str> = elsewhere.iter().map(|agent| agent.name.as_str()).collect();
    let mut here = shared.mesh.others(roster);
    // The leader lists agents of other machines, too.
    here.retain(|peer| !known.contains(peer.name.as_str()));
    let mut agents: Vec<MeshAgent> = here.into_iter().map(agent).chain(elsewhere).collect();
    shared.mark_peers(&mut agents).await?;
    Ok(agents)
}
