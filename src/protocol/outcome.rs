//! How a run ended, as a type. The words that logs and the frozen wire have for it stand here once.

use crate::protocol::entry::domain;
use crate::protocol::{Entry, Fact, LastRun, RunResult};

/// What the predecessor's wire and every log say of a run that a person cancelled.
pub const CANCELLED: &str = "Cancelled";

/// How a run ended, as the entry says that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome<'a> {
    Finished,
    /// The predecessor's word for a run that gave control back; the same as finished.
    Yielded,
    LimitReached,
    Paused,
    Cancelled,
    /// The run was halted before it had a result, and its input was rolled back.
    RolledBack,
    /// The host ended during the run, which can go on; with the text of the entry.
    CutOff(&'a str),
    /// With the reason.
    Failed(&'a str),
    /// A word of another program.
    Other(&'a str),
}

impl<'a> RunOutcome<'a> {
    /// What an entry says; `None` for one that ends no run.
    pub fn of(fact: &'a Fact) -> Option<Self> {
        Some(match fact {
            Fact::RunCompleted { interrupted, result, .. } => {
                match (interrupted, result.as_str()) {
                    (false, "finished") => Self::Finished,
                    (false, "yielded") => Self::Yielded,
                    (false, "limit_reached") => Self::LimitReached,
                    (true, "paused") => Self::Paused,
                    (_, other) => Self::Other(other),
                }
            }
            Fact::RunErrored { interrupted: true, message, .. } if message == CANCELLED => {
                Self::Cancelled
            }
            Fact::RunErrored { interrupted: true, message, .. } => Self::CutOff(message),
            Fact::RunErrored { interrupted: false, message, .. } => Self::Failed(message),
            Fact::Extension { domain, .. } if domain == domain::ROLLED_BACK => Self::RolledBack,
            _ => return None,
        })
    }

    /// The entry that ends a run so. One that takes an input back names it and is made where that
    /// is known.
    pub fn entry(self) -> Entry {
        let completed = |interrupted, result: &str| Fact::RunCompleted {
            interrupted,
            result: result.to_owned(),
            work: None,
        };
        let errored = |interrupted, message: &str| Fact::RunErrored {
            interrupted,
            message: message.to_owned(),
            work: None,
        };
        Entry::new(match self {
            Self::Finished => completed(false, "finished"),
            Self::Yielded => completed(false, "yielded"),
            Self::LimitReached => completed(false, "limit_reached"),
            Self::Paused => completed(true, "paused"),
            Self::RolledBack => completed(false, "rolled_back"),
            Self::Other(result) => completed(false, result),
            Self::Cancelled => errored(true, CANCELLED),
            Self::CutOff(message) => errored(true, message),
            Self::Failed(message) => errored(false, message),
        })
    }

    /// The event's word for it; `None` where no event says it.
    pub fn result(self) -> Option<RunResult> {
        match self {
            Self::Finished | Self::Yielded => Some(RunResult::Finished),
            Self::LimitReached => Some(RunResult::LimitReached),
            Self::Paused => Some(RunResult::Paused),
            Self::Cancelled => Some(RunResult::Cancelled),
            Self::RolledBack => Some(RunResult::RolledBack),
            Self::Failed(_) => Some(RunResult::Failed),
            Self::CutOff(_) | Self::Other(_) => None,
        }
    }
}

impl LastRun {
    /// How the run ended that this entry ends; `None` for one that ends no run, and for a run that was cut off: it can go
    /// on.
    pub fn of(end: &Entry) -> Option<Self> {
        let outcome = RunOutcome::of(&end.fact)?;
        let (result, error) = match (outcome, outcome.result()) {
            (RunOutcome::Failed(why), Some(result)) => (result.word(), Some(why.to_owned())),
            (_, Some(result)) => (result.word(), None),
            (RunOutcome::Other(word), None) => (word, None),
            (_, None) => return None,
        };
        Some(Self { entry: end.id?, result: result.to_owned(), error, at: end.ts })
    }
}

impl RunResult {
    /// The word on the wire and in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::LimitReached => "limit_reached",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::RolledBack => "rolled_back",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_read_as_it_was_written() {
        let outcomes = [
            RunOutcome::Finished,
            RunOutcome::Yielded,
            RunOutcome::LimitReached,
            RunOutcome::Paused,
            RunOutcome::Cancelled,
            RunOutcome::CutOff("cut off: the host ended"),
            RunOutcome::Failed("no key"),
            RunOutcome::Failed(CANCELLED),
        ];
        for outcome in outcomes {
            assert_eq!(RunOutcome::of(&outcome.entry().fact), Some(outcome));
            let Some(result) = outcome.result().filter(|_| outcome != RunOutcome::Yielded) else {
                continue;
            };
            assert_eq!(serde_json::to_value(result).unwrap(), result.word());
        }
        let other = Fact::RunCompleted { interrupted: false, result: "parked".into(), work: None };
        assert_eq!(RunOutcome::of(&other), Some(RunOutcome::Other("parked")));
    }
}
