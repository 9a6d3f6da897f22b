//! Messages to a Pod while its host and the leaders of the mesh are killed with SIGKILL: none that was acknowledged
//! is lost, none enters the history twice, and those of one sender stay in their order.
//!
//! `YOI_KILLS` is how many kills there are, `YOI_SEED` chooses them.

use crate::bench::{Bench, alive, eventually, signal};
use crate::dice::Dice;
use crate::mesh::{Running, socket, tail};
use serde_json::Value;
use serde_json::value::to_raw_value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use yoi::mesh::{Member, Options, Socket, Status, To, join};

const SENDERS: [&str; 2] = ["s1", "s2"];
/// The Pods wait for these messages whatever they are; a script that answers at once.
const SETTINGS: &str = "[mesh]\njoin = ['a']\nwake = ['strangers']\nper_minute = 1000000\nwaiting = 100000\n\
    [limits]\nmailbox = 200000\n";
const SCRIPT: &str = "[[when]]\nany = true\ntext = \"ok\"\n";

/// What became of the messages of one sender, by their numbers.
#[derive(Default)]
struct Outcomes {
    received: BTreeSet<u64>,
    denied: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

/// A sender that waits for each outcome before its next message.
async fn send_until(stop: Arc<AtomicBool>, progress: Arc<AtomicU64>, options: Options) -> Outcomes {
    let name = options.name.clone();
    let (member, mut inbox) = join(options).await.expect("a mesh to join");
    let draining = tokio::spawn(async move { while inbox.next().await.is_some() {} });
    let mut outcomes = Outcomes::default();
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let kind = say(&member, &format!("{name} {number}")).await;
        let place = match kind {
            Status::Received => {
                progress.fetch_add(1, Ordering::SeqCst);
                &mut outcomes.received
            }
            Status::Denied => &mut outcomes.denied,
            Status::Timeout => &mut outcomes.unknown,
            Status::Sent | Status::Refused => panic!("{kind:?}"),
        };
        place.insert(number);
    }
    member.leave().await;
    draining.await.expect("the inbox ends with its member");
    outcomes
}

async fn say(member: &Member, text: &str) -> Status {
    let body = to_raw_value(text).expect("a text");
    member.send(To::One("a".into()), &body, None).await.status
}

/// The numbers of a sender in the order in which the history of the Pod has them.
fn entered(log: &[Value], sender: &str) -> Vec<u64> {
    let of_agents = log.iter().filter(|entry| entry["item"]["from"]["agent"]["name"] == sender);
    let text = of_agents.filter_map(|entry| entry["item"]["message"].as_str());
    text.map(|text| {
        let number = text.strip_prefix(sender).expect("the name that the leader knows");
        number.trim().parse().expect("a number")
    })
    .collect()
}

/// Kills the host, and starts another one that goes on with the run.
fn kill_host(bench: &Bench) {
    let pid = bench.host_pid().expect("a host in the background");
    signal(pid, "KILL");
    eventually("the host is gone", || !alive(pid));
    // Starts a host; that the Pod is live already, or has nothing to resume, is no failure here.
    bench.yoi(&["restore", "a"]);
    bench.yoi(&["resume", "a"]);
}

fn numbers_from(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn killed_hosts_and_leaders_lose_no_acknowledged_message_and_enter_none_twice() {
    let (kills, seed) = (numbers_from("YOI_KILLS", 5), numbers_from("YOI_SEED", 1));
    let bench = Bench::new();
    bench.settings(SETTINGS);
    bench.play(SCRIPT);
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let holders: [Running; 2] = ["h1", "h2"].map(|name| tail(&bench, name));
    bench.yoi(&["send", "a", "hello"]);
    let (stop, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let senders = SENDERS.map(|name| {
        let path = socket(&bench);
        let socket = Socket { audit: path.with_file_name("audit"), path, admits: |_| true };
        let options = Options { socket, name: name.into(), leads: false, confirms: false };
        runtime.spawn(send_until(stop.clone(), progress.clone(), options))
    });
    let mut dice = Dice::new(seed);
    let mut holders = holders.map(Some);
    for kill in 0..kills {
        let before = progress.load(Ordering::SeqCst);
        let more = 1 + dice.below(40);
        eventually(&format!("{more} messages are received after kill {kill}"), || {
            progress.load(Ordering::SeqCst) >= before + more
        });
        match dice.below(4) {
            0 => drop(holders[0].take()),
            1 => drop(holders[1].take()),
            _ => kill_host(&bench),
        }
        for (holder, name) in holders.iter_mut().zip(["h1", "h2"]) {
            holder.get_or_insert_with(|| tail(&bench, name));
        }
    }
    stop.store(true, Ordering::SeqCst);
    let outcomes = senders.map(|sender| {
        let ended = async { tokio::time::timeout(Duration::from_secs(30), sender).await };
        runtime.block_on(ended).expect("a sender ends").expect("a sender")
    });
    let taken = |log: &[Value]| {
        let each = SENDERS.iter().zip(&outcomes);
        each.map(|(sender, outcomes)| {
            let entered: BTreeSet<u64> = entered(log, sender).into_iter().collect();
            outcomes.received.difference(&entered).count()
        })
        .sum::<usize>()
    };
    bench.yoi(&["resume", "a"]);
    bench.yoi(&["send", "a", "the last word"]);
    eventually("what was acknowledged is in the history", || taken(&bench.log("a")) == 0);
    let log = bench.log("a");
    for (sender, outcomes) in SENDERS.iter().zip(&outcomes) {
        let numbers = entered(&log, sender);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{sender}: twice or out of order: {numbers:?}");
        let denied: Vec<&u64> = numbers.iter().filter(|n| outcomes.denied.contains(n)).collect();
        assert!(denied.is_empty(), "{sender}: denied and delivered: {denied:?}");
        let (received, denied, unknown) =
            (outcomes.received.len(), outcomes.denied.len(), outcomes.unknown.len());
        println!(
            "{sender}: {received} received, {denied} denied, {unknown} unknown; {kills} kills"
        );
    }
}
