//! What the crash points are passed in: everything one Pod can go through, and everything a family
//! can. Each waits for one thing to end before it begins the next, so that it passes every point as
//! often each time. `None` when the host died on the way.

use crate::bench::Bench;
use crate::hub::{Events, Hub};
use serde_json::{Value, json};
use std::path::Path;

/// A Pod that is in every scene.
pub const POD: &str = "alice";
/// Its child, and its peer.
const KID: &str = "kid";
const PEER: &str = "bob";
/// A child that never begins, and a Pod with the same past that does not stay.
const GHOST: &str = "ghost";
const FORK: &str = "carol";
/// Where the directory of the family is moved.
const MOVED: &str = "moved";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    Turns,
    Family,
}

impl Scene {
    pub const ALL: [Self; 2] = [Self::Turns, Self::Family];

    /// Who takes part, children before their parents.
    pub fn cast(self) -> &'static [&'static str] {
        match self {
            Self::Turns => &[POD],
            Self::Family => &[KID, POD, PEER],
        }
    }

    pub async fn play(self, bench: &Bench, hub: &Hub) -> Option<()> {
        match self {
            Self::Turns => turns(bench, hub).await,
            Self::Family => family(bench, hub).await,
        }
    }
}

/// Makes those of the cast that a crash kept from being there.
pub async fn complete(bench: &Bench, hub: &Hub, cast: &[&str]) -> Option<()> {
    for pod in cast.iter().rev().filter(|pod| **pod != KID) {
        if hub.info(pod).is_none() {
            bench.new_pod(hub, pod).await?;
        }
    }
    if cast.contains(&KID) && hub.info(KID).is_none() {
        let reply = a_kid(bench, hub, "@work k9 .").await?;
        assert_eq!(reply["event"], "spawned", "{reply}");
    }
    if bench.path(MOVED).is_dir() {
        follow(bench, hub).await?;
    }
    Some(())
}

async fn turns(bench: &Bench, hub: &Hub) -> Option<()> {
    bench.new_pod(hub, POD).await?;
    a_busy_turn(hub).await?;
    interruptions(hub).await?;
    event_wakes(hub).await?;
    compactions(hub).await?;
    going_back(hub).await?;
    let stopped = hub.call(Some(POD), "shutdown", Value::Null).await?;
    assert_eq!(stopped["event"], "accepted", "{stopped}");
    Some(())
}

async fn family(bench: &Bench, hub: &Hub) -> Option<()> {
    bench.new_pod(hub, POD).await?;
    bench.new_pod(hub, PEER).await?;
    a_child(bench, hub).await?;
    a_child_that_cannot_begin(bench, hub).await?;
    peers(hub).await?;
    leases(bench, hub).await?;
    a_question(hub, "q1", json!({"verdict": "tree"})).await?;
    a_question(hub, "q2", json!({"verdict": "deny", "reason": "not now"})).await?;
    a_question_withdrawn(hub).await?;
    scope_beyond(bench, hub).await?;
    all_stop_and_come_back(hub).await?;
    a_fork_and_its_end(hub).await?;
    std::fs::rename(bench.path(POD), bench.path(MOVED)).expect("a directory that can be moved");
    follow(bench, hub).await?;
    let mut events = hub.events(POD);
    hub.say(POD, "@work m10 .", false).await?;
    events.until("run_end").await?;
    quiet(hub).await
}

/// The family follows its directory, unless it is there already.
async fn follow(bench: &Bench, hub: &Hub) -> Option<()> {
    let to = bench.path(MOVED);
    let is_there = |pod: &str| hub.info(pod).is_some_and(|info| info["cwd"] == json!(to));
    if !is_there(POD) {
        let reply = hub.call(Some(POD), "relocate", json!({"cwd": to})).await?;
        assert_eq!(reply["event"], "relocated", "{reply}");
        assert_eq!(reply["data"]["pods"], json!([POD, KID]), "{reply}");
    }
    for pod in [POD, KID] {
        hub.is(pod, |info| info["workspace"] == json!(to)).await?;
        let writes =
            |rule: &Value| rule["target"].as_str().is_some_and(|t| Path::new(t).starts_with(&to));
        let scope = hub.info(pod)?["scope"].clone();
        assert!(scope.as_array().is_some_and(|rules| rules.iter().any(writes)), "{pod}: {scope}");
    }
    Some(())
}

