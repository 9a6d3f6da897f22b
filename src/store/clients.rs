//! The MCP clients that a person lets use Pods. They are rows of the consents, as the trusts are.

use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::schema::NEXT_NUMBER;
use crate::store::trusts::CLIENT;
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

const COLUMNS: &str = "id, base_url, key, created";

impl Store {
    /// Every client that a person lets use Pods, oldest first.
    pub async fn clients(&self) -> Result<Vec<StoredClient>, StoreError> {
        let read = |db: &Connection| {
            let sql = format!("SELECT {COLUMNS} FROM consents WHERE provider = ?1 ORDER BY id");
            let mut statement = db.prepare(&sql)?;
            let rows = statement.query_map([CLIENT], stored)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
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
        let write = move |db: &Connection| {
            let sql = format!(
                "INSERT INTO consents (id, provider, base_url, key, created)
                VALUES ({NEXT_NUMBER}, ?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
            );
            db.execute(&sql, params![CLIENT, folder, name, signed(now_ms())])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Ends the consent to a client and returns it; `None` if there is none with this number.
    pub async fn end_client(&self, id: u64) -> Result<Option<StoredClient>, StoreError> {
        let delete = move |db: &Connection| {
            let sql =
                format!("DELETE FROM consents WHERE id = ?1 AND provider = ?2 RETURNING {COLUMNS}");
            Ok(db.query_row(&sql, params![signed(id), CLIENT], stored).optional()?)
        };
        self.writer.run("write to", delete).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredClient> {
    let number = |column: usize| -> rusqlite::Result<u64> {
        Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
    };
    Ok(StoredClient { id: number(0)?, folder: row.get(1)?, name: row.get(2)?, since: number(3)? })
}
