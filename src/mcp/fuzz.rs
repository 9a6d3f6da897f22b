//! Damaged and invented frames of a server: a connection answers or ends, in time and with a reason, and a good
//! server beside it goes on. `YOI_FUZZ` is the number of seconds; the default is half a second.

use crate::config::McpDefinition;
use crate::config::mcp::Reach;
use crate::mcp::connection::{self, Connection, Failed, Greeting, Meanwhile, Running};
use crate::mcp::gate::{Gate, Why};
use crate::mcp::listing::Listing;
use crate::mcp::pipes::Pipes;
use crate::protocol::damaged;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::pipe::{Receiver, Sender, pipe};
use tokio_util::sync::CancellationToken;

/// How long a call waits for an answer, and the time within which it has to end whatever the server writes.
const TIMEOUT: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(10);

/// Frames that reach every part of the reader.
fn seeds() -> Vec<String> {
    let message = |value: Value| {
        let mut message = json!({"jsonrpc": "2.0"});
        let fields = message.as_object_mut().expect("an object");
        fields.extend(value.as_object().expect("an object").clone());
        message.to_string()
    };
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b", "anyOf": [{}]}},
        "$defs": {"b": {"type": ["string", "null"], "enum": [1, null]}}, "required": ["a"]});
    let tool = json!({"name": "t", "description": "d", "inputSchema": schema});
    vec![
        message(json!({"id": 1, "result": {"tools": [tool], "nextCursor": "x"}})),
        message(
            json!({"id": 2, "result": {"content": [{"type": "text", "text": "x"}], "isError": true}}),
        ),
        message(json!({"id": 3, "error": {"code": -32601, "message": "no", "data": {}}})),
        message(json!({"id": "a", "method": "sampling/createMessage", "params": {"messages": []}})),
        message(json!({"id": 4, "method": "ping"})),
        message(json!({"method": "notifications/progress",
            "params": {"progressToken": 1, "progress": 1e300, "total": -1, "message": "\u{1b}"}})),
        message(json!({"method": "notifications/tools/list_changed"})),
        message(json!({"method": "notifications/cancelled", "params": {"requestId": 1}})),
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]".into(),
        "a line for a person".into(),
    ]
}

/// The server's end of the pipes.
struct Server {
    lines: Lines<BufReader<Receiver>>,
    output: Sender,
}

impl Server {
    /// Answers the next request of the client and skips other messages. `None` if the client is gone.
    async fn answer(&mut self, result: &Value) -> Option<()> {
        loop {
            let line = self.lines.next_line().await.ok()??;
            let request: Value = serde_json::from_str(&line).expect("a client writes JSON");
            if request.get("method").is_some() && request.get("id").is_some() {
                let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                return self.write(format!("{answer}\n").as_bytes()).await;
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.output.write_all(bytes).await.ok()
    }
}

/// A connection to a server that answered the greeting; calls have this time.
async fn connected(timeout: Duration) -> (Connection, Running, Server) {
    let (input, requests) = pipe().unwrap();
    let (output, answers) = pipe().unwrap();
    let mut server = Server { lines: BufReader::new(requests).lines(), output };
    let (why, end) = (Why::default(), CancellationToken::new());
    let gate = Gate::new(why);
    let pipes = Pipes::new(input, answers, gate.clone());
    let definition = McpDefinition {
        name: "s".into(),
        reach: Reach::Program { command: "s".into(), args: vec![], env: BTreeMap::new() },
        network: false,
        write: false,
        read: vec![],
        start: PATIENCE,
        timeout,
        file: "config.toml".into(),
        of_workspace: false,
    };
    let greeting = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"}});
    let (opened, _) = tokio::join!(
        connection::open(pipes, Greeting::Initialize, &definition, gate, end),
        server.answer(&greeting)
    );
    let (connection, running) = opened.expect("a greeting");
    (connection, running, server)
}

/// Calls a tool, while the server writes this and then answers.
async fn called(
    connection: &Connection,
    server: &mut Server,
    frames: &[u8],
) -> Result<Value, Failed> {
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let never = CancellationToken::new();
    let meanwhile = Meanwhile { progress: &mut |_| {}, person: None };
    let call = connection.call("t", serde_json::Map::new(), &never, meanwhile);
    let serve = async {
        server.write(frames).await?;
        server.answer(&result).await
    };
    let both = async { tokio::join!(call, serve).0 };
    tokio::time::timeout(PATIENCE, both).await.expect("a call ends in time")
}

#[tokio::test]
async fn a_call_ends_in_time_whatever_its_server_writes_and_others_are_not_concerned() {
    let many = prop::collection::vec(damaged::line(seeds(), 300), 1..20);
    let (honest, _alive, mut other) = connected(PATIENCE).await;
    let (mut connection, mut running, mut server) = connected(TIMEOUT).await;
    let (mut calls, mut answered, mut ended) = (0_u64, 0_u64, 0_u64);
    for frames in damaged::values(many) {
        for tool in frames.iter().filter_map(|frame| serde_json::from_slice(frame).ok()) {
            let listing = Listing::of("s", &[tool]);
            assert!(listing.offers.len() <= 1);
        }
        let mut bytes = frames.join(&b'\n');
        bytes.push(b'\n');
        calls += 1;
        match called(&connection, &mut server, &bytes).await {
            Ok(_) => answered += 1,
            // The invented frame answered the call before the server did.
            Err(Failed::Refused(_) | Failed::TimedOut(_) | Failed::Other(_)) => {}
            Err(Failed::Closed) => {
                ended += 1;
                assert!(connection.why().is_some(), "an end has a reason: {bytes:?}");
                drop(running);
                (connection, running, server) = connected(TIMEOUT).await;
            }
            Err(Failed::Cancelled) => panic!("no one cancelled: {bytes:?}"),
        }
        if calls % 16 == 0 {
            let answer = called(&honest, &mut other, b"").await.expect("an honest answer");
            assert_eq!(answer["content"][0]["text"], "done");
        }
    }
    println!("{calls} calls, {answered} answered, {ended} connections ended");
    assert!(answered > 0);
}
