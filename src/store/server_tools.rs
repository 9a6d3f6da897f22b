//! The tools of MCP servers that a person approved. A changed tool needs another approval.

use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::BTreeMap;

impl Store {
    /// The hash of each tool by its name; `None` before the first list. `server` is the hash of the
    /// server's definition.
    pub async fn agreed_tools(
        &self,
        server: &str,
    ) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        let server = server.to_owned();
        let read = move |db: &Connection| {
            let sql = "SELECT tools FROM server_tools WHERE server = ?1";
            let text: Option<String> = db.query_row(sql, [&server], |row| row.get(0)).optional()?;
            // Without a readable text no tool is approved.
            Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
        };
        self.reader.run("read", read).await
    }

    /// Stores the tools of a server, and replaces the former list.
    pub async fn agree_to_tools(
        &self,
        server: &str,
        tools: BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let (server, tools) = (server.to_owned(), serde_json::json!(tools).to_string());
        let write = move |db: &Connection| {
            let sql = "INSERT INTO server_tools (server, tools) VALUES (?1, ?2)
                ON CONFLICT (server) DO UPDATE SET tools = excluded.tools";
            db.execute(sql, [&server, &tools])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }
}
