//! The MCP clients that a person lets use Pods. They are rows of the consents, as the trusts are.

use crate::store::consents::{self, number};
use crate::store::trusts::CLIENT;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};

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

impl Store {
    /// Every client that a person lets use Pods, oldest first.
    pub async fn clients(&self) -> Result<Vec<StoredClient>, StoreError> {
        let read = |db: &Connection| consents::all_of(db, CLIENT, stored);
        self.reader.run("read", read).await
    }

    /// Whether a person lets this client use Pods.
    pub async fn is_admitted(&self, folder: &str, name: &str) -> Result<bool, StoreError> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let read = move |db: &Connection| {
            let sql = "SELECT 1 FROM consents WHERE provider = ?1 AND base_url = ?2 AND key = ?3";
            let row = db.query_row(sql, [CLIENT, &folder, &name], |_| Ok(())).optional()?;
            Ok(row.is_some())
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person lets a client use Pods; a second time changes nothing.
    pub async fn admit(&self, folder: &str, name: &str) -> Result<(), StoreError> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let write = move |db: &Connection| consents::add(db, CLIENT, &folder, &name);
        self.writer.run("write to", write).await
    }

    /// Ends the consent to a client and returns it; `None` if there is none with this number.
    pub async fn end_client(&self, id: u64) -> Result<Option<StoredClient>, StoreError> {
        let delete = move |db: &Connection| consents::end_of(db, CLIENT, id, stored);
        self.writer.run("write to", delete).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredClient> {
    Ok(StoredClient {
        id: number(row, 0)?,
        folder: row.get(2)?,
        name: row.get(3)?,
        since: number(row, 4)?,
    })
}
