//! The rows of Pods.

use crate::config::diagnostic::without_value;
use crate::protocol::LastRun;
use crate::protocol::name::{PodName, SegmentId, SessionId};
use crate::scope::Scope;
use crate::scope::lease::Restrictions;
use crate::store::discards::mark;
use crate::store::lane::Failure;
use crate::store::machine_peers::end_of_pod;
use crate::store::{Store, StoreError};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A Pod as the store knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRow {
    pub name: PodName,
    pub parent: Option<PodName>,
    pub wanted: Wanted,
    pub cwd: PathBuf,
    pub workspace: PathBuf,
    pub session: SessionId,
    /// The segment it writes to; `None` before its first run.
    pub segment: Option<SegmentId>,
    /// What it runs with, resolved, without secrets.
    pub config: Value,
    pub scope: Scope,
    /// Milliseconds since the Unix epoch.
    pub created: u64,
    /// When it became what it is wanted to be; milliseconds since the Unix epoch.
    pub since: u64,
    /// Whether a person has looked at how its last run ended.
    pub seen: bool,
    /// When a person put off what it waits for; milliseconds since the Unix epoch.
    pub later: Option<u64>,
    /// What it did last, in one line.
    pub last: Option<String>,
    /// The part of its environment that outlives the host.
    pub env: BTreeMap<String, String>,
    /// Where it reads although it asked for write.
    pub restrictions: Restrictions,
    /// How its last run ended.
    pub last_run: Option<LastRun>,
    /// What it had cost when a run ended last, in US dollars; `None` where that is unknown.
    pub cost: Option<f64>,
    /// Whether the Pod is deleted once it has rested long enough.
    pub ephemeral: bool,
}

/// What a person or a parent wants of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Live,
    Stopped,
}

/// A row that cannot be read; it hides no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    pub name: String,
    /// As far as that can be read, like the directories.
    pub parent: Option<PodName>,
    pub cwd: PathBuf,
    pub workspace: PathBuf,
    pub reason: String,
}

const SELECT: &str = "SELECT pods.*, parents.name AS parent_name
    FROM pods LEFT JOIN pods AS parents ON parents.key = pods.parent";

impl Store {
    /// Adds a Pod. Its name must be free, ignoring case, and its parent there.
    pub async fn create_pod(&self, row: PodRow) -> Result<(), StoreError> {
        self.writer.run("write to", move |db| insert(db, &row)).await
    }

    /// A Pod by its name, ignoring case.
    pub async fn pod(&self, name: &PodName) -> Result<Option<PodRow>, StoreError> {
        let key = name.key();
        let sql = format!("{SELECT} WHERE pods.key = ?1");
        let found = self.reader.run("read", move |db| {
            Ok(db.query_row(&sql, [key], |row| Ok(read(row))).optional()?)
        });
        let row = found.await?.transpose();
        row.map_err(|DamagedRow { name, reason, .. }| StoreError::Damaged { name, reason })
    }

