//! The end of a conversation of lines, and of the host if this process is the host.

use crate::console;
use crate::headless::exit::{Exit, Failure, after_host, causes};
use crate::headless::line_client::LineClient;
use crate::headless::line_client::idle::{Awaited, OTHERS};
use crate::headless::signal::Signals;
use crate::start::{self, Opening};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use yoi::host::{Connections, Host};
use yoi::protocol::{AtHostEnd, Event, Method, PodName, Refusal};

/// The connections of this process to its own host.
const OWN: usize = 1;
/// Printed when all is done here and another client is attached to the host in this process.
const IN_USE: &str = "done; another client uses the host in this process, which ends when \
     that client leaves · an interrupt ends it once no Pod works";
/// SIGTERM, with which a service manager ends a host.
const TERMINATED: u8 = 15;
/// How long a run may take to be paused when a signal ends the program.
const PAUSE: Duration = Duration::from_secs(5);

/// The host that runs in this process.
pub struct OwnHost {
    pub host: Host,
    /// How the host that takes over is started.
    pub opening: Opening,
}

impl LineClient {
    /// Interrupts a Pod after a signal: each request is sent once, and its reply awaited for 5 s. Returns
    /// whether the host accepted all of them.
    pub async fn interrupt(&mut self, pod: &PodName, then: &[Method]) -> bool {
        let mut accepted = true;
        for method in then {
            // The host may be ending too; there is nothing left to do about a refusal.
            let reply = tokio::time::timeout(PAUSE, self.call_last(pod, method.clone())).await;
            accepted &= reply.is_ok_and(|reply| reply.is_ok());
        }
        accepted
    }

    /// Sends a request and waits for its reply. Events that come before the reply are received and dropped, or the
    /// reply would never come.
    async fn call_last(&mut self, pod: &PodName, method: Method) -> Result<Event, Refusal> {
        let client = self.client.clone();
        let mut reply = pin!(client.call(Some(pod), method));
        loop {
            tokio::select! {
                reply = &mut reply => return reply,
                event = self.events.recv() => if event.is_none() {
                    return reply.await;
                },
            }
        }
    }

    /// Ends the conversation; fails if a request was denied during it. A host in this process ends with it, once no
    /// Pod works and no other client would lose its conversation; after a signal once no Pod works.
    pub async fn leave(mut self, result: &Result<(), Failure>) -> Result<(), Failure> {
        let signalled = signal_of(result);
        let shown = if signalled.is_some() { Ok(()) } else { self.all_shown().await };
        let Some(OwnHost { host, opening }) = self.host.take() else {
            return shown.and(self.inbox.outcome());
        };
        let is_left = signalled.is_some() || shown.is_err();
        let waited = if is_left { Ok(()) } else { self.while_others_work(&host).await };
        let signalled = signalled.or(signal_of(&shown)).or(signal_of(&waited));
        let ended = shown.and(waited).and(self.inbox.outcome());
        let own: BTreeSet<PodName> = self.own_pods().map(|info| info.name.clone()).collect();
        let signals = self.signals.clone();
        drop(self);
        if signalled.is_some_and(|number| number != TERMINATED) {
            outlive_client(&host, &signals).await;
        }
        end(host, &opening, &own).await;
        ended
    }

    /// Waits while a Pod works, or while a client that does not connect to the next host is attached to the host in
    /// this process.
    pub(super) async fn while_others_work(&mut self, host: &Host) -> Result<(), Failure> {
        let connections = host.connections();
        if connections.borrow().leaving() > OWN {
            self.printer.note(IN_USE);
        }
        loop {
            self.while_others_are_attached(host, connections.clone()).await?;
            tokio::select! {
                done = self.until_idle(Awaited::AllPods) => done?,
                ending = host.ended() => return after_host(ending),
            }
            if connections.borrow().leaving() <= OWN {
                return Ok(());
            }
        }
    }

    async fn while_others_are_attached(
        &mut self,
        host: &Host,
        mut connections: watch::Receiver<Connections>,
    ) -> Result<(), Failure> {
        let mut left = std::pin::pin!(connections.wait_for(|count| count.leaving() <= OWN));
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

/// The signal that ended a conversation.
fn signal_of(result: &Result<(), Failure>) -> Option<u8> {
    match result {
        Err(Failure { exit: Exit::Signal(number), .. }) => Some(*number),
        _ => None,
    }
}

/// Waits after the end of the conversation until no Pod works: those that do work for other clients, and their
/// commands would end with the host. A second signal ends the wait.
async fn outlive_client(host: &Host, signals: &Signals) {
    let at_work = host.at_work();
    if at_work.is_empty() {
        return;
    }
    signals.go_on();
    let names = at_work.iter().map(PodName::as_str).collect::<Vec<_>>().join(", ");
    console::err(&format!("still {OTHERS}: {names}"));
    tokio::select! {
        () = host.until_no_pod_works() => {}
        _ = signals.asked() => {}
    }
}

/// Ends the host in this process. Where dashboards are attached to it, or where it had to pause runs of other
/// programs, a host in the background takes over: the dashboards find it, and the runs go on there.
async fn end(host: Host, opening: &Opening, own: &BTreeSet<PodName>) {
    let was_asked = host.is_ending();
    let is_shown = host.connections().borrow().returning > 0;
    let mut paused = host.end().await;
    paused.retain(|pod| !own.contains(pod));
    if was_asked || (!is_shown && paused.is_empty()) {
        return;
    }
    if let Err(error) = take_over(opening, &paused).await {
        let why = causes(&error);
        console::err(&format!("no host in the background takes over ({why}); `yoi` starts one"));
    }
}

async fn take_over(opening: &Opening, paused: &[PodName]) -> anyhow::Result<()> {
    let (client, _events) = start::attach_or_start(opening, AtHostEnd::Leaves).await?;
    for pod in paused {
        client.call(Some(pod), Method::Resume).await?;
    }
    Ok(())
}
