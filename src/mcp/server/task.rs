//! The task of a server: starts it, keeps the list of its tools, and starts it again after a failure.

use crate::backoff::Backoff;
use crate::config::McpDefinition;
use crate::mcp::connection::{Connection, Failed, Greeting, LONGEST, NotGreeted, Running};
use crate::mcp::launch::{Launch, Process};
use crate::mcp::listing::Listing;
use crate::mcp::server::advice::with_advice;
use crate::mcp::server::{Phase, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The pauses after the first failure, and after many.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A server that worked for this long failed for a new reason.
const WORKED_LONG: Duration = Duration::from_secs(60);
/// The least time between two lists of the tools of a server that reports changes.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
/// How long a connection may take to close.
const CLOSING: Duration = Duration::from_secs(3);

pub(super) struct Task {
    pub(super) definition: McpDefinition,
    pub(super) launch: Launch,
    pub(super) state: watch::Sender<State>,
    pub(super) end: CancellationToken,
    pub(super) at_once: CancellationToken,
}

/// The outcome of an attempt.
enum Outcome {
    /// No Pod uses the server any more.
    Unused,
    Failed(Failure),
}

struct Failure {
    /// The reason, as a sentence without a subject.
    why: String,
    /// The time since the server's first list of tools.
    worked: Duration,
}

impl Failure {
    fn of(why: String) -> Self {
        Self { why, worked: Duration::ZERO }
    }
}

impl Task {
    pub(super) async fn run(self, mut wishes: watch::Receiver<()>) {
        let mut pauses = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        while let Outcome::Failed(Failure { why, worked }) = self.attempt().await {
            if worked >= WORKED_LONG {
                pauses.reset();
            }
            // Only a request after the failure asks for a restart.
            wishes.mark_unchanged();
            let why = with_advice(&why, &self.definition, &self.launch);
            tracing::warn!(server = self.definition.name, "an MCP server failed: {why}");
            self.state.send_modify(|state| {
                state.phase = Phase::Failed(why.clone());
                state.last_error = Some(why);
                state.failures += 1;
            });
            let pause = pauses.pause();
            let restart = async {
                sleep(pause).await;
                wishes.changed().await
            };
            tokio::select! {
                Ok(()) = restart => {}
                () = self.end.cancelled() => break,
            }
            self.state.send_modify(|state| state.phase = Phase::Starting);
        }
        self.note_end();
    }

    fn note_end(&self) {
        self.state.send_modify(|state| state.phase = Phase::Ended);
    }

    /// Starts the server and offers its tools until it ends. A server that refuses `initialize` may
    /// support only a version without sessions, so it is started again with a greeting of that
    /// version.
    async fn attempt(&self) -> Outcome {
        let refused = match self.attempt_with(Greeting::Initialize).await {
            Ok(outcome) => return outcome,
            Err(refused) if refused.is_refused => refused,
            Err(failed) => return Outcome::Failed(Failure::of(failed.why)),
        };
        let second = self.attempt_with(Greeting::Discover).await;
        second.unwrap_or_else(|_| Outcome::Failed(Failure::of(refused.why)))
    }

    async fn attempt_with(&self, greeting: Greeting) -> Result<Outcome, NotGreeted> {
        let close = CancellationToken::new();
        let started = self.launch.start(&self.definition, close.clone());
        let started = started.map_err(|why| NotGreeted { why, is_refused: false })?;
        let greeted = started.greet(greeting);
        tokio::pin!(greeted);
        let (greeted, process) = tokio::select! {
            greeted = &mut greeted => greeted,
            () = self.end.cancelled() => {
                self.note_end();
                close.cancel();
                let (_, process) = greeted.await;
                self.end_process(process).await;
                return Ok(Outcome::Unused);
            }
        };
        match greeted {
            Ok((connection, running)) => {
                Ok(self.serve(Arc::new(connection), running, process, close).await)
            }
            Err(NotGreeted { why, is_refused }) => {
                Err(NotGreeted { why: explained(why, process).await, is_refused })
            }
        }
    }

    /// Offers the tools until the connection ends.
    async fn serve(
        &self,
        connection: Arc<Connection>,
        running: Running,
        process: Option<Process>,
        close: CancellationToken,
    ) -> Outcome {
        let closed = running.waiting();
        let mut listed = None;
        tokio::pin!(closed);
        let failed = tokio::select! {
            _ = &mut closed => {
                Some(connection.why().unwrap_or_else(|| "the connection ended".into()))
            }
            why = self.keep_listed(&connection, &mut listed) => {
                self.close(close, closed).await;
                Some(why)
            }
            () = self.end.cancelled() => {
                self.note_end();
                self.close(close, closed).await;
                None
            }
        };
        let worked = listed.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        match failed {
            Some(why) => Outcome::Failed(Failure { why: explained(why, process).await, worked }),
            None => {
                self.end_process(process).await;
                Outcome::Unused
            }
        }
    }

    /// Closes a connection. A transport that does not close in time is dropped, which ends the process.
    async fn close(&self, close: CancellationToken, closed: impl Future) {
        close.cancel();
        let _ = timeout(CLOSING, closed).await;
    }

    async fn end_process(&self, process: Option<Process>) {
        if let Some(process) = process {
            process.end(&self.at_once).await;
        }
    }

    /// Lists the tools now and whenever the server says that they changed; returns why the first
    /// list failed. `listed` is the time of that list. If a later list is late or wrong, the last
    /// list and the running calls stay.
    async fn keep_listed(
        &self,
        connection: &Arc<Connection>,
        listed: &mut Option<Instant>,
    ) -> String {
        let mut patience = self.definition.timeout;
        let mut changes = connection.changes();
        loop {
            let listed_at = *changes.borrow_and_update();
            let tools = match connection.tools(patience).await {
                Err(Failed::Closed) => std::future::pending().await,
                tools => tools.map_err(not_listed),
            };
            match tools {
                Ok(tools) => {
                    let listing = Arc::new(Listing::of(&self.definition.name, &tools));
                    self.state.send_modify(|state| {
                        state.phase = Phase::Ready(connection.clone());
                        state.listing = Some(listing);
                        state.listed_at = listed_at;
                    });
                }
                Err(why) if listed.is_none() => return why,
                Err(why) => {
                    let why = format!("{why}; the tools that it listed before are offered");
                    self.state.send_modify(|state| {
                        state.last_error = Some(why);
                        state.listed_at = listed_at;
                    });
                }
            }
            listed.get_or_insert_with(Instant::now);
            // A server that handles one call at a time lists its tools after that call.
            patience = LONGEST;
            sleep(BETWEEN_LISTS).await;
            if changes.changed().await.is_err() {
                // The connection holds the other end.
                return "the connection ended".into();
            }
        }
    }
}

/// The reason why there is no list of tools, as a sentence without a subject.
fn not_listed(failed: Failed) -> String {
    match failed {
        Failed::TimedOut(limit) => {
            format!("it did not list its tools within {} s", limit.as_secs())
        }
        Failed::Refused(why) => format!("it refused to list its tools: {why}"),
        Failed::Other(why) => why,
        Failed::Cancelled => "its list of tools was cancelled".into(),
        Failed::Closed => "the connection ended".into(),
    }
}

async fn explained(why: String, process: Option<Process>) -> String {
    let more = match process {
        Some(process) => process.explain().await,
        None => None,
    };
    more.map_or(why.clone(), |more| format!("{why} ({more})"))
}
