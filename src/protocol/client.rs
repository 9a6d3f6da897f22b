//! MCP clients as the host knows them: programs that use Pods through `yoi mcp`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An MCP client. A person's consent is for its folder and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpClient {
    /// The folder that it works in: absolute, without links.
    pub folder: PathBuf,
    /// The name that it asks for on the mesh.
    pub name: String,
    /// The name that the mesh gave it, once it has joined: Pods answer to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the program says that it is, with its version. Nothing checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl McpClient {
    /// Whether a consent to one of them is a consent to the other one.
    pub fn is_same(&self, other: &Self) -> bool {
        self.folder == other.folder && self.name == other.name
    }
}

/// A person's consent: an MCP client may use the Pods of its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyClient {
    /// The number by which it is revoked; no rule has the same.
    pub id: u64,
    pub folder: PathBuf,
    pub name: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}
