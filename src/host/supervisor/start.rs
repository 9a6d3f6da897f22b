//! The family as the last host left it: read, mended where records are missing, and brought back.

use crate::config::policy::is_for_script_contents;
use crate::host::pod::{self, resolved};
use crate::host::supervisor::family::holder;
use crate::host::supervisor::{Family, Step, Supervisor, repair, unfinished};
use crate::host::{HostError, Shared, notify_parent};
use crate::protocol::{Action, PodName, now_ms};
use crate::scope::lease::LeaseTable;
use crate::store::{Change, DamagedRow, PodRow, StoreError, Wanted};
use crate::text::SafeText;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The most characters of the rules that a notice names.
const ENDED: usize = 1000;

/// Starts an actor for every known Pod; those that were live become live again, in the order they
/// were created, with what they held.
pub(crate) async fn bring_back(
    shared: &Shared,
    supervisor: &mpsc::Sender<Step>,
) -> Result<Supervisor, HostError> {
    let mut rows = read_rows(shared).await?;
    repair::cut_circles(shared, &mut rows).await?;
    mark_spawned(shared, &mut rows).await?;
    let mut table = LeaseTable::default();
    for row in &rows {
        table.add(row.name.key(), holder(row));
    }
    for (id, lease) in shared.store.leases().await? {
        table.load_lease(id, lease);
    }
    end_content_rules(shared).await?;
    // The table that was read is in the store already.
    table.commit();
    unfinished::clear(shared, &mut rows, &mut table).await?;
    stop_ephemeral(shared, &mut rows, &mut table).await?;
    shared.peers.send_replace(Arc::new(shared.store.peers().await?));
    notify_parent::catch_up(shared, &mut rows).await;
    crate::crash_point!("news-caught-up");
    if table.mend() {
        let leases = table.changes();
        shared.store.change_family(Change { leases, ..Change::default() }).await?;
        table.commit();
    }
    let family = Family::new(shared.clone(), table, supervisor.downgrade());
    let live = |row: &&PodRow| row.wanted == Wanted::Live;
    let live: Vec<PodName> = rows.iter().filter(live).map(|row| row.name.clone()).collect();
    for row in rows {
        start(shared, &family, row, supervisor).await;
    }
    for name in live {
        if let Some(handle) = shared.pod(&name) {
            // A Pod that cannot become live shows the reason in its state.
            let _ = handle.live_as_before().await;
            crate::crash_point!("pod-back");
        }
    }
    Ok(Supervisor { family })
}

/// Ends the rules of earlier releases that allow commands while their scripts have certain contents: such a command is
/// allowed once only.
async fn end_content_rules(shared: &Shared) -> Result<(), HostError> {
    let mut stored = shared.store.policy().await?;
    stored.retain(|rule| is_for_script_contents(&rule.pattern.tool));
    for rule in &stored {
        let change = Change { revoke: Some(rule.id), ..Change::default() };
        shared.store.change_family(change).await?;
    }
    let settings = shared.settings.last().settings;
    let of_file = settings.permissions.rule.iter();
    let of_file =
        of_file.filter(|rule| rule.action == Action::Allow && is_for_script_contents(&rule.tool));
    let of_file = of_file.map(|rule| format!("`{}:{}` of your settings", rule.tool, rule.pattern));
    let ended = stored.iter().map(|rule| format!("`{}` for {}", rule.pattern, rule.pod));
    let ended = ended.chain(of_file).collect::<Vec<_>>().join(", ");
    if !ended.is_empty() {
        shared.add_notice(format!(
            "rules for the content of scripts allow nothing any more: {}; a command that runs a script which its pod can \
             change is allowed once only, or by a rule without sha256= in {}",
            SafeText::brief(ended, ENDED),
            shared.settings.path().display()
        ));
    }
    Ok(())
}

/// Stops the ephemeral Pods that were live when the last host ended: the programs that made them ended with
/// their connections to it.
async fn stop_ephemeral(
    shared: &Shared,
    rows: &mut [PodRow],
    table: &mut LeaseTable,
) -> Result<(), StoreError> {
    let is_left = |row: &&mut PodRow| row.ephemeral && row.wanted == Wanted::Live;
    // Children are stopped before their parents; a parent is always older.
    let mut left: Vec<&mut PodRow> = rows.iter_mut().filter(is_left).collect();
    left.reverse();
    if left.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = left.iter().map(|row| row.name.key()).collect();
    table.stop_all(&keys);
    let (since, mut wanted) = (now_ms(), Vec::new());
    for row in left {
        (row.wanted, row.since) = (Wanted::Stopped, since);
        wanted.push((row.name.clone(), Wanted::Stopped, since));
    }
    let change = Change { wanted, leases: table.changes(), ..Change::default() };
    shared.store.change_family(change).await?;
    table.commit();
    Ok(())
}

/// Marks the children that an earlier version recorded without the mark: once their parent is deleted, their rows
/// do not say any more that a Pod spawned them.
async fn mark_spawned(shared: &Shared, rows: &mut [PodRow]) -> Result<(), StoreError> {
    for row in rows.iter_mut().filter(|row| row.parent.is_some()) {
        let Some(config) = row.config.as_object_mut() else { continue };
        if config.insert("spawned".into(), true.into()) != Some(true.into()) {
            shared.store.set_config(&row.name, &row.config).await?;
        }
    }
    Ok(())
}

async fn read_rows(shared: &Shared) -> Result<Vec<PodRow>, StoreError> {
    let (mut rows, mut damaged): (Vec<PodRow>, Vec<DamagedRow>) = (Vec::new(), Vec::new());
    for row in shared.store.pods().await? {
        match row {
            Ok(row) => rows.push(row),
            // One damaged record never hides the others.
            Err(row) => damaged.push(row),
        }
    }
    rows.sort_by_key(|row| row.created);
    shared.damaged.send_replace(Arc::new(damaged));
    Ok(rows)
}

async fn start(shared: &Shared, family: &Family, row: PodRow, supervisor: &mpsc::Sender<Step>) {
    let granted = Arc::new(watch::Sender::new(family.granted(&row.name.key())));
    let rows = shared.store.messages(&row.name).await.unwrap_or_default();
    let waiting = pod::waiting::waiting(&rows);
    let birth = pod::Birth::Restarted { queue: resolved::queue(rows, |_| false), waiting };
    let handle = pod::spawn(shared, supervisor.downgrade(), row, granted, birth);
    shared.members.send_modify(|members| {
        Arc::make_mut(&mut members.0).insert(handle.name.key(), handle);
    });
}
