//! Follows the runs of one Pod by its events: which input began each run, and how it ended.

use crate::headless::exit::{Exit, Failure};
use crate::wording;
use yoi::protocol::entry::domain;
use yoi::protocol::{Begun, Entry, EntryId, Event, Fact, RunOutcome, RunResult};

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

/// The inputs and ends of a Pod's runs, in the order of their events.
#[derive(Debug, Default)]
pub struct RunTracker {
    seen: Vec<Seen>,
    /// Set if `seen` comes from the tail of a transcript: an input that is not in it is older.
    tail: bool,
    /// Why the last reply did not reach its own end, in the word of its entry.
    stopped: Option<String>,
    /// The Pods that write where a call of the run could not.
    refused_by: Option<String>,
    /// The compaction that failed behind the last run.
    not_compacted: Option<End>,
}

#[derive(Debug)]
struct Seen {
    /// The number of its event; 0 if it was read from the log.
    seq: u64,
    mark: Mark,
}

#[derive(Debug)]
enum Mark {
    Input { id: EntryId, taken: Option<String> },
    End(End),
}

impl RunTracker {
    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Notes an event of this Pod and its number.
    pub fn note(&mut self, seq: Option<u64>, event: &Event) {
        let seq = seq.unwrap_or(0);
        match event {
            Event::Entry { entry, .. } => self.note_entry(seq, entry),
            // The error event before it has the reason.
            Event::RunEnd { result: RunResult::Failed, .. } => {}
            Event::RunEnd { result, .. } => {
                let why = self.said(*result);
                self.end(seq, End { exit: (*result).into(), why });
            }
            Event::Error { message, .. } => {
                let end = self.failed(message);
                self.end(seq, end);
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

    fn end(&mut self, seq: u64, mut end: End) {
        (self.stopped, self.not_compacted) = (None, None);
        if let Some(writers) = self.refused_by.take().filter(|_| end.exit == Exit::Finished) {
            let first = writers.split(", ").next().unwrap_or_default();
            let why = format!(
                "a change was refused, because {writers} writes there: send again when that run has ended, or send \
                 to it with --pod {first}"
            );
            end = End { exit: Exit::Refused, why: Some(why) };
        }
        self.seen.push(Seen { seq, mark: Mark::End(end) });
    }

    /// Reads the tail of a transcript after events were missed. It replaces the notes of events up to `seq`;
    /// notes of later events stay.
    pub fn reread<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>, seq: u64) {
        let later: Vec<Seen> = self.seen.extract_if(.., |seen| seen.seq > seq).collect();
        self.seen.clear();
        self.tail = true;
        for entry in entries {
            self.note_entry(0, entry);
            let (exit, why) = match RunOutcome::of(&entry.fact) {
                None | Some(RunOutcome::RolledBack) => continue,
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
            self.end(0, End { exit, why });
        }
        self.seen.extend(later);
    }

    fn failed(&self, message: &str) -> End {
        let declined = self.stopped.as_deref() == Some("refusal");
        let exit = if declined { Exit::Refused } else { Exit::Failed };
        End { exit, why: Some(message.to_owned()) }
    }

    fn note_entry(&mut self, seq: u64, entry: &Entry) {
        match &entry.fact {
            Fact::Extension { domain, payload } if domain == domain::STOPPED => {
                self.stopped = payload["reason"].as_str().map(str::to_owned);
            }
            Fact::Extension { domain, payload } if domain == domain::TURN => {
                let refused = payload["refused"].as_bool() == Some(true);
                self.refused_by = refused.then(|| wording::context::writers(payload));
            }
            // A later reply, or the next run.
            Fact::AssistantItem { .. } | Fact::Invoke { .. } => self.stopped = None,
            _ => {}
        }
        let (Fact::UserInput { taken, .. }, Some(id)) = (&entry.fact, entry.id) else { return };
        if !self.seen.iter().any(|seen| seen.mark.is(&Begun::Entry(id))) {
            let mark = Mark::Input { id, taken: taken.clone() };
            self.seen.push(Seen { seq, mark });
        }
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
        self.seen.iter().any(|seen| seen.mark.is(begun))
    }

    /// Whether the last input of the log is one of these. If no input was seen, one that was recorded at once is.
    pub fn answers_one_of(&self, begun: &[Begun]) -> bool {
        let last = self.seen.iter().rev().find(|seen| matches!(seen.mark, Mark::Input { .. }));
        match last {
            Some(last) => begun.iter().any(|begun| last.mark.is(begun)),
            None => begun.iter().any(|begun| matches!(begun, Begun::Entry(_))),
        }
    }

    /// The end of the run of this input, once it has ended.
    pub fn end_of(&self, begun: &Begun) -> Option<&End> {
        self.since(begun).find_map(|seen| seen.mark.end())
    }

    /// The end of the last run of this input: child events may start more runs for it. A run that
    /// another input begins is not one of them.
    pub fn last_end_of(&self, begun: &Begun) -> Option<&End> {
        let mut last = None;
        for seen in self.since(begun) {
            match seen.mark.end() {
                Some(end) => last = Some(end),
                None if last.is_some() => break,
                None => {}
            }
        }
        last
    }

    /// This input and what came after it.
    fn since(&self, begun: &Begun) -> impl Iterator<Item = &Seen> {
        let found = self.seen.iter().position(|seen| seen.mark.is(begun));
        let before = self.tail && matches!(begun, Begun::Entry(_));
        let at = found.or(before.then_some(0)).unwrap_or(self.seen.len());
        self.seen[at..].iter()
    }

    /// The end of the last run, or of the compaction that failed behind it.
    pub fn last_end(&self) -> Option<&End> {
        let ended = self.seen.iter().rev().find_map(|seen| seen.mark.end());
        self.not_compacted.as_ref().or(ended)
    }
}

impl Mark {
    /// Whether it is this input.
    fn is(&self, begun: &Begun) -> bool {
        match self {
            Self::Input { id, taken } => begun.names(*id, taken.as_deref()),
            Self::End(_) => false,
        }
    }

    fn end(&self) -> Option<&End> {
        match self {
            Self::End(end) => Some(end),
            Self::Input { .. } => None,
        }
    }
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
        marks.note(None, &entry(&first));
        marks.note(None, &Event::RunEnd { result: RunResult::Paused, entry: None });
        marks.note(None, &entry(&second));
        let id = |entry: &Entry| Begun::Entry(entry.id.expect("a new entry has an id"));
        assert_eq!(marks.end_of(&id(&first)).map(|end| end.exit), Some(Exit::StoppedShort));
        assert_eq!(marks.end_of(&id(&second)), None);
        marks.note(None, &Event::RunEnd { result: RunResult::Finished, entry: None });
        assert_eq!(marks.end_of(&id(&second)).map(|end| end.exit), Some(Exit::Finished));
    }

    #[test]
    fn a_run_belongs_to_the_message_that_came_last() {
        let (first, second) = (input(), input());
        let id = |entry: &Entry| Begun::Entry(entry.id.expect("a new entry has an id"));
        let mut marks = RunTracker::default();
        assert!(marks.answers_one_of(&[id(&first)]), "its entry was committed");
        assert!(!marks.answers_one_of(&[Begun::Queued("q".into())]));
        marks.note(None, &entry(&first));
        marks.note(None, &Event::RunEnd { result: RunResult::Finished, entry: None });
        assert!(marks.answers_one_of(&[id(&first)]), "a child event may begin another run");
        marks.note(None, &entry(&second));
        assert!(!marks.answers_one_of(&[id(&first)]));
        assert!(marks.answers_one_of(&[id(&first), id(&second)]));
    }

    #[test]
    fn a_queued_input_is_known_by_its_row() {
        let taken =
            Entry::new(Fact::UserInput { segments: vec![], taken: Some("q1".into()), from: None });
        let mut marks = RunTracker::default();
        marks.note(None, &Event::RunEnd { result: RunResult::Finished, entry: None });
        let queued = Begun::Queued("q1".into());
        assert_eq!(marks.end_of(&queued), None);
        marks.note(None, &entry(&taken));
        marks.note(None, &Event::RunEnd { result: RunResult::LimitReached, entry: None });
        assert_eq!(marks.end_of(&queued).map(|end| end.exit), Some(Exit::StoppedShort));
    }

    #[test]
    fn the_end_of_a_run_that_another_message_began_is_not_the_own_end() {
        let (first, second) = (input(), input());
        let mut marks = RunTracker::default();
        let own = Begun::Entry(first.id.expect("an id"));
        marks.note(None, &entry(&first));
        marks.note(None, &Event::RunEnd { result: RunResult::Finished, entry: None });
        marks.note(None, &entry(&second));
        marks.note(None, &Event::RunEnd { result: RunResult::Paused, entry: None });
        assert_eq!(marks.last_end_of(&own).map(|end| end.exit), Some(Exit::Finished));
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::StoppedShort));
    }

