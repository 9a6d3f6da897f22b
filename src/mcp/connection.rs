//! One connection to a server, from the greeting to the end.

use crate::config::McpDefinition;
use crate::mcp::gate::{Admit, Gate};
use crate::mcp::handler::{CallEvent, Handler};
use crate::text::SafeText;
use crate::tools::PersonPort;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode,
    JsonObject, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RunningService, ServiceError,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The assumed size of an unsolicited message over HTTP, in bytes.
const UNMEASURED: usize = 4096;
/// Pages of a list of tools, and bytes of all of them.
const MAX_PAGES: usize = 32;
const MAX_LIST: usize = 4 * 1024 * 1024;
/// The longest duration of a call, even if it reports progress.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// How long an orderly close of a transport may take.
const CLOSING: Duration = Duration::from_secs(1);
/// How long a server may take to read a cancellation.
const WITHDRAWING: Duration = Duration::from_millis(200);
/// Events of a call that wait to be shown or asked.
const CALL_EVENTS: usize = 32;

/// A server that answered the greeting.
pub struct Connection {
    peer: Peer<RoleClient>,
    handler: Handler,
    gate: Gate,
    timeout: Duration,
}

/// Where what a server sends while it works on a call goes.
pub struct Meanwhile<'a> {
    pub progress: &'a mut (dyn FnMut(String) + Send),
    /// The person who answers the questions of the server, if one can.
    pub person: Option<&'a PersonPort>,
}

/// The task of a connection; resolves when the connection has ended.
pub type Running = RunningService<RoleClient, Handler>;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// By this sentence of the server.
    Refused(String),
    /// The connection ended.
    Closed,
    /// It did not answer in time.
    TimedOut(Duration),
    Cancelled,
    /// For this reason.
    Other(String),
}

/// The first exchange of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// With `initialize`, as every version before 2026-07-28 does.
    Initialize,
    /// With `server/discover`: later versions have no sessions.
    Discover,
}

/// Why a connection did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotGreeted {
    /// A sentence without a subject.
    pub why: String,
    /// Whether the server answered that it does not do this: it may know the other greeting.
    pub is_refused: bool,
}

/// Greets a server.
pub async fn open<T>(
    transport: T,
    greeting: Greeting,
    definition: &McpDefinition,
    gate: Gate,
    end: CancellationToken,
) -> Result<(Connection, Running), NotGreeted>
where
    T: Transport<RoleClient> + 'static,
{
    let handler = Handler::new(&definition.name);
    let lifecycle = match greeting {
        Greeting::Initialize => ClientLifecycleMode::Initialize,
        Greeting::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
        }
    };
    let greeted = serve_client_with_lifecycle_and_ct(handler.clone(), transport, lifecycle, end);
    let running = match tokio::time::timeout(definition.start, greeted).await {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => {
            let is_refused = matches!(error, ClientInitializeError::JsonRpcError(_));
            let why = gate.why().get().unwrap_or_else(|| not_greeted(&error));
            return Err(NotGreeted { why, is_refused });
        }
        Err(_) => {
            let seconds = definition.start.as_secs();
            let why = format!("it did not answer `initialize` within {seconds} s");
            return Err(NotGreeted { why, is_refused: false });
        }
    };
    let (peer, timeout) = (running.peer().clone(), definition.timeout);
    Ok((Connection { peer, handler, gate, timeout }, running))
}

/// Why a greeting failed; what the server sent in its place is not repeated.
fn not_greeted(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return AUTHORIZATION.into();
    }
    match error {
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to `initialize` is none of MCP".into()
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".into(),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused `initialize`: {}", cut(&error.message))
        }
        ClientInitializeError::TransportError { error, .. } => {
            format!("it was not reached: {}", cut(&causes(error.error.as_ref())))
        }
        other => cut(&other.to_string()),
    }
}

/// An error with its causes. The library does not link the one of HTTP to its own.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(StreamableHttpError::Client(error)) =
        error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        return causes(error);
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

pub const AUTHORIZATION: &str = "it asks for OAuth, which yoi does not do yet: write a token of that service into \
                                 `headers`, as Authorization = \"Bearer ${VARIABLE}\"";

/// Characters of a server's sentence.
const MAX_SENTENCE: usize = 1000;

fn cut(text: &str) -> String {
    SafeText::brief(text, MAX_SENTENCE).into_string()
}

