//! What providers refused, in JSON. A server may come to take it, so it is forgotten after a time.

use crate::protocol::now_ms;
use crate::store::pods::signed;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, Row, params};

/// How long a refusal counts, in milliseconds: 30 days.
const LASTS: u64 = 30 * 24 * 60 * 60 * 1000;

impl Store {
    /// What counts now, oldest first.
    pub async fn learned(&self) -> Result<Vec<String>, StoreError> {
        let since = now_ms().saturating_sub(LASTS);
        let sql = format!("SELECT learned FROM learned WHERE created >= {since} ORDER BY created");
        self.listed(sql, |row: &Row<'_>| row.get(0)).await
    }

    /// Stores what a refusal at this time said, and forgets what is too old.
    pub async fn learn(&self, learned: String, at: u64) -> Result<(), StoreError> {
        let write = move |db: &Connection| {
            let old = signed(now_ms().saturating_sub(LASTS));
            db.execute("DELETE FROM learned WHERE created < ?1", [old])?;
            let sql =
                "INSERT INTO learned (learned, created) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            db.execute(sql, params![learned, signed(at)])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Forgets what this model of this provider at this address refused.
    pub async fn forget(
        &self,
        provider: String,
        base_url: String,
        model: String,
    ) -> Result<(), StoreError> {
        let write = move |db: &Connection| {
            let sql =
                "DELETE FROM learned WHERE json_valid(learned) AND learned ->> 'provider' = ?1
                 AND learned ->> 'base_url' = ?2 AND learned ->> 'model' = ?3";
            db.execute(sql, params![provider, base_url, model])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }
}
