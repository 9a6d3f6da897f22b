//! When the database is lost: the Pods as their logs know them.

use crate::protocol::entry::{Fact, domain};
use crate::protocol::name::{PodName, SessionId};
use crate::protocol::now_ms;
use crate::scope::Scope;
use crate::scope::lease::Restrictions;
use crate::session::{Files, newest_first, records};
use crate::store::{PodRow, Wanted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a `yoi.pod` entry says: all of a row that the log's place and end do not say.
#[derive(Serialize, Deserialize)]
struct Record {
    name: PodName,
    #[serde(default)]
    parent: Option<PodName>,
    cwd: PathBuf,
    workspace: PathBuf,
    config: Value,
    scope: Scope,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    created: u64,
}

impl PodRow {
    /// The payload of a `yoi.pod` entry, from which [`recover`] makes this row again.
    pub fn record(&self) -> Value {
        let record = Record {
            name: self.name.clone(),
            parent: self.parent.clone(),
            cwd: utf8(&self.cwd),
            workspace: utf8(&self.workspace),
            config: self.config.clone(),
            scope: self.scope.clone(),
            env: self.env.clone(),
            created: self.created,
        };
        serde_json::to_value(record).unwrap_or_default()
    }
}

/// JSON holds no other paths.
fn utf8(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// The Pods whose sessions lie below a data directory and are not `known`, each stopped, parents before children.
/// Peers, leases, queues and approvals are not in the logs and are gone. Blocking; reads the last segments of each such
/// session.
pub fn recover(data: &Path, known: &BTreeSet<SessionId>) -> Vec<PodRow> {
    let mut sessions: Vec<SessionId> = names(&data.join("sessions"));
    sessions.retain(|session| !known.contains(session));
    sessions.sort_unstable_by(|a, b| b.cmp(a));
    let mut taken = BTreeSet::new();
    let mut rows = Vec::new();
    for session in sessions {
        let Some(mut row) = row(data, session) else { continue };
        row.name = free(&row.name, &taken);
        taken.insert(row.name.key());
        rows.push(row);
    }
    parents_first(rows)
}

/// Ids that the entries of a directory are named after.
fn names<T: std::str::FromStr>(dir: &Path) -> Vec<T> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
    entries.filter_map(name).filter_map(|name| name.parse().ok()).collect()
}

fn row(data: &Path, session: SessionId) -> Option<PodRow> {
    let files = Files::new(data, session);
    let segments = newest_first(&files);
    let last = *segments.first()?;
    let record = segments.iter().find_map(|segment| record(&files.segment(*segment)))?;
    Some(PodRow {
        name: record.name,
        parent: record.parent,
        wanted: Wanted::Stopped,
        cwd: record.cwd,
        workspace: record.workspace,
        session,
        segment: Some(last),
        config: record.config,
        scope: record.scope,
        created: record.created,
        since: now_ms(),
        seen: true,
        later: None,
        last: None,
        env: record.env,
        restrictions: Restrictions::default(),
        last_run: None,
        cost: None,
        // What cannot be known is never deleted by age.
        ephemeral: false,
    })
}

/// The last record in a segment.
fn record(path: &Path) -> Option<Record> {
    let entries = records(path, domain::POD).ok()?;
    entries.into_iter().rev().find_map(|entry| match entry.fact {
        Fact::Extension { payload, .. } => serde_json::from_value(payload).ok(),
        _ => None,
    })
}

/// An older session under a name that a newer one has keeps its history under another one.
fn free(name: &PodName, taken: &BTreeSet<String>) -> PodName {
    let mut numbered = (2..).map(|n| name.numbered(n));
    if !taken.contains(&name.key()) {
        return name.clone();
    }
    numbered.find(|name| !taken.contains(&name.key())).unwrap_or_else(|| name.clone())
}

/// Orders rows so that each comes behind its parent.
fn parents_first(mut rows: Vec<PodRow>) -> Vec<PodRow> {
    let mut ordered: Vec<PodRow> = Vec::with_capacity(rows.len());
    while !rows.is_empty() {
        let waiting: BTreeSet<String> = rows.iter().map(|row| row.name.key()).collect();
        let waits = |row: &PodRow| row.parent.as_ref().is_some_and(|p| waiting.contains(&p.key()));
        let (mut rest, ready): (Vec<_>, Vec<_>) = rows.into_iter().partition(waits);
        if ready.is_empty() {
            // They are each other's parents.
            rest.iter_mut().for_each(|row| row.parent = None);
        }
        ordered.extend(ready);
        rows = rest;
    }
    ordered
}
