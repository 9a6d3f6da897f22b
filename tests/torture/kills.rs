//! Random kills under load: several families whose Pods stream, call tools, get news, queue
//! messages and ask, while children are made, stopped and restored and paths are lent.

use crate::bench::{Bench, Host};
use crate::check::{self, Expected, nothing_wrong};
use crate::hub::{Hub, within};
use crate::{Dice, number};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Pods with their peer, the children they may have, and the fork of them that may be there.
const FAMILIES: [(&str, &str, [&str; 2], &str); 4] = [
    ("ann", "bob", ["ann1", "ann2"], "ann-fork"),
    ("bob", "cleo", ["bob1", "bob2"], "bob-fork"),
    ("cleo", "dan", ["cleo1", "cleo2"], "cleo-fork"),
    ("dan", "ann", ["dan1", "dan2"], "dan-fork"),
];
/// How many kills one home lives through before everything is brought to its end.
const LIVES: u64 = 10;
/// A kill comes after at most so many events.
const EVENTS: u64 = 800;
/// And then after at most so many microseconds more.
const MORE: u64 = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_killed_at_random_under_load_loses_and_repeats_nothing() {
    let kills = number("YOI_TORTURE_KILLS", 20);
    let seed = number("YOI_TORTURE_SEED", u64::from(std::process::id()));
    println!("YOI_TORTURE_SEED={seed}");
    let mut dice = Dice::new(seed);
    let (mut done, mut sums) = (0, Sums::default());
    while done < kills {
        let lives = LIVES.min(kills - done);
        sums.add(home(&mut dice, lives).await);
        done += lives;
    }
    println!("{done} kills: {sums:?}");
    assert!(sums.cut_off > 0, "no run was ever cut off");
}

/// How much was at stake.
#[derive(Debug, Default)]
struct Sums {
    acknowledged: usize,
    entries: usize,
    effects: usize,
    requests: usize,
    children: usize,
    answered: usize,
    cut_off: usize,
    /// How often a question stood when the host was killed.
    asked: usize,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.entries += other.entries;
        self.effects += other.effects;
        self.requests += other.requests;
        self.children += other.children;
        self.answered += other.answered;
        self.cut_off += other.cut_off;
        self.asked += other.asked;
    }
}

/// One home from its first start to a quiet end.
async fn home(dice: &mut Dice, lives: u64) -> Sums {
    let bench = Bench::new(Duration::from_millis(1)).await;
    let (mut cut_off, mut asked) = (0, 0);
    let mut expected = BTreeMap::new();
    for life in 0..lives {
        let (host, hub) = start(&bench, &expected).await;
        for (pod, _, children, _) in FAMILIES {
            if hub.info(pod).is_none() {
                bench.new_pod(&hub, pod).await.expect("a host that lives");
            }
            children.iter().for_each(|child| bench.room(&bench.path(pod).join(child)));
        }
        live_and_die(&bench, &hub, host, dice, life).await;
        bench.no_process_left().await;
        expected = check::expected(&bench);
        cut_off += expected.values().filter(|pod| **pod == Expected::CutOff).count();
        asked +=
            expected.values().filter(|pod| matches!(pod, Expected::WaitsForApproval(_))).count();
    }
    bench.provider.release();
    let (host, hub) = start(&bench, &expected).await;
    for (pod, state) in &expected {
        if *state == Expected::Stopped {
            hub.restore(pod, &[]).await.expect("a host that lives");
        }
    }
    let below = FAMILIES.iter().flat_map(|(_, _, [one, two], fork)| [*one, *two, *fork]);
    for pod in below.chain(FAMILIES.map(|(pod, ..)| pod)) {
        if hub.info(pod).is_some() {
            wait_until_idle(&hub, pod).await.expect("a host that lives");
        }
    }
    nothing_wrong("after everything came to its end", &check::unfinished(&bench));
    host.kill().await;
    bench.no_process_left().await;
    let acknowledged = bench.acknowledged.lock().expect("no test panics with it");
    Sums {
        acknowledged: acknowledged.accepted.len(),
        entries: acknowledged.entries.len(),
        effects: bench.effects().lines().count(),
        requests: bench.provider.requests(),
        children: expected.len() - FAMILIES.len(),
        answered: acknowledged.answered.len(),
        cut_off,
        asked,
    }
}

