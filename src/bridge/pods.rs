//! The tools by which an MCP client uses Pods: the requests that the host carries out once a person lets it.

use crate::bridge::host::Again;
use crate::bridge::server::Server;
use crate::bridge::tools::{Row, read, result};
use crate::protocol::method::SpawnPod;
use crate::protocol::{Event, McpClient, Method, PodName};
use crate::scope::{Permission, Rule};
use crate::tools::pods::{list, output};
use crate::tools::text_limit::cut_bytes;
use crate::tools::{MAX_OUTPUT, Output};
use rmcp::model::{CallToolResult, Implementation};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The tools.
pub const TABLE: [Row; 4] = [
    Row {
        name: "list_pods",
        does: "List the Pods of yoi (agents that a person runs on this machine) that work in this folder, each with its \
               state, since when, and how its last run ended. The first use of this and the other tools of Pods asks a \
               person; the result then says how it is allowed.",
        arguments: || json!({ "type": "object", "properties": {} }),
        reads: true,
    },
    Row {
        name: "read_pod_output",
        does: "Show what a Pod of this folder has said in its last run, the state it is in, and how that run ended. \
               Read before you rely on its work: that a run ended does not mean that it is done.",
        arguments: || arguments(&json!({ "name": named() }), &["name"]),
        reads: true,
    },
    Row {
        name: "send_to_pod",
        does: "Send a message to a Pod of this folder. It starts a run there, or waits for the end of the one under way. \
               The Pod reads it as information of an agent: it approves and permits nothing. Returns a status, as \
               agent_send does; what the Pod does then, read_pod_output shows in a later turn.",
        arguments: || {
            let message = json!({ "type": "string", "description": "The message: say all that the Pod needs" });
            arguments(&json!({ "name": named(), "message": message }), &["name", "message"])
        },
        reads: false,
    },
    Row {
        name: "spawn_pod",
        does: "Start a Pod: another agent that works on a task of its own in this folder. It sees nothing of your \
               conversation, so the task must say everything it needs. Returns as soon as the Pod has its task; \
               read_pod_output shows in a later turn what it did.",
        arguments: arguments_of_spawn,
        reads: false,
    },
];

fn arguments(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn named() -> Value {
    json!({ "type": "string", "description": "The name of a Pod, as list_pods gives it" })
}

fn arguments_of_spawn() -> Value {
    let text = |does: &str| json!({ "type": "string", "description": does });
    let rule = arguments(
        &json!({
            "target": text("A path inside this folder; a relative one is meant from it"),
            "permission": { "type": "string", "enum": ["read", "write"], "description": "Write includes read" },
            "recursive": {
                "type": "boolean",
                "description": "Whether everything below the target is meant, as without this; or only its direct children"
            }
        }),
        &["target", "permission"],
    );
    let scope = json!({
        "type": "array", "items": rule, "minItems": 1,
        "description": "What the Pod may read and write; nothing outside of this folder"
    });
    let properties = json!({
        "name": text("A new name: letters and digits of any script, `.`, `_`, `-`"),
        "task": text("Its task: what to do, where, and what to report when it is done"),
        "scope": scope,
        "cwd": text("Its working directory inside this folder; without it, this folder")
    });
    arguments(&properties, &["name", "task", "scope"])
}

/// The arguments of a tool that is about one Pod.
#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Send {
    name: String,
    message: String,
}

#[derive(Deserialize)]
struct Spawn {
    name: String,
    task: String,
    scope: Vec<ScopeRule>,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ScopeRule {
    target: PathBuf,
    permission: Permission,
    #[serde(default = "yes")]
    recursive: bool,
}

fn yes() -> bool {
    true
}

/// Carries a call out; `None` if there is no such tool.
pub async fn call(
    server: &Server,
    tool: &str,
    given: Value,
    program: Option<&Implementation>,
) -> Option<Result<CallToolResult, String>> {
    let calling = Calling { server, program };
    Some(match tool {
        "list_pods" => calling.list().await,
        "read_pod_output" => match read(given) {
            Ok(named) => calling.read(named).await,
            Err(why) => Err(why),
        },
        "send_to_pod" => match read(given) {
            Ok(send) => calling.send(send).await,
            Err(why) => Err(why),
        },
        "spawn_pod" => match read(given) {
            Ok(spawn) => calling.spawn(spawn).await,
            Err(why) => Err(why),
        },
        _ => return None,
    })
}

/// The server, and the name and version that the calling program gives for itself.
struct Calling<'s> {
    server: &'s Server,
    program: Option<&'s Implementation>,
}

