//! The workspaces that a person trusts, each with the hash of its settings file.

use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::rows::{add, number};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

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

const COLUMNS: &str = "id, workspace, sha256, created";

impl Store {
    /// Every trust that a person gave and did not take back, oldest first.
    pub async fn trusts(&self) -> Result<Vec<StoredTrust>, StoreError> {
        self.listed(format!("SELECT {COLUMNS} FROM trusts ORDER BY id"), stored).await
    }

    /// The hash of the content that a person trusts in a workspace.
    pub async fn trusted_hash(&self, workspace: &str) -> Result<Option<String>, StoreError> {
        let workspace = workspace.to_owned();
        let read = move |db: &Connection| {
            let sql = "SELECT sha256 FROM trusts WHERE workspace = ?1";
            Ok(db.query_row(sql, [&workspace], |row| row.get(0)).optional()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person trusts this content in a workspace, and replaces the former content.
    pub async fn trust(&self, workspace: String, sha256: String) -> Result<(), StoreError> {
        let write = move |db: &Connection| {
            let other = "DELETE FROM trusts WHERE workspace = ?1 AND sha256 <> ?2";
            db.execute(other, [&workspace, &sha256])?;
            add(db, "trusts", COLUMNS, params![workspace, sha256, signed(now_ms())])
        };
        self.writer.run("write to", write).await
    }

    /// Ends a trust and returns it; `None` if there is none with this number.
    pub async fn end_trust(&self, id: u64) -> Result<Option<StoredTrust>, StoreError> {
        let sql = format!("DELETE FROM trusts WHERE id = ?1 RETURNING {COLUMNS}");
        self.ended(sql, id, stored).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredTrust> {
    Ok(StoredTrust {
        id: number(row, 0)?,
        workspace: row.get(1)?,
        sha256: row.get(2)?,
        since: number(row, 3)?,
    })
}
