//! Which runs of a Pod belong to the message of this program, while other programs send messages to the
//! same Pod.

use yoi::protocol::{Begun, Entry, EntryId, Fact, RunOutcome};

/// Follows the log of one Pod.
#[derive(Clone, Debug, Default)]
pub struct OwnRuns {
    /// The message of this program, once the host has accepted it.
    message: Option<Begun>,
    /// The run of that message, once it has begun.
    own: Option<EntryId>,
    /// The last input, with its id in the queue if it waited there and with its run.
    last: Option<(EntryId, Option<String>, EntryId)>,
    /// The run of the last entry.
    current: Option<EntryId>,
}

impl OwnRuns {
    /// Begins behind the last entry of a log. Unless that ends a run, a run may be under way.
    pub fn behind(last: Option<&Entry>) -> Self {
        let is_under_way = |entry: &&Entry| RunOutcome::of(&entry.fact).is_none();
        Self { current: last.filter(is_under_way).and_then(Entry::run), ..Self::default() }
    }

    /// The host accepted the message of this program.
    pub fn accepted(&mut self, message: Begun) {
        let last = self.last.iter().find(|(id, taken, _)| message.names(*id, taken.as_deref()));
        self.own = last.map(|(_, _, run)| *run).or(self.own);
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
        self.current = entry.run().or(self.current);
        let (Fact::UserInput { taken, .. }, Some(id), Some(run)) =
            (&entry.fact, entry.id, entry.run())
        else {
            return;
        };
        if self.message.as_ref().is_some_and(|own| own.names(id, taken.as_deref())) {
            self.own = Some(run);
        }
        self.last = Some((id, taken.clone(), run));
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
        self.current.is_some() && self.current != self.own
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
        runs.note(&Entry { run: own.id, ..input(Some("steered into the run")) });
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