    /// Every Pod, oldest first.
    pub async fn pods(&self) -> Result<Vec<Result<PodRow, DamagedRow>>, StoreError> {
        let sql = format!("{SELECT} ORDER BY pods.created, pods.key");
        let rows = self.reader.run("read", move |db| {
            let mut statement = db.prepare(&sql)?;
            let rows = statement.query_map([], |row| Ok(read(row)))?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?)
        });
        rows.await
    }

    /// The segment a Pod writes to from now on.
    pub async fn set_segment(
        &self,
        pod: &PodName,
        to: Option<SegmentId>,
    ) -> Result<(), StoreError> {
        self.set(pod, "segment", to.map(|segment| segment.to_string())).await
    }

    /// Leaves a Pod without a parent.
    pub async fn forget_parent(&self, pod: &PodName) -> Result<(), StoreError> {
        self.set(pod, "parent", None::<String>).await
    }

    /// The sessions that the store knows, also of rows that cannot be read and those that are to be deleted.
    pub async fn sessions(&self) -> Result<BTreeSet<SessionId>, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT session FROM pods UNION SELECT session FROM discards";
            let mut statement = db.prepare(sql)?;
            let sessions = statement.query_map([], |row| row.get::<_, String>(0))?;
            let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
            Ok(sessions.into_iter().filter_map(|session| session.parse().ok()).collect())
        };
        self.reader.run("read", read).await
    }

    /// When a Pod's state began; milliseconds since the Unix epoch.
    pub async fn set_since(&self, pod: &PodName, since: u64) -> Result<(), StoreError> {
        self.set(pod, "since", signed(since)).await
    }

    /// The configuration of a Pod.
    pub async fn set_config(&self, pod: &PodName, config: &Value) -> Result<(), StoreError> {
        self.set(pod, "config", config.to_string()).await
    }

    /// Whether a person has looked at how a Pod's last run ended.
    pub async fn set_seen(&self, pod: &PodName, seen: bool) -> Result<(), StoreError> {
        self.set(pod, "seen", seen).await
    }

    /// When a person put off what a Pod waits for; milliseconds since the Unix epoch.
    pub async fn set_later(&self, pod: &PodName, at: u64) -> Result<(), StoreError> {
        self.set(pod, "later", signed(at)).await
    }

    /// What a Pod did last, in one line.
    pub async fn set_last(&self, pod: &PodName, last: Option<String>) -> Result<(), StoreError> {
        self.set(pod, "last", last).await
    }

    /// Makes a Pod ordinary, with the Pods above and below it; returns those that were ephemeral.
    pub async fn keep_pods(&self, pod: &PodName) -> Result<Vec<PodName>, StoreError> {
        let key = pod.key();
        self.writer.run("write to", move |db| keep(db, &key)).await
    }

    /// Deletes a Pod with its mailbox and marks its session. Its children lose their parent.
    pub async fn remove_pod(&self, pod: &PodName) -> Result<(), StoreError> {
        let pod = pod.clone();
        self.writer.run("write to", move |db| delete(db, &pod)).await
    }

    /// How a Pod's last run ended.
    pub async fn set_last_run(&self, pod: &PodName, run: &LastRun) -> Result<(), StoreError> {
        self.set(pod, "last_run", json(run)).await
    }

    /// What a Pod has cost so far, in US dollars.
    pub async fn set_cost(&self, pod: &PodName, cost: Option<f64>) -> Result<(), StoreError> {
        self.set(pod, "cost", cost).await
    }

    async fn set(
        &self,
        pod: &PodName,
        column: &'static str,
        value: impl ToSql + Send + 'static,
    ) -> Result<(), StoreError> {
        let pod = pod.clone();
        let set = move |db: &Connection| {
            let sql = format!("UPDATE pods SET {column} = ?2 WHERE key = ?1");
            existing(&pod, db.execute(&sql, params![pod.key(), value])?)
        };
        self.writer.run("write to", set).await
    }
}

