//! ListServers: the MCP servers that run, and those that settings and a workspace name besides.

use crate::config::McpServers;
use crate::config::workspace_settings::{WorkspaceSettings, mcp_file_of};
use crate::host::rules::trusted_hash;
use crate::host::verb::{Caller, Cx, Verb};
use crate::mcp::{ServerState, ServerStatus};
use crate::protocol::{Event, McpServerInfo, McpServerState, PodName, Refusal};
use std::path::PathBuf;

pub(crate) struct ListServers {
    /// The root of a workspace whose servers are listed, too.
    pub(crate) workspace: PathBuf,
}

impl Verb for ListServers {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let trusted = trusted_hash(&cx.shared, &self.workspace).await?;
        let (shared, root) = (cx.shared.clone(), self.workspace.clone());
        let load = move || {
            let says = WorkspaceSettings::load(&root).with_trust(trusted.as_deref());
            let (settings, file) = (shared.settings_now().settings, shared.settings.path());
            let (file, theirs) = (file.display().to_string(), mcp_file_of(&root));
            let theirs = theirs.display().to_string();
            let named = McpServers::of(&settings.mcp, &file, &says.granted.mcp, &theirs);
            (named, says.untrusted_servers())
        };
        let (named, untrusted) = cx.files(&self.workspace, load).await?;
        let mut servers: Vec<McpServerInfo> =
            cx.shared.mcp.status().into_iter().map(running).collect();
        let unused = named
            .servers
            .iter()
            .filter(|named| !servers.iter().any(|s| s.name == named.name && s.file == named.file));
        let unused: Vec<McpServerInfo> = unused
            .map(|named| McpServerInfo {
                name: named.name.clone(),
                state: McpServerState::Unused,
                reached_by: named.reached_by(),
                file: named.file.clone(),
                tools: Vec::new(),
                notes: Vec::new(),
                last_error: None,
                users: Vec::new(),
            })
            .collect();
        servers.extend(unused);
        let problems = named.problems.into_iter().chain(untrusted).collect();
        Ok(Event::McpServers { servers, problems })
    }
}

fn running(status: ServerStatus) -> McpServerInfo {
    let ServerStatus { name, reached_by, file, state, tools, notes, last_error, users } = status;
    let state = match state {
        ServerState::Starting => McpServerState::Starting,
        ServerState::Ready => McpServerState::Ready,
        ServerState::Failed => McpServerState::Failed,
    };
    let users = users.iter().filter_map(|user| PodName::parse(user).ok()).collect();
    McpServerInfo { name, state, reached_by, file, tools, notes, last_error, users }
}
