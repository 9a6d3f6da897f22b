//! Follows the runs of one Pod by its events: which input began each run, and how it ended.

use crate::headless::exit::{Exit, Failure};
use crate::wording;
use std::collections::BTreeMap;
use yoi::protocol::entry::domain;
use yoi::protocol::{Begun, Entry, EntryId, Event, Fact, Item, RunOutcome, RunResult};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub exit: Exit,
    /// The last sentence of the program, if the run did not simply finish.
    pub why: Option<String>,
}

impl End {
    /// The result of the program that waited for this run.
    pub fn result(&self) -> Result<(), Failure> {
        match self.exit {
            Exit::Finished => Ok(()),
            exit => Err(Failure::new(exit, self.why.clone().unwrap_or_default())),
        }
    }
}

/// The inputs and ends of a Pod's runs.
#[derive(Debug, Default)]
pub struct RunTracker {
    inputs: BTreeMap<EntryId, Input>,
    /// The last end of each run: the report of a child may let a run go on.
    ends: BTreeMap<EntryId, Ended>,
    last: Option<Ended>,
    /// The run of the last entry.
    current: Option<EntryId>,
    /// Whether events were missed: an unknown input may be older than the page that was read again.
    missed: bool,
    /// Why the last reply did not reach its own end, in the word of its entry.
    stopped: Option<String>,
    /// Whether the current run has an answer with words, and whether its last reply was empty.
    has_words: bool,
    is_empty: bool,
    /// The Pods that write where a call of the run could not.
    refused_by: Option<String>,
    /// The message of an error, until the end of its run comes.
    failed: Option<String>,
    /// The compaction that failed behind the last run.
    not_compacted: Option<End>,
}

#[derive(Debug)]
struct Input {
    /// Its id in the queue.
    taken: Option<String>,
    run: EntryId,
}

#[derive(Clone, Debug)]
struct Ended {
    /// The entry that says so; missing where the log failed.
    entry: Option<EntryId>,
    end: End,
}

