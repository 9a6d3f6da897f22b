//! Random histories of a family, with hosts that die in the middle and requests that come two at
//! once. After each step the events of the screens equal the store, no two Pods write the same path,
//! and no request waits for ever; at the end no child event was lost or doubled, and no process is
//! left.

use crate::client::Client;
use crate::client::pod_api::PodApi;
use crate::host::tests::family::{name, two_writers, write};
use crate::host::tests::start;
use crate::host::{Host, Shared};
use crate::protocol::entry::{SystemItem, domain};
use crate::protocol::method::NewPod;
use crate::protocol::{
    Entry, Event, Fact, Method, PodEvent, PodInfo, Refusal, Segment, SpawnPod, State, Verdict,
};
use crate::scope::lease::Lease;
use crate::scope::{Permission, Rule, Scope};
use crate::session::{Files, backwards};
use crate::store::{PodRow, Wanted};
use futures_util::future::join_all;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No call takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
const NAMES: [&str; 7] = ["ann", "ben", "cat", "dan", "eve", "fay", "gus"];
const PLACES: [&str; 7] = [".", "a", "b", "a/a", "a/b", "a/a/a", "b/b"];
const SCRIPT: &str = r#"
[[when]]
says = "sleep"
[[when.step]]
call = [{ name = "Bash", args = { command = "sleep 300 & sleep 300" } }]

[[when]]
says = "ask"
[[when.step]]
call = [{ name = "Bash", args = { command = "echo hello", needs = ["network"], reason = "to look" } }]
[[when.step]]
text = "Asked: {result}"

[[when]]
says = "work"
[[when.step]]
text = "I look first."
call = [{ name = "TaskList", args = {} }]
[[when.step]]
text = "Worked."

[[when]]
any = true
text = "You said {1}."
"#;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// A stream of numbers that a seed decides (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// What kind of name a step needs.
#[derive(Clone, Copy)]
enum Who {
    Live,
    NoOne,
    Anybody,
}

/// One host's life over the files below `root`.
struct Life<'a> {
    root: &'a Path,
    host: Host,
    client: Client,
}

