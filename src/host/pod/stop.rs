//! How a Pod gives a run up, stops, and closes when the host ends.

use crate::host::pod::Pod;
use crate::protocol::{Event, LastRun, Refusal, RunOutcome, State};
use crate::run::Interrupt;
use crate::store::Wanted;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a run may take to end by itself when its Pod is stopped.
const TO_FINISH: Duration = Duration::from_secs(5);

impl Pod {
    /// Cancels the paused run; the log says so before anything is published. A decision that was made
    /// meanwhile is written first, because the person knows it as accepted.
    pub(super) async fn drop_run(&mut self) -> Result<Event, Refusal> {
        self.withdraw("the run was cancelled").await?;
        let entry = RunOutcome::Cancelled.entry();
        let last = LastRun::of(&entry);
        self.write_log(vec![entry]).await?;
        crate::crash_point!("drop-committed");
        if let Some(last) = last {
            self.keep_last_run(last).await;
        }
        self.enter(State::Idle, None);
        self.cut_is_over("has no run any more: a person cancelled the one that was interrupted")
            .await;
        Ok(Event::done())
    }

    /// Takes no more requests and ends the run; the answer comes when the run has ended.
    pub(super) async fn prepare_stop(&mut self, answer: oneshot::Sender<()>) {
        self.admission.close_for_stop(answer);
        match self.phase.run_mut() {
            Some(run) => {
                run.abort_at = Some(Instant::now() + TO_FINISH);
                self.interrupt_run(Interrupt::Stop, None);
            }
            None => self.finish_closing().await,
        }
    }

    /// As [`Pod::prepare_stop`], unless the Pod works, waits for a decision or has a message in its mailbox.
    /// Says whether the stop is prepared.
    pub(super) async fn prepare_stop_if_idle(&mut self) -> bool {
        // A mailbox that cannot be read may hold a message.
        let has_message = self.mailbox().await.map_or(true, |rows| !rows.is_empty());
        if self.phase.is_running() || self.is_undecided() || has_message {
            return false;
        }
        let (prepared, _) = oneshot::channel();
        self.prepare_stop(prepared).await;
        true
    }

    /// Takes requests again, because the stop failed: the store may have refused it. A run that was told to halt is
    /// paused.
    pub(super) fn stop_refused(&mut self) {
        if let Some(run) = self.phase.run_mut() {
            run.abort_at = None;
        }
        self.jobs.open();
        self.admission.reopen();
    }

    /// Aborts a run that did not end by itself in time. Its commands end with it, because their
    /// helper sees its pipe close.
    pub(super) fn abort_run(&mut self) {
        if let Some(run) = self.phase.run_mut() {
            run.abort_at = None;
            run.task.abort();
        }
    }

    /// The store says that the Pod is stopped. A run that is still under way is aborted.
    pub(super) async fn stopped(&mut self) {
        self.row.wanted = Wanted::Stopped;
        self.leave_mesh();
        self.abort_run();
        while self.phase.is_running() {
            let event = self.phase.next_event().await;
            self.on_run_event(event).await;
        }
        self.admission.reopen();
        self.end_pending().await;
        self.used_servers.clear();
        self.close_log().await;
        self.publisher.publish(&Event::Stopped);
        self.show_granted();
        self.enter(State::Stopped, None);
        self.close_socket();
    }

    /// The host ends: the run is paused, no Pod is stopped.
    pub(super) async fn host_ends(&mut self, answer: oneshot::Sender<()>) {
        self.admission.close_for_end(answer);
        if self.phase.is_running() {
            self.interrupt_run(Interrupt::Leave, None);
        } else {
            self.finish_closing().await;
        }
    }

    /// No run is left: the rest of preparing a stop, or of closing for the end of the host.
    pub(super) async fn finish_closing(&mut self) {
        self.close_log().await;
        if self.admission.host_ends() {
            self.used_servers.clear();
            // The next host has the Pod join again.
            self.mesh = None;
            self.publisher.publish(&Event::Stopped);
            self.close_socket();
        }
        for answer in self.admission.take_waiting() {
            // The caller may have stopped waiting.
            let _ = answer.send(());
        }
    }
}
