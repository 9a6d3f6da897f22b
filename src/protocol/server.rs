//! MCP servers as a person sees them.

use crate::protocol::PodName;
use serde::{Deserialize, Serialize};

/// A server that runs, or that settings name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerInfo {
    pub name: String,
    pub state: McpServerState,
    /// The command line or the address of the server.
    pub reached_by: String,
    /// The file that names it.
    pub file: String,
    /// The names of its tools for models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// A sentence for each tool that is left out or narrowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The Pods that use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<PodName>,
    /// The Pods that do not get the server or some of its tools, each with a sentence that says why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// No Pod uses it now.
    Unused,
    Starting,
    Ready,
    Failed,
}
