//! MCP clients as the host knows them: programs that use Pods through `yoi mcp`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An MCP client. A person's consent is for its folder and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpClient {
    /// The folder in which the client works: absolute, without links.
    pub folder: PathBuf,
    /// The name that the client asks for on the mesh.
    pub name: String,
    /// The name that the mesh gave the client when it joined; Pods answer to this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The name and version that the program gives for itself; the host does not check them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl McpClient {
    /// Whether both have the same folder and name, so that one consent is for both.
    pub fn is_same(&self, other: &Self) -> bool {
        self.folder == other.folder && self.name == other.name
    }

    /// Whether both are the same program under one name: each program has its own requests and decisions.
    pub fn is_same_program(&self, other: &Self) -> bool {
        self.is_same(other) && self.program == other.program
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
