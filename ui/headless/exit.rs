//! The exit codes: one fixed number for every way in which the program ends.

use std::process::ExitCode;
use yoi::client::ConnectError;
use yoi::host::Ending;
use yoi::protocol::{ErrorCode, Refusal, RunResult};

/// The exit codes of the program without a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All work was done.
    Finished,
    /// The work failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A policy or a provider's filter refused it, or no person was there to decide a request or to answer a question.
    Refused,
    /// The run ended early: limit reached, paused or cancelled.
    StoppedShort,
    /// There is no such Pod, or the host is of another version.
    NotThere,
    /// No model is configured.
    NoModel,
    /// A signal ended it.
    Signal(u8),
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::StoppedShort => 4,
            Self::NotThere => 5,
            Self::NoModel => 69,
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }

    /// This exit, or the later one if this is [`Exit::Finished`].
    pub fn or(self, later: Self) -> Self {
        if self == Self::Finished { later } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

impl From<RunResult> for Exit {
    fn from(result: RunResult) -> Self {
        match result {
            RunResult::Finished => Self::Finished,
            RunResult::Failed => Self::Failed,
            RunResult::Paused
            | RunResult::LimitReached
            | RunResult::RolledBack
            | RunResult::Cancelled => Self::StoppedShort,
        }
    }
}

/// Why the program cannot go on: the sentence for the person and the code for the shell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    /// Whether a signal is the reason.
    pub fn is_signal(&self) -> bool {
        matches!(self.exit, Exit::Signal(_))
    }

    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn no_such_pod(name: &str) -> Self {
        Self::new(
            Exit::NotThere,
            format!("there is no pod `{name}`: `yoi ls` shows those there are"),
        )
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let exit = match refusal.code {
            ErrorCode::AlreadyRunning
            | ErrorCode::NotRunning
            | ErrorCode::NotPaused
            | ErrorCode::ProviderError
            | ErrorCode::ToolError
            | ErrorCode::InvalidRequest
            | ErrorCode::Internal => Exit::Failed,
        };
        Self::new(exit, refusal.message)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let other = matches!(error.downcast_ref(), Some(ConnectError::OtherVersion(_)));
        Self::new(if other { Exit::NotThere } else { Exit::Failed }, causes(&error))
    }
}

/// An error and its causes in one sentence. A cause that the sentence before it ends with already is
/// not repeated.
pub fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether a signal ended it.
pub fn is_signalled(result: &Result<(), Failure>) -> bool {
    result.as_ref().is_err_and(Failure::is_signal)
}

/// How this program ends when its host does.
pub fn after_host(ending: Ending) -> Result<(), Failure> {
    match ending {
        Ending::Asked => Ok(()),
        Ending::Failed(why) => Err(Failure::new(Exit::Failed, why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_has_its_documented_code() {
        let table = [
            (Exit::Finished, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Refused, 3),
            (Exit::StoppedShort, 4),
            (Exit::NotThere, 5),
            (Exit::NoModel, 69),
            (Exit::Signal(15), 143),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn the_cause_of_an_error_is_said_once() {
        let source = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let disk = yoi::disk::DiskError { action: "write", path: "/d".into(), source: source() };
        let once = disk.to_string();
        assert_eq!(causes(&anyhow::Error::new(disk)), once);
        let other = anyhow::Error::new(source()).context("cannot start");
        assert_eq!(causes(&other), format!("cannot start: {}", source()));
    }

    #[test]
    fn the_first_failure_decides_the_exit_code() {
        assert_eq!(Exit::Finished.or(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::NoModel.or(Exit::Failed), Exit::NoModel);
    }

    #[test]
    fn a_host_of_another_version_has_the_exit_code_of_a_missing_pod() {
        let (version, running) = ("9".into(), None);
        let other = yoi::client::OtherHost { pid: None, protocol: 9, version, running };
        let error = ConnectError::OtherVersion(Box::new(other));
        assert_eq!(Failure::from(anyhow::Error::new(error)).exit, Exit::NotThere);
        assert_eq!(Failure::from(anyhow::anyhow!("no")).exit, Exit::Failed);
    }
}
