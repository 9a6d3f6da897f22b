//! Peers: two Pods that may message each other and nothing else.

use crate::host::supervisor::{Supervisor, done, internal};
use crate::protocol::PeerRegistered;
use crate::protocol::{Event, PeerEdge, PodName, Refusal};
use std::sync::Arc;

impl Supervisor {
    /// Makes two Pods peers of each other; that they are already changes nothing.
    pub(super) async fn peer(&self, source: PodName, name: &str) -> Result<Event, Refusal> {
        let (source, peer) = self.pair(&source, name)?;
        let edge = PeerEdge::new(source.clone(), peer.clone());
        crate::crash_point!("peer-asked");
        let new = self.shared.store.add_peer(&edge).await.map_err(internal)?;
        crate::crash_point!("peer-stored");
        if new {
            self.shared.peers.send_modify(|peers| Arc::make_mut(peers).push(edge));
            let (source, peer) = (source.clone(), peer.clone());
            self.shared.feed(None, None, &Event::Peered { source, peer });
        }
        Ok(Event::PeerRegistered { result: PeerRegistered { source, peer } })
    }

    /// Ends what `peer` made.
    pub(super) async fn unpeer(&self, source: PodName, name: &str) -> Result<Event, Refusal> {
        let (source, peer) = self.pair(&source, name)?;
        let edge = PeerEdge::new(source.clone(), peer.clone());
        if !self.shared.store.remove_peer(&edge).await.map_err(internal)? {
            return Err(Refusal::invalid(format!("{source} and {peer} are no peers")));
        }
        crate::crash_point!("unpeer-stored");
        self.shared.peers.send_modify(|peers| Arc::make_mut(peers).retain(|other| *other != edge));
        self.shared.feed(None, None, &Event::Unpeered { source, peer });
        Ok(done())
    }

    /// Both ends under their own names, if they can be a pair.
    fn pair(&self, source: &PodName, name: &str) -> Result<(PodName, PodName), Refusal> {
        let invalid = |e| Refusal::invalid(format!("pod store error: {e}"));
        let peer = PodName::parse(name).map_err(invalid)?;
        let source = self.pod(source)?.name;
        if peer.key() == source.key() {
            let text = format!("pod `{source}` cannot be registered as a peer of itself");
            return Err(Refusal::invalid(text));
        }
        let missing = || Refusal::invalid(format!("pod `{peer}` does not exist"));
        let peer = self.shared.pod(&peer).ok_or_else(missing)?.name;
        Ok((source, peer))
    }

    /// The store has dropped the relations of a Pod that is gone.
    pub(super) fn drop_peers_of(&self, name: &PodName) {
        self.shared.peers.send_if_modified(|peers| {
            let before = peers.len();
            Arc::make_mut(peers).retain(|edge| edge.other(name).is_none());
            peers.len() != before
        });
    }
}
