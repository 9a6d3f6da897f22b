//! Where a person agreed that text is sent: provider, base URL and source of the key.

use crate::config::Destination;
use crate::protocol::now_ms;
use crate::store::lane::Failure;
use crate::store::pods::signed;
use crate::store::schema::NEXT_NUMBER;
use crate::store::trusts::{CLIENT, SERVER_TOOLS, WORKSPACE};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// A consent as the store knows it.
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
        let read = |db: &Connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM consents WHERE provider NOT IN (?1, ?2, ?3) ORDER BY id"
            );
            let mut statement = db.prepare(&sql)?;
            let rows = statement.query_map([WORKSPACE, SERVER_TOOLS, CLIENT], stored)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores a person's consent; a second one changes nothing.
    pub async fn consent(&self, to: Destination) -> Result<(), StoreError> {
        let insert = move |db: &Connection| {
            let Destination { provider, base_url, key } = to;
            add(db, &provider, &base_url, &key)
        };
        self.writer.run("write to", insert).await
    }

    /// Ends a consent and returns it; `None` if there is none with this number.
    pub async fn end_consent(&self, id: u64) -> Result<Option<StoredConsent>, StoreError> {
        let delete = move |db: &Connection| {
            let sql = format!(
                "DELETE FROM consents WHERE id = ?1 AND provider NOT IN (?2, ?3, ?4) RETURNING {COLUMNS}"
            );
            let others = params![signed(id), WORKSPACE, SERVER_TOOLS, CLIENT];
            Ok(db.query_row(&sql, others, stored).optional()?)
        };
        self.writer.run("write to", delete).await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredConsent> {
    let to = Destination { provider: row.get(1)?, base_url: row.get(2)?, key: row.get(3)? };
    Ok(StoredConsent { id: number(row, 0)?, to, since: number(row, 4)? })
}

/// Adds a row; an equal row that is there already stays as it is.
pub(super) fn add(
    db: &Connection,
    provider: &str,
    base_url: &str,
    key: &str,
) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO consents ({COLUMNS}) VALUES ({NEXT_NUMBER}, ?1, ?2, ?3, ?4)
        ON CONFLICT DO NOTHING"
    );
    db.execute(&sql, params![provider, base_url, key, signed(now_ms())])?;
    Ok(())
}

/// The rows with this in the place of the provider, oldest first.
pub(super) fn all_of<T>(
    db: &Connection,
    kind: &str,
    stored: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM consents WHERE provider = ?1 ORDER BY id");
    let mut statement = db.prepare(&sql)?;
    let rows = statement.query_map([kind], stored)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Ends the row of this number and kind and returns it; `None` if there is none.
pub(super) fn end_of<T>(
    db: &Connection,
    kind: &str,
    id: u64,
    stored: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, Failure> {
    let sql = format!("DELETE FROM consents WHERE id = ?1 AND provider = ?2 RETURNING {COLUMNS}");
    Ok(db.query_row(&sql, params![signed(id), kind], stored).optional()?)
}

/// A number of a row; SQLite has no unsigned ones.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}
