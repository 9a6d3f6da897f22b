//! Where a person agreed that text is sent: provider, base URL and source of the key.

use crate::config::Destination;
use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

impl Store {
    /// Every destination that a person agreed to.
    pub async fn consents(&self) -> Result<BTreeSet<Destination>, StoreError> {
        let read = |db: &Connection| {
            let mut statement = db.prepare("SELECT provider, base_url, key FROM consents")?;
            let rows = statement.query_map([], |row| {
                Ok(Destination { provider: row.get(0)?, base_url: row.get(1)?, key: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores a person's consent; a second one changes nothing.
    pub async fn consent(&self, to: Destination) -> Result<(), StoreError> {
        let insert = move |db: &Connection| {
            let sql = "INSERT INTO consents (provider, base_url, key, created)
                VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
            let Destination { provider, base_url, key } = to;
            db.execute(sql, params![provider, base_url, key, signed(now_ms())])?;
            Ok(())
        };
        self.writer.run("write to", insert).await
    }
}
