//! The end of a conversation of lines, and of the host if this process is the host.

use crate::headless::exit::{Exit, Failure, after_host};
use crate::headless::line_client::{Awaited, LineClient};
use std::time::Duration;
use tokio::sync::watch;
use yoi::host::Host;
use yoi::protocol::{Method, PodName};

/// The connections of this process to its own host.
const OWN: usize = 1;
/// Printed when all is done here and another client is attached to the host in this process.
const IN_USE: &str = "done; another client uses the host in this process, which ends when \
     that client leaves · an interrupt ends it now, and running Pods are paused";
/// How long a run may take to be paused when a signal ends the program.
const PAUSE: Duration = Duration::from_secs(5);

impl LineClient {
    /// Interrupts a Pod after a signal: each request is sent once, and its reply awaited for 5 s. Returns
    /// whether the host accepted all of them.
    pub async fn interrupt(&mut self, pod: &PodName, then: &[Method]) -> bool {
        let mut accepted = true;
        for method in then {
            let call = self.client.call(Some(pod), method.clone());
            // The host may be ending too; there is nothing left to do about a refusal.
            let reply = tokio::time::timeout(PAUSE, call).await;
            accepted &= reply.is_ok_and(|reply| reply.is_ok());
        }
        accepted
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
        let connections = host.connections();
        if *connections.borrow() > OWN {
            self.printer.note(IN_USE);
        }
        loop {
            self.while_others_are_attached(host, connections.clone()).await?;
            tokio::select! {
                done = self.until_idle(Awaited::AllPods) => done?,
                ending = host.ended() => return after_host(ending),
            }
            if *connections.borrow() <= OWN {
                return Ok(());
            }
        }
    }

    async fn while_others_are_attached(
        &mut self,
        host: &Host,
        mut connections: watch::Receiver<usize>,
    ) -> Result<(), Failure> {
        let mut left = std::pin::pin!(connections.wait_for(|open| *open <= OWN));
        loop {
            self.refresh().await?;
            tokio::select! {
                _ = &mut left => return Ok(()),
                happened = self.listen() => happened?,
                ending = host.ended() => return after_host(ending),
            }
        }
    }
}