    #[test]
    fn an_error_ends_the_run_and_keeps_its_sentence() {
        let first = input();
        let mut marks = RunTracker::default();
        marks.note(None, &entry(&first));
        let message = "anthropic at 127.0.0.1: connection refused".to_owned();
        marks
            .note(None, &Event::Error { code: ErrorCode::ProviderError, message: message.clone() });
        let end = marks.end_of(&Begun::Entry(first.id.expect("an id"))).expect("an end");
        assert_eq!(*end, End { exit: Exit::Failed, why: Some(message) });
    }

    #[test]
    fn a_declined_reply_counts_for_its_own_run_only() {
        let declined = Entry::extension(domain::STOPPED, serde_json::json!({"reason": "refusal"}));
        let failed = || Event::Error { code: ErrorCode::ProviderError, message: "no".into() };
        let ended = || Event::RunEnd { result: RunResult::Finished, entry: None };
        let exit = |marks: &RunTracker| marks.last_end().map(|end| end.exit);
        let mut marks = RunTracker::default();
        marks.note(None, &entry(&declined));
        marks.note(None, &failed());
        assert_eq!(exit(&marks), Some(Exit::Refused));
        marks.note(None, &entry(&declined));
        marks.note(None, &ended());
        marks.note(None, &failed());
        assert_eq!(exit(&marks), Some(Exit::Failed));
    }

