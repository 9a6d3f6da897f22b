//! Lists: the Pods a Pod may see, those of the whole host, and the files a name may be completed to.

use crate::host::Shared;
use crate::protocol::{Completion, Event, PodInfo, SessionId, State};
use crate::scope::{Permission, Scope};
use serde_json::{Value, json};
use std::path::Path;

/// How many completions are offered.
const MAX_COMPLETIONS: usize = 100;

/// The Pods that a Pod may see: itself.
pub(crate) fn of_pod(me: &PodInfo, session: SessionId, shared: &Shared) -> Event {
    let mut own = entry(me, "self_pod", shared);
    own["active"]["session_id"] = json!(session);
    Event::PodsListed { pods: vec![own] }
}

/// Every Pod of the host.
pub(crate) fn of_host(shared: &Shared) -> Event {
    let pods = shared.family();
    Event::PodsListed { pods: pods.iter().map(|info| entry(info, "host", shared)).collect() }
}

fn entry(info: &PodInfo, visibility: &str, shared: &Shared) -> Value {
    let live = info.state != State::Stopped;
    let status = match info.state {
        State::Running => "running",
        State::Paused => "paused",
        _ => "idle",
    };
    let mut entry = json!({
        "pod_name": info.name,
        "visibility": visibility,
        "state": "readable",
        "live": { "socket_path": shared.dirs.socket(info.name.as_str()), "reachable": live },
        "restore": { "possible": !live, "restore_name": info.name },
        "family": { "parent": info.parent, "registered": true, "scope_delegated": [] },
        "spawned_children": { "count": 0, "reachable": 0, "unreachable": 0 },
        "since": info.since,
    });
    if live {
        entry["live"]["status"] = status.into();
        entry["restore"]["reason"] = format!("`{}` is live", info.name).into();
    }
    if let Some(segment) = info.segment {
        entry["active"] = json!({ "segment_id": segment });
    }
    entry
}

/// The files below `cwd` whose path begins with `prefix`, directories first.
pub(crate) fn files(cwd: &Path, scope: &Scope, prefix: &str) -> Vec<Completion> {
    let (dir, start) = prefix.rsplit_once('/').map_or(("", prefix), |(dir, start)| (dir, start));
    let full = if dir.is_empty() && prefix.starts_with('/') {
        Path::new("/").into()
    } else {
        cwd.join(dir)
    };
    let Ok(full) = full.canonicalize() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(&full) else { return Vec::new() };
    let slash = if prefix.contains('/') { "/" } else { "" };
    let mut found: Vec<Completion> = entries
        .flatten()
        .filter(|entry| scope.permission(&full.join(entry.file_name())) >= Some(Permission::Read))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            let fits = name.starts_with(start) && !hidden;
            fits.then(|| Completion {
                value: format!("{dir}{slash}{name}"),
                is_dir: entry.path().is_dir(),
            })
        })
        .collect();
    found.sort_by(|a, b| b.is_dir.cmp(&a.is_dir).then_with(|| a.value.cmp(&b.value)));
    found.truncate(MAX_COMPLETIONS);
    found
}