impl Life<'_> {
    fn shared(&self) -> &Shared {
        &self.host.shared
    }

    /// The directory of all Pods, and where a move puts it.
    fn directories(&self) -> (PathBuf, PathBuf) {
        let (one, other) = (self.root.join("w"), self.root.join("moved"));
        if one.is_dir() { (one, other) } else { (other, one) }
    }

    fn place(&self, place: &str) -> PathBuf {
        let (dir, _) = self.directories();
        if place == "." { dir } else { dir.join(place) }
    }

    async fn person(&self, pod: Option<&str>, method: Method) -> Result<Event, Refusal> {
        let pod = pod.map(name);
        let call = self.client.call(pod.as_ref(), method.clone());
        let answer = tokio::time::timeout(PATIENCE, call).await;
        answer.unwrap_or_else(|_| panic!("no answer to {method:?}"))
    }

    async fn pod(&self, by: &str, to: &str, method: Method) -> Result<Event, Refusal> {
        let pod_api = PodApi::new(name(by), self.shared().pod_api.clone());
        let to = name(to);
        let answer = tokio::time::timeout(PATIENCE, pod_api.call(Some(&to), method.clone())).await;
        answer.unwrap_or_else(|_| panic!("no answer to {method:?} of {by}"))
    }

    /// One random step. What is refused changes nothing, and that is checked like everything else.
    async fn step(&self, dice: &mut Dice) -> String {
        let roll = if self.shared().family().is_empty() { 0 } else { 1 + dice.below(24) };
        let one = self.some_pod(dice, if roll < 2 { Who::NoOne } else { Who::Live });
        let two = match roll {
            2..=5 | 23 => self.some_pod(dice, Who::NoOne),
            8..=11 => self.relations(one, dice),
            _ => self.some_pod(dice, Who::Anybody),
        };
        let one = if (12..=13).contains(&roll) { self.some_pod(dice, Who::Anybody) } else { one };
        let place =
            if roll < 2 { dice.of(&[".", ".", "a", "b"]) } else { self.place_of(one, dice) };
        let (what, result) = match roll {
            0 | 1 => {
                let model = Some(format!("rehearsal:{}", self.root.join("s.toml").display()));
                let scope = Some(vec![write(self.place(place))]);
                let cwd = self.place(".");
                let new = NewPod { name: Some(name(one)), cwd, model, scope, ..NewPod::default() };
                ("new", self.person(None, Method::New(new)).await)
            }
            2..=5 => {
                let task = dice.of(&["work", "hello", "ask", "sleep"]).to_owned();
                let scope = vec![write(self.place(place))];
                let new = SpawnPod { name: two.into(), task, scope, ..SpawnPod::default() };
                ("spawn", self.pod(one, one, Method::Spawn(new)).await)
            }
            6 | 7 => ("say", self.person(Some(one), say(dice)).await),
            8 => ("send", self.pod(one, two, say(dice)).await),
            9 => ("read", self.pod(one, two, Method::ReadOutput).await),
            10 => {
                let tree = dice.below(2) == 0;
                (
                    "stop",
                    self.person(
                        Some(one),
                        Method::StopPods { tree, unless_busy: false, silent: false },
                    )
                    .await,
                )
            }
            11 => (
                "stop by",
                self.pod(
                    one,
                    two,
                    Method::StopPods { tree: true, unless_busy: false, silent: false },
                )
                .await,
            ),
            12 | 13 => {
                let (tree, plan) = (dice.below(2) == 0, dice.below(4) == 0);
                ("restore", self.person(Some(one), Method::RestorePods { tree, plan }).await)
            }
            14 => ("peer", self.person(Some(one), Method::Peer { name: two.into() }).await),
            15 => ("unpeer", self.person(Some(one), Method::Unpeer { name: two.into() }).await),
            16 => {
                let lend = Method::lend(two, write(self.place(place)));
                ("lend", self.person(Some(one), lend).await)
            }
            17 | 18 => {
                let approvals = self.shared().approvals();
                let approval = approvals
                    .get(dice.below(approvals.len().max(1)))
                    .map(|approval| approval.id.clone());
                let deny = Verdict::Deny { reason: "no".into() };
                let verdict = match dice.below(4) {
                    0 => deny,
                    1 => Verdict::Pod { rule: None },
                    2 => Verdict::Tree { rule: None, of: (place == "a").then(|| name(two)) },
                    _ => Verdict::Once,
                };
                let answer = Method::Decide { approval: approval.unwrap_or_default(), verdict };
                ("answer", self.person(None, answer).await)
            }
            19 | 20 => ("rewind", self.rewind(one, dice).await),
            21 => ("compact", self.person(Some(one), Method::Compact).await),
            23 => {
                let fork = Method::Fork { name: Some(name(two)), at: None };
                ("fork", self.person(Some(one), fork).await)
            }
            24 => ("move", self.move_all(one).await),
            _ => {
                let path = self.place(place);
                ("reclaim", self.person(Some(one), Method::reclaim(path)).await)
            }
        };
        let outcome = if result.is_ok() { "" } else { " (refused)" };
        format!("{what} {one} {two} {place}{outcome}")
    }

    /// Moves the directory of all Pods. Each family follows it, but for one in which a Pod runs: that is left behind
    /// until the directory is back.
    async fn move_all(&self, first: &str) -> Result<Event, Refusal> {
        let (from, to) = self.directories();
        std::fs::rename(&from, &to).unwrap();
        let relocate = Method::Relocate { cwd: to.clone() };
        let moved = self.person(Some(first), relocate.clone()).await;
        for info in self.shared().family() {
            // A family that followed already is where its directory is.
            let _ = self.person(Some(info.name.as_str()), relocate.clone()).await;
        }
        moved
    }

    /// Goes back to before some message, or takes that back.
    async fn rewind(&self, pod: &str, dice: &mut Dice) -> Result<Event, Refusal> {
        let listed = self.person(Some(pod), Method::ListRewindTargets).await?;
        let Event::RewindTargets { head_entries, targets, undo, redo } = listed else {
            panic!("{listed:?}")
        };
        let expected_head_entries = head_entries;
        let back = if dice.below(2) == 0 { undo } else { redo };
        let method = match back {
            Some(back) if dice.below(2) == 0 => {
                Method::UndoRewind { entry: back.entry, expected_head_entries }
            }
            _ => {
                let target = targets.get(dice.below(targets.len().max(1)));
                let target = target.ok_or_else(|| Refusal::invalid("no message"))?.id;
                Method::Rewind { target, expected_head_entries }
            }
        };
        self.person(Some(pod), method).await
    }

    /// Stops, restores and messages of one Pod that arrive together.
    async fn all_at_once(&self, dice: &mut Dice) -> String {
        let one = self.some_pod(dice, Who::Anybody);
        let mut methods = Vec::new();
        for _ in 0..6 + dice.below(6) {
            methods.push(match dice.below(4) {
                0 => Method::StopPods { tree: false, unless_busy: false, silent: false },
                1 => Method::RestorePods { tree: false, plan: false },
                2 => Method::Notify { message: "wake up".into() },
                _ => say(dice),
            });
        }
        let names: Vec<_> = methods.iter().map(Method::name).collect();
        let names = names.join(" | ");
        join_all(methods.into_iter().map(|method| self.person(Some(one), method))).await;
        format!("{one}: {names}")
    }

    /// A name: mostly of the kind that makes sense, sometimes any.
    fn some_pod(&self, dice: &mut Dice, who: Who) -> &'static str {
        let family = self.shared().family();
        let state = |pod: &str| family.iter().find(|i| i.name.as_str() == pod).map(|i| i.state);
        let fits = |pod: &&'static str| match who {
            Who::Live => state(pod).is_some_and(|state| state != State::Stopped),
            Who::NoOne => state(pod).is_none(),
            Who::Anybody => true,
        };
        let fitting: Vec<&'static str> = NAMES.into_iter().filter(fits).collect();
        if fitting.is_empty() || dice.below(8) == 0 { dice.of(&NAMES) } else { dice.of(&fitting) }
    }

    /// Mostly a Pod below this one.
    fn relations(&self, of: &str, dice: &mut Dice) -> &'static str {
        let family = self.shared().family();
        let parent = |pod: &str| {
            let info = family.iter().find(|info| info.name.as_str() == pod)?;
            info.parent.as_ref().map(ToString::to_string)
        };
        let below = |pod: &&'static str| {
            let mut at = parent(pod);
            while let Some(above) = at {
                if above == of {
                    return true;
                }
                at = parent(&above);
            }
            false
        };
        let below: Vec<&'static str> = NAMES.into_iter().filter(below).collect();
        if below.is_empty() { self.some_pod(dice, Who::Anybody) } else { dice.of(&below) }
    }

    /// Mostly a place this Pod writes to.
    fn place_of(&self, pod: &str, dice: &mut Dice) -> &'static str {
        let family = self.shared().family();
        let info = family.iter().find(|info| info.name.as_str() == pod);
        let scope = info.map(|i| Scope { allow: i.scope.clone(), deny: i.deny.clone() });
        let scope = scope.unwrap_or_default();
        let writes = |place: &&'static str| scope.covers(&write(self.place(place)));
        let places: Vec<&'static str> = PLACES.into_iter().filter(writes).collect();
        if places.is_empty() || dice.below(8) == 0 { dice.of(&PLACES) } else { dice.of(&places) }
    }

    /// Everything that has to be true. A run takes and ends its turn beside the steps, so that what a Pod is told may be
    /// a moment older than the store.
    async fn check(&self) -> Result<(), String> {
        let begun = std::time::Instant::now();
        loop {
            match self.check_now().await {
                Err(_) if begun.elapsed() < Duration::from_secs(10) => {
                    tokio::task::yield_now().await
                }
                checked => return checked,
            }
        }
    }

    async fn check_now(&self) -> Result<(), String> {
        let store = &self.shared().store;
        let rows = store.pods().await.map_err(|e| e.to_string())?;
        let rows: Vec<PodRow> = rows.into_iter().map(Result::unwrap).collect();
        let leases = store.leases().await.map_err(|e| e.to_string())?;
        let leases: Vec<Lease> = leases.into_iter().map(|(_, lease)| lease).collect();
        let family = self.shared().family();
        let mut holding = Vec::new();
        for row in &rows {
            let info = family.iter().find(|info| info.name == row.name);
            let info = info.ok_or_else(|| format!("{} is in the store only", row.name))?;
            if (row.wanted == Wanted::Live) != (info.state != State::Stopped) {
                return Err(format!("{} is {:?}, wanted {:?}", row.name, info.state, row.wanted));
            }
            if info.why.as_ref().is_some_and(|why| why.contains("another program writes")) {
                return Err(format!("{}: {:?}", row.name, info.why));
            }
            if info.parent != row.parent {
                return Err(format!("{}: parent {:?}, {:?}", row.name, info.parent, row.parent));
            }
            if row.wanted == Wanted::Stopped {
                continue;
            }
            let shown = Scope { allow: info.scope.clone(), deny: info.deny.clone() };
            let stored = held(row, &leases);
            for path in PLACES.map(|place| self.place(place).join("x")) {
                if shown.permission(&path) != stored.permission(&path) {
                    return Err(format!(
                        "{} is told {:?} on {}, the store says {:?}",
                        row.name,
                        shown.permission(&path),
                        path.display(),
                        stored.permission(&path)
                    ));
                }
            }
            holding.push((row.name.clone(), shown));
        }
        if let Some(two) = two_writers(&holding) {
            return Err(two);
        }
        for lease in &leases {
            if !holding.iter().any(|(name, _)| name.key() == lease.borrower) {
                return Err(format!("{} is not live and has a lease", lease.borrower));
            }
        }
        let waits =
            |info: &PodInfo| info.why.as_ref().is_some_and(|why| why.starts_with("waits for you"));
        for approval in self.shared().approvals() {
            let stored = store.approvals_of(&approval.pod).await.map_err(|e| e.to_string())?;
            if !stored.iter().any(|s| s.approval.id == approval.id) {
                return Err(format!(
                    "{} asks what the store does not know: {approval:?}",
                    approval.pod
                ));
            }
        }
        for info in family.iter().filter(|info| waits(info)) {
            let approvals = store.approvals_of(&info.name).await.map_err(|e| e.to_string())?;
            if info.state == State::NeedsYou && approvals.is_empty() {
                return Err(format!("{} waits for an answer that nobody asked", info.name));
            }
        }
        let shown = self.shared().peers.borrow().as_ref().clone();
        let stored = store.peers().await.map_err(|e| e.to_string())?;
        let edges = |peers: Vec<crate::protocol::PeerEdge>| {
            peers.into_iter().map(|p| (p.a, p.b)).collect::<BTreeSet<_>>()
        };
        if edges(shown.clone()) != edges(stored.clone()) {
            return Err(format!("peers are told {shown:?}, stored {stored:?}"));
        }
        Ok(())
    }

    /// Waits until no run is under way but those that wait for ever, which it stops.
    async fn wait_until_idle(&self) {
        for info in self.shared().family() {
            let Some(handle) = self.shared().pod(&info.name) else { continue };
            if info.state == State::Stopped {
                continue;
            }
            let mut seen = handle.info.clone();
            let rests = |info: &crate::protocol::PodInfo| {
                info.state != State::Running
                    || info.activity.as_ref().is_some_and(|a| a.contains("sleep"))
            };
            let waited = tokio::time::timeout(PATIENCE, seen.wait_for(rests)).await;
            assert!(
                waited.is_ok(),
                "{} does not come to rest: {:?}",
                info.name,
                handle.info.borrow()
            );
        }
    }
}

