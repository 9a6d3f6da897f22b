//! Every crash point of what a Pod, and what a family goes through.

use crate::bench::Bench;
use crate::check::{self, Expected, nothing_wrong};
use crate::kills::{start, wait_until_idle};
use crate::number;
use crate::scene::{POD, Scene, complete};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use yoi::crash::POINTS;

/// What only a start with something on disk passes.
const AT_START: [&str; 4] = ["log-closed", "unfinished-removed", "news-caught-up", "pod-back"];
/// How many rounds are under way at once.
const AT_ONCE: usize = 4;

async fn bench() -> Bench {
    Bench::new(Duration::from_micros(200)).await
}

/// Starts a host that dies where it is told to, and takes it through the scene.
async fn die_at(bench: &Bench, scene: Scene, point: &str, nth: usize) {
    let env = [("YOI_CRASH_AT", format!("{point}:{nth}"))];
    let mut host = bench.try_serve(&env).await.expect("a host that serves");
    if let Some(hub) = bench.connect(&host).await {
        let end = scene.play(bench, &hub).await;
        assert!(end.is_none() || !host.lives(), "{point}:{nth} was never passed");
        hub.until_closed().await;
    }
    assert!(host.died().await, "{point}:{nth}: the host ended in another way");
}

/// All go on after a crash, whatever is left of them, and everything comes to its end.
async fn go_on(bench: &Bench, cast: &[&str], when: &str) {
    bench.no_process_left().await;
    bench.provider.release();
    let expected = check::expected(bench);
    let (host, hub) = start(bench, &expected).await;
    let others = expected.keys().map(String::as_str).filter(|pod| !cast.contains(pod));
    let all: Vec<&str> = cast.iter().copied().chain(others).collect();
    for pod in all.iter().filter(|pod| expected.get(**pod) == Some(&Expected::Stopped)) {
        let reply = hub.restore(pod, &[]).await.expect("a host that lives");
        assert_eq!(reply["event"], "plan", "{when}: {reply}");
    }
    complete(bench, &hub, cast).await.expect("a host that lives");
    for pod in &all {
        wait_until_idle(&hub, pod).await.expect("a host that lives");
    }
    nothing_wrong(when, &check::unfinished(bench));
    host.kill().await;
    bench.no_process_left().await;
    // What came to its end is as quiet after one more start.
    let idle = all.iter().map(|pod| ((*pod).to_owned(), Expected::Idle)).collect();
    let (host, hub) = start(bench, &idle).await;
    drop(hub);
    host.kill().await;
}

