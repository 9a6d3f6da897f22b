//! Lists: the Pods a Pod may see, those of the whole host, and the files a name may be completed to.

use crate::host::relations::{Relation, relation};
use crate::host::{Shared, pod::Handle};
use crate::protocol::name::folded;
use crate::protocol::{Completion, Event, Lent, PodInfo, PodName, State};
use crate::scope::{Permission, Rule, Scope};
use crate::session::Files;
use crate::store::DamagedRow;
use crate::text::SafeText;
use crate::tools::walk::{self, Bound};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many completions are offered.
const MAX_COMPLETIONS: usize = 100;
/// Entries of directories that are looked at for one completion, and for how long.
const MAX_VISITED: usize = 100_000;
const LONGEST_LOOK: Duration = Duration::from_millis(300);

/// The Pods that a Pod may see: itself, everything below it, its peers. No transcript is read and no Pod is called.
pub(crate) fn of_pod(me: &PodName, shared: &Shared) -> Event {
    list(shared, |pod| Sight::of(relation(shared, me, pod)))
}

/// The Pods that work in a folder, as an MCP client of it sees them.
pub(crate) fn of_folder(folder: &Path, shared: &Shared) -> Event {
    let works_there = |pod: &PodName| {
        shared.pod(pod).is_some_and(|pod| pod.info.borrow().cwd.starts_with(folder))
    };
    let sight = Sight { word: "folder", registered: false };
    list(shared, |pod| works_there(pod).then_some(sight))
}

/// Every Pod of the host.
pub(crate) fn of_host(shared: &Shared) -> Event {
    list(shared, |_| Some(Sight { word: "host", registered: true }))
}

/// How a Pod is seen by the one that lists.
#[derive(Clone, Copy)]
struct Sight {
    word: &'static str,
    /// Whether the listing Pod may command it.
    registered: bool,
}

impl Sight {
    fn of(relation: Relation) -> Option<Self> {
        match relation {
            Relation::Itself => Some(Self { word: "self_pod", registered: false }),
            Relation::Below => Some(Self { word: "spawned_child", registered: true }),
            Relation::Peer => Some(Self { word: "peer", registered: false }),
            Relation::Stranger => None,
        }
    }
}

fn list(shared: &Shared, sight: impl Fn(&PodName) -> Option<Sight>) -> Event {
    let members = shared.members.borrow().clone();
    let facts = Facts::of(members.0.values());
    let mut pods: Vec<(&str, Value)> = Vec::new();
    for (key, handle) in members.0.iter() {
        if let Some(sight) = sight(&handle.name) {
            pods.push((key, entry(shared, handle, &sight, &facts)));
        }
    }
    let damaged = shared.damaged.borrow().clone();
    for row in damaged.iter() {
        let Ok(name) = PodName::parse(&row.name) else { continue };
        if let Some(sight) = sight(&name) {
            pods.push((&row.name, corrupt(shared, row, &name, &sight, &facts)));
        }
    }
    pods.sort_by_cached_key(|(name, _)| folded(name));
    Event::PodsListed { pods: pods.into_iter().map(|(_, pod)| pod).collect() }
}

/// What is known of a Pod only by looking at the others; by key.
#[derive(Default)]
struct Facts {
    /// How many children are live and how many are not.
    children: HashMap<String, (usize, usize)>,
    is_lent: HashMap<String, Vec<Rule>>,
}

impl Facts {
    fn of<'a>(family: impl Iterator<Item = &'a Handle>) -> Self {
        let mut facts = Self::default();
        for pod in family {
            let info = pod.info.borrow();
            if let Some(parent) = &info.parent {
                let (live, resting) = facts.children.entry(parent.key()).or_default();
                *(if is_live(&info) { live } else { resting }) += 1;
            }
            for Lent { to, rule } in &info.lent {
                facts.is_lent.entry(to.key()).or_default().push(rule.clone());
            }
        }
        facts
    }

    fn children(&self, key: &str) -> Value {
        let (live, resting) = self.children.get(key).copied().unwrap_or_default();
        json!({ "count": live + resting, "reachable": live, "unreachable": resting })
    }

    fn family(&self, key: &str, parent: Option<&PodName>, sight: &Sight) -> Value {
        let lent = self.is_lent.get(key).map_or(&[][..], Vec::as_slice);
        let mut family = json!({ "registered": sight.registered, "scope_delegated": lent });
        if let Some(parent) = parent {
            family["parent"] = json!(parent);
        }
        family
    }
}

