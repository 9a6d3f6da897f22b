//! Pods and sessions that the last host began to create or to delete and did not finish. The next
//! start removes what is left of them.

use crate::disk::{self, DiskError};
use crate::host::pod::resolved::Resolved;
use crate::host::{Shared, listener, worktree};
use crate::protocol::{PodName, SessionId};
use crate::scope::lease::LeaseTable;
use crate::session::{Files, is_begun};
use crate::store::{Change, Discard, PodRow, StoreError};
use crate::trace::OrLog as _;
use std::path::Path;

/// Removes what was not finished, before any Pod is brought back: Pods without a first message, sessions without a
/// Pod, sockets without a listener, and files of MCP servers that are not used any more.
pub(super) async fn clear(
    shared: &Shared,
    rows: &mut Vec<PodRow>,
    table: &mut LeaseTable,
) -> Result<(), StoreError> {
    if !shared.only_reads {
        listener::sweep(shared);
        sweep_servers(shared);
    }
    for Discard { session, pod } in shared.store.discards().await? {
        if let Some(pod) = pod {
            if has_task(shared, session).await {
                shared.store.keep_session(session).await?;
                continue;
            }
            if let Some(row) = rows.iter().find(|row| row.session == session) {
                take_tree_back(shared, row).await;
            }
            remove(shared, &pod, table).await?;
            rows.retain(|row| row.session != session);
            crate::crash_point!("unfinished-removed");
        }
        // A session that cannot be deleted now is deleted at the next start.
        if !shared.only_reads {
            delete(shared, session).await.or_log("delete a session");
        }
    }
    Ok(())
}

/// Removes the files of MCP servers that are not used any more. No server runs yet.
fn sweep_servers(shared: &Shared) {
    let kept = crate::mcp::kept_in(&shared.dirs.data);
    crate::mcp::set_aside_unused(&kept, std::time::SystemTime::now());
    // Caches may be large, so the start does not wait for their removal; the next start removes the rest.
    tokio::task::spawn_blocking(move || crate::mcp::remove_set_aside(&kept));
}

/// Whether the log of a Pod that was being created holds a message, or the copy of a transcript.
pub(crate) async fn has_task(shared: &Shared, session: SessionId) -> bool {
    let files = Files::new(&shared.dirs.data, session);
    let begun = tokio::task::spawn_blocking(move || is_begun(&files)).await;
    // A log that could not be read is kept.
    begun.unwrap_or(true)
}

/// Deletes the working tree that was made for a Pod in which the Pod never worked.
async fn take_tree_back(shared: &Shared, row: &PodRow) {
    if let Some(tree) = Resolved::read(&row.config).worktree.filter(|_| !shared.only_reads) {
        worktree::take_back(shared, &tree, &row.env).await;
    }
}

async fn remove(shared: &Shared, pod: &PodName, table: &mut LeaseTable) -> Result<(), StoreError> {
    table.remove(&pod.key());
    let (remove, leases) = (Some(pod.clone()), table.changes());
    shared.store.change_family(Change { remove, leases, ..Change::default() }).await?;
    table.commit();
    Ok(())
}

/// Deletes the files of a session without a Pod, then its mark in the store.
pub(crate) async fn delete(shared: &Shared, session: SessionId) -> Result<(), StoreError> {
    let files = Files::new(&shared.dirs.data, session);
    let gone = tokio::task::spawn_blocking(move || remove_dir(files.dir())).await;
    gone.map_err(|_| StoreError::Closed)??;
    crate::crash_point!("session-deleted");
    shared.store.keep_session(session).await
}

fn remove_dir(path: &Path) -> Result<(), DiskError> {
    disk::remove_tree(path).map_err(DiskError::at("delete", path))?;
    path.parent().filter(|parent| parent.exists()).map_or(Ok(()), disk::sync_dir)
}
