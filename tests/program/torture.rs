//! The host is killed at random moments while it works, again and again. Nothing that was
//! acknowledged may be lost or doubled, no tool may run twice, nothing may be sent to a model by a
//! start. `YOI_TORTURE` says how often (default 12), `YOI_SEED` with which random numbers.

use crate::bench::{Bench, Host, eventually};
use crate::oracle::{Screen, Told, contradictions, repeated};
use crate::provider::Provider;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PODS: [&str; 2] = ["alice", "bob"];
/// The longest a host lives before it is killed, in milliseconds.
const LIFE: u64 = 160;

/// A small generator of random numbers: the seed makes a failure repeatable.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A bench with its Pods, and all that clients were told there.
struct Rack {
    bench: Bench,
    provider: Provider,
    told: Arc<Mutex<Told>>,
    sent: u64,
}

impl Rack {
    fn new() -> Self {
        let (bench, provider) = (Bench::new(), Provider::start());
        let config = bench.path("home/config");
        std::fs::create_dir_all(&config).expect("a writable home");
        std::fs::write(config.join("config.toml"), provider.settings()).expect("a new file");
        for pod in PODS {
            let dir = bench.ws().join(pod);
            std::fs::create_dir_all(dir.join(".git")).expect("a workspace of its own");
            let dir = dir.display().to_string();
            let verb = format!("new {pod} --cwd {dir} --model fake/m");
            let done = bench.yoi(&["-c", &verb]);
            assert_eq!(done.code, Some(0), "{done:?}");
        }
        Self { bench, provider, told: Arc::default(), sent: 0 }
    }

    fn screen(&self) -> Option<Screen> {
        Screen::open(&self.bench.socket()?, self.told.clone())
    }

    /// Starts a host, gives both Pods work, and kills it after a while.
    fn live_and_die(&mut self, life: Duration) {
        let host = self.bench.serve();
        let first = self.sent;
        self.sent += 40;
        let workers: Vec<_> = PODS
            .into_iter()
            .filter_map(|pod| {
                let (screen, told) = (self.screen()?, self.told.clone());
                Some(std::thread::spawn(move || {
                    work(&screen, pod, first, &told);
                    screen.until_closed();
                }))
            })
            .collect();
        std::thread::sleep(life);
        drop(host);
        for worker in workers {
            worker.join().expect("a client");
        }
    }

    /// Holds what is on disk against what was told. A start sends nothing to a model by itself.
    fn check(&self) {
        let before = self.provider.asked().len();
        let host = self.bench.serve();
        self.check_with(&host);
        assert_eq!(self.provider.asked().len(), before, "a start sent something to the model");
    }

    fn check_with(&self, _serving: &Host) {
        let told = self.told.lock().expect("no thread panics with it");
        let mut wrong = Vec::new();
        for pod in PODS {
            let info = self.bench.pod(pod).expect("the pod");
            assert_ne!(info["state"], "stopped", "a live pod is live again: {info}");
            assert_ne!(info["state"], "running", "nothing runs by itself: {info}");
            let log = self.bench.log(pod);
            let queue: Vec<String> = info["queue"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|row| row["id"].as_str().map(str::to_owned))
                .collect();
            let problems = contradictions(pod, &log, &queue, &told);
            let ledger = std::fs::read_to_string(self.bench.ws().join(pod).join("ledger"));
            let repeats = repeated(&ledger.unwrap_or_default(), &log);
            wrong.extend(problems.into_iter().chain(repeats).map(|w| format!("{pod}: {w}")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Lets everything come to its end, and checks once more.
    fn rest(&self) {
        let host = self.bench.serve();
        let screen = self.screen().expect("a host that serves");
        for pod in PODS {
            // A start runs nothing, not even what is queued; a message does.
            let input = json!([{"kind": "text", "content": "is anything left?"}]);
            let order = json!({"method": "run", "params": {"input": input, "queue": true}});
            screen.ask(Some(pod), &order).expect("a reply");
            eventually("the pod has done all its work", || {
                let info = self.bench.pod(pod).expect("the pod");
                if info["state"] == "paused" {
                    screen.ask(Some(pod), &json!({"method": "resume"}));
                }
                info["state"] == "idle" && info["queue"].as_array().is_some_and(Vec::is_empty)
            });
        }
        self.check_with(&host);
        let told = self.told.lock().expect("no thread panics with it");
        assert!(!told.accepted.is_empty(), "nothing was ever acknowledged");
    }
}

/// Goes on with what was cut off, then sends one job after the other until the host is gone.
fn work(screen: &Screen, pod: &str, first: u64, told: &Mutex<Told>) {
    // Refused when nothing was cut off.
    if screen.ask(Some(pod), &json!({"method": "resume"})).is_none() {
        return;
    }
    for n in first..first + 40 {
        let text = format!("job {pod}-{n}");
        let input = json!([{"kind": "text", "content": text}]);
        let order = json!({"method": "run", "params": {"input": input, "queue": true}});
        let Some(reply) = screen.ask(Some(pod), &order) else { return };
        if reply["event"] == "accepted" {
            let mut told = told.lock().expect("no thread panics with it");
            told.accepted.insert(text, reply["data"].clone());
        }
    }
}

#[test]
fn a_host_killed_at_random_moments_keeps_every_promise() {
    let seed = number("YOI_SEED", u64::from(std::process::id()) | 1);
    println!("YOI_SEED={seed}");
    let mut dice = Dice(seed);
    let mut rack = Rack::new();
    for round in 0..number("YOI_TORTURE", 12) {
        let life = Duration::from_millis(dice.below(LIFE));
        println!("round {round}: killed after {life:?}");
        rack.live_and_die(life);
        rack.check();
    }
    rack.rest();
    let conversations: Vec<Value> = rack.provider.asked();
    println!("{} requests", conversations.len());
}
