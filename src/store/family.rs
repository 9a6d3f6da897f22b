//! One transaction for a Pod that is created, stopped or deleted, or that lends or returns scope:
//! its row, its wanted state, all leases, and its restrictions.

use crate::protocol::PeerEdge;
use crate::protocol::name::{PodName, SessionId};
use crate::scope::Scope;
use crate::scope::lease::{Changes, Lease, LeaseKind};
use crate::store::approvals::answer;
use crate::store::discards::discard;
use crate::store::lane::Failure;
use crate::store::mailbox::{add, end};
use crate::store::peers::{add_edge, remove_edge};
use crate::store::pods::{delete, existing, insert, json, signed};
use crate::store::{Decided, MailboxMessage, PodRow, Store, StoreError, Wanted};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A step of the family's life.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// A Pod that is new.
    pub create: Option<PodRow>,
    /// The new wanted states of Pods, and since when, in milliseconds since the Unix epoch.
    pub wanted: Vec<(PodName, Wanted, u64)>,
    /// Pods whose directory was moved.
    pub relocated: Vec<Relocated>,
    /// A Pod that is deleted.
    pub remove: Option<PodName>,
    /// The change is refused when the Pod to delete has become an ordinary one.
    pub only_ephemeral: bool,
    /// The person's decision that led to this change; the change is refused when its request does
    /// not wait any more.
    pub answer: Option<Decided>,
    /// The number of a rule to delete.
    pub revoke: Option<u64>,
    /// Leases that begin or end, and changed restrictions.
    pub leases: Changes,
    /// Child events for parents.
    pub message: Vec<ChildMessage>,
    /// New pairs of peers (`true`), and pairs that are no longer peers.
    pub peers: Vec<(PeerEdge, bool)>,
    /// A session that the next start deletes with its files, unless `keep_session` is called
    /// before.
    pub discard: Option<SessionId>,
}

/// Where a Pod works from now on, and what it may touch.
#[derive(Clone, Debug, PartialEq)]
pub struct Relocated {
    pub pod: PodName,
    pub cwd: PathBuf,
    pub workspace: PathBuf,
    pub scope: Scope,
}

/// A message about a child for its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildMessage {
    pub parent: PodName,
    pub message: MailboxMessage,
    /// The parent has the event already; the row prevents sending it again.
    pub taken: bool,
}

impl Change {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let Self {
            create,
            wanted,
            relocated,
            remove,
            only_ephemeral: _,
            answer,
            revoke,
            leases,
            message,
            peers,
            discard,
        } = self;
        create.is_none()
            && wanted.is_empty()
            && relocated.is_empty()
            && remove.is_none()
            && answer.is_none()
            && revoke.is_none()
            && *leases == Changes::default()
            && message.is_empty()
            && peers.is_empty()
            && discard.is_none()
    }
}

impl Store {
    /// Makes a change completely or, if it is refused, not at all.
    pub async fn change_family(&self, change: Change) -> Result<(), StoreError> {
        self.writer.run("write to", move |db| apply(db, &change)).await
    }

    /// All leases by their numbers, without unreadable rows.
    pub async fn leases(&self) -> Result<Vec<(u64, Lease)>, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT place, lender, borrower, rule, kind FROM loans ORDER BY place";
            let mut statement = db.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                let rule: String = row.get("rule")?;
                let (lender, borrower) = (row.get("lender")?, row.get("borrower")?);
                let (rule, kind) = (serde_json::from_str(&rule).ok(), row.get("kind")?);
                let id: i64 = row.get("place")?;
                let id = u64::try_from(id).ok();
                Ok(id.zip(rule).map(|(id, rule)| (id, Lease { lender, borrower, rule, kind })))
            })?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        self.reader.run("read", read).await
    }
}

