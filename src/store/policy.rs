//! Rules of policy from approvals: for a Pod, or for it and its descendants.

use crate::protocol::name::PodName;
use crate::protocol::{Action, Pattern, now_ms};
use crate::store::lane::Failure;
use crate::store::pods::{Wanted, signed};
use crate::store::schema::NEXT_NUMBER;
use crate::store::{Store, StoreError};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params};

/// A stored rule.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRule {
    /// 0 before it is stored.
    pub id: u64,
    pub pod: PodName,
    /// Whether it binds what is below the Pod, too.
    pub tree: bool,
    pub pattern: Pattern,
    pub action: Action,
}

impl Store {
    /// Every rule, newest first: the newest decision counts.
    pub async fn policy(&self) -> Result<Vec<StoredRule>, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT policy.id, pods.name, tree, tool, pattern, action
                FROM policy JOIN pods ON pods.key = policy.pod ORDER BY policy.id DESC";
            let mut statement = db.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                let name: String = row.get(1)?;
                let (tool, pattern) = (row.get(3)?, row.get(4)?);
                let rule = |pod| -> rusqlite::Result<StoredRule> {
                    Ok(StoredRule {
                        id: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                        pod,
                        tree: row.get(2)?,
                        pattern: Pattern { tool, pattern },
                        action: row.get(5)?,
                    })
                };
                PodName::parse(&name).ok().map(rule).transpose()
            })?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        self.reader.run("read", read).await
    }
}

/// Adds a rule of a live Pod.
pub fn insert_rule(db: &Connection, rule: &StoredRule) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO policy (id, pod, tree, tool, pattern, action, created)
        SELECT {NEXT_NUMBER}, key, ?2, ?3, ?4, ?5, ?6 FROM pods WHERE key = ?1 AND wanted = ?7"
    );
    let (Pattern { tool, pattern }, created) = (&rule.pattern, signed(now_ms()));
    let values =
        params![rule.pod.key(), rule.tree, tool, pattern, rule.action, created, Wanted::Live];
    match db.execute(&sql, values)? {
        0 => Err(StoreError::NoRule(rule.pod.clone()).into()),
        _ => Ok(()),
    }
}

impl ToSql for Action {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
        .into())
    }
}

impl FromSql for Action {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "allow" => Ok(Self::Allow),
            "ask" => Ok(Self::Ask),
            "deny" => Ok(Self::Deny),
            other => Err(FromSqlError::Other(format!("`{other}` is no action").into())),
        }
    }
}
