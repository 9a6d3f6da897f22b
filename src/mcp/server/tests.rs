//! The states of a server, with a server of the test at the other end, under a clock of the test.

use crate::config::McpDefinition;
use crate::config::mcp::Reach;
use crate::mcp::connection::Meanwhile;
use crate::mcp::launch::Launch;
use crate::mcp::pod::{Asked, Decided, PodServers, Topic};
use crate::mcp::pool::Pool;
use crate::mcp::server::Server;
use crate::protocol::{McpServerState, PodName};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

fn definition() -> McpDefinition {
    McpDefinition {
        name: "demo".into(),
        reach: Reach::Http { url: String::new(), headers: Default::default() },
        network: false,
        write: true,
        read: Vec::new(),
        start: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
        file: "config.toml".into(),
        of_workspace: false,
    }
}

fn started() -> (Arc<Server>, UnboundedReceiver<DuplexStream>) {
    let (to, connections) = unbounded_channel();
    (Server::start(definition(), Launch::Test(to)), connections)
}

/// The server's end of a connection.
struct Peer(BufReader<DuplexStream>);

impl Peer {
    async fn next(connections: &mut UnboundedReceiver<DuplexStream>) -> Self {
        Self(BufReader::new(connections.recv().await.expect("a connection")))
    }

    /// The next request of this method; requests of other methods are skipped.
    async fn request(&mut self, method: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).await.unwrap(), 0, "the connection ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.0.get_mut().write_all(line.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn refuse(&mut self, request: &Value) {
        self.refuse_with(request, "no such method").await;
    }

    async fn refuse_with(&mut self, request: &Value, why: &str) {
        let error = json!({"code": -32601, "message": why});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    /// Answers the greeting and the first list.
    async fn greet(&mut self) {
        let greeting = self.request("initialize").await;
        let info = json!({"name": "demo", "version": "1"});
        let result = json!({
            "protocolVersion": greeting["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": info
        });
        self.answer(&greeting, result).await;
        self.list("echo").await;
    }

    async fn list(&mut self, tool: &str) {
        let list = self.request("tools/list").await;
        let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
        self.answer(&list, json!({"tools": tools})).await;
    }
}

async fn call(server: Arc<Server>) -> Result<Value, String> {
    let cancel = CancellationToken::new();
    server
        .call(
            "echo",
            Default::default(),
            &cancel,
            Meanwhile { progress: &mut |_| {}, person: None },
        )
        .await
}

fn tools(server: &Server) -> Vec<String> {
    server.info().tools
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lists_its_tools_late_again_keeps_its_calls_and_its_former_list() {
    let (server, mut connections) = started();
    let mut peer = Peer::next(&mut connections).await;
    peer.greet().await;
    server.want_and_wait().await;
    let calling = tokio::spawn(call(server.clone()));
    let request = peer.request("tools/call").await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    let list = peer.request("tools/list").await;
    // The call tells progress for longer than an answer may take, and the server answers no other request meanwhile.
    let token = &request["params"]["_meta"]["progressToken"];
    for step in 0..10 {
        tokio::time::advance(Duration::from_secs(50)).await;
        let params = json!({"progressToken": token, "progress": step});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        peer.send(progress).await;
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    peer.answer(&request, json!({"content": []})).await;
    assert_eq!(calling.await.unwrap().unwrap()["content"], json!([]));
    assert_eq!(tools(&server), ["mcp__demo__echo"]);
    peer.answer(&list, json!({"tools": "none"})).await;
    let failed = |state: &super::State| state.last_error.is_some();
    server.state.clone().wait_for(failed).await.unwrap();
    let info = server.info();
    assert_eq!((info.state, info.tools), (McpServerState::Ready, vec!["mcp__demo__echo".into()]));
    let error = info.last_error.unwrap();
    assert!(error.ends_with("the tools that it listed before are offered"), "{error}");
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    peer.list("other").await;
    let changed = |state: &super::State| {
        state.listing.as_ref().is_some_and(|listing| listing.offers[0].tool == "other")
    };
    server.state.clone().wait_for(changed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_is_started_again_when_it_is_wanted_and_not_before() {
    let (server, mut connections) = started();
    let mut peer = Peer::next(&mut connections).await;
    peer.greet().await;
    server.want_and_wait().await;
    drop(peer);
    let failed = |state: &super::State| state.failures == 1;
    server.state.clone().wait_for(failed).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(connections.try_recv().is_err(), "nobody wanted it");
    let calling = tokio::spawn(call(server.clone()));
    let mut peer = Peer::next(&mut connections).await;
    peer.greet().await;
    let request = peer.request("tools/call").await;
    peer.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_pause_grows_for_a_server_that_never_answers_the_greeting() {
    let (server, mut connections) = started();
    let mut pauses = Vec::new();
    for failures in 1..=6 {
        let _peer = Peer::next(&mut connections).await;
        let failed = |state: &super::State| state.failures == failures;
        server.state.clone().wait_for(failed).await.unwrap();
        let begun = Instant::now();
        server.want_and_wait().await;
        let starting = |state: &super::State| matches!(state.phase, super::Phase::Starting);
        server.state.clone().wait_for(starting).await.unwrap();
        pauses.push(begun.elapsed().as_secs());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_only_the_version_without_sessions_is_used() {
    let (server, mut connections) = started();
    let mut peer = Peer::next(&mut connections).await;
    let greeting = peer.request("initialize").await;
    peer.refuse(&greeting).await;
    let mut peer = Peer::next(&mut connections).await;
    let greeting = peer.request("server/discover").await;
    let result = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "demo", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "private"
    });
    peer.answer(&greeting, result).await;
    peer.list("echo").await;
    server.want_and_wait().await;
    let calling = tokio::spawn(call(server.clone()));
    let request = peer.request("tools/call").await;
    let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28", "{request}");
    peer.answer(&request, json!({"resultType": "complete", "content": []})).await;
    assert_eq!(calling.await.unwrap().unwrap()["content"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_both_greetings_is_said_with_the_first_refusal() {
    let (server, mut connections) = started();
    for (method, why) in [("initialize", "no token"), ("server/discover", "no such method")] {
        let mut peer = Peer::next(&mut connections).await;
        let greeting = peer.request(method).await;
        peer.refuse_with(&greeting, why).await;
    }
    let failed = |state: &super::State| state.failures == 1;
    server.state.clone().wait_for(failed).await.unwrap();
    let why = server.failure().unwrap();
    assert!(why.contains("it refused `initialize`: no token"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_loses_its_server_says_so_once_and_blames_no_older_failure() {
    let (server, mut connections) = started();
    // The first failure is one of the greeting.
    drop(Peer::next(&mut connections).await);
    let failed = |state: &super::State| state.failures == 1;
    server.state.clone().wait_for(failed).await.unwrap();
    let older = server.failure().unwrap();
    assert!(older.starts_with("MCP server `demo`: it "), "{older}");
    let calling = tokio::spawn(call(server.clone()));
    let mut peer = Peer::next(&mut connections).await;
    peer.greet().await;
    peer.request("tools/call").await;
    drop(peer);
    let said = calling.await.unwrap().unwrap_err();
    let begins = "MCP server `demo`: ended while it worked on the call, and what it did of it is not known: the \
                  connection ended; ";
    assert!(said.starts_with(begins), "{said}");
    assert_eq!(said.matches("MCP server").count(), 1, "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_ended_server_says_so_to_its_calls_and_no_pod_holds_it() {
    let (to, mut connections) = unbounded_channel();
    let pool = Pool::default();
    let pod = |name: &str| PodServers::new(pool.clone(), PodName::parse(name).unwrap());
    let (alice, bob) = (pod("alice"), pod("bob"));
    for pod in [&alice, &bob] {
        pod.hold("key".into(), &definition(), Launch::Test(to.clone()));
    }
    let mut peer = Peer::next(&mut connections).await;
    peer.greet().await;
    let server = bob.servers().remove(0);
    server.want_and_wait().await;
    assert_eq!(pool.list()[0].users.len(), 2);
    let calling = tokio::spawn(call(server.clone()));
    peer.request("tools/call").await;
    alice.end_writers();
    let said = calling.await.unwrap().unwrap_err();
    assert!(said.ends_with("is not known: yoi ended it"), "{said}");
    let said = call(server).await.unwrap_err();
    assert!(said.contains("`demo`: yoi ended it"), "{said}");
    assert!(!bob.holds("demo", "key"), "it is to be started again");
    assert_eq!(pool.list(), []);
    bob.hold("key".into(), &definition(), Launch::Test(to));
    Peer::next(&mut connections).await.greet().await;
    assert!(bob.holds("demo", "key"));
    assert_eq!(pool.list()[0].users, [PodName::parse("bob").unwrap()]);
}

#[test]
fn what_is_wrong_is_reported_once_and_a_failure_again_after_the_server_worked() {
    let pod = PodServers::new(Pool::default(), PodName::parse("alice").unwrap());
    let failed = || Topic::Failed("demo".into());
    assert!(pod.is_wrong(failed(), "exit code 1; it said: 10:31"));
    assert!(!pod.is_wrong(failed(), "exit code 1; it said: 10:32"), "the same failure again");
    pod.is_right(&failed());
    assert!(pod.is_wrong(failed(), "exit code 1; it said: 10:33"), "it worked in the meantime");
    let not_started = || Topic::NotStarted("demo".into());
    assert!(
        pod.is_wrong(not_started(), "A is not set") && !pod.is_wrong(not_started(), "A is not set")
    );
    assert!(pod.is_wrong(not_started(), "B is not set"), "another reason");
    assert_eq!(pod.withheld(), [("demo".to_owned(), "B is not set".to_owned())]);
    pod.clear();
    assert_eq!(pod.withheld(), [], "the settings do not name it any more");
}

#[test]
fn a_decision_about_the_tools_of_a_server_is_none_about_the_same_tools_of_another() {
    let pod = PodServers::new(Pool::default(), PodName::parse("a").unwrap());
    let asked = |server: &str| Asked {
        tool: "McpTools".into(),
        server: server.into(),
        sha256: "0123".into(),
    };
    pod.decide(asked("work"), Decided::Refused("denied".into()));
    assert_eq!(pod.decision(&asked("work")), Some(Decided::Refused("denied".into())));
    assert_eq!(pod.decision(&asked("home")), None);
}
