//! What each run did. Rows are deleted after a month or with the Pod; the log of the Pod keeps the same figures.

use crate::protocol::{LastRun, PodName, PodWork, Work, now_ms};
use crate::store::pods::signed;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, Row, params};

/// How long a row is kept, in milliseconds: 31 days.
const RETENTION_MS: u64 = 31 * 24 * 60 * 60 * 1000;

impl Store {
    /// Stores how a run of this Pod ended and what it did, and forgets what is too old.
    pub async fn add_run(
        &self,
        pod: &PodName,
        last: &LastRun,
        work: &Work,
    ) -> Result<(), StoreError> {
        let (pod, entry, at) = (pod.key(), last.entry.to_string(), signed(last.at));
        let (last, work) = (json(last), json(work));
        let write = move |db: &Connection| {
            db.execute(
                "DELETE FROM runs WHERE at < ?1",
                [signed(now_ms().saturating_sub(RETENTION_MS))],
            )?;
            let sql = "INSERT INTO runs (entry, pod, at, last, work) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT DO NOTHING";
            db.execute(sql, params![entry, pod, at, last, work])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// What each Pod did whose runs ended at this time or later, in milliseconds since the Unix epoch; the Pod
    /// whose last run ended last stands first.
    pub async fn work_since(&self, at: u64) -> Result<Vec<PodWork>, StoreError> {
        let sql = format!(
            "SELECT pods.name, runs.last, runs.work FROM runs JOIN pods ON pods.key = runs.pod
             WHERE runs.at >= {} ORDER BY runs.pod, runs.at, runs.entry",
            signed(at)
        );
        let read = |row: &Row<'_>| -> rusqlite::Result<(String, String, String)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        };
        let mut pods: Vec<PodWork> = Vec::new();
        // A row that this version cannot read is skipped.
        for (pod, last, work) in self.listed(sql, read).await? {
            let (Ok(pod), Ok(last)) = (PodName::parse(&pod), serde_json::from_str(&last)) else {
                continue;
            };
            let work = serde_json::from_str(&work).unwrap_or_default();
            match pods.last_mut().filter(|known| known.pod == pod) {
                None => pods.push(PodWork { pod, runs: 1, last, work }),
                Some(known) => {
                    known.runs += 1;
                    known.last = last;
                    known.work.add(work);
                }
            }
        }
        pods.sort_by_key(|pod| std::cmp::Reverse(pod.last.at));
        Ok(pods)
    }
}

fn json(value: &impl serde::Serialize) -> String {
    // All keys of maps are texts, so it cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
