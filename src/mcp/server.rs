//! One server: the handle of the Pods that use it. Its task starts it, restarts it when it fails, and ends it with
//! its last user.

mod advice;
mod task;
#[cfg(test)]
mod tests;

use crate::config::McpDefinition;
use crate::mcp::connection::{Connection, Failed, Meanwhile};
use crate::mcp::launch::Launch;
use crate::mcp::listing::Listing;
use crate::mcp::server::task::Task;
use crate::protocol::{McpServerInfo, McpServerState, PodName};
use crate::trace::Hidden;
use rmcp::model::JsonObject;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long a Pod waits for the tools of a server that it starts.
const FIRST_WAIT: Duration = Duration::from_secs(15);
/// How long a request waits for the list of tools that changed.
const LIST_WAIT: Duration = Duration::from_secs(3);
/// How long a call waits for a server that failed to be started again.
const RESTART_WAIT: Duration = Duration::from_secs(3);
/// How long a call waits for the reason why its connection ended.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// A server that at least one Pod uses. It ends when this is dropped.
pub struct Server {
    pub definition: McpDefinition,
    hidden: Hidden,
    state: watch::Receiver<State>,
    /// Each message asks for the restart of a server that failed.
    wanted: watch::Sender<()>,
    users: Mutex<Vec<PodName>>,
    first_wait: Instant,
    end: CancellationToken,
    /// Set to end the process at once.
    at_once: CancellationToken,
}

/// The use of a server by a Pod, until this is dropped.
pub struct InUse {
    pub server: Arc<Server>,
    pod: PodName,
}

#[derive(Clone)]
struct State {
    phase: Phase,
    /// The tools as they were listed last; they stay while it is started again.
    listing: Option<Arc<Listing>>,
    /// The changes of its tools that its connection had told when they were listed last.
    listed_at: u64,
    /// The newest error, as a sentence without a subject; it stays after the server works again.
    last_error: Option<String>,
    /// The number of failures of the server.
    failures: u64,
}

#[derive(Clone)]
enum Phase {
    Starting,
    Ready(Arc<Connection>),
    /// The reason, as a sentence without a subject.
    Failed(String),
    /// No Pod uses the server any more, or none may.
    Ended,
}

impl State {
    /// Whether the tools were listed since the server said last that they changed.
    fn is_listed(&self) -> bool {
        match &self.phase {
            Phase::Ready(connection) => *connection.changes().borrow() <= self.listed_at,
            Phase::Starting | Phase::Failed(_) | Phase::Ended => true,
        }
    }
}

impl Server {
    /// Starts a server; it runs until the last handle is dropped.
    pub fn start(definition: McpDefinition, launch: Launch) -> Arc<Self> {
        let first = State {
            phase: Phase::Starting,
            listing: None,
            listed_at: 0,
            last_error: None,
            failures: 0,
        };
        let (tell, state) = watch::channel(first);
        let (wanted, wishes) = watch::channel(());
        let (end, at_once) = (CancellationToken::new(), CancellationToken::new());
        let hidden = launch.hidden(&definition);
        let task = Task {
            definition: definition.clone(),
            launch,
            state: tell,
            end: end.clone(),
            at_once: at_once.clone(),
        };
        tokio::spawn(task.run(wishes));
        Arc::new(Self {
            definition,
            hidden,
            state,
            wanted,
            users: Mutex::default(),
            first_wait: Instant::now() + FIRST_WAIT,
            end,
            at_once,
        })
    }

    /// Notes that a Pod uses the server.
    pub fn join(self: Arc<Self>, pod: &PodName) -> InUse {
        self.users().push(pod.clone());
        InUse { server: self, pod: pod.clone() }
    }

    fn users(&self) -> MutexGuard<'_, Vec<PodName>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the server at once.
    pub fn end_now(&self) {
        self.at_once.cancel();
        self.end.cancel();
    }

    pub fn is_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Asks for a restart if the server failed, and waits until the server offers its tools or fails, but no longer
    /// than for the start of a server. Tools that the server said it changed are listed anew first.
    pub async fn want_and_wait(&self) {
        self.wanted.send_replace(());
        let mut state = self.state.clone();
        let started = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        // Whatever came of it, its state says it.
        let _ = timeout_at(self.first_wait, started).await;
        // A server that lists its tools late again is not waited for: what it listed before is offered.
        let _ = timeout(LIST_WAIT, state.wait_for(State::is_listed)).await;
    }

    /// Whether it was started and neither offered tools nor failed so far.
    pub fn is_first_starting(&self) -> bool {
        let state = self.state.borrow();
        matches!(state.phase, Phase::Starting)
            && state.listing.is_none()
            && Instant::now() < self.first_wait
    }

