//! The messages that a member which confirms was given last. One that comes again, because its sender did not see
//! its acknowledgement, is answered as before and not given twice.

use crate::mesh::id::Id;
use std::collections::{HashMap, VecDeque};

/// Messages that are known. An older one that comes again is given again: whoever keeps messages for ever knows
/// their ids for ever.
const KNOWN: usize = 4096;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was given and not confirmed yet.
    Open,
    Kept,
    /// For this reason.
    Denied(String),
}

#[derive(Default)]
pub(super) struct Seen {
    fates: HashMap<(String, Id), Fate>,
    order: VecDeque<(String, Id)>,
    /// How many messages are neither confirmed nor denied.
    open: usize,
}

impl Seen {
    /// Notes a message; what became of it, if it is known.
    pub(super) fn note(&mut self, from: &str, id: Id) -> Option<Fate> {
        let key = (from.to_owned(), id);
        if let Some(fate) = self.fates.get(&key) {
            return Some(fate.clone());
        }
        if self.order.len() >= KNOWN
            && let Some(oldest) = self.order.pop_front()
            && self.fates.remove(&oldest) == Some(Fate::Open)
        {
            self.open -= 1;
        }
        self.open += 1;
        self.order.push_back(key.clone());
        self.fates.insert(key, Fate::Open);
        None
    }

    pub(super) fn note_fate(&mut self, from: &str, id: Id, denied: Option<&str>) {
        if let Some(fate) = self.fates.get_mut(&(from.to_owned(), id)) {
            self.open -= usize::from(*fate == Fate::Open);
            *fate = denied.map_or(Fate::Kept, |reason| Fate::Denied(reason.to_owned()));
        }
    }
}

impl Seen {
    /// Whether each message that was given is confirmed or denied.
    pub(super) fn is_settled(&self) -> bool {
        self.open == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_are_known_by_sender_and_id() {
        let mut ids = crate::mesh::id::Ids::new();
        let (mut seen, first) = (Seen::default(), ids.next());
        assert_eq!(seen.note("a", first), None);
        assert_eq!(seen.note("a", first), Some(Fate::Open));
        assert_eq!(seen.note("b", first), None);
        seen.note_fate("a", first, None);
        seen.note_fate("b", first, Some("full"));
        assert!(seen.is_settled());
        assert_eq!(seen.note("a", first), Some(Fate::Kept));
        assert_eq!(seen.note("b", first), Some(Fate::Denied("full".into())));
        for _ in 0..KNOWN {
            seen.note("c", ids.next());
        }
        assert_eq!((seen.fates.len(), seen.note("a", first)), (KNOWN, None));
        assert_eq!(seen.open, KNOWN);
    }
}