fn say(dice: &mut Dice) -> Method {
    let content = dice.of(&["work", "hello", "hello", "ask", "sleep"]).to_owned();
    Method::Send { input: vec![Segment::Text { content }], queue: dice.below(2) == 0 }
}

/// What a Pod holds by the rows of the store, reckoned without the program's own table.
fn held(row: &PodRow, leases: &[Lease]) -> Scope {
    let key = row.name.key();
    let mut allow = row.scope.allow.clone();
    for lease in leases.iter().filter(|lease| lease.borrower == key) {
        if !allow.contains(&lease.rule) {
            allow.push(lease.rule.clone());
        }
    }
    let mut deny = row.scope.deny.clone();
    let lent = |lease: &&Lease| lease.lender == key && lease.borrower != key;
    deny.extend(
        leases
            .iter()
            .filter(lent)
            .filter(|l| l.rule.permission == Permission::Write)
            .map(|l| l.rule.clone()),
    );
    let mut reads: Vec<Rule> = row.restrictions.capped.clone();
    reads.extend(row.restrictions.reclaimed.iter().map(|reclaimed| reclaimed.rule.clone()));
    for blocked in &row.restrictions.blocked {
        let (rule, region) = (&blocked.rule, &blocked.region);
        let whole = region.recursive && rule.target.starts_with(&region.target);
        if whole {
            reads.push(rule.clone());
        } else {
            deny.push(region.clone());
        }
    }
    for rule in &mut allow {
        if reads.contains(rule) {
            rule.permission = Permission::Read;
        }
    }
    Scope { allow, deny }
}

