//! What one Pod is to another: itself, a Pod below it, a peer, or a stranger.

use crate::host::Shared;
use crate::protocol::{PeerEdge, PodName};
use std::collections::HashMap;
use std::sync::Arc;

/// What a Pod is to another one. Where two relations hold, the first of this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Itself,
    /// A child or something below one.
    Below,
    Peer,
    Stranger,
}

/// What `other` is to `me` now. Costs as much as `other` has Pods above it.
pub(crate) fn relation(shared: &Shared, me: &PodName, other: &PodName) -> Relation {
    let mut parents = HashMap::new();
    let mut at = other.clone();
    while let Some(parent) = parent(shared, &at) {
        if parents.insert(at.key(), parent.key()).is_some() {
            // A circle of parents, which only a damaged store can hold.
            break;
        }
        at = parent;
    }
    Relations { parents, peers: shared.peers.borrow().clone() }.relation(me, other)
}

fn parent(shared: &Shared, name: &PodName) -> Option<PodName> {
    match shared.any_pod(name) {
        Some(handle) => handle.info.borrow().parent.clone(),
        None => shared.damaged_row(name)?.parent,
    }
}

/// The family at one moment.
struct Relations {
    /// The parent of each Pod that has one, both by key.
    parents: HashMap<String, String>,
    peers: Arc<Vec<PeerEdge>>,
}

impl Relations {
    /// What `other` is to `me`.
    fn relation(&self, me: &PodName, other: &PodName) -> Relation {
        let (mine, key) = (me.key(), other.key());
        if mine == key {
            return Relation::Itself;
        }
        if self.is_below(&mine, &key) {
            return Relation::Below;
        }
        let is_peer = |edge: &PeerEdge| edge.other(me).is_some_and(|end| end.key() == key);
        if self.peers.iter().any(is_peer) { Relation::Peer } else { Relation::Stranger }
    }

    fn is_below(&self, top: &str, key: &str) -> bool {
        let mut at = key;
        // Never more steps than there are edges, also where a damaged store holds a circle.
        for _ in 0..self.parents.len() {
            match self.parents.get(at) {
                Some(parent) if parent == top => return true,
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PodName {
        PodName::parse(text).unwrap()
    }

    fn family(parents: &[(&str, &str)], peers: &[(&str, &str)]) -> Relations {
        let edge = |(a, b): &(&str, &str)| PeerEdge::new(name(a), name(b));
        Relations {
            parents: parents.iter().map(|(c, p)| ((*c).to_owned(), (*p).to_owned())).collect(),
            peers: Arc::new(peers.iter().map(edge).collect()),
        }
    }

    #[test]
    fn everything_below_is_below_and_nothing_above_or_beside() {
        let family = family(&[("kid", "alice"), ("baby", "kid"), ("twin", "alice")], &[]);
        assert_eq!(family.relation(&name("alice"), &name("Baby")), Relation::Below);
        assert_eq!(family.relation(&name("Kid"), &name("alice")), Relation::Stranger);
        assert_eq!(family.relation(&name("kid"), &name("twin")), Relation::Stranger);
        assert_eq!(family.relation(&name("kid"), &name("KID")), Relation::Itself);
    }

    #[test]
    fn a_child_that_is_a_peer_is_a_child() {
        let family = family(&[("kid", "alice")], &[("alice", "kid"), ("bob", "alice")]);
        assert_eq!(family.relation(&name("alice"), &name("kid")), Relation::Below);
        assert_eq!(family.relation(&name("kid"), &name("alice")), Relation::Peer);
        assert_eq!(family.relation(&name("alice"), &name("bob")), Relation::Peer);
    }

    #[test]
    fn parents_that_are_each_others_end_the_search() {
        let family = family(&[("a", "b"), ("b", "a")], &[]);
        assert_eq!(family.relation(&name("c"), &name("a")), Relation::Stranger);
    }
}
