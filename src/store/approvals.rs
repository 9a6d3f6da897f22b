//! Approval requests that wait for a person, and decisions that wait for their Pod.

use crate::protocol::name::PodName;
use crate::protocol::{ApprovalRequest, Verdict};
use crate::store::lane::Failure;
use crate::store::pods::json;
use crate::store::policy::{StoredRule, insert_rule};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

/// An approval request and, once there is one, the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredApproval {
    pub approval: ApprovalRequest,
    pub verdict: Option<Verdict>,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The id of the approval request.
    pub approval: String,
    pub verdict: Verdict,
    /// The rule that the answer makes.
    pub rule: Option<StoredRule>,
}

impl Store {
    /// Stores a request; one that is stored already changes nothing.
    pub async fn add_approval(&self, approval: ApprovalRequest) -> Result<(), StoreError> {
        let add = move |db: &Connection| {
            let sql = "INSERT INTO asks (id, pod, ask) VALUES (?1, ?2, ?3)
                ON CONFLICT (id) DO NOTHING";
            db.execute(sql, params![approval.id, approval.pod.key(), json(&approval)])?;
            Ok(())
        };
        self.writer.run("write to", add).await
    }

    /// Every request, oldest first. One that cannot be read is left out.
    pub async fn approvals(&self) -> Result<Vec<StoredApproval>, StoreError> {
        let read = |db: &Connection| {
            let mut statement = db.prepare("SELECT ask, verdict FROM asks ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows: Vec<(String, Option<String>)> = rows.collect::<Result<_, _>>()?;
            let stored = |(approval, verdict): (String, Option<String>)| {
                let approval = serde_json::from_str(&approval).ok()?;
                let verdict = verdict.map(|text| serde_json::from_str(&text).ok());
                Some(StoredApproval { approval, verdict: verdict.flatten() })
            };
            Ok(rows.into_iter().filter_map(stored).collect())
        };
        self.reader.run("read", read).await
    }

    /// Stores a decision and the rule that it makes, if any, in one transaction. Returns whether the
    /// request waited: the first decision counts.
    pub async fn decide_approval(&self, decided: Decided) -> Result<bool, StoreError> {
        self.writer.run("write to", move |db| answer(db, &decided)).await
    }

    /// Withdraws a request, unless a person decided meanwhile. Returns the verdict that counts.
    pub async fn withdraw_approval(
        &self,
        id: &str,
        withdrawn: Verdict,
    ) -> Result<Verdict, StoreError> {
        let decided = Decided { approval: id.to_owned(), verdict: withdrawn, rule: None };
        let withdraw = move |db: &Connection| {
            if answer(db, &decided)? {
                return Ok(decided.verdict);
            }
            let sql = "SELECT verdict FROM asks WHERE id = ?1";
            let stored: Option<String> =
                db.query_row(sql, [&decided.approval], |row| row.get(0)).optional()?;
            let given = stored.and_then(|text| serde_json::from_str(&text).ok());
            Ok(given.unwrap_or(decided.verdict))
        };
        self.writer.run("write to", withdraw).await
    }

    /// Removes requests whose decisions are in the log, or that have no open call any more.
    pub async fn end_approvals(&self, ids: Vec<String>) -> Result<(), StoreError> {
        let end = move |db: &Connection| {
            for id in &ids {
                db.execute("DELETE FROM asks WHERE id = ?1", [id])?;
            }
            Ok(())
        };
        self.writer.run("write to", end).await
    }

    /// The requests of one Pod, oldest first.
    pub async fn approvals_of(&self, pod: &PodName) -> Result<Vec<StoredApproval>, StoreError> {
        let mut approvals = self.approvals().await?;
        approvals.retain(|stored| stored.approval.pod.key() == pod.key());
        Ok(approvals)
    }
}

/// As [`Store::decide_approval`], within a transaction.
pub fn answer(db: &Connection, decided: &Decided) -> Result<bool, Failure> {
    let sql = "UPDATE asks SET verdict = ?2 WHERE id = ?1 AND verdict IS NULL";
    let waited = db.execute(sql, params![decided.approval, json(&decided.verdict)])? > 0;
    if let Some(rule) = decided.rule.as_ref().filter(|_| waited) {
        insert_rule(db, rule)?;
    }
    Ok(waited)
}
