//! What of a damaged store is made again when a host starts, and what is said of it. A report lies
//! beside what was put aside, and every host says it again until a person deletes the report.

use crate::disk;
use crate::host::{HostError, Shared};
use crate::protocol::PodName;
use crate::store::{Opening, PodRow, StoreError};
use crate::trace::OrLog as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How the name of a report ends.
const REPORT: &str = ".report.txt";
/// How much of a report is read, in bytes.
const MOST: u64 = 64 * 1024;

/// Rebuilds the Pods that the store does not know from their logs, each stopped: the store is new, was damaged, or is an
/// older copy. Says what was found and what is lost.
pub(crate) async fn recover(shared: &Shared, opening: &Opening) -> Result<(), HostError> {
    let data = shared.dirs.data.clone();
    let reports = tokio::task::spawn_blocking(move || reports(&data)).await.unwrap_or_default();
    reports.into_iter().for_each(|report| shared.add_notice(report));
    let rebuilt = rebuild(shared).await?;
    if let Some((report, kept)) = sentence(opening, rebuilt, shared.only_reads) {
        if shared.only_reads {
            shared.add_notice(report);
            return Ok(());
        }
        let name = kept.map_or_else(|| "yoi.db.rebuilt".into(), |path| path.into_os_string());
        let mut path = shared.dirs.data.join(name).into_os_string();
        path.push(REPORT);
        let path = PathBuf::from(path);
        let text = format!("{report}; delete {} when you know this", path.display());
        shared.add_notice(text.clone());
        // Where it cannot be written, this host says it all the same.
        let written =
            tokio::task::spawn_blocking(move || disk::replace(&path, text.as_bytes(), 0o600));
        written.await.map_or(Ok(()), |written| written).or_log("write the report of a repair");
    }
    Ok(())
}

/// What happened to the store and what that cost, and where the damaged part is kept. For a copy no path is named: it is
/// removed at the end.
fn sentence(opening: &Opening, rebuilt: usize, is_copy: bool) -> Option<(String, Option<PathBuf>)> {
    let Opening { created, set_aside, orphaned_log, damaged_log, .. } = opening;
    let kept = |before: &str, path: &Path| match is_copy {
        true => String::new(),
        false => format!("{before} kept as {}", path.display()),
    };
    let (what, path) = match (set_aside, orphaned_log, damaged_log) {
        (Some(path), ..) => {
            (format!("the database was damaged{}", kept(" and is", path)), Some(path))
        }
        (_, Some(path), _) => {
            let kept = kept("; its write-ahead log is", path);
            (format!("the database was gone{kept}"), Some(path))
        }
        (_, _, Some(path)) => {
            let what = format!(
                "the write-ahead log of the database was damaged{}; its last changes are lost",
                kept(" and is", path)
            );
            (what, Some(path))
        }
        (None, None, None) if rebuilt == 0 => return None,
        (None, None, None) if *created => ("the database was gone".to_owned(), None),
        (None, None, None) => (
            "the database did not know all sessions, like a copy without its journal".to_owned(),
            None,
        ),
    };
    let pods = match rebuilt {
        0 => "no pod had to be rebuilt from its log".to_owned(),
        1 => "1 pod was rebuilt from its log, stopped".to_owned(),
        many => format!("{many} pods were rebuilt from their logs, stopped"),
    };
    let lost = if *created {
        "peers, leases, approval requests, rules of :policy and queued messages are gone"
    } else {
        "what was changed last of peers, leases, approval requests and queued messages may be gone"
    };
    Some((format!("{what}; {pods}; {lost}"), path.cloned()))
}

/// Adds every Pod whose log is there and which the store does not know; how many those are.
async fn rebuild(shared: &Shared) -> Result<usize, StoreError> {
    let data = shared.dirs.data.clone();
    let known = shared.store.sessions().await?;
    let rows = tokio::task::spawn_blocking(move || crate::store::recover(&data, &known)).await;
    let mut rebuilt = 0;
    for row in rows.unwrap_or_default() {
        match insert(shared, row).await {
            Ok(()) => rebuilt += 1,
            Err(StoreError::Taken(name)) => {
                tracing::warn!("a session of `{name}` is not rebuilt: its name is taken");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rebuilt)
}

/// Adds a Pod, numbered where its name is taken, without a parent where that is gone.
async fn insert(shared: &Shared, row: PodRow) -> Result<(), StoreError> {
    let mut row = row;
    let (base, mut numbers) = (row.name.clone(), 2..100);
    loop {
        match shared.store.create_pod(row.clone()).await {
            Err(StoreError::NoSuchPod(_)) if row.parent.is_some() => row.parent = None,
            Err(StoreError::Taken(name)) => match numbers.next() {
                Some(number) => row.name = base.numbered(number),
                None => return Err(StoreError::Taken(name)),
            },
            inserted => return inserted,
        }
    }
}

/// The reports of earlier repairs.
fn reports(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data).into_iter().flatten().flatten();
    let is_report = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let fits = name.to_str().is_some_and(|name| name.ends_with(REPORT));
        fits && entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST)
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_report).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Takes the parent from one Pod of each circle of parents, the oldest: it had none when the others
/// were made.
pub(super) async fn cut_circles(shared: &Shared, rows: &mut [PodRow]) -> Result<(), StoreError> {
    let mut parents: BTreeMap<String, String> =
        rows.iter().filter_map(|row| Some((row.name.key(), row.parent.as_ref()?.key()))).collect();
    // Oldest first.
    for row in rows {
        let key = row.name.key();
        if !is_below_itself(&parents, &key) {
            continue;
        }
        shared.store.forget_parent(&row.name).await?;
        let parent = row.parent.take();
        parents.remove(&key);
        shared.add_notice(format!(
            "the database held `{}` below itself; it has no parent now (it was `{}`)",
            row.name,
            parent.as_ref().map_or("", PodName::as_str)
        ));
    }
    Ok(())
}

fn is_below_itself(parents: &BTreeMap<String, String>, key: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut at = key;
    while let Some(parent) = parents.get(at).filter(|parent| seen.insert(*parent)) {
        if parent == key {
            return true;
        }
        at = parent;
    }
    false
}