fn keep(db: &Connection, key: &str) -> Result<Vec<PodName>, Failure> {
    // `UNION` ends where damaged rows are each other's parents.
    let sql = "WITH RECURSIVE
            above (key) AS (SELECT ?1 UNION
                SELECT pods.parent FROM above JOIN pods ON pods.key = above.key
                WHERE pods.parent IS NOT NULL),
            below (key) AS (SELECT ?1 UNION
                SELECT pods.key FROM below JOIN pods ON pods.parent = below.key)
        UPDATE pods SET ephemeral = 0 WHERE ephemeral
            AND (key IN (SELECT key FROM above) OR key IN (SELECT key FROM below))
        RETURNING name";
    let mut statement = db.prepare(sql)?;
    let names = statement.query_map([key], |row| row.get(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    Ok(names.iter().filter_map(|name| PodName::parse(name).ok()).collect())
}

pub fn existing(pod: &PodName, rows: usize) -> Result<(), Failure> {
    if rows == 0 { Err(StoreError::NoSuchPod(pod.clone()).into()) } else { Ok(()) }
}

/// Fails unless there is a row of the Pod.
pub fn must_exist(db: &Connection, pod: &PodName) -> Result<(), Failure> {
    let exists = db.prepare_cached("SELECT 1 FROM pods WHERE key = ?1")?.exists([pod.key()])?;
    existing(pod, usize::from(exists))
}

/// Deletes a Pod with everything that is only its own; its session is marked until that is gone.
pub fn delete(db: &Connection, pod: &PodName) -> Result<(), Failure> {
    mark(db, pod)?;
    end_of_pod(db, pod)?;
    existing(pod, db.execute("DELETE FROM pods WHERE key = ?1", [pod.key()])?)
}

pub fn insert(db: &Connection, row: &PodRow) -> Result<(), Failure> {
    if let Some(parent) = &row.parent {
        must_exist(db, parent)?;
    }
    let sql = "INSERT INTO pods (key, name, parent, wanted, cwd, workspace, session, segment,
            config, scope, env, created, since, seen, last, gaps, last_run,
            ephemeral)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    let inserted = db.execute(
        sql,
        params![
            row.name.key(),
            row.name.as_str(),
            row.parent.as_ref().map(PodName::key),
            row.wanted,
            row.cwd.as_os_str().as_bytes(),
            row.workspace.as_os_str().as_bytes(),
            row.session.to_string(),
            row.segment.map(|segment| segment.to_string()),
            row.config.to_string(),
            json(&row.scope),
            json(&row.env),
            signed(row.created),
            signed(row.since),
            row.seen,
            row.last,
            json(&row.restrictions),
            row.last_run.as_ref().map(json),
            row.ephemeral,
        ],
    );
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreError::Taken(row.name.clone()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads a row; whatever is wrong with it stays with it.
fn read(row: &Row<'_>) -> Result<PodRow, DamagedRow> {
    read_columns(row).map_err(|reason| {
        let parent = optional(row, "parent_name").ok().flatten();
        let (cwd, workspace) = (path(row, "cwd"), path(row, "workspace"));
        DamagedRow {
            name: readable_name(row),
            parent,
            cwd: cwd.unwrap_or_default(),
            workspace: workspace.unwrap_or_default(),
            reason,
        }
    })
}

/// The name of a row, or where that is damaged its key, by which the row can be deleted.
fn readable_name(row: &Row<'_>) -> String {
    let (name, key) = (row.get::<_, String>("name"), row.get::<_, String>("key"));
    let key = key.unwrap_or_default();
    let fits = |name: &String| PodName::parse(name).is_ok_and(|name| name.key() == key);
    name.ok().filter(fits).unwrap_or(key)
}

fn read_columns(row: &Row<'_>) -> Result<PodRow, String> {
    Ok(PodRow {
        name: name_of_its_key(row)?,
        parent: optional(row, "parent_name")?,
        wanted: column(row, "wanted")?,
        cwd: path(row, "cwd")?,
        workspace: path(row, "workspace")?,
        session: parsed(row, "session")?,
        segment: optional(row, "segment")?,
        config: decoded(row, "config")?,
        scope: decoded(row, "scope")?,
        env: decoded(row, "env")?,
        created: time(row, "created")?,
        since: time(row, "since")?,
        seen: column(row, "seen")?,
        later: column::<Option<i64>>(row, "later")?
            .map(|time| u64::try_from(time).map_err(|error| format!("later: {error}")))
            .transpose()?,
        last: column(row, "last")?,
        restrictions: decoded(row, "gaps")?,
        last_run: last_run(row)?,
        cost: column(row, "cost")?,
        ephemeral: column(row, "ephemeral")?,
    })
}

/// The name, which must be the one that the key is made of.
fn name_of_its_key(row: &Row<'_>) -> Result<PodName, String> {
    let (name, key): (PodName, String) = (parsed(row, "name")?, column(row, "key")?);
    if name.key() == key { Ok(name) } else { Err(format!("name: `{name}` is not that of `{key}`")) }
}

fn column<T: FromSql>(row: &Row<'_>, name: &'static str) -> Result<T, String> {
    row.get(name).map_err(|error| format!("{name}: {error}"))
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(
    row: &Row<'_>,
    name: &'static str,
) -> Result<T, String> {
    let text: String = column(row, name)?;
    text.parse().map_err(|error| format!("{name}: {error}"))
}

fn optional<T: FromStr<Err: std::fmt::Display>>(
    row: &Row<'_>,
    name: &'static str,
) -> Result<Option<T>, String> {
    let text: Option<String> = column(row, name)?;
    text.map(|text| text.parse().map_err(|error| format!("{name}: {error}"))).transpose()
}

fn decoded<T: DeserializeOwned>(row: &Row<'_>, name: &'static str) -> Result<T, String> {
    let text: String = column(row, name)?;
    from_json(name, &text)
}

fn from_json<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("{name}: {}", without_value(&error.to_string())))
}

fn last_run(row: &Row<'_>) -> Result<Option<LastRun>, String> {
    let text: Option<String> = column(row, "last_run")?;
    text.map(|text| from_json("last_run", &text)).transpose()
}

fn path(row: &Row<'_>, name: &'static str) -> Result<PathBuf, String> {
    let bytes: Vec<u8> = column(row, name)?;
    Ok(Path::new(&OsString::from_vec(bytes)).to_owned())
}

fn time(row: &Row<'_>, name: &'static str) -> Result<u64, String> {
    let time: i64 = column(row, name)?;
    u64::try_from(time).map_err(|error| format!("{name}: {error}"))
}

/// SQLite's integers have a sign; no time gets that far.
pub fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// The value as JSON. The types that are stored here always encode.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl ToSql for Wanted {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Live => "live",
            Self::Stopped => "stopped",
        }
        .into())
    }
}

impl FromSql for Wanted {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "live" => Ok(Self::Live),
            "stopped" => Ok(Self::Stopped),
            other => {
                Err(FromSqlError::Other(format!("`{other}` is neither live nor stopped").into()))
            }
        }
    }
}
