//! What 100 Pods did since the person left, over a gigabyte of logs: it is asked of the store, and no log is read for it.

use crate::figure::{Figure, Times, megabytes};
use crate::home::Home;
use crate::log::lengthen;
use crate::terminal::Terminal;
use std::time::{Duration, Instant};

const PODS: usize = 100;
/// Entries of each log, and words of each long answer: together one gigabyte.
const ENTRIES: u64 = 9_000;
const WORDS: usize = 1_800;
/// How often the page is opened.
const OPENINGS: usize = 9;

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    let names: Vec<String> = (0..PODS).map(|n| format!("pod-{n}")).collect();
    for name in &names {
        home.new_pod_beside(name);
        home.say(name, "hello");
    }
    let segments: Vec<_> = names.iter().map(|name| home.segment(name)).collect();
    home.stop_host();
    segments.iter().for_each(|segment| lengthen(segment, ENTRIES, WORDS));
    let size = segments.iter().map(|log| std::fs::metadata(log).expect("a log").len());
    let size = size.sum::<u64>();
    home.start_host();
    let terminal = Terminal::open(&home, &["--pod", "pod-0"]);
    terminal.until("the answer shows", |seen| seen.shows("heard: hello"));
    let mut times = Times::default();
    for _ in 0..OPENINGS {
        terminal.send(":since 8h");
        terminal.until("the line stands there", |seen| seen.shows(":since 8h"));
        let begun = Instant::now();
        terminal.send("\r");
        terminal.until("the page shows", |seen| seen.shows("100 finished"));
        times.push(begun.elapsed());
        // The line that was closed last keeps the first Esc for a moment.
        std::thread::sleep(Duration::from_secs(1));
        terminal.send("\x1b");
        terminal.until("the page is closed", |seen| !seen.shows("100 finished"));
    }
    let what = format!("*Since you left* of {PODS} Pods with {} of logs", megabytes(size / 1024));
    vec![Figure::time(what, times.percentile(99), 300)]
}
