//! What a Pod is doing, and whether it takes requests.

use crate::host::Answer;
use crate::protocol::Entry;
use crate::run::{ApprovalDecided, End, Interrupt, Models, RunEvent, SessionState};
use crate::store::MailboxMessage;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long an idle Pod keeps its log open.
const CLOSE_AFTER: Duration = Duration::from_secs(10);

/// What a Pod is doing. During a run the task of the run owns the log.
pub(super) enum Phase {
    /// No run is under way. The log of the last run may still be open for the next one.
    Idle(Option<Box<OpenLog>>),
    Running(Box<Running>),
}

/// A log that the last run left open.
pub(super) struct OpenLog {
    state: SessionState,
    close_at: Instant,
}

/// A run under way.
pub(super) struct Running {
    pub(super) task: JoinHandle<(Option<SessionState>, End)>,
    pub(super) events: mpsc::Receiver<RunEvent>,
    pub(super) interrupt: watch::Sender<Interrupt>,
    pub(super) mailbox: mpsc::Sender<MailboxMessage>,
    pub(super) decisions: mpsc::Sender<ApprovalDecided>,
    pub(super) try_now: Arc<Notify>,
    /// The models that a person chooses for the run under way.
    pub(super) models: watch::Sender<Models>,
    /// Ids of the queued inputs that were sent to the run; it may record them at any moment.
    pub(super) handed: BTreeSet<String>,
    /// Ids of the queued inputs that the log holds already; the store may lag behind.
    pub(super) taken: BTreeSet<String>,
    /// Requests to interrupt the run; they are answered when it has halted.
    pub(super) interrupting: Vec<Answer>,
    /// The last entry of the run; `None` until that entry is published.
    pub(super) ended: Option<Entry>,
    /// When the run is aborted; set while its Pod is being stopped.
    pub(super) abort_at: Option<Instant>,
}

impl Phase {
    /// The phase after a run; `state` is `None` when the run did not give its log back.
    pub(super) fn after_run(state: Option<SessionState>) -> Self {
        let close_at = Instant::now() + CLOSE_AFTER;
        Self::Idle(state.map(|state| Box::new(OpenLog { state, close_at })))
    }

    pub(super) fn run(&self) -> Option<&Running> {
        match self {
            Self::Running(run) => Some(run),
            Self::Idle(_) => None,
        }
    }

    pub(super) fn run_mut(&mut self) -> Option<&mut Running> {
        match self {
            Self::Running(run) => Some(run),
            Self::Idle(_) => None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.run().is_some()
    }

    /// Takes the run out and leaves `Idle(None)`; an idle Pod stays as it is.
    pub(super) fn take_run(&mut self) -> Option<Running> {
        match std::mem::replace(self, Self::Idle(None)) {
            Self::Running(run) => Some(*run),
            idle @ Self::Idle(_) => {
                *self = idle;
                None
            }
        }
    }

    /// Takes the open log out.
    pub(super) fn take_log(&mut self) -> Option<SessionState> {
        match self {
            Self::Idle(log) => log.take().map(|log| log.state),
            Self::Running(_) => None,
        }
    }

    /// The next moment at which something is due: an idle Pod closes its log, a Pod that is being
    /// stopped aborts its run.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Idle(log) => log.as_ref().map(|log| log.close_at),
            Self::Running(run) => run.abort_at,
        }
    }

    /// Whether the open log, or the run under way, has recorded the mailbox message with this id; the
    /// store may lag behind. False when no log is open: then the store knows.
    pub(super) fn has_taken(&self, id: &str) -> bool {
        match self {
            Self::Idle(log) => log.as_ref().is_some_and(|log| log.state.has_taken(id)),
            Self::Running(run) => run.taken.contains(id),
        }
    }

    /// The next event of the run; `None` when it has ended. Pending while no run is under way.
    pub(super) async fn next_event(&mut self) -> Option<RunEvent> {
        match self {
            Self::Running(run) => run.events.recv().await,
            Self::Idle(_) => std::future::pending().await,
        }
    }
}

/// Whether a Pod takes requests.
pub(super) enum Admission {
    Open,
    /// The Pod is being stopped. These callers are answered when no run is left, and let go
    /// unanswered when the stop is taken back.
    Stopping(Vec<oneshot::Sender<()>>),
    /// The host ends. These callers are answered when everything is closed.
    HostEnds(Vec<oneshot::Sender<()>>),
}

impl Admission {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    pub(super) fn host_ends(&self) -> bool {
        matches!(self, Self::HostEnds(_))
    }

    /// Takes no more requests, because the Pod is being stopped.
    pub(super) fn close_for_stop(&mut self, answer: oneshot::Sender<()>) {
        match self {
            Self::Open => *self = Self::Stopping(vec![answer]),
            Self::Stopping(waiting) | Self::HostEnds(waiting) => waiting.push(answer),
        }
    }

    /// Refuses requests from now on, because the host ends.
    pub(super) fn close_for_end(&mut self, answer: oneshot::Sender<()>) {
        let mut waiting = self.take_waiting();
        waiting.push(answer);
        *self = Self::HostEnds(waiting);
    }

    /// Takes requests again, when a stop is done or was taken back. Does nothing while the host ends.
    pub(super) fn reopen(&mut self) {
        if !self.host_ends() {
            *self = Self::Open;
        }
    }

    /// Takes out the callers that wait until the Pod is closed.
    pub(super) fn take_waiting(&mut self) -> Vec<oneshot::Sender<()>> {
        match self {
            Self::Open => Vec::new(),
            Self::Stopping(waiting) | Self::HostEnds(waiting) => std::mem::take(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_was_taken_back_lets_requests_in_again_and_the_end_of_the_host_does_not() {
        let mut admission = Admission::Open;
        let (stop, _stopped) = oneshot::channel();
        admission.close_for_stop(stop);
        assert!(!admission.is_open());
        admission.reopen();
        assert!(admission.is_open());
        let (end, _ended) = oneshot::channel();
        admission.close_for_end(end);
        admission.reopen();
        assert!(admission.host_ends());
    }

    #[tokio::test]
    async fn a_stop_is_answered_also_when_the_host_ends_before_its_run_has_ended() {
        let mut admission = Admission::Open;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        admission.close_for_stop(stop);
        admission.close_for_end(end);
        for answer in admission.take_waiting() {
            answer.send(()).unwrap();
        }
        assert!(admission.host_ends() && stopped.await.is_ok() && ended.await.is_ok());
    }
}
