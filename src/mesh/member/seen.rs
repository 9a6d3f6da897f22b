//! The messages that a member which confirms was given last. One that comes again, because its sender did not see
//! its acknowledgement, is answered as before and not given twice.

use crate::mesh::envelope::Fate;
use crate::mesh::id::Id;
use std::collections::{HashMap, VecDeque};

/// Messages that are known. An older one that comes again is given again: whoever keeps messages for ever knows
/// their ids for ever.
const KNOWN: usize = 4096;

/// The sender of a message, its addressee and its id. Only the gateway to other machines is given messages to several names.
type Key = (String, String, Id);

#[derive(Default)]
pub(super) struct Seen {
    /// `None`: it was given, and what becomes of it is not known yet.
    fates: HashMap<Key, Option<Fate>>,
    order: VecDeque<Key>,
    /// How many messages are neither confirmed nor denied.
    open: usize,
}

impl Seen {
    /// Notes a message; what became of it, if it is known.
    pub(super) fn note(&mut self, [from, to]: [&str; 2], id: Id) -> Option<Option<Fate>> {
        let key = (from.to_owned(), to.to_owned(), id);
        if let Some(fate) = self.fates.get(&key) {
            return Some(fate.clone());
        }
        if self.order.len() >= KNOWN
            && let Some(oldest) = self.order.pop_front()
            && self.fates.remove(&oldest) == Some(None)
        {
            self.open -= 1;
        }
        self.open += 1;
        self.order.push_back(key.clone());
        self.fates.insert(key, None);
        None
    }

    pub(super) fn note_fate(&mut self, from: String, to: String, id: Id, fate: Fate) {
        if let Some(known) = self.fates.get_mut(&(from, to, id)) {
            self.open -= usize::from(known.is_none());
            *known = Some(fate);
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
    fn the_newest_messages_are_known_by_sender_addressee_and_id() {
        let mut ids = crate::mesh::id::Ids::new();
        let (mut seen, first) = (Seen::default(), ids.next());
        assert_eq!(seen.note(["a", "me"], first), None);
        assert_eq!(seen.note(["a", "me"], first), Some(None));
        assert_eq!(seen.note(["b", "me"], first), None);
        assert_eq!(seen.note(["a", "casa:x"], first), None, "it goes to another one");
        seen.note_fate("a".into(), "casa:x".into(), first, Fate::Kept);
        seen.note_fate("a".into(), "me".into(), first, Fate::Kept);
        seen.note_fate("b".into(), "me".into(), first, Fate::Denied("full".into()));
        assert!(seen.is_settled());
        assert_eq!(seen.note(["a", "me"], first), Some(Some(Fate::Kept)));
        assert_eq!(seen.note(["b", "me"], first), Some(Some(Fate::Denied("full".into()))));
        for _ in 0..KNOWN {
            seen.note(["c", "me"], ids.next());
        }
        assert_eq!((seen.fates.len(), seen.note(["a", "me"], first)), (KNOWN, None));
        assert_eq!(seen.open, KNOWN);
    }
}
