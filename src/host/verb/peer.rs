//! Peer: two Pods that may message each other and nothing else.

use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::name::InvalidName;
use crate::protocol::{Event, PeerEdge, PeerRegistered, PodName, Refusal};

pub(crate) struct Peer {
    pub(crate) name: String,
}

impl Verb for Peer {
    const ALLOWED: Caller = Caller::Itself;

    /// That they are peers already changes nothing.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let source = cx.to()?.clone();
        crate::crash_point!("peer-asked");
        let result = cx.family(move |family| {
            let (source, peer) = pair(family, &source, &self.name)?;
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
