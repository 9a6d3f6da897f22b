//! Random kills under load: several Pods that stream, call tools, get news and queue messages.

use crate::bench::{Bench, Host};
use crate::check::{self, Expected, nothing_wrong};
use crate::hub::{Hub, within};
use crate::{Dice, number};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const PODS: [&str; 4] = ["ann", "bob", "cleo", "dan"];
/// How many kills one home lives through before everything is brought to its end.
const LIVES: u64 = 10;
/// A kill comes after at most so many events.
const EVENTS: u64 = 600;
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
    told: usize,
    effects: usize,
    requests: usize,
    cut_off: usize,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.told += other.told;
        self.effects += other.effects;
        self.requests += other.requests;
        self.cut_off += other.cut_off;
    }
}

/// One home from its first start to a quiet end.
async fn home(dice: &mut Dice, lives: u64) -> Sums {
    let bench = Bench::new(Duration::from_millis(1)).await;
    let mut cut_off = 0;
    let mut expected = BTreeMap::new();
    for life in 0..lives {
        let (host, hub) = start(&bench, &expected).await;
        for pod in PODS {
            if hub.info(pod).is_none() {
                bench.new_pod(&hub, pod).await.expect("a host that lives");
            }
        }
        live_and_die(&hub, host, dice, life).await;
        expected = check::expected(&bench);
        cut_off += expected.values().filter(|pod| **pod == Expected::CutOff).count();
    }
    let (host, hub) = start(&bench, &expected).await;
    for pod in PODS {
        settle(&hub, pod).await.expect("a host that lives");
    }
    nothing_wrong("after everything came to its end", &check::unfinished(&bench));
    host.kill().await;
    let told = bench.told.lock().expect("no test panics with it");
    Sums {
        acknowledged: told.accepted.len(),
        told: told.entries.len(),
        effects: bench.effects().lines().count(),
        requests: bench.provider.requests(),
        cut_off,
    }
}

/// Starts a host and looks whether everything is as it was left. A start sends nothing to a model.
pub async fn start(bench: &Bench, expected: &BTreeMap<String, Expected>) -> (Host, Hub) {
    let asked = bench.provider.requests();
    let host = bench.serve().await;
    let hub = bench.connect(&host).await.expect("a host that lives");
    let mut wrong = check::alive(&hub, expected);
    wrong.extend(check::contradictions(bench));
    if bench.provider.requests() != asked {
        wrong.push("a start sent something to the model".to_owned());
    }
    nothing_wrong("after a start", &wrong);
    (host, hub)
}

/// Puts the host under load and kills it.
async fn live_and_die(hub: &Hub, host: Host, dice: &mut Dice, life: u64) {
    let mut events = hub.events("*");
    let drivers: Vec<_> = PODS
        .into_iter()
        .map(|pod| tokio::spawn(drive(hub.clone(), pod, life, dice.below(u64::MAX))))
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

/// Gives a Pod something to do, again and again, until the host is gone.
async fn drive(hub: Hub, pod: &'static str, life: u64, seed: u64) {
    let mut dice = Dice::new(seed);
    for n in 0.. {
        let busy = |info: &Value| {
            info["state"] == "running" && info["queue"].as_array().is_some_and(|q| q.len() > 2)
        };
        if hub.is(pod, |info| !busy(info)).await.is_none()
            || act(&hub, pod, &format!("{pod}-{life}-{n}"), &mut dice).await.is_none()
        {
            return;
        }
    }
}

/// One order; whether it is carried out depends on what the Pod does right now.
async fn act(hub: &Hub, pod: &str, id: &str, dice: &mut Dice) -> Option<Value> {
    let paused = hub.info(pod).is_some_and(|info| info["state"] == "paused");
    match dice.below(100) {
        0..60 if paused => hub.call(Some(pod), "resume", Value::Null).await,
        0..40 => hub.say(pod, &format!("@work {id} ."), true).await,
        40..55 => hub.say(pod, &format!("@talk {id} ."), true).await,
        55..58 => hub.say(pod, &format!("@full {id} ."), true).await,
        58..78 => hub.news(pod, id).await,
        78..85 => hub.call(Some(pod), "pause", Value::Null).await,
        85..89 => hub.call(Some(pod), "cancel", Value::Null).await,
        89..92 => hub.call(Some(pod), "compact", Value::Null).await,
        _ => {
            let input = json!([{"kind": "text", "content": format!("@talk {id} .")}]);
            hub.note(pod, "steer", json!({"input": input}), id).await
        }
    }
}

/// Lets a Pod do all it has to do.
pub async fn settle(hub: &Hub, pod: &str) -> Option<()> {
    let mut flushed = false;
    loop {
        let info = hub.is(pod, |info| info["state"] != "running").await?;
        let queue = info["queue"].clone();
        let queued = queue.as_array().is_some_and(|queue| !queue.is_empty());
        match info["state"].as_str() {
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
            Some("needs_you") => {
                hub.allow(pod).await?;
                hub.is(pod, |info| info["state"] != "needs_you").await?;
            }
            Some("idle") => return Some(()),
            _ => panic!("{info}"),
        }
    }
}
