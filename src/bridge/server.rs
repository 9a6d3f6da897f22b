//! The MCP server: it answers at once, and its agent joins the mesh behind it.

use crate::bridge::agent::{Agent, Arrived};
use crate::bridge::host::Host;
use crate::bridge::transport::{Input, Lined, Output, Traffic};
use crate::bridge::waiting::{self, Waiting};
use crate::bridge::{tools, words};
use crate::config::{Dirs, Env};
use crate::mesh::FolderAgent;
use crate::text::SafeText;
use futures_util::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification,
    ExperimentalCapabilities, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{
    Peer, RequestContext, RunningService, ServerInitializeError, SubscriptionContext,
};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the agent may take to leave.
const LEAVING: Duration = Duration::from_secs(2);
/// Messages whose arrival the client is not told of yet; of further ones it is not told.
const ARRIVED: usize = 64;
/// The capability of servers that wake Claude Code, and of clients that can be woken so.
const CHANNEL: &str = "claude/channel";
/// A client that can be woken so and does not say it.
const CLAUDE: &str = "claude-code";

/// What the program hands in.
pub struct Serving {
    pub input: Input,
    pub output: Output,
    /// Says a sentence to the person who started the client.
    pub note: fn(&str),
    pub dirs: Dirs,
    pub env: Env,
    /// The client's agent on the mesh.
    pub agent: FolderAgent,
}

/// Serves until the client closes its end, or until `leave` resolves, whose value is returned then. An error is a
/// sentence.
pub async fn serve<T>(
    serving: Serving,
    leave: impl Future<Output = T>,
) -> Result<Option<T>, String> {
    let Serving { input, output, note, dirs, env, agent: me } = serving;
    let leaving = CancellationToken::new();
    let (arrived, arrivals) = mpsc::channel(ARRIVED);
    let instructions = words::instructions(&me);
    let host = Arc::new(Host::new(dirs.data.clone()));
    let (agent, task) = Agent::start(dirs, env, me.clone(), arrived, leaving.clone());
    let traffic = Traffic::default();
    let transport = Lined::new(input, output, note, traffic.clone());
    let waiting = Waiting::new();
    let server = Server { me, host, agent, traffic, giving: Arc::default(), waiting, instructions };
    let result = tokio::select! {
        result = run(server, transport, arrivals) => result.map(|()| None),
        value = leave => Ok(Some(value)),
    };
    leaving.cancel();
    // What the agent did not finish is on disk, and its lock ends with the process.
    let _ = timeout(LEAVING, task).await;
    result
}

async fn run(
    server: Server,
    transport: Lined,
    arrivals: mpsc::Receiver<Arrived>,
) -> Result<(), String> {
    let running: RunningService<RoleServer, Server> =
        match rmcp::serve_server(server, transport).await {
            Ok(running) => running,
            // The client had no request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
    let (peer, waiting) = (running.peer().clone(), running.service().waiting.clone());
    tokio::select! {
        ended = running.waiting() => match ended {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("the MCP service ended: {error}")),
        },
        () = tell(peer, waiting, arrivals) => Ok(()),
    }
}

/// Tells the client of each message that arrives, where it can take that.
async fn tell(peer: Peer<RoleServer>, waiting: Waiting, mut arrivals: mpsc::Receiver<Arrived>) {
    loop {
        // The agent holds the other end until the client is gone.
        let Some(Arrived { from, id }) = arrivals.recv().await else {
            return std::future::pending().await;
        };
        waiting.arrived(&peer).await;
        if !can_be_woken(&peer) {
            continue;
        }
        let name = SafeText::quoted(&from);
        let text = format!("A message from {name} waits (id={id}). Call get_messages.");
        let params = json!({ "content": text, "meta": { "from": from, "message_id": id } });
        let notification = CustomNotification::new("notifications/claude/channel", Some(params));
        let sent = peer.send_notification(ServerNotification::CustomNotification(notification));
        if let Err(error) = sent.await {
            tracing::warn!("the client could not be told of a message: {error}");
        }
    }
}

fn can_be_woken(peer: &Peer<RoleServer>) -> bool {
    let Some(client) = peer.peer_info() else { return false };
    let experimental = client.capabilities.experimental.as_ref();
    client.client_info.name == CLAUDE
        || experimental.is_some_and(|capabilities| capabilities.contains_key(CHANNEL))
}

/// What answers the client.
pub struct Server {
    /// The client's agent on the mesh.
    pub me: FolderAgent,
    pub host: Arc<Host>,
    pub agent: Agent,
    pub traffic: Traffic,
    /// Held while a batch is given, so that each request gets its own.
    pub giving: Arc<Mutex<()>>,
    waiting: Waiting,
    instructions: String,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let channel =
            ExperimentalCapabilities::from([(CHANNEL.to_owned(), serde_json::Map::new())]);
        let capabilities = ServerCapabilities::builder()
            .enable_experimental_with(channel)
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("yoi", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(waiting::listed())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        waiting::read(&request.uri).map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.waiting.subscribe(&request.uri, true)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.waiting.subscribe(&request.uri, false)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(self.waiting.accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.waiting.listen(&context).await;
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        let program = context.client_info();
        let call = tools::call(self, request, &context.id, program.as_ref());
        let call = AssertUnwindSafe(call).catch_unwind();
        match call.await {
            Ok(result) => result.map(CallToolResponse::from),
            Err(_) => {
                let text =
                    format!("a fault in yoi stopped {name}; `yoi trace` shows more: call it again");
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
            }
        }
    }
}