fn is_live(info: &PodInfo) -> bool {
    info.state != State::Stopped
}

fn entry(shared: &Shared, pod: &Handle, sight: &Sight, facts: &Facts) -> Value {
    let key = pod.name.key();
    let files = Files::new(&shared.dirs.data, pod.session);
    let segment = pod.info.borrow().segment;
    let missing = segment.is_some_and(|segment| !files.segment(segment).exists());
    let info = &*pod.info.borrow();
    let mut entry = json!({
        "pod_name": info.name,
        "visibility": sight.word,
        "state": if missing { "missing" } else { "readable" },
        "active": { "session_id": pod.session },
        "live": {
            "socket_path": shared.sockets().socket(info.name.as_str()), "reachable": is_live(info),
        },
        "restore": restore(info, missing),
        "family": facts.family(&key, info.parent.as_ref(), sight),
        "spawned_children": facts.children(&key),
        "since": info.since,
        "last_activity": info.last_activity,
    });
    if let Some(segment) = info.segment {
        entry["active"]["segment_id"] = json!(segment);
    }
    if is_live(info) {
        entry["live"]["status"] = json!(shared.status(info));
    }
    if let Some(why) = &info.why {
        entry["why"] = json!(why);
    }
    if let Some(last) = &info.last_result {
        entry["last_result"] = json!(last);
    }
    entry
}

/// Whether a Pod can be restored, and why not.
fn restore(info: &PodInfo, missing: bool) -> Value {
    let name = &info.name;
    if !info.state.can_be_restored() {
        return json!({ "possible": false, "reason": format!("`{name}` is live") });
    }
    if missing {
        return json!({ "possible": false, "reason": "state missing: its log is gone" });
    }
    let mut restore = json!({ "possible": true, "restore_name": name });
    if info.segment.is_none() {
        restore["reason"] = "pending: it has not run yet and begins afresh".into();
    }
    restore
}

/// A record that cannot be read.
fn corrupt(
    shared: &Shared,
    row: &DamagedRow,
    name: &PodName,
    sight: &Sight,
    facts: &Facts,
) -> Value {
    json!({
        "pod_name": name,
        "visibility": sight.word,
        "state": "corrupt",
        "live": { "socket_path": shared.sockets().socket(name.as_str()), "reachable": false },
        "restore": { "possible": false, "reason": "its record cannot be read" },
        "family": facts.family(&name.key(), row.parent.as_ref(), sight),
        "spawned_children": facts.children(&name.key()),
        "error": row.reason,
    })
}

/// The directory in which a name is completed.
pub(crate) fn completed_dir(cwd: &Path, prefix: &str) -> PathBuf {
    match prefix.rsplit_once('/') {
        Some(("", _)) => PathBuf::from("/"),
        Some((dir, _)) => cwd.join(dir),
        None => cwd.to_owned(),
    }
}

/// The files and directories for `prefix`, blocking: those below `cwd` whose path begins with it, directories first, and
/// behind them those whose path holds its characters in this order, the likest first.
pub(crate) fn files(cwd: &Path, scope: &Scope, own: Vec<PathBuf>, prefix: &str) -> Vec<Completion> {
    let bound = Bound { entries: MAX_VISITED, until: Instant::now() + LONGEST_LOOK };
    let mut found = begin_with(cwd, scope, prefix, bound);
    found.sort_by(|a, b| b.is_dir.cmp(&a.is_dir).then_with(|| a.value.cmp(&b.value)));
    let is_below = !prefix.is_empty() && !prefix.starts_with(['/', '.']) && !prefix.ends_with('/');
    if is_below && found.len() < MAX_COMPLETIONS {
        let known: HashSet<String> = found.iter().map(|one| one.value.clone()).collect();
        let like = like(cwd, scope, own, prefix, bound).into_iter();
        found.extend(like.filter(|one| !known.contains(&one.value)));
    }
    found.truncate(MAX_COMPLETIONS);
    found
}

