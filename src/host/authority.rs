//! Which Pod may request which verb. A person may request every verb; a Pod commands the Pods below
//! it, may send messages to its peers, and sees no other Pod.

use crate::host::Shared;
use crate::host::relations::{Relation, relation};
use crate::host::verb::{Caller, Cx};
use crate::protocol::{PeerEdge, PodName, Refusal, State};
use crate::tools::pods::{missing, not_spawned, stopped};

/// Whether a verb that allows these callers may be carried out for the one of this request.
pub(crate) fn check(cx: &Cx, allowed: Caller) -> Result<(), Refusal> {
    let Some(by) = &cx.by else { return Ok(()) };
    may(&cx.shared, by, cx.to.as_ref().unwrap_or(by), allowed)
}

/// Whether `by` may request a verb of `to` that allows these callers.
pub(crate) fn may(
    shared: &Shared,
    by: &PodName,
    to: &PodName,
    allowed: Caller,
) -> Result<(), Refusal> {
    let relation = relation(shared, by, to);
    let may = match allowed {
        Caller::Itself => relation == Relation::Itself,
        Caller::Above if relation == Relation::Below => true,
        Caller::Above => return Err(Refusal::invalid(not_spawned(to.as_str()))),
        Caller::Peer => return peer(shared, by, to, relation),
        Caller::Person => false,
    };
    if may { Ok(()) } else { Err(Refusal::invalid("only a person may do that")) }
}

/// Whether `by` can see this Pod at all.
pub(crate) fn must_see(shared: &Shared, by: &PodName, pod: &PodName) -> Result<(), Refusal> {
    match relation(shared, by, pod) {
        Relation::Stranger => Err(stranger(shared, by, pod)),
        Relation::Itself | Relation::Below | Relation::Peer => Ok(()),
    }
}

fn stranger(shared: &Shared, by: &PodName, pod: &PodName) -> Refusal {
    if shared.pod(pod).is_none() && shared.damaged_row(pod).is_none() {
        return Refusal::invalid(missing(pod.as_str()));
    }
    Refusal::invalid(format!("pod `{pod}` is not visible to `{by}`; ListPods shows what is"))
}

/// Whether the addressed Pod is a live peer. One below may be a peer as well.
fn peer(shared: &Shared, by: &PodName, to: &PodName, relation: Relation) -> Result<(), Refusal> {
    let other = |what: &str| format!("pod `{to}` is visible as {what}, not as a peer");
    let live = |pod: &PodName| {
        shared.pod(pod).is_some_and(|handle| handle.info.borrow().state != State::Stopped)
    };
    let edge = || shared.peers.borrow().contains(&PeerEdge::new(by.clone(), to.clone()));
    match relation {
        Relation::Itself => Err(Refusal::invalid(other("SelfPod"))),
        Relation::Peer | Relation::Below if edge() && live(to) => Ok(()),
        Relation::Below if !edge() => Err(Refusal::invalid(other("SpawnedChild"))),
        Relation::Stranger => Err(stranger(shared, by, to)),
        Relation::Peer | Relation::Below => Err(Refusal::invalid(stopped(to.as_str()))),
    }
}
