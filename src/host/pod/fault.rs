//! A panic makes its Pod *failed*, with the reason, and affects no other Pod. The text of the panic
//! goes to the log as well, and through the panic hook to the standard error of the host.

use crate::host::errors::panic_text;
use crate::host::pod::phase::Running;
use crate::host::pod::{Pod, PodRequest};
use crate::protocol::{Entry, Event, GoesOnBy, Refusal, RunOutcome, RunResult, State};
use crate::run::{End, RunEvent};
use crate::trace::OrLog as _;
use futures_util::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use tokio::sync::mpsc;

impl Pod {
    /// Serves requests until every handle is gone. A panic of the actor ends its run and closes its
    /// socket; the Pod is then failed until it is restored from what the store and the log hold.
    pub(super) async fn serve(mut self, mut inbox: mpsc::Receiver<PodRequest>) {
        while let Err(panic) =
            AssertUnwindSafe(self.serve_requests(&mut inbox)).catch_unwind().await
        {
            let why = format!("a fault in the program stopped this pod: {}", panic_text(&*panic));
            // A second panic changes nothing: the state is shown first.
            let _ = AssertUnwindSafe(self.fail(why)).catch_unwind().await;
        }
    }

    async fn fail(&mut self, why: String) {
        let name = self.row.name.clone();
        let run = self.phase.take_run();
        let said = format!("{why}; :restore {name} brings it back");
        self.enter_until(State::Failed, Some(said), Some(GoesOnBy::Restore));
        self.close_socket();
        // The state in memory is not trusted any more; dropping it closes the log, and dropping
        // the answers tells their callers that the Pod is gone.
        drop((self.phase.take_log(), self.pending.take(), self.admission.take_waiting()));
        let refusal = Refusal::internal(why.clone());
        if let Some(mut run) = run {
            run.task.abort();
            self.publish_failure(&refusal, None);
            self.run_is_over(&End::Failed(refusal), None).await;
            self.record_abort(&mut run, &why).await;
        }
        self.publisher.publish(&Event::Stopped);
    }

    /// The log says why the run was aborted. Where it cannot, the next opening closes the run.
    async fn record_abort(&mut self, run: &mut Running, why: &str) {
        // Only when the task is gone, no more of its events come.
        let _ = (&mut run.task).await;
        while let Ok(event) = run.events.try_recv() {
            if let RunEvent::Rotated { segment, .. } = event {
                self.row.segment = Some(segment);
            }
        }
        let cut = RunOutcome::CutOff(why).entry();
        self.write_log(vec![cut]).await.or_log("write the end of an aborted run");
    }

    /// A panic ended the run: the log says so, so that the next start does not take the run for one
    /// that was cut off.
    pub(super) async fn run_broke_off(
        &mut self,
        panic: Box<dyn Any + Send>,
    ) -> (End, Option<Entry>) {
        let why = format!("a fault in the program stopped this run: {}", panic_text(&*panic));
        let refusal = Refusal::internal(why);
        let entry = self.record_failure(&refusal).await;
        self.publish_failure(&refusal, entry.as_ref());
        (End::Failed(refusal), entry)
    }

    async fn record_failure(&mut self, refusal: &Refusal) -> Option<Entry> {
        self.row.segment?;
        let failed = RunOutcome::Failed(&refusal.message).entry();
        let entry = Entry { run: self.run, ..failed };
        // Where the log cannot say it, the next opening closes the run as cut off.
        self.write_log(vec![entry.clone()]).await.ok()?;
        Some(entry)
    }

    fn publish_failure(&mut self, refusal: &Refusal, entry: Option<&Entry>) {
        self.publisher.publish(&refusal.clone().into());
        let entry = entry.and_then(|entry| entry.id);
        self.publisher.publish(&Event::RunEnd { result: RunResult::Failed, entry, run: self.run });
    }
}
