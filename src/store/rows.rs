//! Rows that a person revokes by their number: consents, trusts and clients.

use crate::store::lane::Failure;
use crate::store::pods::signed;
use crate::store::schema::NEXT_NUMBER;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

impl Store {
    /// Returns the rows of a query without parameters.
    pub(super) async fn listed<T: Send + 'static>(
        &self,
        sql: String,
        stored: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let read = move |db: &Connection| {
            let mut statement = db.prepare(&sql)?;
            let rows = statement.query_map([], stored)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.reader.run("read", read).await
    }

    /// Runs a `DELETE … RETURNING` with the number of a row, and returns that row.
    pub(super) async fn ended<T: Send + 'static>(
        &self,
        sql: String,
        id: u64,
        stored: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let delete =
            move |db: &Connection| Ok(db.query_row(&sql, [signed(id)], stored).optional()?);
        self.writer.run("write to", delete).await
    }
}

/// Adds a row with the next number. The first of the columns is the number, and `values` are the others. A row that is
/// there already stays as it is.
pub(super) fn add(
    db: &Connection,
    table: &str,
    columns: &str,
    values: impl Params,
) -> Result<(), Failure> {
    let others = ", ?".repeat(columns.matches(',').count());
    let sql = format!(
        "INSERT INTO {table} ({columns}) VALUES ({NEXT_NUMBER}{others}) ON CONFLICT DO NOTHING"
    );
    db.execute(&sql, values)?;
    Ok(())
}

/// Reads an unsigned number, which SQLite stores as a signed one.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}