impl Connection {
    /// How often the server said that its tools changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.gate.changes()
    }

    /// Why the connection ended, where that is known.
    pub fn why(&self) -> Option<String> {
        self.gate.why().get()
    }

    /// The tools that the server lists, each unchanged. `patience` is the time for each page.
    pub async fn tools(&self, patience: Duration) -> Result<Vec<Value>, Failed> {
        let (mut tools, mut cursor, mut bytes) = (Vec::new(), None, 0);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let never = CancellationToken::new();
            let unfollowed = Meanwhile { progress: &mut |_| {}, person: None };
            let page = self.request(request, patience, &never, unfollowed).await?;
            bytes += page.to_string().len();
            if bytes > MAX_LIST {
                return Err(Failed::Other("its list of tools is longer than 4 MiB".into()));
            }
            match page.get("tools") {
                Some(Value::Array(more)) => tools.extend(more.iter().cloned()),
                _ => return Err(Failed::Other("its answer to tools/list holds no list".into())),
            }
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(Failed::Other(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    /// Calls a tool; the answer as the server sent it.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        meanwhile: Meanwhile<'_>,
    ) -> Result<Value, Failed> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.request(request, self.timeout, cancel, meanwhile).await
    }

    /// `patience` is how long the server may take without a sign of progress. It does not count while the server waits
    /// for the person.
    async fn request(
        &self,
        request: ClientRequest,
        patience: Duration,
        cancel: &CancellationToken,
        Meanwhile { progress, person }: Meanwhile<'_>,
    ) -> Result<Value, Failed> {
        // The library's own timeouts are not used: after one it waits until the server has read the cancellation.
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_cancellable_request(request, options).await.map_err(failed)?;
        let (to, mut events) = mpsc::channel(CALL_EVENTS);
        let _following = self.handler.follow(handle.progress_token.clone(), to);
        let (peer, id) = (handle.peer.clone(), handle.id.clone());
        let answer = handle.await_response();
        let (silent, longest) = (sleep(patience), sleep(LONGEST));
        tokio::pin!(answer, silent, longest);
        let mut asked: usize = 0;
        let given_up = loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.map(value).map_err(failed),
                () = cancel.cancelled() => break Failed::Cancelled,
                () = &mut longest, if asked == 0 => break Failed::TimedOut(LONGEST),
                Some(event) = events.recv() => {
                    silent.as_mut().reset(Instant::now() + patience);
                    match event {
                        CallEvent::Progress(line) => progress(line),
                        CallEvent::Question { text, question, reply } => {
                            asked += 1;
                            // Without a person the reply is dropped, which cancels the question.
                            if let Some(person) = person {
                                person.request(text, question, reply);
                            }
                        }
                        CallEvent::Replied => {
                            asked = asked.saturating_sub(1);
                            longest.as_mut().reset(Instant::now() + LONGEST);
                        }
                    }
                }
                () = &mut silent, if asked == 0 => break Failed::TimedOut(patience),
            }
        };
        withdraw(&peer, id, &given_up).await;
        Err(given_up)
    }
}

/// Tells the server that an answer is not wanted any more; one that does not listen is not waited for.
async fn withdraw(peer: &Peer<RoleClient>, id: rmcp::model::RequestId, why: &Failed) {
    use rmcp::model::{CancelledNotification, CancelledNotificationParam};
    let reason = match why {
        Failed::TimedOut(_) => "the answer took too long",
        _ => "the run was interrupted",
    };
    let params = CancelledNotificationParam::new(Some(id), Some(reason.into()));
    let cancelled = CancelledNotification::new(params);
    let sent = peer.send_notification(cancelled.into());
    let _ = tokio::time::timeout(WITHDRAWING, sent).await;
}

fn value(result: ServerResult) -> Value {
    // Results are JSON; what cannot be written as JSON was none.
    serde_json::to_value(result).unwrap_or_default()
}

fn failed(error: ServiceError) -> Failed {
    if error.is_authorization_required() {
        return Failed::Other(AUTHORIZATION.into());
    }
    match error {
        // This is not a refusal: the server, or this program, could not read a text.
        ServiceError::McpError(error) if error.code == ErrorCode::PARSE_ERROR => {
            Failed::Other(cut(&error.message))
        }
        ServiceError::McpError(error) => Failed::Refused(cut(&error.message)),
        ServiceError::TransportClosed => Failed::Closed,
        ServiceError::Cancelled { .. } => Failed::Cancelled,
        ServiceError::TransportSend(error) => Failed::Other(cut(&causes(error.error.as_ref()))),
        other => Failed::Other(cut(&other.to_string())),
    }
}

/// A transport of the library, behind a gate.
pub struct Gated<T> {
    pub inner: T,
    pub gate: Gate,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Gated<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.gate.sent(&item);
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            match self.gate.admit(&message, UNMEASURED) {
                Admit::Pass => return Some(message),
                Admit::Drop => {}
                Admit::End => return None,
            }
        }
    }

    /// The library's worker may wait until a message of a flood is read, and then does not report its end; dropping
    /// the transport ends it.
    async fn close(&mut self) -> Result<(), Self::Error> {
        tokio::time::timeout(CLOSING, self.inner.close()).await.unwrap_or(Ok(()))
    }
}
