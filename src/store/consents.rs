//! The destinations to which a person agreed to send text: provider, base URL and source of the
//! key.

use crate::config::Destination;
use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::rows::{add, number};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, Row, params};

/// A stored consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConsent {
    /// The number by which it is revoked.
    pub id: u64,
    pub to: Destination,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

const COLUMNS: &str = "id, provider, base_url, key, created";

impl Store {
    /// Every consent that a person gave and did not take back, oldest first.
    pub async fn consents(&self) -> Result<Vec<StoredConsent>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM consents ORDER BY id");
        self.listed(sql, stored).await
    }

    /// Stores a person's consent; has no effect if it is stored already.
    pub async fn consent(&self, to: Destination) -> Result<(), StoreError> {
        let insert = move |db: &Connection| {
            let row = params![to.provider, to.base_url, to.key, signed(now_ms())];
            add(db, "consents", COLUMNS, row)
        };
        self.writer.run("write to", insert).await
    }

    /// Ends a consent and returns it; `None` if there is none with this number.
    pub async fn end_consent(&self, id: u64) -> Result<Option<StoredConsent>, StoreError> {
        let sql = format!("DELETE FROM consents WHERE id = ?1 RETURNING {COLUMNS}");
        self.ended(sql, id, stored).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredConsent> {
    let to = Destination { provider: row.get(1)?, base_url: row.get(2)?, key: row.get(3)? };
    Ok(StoredConsent { id: number(row, 0)?, to, since: number(row, 4)? })
}
