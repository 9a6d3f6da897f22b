//! Messages to a Pod and to an MCP client while the host, the leaders of the mesh and the server of the client are
//! killed with SIGKILL. No acknowledged message is lost or enters the history twice, the client gets a message again
//! only with the same id, and the messages of one sender keep their order.
//!
//! `YOI_KILLS` is how many kills there are, `YOI_SEED` chooses them.

use crate::bench::{Bench, alive, eventually, signal};
use crate::dice::Dice;
use crate::mesh::{Running, socket, tail};
use serde_json::Value;
use serde_json::value::to_raw_value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use yoi::mesh::{Member, Options, Socket, Status, To, join};

#[path = "deliveries/client.rs"]
mod client;

/// Each sender and its addressee.
const SENDERS: [(&str, &str); 4] =
    [("s1", "a"), ("s2", "a"), ("s3", client::NAME), ("s4", client::NAME)];
/// Agents that lead the mesh in turns with the host and the client.
const LEADERS: [&str; 2] = ["h1", "h2"];
/// A script that answers every message at once.
const SETTINGS: &str = "[mesh]\njoin = ['a']\nwake = ['strangers']\nper_minute = 1000000\nwaiting = 100000\n\
    [limits]\nmailbox = 200000\n";
const SCRIPT: &str = "[[when]]\nany = true\ntext = \"ok\"\n";

/// The outcome of each message of one sender, by its number.
#[derive(Default)]
struct Outcomes {
    received: BTreeSet<u64>,
    denied: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

/// A sender that waits for each outcome before its next message.
async fn send_until(
    stop: Arc<AtomicBool>,
    progress: Arc<AtomicU64>,
    options: Options,
    to: &str,
) -> Outcomes {
    let name = options.name.clone();
    let (member, mut inbox) = join(options).await.expect("a mesh to join");
    let draining = tokio::spawn(async move { while inbox.next().await.is_some() {} });
    let mut outcomes = Outcomes::default();
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let kind = say(&member, to, &format!("{name} {number}")).await;
        let place = match kind {
            Status::Received => {
                progress.fetch_add(1, Ordering::SeqCst);
                &mut outcomes.received
            }
            Status::Denied => &mut outcomes.denied,
            Status::Timeout => &mut outcomes.unknown,
            Status::Queued | Status::Sent | Status::Refused => panic!("{kind:?}"),
        };
        place.insert(number);
    }
    member.leave().await;
    draining.await.expect("the inbox ends with its member");
    outcomes
}

async fn say(member: &Member, to: &str, text: &str) -> Status {
    let body = to_raw_value(text).expect("a text");
    member.send(To::One(to.into()), &body, None).await.status
}

/// The messages of agents, in the order of the Pod's history.
fn history(log: &[Value]) -> Vec<String> {
    let of_agents = log.iter().filter(|entry| entry["item"]["from"]["agent"].is_object());
    of_agents.filter_map(|entry| entry["item"]["message"].as_str()).map(str::to_owned).collect()
}

/// The numbers of a sender in the order in which its addressee has them.
fn numbers_of(sender: &str, texts: &[String]) -> Vec<u64> {
    let own = texts.iter().filter_map(|text| text.strip_prefix(sender)?.strip_prefix(' '));
    own.map(|number| number.parse().expect("a number")).collect()
}

/// Kills the host, and starts another one that goes on with the run.
fn kill_host(bench: &Bench) {
    let pid = bench.host_pid().expect("a host in the background");
    signal(pid, "KILL");
    eventually("the host is gone", || !alive(pid));
    // Starts a host. A refusal is fine here: the Pod may be live already, or have no run to resume.
    bench.yoi(&["restore", "a"]);
    bench.yoi(&["resume", "a"]);
}

fn numbers_from(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The processes beside the host.
struct Others<'b> {
    bench: &'b Bench,
    leaders: [Option<Running>; 2],
    client: client::Client,
    /// How often the host, a leader and the server of the client were killed.
    killed: [u64; 3],
}