/// How often a scene passes each point when nothing goes wrong.
async fn passings(scene: Scene) -> BTreeMap<String, usize> {
    let bench = bench().await;
    let trace = bench.path("trace");
    let env = [("YOI_CRASH_TRACE", trace.display().to_string())];
    let host = bench.try_serve(&env).await.expect("a host that serves");
    let hub = bench.connect(&host).await.expect("a host that lives");
    scene.play(&bench, &hub).await.expect("a host that lives");
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

/// A death of the host.
#[derive(Clone, Debug)]
struct Death {
    scene: Scene,
    point: String,
    nth: usize,
}

/// Every point in each round, in the scenes that pass it by turns.
fn deaths(passings: &BTreeMap<Scene, BTreeMap<String, usize>>, rounds: usize) -> Vec<Death> {
    let mut deaths = Vec::new();
    for round in 0..rounds {
        for point in POINTS.iter().filter(|point| !AT_START.contains(point)) {
            let of = |(scene, times): (&Scene, &BTreeMap<String, usize>)| {
                Some((*scene, *times.get(*point)?))
            };
            let scenes: Vec<(Scene, usize)> = passings.iter().filter_map(of).collect();
            assert!(!scenes.is_empty(), "no scene passes {point}");
            let (scene, times) = scenes[round % scenes.len()];
            // The middle first: what one scene has in common with the other comes early.
            let nth = 1 + (times / 2 * (scenes.len() - 1) + round / scenes.len()) % times;
            deaths.push(Death { scene, point: (*point).to_owned(), nth });
        }
    }
    deaths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_at_any_point_loses_and_repeats_nothing() {
    let mut all = BTreeMap::new();
    for scene in Scene::ALL {
        all.insert(scene, passings(scene).await);
    }
    let rounds = usize::try_from(number("YOI_TORTURE_ROUNDS", 2)).expect("a small number");
    let deaths = deaths(&all, rounds);
    let only = std::env::var("YOI_TORTURE_POINT").unwrap_or_default();
    let mut running = tokio::task::JoinSet::new();
    let mut names = BTreeMap::new();
    for death in deaths.into_iter().filter(|death| death.point.contains(&only)) {
        if running.len() == AT_ONCE {
            let ended = running.join_next_with_id().await.expect("one is there");
            without_fault(ended, &names);
        }
        let name = format!("{death:?}");
        let round = running.spawn(async move {
            let bench = bench().await;
            let Death { scene, point, nth } = &death;
            die_at(&bench, *scene, point, *nth).await;
            go_on(&bench, scene.cast(), &format!("{death:?}")).await;
        });
        names.insert(round.id(), name);
    }
    while let Some(ended) = running.join_next_with_id().await {
        without_fault(ended, &names);
    }
    println!("{} points, {rounds} rounds: {all:?}", POINTS.len());
}

#[test]
fn every_point_in_the_source_is_listed_and_every_listed_point_is_there() {
    let mut found = BTreeSet::new();
    points_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let listed: BTreeSet<String> = POINTS.iter().map(ToString::to_string).collect();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), POINTS.len(), "a point is listed twice");
}

fn points_in(dir: &Path, found: &mut BTreeSet<String>) {
    for path in
        std::fs::read_dir(dir).expect("the source").map(|entry| entry.expect("a file").path())
    {
        if path.is_dir() {
            points_in(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let uses = text.split("crash_point!(\"").skip(1);
        found.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
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

/// Starts a host that dies before it serves.
async fn die_at_start(bench: &Bench, point: &str) {
    let env = [("YOI_CRASH_AT", point.to_owned())];
    let died = bench.try_serve(&env).await.err().expect("the host dies while it starts");
    assert!(died.contains("wait_status(9)"), "{point}: {died}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_again_while_it_brings_a_family_back_loses_and_repeats_nothing() {
    let deaths = [
        ("spawn-stored", "pod-back"),
        ("run-ended", "news-caught-up"),
        ("run-ended", "pod-back"),
        ("ask-committed", "log-closed"),
        ("ask-stored", "pod-back"),
        ("answer-stored", "log-closed"),
        ("stop-stored", "news-caught-up"),
        ("spawn-stored", "unfinished-removed"),
        ("spawn-stored", "session-deleted"),
        ("spawn-refused", "unfinished-removed"),
        ("unspawn-stored", "session-deleted"),
        ("fork-copied", "session-deleted"),
        ("fork-stored", "pod-back"),
        ("remove-stored", "session-deleted"),
        ("extend-stored", "log-closed"),
        ("extend-stored", "pod-back"),
    ];
    for (first, then) in deaths {
        let (bench, scene) = (bench().await, Scene::Family);
        die_at(&bench, scene, first, 1).await;
        die_at_start(&bench, then).await;
        go_on(&bench, scene.cast(), &format!("{first}, then {then}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_while_it_closes_a_cut_run_closes_it_once() {
    for _ in 0..number("YOI_TORTURE_ROUNDS", 2) {
        let bench = bench().await;
        let shown = cut_in_the_middle(&bench).await;
        die_at_start(&bench, "log-closed").await;
        go_on(&bench, &[POD], "log-closed").await;
        let logs: Vec<String> =
            bench.files(".jsonl").iter().filter_map(|f| std::fs::read_to_string(f).ok()).collect();
        let log = logs.concat();
        assert_eq!(log.matches(&shown).count(), 1, "the cut answer is kept once");
        assert_eq!(log.matches("yoi.cut").count(), 1, "the run is cut off once");
    }
}
