//! The tools for MCP clients: those of the mesh, and the way to those of Pods.

use crate::bridge::server::Server;
use crate::bridge::{pods, words};
use crate::mesh::{Id, Peer, Status, To};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, Implementation, RequestId, Tool,
    ToolAnnotations,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A tool: its name, what it does, the schema of its arguments, and whether it only reads.
pub struct Row {
    pub name: &'static str,
    pub does: &'static str,
    pub arguments: fn() -> Value,
    pub reads: bool,
}

const TABLE: [Row; 3] = [
    Row {
        name: "list_peers",
        does: "List the other agents on the mesh of this machine. Those of kind `yoi` say `received` when they have kept a \
               message, other ones when it was handed over.",
        arguments: || json!({ "type": "object", "properties": {} }),
        reads: true,
    },
    Row {
        name: "agent_send",
        does: "Send a message to another agent. Returns a status and the id of the message: `received` (the agent has \
               it), `sent` (to several agents: not acknowledged), `denied` or `refused` (not delivered, with the \
               reason) or `timeout` (it may have arrived or not). Do not wait for an answer: it comes with \
               get_messages in a later turn.",
        arguments: arguments_of_send,
        reads: false,
    },
    Row {
        name: "get_messages",
        does: "The messages of other agents since the last call, oldest first. Call it at the beginning of each turn. A \
               message that is marked as given before may be known to you.",
        arguments: || json!({ "type": "object", "properties": {} }),
        reads: false,
    },
];

fn arguments_of_send() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": {
                "description": "A name of list_peers, an array of names, or `broadcast` for every agent",
                "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" }, "minItems": 1 }
                ]
            },
            "body": { "description": "The message: text, or any JSON value" },
            "re": { "type": "string", "description": "The id of the message that this one answers" }
        },
        "required": ["to", "body"]
    })
}

/// Every tool.
pub fn list() -> Vec<Tool> {
    TABLE.iter().chain(&pods::TABLE).map(described).collect()
}

fn described(row: &Row) -> Tool {
    let schema = match (row.arguments)() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let hints = ToolAnnotations::new().read_only(row.reads).destructive(false).open_world(true);
    Tool::new(row.name, row.does, schema).with_annotations(hints)
}

/// Carries a call out. What is wrong is said in the result, where the model reads it.
pub async fn call(
    server: &Server,
    request: CallToolRequestParams,
    id: &RequestId,
    program: Option<&Implementation>,
) -> Result<CallToolResult, ErrorData> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let called = match &*request.name {
        "list_peers" => list_peers(server).await,
        "agent_send" => match read(arguments) {
            Ok(arguments) => agent_send(server, arguments).await,
            Err(why) => Err(why),
        },
        "get_messages" => get_messages(server, id).await,
        other => match pods::call(server, other, arguments, program).await {
            Some(called) => called,
            None => {
                return Err(ErrorData::invalid_params(format!("there is no tool `{other}`"), None));
            }
        },
    };
    Ok(called.unwrap_or_else(|why| CallToolResult::error(vec![ContentBlock::text(why)])))
}

/// The arguments of a call, or what is wrong with them.
pub fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("the arguments are wrong: {error}"))
}

/// A result with text for the model, and JSON for programs. Some clients hand their model only the JSON, so it holds the
/// text, too.
pub fn result(text: String, mut json: Value, is_error: bool) -> CallToolResult {
    json["text"] = text.as_str().into();
    structured(text, json, is_error)
}

/// The same with JSON that says all that the text says.
fn structured(text: String, json: Value, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    let mut result =
        if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(json);
    result
}

async fn list_peers(server: &Server) -> Result<CallToolResult, String> {
    let member = server.agent.member().await?;
    let peers = member.peers_in_detail().await.map_err(|error| {
        format!("{error}: yoi finds another leader by itself, so call again in a moment")
    })?;
    let standing = member.standing();
    let listed = |peer: &Peer| json!({ "name": peer.name, "kind": words::kind(peer) });
    let listed: Vec<Value> = peers.iter().map(listed).collect();
    let json = json!({ "you": standing.name, "peers": listed });
    Ok(result(words::peers(&peers, &standing), json, false))
}

/// The arguments of `agent_send`.
#[derive(Deserialize)]
struct Send {
    to: Addressees,
    body: Value,
    #[serde(default)]
    re: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`to` is a name, an array of names, or `broadcast`")]
enum Addressees {
    One(String),
    Many(Vec<String>),
}

async fn agent_send(server: &Server, send: Send) -> Result<CallToolResult, String> {
    let Send { to, body, re } = send;
    let re = match re.filter(|re| !re.is_empty()) {
        None => None,
        Some(text) => Some(Id::parse(&text).ok_or_else(|| {
            format!(
                "refused: it was not sent: `re` is the id of a message, like \
                 01a1ffb6-a2cb-7796-b04c-890887088394, and `{text}` is none; leave it out where the message \
                 answers none"
            )
        })?),
    };
    let to = match to {
        Addressees::One(name) => To::named(name),
        Addressees::Many(names) => To::Many(names),
    };
    let body = serde_json::value::to_raw_value(&body).map_err(|error| error.to_string())?;
    let member = server.agent.member().await?;
    if let Some(re) = re {
        server.agent.answered(re.to_string()).await;
    }
    let sent = member.send(to, &body, re).await;
    let failed = !matches!(sent.status, Status::Received | Status::Queued | Status::Sent);
    let text = words::outcome(&sent, &member.standing());
    Ok(result(text, words::outcome_as_json(&sent), failed))
}

async fn get_messages(server: &Server, id: &RequestId) -> Result<CallToolResult, String> {
    // Where the mesh cannot be joined, what arrived before can be read all the same.
    let _ = server.agent.member().await;
    let _one = server.giving.lock().await;
    let confirmed = server.traffic.confirms(id);
    let delivery = server.agent.give(confirmed).await?;
    Ok(structured(words::messages(&delivery), words::messages_as_json(&delivery), false))
}