    #[test]
    fn a_compaction_that_failed_is_the_end_unless_the_run_or_another_one_went_on() {
        let first = input();
        let begun = Begun::Entry(first.id.expect("an id"));
        let failed = || Event::CompactFailed { error: "the model is ill".into() };
        let mut marks = RunTracker::default();
        marks.note(None, &entry(&first));
        marks.note(None, &failed());
        assert_eq!(marks.end_of(&begun), None, "the run goes on");
        marks.note(None, &Event::RunEnd { result: RunResult::Finished, entry: None });
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
        marks.note(None, &failed());
        let end = marks.last_end().expect("an end");
        assert_eq!(end.exit, Exit::Failed);
        assert!(end.why.as_ref().is_some_and(|why| why.contains("the model is ill")), "{end:?}");
        marks.note(None, &Event::CompactStart);
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
        marks.reread([&first, &done].into_iter(), 9);
        assert_eq!(marks.last_end().map(|end| end.exit), Some(Exit::Finished));
        assert!(marks.end_of(&Begun::Entry(first.id.expect("an id"))).is_some());
    }

    #[test]
    fn an_end_that_comes_while_the_log_is_reread_is_kept() {
        let first = input();
        let mut marks = RunTracker::default();
        let begun = Begun::Entry(first.id.expect("an id"));
        marks.note(Some(4), &entry(&first));
        marks.note(Some(8), &Event::RunEnd { result: RunResult::Finished, entry: None });
        // The page was read at event 6, before the run ended.
        marks.reread([&first].into_iter(), 6);
        assert_eq!(marks.end_of(&begun).map(|end| end.exit), Some(Exit::Finished));
    }
}
