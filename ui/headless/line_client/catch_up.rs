//! Shows the logs of Pods of which events were missed, one Pod at a time, in a task of its own.

use crate::headless::exit::{Exit, Failure};
use crate::headless::follow::CaughtUp;
use crate::headless::line_client::LineClient;
use tokio::task::JoinHandle;
use yoi::protocol::PodName;

/// The task that shows the log of a Pod.
pub type CatchingUp = JoinHandle<Result<CaughtUp, Failure>>;

impl LineClient {
    /// Begins to show the log of a Pod of which events were missed, one Pod at a time.
    pub(super) fn start_catching_up(&mut self) {
        if self.catching_up.is_some() {
            return;
        }
        let form = self.printer.form();
        let Some((name, follow)) = self.follows.iter_mut().find(|(_, f)| f.needs_log(form)) else {
            return;
        };
        let task = follow.catch_up(self.client.clone(), name.clone(), &self.printer);
        self.catching_up = Some((name.clone(), tokio::spawn(task.run())));
    }

    pub(super) fn caught_up(
        &mut self,
        name: PodName,
        caught: Result<CaughtUp, Failure>,
    ) -> Result<(), Failure> {
        match caught {
            Ok(caught) => {
                if let Some(follow) = self.follows.get_mut(&name) {
                    follow.caught_up(caught);
                }
                self.note_whose_run(&name);
                Ok(())
            }
            // The Pod was removed, and its log with it.
            Err(_) if self.family.get(&name).is_none() => {
                self.follows.remove(&name);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Waits until every committed entry is shown and written.
    pub(super) async fn all_shown(&mut self) -> Result<(), Failure> {
        let behind = |client: &Self| {
            let form = client.printer.form();
            client.catching_up.is_some() || client.follows.values().any(|f| f.needs_log(form))
        };
        while behind(self) || self.printer.is_waiting() {
            self.listen().await?;
        }
        let output = self.printer.output().clone();
        self.while_listening(async move { output.flush().await }).await
    }
}

/// The end of the task that shows a log. Cancel-safe.
pub async fn joined(
    task: &mut Option<(PodName, CatchingUp)>,
) -> (PodName, Result<CaughtUp, Failure>) {
    let Some((_, running)) = task else { return std::future::pending().await };
    let ended = running.await.unwrap_or_else(|error| {
        Err(Failure::new(Exit::Failed, format!("the log could not be shown: {error}")))
    });
    let name = task.take().map(|(name, _)| name);
    match name {
        Some(name) => (name, ended),
        None => std::future::pending().await,
    }
}
