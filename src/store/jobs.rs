//! The commands of Pods that run in the background. A row says that a command runs until its end is stored, together with
//! what its Pod is told: so that is told once, also after a host that was killed.

use crate::protocol::PodName;
use crate::store::pods::must_exist;
use crate::store::{MailboxMessage, Store, StoreError, mailbox};
use rusqlite::{Connection, params};

impl Store {
    /// Stores that a command of this Pod starts. Returns its number, which no earlier one of the Pod has.
    pub async fn job_begins(&self, pod: &PodName, command: String) -> Result<u32, StoreError> {
        let pod = pod.clone();
        let begin = move |db: &Connection| {
            must_exist(db, &pod)?;
            let sql = "INSERT INTO jobs (pod, number, command, runs)
                SELECT ?1, 1 + coalesce(max(number), 0), ?2, 1 FROM jobs WHERE pod = ?1 RETURNING number";
            let number: u32 = db.query_row(sql, params![pod.key(), command], |row| row.get(0))?;
            // The newest row keeps the number.
            let sql = "DELETE FROM jobs WHERE pod = ?1 AND runs = 0 AND number < ?2";
            db.execute(sql, params![pod.key(), number])?;
            Ok(number)
        };
        self.writer.run("write to", begin).await
    }

    /// Stores that a command has ended, and what its Pod is told of it. Returns whether it was running.
    pub async fn job_ended(
        &self,
        pod: &PodName,
        number: u32,
        notice: Option<MailboxMessage>,
    ) -> Result<bool, StoreError> {
        let pod = pod.clone();
        let end = move |db: &Connection| {
            let sql = "UPDATE jobs SET runs = 0 WHERE pod = ?1 AND number = ?2 AND runs = 1";
            let ran = db.execute(sql, params![pod.key(), number])? > 0;
            if let Some(message) = notice.filter(|_| ran) {
                mailbox::add(db, &pod, &message)?;
            }
            Ok(ran)
        };
        self.writer.run("write to", end).await
    }

    /// The commands of a Pod that run by the rows, each with its number.
    pub async fn jobs_that_run(&self, pod: &PodName) -> Result<Vec<(u32, String)>, StoreError> {
        let key = pod.key();
        let read = move |db: &Connection| {
            let sql =
                "SELECT number, command FROM jobs WHERE pod = ?1 AND runs = 1 ORDER BY number";
            let mut statement = db.prepare(sql)?;
            let rows = statement.query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?)
        };
        self.reader.run("read", read).await
    }
}