/// The files and directories that a text may become, below the directory in which a new Pod would work.
#[must_use]
pub fn files_for_new_pod(cwd: &Path, own: Vec<PathBuf>, prefix: &str) -> Vec<Completion> {
    let top = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    files(cwd, &Scope::new(vec![Rule::new(top, Permission::Read)]), own, prefix)
}

fn begin_with(cwd: &Path, scope: &Scope, prefix: &str, bound: Bound) -> Vec<Completion> {
    let (dir, start) = prefix.rsplit_once('/').unwrap_or(("", prefix));
    let Ok(full) = completed_dir(cwd, prefix).canonicalize() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(&full) else { return Vec::new() };
    let slash = if prefix.contains('/') { "/" } else { "" };
    let entries = entries.flatten().take(bound.entries);
    entries
        .take_while(|_| Instant::now() < bound.until)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            let fits = name.starts_with(start) && !hidden && is_one_line(&name);
            let reads = || scope.permission(&full.join(&name)) >= Some(Permission::Read);
            (fits && reads()).then(|| {
                let kind = entry.file_type();
                let leads_to_directory =
                    kind.as_ref().is_ok_and(std::fs::FileType::is_symlink) && entry.path().is_dir();
                Completion {
                    value: format!("{dir}{slash}{name}"),
                    is_dir: leads_to_directory || kind.is_ok_and(|kind| kind.is_dir()),
                }
            })
        })
        .collect()
}

/// Whether a name can be written into a line, and a person sees all of it there.
fn is_one_line(name: &str) -> bool {
    *SafeText::line(name) == *name
}

/// The paths below `cwd` like a text, the likest first.
fn like(cwd: &Path, scope: &Scope, own: Vec<PathBuf>, text: &str, bound: Bound) -> Vec<Completion> {
    let Ok(base) = cwd.canonicalize() else { return Vec::new() };
    let text = text.split_whitespace().collect::<String>().to_lowercase();
    let mut found = Vec::new();
    for entry in walk::visible(&base, scope, own, bound) {
        let path = entry.path().strip_prefix(&base).ok().and_then(Path::to_str);
        let Some(path) = path.filter(|path| is_one_line(path)) else { continue };
        if let Some(likeness) = likeness(path, &text) {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            found.push((likeness, path.len(), Completion { value: path.to_owned(), is_dir }));
        }
    }
    found.sort_by(|a, b| (a.0, a.1, &a.2.value).cmp(&(b.0, b.1, &b.2.value)));
    found.into_iter().map(|(_, _, one)| one).collect()
}

/// How like a text in lower case a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    NameBegins,
    NameHolds,
    PathHolds,
    /// Its characters stand in the path in this order.
    HasCharacters,
}

fn likeness(path: &str, text: &str) -> Option<Likeness> {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let mut rest = path.chars();
    if name.starts_with(text) {
        Some(Likeness::NameBegins)
    } else if name.contains(text) {
        Some(Likeness::NameHolds)
    } else if path.contains(text) {
        Some(Likeness::PathHolds)
    } else {
        text.chars().all(|c| rest.any(|of| of == c)).then_some(Likeness::HasCharacters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_like_a_text_that_its_name_or_it_holds_or_whose_characters_it_has() {
        let paths = ["src/host/listing.rs", "src/list.rs", "lists/a.rs", "src/lib/list_all.rs"];
        let likeness = paths.map(|path| likeness(path, "list.r"));
        let (begins, has) = (Some(Likeness::NameBegins), Some(Likeness::HasCharacters));
        assert_eq!(likeness, [has, begins, has, has]);
        assert_eq!(super::likeness("docs/MESH.md", "mesh"), Some(Likeness::NameBegins));
        assert_eq!(super::likeness("docs/a/b.md", "s/a"), Some(Likeness::PathHolds));
        assert_eq!(super::likeness("docs/a/b.md", "ba"), None);
    }
}
