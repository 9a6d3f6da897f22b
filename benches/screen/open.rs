//! A log of one gigabyte shows its last screen without being read.

use crate::figure::{Figure, Times, megabytes, millis};
use crate::home::Home;
use crate::log::{LAST, forget, lengthen};
use crate::process::{bytes_read, memory};
use crate::terminal::Terminal;
use std::fs::File;
use std::path::Path;

/// Entries of the log, and words of each long answer: together one gigabyte.
const ENTRIES: u64 = 900_000;
const WORDS: usize = 1_800;
/// How often it is opened.
const OPENINGS: usize = 5;
/// The most that may be read for it, in bytes.
const READ: u64 = 4 * 1024 * 1024;

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    home.new_pod("huge");
    home.say("huge", "hello");
    let segment = home.segment("huge");
    home.stop_host();
    lengthen(&segment, ENTRIES, WORDS);
    let size = std::fs::metadata(&segment).expect("the log").len();
    let (mut shown, mut ready, mut read) = (Times::default(), Times::default(), 0);
    let mut used = (0, 0);
    for _ in 0..OPENINGS {
        forget_all_of(&segment);
        ready.push(home.start_host());
        let terminal = Terminal::open(&home, &["--pod", "huge"]);
        shown.push(terminal.until("the last words show", |seen| seen.shows(LAST)));
        let (screen, host) = (terminal.pid(), home.host());
        read = read.max(bytes_read(screen) + bytes_read(host));
        used = (memory(screen).resident, memory(host).resident);
        drop(terminal);
        home.stop_host();
    }
    let log = format!("a log of {}", megabytes(size / 1024));
    vec![
        Figure::time(format!("{log}, not in memory, shows its end"), shown.median(), 300),
        Figure::seen(format!("{log}: host ready"), millis(ready.median())),
        Figure::held(
            format!("{log}: read for that, both processes"),
            megabytes(read / 1024),
            format!("under {}", megabytes(READ / 1024)),
            read < READ,
        ),
        Figure::memory(format!("{log}: memory of the screen"), used.0, 60),
        Figure::memory(format!("{log}: memory of the host"), used.1, 40),
    ]
}

fn forget_all_of(path: &Path) {
    forget(&File::open(path).expect("the log"));
}