/// Lives one history; the steps so far are in `shown`.
fn live(root: &Path, seed: u64, shown: &mut Vec<String>) -> Result<(), String> {
    let (mut dice, mut left) = (Dice(seed), number("YOI_STEPS", 50));
    while left > 0 {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let last = runtime.block_on(async {
            let host = start(root).await;
            let (client, mut events) = host.client().await.unwrap();
            tokio::spawn(async move { while events.recv().await.is_some() {} });
            let life = Life { root, host, client };
            life.check().await?;
            while left > 0 {
                left -= 1;
                if dice.below(8) == 0 {
                    shown.push("crash".into());
                    return Ok(false);
                }
                if dice.below(8) == 0 {
                    shown.push(life.all_at_once(&mut dice).await);
                } else if dice.below(4) == 0 && left > 0 {
                    left -= 1;
                    let mut other = Dice(dice.next());
                    let two = tokio::join!(life.step(&mut dice), life.step(&mut other));
                    shown.push(format!("{} | {}", two.0, two.1));
                } else {
                    shown.push(life.step(&mut dice).await);
                }
                life.check().await?;
            }
            for pod in NAMES {
                // Some are not there, or stopped already.
                let _ = life.person(Some(pod), Method::Pause).await;
            }
            life.wait_until_idle().await;
            for pod in NAMES {
                let _ = life
                    .person(
                        Some(pod),
                        Method::StopPods { tree: true, unless_busy: false, silent: false },
                    )
                    .await;
            }
            life.check().await?;
            life.host.end().await;
            Ok::<bool, String>(true)
        })?;
        // Without a word to anyone: tasks end where they wait.
        runtime.shutdown_timeout(Duration::from_secs(5));
        if last {
            break;
        }
    }
    // What a vanished host owed is paid by the next one.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { start(root).await.end().await });
    runtime.shutdown_timeout(Duration::from_secs(5));
    child_event(root)?;
    newest_child_events(root)?;
    cut_by_a_host(root, shown.iter().filter(|step| *step == "crash").count())?;
    no_process(root)
}