/// A child does its task, and that wakes its parent.
async fn a_child(bench: &Bench, hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    let reply = a_kid(bench, hub, "@work k1 .").await?;
    assert_eq!(reply["event"], "spawned", "{reply}");
    events.until("run_end").await?;
    quiet(hub).await
}

async fn a_kid(bench: &Bench, hub: &Hub, task: &str) -> Option<Value> {
    let dir = bench.path(POD).join(KID);
    bench.room(&dir);
    hub.spawn(POD, KID, task, &dir).await
}

/// The family rests, and nothing is on its way from the child to its parent.
async fn quiet(hub: &Hub) -> Option<()> {
    for pod in [KID, POD] {
        hub.is(pod, |info| info["state"] == "idle").await?;
        hub.call(Some(pod), "seen", Value::Null).await?;
    }
    hub.is(POD, |info| info["state"] == "idle").await.map(drop)
}

/// Its first message is refused, and nothing is left of it.
async fn a_child_that_cannot_begin(bench: &Bench, hub: &Hub) -> Option<()> {
    let dir = bench.path(POD).join("lent");
    let refused = hub.spawn_keyless(POD, GHOST, &dir).await?;
    let why = refused["data"]["message"].as_str().unwrap_or_default();
    assert!(why.starts_with("could not start pod `ghost`"), "{refused}");
    assert_eq!(hub.info(GHOST), None);
    Some(())
}

async fn peers(hub: &Hub) -> Option<()> {
    let made = hub.peer(POD, PEER).await?;
    assert_eq!(made["event"], "peer_registered", "{made}");
    let ended = hub.unpeer(PEER, POD).await?;
    assert_eq!(ended["event"], "accepted", "{ended}");
    hub.peer(PEER, POD).await.map(drop)
}

/// The second loan stays.
async fn leases(bench: &Bench, hub: &Hub) -> Option<()> {
    let lent = bench.path(POD).join("lent");
    for _ in 0..2 {
        let reply = hub.lend(POD, PEER, &lent).await?;
        assert_eq!(reply["event"], "path_lent", "{reply}");
        let reply = hub.reclaim(POD, &lent).await?;
        assert_eq!(reply["event"], "reclaimed", "{reply}");
    }
    hub.lend(POD, PEER, &lent).await.map(drop)
}

/// The child asks, which its parent hears of, and a person answers.
async fn a_question(hub: &Hub, id: &str, verdict: Value) -> Option<()> {
    a_request(hub, &format!("@ask {id} ."), verdict).await
}

async fn a_request(hub: &Hub, text: &str, verdict: Value) -> Option<()> {
    let mut events = asked(hub, text).await?;
    let approval = hub.question(KID).expect("who needs somebody says for what");
    let reply = hub.answer(&approval, verdict).await?;
    assert_eq!(reply["event"], "accepted", "{reply}");
    events.until("run_end").await?;
    quiet(hub).await
}

/// The child gets more than it was lent, once by an answer and once by a rule; once it does not.
async fn scope_beyond(bench: &Bench, hub: &Hub) -> Option<()> {
    let reach = |id: &str, place: &str| {
        let dir = bench.path(place).join(id).join("out");
        std::fs::create_dir_all(&dir).expect("a new directory");
        (format!("@reach {id} {} .", dir.join("effects").display()), dir)
    };
    let (text, dir) = reach("r1", "beyond");
    a_request(hub, &text, json!({"verdict": "once"})).await?;
    assert!(dir.join("effects").exists(), "what was allowed is done");
    let (text, dir) = reach("r2", "beyond");
    a_request(hub, &text, json!({"verdict": "deny", "reason": "too far"})).await?;
    assert!(!dir.join("effects").exists(), "what was denied is not done");
    let (text, dir) = reach("r3", "above");
    let mut events = hub.events(POD);
    let reply = hub.say(KID, &text, false).await?;
    assert_eq!(reply["event"], "accepted", "{reply}");
    events.until("run_end").await?;
    assert!(dir.join("effects").exists(), "what a rule allows is done");
    quiet(hub).await
}

/// The child is paused while it waits: its question is taken back.
async fn a_question_withdrawn(hub: &Hub) -> Option<()> {
    let mut events = asked(hub, "@ask q3 .").await?;
    for method in ["pause", "resume"] {
        let reply = hub.call(Some(KID), method, Value::Null).await?;
        assert_eq!(reply["event"], "accepted", "{method}: {reply}");
    }
    events.until("run_end").await?;
    quiet(hub).await
}

