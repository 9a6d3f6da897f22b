//! How a run ended, for the row of the Pod and for its parent, and the events of children.

use crate::config::settings::Resume;
use crate::host::notify_parent;
use crate::host::pod::Pod;
use crate::host::pod::tail::Interrupted;
use crate::protocol::{Entry, Fact, LastRun, PodEvent, RunOutcome, RunResult, Work};
use crate::run::End;
use crate::store::{MailboxKind, MailboxMessage};
use crate::trace::OrLog as _;
use serde::Deserialize as _;
use std::collections::BTreeMap;

/// Whether this entry is the one that ends a run.
pub(super) fn ends_run(fact: &Fact) -> bool {
    RunOutcome::of(fact).is_some()
}

/// A sentence about the messages that wait for a Pod that was just restored.
pub(super) fn waiting(rows: &[MailboxMessage]) -> Option<String> {
    let children = newest_events(rows);
    if !children.is_empty() {
        return Some(children_in_words(&children));
    }
    let is_notify = |row: &MailboxMessage| row.kind == MailboxKind::Notify;
    let is_agents = |row: &&MailboxMessage| row.kind == MailboxKind::Agent;
    match rows.iter().filter(is_agents).count() {
        0 => {}
        1 => return Some("a message of an agent waits".into()),
        more => return Some(format!("{more} messages of agents wait")),
    }
    match rows {
        [] => None,
        rows if rows.iter().any(is_notify) => Some("a notification waits".into()),
        [_] => Some("a queued message waits".into()),
        rows => Some(format!("{} queued messages wait", rows.len())),
    }
}

/// The newest event of each child that the rows are about.
fn newest_events(rows: &[MailboxMessage]) -> BTreeMap<String, PodEvent> {
    let events = rows.iter().filter(|row| row.kind == MailboxKind::PodEvent);
    let events = events.filter_map(|row| PodEvent::deserialize(&row.payload).ok());
    events.map(|event| (event.pod_name().to_owned(), event)).collect()
}

/// What became of children: `kid stopped`, or `3 children: 2 finished, 1 stopped`.
fn children_in_words(children: &BTreeMap<String, PodEvent>) -> String {
    let word = |event: &PodEvent| match event {
        PodEvent::TurnEnded { .. } => Some("finished"),
        PodEvent::Errored { .. } => Some("failed"),
        PodEvent::ShutDown { .. } => Some("stopped"),
        PodEvent::ScopeSubDelegated { .. } => None,
    };
    let words: Vec<&str> = children.values().filter_map(word).collect();
    let count = |word: &'static str| (word, words.iter().filter(|one| **one == word).count());
    let mut counts = ["finished", "failed", "stopped"].map(count).to_vec();
    counts.retain(|(_, count)| *count > 0);
    match (counts.as_slice(), children.first_key_value()) {
        ([(word, 1)], Some((child, _))) => format!("{child} {word}"),
        ([(word, many)], _) => format!("{many} children {word}"),
        (several, _) => {
            let each = several.iter().map(|(word, count)| format!("{count} {word}"));
            format!("{} children: {}", words.len(), each.collect::<Vec<_>>().join(", "))
        }
    }
}

impl Pod {
    /// Stores how the run ended and notifies the parent. `entry` is the one that ended the run; it
    /// is missing when the log itself failed.
    pub(super) async fn run_is_over(&mut self, end: &End, entry: Option<Entry>) {
        let Some((result, error)) = outcome(end) else { return };
        let failed = || RunOutcome::Failed(error.as_deref().unwrap_or_default()).entry();
        let entry = entry.unwrap_or_else(failed);
        let Some(id) = entry.id else { return };
        let last =
            LastRun { entry: id, result: result.word().into(), error: error.clone(), at: entry.ts };
        self.keep_last_run(last).await;
        if let Some(parent) = self.row.parent.clone() {
            notify_parent::run_ended(&self.shared, &self.row, &parent, &entry).await;
        }
    }

    /// Stores what a run did and what its Pod has cost, where this entry ends one.
    pub(super) async fn keep_work(&self, end: &Entry) {
        let (Fact::RunCompleted { work, .. } | Fact::RunErrored { work, .. }) = &end.fact else {
            return;
        };
        let Some(entry) = end.id else { return };
        // What the end of the host cut off is paused afterwards.
        let result = RunResult::Paused.word().to_owned();
        let cut_off = LastRun { entry, result, error: None, at: end.ts };
        let last = LastRun::of(end).unwrap_or(cut_off);
        let report = self.info.borrow().activity.clone();
        let work = Work { report, ..work.as_deref().cloned().unwrap_or_default() };
        // The log says it as well.
        let stored = self.shared.store.add_run(&self.row.name, &last, &work).await;
        stored.or_log("store what the run did");
        let cost = self.info.borrow().cost;
        let stored = self.shared.store.set_cost(&self.row.name, cost).await;
        stored.or_log("store what the Pod has cost");
    }

    /// Stores and publishes how the last run ended.
    pub(super) async fn keep_last_run(&mut self, last: LastRun) {
        // Only shown, and in the log as well.
        self.shared
            .store
            .set_last_run(&self.row.name, &last)
            .await
            .or_log("store how the last run ended");
        self.row.last_run = Some(last.clone());
        self.change(|info| {
            info.last_activity = last.at;
            info.last_result = Some(last);
        });
    }

    /// The end of a host interrupted the run: screens offer to go on, and the parent is notified.
    pub(super) async fn run_was_cut(&mut self, interrupted: &Interrupted) {
        let at = interrupted.at;
        self.cut_at = Some(at);
        if self.shared.settings.last().settings.host.resume == Resume::Ask {
            self.change(|info| info.cut_at = Some(at));
        }
        if let Some(parent) = &self.row.parent {
            notify_parent::run_was_cut(&self.shared, &self.row, parent, interrupted).await;
        }
    }

    /// What a person did with the run that the end of a host had interrupted: `goes on`.
    pub(super) async fn cut_is_over(&mut self, what: &str) {
        if let Some(at) = self.cut_at.take()
            && let Some(parent) = &self.row.parent
        {
            notify_parent::cut_is_over(&self.shared, &self.row, parent, at, what).await;
        }
    }

    /// A child event that is in the mailbox already: a run takes it before its next request, an idle
    /// Pod wakes, every other Pod takes it with its next run.
    pub(super) async fn child_event(&mut self, row: MailboxMessage) {
        if self.must_be_live().is_err() {
            return;
        }
        self.hand_over(row);
        self.wake().await;
    }
}

/// The result of a run and its error; `None` where no run ended.
fn outcome(end: &End) -> Option<(RunResult, Option<String>)> {
    match end {
        End::Finished => Some((RunResult::Finished, None)),
        End::Paused => Some((RunResult::Paused, None)),
        End::LimitReached(_) => Some((RunResult::LimitReached, None)),
        End::RolledBack => Some((RunResult::RolledBack, None)),
        End::Cancelled => Some((RunResult::Cancelled, None)),
        End::Failed(refusal) => Some((RunResult::Failed, Some(refusal.message.clone()))),
        // A run that was cut off has not ended: it can go on.
        End::Compacted | End::NotCompacted(_) | End::CutOff => None,
    }
}
