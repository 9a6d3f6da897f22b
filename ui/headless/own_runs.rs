//! Which runs of a Pod belong to the message of this program, while other programs send messages to the
//! same Pod.

use yoi::protocol::{Begun, Entry, EntryId, Fact, RunOutcome};

/// Follows the log of one Pod.
#[derive(Clone, Debug)]
pub struct OwnRuns {
    /// The message of this program, once the host has accepted it.
    message: Option<Begun>,
    /// The input that began the last run: its entry, and its id in the queue if it waited there.
    last: Option<(EntryId, Option<String>)>,
    /// Whether the last run has not ended.
    is_under_way: bool,
    whose: Whose,
}

/// Whose message began the last run. A run that a child event starts belongs to the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// No run has begun yet.
    NoOnes,
    Own,
    Other,
}

impl OwnRuns {
    /// Begins behind the last entry of a log. Unless that ends a run, a run may be under way.
    pub fn behind(last: Option<&Entry>) -> Self {
        let ends = |entry: &Entry| {
            RunOutcome::of(&entry.fact).is_some() || matches!(entry.fact, Fact::SegmentStart { .. })
        };
        let is_under_way = last.is_some_and(|entry| !ends(entry));
        let whose = if is_under_way { Whose::Other } else { Whose::NoOnes };
        Self { message: None, last: None, is_under_way, whose }
    }

    /// The host accepted the message of this program.
    pub fn accepted(&mut self, message: Begun) {
        if self.last.as_ref().is_some_and(|(id, taken)| message.names(*id, taken.as_deref())) {
            self.whose = Whose::Own;
        }
        self.message = Some(message);
    }

    /// What another reader of the same log found, with what is known of the message here.
    pub fn continued(&mut self, found: Self) {
        let message = self.message.take();
        *self = found;
        message.into_iter().for_each(|message| self.accepted(message));
    }

    /// Notes the next entry of the log.
    pub fn note(&mut self, entry: &Entry) {
        if RunOutcome::of(&entry.fact).is_some() {
            self.is_under_way = false;
        }
        let (Fact::UserInput { taken, .. }, Some(id)) = (&entry.fact, entry.id) else { return };
        if self.message.as_ref().is_some_and(|own| own.names(id, taken.as_deref())) {
            self.whose = Whose::Own;
        } else if self.whose == Whose::Own && self.is_under_way {
            // Another client put its message into the run that is under way.
            return;
        } else {
            self.whose = Whose::Other;
        }
        self.is_under_way = true;
        self.last = Some((id, taken.clone()));
    }

    /// Whether the host has accepted the message of this program.
    pub fn has_message(&self) -> bool {
        self.message.is_some()
    }

    /// Whether an input came before the host said which one this program's is.
    pub fn is_undecided(&self) -> bool {
        self.message.is_none() && self.last.is_some()
    }

    /// Whether the last run belongs to another program's message.
    pub fn is_others(&self) -> bool {
        self.whose == Whose::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(taken: Option<&str>) -> Entry {
        let taken = taken.map(str::to_owned);
        Entry::new(Fact::UserInput { segments: vec![], taken, from: None })
    }

    fn end() -> Entry {
        Entry::new(Fact::RunCompleted { interrupted: false, result: "finished".into(), work: None })
    }

    #[test]
    fn a_run_belongs_to_the_program_whose_message_began_it() {
        let mut runs = OwnRuns::behind(None);
        let own = input(None);
        runs.note(&own);
        assert!(runs.is_others(), "the reply with the id of the entry has not come yet");
        runs.accepted(Begun::Entry(own.id.expect("an id")));
        assert!(!runs.is_others());
        runs.note(&input(Some("steered into the run")));
        assert!(!runs.is_others());
        runs.note(&end());
        assert!(!runs.is_others(), "a child event may start a run that belongs to it");
        runs.note(&input(Some("other")));
        assert!(runs.is_others());
        runs.note(&end());
        assert!(runs.is_others());
    }

    #[test]
    fn what_a_later_reader_of_the_log_found_does_not_bring_an_ended_run_back() {
        let mut runs = OwnRuns::behind(None);
        let own = input(None);
        runs.accepted(Begun::Entry(own.id.expect("an id")));
        let mut later = runs.clone();
        later.note(&own);
        later.note(&end());
        runs.continued(later);
        runs.note(&input(Some("other")));
        assert!(runs.is_others());
    }

    #[test]
    fn a_queued_message_owns_the_run_that_takes_it_and_none_before() {
        let mut runs = OwnRuns::behind(Some(&input(None)));
        runs.accepted(Begun::Queued("q".into()));
        assert!(runs.is_others());
        runs.note(&end());
        runs.note(&input(Some("other")));
        assert!(runs.is_others());
        runs.note(&end());
        runs.note(&input(Some("q")));
        assert!(!runs.is_others());
    }
}
