//! A host with many Pods that do nothing.

use crate::figure::{Figure, millis};
use crate::home::Home;
use crate::idle;
use crate::process::{memory, threads};
use crate::terminal::Terminal;
use std::time::Instant;

const PODS: usize = 200;
/// How often the list is asked for.
const LISTS: usize = 50;

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    let alone = memory(home.host());
    let begun = Instant::now();
    for n in 0..PODS {
        home.new_pod(&format!("pod-{n}"));
    }
    let each = begun.elapsed() / u32::try_from(PODS).expect("a small number");
    home.say("pod-0", "hello");
    let fresh = memory(home.host());
    home.stop_host();
    let ready = home.start_host();
    let list = home.lists(LISTS);
    let terminal = Terminal::open(&home, &["--pod", "pod-0"]);
    terminal.until("the answer shows", |seen| seen.shows("heard: hello"));
    let still = idle::watch(&home, &terminal);
    let host = memory(home.host());
    let every = |kib: u64| format!("{} KiB each", kib.saturating_sub(alone.own) / PODS as u64);
    vec![
        Figure::memory(format!("memory of the host, {PODS} idle Pods"), host.resident, 60),
        Figure::seen("memory of the host, no Pod", crate::figure::megabytes(alone.resident)),
        Figure::seen("memory of an idle Pod", every(host.own.max(fresh.own))),
        Figure::seen(format!("threads of the host, {PODS} Pods"), threads(home.host()).to_string()),
        Figure::count(format!("idle for 20 s with {PODS} Pods: frames"), still.frames, 0),
        Figure::count(format!("idle for 20 s with {PODS} Pods: switches"), still.switches, 2),
        Figure::seen("a Pod is created", millis(each)),
        Figure::seen(format!("host started with {PODS} Pods, ready"), millis(ready)),
        Figure::time(format!("list of {PODS} Pods"), list.percentile(99), 50),
    ]
}
