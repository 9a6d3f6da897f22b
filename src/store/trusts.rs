//! Which workspaces a person trusts, each with the content of its settings file. They are rows of the
//! consents: a person gave them, they share their numbers, and older programs can end them, too.

use crate::store::consents::{self, number};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeMap;

/// Stands in the place of the provider. No provider has this name: the id of a provider ends at the
/// first `/`.
pub const WORKSPACE: &str = "workspace/.yoi/config.toml";

/// The same for the tools of an MCP server.
pub const SERVER_TOOLS: &str = "mcp/tools";

/// The same for MCP clients that use Pods.
pub const CLIENT: &str = "mcp/client";

/// A workspace whose settings file a person trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTrust {
    /// The number by which it is revoked.
    pub id: u64,
    /// The root of the workspace.
    pub workspace: String,
    /// The SHA-256 of the file that is trusted, hex.
    pub sha256: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

impl Store {
    /// Every trust that a person gave and did not take back, oldest first.
    pub async fn trusts(&self) -> Result<Vec<StoredTrust>, StoreError> {
        let read = |db: &Connection| consents::all_of(db, WORKSPACE, stored);
        self.reader.run("read", read).await
    }

    /// The hash of the content that a person trusts in a workspace.
    pub async fn trusted_hash(&self, workspace: &str) -> Result<Option<String>, StoreError> {
        let workspace = workspace.to_owned();
        let read = move |db: &Connection| {
            let sql = "SELECT key FROM consents WHERE provider = ?1 AND base_url = ?2";
            Ok(db.query_row(sql, [WORKSPACE, &workspace], |row| row.get(0)).optional()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person trusts this content in a workspace, in the place of every content before.
    pub async fn trust(&self, workspace: String, sha256: String) -> Result<(), StoreError> {
        let write = move |db: &Connection| {
            let others = "DELETE FROM consents WHERE provider = ?1 AND base_url = ?2 AND key <> ?3";
            db.execute(others, params![WORKSPACE, workspace, sha256])?;
            consents::add(db, WORKSPACE, &workspace, &sha256)
        };
        self.writer.run("write to", write).await
    }

    /// The tools of an MCP server as a person agreed to them: the hash of each by its name; `None` before the first
    /// list. `server` is the hash of its definition.
    pub async fn agreed_tools(
        &self,
        server: &str,
    ) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        let server = server.to_owned();
        let read = move |db: &Connection| {
            let sql = "SELECT key FROM consents WHERE provider = ?1 AND base_url = ?2";
            let text: Option<String> =
                db.query_row(sql, [SERVER_TOOLS, &server], |row| row.get(0)).optional()?;
            // What cannot be read agrees to nothing.
            Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
        };
        self.reader.run("read", read).await
    }

    /// Stores the tools of a server, in the place of those before.
    pub async fn agree_to_tools(
        &self,
        server: &str,
        tools: BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let (server, tools) = (server.to_owned(), serde_json::json!(tools).to_string());
        let write = move |db: &Connection| {
            let others = "DELETE FROM consents WHERE provider = ?1 AND base_url = ?2";
            db.execute(others, params![SERVER_TOOLS, server])?;
            consents::add(db, SERVER_TOOLS, &server, &tools)
        };
        self.writer.run("write to", write).await
    }

    /// Ends a trust and returns it; `None` if there is none with this number.
    pub async fn end_trust(&self, id: u64) -> Result<Option<StoredTrust>, StoreError> {
        let delete = move |db: &Connection| consents::end_of(db, WORKSPACE, id, stored);
        self.writer.run("write to", delete).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredTrust> {
    Ok(StoredTrust {
        id: number(row, 0)?,
        workspace: row.get(2)?,
        sha256: row.get(3)?,
        since: number(row, 4)?,
    })
}
