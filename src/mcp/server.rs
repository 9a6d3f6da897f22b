//! One server and its life: started, greeted, restarted when it fails, and ended with its last user.

use crate::config::McpDefinition;
use crate::mcp::connection::{Connection, Failed, Running};
use crate::mcp::launch::{Launch, Process};
use crate::mcp::listing::Listing;
use crate::trace::redact;
use rmcp::model::JsonObject;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A server that lived so long failed for a new reason.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long a Pod waits for the tools of a server that it starts.
const FIRST_WAIT: Duration = Duration::from_secs(15);
/// How long a call waits for a server that failed to be started again.
const AGAIN: Duration = Duration::from_secs(3);
/// The least time between two looks at the tools of a server that says that they changed.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
/// How long a connection may take to close.
const TO_CLOSE: Duration = Duration::from_secs(3);

/// A server that at least one Pod uses. It ends when this is dropped.
pub struct Server {
    pub definition: McpDefinition,
    state: watch::Receiver<State>,
    /// A user wants it now: a server that failed is started again.
    wanted: Arc<Notify>,
    users: Mutex<Vec<String>>,
    first_wait: Instant,
    end: CancellationToken,
    /// The end without time for last acts.
    at_once: CancellationToken,
}

/// What a server is doing.
#[derive(Clone)]
struct State {
    phase: Phase,
    /// The tools as they were listed last; they stay while it is started again.
    listing: Option<Arc<Listing>>,
    /// The newest error, also after it works again.
    last_error: Option<String>,
}

#[derive(Clone)]
enum Phase {
    Starting,
    Ready(Arc<Connection>),
    Failed(String),
}

/// The word for what a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    Starting,
    Ready,
    Failed,
}

/// A server as a person sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    /// Its command line or address.
    pub reached_by: String,
    pub file: String,
    pub state: ServerState,
    /// The names of its tools for models.
    pub tools: Vec<String>,
    /// Which tools are left out or narrowed.
    pub notes: Vec<String>,
    pub last_error: Option<String>,
    /// The Pods that use it.
    pub users: Vec<String>,
}

impl Server {
    /// Starts a server; it runs until the last handle is dropped.
    pub fn start(definition: McpDefinition, launch: Launch) -> Arc<Self> {
        let first = State { phase: Phase::Starting, listing: None, last_error: None };
        let (tell, state) = watch::channel(first);
        let (end, wanted) = (CancellationToken::new(), Arc::new(Notify::new()));
        let at_once = CancellationToken::new();
        let life = Life {
            definition: definition.clone(),
            launch,
            state: tell,
            wanted: wanted.clone(),
            at_once: at_once.clone(),
        };
        tokio::spawn(life.run(end.clone()));
        Arc::new(Self {
            definition,
            state,
            wanted,
            users: Mutex::default(),
            first_wait: Instant::now() + FIRST_WAIT,
            end,
            at_once,
        })
    }

    /// Notes a user until [`Server::leave`].
    pub fn join(&self, pod: &str) {
        self.users().push(pod.to_owned());
    }

    pub fn leave(&self, pod: &str) {
        let mut users = self.users();
        if let Some(at) = users.iter().position(|user| user == pod) {
            users.remove(at);
        }
    }

    fn users(&self) -> MutexGuard<'_, Vec<String>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, and gives it no time for last acts.
    pub fn end_now(&self) {
        self.at_once.cancel();
        self.end.cancel();
    }

    pub fn is_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Waits until it offers its tools or failed, not longer than a Pod waits for a server that it starts; and
    /// starts it again if it failed.
    pub async fn settled(&self) {
        self.wanted.notify_one();
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        // Whatever came of it, its state says it.
        let _ = timeout_at(self.first_wait, settled).await;
    }