impl RunTracker {
    /// Whether no run was seen yet.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.last.is_none()
    }

    /// Notes an event of this Pod.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Entry { entry, .. } => self.note_entry(entry),
            Event::Error { message, .. } => self.failed = Some(message.clone()),
            Event::RunEnd { result, entry, run } => {
                let end = match (result, self.failed.take()) {
                    (RunResult::Failed, Some(message)) => self.failed(&message),
                    _ => End { exit: (*result).into(), why: self.said(*result) },
                };
                self.end(*run, *entry, end);
            }
            Event::CompactStart => self.not_compacted = None,
            // Within a run this is no end: the run goes on.
            Event::CompactFailed { error } => {
                let why = Some(format!("the history could not be compacted: {error}"));
                self.not_compacted = Some(End { exit: Exit::Failed, why });
            }
            _ => {}
        }
    }

    fn end(&mut self, run: Option<EntryId>, entry: Option<EntryId>, mut end: End) {
        (self.stopped, self.not_compacted) = (None, None);
        let is_empty = std::mem::take(&mut self.is_empty);
        let has_words = std::mem::take(&mut self.has_words);
        if is_empty && !has_words && end.exit == Exit::Finished {
            // The entry itself is shown as a note.
            end = End { exit: Exit::Failed, why: None };
        }
        if let Some(writers) = self.refused_by.take().filter(|_| end.exit == Exit::Finished) {
            let first = writers.split(", ").next().unwrap_or_default();
            let why = format!(
                "a change was refused, because {writers} writes there: send again when that run has ended, or send \
                 to it with --pod {first}"
            );
            end = End { exit: Exit::Refused, why: Some(why) };
        }
        let ended = Ended { entry, end };
        if let Some(run) = run.or(self.current)
            && ended.is_behind(self.ends.get(&run))
        {
            self.ends.insert(run, ended.clone());
        }
        if ended.is_behind(self.last.as_ref()) {
            self.last = Some(ended);
        }
    }

    /// Reads the tail of a transcript after events were missed.
    pub fn reread<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) {
        self.missed = true;
        for entry in entries {
            self.note_entry(entry);
            let (exit, why) = match RunOutcome::of(&entry.fact) {
                None => continue,
                Some(RunOutcome::Finished | RunOutcome::Yielded) => (Exit::Finished, None),
                Some(RunOutcome::Failed(why)) => {
                    let End { exit, why } = self.failed(why);
                    (exit, why)
                }
                Some(RunOutcome::CutOff(why)) => (Exit::StoppedShort, Some(why.to_owned())),
                Some(outcome) => {
                    (Exit::StoppedShort, outcome.result().and_then(|result| self.said(result)))
                }
            };
            self.end(entry.run, entry.id, End { exit, why });
        }
    }

    fn failed(&self, message: &str) -> End {
        let declined = self.stopped.as_deref() == Some("refusal");
        let exit = if declined { Exit::Refused } else { Exit::Failed };
        End { exit, why: Some(message.to_owned()) }
    }

    fn note_entry(&mut self, entry: &Entry) {
        self.current = entry.run().or(self.current);
        match &entry.fact {
            Fact::Extension { domain, payload } if domain == domain::STOPPED => {
                self.stopped = payload["reason"].as_str().map(str::to_owned);
            }
            Fact::Extension { domain, payload } if domain == domain::TURN => {
                let refused = payload["refused"].as_bool() == Some(true);
                self.refused_by = refused.then(|| wording::context::writers(payload));
            }
            fact if fact.is_empty_answer() => self.is_empty = true,
            Fact::AssistantItem { item: Item::Message { .. }, .. } => {
                (self.stopped, self.has_words) = (None, true);
            }
            // A later reply, or the next run.
            Fact::AssistantItem { .. } | Fact::Invoke { .. } => self.stopped = None,
            _ => {}
        }
        let (Fact::UserInput { taken, .. }, Some(id)) = (&entry.fact, entry.id) else { return };
        let input = Input { taken: taken.clone(), run: entry.run.unwrap_or(id) };
        self.inputs.insert(id, input);
    }

    /// The last sentence about a run that ended so.
    fn said(&self, result: RunResult) -> Option<String> {
        let why = match (result, self.stopped.as_deref()) {
            (RunResult::Finished, _) => return None,
            (RunResult::Paused, _) => "the run was paused: :resume continues",
            (RunResult::LimitReached, Some("max_tokens")) => {
                "the replies were cut by their limit of output tokens: a message continues"
            }
            (RunResult::LimitReached, Some("pause")) => {
                "the provider paused its reply too often: a message continues"
            }
            (RunResult::LimitReached, _) => {
                "the run reached its limit of model requests: a message continues"
            }
            (RunResult::RolledBack, _) => "the run was taken back before an answer began",
            (RunResult::Cancelled, _) => "the run was cancelled",
            (RunResult::Failed, _) => "the run failed",
        };
        Some(why.to_owned())
    }

    /// Whether this input is in the log.
    pub fn has(&self, begun: &Begun) -> bool {
        self.inputs.iter().any(|(id, input)| begun.names(*id, input.taken.as_deref()))
    }

    /// Whether the last input of the log is one of these. If no input was seen, one that was recorded at once is.
    pub fn answers_one_of(&self, begun: &[Begun]) -> bool {
        match self.inputs.last_key_value() {
            Some((id, input)) => begun.iter().any(|one| one.names(*id, input.taken.as_deref())),
            None => begun.iter().any(|begun| matches!(begun, Begun::Entry(_))),
        }
    }

    /// How the run of an input that no longer waits ended last, once it has.
    pub fn end_of(&self, begun: &Begun) -> Option<&End> {
        let named = |(id, input): &(&EntryId, &Input)| begun.names(**id, input.taken.as_deref());
        let (run, since) = match (self.inputs.iter().find(named), begun) {
            (Some((id, input)), _) => (input.run, Some(*id)),
            (None, Begun::Entry(id)) => (*id, Some(*id)),
            (None, Begun::Queued(_)) => (self.current.filter(|_| self.missed)?, None),
        };
        // A run that was paused may have gone on with the input.
        let is_later = |ended: &&Ended| ended.entry.is_none_or(|entry| Some(entry) > since);
        self.ends.get(&run).filter(is_later).map(|ended| &ended.end)
    }

    /// The end of the last run, or of the compaction that failed behind it.
    pub fn last_end(&self) -> Option<&End> {
        self.not_compacted.as_ref().or(self.last.as_ref().map(|ended| &ended.end))
    }
}

