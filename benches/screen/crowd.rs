//! 50 Pods that stream 100 pieces a second each: what a key costs on a screen that shows one of them, and what 100
//! screens cost the host.

use crate::figure::Figure;
use crate::home::Home;
use crate::process::cpu;
use crate::terminal::Terminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use yoi::protocol::frame::encode_event;
use yoi::protocol::{Method, PodName};

const PODS: usize = 50;
/// Screens without a terminal: connections that watch and show the same Pod.
const SCREENS: usize = 100;
/// How long they watch.
const WATCHED: Duration = Duration::from_secs(5);

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    let names: Vec<String> = (0..PODS).map(|n| format!("pod-{n}")).collect();
    names.iter().for_each(|name| drop(home.new_pod(name)));
    let terminal = Terminal::open(&home, &["--pod", "pod-0"]);
    terminal.until("the first Pod shows", |seen| seen.shows("pod-0"));
    names.iter().for_each(|name| home.start(name, "pieces"));
    terminal.until("the answer streams", |seen| seen.shows("The quick brown fox"));
    let (screen, host) = (terminal.pid(), home.host());
    let (before, begun) = ((cpu(screen), cpu(host)), Instant::now());
    let times = terminal.typed();
    let passed = begun.elapsed();
    let share = |spent: Duration, passed: Duration| {
        format!("{:.1} % of one core", 100.0 * spent.as_secs_f64() / passed.as_secs_f64())
    };
    let what = format!("{PODS} Pods stream 100 pieces/s each");
    let mut figures = vec![
        Figure::time(format!("p99 of a key on screen while {what}"), times.percentile(99), 16),
        Figure::seen(format!("a key on screen while {what}"), times.spread()),
        Figure::seen(format!("screen while {what}"), share(cpu(screen) - before.0, passed)),
        Figure::seen(format!("host while {what}"), share(cpu(host) - before.1, passed)),
    ];
    drop(terminal);
    let (spent, events, bytes) = home.conversation(async |_, _| watched(&home, host).await);
    let many = format!("{SCREENS} screens of one Pod while {what}");
    let each_second = events / WATCHED.as_secs();
    let kib = bytes / 1024 / WATCHED.as_secs();
    figures.push(Figure::seen(format!("host, {many}"), share(spent, WATCHED)));
    figures.push(Figure::seen(format!("events sent, {many}"), format!("{each_second}/s")));
    figures.push(Figure::seen(format!("sent, {many}"), format!("{kib} KiB/s")));
    figures
}

/// The processor time of the host, the events that reach all screens, and the bytes of these.
async fn watched(home: &Home, host: u32) -> (Duration, u64, u64) {
    let pod = PodName::parse("pod-0").expect("a name");
    let mut screens = Vec::new();
    let came = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    for _ in 0..SCREENS {
        let found = yoi::client::find::connect(&home.data()).await.expect("a connection");
        let (client, mut events) = found.expect("a host runs");
        let pods = vec![pod.clone()];
        let show = Method::Show { pods: pods.clone(), follows: Some(pods) };
        // A host of before knows no such request.
        let _ = client.call(None, show).await;
        client.call(None, Method::Watch).await.expect("a subscription");
        let came = came.clone();
        screens.push(tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let line = encode_event(None, event.pod.as_ref(), event.seq, &event.event);
                came[0].fetch_add(1, Ordering::Relaxed);
                came[1].fetch_add(line.len() as u64, Ordering::Relaxed);
            }
            drop(client);
        }));
    }
    let count = |at: usize| came[at].load(Ordering::Relaxed);
    let now = || (cpu(host), count(0), count(1));
    let before = now();
    tokio::time::sleep(WATCHED).await;
    let after = now();
    screens.iter().for_each(tokio::task::JoinHandle::abort);
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}