/// Only the end of a host cuts a run off, at most one of each Pod.
fn cut_by_a_host(root: &Path, crashes: usize) -> Result<(), String> {
    let Ok(sessions) = std::fs::read_dir(root.join("home/data/sessions")) else { return Ok(()) };
    for session in sessions.flatten() {
        let entries = entries(&session.path());
        let cut = entries.iter().filter(|entry| entry["domain"] == domain::CUT).count();
        if cut > crashes {
            return Err(format!("{cut} runs were cut off by {crashes} crashes: {session:?}"));
        }
    }
    Ok(())
}

/// Every end of a child's run is a child event for its parent exactly once.
fn child_event(root: &Path) -> Result<(), String> {
    let db = Connection::open(root.join("home/data/yoi.db")).unwrap();
    let mut statement = db.prepare("SELECT name, parent, session FROM pods").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let pods: Vec<(String, Option<String>, String)> = rows.map(Result::unwrap).collect();
    let mut logs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (pod, _, session) in &pods {
        logs.insert(pod.clone(), entries(&root.join("home/data/sessions").join(session)));
    }
    for (pod, parent, _) in &pods {
        let Some(parent) = parent else { continue };
        let mut stored = db.prepare("SELECT id FROM mail WHERE pod = ?1").unwrap();
        let rows = stored.query_map([parent], |row| row.get(0)).unwrap();
        let ids: Vec<String> = rows.map(Result::unwrap).collect();
        for entry in &logs[pod] {
            let ended = match entry["kind"].as_str() {
                Some("run_completed") => {
                    matches!(entry["result"].as_str(), Some("finished" | "limit_reached"))
                }
                Some("run_errored") => entry["interrupted"] == false,
                _ => false,
            };
            if !ended {
                continue;
            }
            let id = entry["id"].as_str().unwrap();
            if ids.iter().filter(|known| *known == id).count() != 1 {
                return Err(format!("{parent} has no news of {pod}'s run {entry}"));
            }
            let taken = logs[parent].iter().filter(|entry| entry["taken"] == id).count();
            if taken > 1 {
                return Err(format!("{parent} has the news of {pod} {taken} times: {entry}"));
            }
        }
    }
    Ok(())
}

