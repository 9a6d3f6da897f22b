//! The MCP clients that a person lets use Pods.

use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::rows::{add, number};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// A client that may use Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredClient {
    /// The number by which it is revoked.
    pub id: u64,
    pub folder: String,
    pub name: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

const COLUMNS: &str = "id, folder, name, created";

impl Store {
    /// Every client that a person lets use Pods, oldest first.
    pub async fn clients(&self) -> Result<Vec<StoredClient>, StoreError> {
        self.listed(format!("SELECT {COLUMNS} FROM clients ORDER BY id"), stored).await
    }

    /// Whether a person lets this client use Pods.
    pub async fn is_admitted(&self, folder: &str, name: &str) -> Result<bool, StoreError> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let read = move |db: &Connection| {
            let sql = "SELECT 1 FROM clients WHERE folder = ?1 AND name = ?2";
            Ok(db.query_row(sql, [&folder, &name], |_| Ok(())).optional()?.is_some())
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person lets a client use Pods; has no effect if this is stored already.
    pub async fn admit(&self, folder: &str, name: &str) -> Result<(), StoreError> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let write = move |db: &Connection| {
            add(db, "clients", COLUMNS, params![folder, name, signed(now_ms())])
        };
        self.writer.run("write to", write).await
    }

    /// Ends the consent to a client and returns it; `None` if there is none with this number.
    pub async fn end_client(&self, id: u64) -> Result<Option<StoredClient>, StoreError> {
        let sql = format!("DELETE FROM clients WHERE id = ?1 RETURNING {COLUMNS}");
        self.ended(sql, id, stored).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredClient> {
    Ok(StoredClient {
        id: number(row, 0)?,
        folder: row.get(1)?,
        name: row.get(2)?,
        since: number(row, 3)?,
    })
}
