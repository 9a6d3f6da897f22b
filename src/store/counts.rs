//! How much a database holds, for a bug report: numbers of rows and names of Pods, no contents.

use crate::store::{StoreError, copy};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long a writer may keep the database locked.
const BUSY: Duration = Duration::from_millis(500);

/// What [`counts`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The version of the schema.
    pub version: u32,
    /// Rows per table, by the name of the table.
    pub rows: Vec<(String, i64)>,
    /// Each Pod's name, and whether it is wanted live or stopped.
    pub pods: Vec<(String, String)>,
}

/// Reads a database without changing its content, also one that a host uses. SQLite may leave its log and its index
/// beside it; where it cannot, a private copy is read. Blocking.
pub fn counts(path: &Path) -> Result<Counts, StoreError> {
    let counted = counts_of(path);
    if !matches!(counted, Err(StoreError::Database { .. })) {
        return counted;
    }
    let Ok(private) = copy(path) else { return counted };
    counts_of(&private.path().join(path.file_name().unwrap_or_default())).or(counted)
}

fn counts_of(path: &Path) -> Result<Counts, StoreError> {
    let at = |action| StoreError::at(action, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(at("open"))?;
    read(&database).map_err(at("read"))
}

fn read(database: &Connection) -> rusqlite::Result<Counts> {
    database.busy_timeout(BUSY)?;
    let version = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
                  ORDER BY name";
    let tables: Vec<String> = database
        .prepare(tables)?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut rows = Vec::new();
    for table in tables {
        // The name comes from the database's own list of tables.
        let quoted = table.replace('"', "\"\"");
        let count = format!("SELECT count(*) FROM \"{quoted}\"");
        rows.push((table, database.query_row(&count, [], |row| row.get(0))?));
    }
    let pods = database
        .prepare("SELECT name, wanted FROM pods ORDER BY key")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Counts { version, rows, pods })
}