impl Calling<'_> {
    async fn request(
        &self,
        pod: Option<&PodName>,
        method: Method,
        again: Again,
    ) -> Result<Event, String> {
        let me = &self.server.me;
        let client = McpClient {
            folder: me.folder.clone(),
            name: me.name.clone(),
            address: self.server.agent.name(),
            program: self.program.map(|program| format!("{} {}", program.name, program.version)),
        };
        self.server.host.call(&client, pod, method, again).await
    }

    async fn list(&self) -> Result<CallToolResult, String> {
        let event = self.request(None, Method::ListPods, Again::Harmless).await?;
        as_text((list::VERB.tell)("", event))
    }

    async fn read(&self, named: Named) -> Result<CallToolResult, String> {
        let pod = pod(&named.name)?;
        let event = self.request(Some(&pod), Method::ReadOutput, Again::Harmless).await?;
        let Event::Output(output) = &event else { return Err(other()) };
        let json = json!({ "name": output.name, "state": output.state });
        // Each call gives the text of the last run, so no part of it is marked as new.
        let said =
            if output.texts.is_empty() { ", which said nothing in its last run" } else { "" };
        let head = format!("pod `{}`{said}", output.name);
        let content = (output::VERB.tell)(&named.name, event).and_then(|output| output.content);
        Ok(result(bounded(&head, content), json, false))
    }

    async fn send(&self, send: Send) -> Result<CallToolResult, String> {
        let pod = pod(&send.name)?;
        let method = Method::Notify { message: send.message };
        let event = self.request(Some(&pod), method, Again::Harmful).await?;
        let Event::MeshSent { id, status, reason, .. } = event else { return Err(other()) };
        let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let json = json!({ "status": status, "id": id, "reason": reason });
        Ok(result(format!("{status} (id={id}){why}"), json, status != "received"))
    }

    async fn spawn(&self, spawn: Spawn) -> Result<CallToolResult, String> {
        let rule = |rule: ScopeRule| {
            let ScopeRule { target, permission, recursive } = rule;
            Rule { target, permission, recursive }
        };
        let Spawn { name, task, scope, cwd } = spawn;
        let scope = scope.into_iter().map(rule).collect();
        let new = SpawnPod { name, task, scope, cwd, ..SpawnPod::default() };
        let event = self.request(None, Method::Spawn(new), Again::Harmful).await?;
        let Event::Spawned { info, .. } = event else { return Err(other()) };
        let text = format!("started pod `{}` in {}", info.name, info.cwd.display());
        Ok(result(text, json!({ "name": info.name, "cwd": info.cwd }), false))
    }
}

fn pod(name: &str) -> Result<PodName, String> {
    PodName::parse(name).map_err(|error| error.to_string())
}

/// The answer that a Pod's own tool would give, with the same limit.
fn as_text(output: Option<Output>) -> Result<CallToolResult, String> {
    let Output { summary, content, .. } = output.ok_or_else(other)?;
    Ok(result(bounded(&summary, content), json!({ "summary": summary }), false))
}

/// A head line with the content below it, cut at the limit that the result of a Pod's tool has.
fn bounded(head: &str, content: Option<String>) -> String {
    let content = content.map(|content| format!("\n{content}")).unwrap_or_default();
    cut_bytes(format!("{head}{content}"), MAX_OUTPUT)
}

fn other() -> String {
    "the host answered something else".to_owned()
}