/// How the last run of each child ended, and its last stop, is in the history of its parent or waits again, where the
/// parent took it once: a rewind drops none for good.
fn newest_child_events(root: &Path) -> Result<(), String> {
    let data = root.join("home/data");
    let db = Connection::open(data.join("yoi.db")).unwrap();
    let mut statement =
        db.prepare("SELECT key, parent, since FROM pods WHERE parent IS NOT NULL").unwrap();
    let rows = statement
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)? as u64)));
    let children: BTreeMap<(String, String), u64> = rows.unwrap().map(Result::unwrap).collect();
    let mut statement = db.prepare("SELECT name, session, segment FROM pods").unwrap();
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
    });
    for (pod, session, segment) in rows.unwrap().map(Result::unwrap) {
        let Some(segment) = segment else { continue };
        let event = |entry: &Entry| match &entry.fact {
            Fact::SystemItem { item: SystemItem::PodEvent { event, .. }, .. } => {
                Some(event.clone())
            }
            _ => None,
        };
        let mut taken: BTreeMap<(String, bool), (u64, PodEvent)> = BTreeMap::new();
        for entry in entries(&data.join("sessions").join(&session)) {
            let Ok(entry) = serde_json::from_value::<Entry>(entry) else { continue };
            let Some(event) = event(&entry) else { continue };
            // A fork has the history of its source, and not its children.
            let child = event.pod_name().to_owned();
            let Some(since) = children.get(&(child.clone(), pod.clone())) else { continue };
            let is_stop = matches!(event, PodEvent::ShutDown { .. });
            if is_stop && entry.ts < *since {
                // It was live again.
                continue;
            }
            let newest = taken.entry((child, is_stop)).or_insert((entry.ts, event.clone()));
            if newest.0 <= entry.ts {
                *newest = (entry.ts, event);
            }
        }
        let files = Files::new(&data, session.parse().unwrap());
        let standing = backwards(&files, segment.parse().unwrap(), None);
        let mut known: Vec<PodEvent> =
            standing.filter_map(|recent| event(&recent.unwrap().entry)).collect();
        let mut waiting = db
            .prepare("SELECT payload FROM mail WHERE pod = ?1 AND taken = 0 AND kind = 'pod_event'")
            .unwrap();
        let rows = waiting.query_map([&pod], |row| row.get::<_, String>(0)).unwrap();
        known.extend(rows.map(|row| serde_json::from_str::<PodEvent>(&row.unwrap()).unwrap()));
        for ((child, _), (_, event)) in taken {
            if !known.contains(&event) {
                return Err(format!("{pod} no longer knows of {child}: {event:?}"));
            }
        }
    }
    Ok(())
}

fn entries(session: &Path) -> Vec<Value> {
    let Ok(files) = std::fs::read_dir(session) else { return Vec::new() };
    let paths = files.flatten().map(|file| file.path());
    let logs = paths.filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    logs.flat_map(|log| {
        let text = std::fs::read_to_string(log).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>()
    })
    .collect()
}

/// No process that works below `root` is left; helpers of vanished hosts get a moment to end them.
fn no_process(root: &Path) -> Result<(), String> {
    let begun = std::time::Instant::now();
    loop {
        let left: Vec<PathBuf> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
            .filter(|cwd| cwd.starts_with(root))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(15) {
            return Err(format!("processes are left: {left:?}"));
        }
        std::thread::yield_now();
    }
}

#[test]
fn no_random_history_breaks_a_promise() {
    let first = number("YOI_SEED", 1);
    for seed in first..first + number("YOI_HISTORIES", 12) {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
        let dir = dir.unwrap();
        let root = dir.path().canonicalize().unwrap();
        for place in ["a/a/a", "a/b", "b/b"] {
            std::fs::create_dir_all(root.join("w").join(place)).unwrap();
        }
        std::fs::write(root.join("s.toml"), SCRIPT).unwrap();
        let mut shown = Vec::new();
        if let Err(broken) = live(&root, seed, &mut shown) {
            panic!("seed {seed}: {broken}\n{}", shown.join("\n"));
        }
        let done = shown.iter().filter(|step| !step.ends_with("(refused)")).count();
        println!("seed {seed}: {} steps, {done} carried out", shown.len());
    }
}
