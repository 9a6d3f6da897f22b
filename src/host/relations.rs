//! What one Pod is to another: oneself, something below it, a peer, or a stranger.

use crate::host::Shared;
use crate::protocol::{PeerEdge, PodName};
use std::collections::HashMap;
use std::sync::Arc;

/// What a Pod is to the one that asks. Who is two things at once is the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Itself,
    /// A child or something below one.
    Below,
    Peer,
    Stranger,
}

/// The family at one moment.
pub(crate) struct Relations {
    /// The parent of each Pod that has one, both by key.
    parents: HashMap<String, String>,
    peers: Arc<Vec<PeerEdge>>,
}

impl Relations {
    pub(crate) fn now(shared: &Shared) -> Self {
        let members = shared.members.borrow().clone();
        let mut parents: HashMap<String, String> = HashMap::new();
        for (key, handle) in members.0.iter() {
            if let Some(parent) = &handle.info.borrow().parent {
                parents.insert(key.clone(), parent.key());
            }
        }
        for row in shared.damaged.borrow().iter() {
            if let Some(parent) = &row.parent {
                parents.insert(row.name.to_ascii_lowercase(), parent.key());
            }
        }
        Self { parents, peers: shared.peers.borrow().clone() }
    }

    /// What `other` is to `me`.
    pub(crate) fn relation(&self, me: &PodName, other: &PodName) -> Relation {
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
        // Never more steps than there are edges, whatever the store holds.
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

    fn kin(parents: &[(&str, &str)], peers: &[(&str, &str)]) -> Relations {
        let edge = |(a, b): &(&str, &str)| PeerEdge::new(name(a), name(b));
        Relations {
            parents: parents.iter().map(|(c, p)| ((*c).to_owned(), (*p).to_owned())).collect(),
            peers: Arc::new(peers.iter().map(edge).collect()),
        }
    }

    #[test]
    fn everything_below_is_below_and_nothing_above_or_beside() {
        let kin = kin(&[("kid", "alice"), ("baby", "kid"), ("twin", "alice")], &[]);
        assert_eq!(kin.relation(&name("alice"), &name("Baby")), Relation::Below);
        assert_eq!(kin.relation(&name("Kid"), &name("alice")), Relation::Stranger);
        assert_eq!(kin.relation(&name("kid"), &name("twin")), Relation::Stranger);
        assert_eq!(kin.relation(&name("kid"), &name("KID")), Relation::Itself);
    }

    #[test]
    fn a_child_that_is_a_peer_is_a_child() {
        let kin = kin(&[("kid", "alice")], &[("alice", "kid"), ("bob", "alice")]);
        assert_eq!(kin.relation(&name("alice"), &name("kid")), Relation::Below);
        assert_eq!(kin.relation(&name("kid"), &name("alice")), Relation::Peer);
        assert_eq!(kin.relation(&name("alice"), &name("bob")), Relation::Peer);
    }

    #[test]
    fn parents_that_are_each_others_end_the_search() {
        let kin = kin(&[("a", "b"), ("b", "a")], &[]);
        assert_eq!(kin.relation(&name("c"), &name("a")), Relation::Stranger);
    }
}
