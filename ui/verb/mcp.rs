//! `:mcp`: lists the MCP servers, how they stand, and their tools.

use crate::verb::dialogue::or_end;
use crate::verb::{CONVERSATION, Dialogue, End, Known, Next, Reply, Request, Said, Verb, of, verb};
use clap::Args;
use std::path::PathBuf;
use yoi::protocol::{Event, McpServerInfo, McpServerState, Method, PodName};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Mcp>(Verb {
    // `yoi mcp` serves MCP clients.
    ways: CONVERSATION,
    more: &[
        "A server is defined by [mcp.<name>] in config.toml, or by the file .mcp.json of a workspace that you trust \
         (:trust). Before it starts for the first run of a Pod that may use it, you approve its command and what it \
         is granted. It ends with the last Pod that uses it. Its tools are named mcp__<server>__<tool>; rules can \
         use these names, as in mcp__git__*.",
    ],
    ..verb("mcp", "list the MCP servers with their state and their tools")
});

#[derive(Args)]
struct Mcp {}

impl Dialogue for Mcp {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return Next::call(Request::host(Method::ListServers { workspace: workspace(known) }));
        };
        or_end(reply.single().map(|event| {
            Next::End(match event {
                Event::McpServers { servers, problems } => sheet(&servers, &problems),
                _ => End::shown("the host did not say which MCP servers there are"),
            })
        }))
    }
}

/// The workspace of the selected Pod, else the one in which yoi was started.
fn workspace(known: &Known<'_>) -> PathBuf {
    let selected = known.selected.and_then(|pod| known.family.get(pod));
    selected.map_or(known.workspace, |info| &info.workspace).to_owned()
}

fn sheet(servers: &[McpServerInfo], problems: &[String]) -> End {
    if servers.is_empty() && problems.is_empty() {
        return End::answer(
            "no MCP server is defined: add [mcp.<name>] with a command or a url to config.toml",
        );
    }
    let mut lines = Vec::new();
    for server in servers {
        lines.push(("server", headline(server)));
        let mut more = |label, text: String| {
            if !text.is_empty() {
                lines.push((label, SafeText::line(text).into_string()));
            }
        };
        more("  reached by", server.reached_by.clone());
        more("  named in", server.file.clone());
        more("  tools", server.tools.join(", "));
        more("  not as it sent", server.notes.join("; "));
        for why in &server.withheld {
            more("  for pod", why.clone());
        }
        more("  last error", server.last_error.clone().unwrap_or_default());
    }
    lines.extend(problems.iter().map(|why| ("not used", SafeText::line(why).into_string())));
    let lines = lines.into_iter().map(Into::into).collect();
    End { said: Said::Text { title: "MCP servers".into(), lines }, ..End::default() }
}

fn headline(server: &McpServerInfo) -> String {
    let McpServerInfo { name, state, tools, users, withheld, .. } = server;
    let state = match state {
        McpServerState::Unused if withheld.is_empty() => "not started: no live Pod uses it".into(),
        McpServerState::Unused => "not started".into(),
        McpServerState::Starting => "is being started".into(),
        McpServerState::Ready if tools.len() == 1 => "ready, 1 tool".into(),
        McpServerState::Ready => format!("ready, {} tools", tools.len()),
        McpServerState::Failed => "does not work now".into(),
    };
    let users: Vec<&str> = users.iter().map(PodName::as_str).collect();
    let users =
        if users.is_empty() { String::new() } else { format!(" · used by {}", users.join(", ")) };
    format!("{}: {state}{users}", SafeText::line(name))
}