impl Ended {
    /// Whether it came after the known end, if there is one. An end without an entry is the latest.
    fn is_behind(&self, known: Option<&Self>) -> bool {
        let (Some(known), Some(own)) = (known.and_then(|known| known.entry), self.entry) else {
            return true;
        };
        known <= own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::ErrorCode;

    fn input() -> Entry {
        Entry::new(Fact::UserInput { segments: vec![], taken: None, from: None })
    }

    fn ended(result: RunResult) -> Event {
        Event::RunEnd { result, entry: None, run: None }
    }

    fn entry(entry: &Entry) -> Event {
        Event::Entry { entry: Box::new(entry.clone()), cut_bytes: None }
    }

    #[test]
    fn only_the_end_behind_its_own_input_counts() {
        let (first, second) = (input(), input());
        let mut marks = RunTracker::default();
        marks.note(&entry(&first));
        marks.note(&ended(RunResult::Paused));
        marks.note(&entry(&second));
        let id = |entry: &Entry| Begun::Entry(entry.id.expect("a new entry has an id"));
        assert_eq!(marks.end_of(&id(&first)).map(|end| end.exit), Some(Exit::StoppedShort));
        assert_eq!(marks.end_of(&id(&second)), None);
        marks.note(&ended(RunResult::Finished));
        assert_eq!(marks.end_of(&id(&second)).map(|end| end.exit), Some(Exit::Finished));
    }

    #[test]
    fn a_run_belongs_to_the_message_that_came_last() {
        let (first, second) = (input(), input());
        let id = |entry: &Entry| Begun::Entry(entry.id.expect("a new entry has an id"));
        let mut marks = RunTracker::default();
        assert!(marks.answers_one_of(&[id(&first)]), "its entry was committed");
        assert!(!marks.answers_one_of(&[Begun::Queued("q".into())]));
        marks.note(&entry(&first));
        marks.note(&ended(RunResult::Finished));
        assert!(marks.answers_one_of(&[id(&first)]), "a child event may begin another run");
        marks.note(&entry(&second));
        assert!(!marks.answers_one_of(&[id(&first)]));
        assert!(marks.answers_one_of(&[id(&first), id(&second)]));
    }

    #[test]
    fn a_queued_input_is_known_by_its_row() {
        let taken =
            Entry::new(Fact::UserInput { segments: vec![], taken: Some("q1".into()), from: None });
        let mut marks = RunTracker::default();
        marks.note(&ended(RunResult::Finished));
        let queued = Begun::Queued("q1".into());
        assert_eq!(marks.end_of(&queued), None);
        marks.note(&entry(&taken));
        marks.note(&ended(RunResult::LimitReached));
        assert_eq!(marks.end_of(&queued).map(|end| end.exit), Some(Exit::StoppedShort));
    }

    #[test]
    fn the_end_of_a_run_that_another_message_began_is_not_the_own_end() {
        let (first, second) = (input(), input());
        let mut marks = RunTracker::default();
        let own = Begun::Entry(first.id.expect("an id"));
        marks.note(&entry(&first));
        marks.note(&ended(RunResult::Finished));
        marks.note(&entry(&second));
        marks.note(&ended(RunResult::Paused));
        assert_eq!(marks.end_of(&own).map(|end| end.exit), Some(Exit::Finished));
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::StoppedShort));
    }

    #[test]
    fn an_error_ends_the_run_and_keeps_its_sentence() {
        let first = input();
        let mut marks = RunTracker::default();
        marks.note(&entry(&first));
        let message = "anthropic at 127.0.0.1: connection refused".to_owned();
        marks.note(&Event::Error { code: ErrorCode::ProviderError, message: message.clone() });
        marks.note(&ended(RunResult::Failed));
        let end = marks.end_of(&Begun::Entry(first.id.expect("an id"))).expect("an end");
        assert_eq!(*end, End { exit: Exit::Failed, why: Some(message) });
    }

    #[test]
    fn a_declined_reply_counts_for_its_own_run_only() {
        let declined = Entry::extension(domain::STOPPED, serde_json::json!({"reason": "refusal"}));
        let failed = || Event::Error { code: ErrorCode::ProviderError, message: "no".into() };
        let exit = |marks: &RunTracker| marks.last_end().map(|end| end.exit);
        let mut marks = RunTracker::default();
        marks.note(&entry(&declined));
        marks.note(&failed());
        marks.note(&ended(RunResult::Failed));
        assert_eq!(exit(&marks), Some(Exit::Refused));
        marks.note(&entry(&declined));
        marks.note(&ended(RunResult::Finished));
        marks.note(&failed());
        marks.note(&ended(RunResult::Failed));
        assert_eq!(exit(&marks), Some(Exit::Failed));
    }

    #[test]
    fn a_compaction_that_failed_is_the_end_unless_the_run_or_another_one_went_on() {
        let first = input();
        let begun = Begun::Entry(first.id.expect("an id"));
        let failed = || Event::CompactFailed { error: "the model is ill".into() };
        let mut marks = RunTracker::default();
        marks.note(&entry(&first));
        marks.note(&failed());
        assert_eq!(marks.end_of(&begun), None, "the run goes on");
        marks.note(&ended(RunResult::Finished));
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
        marks.note(&failed());
        let end = marks.last_end().expect("an end");
        assert_eq!(end.exit, Exit::Failed);
        assert!(end.why.as_ref().is_some_and(|why| why.contains("the model is ill")), "{end:?}");
        marks.note(&Event::CompactStart);
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
    }

    #[test]
    fn the_log_tells_the_end_that_was_missed() {
        let first = input();
        let done = Entry::new(Fact::RunCompleted {
            interrupted: false,
            result: "finished".into(),
            work: None,
        });
        let mut marks = RunTracker::default();
        marks.reread([&first, &done].into_iter());
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
        assert!(marks.end_of(&Begun::Entry(first.id.expect("an id"))).is_some());
    }

    #[test]
    fn an_end_that_comes_while_the_log_is_reread_is_kept() {
        let first = input();
        let mut marks = RunTracker::default();
        let begun = Begun::Entry(first.id.expect("an id"));
        marks.note(&entry(&first));
        marks.note(&ended(RunResult::Finished));
        // The page was read at event 6, before the run ended.
        marks.reread([&first].into_iter());
        assert_eq!(marks.end_of(&begun).map(|end| end.exit), Some(Exit::Finished));
    }

    fn end(input: &Entry, interrupted: bool) -> Entry {
        let result = if interrupted { "paused" } else { "finished" }.into();
        let ended = Entry::new(Fact::RunCompleted { interrupted, result, work: None });
        Entry { run: input.id, ..ended }
    }

    #[test]
    fn a_run_that_takes_a_message_after_a_pause_has_not_ended_for_it() {
        let (first, begun) = (input(), Begun::Queued("q1".into()));
        let paused = end(&first, true);
        let fact = Fact::UserInput { segments: vec![], taken: Some("q1".into()), from: None };
        let steered = Entry { run: first.id, ..Entry::new(fact) };
        let mut marks = RunTracker::default();
        marks.reread([&first, &paused, &steered].into_iter());
        assert_eq!(marks.end_of(&begun), None);
        marks.reread([&paused, &steered, &end(&first, false)].into_iter());
        assert_eq!(marks.end_of(&begun).map(|end| end.exit), Some(Exit::Finished));
    }

    #[test]
    fn a_run_whose_input_is_older_than_what_was_read_again_ends() {
        let (first, queued) = (input(), Begun::Queued("q1".into()));
        let mut marks = RunTracker::default();
        marks.note(&Event::RunEnd { result: RunResult::Finished, entry: None, run: first.id });
        assert_eq!(marks.end_of(&queued), None, "no event was missed");
        marks.reread([&end(&first, false)].into_iter());
        assert!(marks.end_of(&queued).is_some());
        assert!(marks.end_of(&Begun::Entry(first.id.expect("an id"))).is_some());
    }

    #[test]
    fn an_older_page_does_not_take_a_later_end_back() {
        let first = input();
        let (paused, finished) = (end(&first, true), end(&first, false));
        let mut marks = RunTracker::default();
        let finish = RunResult::Finished;
        marks.note(&Event::RunEnd { result: finish, entry: finished.id, run: first.id });
        marks.reread([&first, &paused].into_iter());
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
    }
}
