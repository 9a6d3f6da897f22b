//! How many messages each agent may send to each Pod: a number in a minute, all of them at once if it likes.

use crate::mesh::machines::{MachineName, address};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Pairs that are remembered. When there are as many, those whose minute is over are forgotten.
const PAIRS: usize = 4096;
/// How many pairs of one other machine have a count each. Its further agents share one count for each Pod.
const NAMES: usize = 64;
const MINUTE: Duration = Duration::from_secs(60);

/// The counts of the pairs of receiver and sender.
#[derive(Default)]
pub(crate) struct Rates(HashMap<(String, String), Count>);

/// What is left of a sender's minute.
struct Count {
    left: f64,
    at: Instant,
}

impl Rates {
    /// Counts a message; whether the sender may send it.
    pub(crate) fn count(&mut self, to: &str, from: &str, per_minute: u32, now: Instant) -> bool {
        let full = f64::from(per_minute);
        let key = self.key(to, from, now);
        if !self.0.contains_key(&key) && self.0.len() >= PAIRS {
            self.0.retain(|_, count| now.duration_since(count.at) < MINUTE);
            if self.0.len() >= PAIRS {
                // That many senders in one minute are a flood of names.
                return false;
            }
        }
        let count = self.0.entry(key).or_insert(Count { left: full, at: now });
        let grown = now.duration_since(count.at).as_secs_f64() * full / MINUTE.as_secs_f64();
        count.left = (count.left + grown).min(full);
        // A message that was sent earlier than one that was counted already comes later.
        count.at = count.at.max(now);
        if count.left < 1.0 {
            return false;
        }
        count.left -= 1.0;
        true
    }

    /// Takes back that a message was counted.
    pub(crate) fn give_back(&mut self, to: &str, from: &str) {
        let own = (to.to_owned(), from.to_owned());
        let key = match address(from) {
            Some((machine, _)) if !self.0.contains_key(&own) => shared(to, &machine),
            Some(_) | None => own,
        };
        if let Some(count) = self.0.get_mut(&key) {
            count.left += 1.0;
        }
    }

    /// The key under which a pair is counted. Another machine names its agents as it likes: the first few agents of a
    /// minute have a count each, and all others share one.
    fn key(&self, to: &str, from: &str, now: Instant) -> (String, String) {
        let key = (to.to_owned(), from.to_owned());
        let Some((machine, _)) = address(from).filter(|_| !self.0.contains_key(&key)) else {
            return key;
        };
        let shared = shared(to, &machine);
        let is_recent = |count: &Count| now.duration_since(count.at) < MINUTE;
        let recent = self.0.iter().filter(|(_, count)| is_recent(count));
        let names = recent.filter(|((_, name), _)| name.starts_with(&shared.1)).count();
        if names < NAMES { key } else { shared }
    }
}

/// The key of the count that further agents of a machine share.
fn shared(to: &str, machine: &MachineName) -> (String, String) {
    (to.to_owned(), format!("{machine}:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_its_own_minute_for_each_receiver() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let mut sent = |to: &str, from: &str, count: usize, at: Instant| {
            (0..count).filter(|_| rates.count(to, from, 6, at)).count()
        };
        assert_eq!(sent("a", "pi", 10, now), 6);
        assert_eq!((sent("b", "pi", 10, now), sent("a", "other", 10, now)), (6, 6));
        assert_eq!(sent("a", "pi", 10, now + Duration::from_secs(21)), 2);
        assert_eq!(sent("a", "pi", 10, now + Duration::from_secs(600)), 6);
    }

    #[test]
    fn a_flood_of_names_is_refused_and_forgotten_after_a_minute() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for number in 0..PAIRS {
            assert!(rates.count("a", &number.to_string(), 6, now));
        }
        assert!(!rates.count("a", "one more", 6, now));
        assert!(rates.count("a", "one more", 6, now + MINUTE));
        assert_eq!(rates.0.len(), 1);
    }

    #[test]
    fn names_that_a_machine_invents_share_a_count_and_shut_out_no_other_sender() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let mut sent = |from: &str| rates.count("a", from, 6, now);
        assert!(sent("pi"));
        let taken = (0..2 * PAIRS).filter(|number| sent(&format!("casa:{number}"))).count();
        assert_eq!(taken, NAMES + 6);
        assert!(sent("pi") && sent("new") && sent("trab:x"));
        // Names of an hour ago take no place.
        let later = now + Duration::from_secs(3600);
        let mut sent = |number: usize| rates.count("a", &format!("casa:later-{number}"), 1, later);
        assert!((0..NAMES).all(&mut sent) && (0..NAMES).all(|number| !sent(number)));
    }

    #[test]
    fn a_known_sender_goes_on_in_a_flood_and_what_was_not_sent_is_given_back() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for number in 0..PAIRS {
            assert!(rates.count("a", &number.to_string(), 2, now));
        }
        assert!(!rates.count("a", "one more", 2, now));
        assert!(rates.count("a", "7", 2, now) && !rates.count("a", "7", 2, now));
        rates.give_back("a", "7");
        assert!(rates.count("a", "7", 2, now) && !rates.count("a", "7", 2, now));
    }
}