/// Starts a host and looks whether everything is as it was left. A start sends nothing to a model.
pub async fn start(bench: &Bench, expected: &BTreeMap<String, Expected>) -> (Host, Hub) {
    let asked = bench.provider.requests();
    let host = bench.serve().await;
    let hub = bench.connect(&host).await.expect("a host that lives");
    let mut wrong = check::alive(&hub, expected);
    wrong.extend(check::contradictions(bench));
    wrong.extend(check::differences(bench, &hub));
    if bench.provider.requests() != asked {
        wrong.push("a start sent something to the model".to_owned());
    }
    nothing_wrong("after a start", &wrong);
    (host, hub)
}

/// Puts the host under load and kills it.
async fn live_and_die(bench: &Bench, hub: &Hub, host: Host, dice: &mut Dice, life: u64) {
    let mut events = hub.events("*");
    let drivers: Vec<_> = FAMILIES
        .into_iter()
        .map(|(pod, peer, children, fork)| {
            let (hub, dice, home) = (hub.clone(), Dice::new(dice.below(u64::MAX)), bench.path(pod));
            let driver = Driver { hub, pod, peer, children, fork, home, dice };
            tokio::spawn(driver.run(life))
        })
        .collect();
    for _ in 0..dice.below(EVENTS) {
        if events.next().await.is_none() {
            break;
        }
    }
    tokio::time::sleep(Duration::from_micros(dice.below(MORE))).await;
    host.kill().await;
    hub.until_closed().await;
    for driver in drivers {
        within("a driver", driver).await.expect("a driver");
    }
}

/// Gives a Pod and its children something to do, again and again, until the host is gone.
struct Driver {
    hub: Hub,
    pod: &'static str,
    peer: &'static str,
    children: [&'static str; 2],
    fork: &'static str,
    home: PathBuf,
    dice: Dice,
}

impl Driver {
    async fn run(mut self, life: u64) {
        for n in 0.. {
            let id = format!("{}-{life}-{n}", self.pod);
            let busy = |info: &Value| {
                info["state"] == "running" && info["queue"].as_array().is_some_and(|q| q.len() > 2)
            };
            let free = self.hub.is(self.pod, |info| !busy(info)).await.is_some();
            if !free || self.act(&id).await.is_none() {
                return;
            }
        }
    }

    /// One order; whether it is carried out depends on what the Pods do right now.
    async fn act(&mut self, id: &str) -> Option<Value> {
        if let Some(approval) = self.question().filter(|_| self.dice.below(4) == 0) {
            let verdict = ["once", "deny", "pod", "tree"][self.roll(4)];
            return self.hub.answer(&approval, json!({"verdict": verdict})).await;
        }
        let (one, child) = (self.one(), self.child());
        match self.dice.below(100) {
            0..60 => self.converse(id).await,
            60..66 => self.hub.say(one, &format!("@ask {id} ."), true).await,
            66..71 => self.reach(one, id).await,
            71..74 => self.hub.say(one, &format!("@long {id} ."), true).await,
            74..82 => {
                let task = ["@work", "@talk", "@ask"][self.roll(3)];
                let dir = self.home.join(child);
                self.hub.spawn(self.pod, child, &format!("{task} {id} ."), &dir).await
            }
            82..84 => self.hub.spawn_keyless(self.pod, "ghost", &self.home.join("lent")).await,
            84..86 => self.hub.stop(child, &[]).await,
            86..89 => self.hub.restore(child, &[]).await,
            89..91 => self.hub.peer(self.pod, self.peer).await,
            91..92 => self.hub.unpeer(self.pod, self.peer).await,
            92..94 => self.hub.lend(self.pod, self.peer, &self.home.join("lent")).await,
            94..95 => self.hub.reclaim(self.pod, &self.home.join("lent")).await,
            _ => self.with_fork(id).await,
        }
    }

    /// A call beyond the scope: of a file that a person is asked about, or that a rule allows.
    async fn reach(&mut self, pod: &str, id: &str) -> Option<Value> {
        let place = ["beyond", "above"][self.roll(2)];
        let dir = self.home.with_file_name(place).join(id).join("out");
        std::fs::create_dir_all(&dir).expect("a new directory");
        let text = format!("@reach {id} {} .", dir.join("effects").display());
        self.hub.say(pod, &text, true).await
    }