    /// Whether it was started and neither offered tools nor failed so far.
    pub fn is_new(&self) -> bool {
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
            Phase::Failed(why) => Some(why.clone()),
            Phase::Starting | Phase::Ready(_) => None,
        }
    }

    pub fn status(&self) -> ServerStatus {
        let state = self.state.borrow().clone();
        let listing = state.listing.unwrap_or_default();
        ServerStatus {
            name: self.definition.name.clone(),
            reached_by: self.definition.reached_by(),
            file: self.definition.file.clone(),
            state: match state.phase {
                Phase::Starting => ServerState::Starting,
                Phase::Ready(_) => ServerState::Ready,
                Phase::Failed(_) => ServerState::Failed,
            },
            tools: listing.offers.iter().map(|offer| offer.name.clone()).collect(),
            notes: listing.notes.clone(),
            last_error: state.last_error,
            users: self.users().clone(),
        }
    }

    /// Calls a tool by the server's own name for it. An error is a sentence for the model.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        progress: &mut (dyn FnMut(String) + Send),
    ) -> Result<Value, String> {
        let connection = tokio::select! {
            connection = self.connected() => connection?,
            () = cancel.cancelled() => return Err(self.sentence("the call was cancelled")),
        };
        let answer = connection.call(tool, arguments, cancel, progress).await;
        let failed = match answer {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        Err(match failed {
            Failed::Refused(why) => self.sentence(&format!("refused the call: {}", redact(&why))),
            Failed::TimedOut(limit) => {
                let (seconds, name) = (limit.as_secs(), &self.definition.name);
                self.sentence(&format!(
                    "did not answer within {seconds} s; a person can give it longer with `timeout_s` below [mcp.{name}]"
                ))
            }
            Failed::Cancelled => self.sentence("the call was cancelled"),
            Failed::Other(why) => self.sentence(&redact(&why)),
            Failed::Closed => self.sentence(&format!(
                "ended while it worked on the call, and what it did of it is not known: {}",
                self.why_closed(&connection).await
            )),
        })
    }

    /// The connection; a server that is being started is waited for.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        self.wanted.notify_one();
        let mut state = self.state.clone();
        if self.failure().is_some() {
            // One that failed for the first time is started again soon.
            let again = state.wait_for(|state| !matches!(state.phase, Phase::Failed(_)));
            let _ = timeout(AGAIN, again).await;
        }
        let settled = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        let phase = match timeout(FIRST_WAIT, settled).await {
            Ok(Ok(state)) => state.phase.clone(),
            Ok(Err(_)) => return Err(self.sentence("was ended")),
            Err(_) => return Err(self.sentence("is still being started; try again later")),
        };
        match phase {
            Phase::Ready(connection) => Ok(connection),
            Phase::Failed(why) => Err(why),
            Phase::Starting => Err(self.sentence("is still being started; try again later")),
        }
    }

    /// The failure that the end of a connection becomes in a moment.
    async fn why_closed(&self, connection: &Connection) -> String {
        let mut state = self.state.clone();
        let failed = state.wait_for(|state| !matches!(state.phase, Phase::Ready(_)));
        // The sentence about a process that ended says more than the end of the connection.
        let _ = timeout(TO_CLOSE, failed).await;
        self.state.borrow().last_error.clone().or_else(|| connection.why()).unwrap_or_default()
    }

    fn sentence(&self, what: &str) -> String {
        format!("MCP server `{}`: {what}", self.definition.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// The task of a server.
struct Life {
    definition: McpDefinition,
    launch: Launch,
    state: watch::Sender<State>,
    wanted: Arc<Notify>,
    at_once: CancellationToken,
}

/// How an attempt ended.
enum Outcome {
    /// Nobody uses the server any more.
    LetGo,
    /// For this reason, without a subject.
    Failed(String),
}

impl Life {
    async fn run(self, end: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            let Outcome::Failed(why) = self.attempt(&end).await else { return };
            if begun.elapsed() >= HEALTHY {
                pause = FIRST_PAUSE;
            }
            let why = self.with_advice(&why);
            tracing::warn!(server = self.definition.name, "an MCP server failed");
            self.state.send_modify(|state| {
                state.phase = Phase::Failed(why.clone());
                state.last_error = Some(why);
            });
            let wanted_again = async {
                sleep(pause).await;
                self.wanted.notified().await;
            };
            tokio::select! {
                () = wanted_again => {}
                () = end.cancelled() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.state.send_modify(|state| state.phase = Phase::Starting);
        }
    }

    async fn attempt(&self, end: &CancellationToken) -> Outcome {
        let close = CancellationToken::new();
        let started = match self.launch.start(&self.definition, close.clone()) {
            Ok(started) => started,
            Err(why) => return Outcome::Failed(why),
        };
        let greeting = started.greet();
        tokio::pin!(greeting);
        let (greeted, process) = tokio::select! {
            greeted = &mut greeting => greeted,
            () = end.cancelled() => {
                close.cancel();
                let (_, process) = greeting.await;
                self.let_go(process).await;
                return Outcome::LetGo;
            }
        };
        let (connection, running) = match greeted {
            Ok(connected) => connected,
            Err(why) => return Outcome::Failed(explained(why, process).await),
        };
        self.serve(Arc::new(connection), running, process, close, end).await
    }

    /// Offers the tools until the connection ends.
    async fn serve(
        &self,
        connection: Arc<Connection>,
        running: Running,
        process: Option<Process>,
        close: CancellationToken,
        end: &CancellationToken,
    ) -> Outcome {
        let closed = running.waiting();
        tokio::pin!(closed);
        let outcome = tokio::select! {
            _ = &mut closed => {
                let why = connection.why().unwrap_or_else(|| "the connection ended".into());
                return Outcome::Failed(explained(why, process).await);
            }
            why = self.keep_listed(&connection) => Outcome::Failed(why),
            () = end.cancelled() => Outcome::LetGo,
        };
        close.cancel();
        // A transport that does not close is dropped with its task's end, and the process with it.
        let _ = timeout(TO_CLOSE, closed).await;
        match outcome {
            Outcome::LetGo => {
                self.let_go(process).await;
                Outcome::LetGo
            }
            Outcome::Failed(why) => Outcome::Failed(explained(why, process).await),
        }
    }

    async fn let_go(&self, process: Option<Process>) {
        if let Some(process) = process {
            process.let_go(&self.at_once).await;
        }
    }

    /// Lists the tools now and whenever the server says that they changed; returns why that failed.
    async fn keep_listed(&self, connection: &Arc<Connection>) -> String {
        loop {
            let tools = match connection.tools().await {
                Ok(tools) => tools,
                Err(Failed::Closed) => std::future::pending().await,
                Err(Failed::TimedOut(limit)) => {
                    return format!("it did not list its tools within {} s", limit.as_secs());
                }
                Err(Failed::Refused(why)) => return format!("it refused to list its tools: {why}"),
                Err(Failed::Other(why)) => return why,
                Err(Failed::Cancelled) => return "its list of tools was cancelled".into(),
            };
            let listing = Arc::new(Listing::of(&self.definition.name, &tools));
            self.state.send_modify(|state| {
                state.phase = Phase::Ready(connection.clone());
                state.listing = Some(listing);
            });
            sleep(BETWEEN_LISTS).await;
            connection.changed().await;
        }
    }

    /// The sentence for a person and a model: which server, why, and what to do.
    fn with_advice(&self, why: &str) -> String {
        let McpDefinition { name, network, write, file, .. } = &self.definition;
        let has = |parts: &[&str]| parts.iter().any(|part| why.contains(part));
        let no_net = [
            "ENOTFOUND",
            "EAI_AGAIN",
            "getaddrinfo",
            "name resolution",
            "ENETUNREACH",
            "Network is unreachable",
            "resolve host",
            "dns error",
            "Failed to fetch",
        ];
        let unread = self.launch.unread(&self.definition).filter(|_| has(&["exit code"]));
        let advice = if let Some(path) = unread {
            let dir = path.parent().unwrap_or(path);
            let dir = dir.parent().filter(|_| dir.ends_with("bin")).unwrap_or(dir);
            format!(
                "it does not see {}, which lies outside the scope of its pod: `read = [\"{}\"]` below [mcp.{name}] in \
                 config.toml lets it read all of that",
                path.display(),
                dir.display()
            )
        } else if has(&["exit code 127", "exit code 126"]) {
            format!("is its program installed, and on PATH? its command stands in {file}")
        } else if !network && has(&no_net) {
            format!("`network = true` below [mcp.{name}] in config.toml gives it the network")
        } else if !write && has(&["Read-only file system", "EROFS"]) {
            format!(
                "`write = true` below [mcp.{name}] in config.toml lets it write what its pod may write"
            )
        } else if why.contains("it was not reached") {
            format!("does it run? its address stands in {file}")
        } else if why.contains(crate::mcp::connection::AUTHORIZATION) {
            format!("it stands in {file}")
        } else {
            format!("look at `{name}` in {file}; :mcp shows how it stands")
        };
        redact(&format!("MCP server `{name}`: {why}; {advice}")).into_owned()
    }
}

async fn explained(why: String, process: Option<Process>) -> String {
    let more = match process {
        Some(process) => process.explain().await,
        None => None,
    };
    more.map_or(why.clone(), |more| format!("{why} ({more})"))
}
