//! Sessions that are to be deleted: of Pods that were deleted, and of Pods that are still being
//! made. Those that are not settled go with their files at the next start of a host.

use crate::protocol::name::{PodName, SessionId};
use crate::store::lane::Failure;
use crate::store::{Store, StoreError};
use rusqlite::Connection;

/// Such a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discard {
    pub session: SessionId,
    /// The Pod that has it, when one was made.
    pub pod: Option<PodName>,
}

impl Store {
    /// Marks a session; one that is marked already changes nothing.
    pub async fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        self.writer.run("write to", move |db| discard(db, session)).await
    }

    /// Removes the mark: a Pod owns the session, or its files are gone.
    pub async fn keep_session(&self, session: SessionId) -> Result<(), StoreError> {
        let keep_session = move |db: &Connection| {
            db.execute("DELETE FROM discards WHERE session = ?1", [session.to_string()])?;
            Ok(())
        };
        self.writer.run("write to", keep_session).await
    }

    /// Every session that is marked. A mark that cannot be read marks nothing.
    pub async fn discards(&self) -> Result<Vec<Discard>, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT discards.session, pods.name FROM discards
                LEFT JOIN pods ON pods.session = discards.session ORDER BY discards.session";
            let mut statement = db.prepare(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows: Vec<(String, Option<String>)> = rows.collect::<Result<_, _>>()?;
            let discard = |(session, pod): (String, Option<String>)| {
                let pod = pod.map(|name| PodName::parse(&name)).transpose().ok()?;
                Some(Discard { session: session.parse().ok()?, pod })
            };
            Ok(rows.into_iter().filter_map(discard).collect())
        };
        self.reader.run("read", read).await
    }
}

/// Marks a session; one that is marked already changes nothing.
pub fn discard(db: &Connection, session: SessionId) -> Result<(), Failure> {
    let sql = "INSERT INTO discards (session) VALUES (?1) ON CONFLICT DO NOTHING";
    db.execute(sql, [session.to_string()])?;
    Ok(())
}

/// Marks the session of a Pod that is about to be deleted.
pub fn mark(db: &Connection, pod: &PodName) -> Result<(), Failure> {
    let sql = "INSERT INTO discards (session) SELECT session FROM pods WHERE key = ?1
        ON CONFLICT DO NOTHING";
    db.execute(sql, [pod.key()])?;
    Ok(())
}
