//! ListServers: the MCP servers that run, and those that settings and a workspace name besides.

use crate::host::rules::servers_now;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, McpServerInfo, McpServerState, Refusal};
use std::path::PathBuf;

pub(crate) struct ListServers {
    /// The root of a workspace whose servers are listed, too.
    pub(crate) workspace: PathBuf,
}

impl Verb for ListServers {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let (configured, untrusted) = servers_now(&cx.shared, self.workspace).await?;
        let mut servers = cx.shared.mcp.list();
        for named in &configured.servers {
            if !servers.iter().any(|s| s.name == named.name && s.file == named.file) {
                servers.push(McpServerInfo {
                    name: named.name.clone(),
                    state: McpServerState::Unused,
                    reached_by: named.shown(),
                    file: named.file.clone(),
                    tools: Vec::new(),
                    notes: Vec::new(),
                    last_error: None,
                    users: Vec::new(),
                    withheld: Vec::new(),
                });
            }
        }
        for pod in cx.shared.members.borrow().0.values() {
            for (server, what) in pod.servers.withheld() {
                let is_meant = |info: &&mut McpServerInfo| info.name == server;
                if let Some(info) = servers.iter_mut().find(is_meant) {
                    info.withheld.push(format!("{}: {what}", pod.name));
                }
            }
        }
        let problems = configured.problems.into_iter().chain(untrusted).collect();
        Ok(Event::McpServers { servers, problems })
    }
}
