//! What the events of one Pod say about its runs: which input began, and how it ended.

use crate::headless::exit::{Exit, Failure};
use yoi::protocol::{Entry, EntryId, Event, Fact, RunOutcome, RunResult};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub exit: Exit,
    /// The sentence to close with, when it is not simply done.
    pub why: Option<String>,
}

impl End {
    /// What the program makes of it when it was waited for.
    pub fn result(&self) -> Result<(), Failure> {
        match self.exit {
            Exit::Finished => Ok(()),
            exit => Err(Failure::new(exit, self.why.clone().unwrap_or_default())),
        }
    }
}

/// The inputs and ends of a Pod's runs, in the order they were seen.
#[derive(Debug, Default)]
pub struct RunTracker {
    seen: Vec<Mark>,
    /// Set when `seen` comes from the tail of a transcript: an input that is not in it lies before.
    tail: bool,
}

#[derive(Debug)]
enum Mark {
    Input { id: EntryId, taken: Option<String> },
    End(End),
}

/// An input as its acknowledgement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is in the log.
    Entry(EntryId),
    /// It waits in the queue, under this id.
    Queued(String),
}

impl Begun {
    /// What a reply says was begun, if it says so.
    pub fn of(reply: &Event) -> Option<Self> {
        match reply {
            Event::Accepted { queued: Some(row), .. } => Some(Self::Queued(row.clone())),
            Event::Accepted { entry: Some(entry), .. } => Some(Self::Entry(*entry)),
            _ => None,
        }
    }

    fn is(&self, mark: &Mark) -> bool {
        match (self, mark) {
            (Self::Entry(entry), Mark::Input { id, .. }) => entry == id,
            (Self::Queued(row), Mark::Input { taken, .. }) => taken.as_ref() == Some(row),
            (_, Mark::End(_)) => false,
        }
    }
}

impl RunTracker {
    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Notes what an event says. Events of other Pods must not come here.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Entry { entry, .. } => self.note_entry(entry),
            // The error before it said why.
            Event::RunEnd { result: RunResult::Failed, .. } => {}
            Event::RunEnd { result, .. } => {
                self.seen.push(Mark::End(End { exit: (*result).into(), why: said(*result) }));
            }
            Event::Error { message, .. } => self.seen.push(Mark::End(failed(message))),
            _ => {}
        }
    }

    /// Forgets everything and reads the tail of a transcript instead, after events were missed.
    pub fn reread<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) {
        self.seen.clear();
        self.tail = true;
        for entry in entries {
            self.note_entry(entry);
            let (exit, why) = match RunOutcome::of(&entry.fact) {
                None | Some(RunOutcome::RolledBack) => continue,
                Some(RunOutcome::Finished) => (Exit::Finished, None),
                Some(RunOutcome::Failed(why)) => (Exit::Failed, Some(why.to_owned())),
                Some(RunOutcome::CutOff(why)) => (Exit::StoppedShort, Some(why.to_owned())),
                Some(outcome) => (Exit::StoppedShort, outcome.result().and_then(said)),
            };
            self.seen.push(Mark::End(End { exit, why }));
        }
    }

    fn note_entry(&mut self, entry: &Entry) {
        let (Fact::UserInput { taken, .. }, Some(id)) = (&entry.fact, entry.id) else { return };
        if !self.seen.iter().any(|mark| Begun::Entry(id).is(mark)) {
            self.seen.push(Mark::Input { id, taken: taken.clone() });
        }
    }

    /// How the run ended that took this input, once it has.
    pub fn end_of(&self, begun: &Begun) -> Option<&End> {
        let found = self.seen.iter().position(|mark| begun.is(mark));
        let before = self.tail && matches!(begun, Begun::Entry(_));
        let at = found.or(before.then_some(0))?;
        self.seen[at..].iter().find_map(Mark::end)
    }

    /// The last end that was seen.
    pub fn last_end(&self) -> Option<&End> {
        self.seen.iter().rev().find_map(Mark::end)
    }
}

impl Mark {
    fn end(&self) -> Option<&End> {
        match self {
            Self::End(end) => Some(end),
            Self::Input { .. } => None,
        }
    }
}

fn said(result: RunResult) -> Option<String> {
    let why = match result {
        RunResult::Finished => return None,
        RunResult::Paused => "the turn was paused: `:resume` goes on",
        RunResult::LimitReached => {
            "the turn reached its limit of model requests: `:resume` goes on"
        }
        RunResult::RolledBack => "the turn was taken back before anything came of it",
        RunResult::Cancelled => "the turn was cancelled",
        RunResult::Failed => "the turn failed",
    };
    Some(why.to_owned())
}

fn failed(message: &str) -> End {
    End { exit: Exit::Failed, why: Some(message.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::ErrorCode;

    fn input() -> Entry {
        Entry::new(Fact::UserInput { segments: vec![], taken: None, from: None })
    }

    fn entry(entry: &Entry) -> Event {
        Event::Entry { entry: Box::new(entry.clone()), cut_bytes: None }
    }

    #[test]
    fn only_the_end_behind_its_own_input_counts() {
        let (first, second) = (input(), input());
        let mut marks = RunTracker::default();
        marks.note(&entry(&first));
        marks.note(&Event::RunEnd { result: RunResult::Paused, entry: None });
        marks.note(&entry(&second));
        let id = |entry: &Entry| Begun::Entry(entry.id.expect("a new entry has an id"));
        assert_eq!(marks.end_of(&id(&first)).map(|end| end.exit), Some(Exit::StoppedShort));
        assert_eq!(marks.end_of(&id(&second)), None);
        marks.note(&Event::RunEnd { result: RunResult::Finished, entry: None });
        assert_eq!(marks.end_of(&id(&second)).map(|end| end.exit), Some(Exit::Finished));
    }

    #[test]
    fn a_queued_input_is_known_by_its_row() {
        let taken =
            Entry::new(Fact::UserInput { segments: vec![], taken: Some("q1".into()), from: None });
        let mut marks = RunTracker::default();
        marks.note(&Event::RunEnd { result: RunResult::Finished, entry: None });
        let queued = Begun::Queued("q1".into());
        assert_eq!(marks.end_of(&queued), None);
        marks.note(&entry(&taken));
        marks.note(&Event::RunEnd { result: RunResult::LimitReached, entry: None });
        assert_eq!(marks.end_of(&queued).map(|end| end.exit), Some(Exit::StoppedShort));
    }

    #[test]
    fn an_error_ends_the_run_and_keeps_its_sentence() {
        let first = input();
        let mut marks = RunTracker::default();
        marks.note(&entry(&first));
        let message = "anthropic at 127.0.0.1: connection refused".to_owned();
        marks.note(&Event::Error { code: ErrorCode::ProviderError, message: message.clone() });
        let end = marks.end_of(&Begun::Entry(first.id.expect("an id"))).expect("an end");
        assert_eq!(*end, End { exit: Exit::Failed, why: Some(message) });
    }

    #[test]
    fn the_log_tells_the_end_that_was_missed() {
        let first = input();
        let done = Entry::new(Fact::RunCompleted { interrupted: false, result: "finished".into() });
        let mut marks = RunTracker::default();
        marks.reread([&first, &done].into_iter());
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
        assert!(marks.end_of(&Begun::Entry(first.id.expect("an id"))).is_some());
    }
}
