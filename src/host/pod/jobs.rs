//! The commands of a Pod in the background: what is stored of them, and what the Pod and the screens are told.

use crate::host::Shared;
use crate::host::pod::{Fact, Pod, PodRequest};
use crate::protocol::{PodName, now_ms};
use crate::store::{MailboxKind, MailboxMessage};
use crate::tools::jobs::{JobNotice, JobRecords, ended_with_host};
use crate::trace::OrLog as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

/// The beginning of the id of each message about a command.
const ID: &str = "job:";

/// Whether a message says that a command in the background has ended.
pub(super) fn is_about_a_command(message: &MailboxMessage) -> bool {
    message.id.starts_with(ID)
}

/// Records the commands of one Pod in the store.
pub(super) struct Records {
    pub(super) shared: Shared,
    pub(super) pod: PodName,
    pub(super) requests: mpsc::WeakSender<PodRequest>,
}

impl JobRecords for Records {
    fn begins(&self, command: String) -> BoxFuture<'static, Result<u32, String>> {
        let (store, pod) = (self.shared.store.clone(), self.pod.clone());
        Box::pin(
            async move { store.job_begins(&pod, command).await.map_err(|error| error.to_string()) },
        )
    }

    fn ended(&self, number: u32, notice: Option<JobNotice>) -> BoxFuture<'static, ()> {
        let (store, pod) = (self.shared.store.clone(), self.pod.clone());
        let requests = self.requests.clone();
        let message = notice.map(message);
        Box::pin(async move {
            let stored = store.job_ended(&pod, number, message.clone()).await;
            let is_stored = matches!(stored, Ok(true));
            // If this fails, the next host says that the command ended with this one.
            stored.or_log("store that a command in the background has ended");
            if let (true, Some(message), Some(requests)) = (is_stored, message, requests.upgrade())
            {
                let (answer, _) = oneshot::channel();
                let fact = PodRequest::Fact { fact: Fact::JobEnded(message), answer };
                // A Pod that is gone is told at its next start.
                let _ = requests.send(fact).await;
            }
        })
    }
}

/// A fork inherits the ids that its origin was told of, and numbers its own commands from 1.
fn message(notice: JobNotice) -> MailboxMessage {
    let JobNotice { message, wakes } = notice;
    MailboxMessage {
        id: format!("{ID}{}", uuid::Uuid::now_v7()),
        kind: MailboxKind::Notify,
        payload: json!({ "message": message, "waits": !wakes }),
        created: now_ms(),
    }
}

impl Pod {
    /// A command in the background has ended: a run takes the message before its next request; an idle Pod wakes if the
    /// command ended by itself.
    pub(super) async fn job_ended(&mut self, row: MailboxMessage) {
        if self.must_be_live().is_err() {
            return;
        }
        let wakes = row.wakes();
        self.hand_over(row);
        match wakes {
            true => self.wake().await,
            false => self.show_what_waits().await,
        }
    }

    /// Shows how many commands run in the background, and the requests that wait for commands.
    pub(super) fn show_jobs(&mut self) {
        self.show_granted();
        let running = *self.jobs.running().borrow();
        self.change(|info| info.jobs = u32::try_from(running).unwrap_or(u32::MAX));
    }

    /// Commands that run by the store and not in this process ended with the host that ran them: the Pod is told once,
    /// with its next run, and none is started again.
    pub(super) async fn end_jobs_of_former_host(&self) {
        let (store, pod) = (&self.shared.store, &self.row.name);
        let rows = store.jobs_that_run(pod).await.unwrap_or_default();
        for (number, command) in rows {
            if self.jobs.runs(number) {
                continue;
            }
            let notice = JobNotice { message: ended_with_host(number, &command), wakes: false };
            let stored = store.job_ended(pod, number, Some(message(notice))).await;
            stored.or_log("store that a command in the background ended with its host");
        }
    }
}
