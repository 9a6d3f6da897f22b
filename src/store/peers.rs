//! Pairs of peers: one row a pair, so that a relation is there for both or for neither.

use crate::protocol::PeerEdge;
use crate::protocol::name::PodName;
use crate::protocol::now_ms;
use crate::store::lane::Failure;
use crate::store::pods::{must_exist, signed};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, params};

impl Store {
    /// Makes two Pods peers. Returns whether they were not before. Both must be there.
    pub async fn add_peer(&self, edge: &PeerEdge) -> Result<bool, StoreError> {
        let edge = edge.clone();
        self.writer.run("write to", move |db| add_edge(db, &edge)).await
    }

    /// All pairs, oldest first.
    pub async fn peers(&self) -> Result<Vec<PeerEdge>, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT one.name, two.name FROM peers
                JOIN pods AS one ON one.key = a JOIN pods AS two ON two.key = b
                ORDER BY peers.since, a, b";
            let mut statement = db.prepare(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let pairs: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
            let edge = |(a, b): (String, String)| {
                Some(PeerEdge { a: PodName::parse(&a).ok()?, b: PodName::parse(&b).ok()? })
            };
            Ok(pairs.into_iter().filter_map(edge).collect())
        };
        self.reader.run("read", read).await
    }
}

pub fn add_edge(db: &Connection, edge: &PeerEdge) -> Result<bool, Failure> {
    for pod in [&edge.a, &edge.b] {
        must_exist(db, pod)?;
    }
    let sql = "INSERT INTO peers (a, b, since) VALUES (?1, ?2, ?3) ON CONFLICT (a, b) DO NOTHING";
    Ok(db.execute(sql, params![edge.a.key(), edge.b.key(), signed(now_ms())])? > 0)
}

pub fn remove_edge(db: &Connection, edge: &PeerEdge) -> Result<bool, Failure> {
    let sql = "DELETE FROM peers WHERE a = ?1 AND b = ?2";
    Ok(db.execute(sql, [edge.a.key(), edge.b.key()])? > 0)
}
