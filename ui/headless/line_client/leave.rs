//! The end of a conversation of lines, and of the host if this process is the host.

use crate::headless::exit::{Exit, Failure, after_host};
use crate::headless::line_client::{Awaited, LineClient};
use std::time::Duration;
use yoi::host::Host;
use yoi::protocol::{Method, PodName};

/// How often the other clients of the host in this process are counted.
const CHECK: Duration = Duration::from_millis(200);
/// How long a run may take to be paused when a signal ends the program.
const PAUSE: Duration = Duration::from_secs(5);

impl LineClient {
    /// Interrupts a Pod after a signal: each request is sent once, and its reply awaited for 5 s.
    pub async fn interrupt(&mut self, pod: &PodName, then: &[Method]) {
        for method in then {
            let call = self.client.call(Some(pod), method.clone());
            // The host may be ending too; there is nothing left to do about a refusal.
            let _ = tokio::time::timeout(PAUSE, call).await;
        }
    }

    /// Ends the conversation; fails if a request was denied during it. A host that is this process ends
    /// with it, once no Pod works and no other client is attached; after a signal at once.
    pub async fn leave(mut self, result: &Result<(), Failure>) -> Result<(), Failure> {
        let signalled = matches!(result, Err(Failure { exit: Exit::Signal(_), .. }));
        let shown = if signalled { Ok(()) } else { self.all_shown().await };
        let Some(host) = self.host.take() else {
            return shown.and(self.inbox.outcome());
        };
        let signalled = signalled || shown.is_err();
        let waited = if signalled { Ok(()) } else { self.while_others_work(&host).await };
        let ended = shown.and(waited).and(self.inbox.outcome());
        drop(self);
        host.end().await;
        ended
    }

    /// Waits as long as a Pod is at work or another client is attached to the host in this process.
    pub(super) async fn while_others_work(&mut self, host: &Host) -> Result<(), Failure> {
        loop {
            self.while_others_are_attached(host).await?;
            tokio::select! {
                done = self.until_idle(Awaited::AllPods) => done?,
                ending = host.ended() => return after_host(ending),
            }
            if host.others(1) == 0 {
                return Ok(());
            }
        }
    }

    pub(super) async fn while_others_are_attached(&mut self, host: &Host) -> Result<(), Failure> {
        let mut check = tokio::time::interval(CHECK);
        while host.others(1) > 0 {
            tokio::select! {
                _ = check.tick() => {}
                happened = self.listen() => happened?,
                ending = host.ended() => return after_host(ending),
            }
            self.refresh().await?;
        }
        Ok(())
    }
}
