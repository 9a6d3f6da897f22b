//! What a Pod may ask of whom. A person may ask anything; a Pod commands what is below it, may send
//! a word to its peers, and sees nothing else.

use crate::host::Shared;
use crate::host::relations::{Relation, Relations};
use crate::protocol::{Method, PodName, Refusal, State};
use crate::tools::pods::{missing, not_spawned};

/// Whether `by` may give `target` this order; the order as it is carried out.
pub(crate) fn check(
    shared: &Shared,
    by: &PodName,
    target: Option<&PodName>,
    method: Method,
) -> Result<Method, Refusal> {
    let to = target.unwrap_or(by);
    let relation = Relations::now(shared).relation(by, to);
    match method {
        Method::Send { .. } => {
            below(relation, to)?;
            awake(shared, to)?;
            Ok(method)
        }
        Method::ReadOutput | Method::StopPods { .. } => below(relation, to).map(|()| method),
        Method::Notify { message } => peer(shared, by, to, relation, &message),
        Method::Restore { ref name } => {
            seen(shared, by, name)?;
            own(relation).map(|()| method)
        }
        Method::Spawn(_) | Method::ListPods | Method::Peer { .. } | Method::Unpeer { .. } => {
            own(relation).map(|()| method)
        }
        Method::PodEvent(_)
        | Method::Resume
        | Method::Cancel
        | Method::Pause
        | Method::Compact
        | Method::ListRewindTargets
        | Method::Rewind { .. }
        | Method::Stop
        | Method::ListCompletions { .. }
        | Method::Watch
        | Method::Page { .. }
        | Method::Fetch { .. }
        | Method::New(_)
        | Method::Open { .. }
        | Method::Remove
        | Method::SetModel { .. }
        | Method::EditQueued { .. }
        | Method::Steer { .. }
        | Method::Seen
        | Method::HostStatus
        | Method::RestorePods { .. }
        | Method::Lend { .. }
        | Method::Reclaim { .. }
        | Method::Who { .. }
        | Method::Decide { .. }
        | Method::ListPolicy
        | Method::Revoke { .. }
        | Method::Fork { .. } => Err(for_people()),
    }
}

fn for_people() -> Refusal {
    Refusal::invalid("only a person may do that")
}

fn own(relation: Relation) -> Result<(), Refusal> {
    if relation == Relation::Itself { Ok(()) } else { Err(for_people()) }
}

fn below(relation: Relation, to: &PodName) -> Result<(), Refusal> {
    let known = relation == Relation::Below;
    if known { Ok(()) } else { Err(Refusal::invalid(not_spawned(to.as_str()))) }
}

/// A stopped child takes no message.
fn awake(shared: &Shared, to: &PodName) -> Result<(), Refusal> {
    if is_live(shared, to) {
        return Ok(());
    }
    let text = format!("pod `{to}` is stopped; bring it back with RestorePod, then send again");
    Err(Refusal::invalid(text))
}

fn is_live(shared: &Shared, pod: &PodName) -> bool {
    shared.pod(pod).is_some_and(|handle| handle.info.borrow().state != State::Stopped)
}

/// Whether `by` can see the Pod of this name at all.
fn seen(shared: &Shared, by: &PodName, name: &str) -> Result<(), Refusal> {
    let none = || Refusal::invalid(missing(name));
    let pod = PodName::parse(name).map_err(|_| none())?;
    if Relations::now(shared).relation(by, &pod) != Relation::Stranger {
        return Ok(());
    }
    Err(stranger(shared, by, &pod))
}

fn stranger(shared: &Shared, by: &PodName, pod: &PodName) -> Refusal {
    if shared.pod(pod).is_none() && shared.damaged_row(pod).is_none() {
        return Refusal::invalid(missing(pod.as_str()));
    }
    Refusal::invalid(format!("pod `{pod}` is not visible to `{by}`; ListPods shows what is"))
}

/// A word to a live peer, under the name of who says it.
fn peer(
    shared: &Shared,
    by: &PodName,
    to: &PodName,
    relation: Relation,
    message: &str,
) -> Result<Method, Refusal> {
    let other = |what: &str| format!("pod `{to}` is visible as {what}, not as a peer");
    match relation {
        Relation::Itself => Err(Refusal::invalid(other("SelfPod"))),
        Relation::Below => Err(Refusal::invalid(other("SpawnedChild"))),
        Relation::Stranger => Err(stranger(shared, by, to)),
        Relation::Peer if !is_live(shared, to) => Err(Refusal::invalid(format!(
            "peer pod `{to}` is not live/reachable; restore it before sending"
        ))),
        Relation::Peer => {
            Ok(Method::Notify { message: format!("[Peer message from `{by}`]\n{message}") })
        }
    }
}
