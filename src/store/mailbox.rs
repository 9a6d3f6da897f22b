//! Messages that wait to enter a Pod's history: each once, known by its id for ever.

use crate::protocol::name::PodName;
use crate::store::lane::Failure;
use crate::store::pods::{must_exist, signed};
use crate::store::{Store, StoreError};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use serde_json::Value;
use std::collections::BTreeSet;

/// Rows of taken messages that are kept for each Pod, so that a repeated one is known. The log knows
/// the ids of older ones.
const KEPT_TAKEN: i64 = 1024;

/// A mailbox message.
#[derive(Clone, Debug, PartialEq)]
pub struct MailboxMessage {
    /// Unique for its receiver.
    pub id: String,
    pub kind: MailboxKind,
    pub payload: Value,
    /// Milliseconds since the Unix epoch.
    pub created: u64,
}

/// What a mailbox message becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxKind {
    /// The input of a run.
    Input,
    /// Background text.
    Notify,
    /// A child event.
    PodEvent,
    /// A message of an agent.
    Agent,
}

impl MailboxMessage {
    /// Whether it starts a run of an idle Pod. One that does not waits for the next run.
    pub fn wakes(&self) -> bool {
        match self.kind {
            MailboxKind::Input | MailboxKind::PodEvent => true,
            // A message that a person sent in the name of the Pod needs no run of the Pod, nor does the end of a command in
            // the background that was ended.
            MailboxKind::Notify => {
                self.payload["from"]["person"].is_null() && self.payload["waits"] != true
            }
            MailboxKind::Agent => self.payload["wakes"] == Value::Bool(true),
        }
    }
}

impl Store {
    /// Stores a message for a Pod; one that was stored before, taken or not, changes nothing.
    /// Returns whether it is new.
    pub async fn add_message(
        &self,
        pod: &PodName,
        message: MailboxMessage,
    ) -> Result<bool, StoreError> {
        let pod = pod.clone();
        self.writer.run("write to", move |db| add(db, &pod, &message)).await
    }

    /// The messages that wait for a Pod, in the order in which they came. One that cannot be read is
    /// left out.
    pub async fn messages(&self, pod: &PodName) -> Result<Vec<MailboxMessage>, StoreError> {
        self.messages_where(pod, None).await
    }

    /// The same, of one kind.
    pub(super) async fn messages_of(
        &self,
        pod: &PodName,
        kind: MailboxKind,
    ) -> Result<Vec<MailboxMessage>, StoreError> {
        self.messages_where(pod, Some(kind)).await
    }

    async fn messages_where(
        &self,
        pod: &PodName,
        kind: Option<MailboxKind>,
    ) -> Result<Vec<MailboxMessage>, StoreError> {
        let key = pod.key();
        let read = move |db: &Connection| {
            let sql = "SELECT id, kind, payload, created FROM mail
                WHERE pod = ?1 AND taken = 0 AND (?2 IS NULL OR kind = ?2) ORDER BY place";
            read_all(db.prepare(sql)?.query(params![key, kind])?)
        };
        self.reader.run("read", read).await
    }

    /// All of them with a payload of null, except the events of children: enough to count them, and quicker.
    pub async fn messages_to_count(
        &self,
        pod: &PodName,
    ) -> Result<Vec<MailboxMessage>, StoreError> {
        let key = pod.key();
        let read = move |db: &Connection| {
            let sql =
                "SELECT id, kind, iif(kind = 'pod_event', payload, 'null') AS payload, created
                FROM mail WHERE pod = ?1 AND taken = 0 ORDER BY place";
            read_all(db.prepare_cached(sql)?.query([key])?)
        };
        self.reader.run("read", read).await
    }

    /// Changes an input that still waits. Returns whether it does.
    pub async fn edit_input(
        &self,
        pod: &PodName,
        id: &str,
        payload: &Value,
    ) -> Result<bool, StoreError> {
        let (key, id, payload) = (pod.key(), id.to_owned(), payload.to_string());
        let edit = move |db: &Connection| {
            let sql = "UPDATE mail SET payload = ?3
                WHERE pod = ?1 AND id = ?2 AND taken = 0 AND kind = 'input'";
            Ok(db.execute(sql, params![key, id, payload])? > 0)
        };
        self.writer.run("write to", edit).await
    }

    /// Marks messages as taken: their ids are in the log. Ids that are unknown or taken change
    /// nothing.
    pub async fn take_message(&self, pod: &PodName, ids: Vec<String>) -> Result<(), StoreError> {
        let key = pod.key();
        let take = move |db: &Connection| {
            for id in &ids {
                end(db, &key, id)?;
            }
            Ok(())
        };
        self.writer.run("write to", take).await
    }