/// The child waits for a person and its parent knows; what the parent does from then on.
async fn asked(hub: &Hub, text: &str) -> Option<Events> {
    let mut events = hub.events(POD);
    let reply = hub.say(KID, text, false).await?;
    assert_eq!(reply["event"], "accepted", "{reply}");
    hub.is(KID, |info| info["state"] == "needs_you").await?;
    events.until("run_end").await?;
    Some(events)
}

async fn all_stop_and_come_back(hub: &Hub) -> Option<()> {
    let stopped = hub.stop(POD, &[KID]).await?;
    assert_eq!(stopped["event"], "pods_stopped", "{stopped}");
    let back = hub.restore(POD, &[KID]).await?;
    assert_eq!(back["event"], "plan", "{back}");
    quiet(hub).await?;
    let mut events = hub.events(POD);
    hub.say(POD, "@talk m9 .", false).await?;
    events.until("run_end").await?;
    quiet(hub).await
}

/// A second Pod with the same past has a word, a peer and mail of its own, then it is deleted.
async fn a_fork_and_its_end(hub: &Hub) -> Option<()> {
    let made = hub.fork(POD, FORK).await?;
    assert_eq!(made["event"], "created", "{made}");
    hub.peer(PEER, FORK).await?;
    let mut events = hub.events(FORK);
    hub.say(FORK, "@talk f1 .", false).await?;
    events.until("run_end").await?;
    hub.notify(FORK, "f2").await?;
    events.until("run_end").await?;
    hub.is(FORK, |info| info["state"] == "idle").await?;
    hub.call(Some(FORK), "seen", Value::Null).await?;
    let stopped = hub.stop(FORK, &[]).await?;
    assert_eq!(stopped["event"], "pods_stopped", "{stopped}");
    let removed = hub.remove(FORK).await?;
    assert_eq!(removed["event"], "accepted", "{removed}");
    Some(())
}

async fn idle(hub: &Hub) -> Option<()> {
    let rests = |info: &Value| {
        info["state"] == "idle" && info["queue"].as_array().is_some_and(Vec::is_empty)
    };
    hub.is(POD, rests).await.map(drop)
}

async fn order(hub: &Hub, method: &str) -> Option<()> {
    let reply = hub.call(Some(POD), method, Value::Null).await?;
    assert_eq!(reply["event"], "accepted", "{method}: {reply}");
    Some(())
}

/// Tools, and what arrives meanwhile.
async fn a_busy_turn(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    hub.say(POD, "@work m1 .", false).await?;
    events.until("tool_result").await?;
    hub.notify(POD, "n1").await?;
    hub.say(POD, "@talk m2 .", true).await?;
    events.until("run_end").await?;
    events.until("run_end").await?;
    idle(hub).await
}

async fn interruptions(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    hub.say(POD, "@hold m3 .", false).await?;
    events.until("text_delta").await?;
    order(hub, "pause").await?;
    order(hub, "resume").await?;
    idle(hub).await?;
    let mut events = hub.events(POD);
    hub.say(POD, "@hold m4 .", false).await?;
    events.until("text_delta").await?;
    order(hub, "pause").await?;
    order(hub, "cancel").await?;
    idle(hub).await?;
    let mut events = hub.events(POD);
    hub.say(POD, "@hold m5 .", false).await?;
    events.until("text_delta").await?;
    order(hub, "cancel").await?;
    idle(hub).await
}

async fn event_wakes(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    hub.notify(POD, "n2").await?;
    events.until("run_end").await?;
    idle(hub).await
}

async fn compactions(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    order(hub, "compact").await?;
    events.until("compact_done").await?;
    idle(hub).await?;
    let mut events = hub.events(POD);
    hub.say(POD, "@full m6 .", false).await?;
    events.until("compact_done").await?;
    idle(hub).await
}

async fn going_back(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    hub.say(POD, "@talk m7 .", false).await?;
    events.until("run_end").await?;
    idle(hub).await?;
    let reply = hub.call(Some(POD), "list_rewind_targets", Value::Null).await?;
    let targets = reply["data"]["targets"].as_array().expect("targets");
    let target = targets.iter().find(|target| target["eligible"] == true).expect("a target");
    let params = json!({
        "target": target["id"], "expected_head_entries": target["expected_head_entries"],
    });
    let reply = hub.call(Some(POD), "rewind_to", params).await?;
    assert_eq!(reply["event"], "rewind_applied", "{reply}");
    idle(hub).await
}