    /// The Pod is forked; the fork says something, stops, comes back, or is removed.
    async fn with_fork(&mut self, id: &str) -> Option<Value> {
        let Some(info) = self.hub.info(self.fork) else {
            return self.hub.fork(self.pod, self.fork).await;
        };
        let stopped = info["state"] == "stopped";
        match self.dice.below(4) {
            0 if stopped => self.hub.restore(self.fork, &[]).await,
            _ if stopped => self.hub.remove(self.fork).await,
            0 => self.hub.stop(self.fork, &[]).await,
            1 => self.hub.notify(self.fork, id).await,
            _ => self.hub.say(self.fork, &format!("@talk {id} ."), true).await,
        }
    }

    /// Something for one Pod.
    async fn converse(&mut self, id: &str) -> Option<Value> {
        let (pod, hub) = (self.one(), self.hub.clone());
        let paused = hub.info(pod).is_some_and(|info| info["state"] == "paused");
        match self.dice.below(100) {
            0..60 if paused => hub.call(Some(pod), "resume", Value::Null).await,
            0..40 => hub.say(pod, &format!("@work {id} ."), true).await,
            40..55 => hub.say(pod, &format!("@talk {id} ."), true).await,
            55..58 => hub.say(pod, &format!("@full {id} ."), true).await,
            58..78 => hub.notify(pod, id).await,
            78..85 => hub.call(Some(pod), "pause", Value::Null).await,
            85..89 => hub.call(Some(pod), "cancel", Value::Null).await,
            89..92 => hub.call(Some(pod), "compact", Value::Null).await,
            _ => {
                let input = json!([{"kind": "text", "content": format!("@talk {id} .")}]);
                hub.note(pod, "steer", json!({"input": input}), id).await
            }
        }
    }

    fn roll(&mut self, limit: u64) -> usize {
        usize::try_from(self.dice.below(limit)).expect("a small number")
    }

    fn child(&mut self) -> &'static str {
        let at = self.roll(2);
        self.children[at]
    }

    /// Mostly the Pod itself, or a child that is there.
    fn one(&mut self) -> &'static str {
        let child = self.child();
        let there = self.hub.info(child).is_some_and(|info| info["state"] != "stopped");
        if there && self.dice.below(3) == 0 { child } else { self.pod }
    }

    /// Something that one of them waits to be answered.
    fn question(&self) -> Option<Value> {
        let mut all = self.children.into_iter().chain([self.pod]);
        all.find_map(|pod| self.hub.question(pod))
    }
}

/// Lets a Pod do all it has to do.
pub async fn wait_until_idle(hub: &Hub, pod: &str) -> Option<()> {
    let mut flushed = false;
    loop {
        let info = hub.is(pod, |info| info["state"] != "running").await?;
        let queue = info["queue"].clone();
        let queued = queue.as_array().is_some_and(|queue| !queue.is_empty());
        match info["state"].as_str() {
            Some("needs_you") => {
                // It may have been answered a moment ago.
                if let Some(approval) = hub.question(pod) {
                    let reply = hub.answer(&approval, json!({"verdict": "once"})).await?;
                    if reply["event"] == "error" {
                        // Somebody else holds what a fork of it asks for, too.
                        hub.answer(&approval, json!({"verdict": "deny"})).await?;
                    }
                }
                hub.is(pod, |info| info["state"] != "needs_you").await?;
            }
            Some("paused") => {
                hub.call(Some(pod), "resume", Value::Null).await?;
            }
            // The end of a run wakes the Pod for what waits; nothing else does after a start.
            Some("idle") if !flushed => {
                let mut events = hub.events(pod);
                let reply = hub.say(pod, &format!("@talk {pod}-end ."), false).await?;
                flushed = reply["event"] == "accepted";
                if flushed {
                    events.until("run_end").await?;
                }
            }
            Some("idle") if queued => {
                // The queue is told when its run has begun, or when it is over already.
                let began = |info: &Value| info["state"] == "running" || info["queue"] != queue;
                hub.is(pod, began).await?;
            }
            Some("idle") => {
                // What it has to say to its parent was said before it takes another order.
                hub.call(Some(pod), "seen", Value::Null).await?;
                return Some(());
            }
            _ => panic!("{info}"),
        }
    }
}