fn apply(db: &Connection, change: &Change) -> Result<(), Failure> {
    if let Some(row) = &change.create {
        insert(db, row)?;
    }
    for (pod, wanted, since) in &change.wanted {
        let sql = "UPDATE pods SET wanted = ?2, since = ?3 WHERE key = ?1";
        existing(pod, db.execute(sql, params![pod.key(), wanted, signed(*since)])?)?;
        if *wanted == Wanted::Stopped {
            // The rules that were made for it end with it, also when the host dies right now.
            db.execute("DELETE FROM policy WHERE pod = ?1", [pod.key()])?;
            // Its request needs no decision any more; one that was made goes into its log.
            db.execute("DELETE FROM asks WHERE pod = ?1 AND verdict IS NULL", [pod.key()])?;
        } else {
            withdraw_stops(db, pod)?;
        }
    }
    for Relocated { pod, cwd, workspace, scope } in &change.relocated {
        let sql = "UPDATE pods SET cwd = ?2, workspace = ?3, scope = ?4 WHERE key = ?1";
        let (cwd, workspace) = (cwd.as_os_str().as_bytes(), workspace.as_os_str().as_bytes());
        existing(pod, db.execute(sql, params![pod.key(), cwd, workspace, json(scope)])?)?;
    }
    if let Some(pod) = &change.remove {
        if change.only_ephemeral {
            must_be_ephemeral(db, pod)?;
        }
        delete(db, pod)?;
    }
    if let Some(decided) = &change.answer
        && !answer(db, decided)?
    {
        return Err(StoreError::NotAsked.into());
    }
    if let Some(rule) = change.revoke {
        db.execute("DELETE FROM policy WHERE id = ?1", [signed(rule)])?;
    }
    for ChildMessage { parent, message, taken } in &change.message {
        if add(db, parent, message)? && *taken {
            end(db, &parent.key(), &message.id)?;
        }
    }
    for (edge, are_peers) in &change.peers {
        if *are_peers {
            add_edge(db, edge)?
        } else {
            remove_edge(db, edge)?
        };
    }
    if let Some(session) = change.discard {
        discard(db, session)?;
    }
    write(db, &change.leases)
}

/// A parent that has not read yet that its child stopped, or would read it again after a rewind, does not read it of a
/// child that is live again. The rows stay, so that their ids are not accepted again.
fn withdraw_stops(db: &Connection, child: &PodName) -> rusqlite::Result<()> {
    let sql = "UPDATE mail SET taken = 1, payload = 'null' FROM pods
        WHERE pods.key = ?1 AND mail.pod = pods.parent AND mail.taken = 0 AND mail.kind = 'pod_event'
        AND json_valid(mail.payload) AND mail.payload ->> 'kind' = 'shut_down'
        AND mail.payload ->> 'pod_name' = pods.name";
    db.execute(sql, [child.key()]).map(drop)
}

fn must_be_ephemeral(db: &Connection, pod: &PodName) -> Result<(), Failure> {
    let sql = "SELECT 1 FROM pods WHERE key = ?1 AND ephemeral";
    let found = db.query_row(sql, [pod.key()], |_| Ok(())).optional()?;
    found.ok_or_else(|| StoreError::NotEphemeral(pod.clone()).into())
}

/// Only the rows that differ are written.
fn write(db: &Connection, changes: &Changes) -> Result<(), Failure> {
    let mut end = db.prepare_cached("DELETE FROM loans WHERE place = ?1")?;
    let sql = "INSERT OR REPLACE INTO loans (place, lender, borrower, rule, kind)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut put = db.prepare_cached(sql)?;
    for (id, lease) in &changes.leases {
        match lease {
            None => end.execute([signed(*id)])?,
            Some(Lease { lender, borrower, rule, kind }) => {
                put.execute(params![signed(*id), lender, borrower, json(rule), kind])?
            }
        };
    }
    let mut restrict = db.prepare_cached("UPDATE pods SET gaps = ?2 WHERE key = ?1")?;
    for (key, restrictions) in &changes.restrictions {
        restrict.execute(params![key, json(restrictions)])?;
    }
    Ok(())
}

impl ToSql for LeaseKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Born => "born",
            Self::Lent => "lent",
            Self::Granted => "granted",
        }
        .into())
    }
}

impl FromSql for LeaseKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "born" => Ok(Self::Born),
            "lent" => Ok(Self::Lent),
            "granted" => Ok(Self::Granted),
            other => Err(FromSqlError::Other(format!("`{other}` is no kind of lease").into())),
        }
    }
}