    /// Marks messages whose ids the log holds already, and deletes old rows that were taken: of each
    /// Pod the newest `KEPT_TAKEN` stay.
    pub async fn delete_taken_messages(
        &self,
        pod: &PodName,
        in_log: BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let key = pod.key();
        let delete_taken = move |db: &Connection| {
            let sql = "SELECT id FROM mail WHERE pod = ?1 AND taken = 0";
            let mut statement = db.prepare(sql)?;
            let waiting = statement.query_map([&key], |row| row.get::<_, String>(0))?;
            for id in waiting.collect::<Result<Vec<_>, _>>()? {
                if in_log.contains(&id) {
                    end(db, &key, &id)?;
                }
            }
            let sql = "DELETE FROM mail WHERE pod = ?1 AND taken = 1 AND place <=
                (SELECT place FROM mail WHERE pod = ?1 AND taken = 1
                 ORDER BY place DESC LIMIT 1 OFFSET ?2)";
            db.execute(sql, params![key, KEPT_TAKEN])?;
            Ok(())
        };
        self.writer.run("write to", delete_taken).await
    }

    /// Takes a message back that no run has taken. Returns whether it waited.
    pub async fn withdraw_message(&self, pod: &PodName, id: &str) -> Result<bool, StoreError> {
        let (key, id) = (pod.key(), id.to_owned());
        self.writer.run("write to", move |db| Ok(end(db, &key, &id)?)).await
    }

    /// Takes the messages back that no run has taken and whose ids begin so.
    pub async fn withdraw_messages(&self, pod: &PodName, ids: String) -> Result<(), StoreError> {
        let key = pod.key();
        let withdraw = move |db: &Connection| {
            let sql = "SELECT id FROM mail WHERE pod = ?1 AND taken = 0 AND substr(id, 1, length(?2)) = ?2";
            let mut statement = db.prepare(sql)?;
            let waiting = statement.query_map([&key, &ids], |row| row.get::<_, String>(0))?;
            for id in waiting.collect::<Result<Vec<_>, _>>()? {
                end(db, &key, &id)?;
            }
            Ok(())
        };
        self.writer.run("write to", withdraw).await
    }

    /// Takes an input that waits out of the queue, unread. Returns whether it waited.
    pub async fn drop_input(&self, pod: &PodName, id: &str) -> Result<bool, StoreError> {
        let (key, id) = (pod.key(), id.to_owned());
        let drop = move |db: &Connection| {
            let sql = "SELECT 1 FROM mail WHERE pod = ?1 AND id = ?2 AND kind = 'input'";
            let is_input = db.query_row(sql, [&key, &id], |_| Ok(())).optional()?.is_some();
            Ok(is_input && end(db, &key, &id)?)
        };
        self.writer.run("write to", drop).await
    }
}

pub fn add(db: &Connection, pod: &PodName, message: &MailboxMessage) -> Result<bool, Failure> {
    must_exist(db, pod)?;
    let sql = "INSERT INTO mail (pod, id, kind, payload, created) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (pod, id) DO NOTHING";
    let payload = message.payload.to_string();
    let created = signed(message.created);
    let row = params![pod.key(), message.id, message.kind, payload, created];
    Ok(db.prepare_cached(sql)?.execute(row)? > 0)
}

/// The row stays, so that its id is not accepted again; its content goes.
pub fn end(db: &Connection, key: &str, id: &str) -> rusqlite::Result<bool> {
    let sql = "UPDATE mail SET taken = 1, payload = 'null'
        WHERE pod = ?1 AND id = ?2 AND taken = 0";
    Ok(db.execute(sql, [key, id])? > 0)
}

fn read_all(rows: Rows<'_>) -> Result<Vec<MailboxMessage>, Failure> {
    let messages = rows.mapped(|row| Ok(read(row))).collect::<Result<Vec<_>, _>>()?;
    Ok(messages.into_iter().flatten().collect())
}

fn read(row: &Row<'_>) -> Option<MailboxMessage> {
    let payload: String = row.get("payload").ok()?;
    let created: i64 = row.get("created").ok()?;
    Some(MailboxMessage {
        id: row.get("id").ok()?,
        kind: row.get("kind").ok()?,
        payload: serde_json::from_str(&payload).ok()?,
        created: u64::try_from(created).ok()?,
    })
}

impl ToSql for MailboxKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Input => "input",
            Self::Notify => "notify",
            Self::PodEvent => "pod_event",
            Self::Agent => "agent",
        }
        .into())
    }
}

impl FromSql for MailboxKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "input" => Ok(Self::Input),
            "notify" => Ok(Self::Notify),
            "pod_event" => Ok(Self::PodEvent),
            "agent" => Ok(Self::Agent),
            other => Err(FromSqlError::Other(format!("`{other}` is no kind of mail").into())),
        }
    }
}