    /// The tools as they were listed last.
    pub fn listing(&self) -> Option<Arc<Listing>> {
        self.state.borrow().listing.clone()
    }

    /// Why it does not work now.
    pub fn failure(&self) -> Option<String> {
        match &self.state.borrow().phase {
            Phase::Failed(why) => Some(self.sentence(why)),
            Phase::Starting | Phase::Ready(_) | Phase::Ended => None,
        }
    }

    /// Whether its tools can be called now.
    pub fn is_ready(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Ready(_))
    }

    pub fn info(&self) -> McpServerInfo {
        let state = self.state.borrow().clone();
        let listing = state.listing.unwrap_or_default();
        McpServerInfo {
            name: self.definition.name.clone(),
            reached_by: self.definition.shown(),
            file: self.definition.file.clone(),
            state: match state.phase {
                Phase::Starting => McpServerState::Starting,
                Phase::Ready(_) => McpServerState::Ready,
                Phase::Failed(_) => McpServerState::Failed,
                Phase::Ended => McpServerState::Unused,
            },
            tools: listing.offers.iter().map(|offer| offer.name.clone()).collect(),
            notes: listing.notes.clone(),
            last_error: state.last_error,
            users: self.users().clone(),
            withheld: Vec::new(),
        }
    }

    /// Calls a tool by the server's own name for it. An error is a sentence for the model.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        meanwhile: Meanwhile<'_>,
    ) -> Result<Value, String> {
        let (connection, failures) = tokio::select! {
            connected = self.connected() => connected?,
            () = cancel.cancelled() => return Err(self.sentence("the call was cancelled")),
        };
        let answer = connection.call(tool, arguments, cancel, meanwhile).await;
        let failed = match answer {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        Err(match failed {
            Failed::Refused(why) => self.sentence(&format!("refused the call: {why}")),
            Failed::TimedOut(limit) => {
                let (seconds, name) = (limit.as_secs(), &self.definition.name);
                self.sentence(&format!(
                    "did not answer within {seconds} s; a person can give it longer with `timeout_s` below [mcp.{name}]"
                ))
            }
            Failed::Cancelled => self.sentence("the call was cancelled"),
            Failed::Other(why) => self.sentence(&why),
            Failed::Closed => self.sentence(&format!(
                "ended while it worked on the call, and what it did of it is not known: {}",
                self.why_closed(&connection, failures).await
            )),
        })
    }

    /// The connection, and how often the server failed before it; a server that is being started is waited for.
    async fn connected(&self) -> Result<(Arc<Connection>, u64), String> {
        const STARTING: &str = "is still being started; try again later";
        const ENDED: &str = "yoi ended it; it starts again with the next turn that may use it";
        self.wanted.send_replace(());
        let mut state = self.state.clone();
        if self.failure().is_some() {
            // A server that failed for the first time is started again soon.
            let again = state.wait_for(|state| !matches!(state.phase, Phase::Failed(_)));
            let _ = timeout(RESTART_WAIT, again).await;
        }
        let started = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        let State { phase, failures, .. } = match timeout(FIRST_WAIT, started).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => return Err(self.sentence(ENDED)),
            Err(_) => return Err(self.sentence(STARTING)),
        };
        match phase {
            Phase::Ready(connection) => Ok((connection, failures)),
            Phase::Failed(why) => Err(self.sentence(&why)),
            Phase::Starting => Err(self.sentence(STARTING)),
            Phase::Ended => Err(self.sentence(ENDED)),
        }
    }

    /// Waits for the reason that the task finds when a connection ends. `failures` were before the connection.
    async fn why_closed(&self, connection: &Connection, failures: u64) -> String {
        let mut state = self.state.clone();
        let found =
            |state: &State| state.failures != failures || matches!(state.phase, Phase::Ended);
        // The sentence about a process that ended says more than the end of the connection.
        let why = match timeout(CLOSE_WAIT, state.wait_for(found)).await {
            Ok(Ok(state)) if state.failures != failures => state.last_error.clone(),
            Ok(_) => Some("yoi ended it".into()),
            Err(_) => connection.why(),
        };
        why.unwrap_or_else(|| "the connection ended".into())
    }

    fn sentence(&self, what: &str) -> String {
        self.hidden.redact(&format!("MCP server `{}`: {what}", self.definition.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut users = self.server.users();
        if let Some(at) = users.iter().position(|user| *user == self.pod) {
            users.remove(at);
        }
    }
}
