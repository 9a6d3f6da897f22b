//! Opening the database: refused when newer, migrated when older, put aside when damaged.

use crate::disk::{self, DiskError};
use crate::store::{StoreError, wal};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was found when the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// There was none, or a damaged one was put aside.
    pub created: bool,
    /// An older one was brought up to date; its copy lies beside it.
    pub migrated: Option<PathBuf>,
    /// Where the damaged one lies now.
    pub set_aside: Option<PathBuf>,
    /// Where the write-ahead log lies now of which the database was gone.
    pub orphaned_log: Option<PathBuf>,
    /// Where a copy lies of a write-ahead log that was damaged: its last changes are lost.
    pub damaged_log: Option<PathBuf>,
}

/// How long a statement waits for another process, such as a backup.
const BUSY: Duration = Duration::from_secs(5);

/// Opens both connections. Blocking.
pub fn open(
    path: &Path,
    migrations: &[&str],
) -> Result<(Connection, Connection, Opening), StoreError> {
    if let Some(dir) = path.parent() {
        disk::private_dir(dir)?;
    }
    must_be_regular(path)?;
    // SQLite deletes the log of a database that is gone, and stops reading at damage, silently.
    let orphaned_log = put_orphaned_log_aside(path)?;
    let damaged_log = copy_damaged_log(path)?;
    let mut opening = Opening { orphaned_log, damaged_log, ..Opening::default() };
    let writer = match writer(path, migrations, &mut opening) {
        Err(error) if is_damaged(&error) => {
            opening.set_aside = Some(set_aside(path)?);
            writer(path, migrations, &mut opening)?
        }
        opened => opened?,
    };
    let reader = reader(path).map_err(StoreError::at("open", path))?;
    Ok((writer, reader, opening))
}

/// Another kind of file in its place would block or could not hold it.
fn must_be_regular(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let why = io::Error::other("it is not a regular file; move it away");
            Err(DiskError::at("open", path)(why).into())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn put_orphaned_log_aside(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let log = with_suffix(path, "-wal");
    let is_empty = |path: &Path| fs::metadata(path).map_or(true, |found| found.len() == 0);
    if !is_empty(path) || is_empty(&log) {
        return Ok(None);
    }
    let aside = beside(&log, "orphaned");
    fs::rename(&log, &aside).map_err(DiskError::at("put aside", &log))?;
    Ok(Some(aside))
}

fn copy_damaged_log(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let log = with_suffix(path, "-wal");
    if !wal::is_damaged(&log).map_err(DiskError::at("read", &log))? {
        return Ok(None);
    }
    let copy = beside(&log, "damaged");
    fs::copy(&log, &copy).map_err(DiskError::at("copy", &log))?;
    Ok(Some(copy))
}

fn writer(
    path: &Path,
    migrations: &[&str],
    opening: &mut Opening,
) -> Result<Connection, StoreError> {
    let is_new = create_private(path).map_err(DiskError::at("create", path))?;
    let at = |action| StoreError::at(action, path);
    let mut connection = Connection::open(path).map_err(at("open"))?;
    prepare(&connection, is_new).map_err(at("open"))?;
    let version = version(&connection).map_err(at("read"))?;
    let known = newest(migrations);
    if version > known {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known });
    }
    check(&connection).map_err(at("check"))?;
    opening.created = version == 0;
    if version < known {
        opening.migrated = copy_before(&connection, path, version)?;
        migrate(&mut connection, migrations, version).map_err(at("migrate"))?;
    }
    if is_new {
        make_durable(&connection, path)?;
    }
    Ok(connection)
}

/// SQLite gives its files the mode of the database, so that one is created first. Says whether the
/// file is empty.
fn create_private(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    Ok(file.metadata()?.len() == 0)
}

/// A new database holds nothing that a crash could lose: its tables are written without a sync for
/// each step, and made durable together afterwards.
fn prepare(connection: &Connection, is_new: bool) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "synchronous", if is_new { "OFF" } else { "FULL" })?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Brings a new database and its place in the directory to the disk, before anything is stored in it.
fn make_durable(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let at = |action| StoreError::at(action, path);
    // Moves what the log holds into the database, so that one file has to be synced.
    connection.pragma_query(None, "wal_checkpoint", |_| Ok(())).map_err(at("create"))?;
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(DiskError::at("sync", path))?;
    if let Some(dir) = path.parent() {
        disk::sync_dir(dir)?;
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(at("open"))
}

fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Reads through the whole database; what is damaged is an error.
fn check(connection: &Connection) -> rusqlite::Result<()> {
    let verdict: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(());
    }
    let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(corrupt, Some(verdict)))
}

fn is_damaged(error: &StoreError) -> bool {
    let StoreError::Database { source, .. } = error else { return false };
    matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Copies an older database before it is changed; the copy takes the place of an earlier one of this version. A new
/// database needs none.
fn copy_before(
    connection: &Connection,
    path: &Path,
    version: u32,
) -> Result<Option<PathBuf>, StoreError> {
    if version == 0 {
        return Ok(None);
    }
    let copy = with_suffix(path, &format!(".v{version}"));
    let unfinished = with_suffix(&copy, ".part");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(DiskError::at("remove", &unfinished)(error).into());
        }
        _ => {}
    }
    let target = unfinished.to_string_lossy().into_owned();
    connection.execute("VACUUM INTO ?1", [target]).map_err(StoreError::at("copy", path))?;
    fs::rename(&unfinished, &copy).map_err(DiskError::at("rename", &unfinished))?;
    Ok(Some(copy))
}

/// The version that the last migration leads to.
fn newest(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).unwrap_or(u32::MAX)
}

fn migrate(connection: &mut Connection, migrations: &[&str], version: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for migration in migrations.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", newest(migrations))?;
    transaction.commit()
}

/// Renames the database and the files that belong to it.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let aside = beside(path, "damaged");
    for suffix in ["-wal", "-shm", ""] {
        let from = with_suffix(path, suffix);
        match fs::rename(&from, with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DiskError::at("put aside", &from)(error).into());
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

/// The database, or a file of the same name with something behind it.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A name beside the database that is free: `yoi.db.damaged`, `yoi.db.damaged-2` …
fn beside(path: &Path, why: &str) -> PathBuf {
    let plain = with_suffix(path, &format!(".{why}"));
    let numbered = (2..).map(|n| with_suffix(path, &format!(".{why}-{n}")));
    let mut names = std::iter::once(plain.clone()).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or(plain)
}
