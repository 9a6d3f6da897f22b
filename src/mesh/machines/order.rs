//! The order in which a machine takes what its stream holds.
//!
//! The server hands over several messages at a time. After a lost connection it goes on with new ones, and repeats what
//! was not acknowledged only after a while, so a message may come before an earlier one. It is kept back until that one
//! has come, or until it is certain that there is none: the server repeats unacknowledged messages in their order, so
//! whatever precedes a message comes, on one connection, before that message comes for the second time.

use std::collections::BTreeMap;

/// What was handed over on one connection, by its place in the stream.
#[derive(Debug)]
pub struct InOrder<T> {
    /// The place of the message that is due.
    next: u64,
    /// The highest place that was taken.
    taken: u64,
    early: BTreeMap<u64, T>,
}

impl<T> InOrder<T> {
    /// `taken`: the place of the message that was taken last; 0: none was.
    pub fn after(taken: u64) -> Self {
        Self { next: taken + 1, taken, early: BTreeMap::new() }
    }

    /// The highest place that was taken; 0 if none was, and at the beginning of a new stream.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// What can be taken now that a message at a place has come, with the places; the message itself is among it unless
    /// it is kept back. `is_repeated`: the server has handed it over before.
    pub fn admit(&mut self, place: u64, is_repeated: bool, message: T) -> Vec<(u64, T)> {
        if place < self.next {
            if is_repeated {
                return vec![(place, message)];
            }
            // The server lost what it knew, or has a new stream: earlier messages may still come.
            *self = Self::after(0);
        }
        let comes_again = self.early.insert(place, message).is_some();
        if !comes_again {
            return self.due();
        }
        let later = self.early.split_off(&(place + 1));
        let due = std::mem::replace(&mut self.early, later);
        self.next = place + 1;
        due.into_iter().chain(self.due()).collect()
    }

    /// Removes what follows without a gap.
    fn due(&mut self) -> Vec<(u64, T)> {
        let mut due = Vec::new();
        while let Some(message) = self.early.remove(&self.next) {
            due.push((self.next, message));
            self.next += 1;
        }
        due
    }

    /// What was admitted is taken, or could not be from a place on: that comes again, and what follows it waits.
    pub fn note(&mut self, taken: Result<(), u64>) {
        if let Err(place) = taken {
            self.next = place;
            self.early.clear();
        }
        // What was taken before comes again, too, and may fail alone.
        self.taken = self.taken.max(self.next.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places that are taken when these come, with whether the server repeats them.
    fn taken(order: &mut InOrder<()>, comes: &[(u64, bool)]) -> Vec<u64> {
        let admit = |(place, repeated): &(u64, bool)| order.admit(*place, *repeated, ());
        comes.iter().flat_map(admit).map(|(place, ())| place).collect()
    }

    #[test]
    fn a_message_that_comes_before_an_earlier_one_waits_for_it() {
        let mut order = InOrder::after(7);
        assert_eq!(taken(&mut order, &[(8, false), (11, false), (12, false)]), [8]);
        order.note(Ok(()));
        assert_eq!(order.taken(), 8);
        assert_eq!(taken(&mut order, &[(9, true), (10, true), (13, false)]), [9, 10, 11, 12, 13]);
        // What was taken and is repeated, because its acknowledgement was lost, is acknowledged again.
        assert_eq!(taken(&mut order, &[(12, true), (14, false)]), [12, 14]);
        order.note(Ok(()));
        assert_eq!(order.taken(), 14);
    }

    #[test]
    fn a_message_is_taken_when_it_comes_again_and_none_before_it_came() {
        let mut order = InOrder::after(0);
        // Nothing is known of 1 to 3: they may be gone.
        assert!(taken(&mut order, &[(4, false), (5, false), (7, true)]).is_empty());
        assert_eq!(taken(&mut order, &[(5, true)]), [4, 5]);
        assert_eq!(taken(&mut order, &[(6, false)]), [6, 7]);
    }

    #[test]
    fn a_message_that_could_not_be_taken_comes_before_those_that_follow_it() {
        let mut order = InOrder::after(0);
        assert_eq!(taken(&mut order, &[(1, false), (2, false), (3, false)]), [1, 2, 3]);
        order.note(Err(2));
        assert_eq!(order.taken(), 1);
        assert_eq!(taken(&mut order, &[(4, false), (2, true), (3, true)]), [2, 3, 4]);
    }

    #[test]
    fn one_that_comes_again_and_cannot_be_taken_makes_no_new_ones_of_those_behind_it() {
        let mut order = InOrder::after(12);
        assert_eq!(taken(&mut order, &[(5, true)]), [5]);
        order.note(Err(5));
        assert_eq!(order.taken(), 12);
        assert_eq!(taken(&mut order, &[(5, true), (7, true), (7, true)]), [5, 7]);
        order.note(Ok(()));
        assert_eq!(order.taken(), 12);
        assert_eq!(taken(&mut order, &[(13, false), (13, true)]), [13]);
        order.note(Ok(()));
        assert_eq!(order.taken(), 13);
    }

    #[test]
    fn a_new_stream_is_taken_from_its_beginning() {
        let mut order = InOrder::after(500);
        assert_eq!(taken(&mut order, &[(4, false), (1, true), (2, true), (3, true)]), [1, 2, 3, 4]);
        assert_eq!(order.taken(), 0);
        order.note(Ok(()));
        assert_eq!(order.taken(), 4);
        let mut order = InOrder::after(500);
        assert_eq!(taken(&mut order, &[(1, false), (3, false), (2, true)]), [1, 2, 3]);
    }
}
