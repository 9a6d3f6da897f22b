//! Every crash point of what a Pod goes through.

use crate::bench::Bench;
use crate::check::{self, Expected, nothing_wrong};
use crate::hub::Hub;
use crate::kills::{settle, start};
use crate::number;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use yoi::crash::POINTS;

const POD: &str = "alice";
/// The point that only a second start passes.
const AT_START: &str = "log-closed";
/// How many rounds are under way at once.
const AT_ONCE: usize = 4;

async fn bench() -> Bench {
    Bench::new(Duration::from_micros(200)).await
}

/// Everything a Pod can go through; `None` when the host died on the way.
async fn scene(bench: &Bench, hub: &Hub) -> Option<()> {
    bench.new_pod(hub, POD).await?;
    a_busy_turn(hub).await?;
    asking(hub).await?;
    interruptions(hub).await?;
    news_wakes(hub).await?;
    compactions(hub).await?;
    going_back(hub).await?;
    let stopped = hub.call(Some(POD), "shutdown", Value::Null).await?;
    assert_eq!(stopped["event"], "accepted", "{stopped}");
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
    hub.news(POD, "n1").await?;
    hub.say(POD, "@talk m2 .", true).await?;
    events.until("run_end").await?;
    events.until("run_end").await?;
    idle(hub).await
}

/// A call that a person allows, and one that is paused while it waits.
async fn asking(hub: &Hub) -> Option<()> {
    let waits = |info: &Value| info["state"] == "needs_you";
    let mut events = hub.events(POD);
    hub.say(POD, "@ask q1 .", false).await?;
    hub.is(POD, waits).await?;
    hub.allow(POD).await?;
    events.until("run_end").await?;
    idle(hub).await?;
    hub.say(POD, "@ask q2 .", false).await?;
    hub.is(POD, waits).await?;
    order(hub, "pause").await?;
    order(hub, "resume").await?;
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

async fn news_wakes(hub: &Hub) -> Option<()> {
    let mut events = hub.events(POD);
    hub.news(POD, "n2").await?;
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

/// Starts a host that dies where it is told to, and takes it through the scene.
async fn die_at(bench: &Bench, point: &str, nth: usize) {
    let env = [("YOI_CRASH_AT", format!("{point}:{nth}"))];
    let mut host = bench.try_serve(&env).await.expect("a host that serves");
    if let Some(hub) = bench.connect(&host).await {
        let end = scene(bench, &hub).await;
        assert!(end.is_none() || !host.lives(), "{point}:{nth} was never passed");
        hub.until_closed().await;
    }
    assert!(host.died().await, "{point}:{nth}: the host ended in another way");
}

/// The Pod goes on after a crash, whatever is left of it, and everything comes to its end.
async fn go_on(bench: &Bench, when: &str) {
    bench.provider.release();
    let expected = check::expected(bench);
    let (host, hub) = start(bench, &expected).await;
    match expected.get(POD) {
        None => drop(bench.new_pod(&hub, POD).await.expect("a host that lives")),
        Some(Expected::Stopped) => {
            let reply = hub.call(None, "restore_pod", json!({"name": POD})).await;
            let reply = reply.expect("a host that lives");
            assert_eq!(reply["event"], "pod_restored", "{when}: {reply}");
        }
        Some(_) => {}
    }
    settle(&hub, POD).await.expect("a host that lives");
    nothing_wrong(when, &check::unfinished(bench));
    host.kill().await;
    // What came to its end is as quiet after one more start.
    let (host, hub) = start(bench, &BTreeMap::from([(POD.to_owned(), Expected::Idle)])).await;
    drop(hub);
    host.kill().await;
}

/// How often each point is passed when nothing goes wrong.
async fn passings() -> BTreeMap<String, usize> {
    let bench = bench().await;
    let trace = bench.path("trace");
    let env = [("YOI_CRASH_TRACE", trace.display().to_string())];
    let host = bench.try_serve(&env).await.expect("a host that serves");
    let hub = bench.connect(&host).await.expect("a host that lives");
    scene(&bench, &hub).await.expect("a host that lives");
    host.kill().await;
    counted(&trace)
}

fn counted(trace: &Path) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for point in std::fs::read_to_string(trace).expect("a trace").lines() {
        *times.entry(point.to_owned()).or_insert(0) += 1;
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_at_any_point_of_a_turn_loses_and_repeats_nothing() {
    let passings = passings().await;
    for point in POINTS.iter().filter(|point| **point != AT_START) {
        assert!(passings.contains_key(*point), "nothing in the scene passes {point}");
    }
    let rounds = number("YOI_TORTURE_ROUNDS", 2);
    let mut running = tokio::task::JoinSet::new();
    let mut names = BTreeMap::new();
    for round in 0..rounds {
        for (point, times) in &passings {
            if running.len() == AT_ONCE {
                let ended = running.join_next_with_id().await.expect("one is there");
                without_fault(ended, &names);
            }
            let nth = 1 + usize::try_from(round).expect("a small number") % times;
            let (point, name) = (point.clone(), format!("{point}:{nth}"));
            let round = running.spawn(async move {
                let bench = bench().await;
                die_at(&bench, &point, nth).await;
                go_on(&bench, &format!("{point}:{nth}")).await;
            });
            names.insert(round.id(), name);
        }
    }
    while let Some(ended) = running.join_next_with_id().await {
        without_fault(ended, &names);
    }
    println!("{} points, {rounds} rounds: {passings:?}", passings.len());
}

fn without_fault(
    ended: Result<(tokio::task::Id, ()), tokio::task::JoinError>,
    names: &BTreeMap<tokio::task::Id, String>,
) {
    if let Err(error) = ended {
        panic!("{:?}: {error}", names.get(&error.id()));
    }
}

/// A Pod whose answer was cut off in the middle, and the text that had arrived.
async fn cut_in_the_middle(bench: &Bench) -> String {
    let host = bench.serve().await;
    let hub = bench.connect(&host).await.expect("a host that lives");
    bench.new_pod(&hub, POD).await.expect("a host that lives");
    let mut events = hub.events(POD);
    hub.say(POD, "@hold m1 .", false).await.expect("a host that lives");
    let mut shown = String::new();
    while !shown.ends_with("thought") {
        let delta = events.until("text_delta").await.expect("a host that lives");
        shown += delta["data"]["text"].as_str().expect("text");
    }
    // It is journaled soon after it is shown, and nothing tells of that.
    let journaled = || bench.files(".open").iter().any(|file| journaled(file) == shown);
    let begun = std::time::Instant::now();
    while !journaled() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the shown text is never journaled");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.kill().await;
    shown
}

/// The text of the block that is being streamed.
fn journaled(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let pieces = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    pieces.filter_map(|piece| Some(piece["text"].as_str()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_while_it_closes_a_cut_run_closes_it_once() {
    for _ in 0..number("YOI_TORTURE_ROUNDS", 2) {
        let bench = bench().await;
        let shown = cut_in_the_middle(&bench).await;
        let env = [("YOI_CRASH_AT", AT_START.to_owned())];
        let died = bench.try_serve(&env).await.err().expect("the host dies while it starts");
        assert!(died.contains("wait_status(9)"), "{died}");
        go_on(&bench, AT_START).await;
        let logs: Vec<String> =
            bench.files(".jsonl").iter().filter_map(|f| std::fs::read_to_string(f).ok()).collect();
        let log = logs.concat();
        assert_eq!(log.matches(&shown).count(), 1, "the cut answer is kept once");
        assert_eq!(log.matches("yoi.cut").count(), 1, "the run is cut off once");
    }
}