impl<'b> Others<'b> {
    fn start(bench: &'b Bench) -> Self {
        let leaders = LEADERS.map(|name| Some(tail(bench, name)));
        Self { bench, leaders, client: client::Client::start(bench), killed: [0; 3] }
    }

    fn kill_one(&mut self, dice: &mut Dice) {
        let victim = dice.below(6) / 2;
        match victim {
            0 => kill_host(self.bench),
            1 => {
                let at = usize::from(dice.below(2) == 0);
                drop(self.leaders[at].take());
                self.leaders[at] = Some(tail(self.bench, LEADERS[at]));
            }
            _ => self.client.kill(),
        }
        self.killed[usize::try_from(victim).expect("a small number")] += 1;
    }
}

#[test]
fn killed_hosts_leaders_and_clients_lose_no_acknowledged_message_and_repeat_none() {
    let (kills, seed) = (numbers_from("YOI_KILLS", 6), numbers_from("YOI_SEED", 1));
    let bench = Bench::new();
    bench.settings(SETTINGS);
    bench.play(SCRIPT);
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let mut others = Others::start(&bench);
    bench.yoi(&["send", "a", "hello"]);
    let stop = Arc::new(AtomicBool::new(false));
    // How many messages each addressee received.
    let progress = BTreeMap::from(["a", client::NAME].map(|to| (to, Arc::new(AtomicU64::new(0)))));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let senders = SENDERS.map(|(name, to)| {
        let path = socket(&bench);
        let socket = Socket { audit: path.with_file_name("audit"), path, admits: |_| true };
        let options = Options { socket, name: name.into(), leads: false, confirms: false };
        runtime.spawn(send_until(stop.clone(), progress[to].clone(), options, to))
    });
    let mut dice = Dice::new(seed);
    for kill in 0..kills {
        let more = 1 + dice.below(40);
        for (to, received) in &progress {
            let before = received.load(Ordering::SeqCst);
            eventually(&format!("{to} receives {more} messages after kill {kill}"), || {
                received.load(Ordering::SeqCst) >= before + more
            });
        }
        others.kill_one(&mut dice);
    }
    stop.store(true, Ordering::SeqCst);
    let outcomes = senders.map(|sender| {
        let ended = async { tokio::time::timeout(Duration::from_secs(30), sender).await };
        runtime.block_on(ended).expect("a sender ends").expect("a sender")
    });
    let (given, killed) = (others.client.end(), others.killed);
    bench.yoi(&["resume", "a"]);
    bench.yoi(&["send", "a", "the last word"]);
    let missing = |of: &str, texts: &[String]| {
        let own = SENDERS.iter().zip(&outcomes).filter(|((_, to), _)| *to == of);
        own.map(|((sender, _), outcomes)| {
            let known: BTreeSet<u64> = numbers_of(sender, texts).into_iter().collect();
            outcomes.received.difference(&known).count()
        })
        .sum::<usize>()
    };
    assert_eq!(missing(client::NAME, &given.order), 0, "the client was not given what it received");
    eventually("what was acknowledged is in the history", || {
        missing("a", &history(&bench.log("a"))) == 0
    });
    let entered = history(&bench.log("a"));
    for ((sender, to), outcomes) in SENDERS.iter().zip(&outcomes) {
        let texts = if *to == client::NAME { &given.order } else { &entered };
        let numbers = numbers_of(sender, texts);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{sender}: twice or out of order: {numbers:?}");
        let denied: Vec<&u64> = numbers.iter().filter(|n| outcomes.denied.contains(n)).collect();
        assert!(denied.is_empty(), "{sender}: denied and delivered: {denied:?}");
        let (received, denied, unknown) =
            (outcomes.received.len(), outcomes.denied.len(), outcomes.unknown.len());
        println!("{sender} to {to}: {received} received, {denied} denied, {unknown} unknown");
    }
    let [hosts, leaders, clients] = killed;
    println!("killed: {hosts} hosts, {leaders} other leaders, {clients} servers of the client");
    println!("the client: {} servers gave messages, {} repeats", given.lives, given.repeats);
}
