//! A key costs the same whatever the length of the transcript above it.

use crate::figure::{Figure, Times, median};
use crate::home::Home;
use crate::log::{LAST, lengthen};
use crate::process::memory;
use crate::terminal::Terminal;

/// Entries of the long transcript.
const ENTRIES: u64 = 100_000;
/// Entries of one that is a few screens long.
const FEW: u64 = 1_000;
/// Words of each long answer.
const WORDS: usize = 60;
/// Keys in each round.
const KEYS: usize = 500;
/// The figures are the median of so many rounds.
const ROUNDS: usize = 5;
/// Letters before they are deleted again.
const LINE: usize = 40;
/// Pages up before as many down.
const PAGES: usize = 50;

const BACKSPACE: &str = "\x7f";
const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";
const TOP: &str = "\x1b[1;5H";

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    for pod in ["long", "short", "empty"] {
        home.new_pod(pod);
    }
    for (pod, entries) in [("long", ENTRIES), ("short", FEW)] {
        home.say(pod, "hello");
        let segment = home.segment(pod);
        home.stop_host();
        lengthen(&segment, entries, WORDS);
        home.start_host();
    }
    let long = Terminal::open(&home, &["--pod", "long"]);
    let short = Terminal::open(&home, &["--pod", "short"]);
    let empty = Terminal::open(&home, &["--pod", "empty"]);
    long.until("the long transcript shows", |seen| seen.shows(LAST));
    short.until("the short transcript shows", |seen| seen.shows(LAST));
    empty.until("the dashboard shows", |seen| seen.shows("empty"));
    prepare(&[&long, &short, &empty]);
    let typed = rounds(|n| typed(&long, &empty, n));
    let scrolled = rounds(|n| scrolled(&long, &short, n));
    let (screen, host) = (memory(long.pid()), memory(home.host()));
    long.frame_after(TOP);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let top = memory(long.pid());
    vec![
        ratio(&format!("p99 of {KEYS} typed keys, {ENTRIES} entries to none"), &typed),
        Figure::seen("a typed key on screen, long transcript", spread(&typed, 0)),
        Figure::seen("a typed key on screen, no transcript", spread(&typed, 1)),
        ratio(&format!("p99 of {KEYS} pages scrolled, {ENTRIES} entries to {FEW}"), &scrolled),
        Figure::seen("a page scrolled, long transcript", spread(&scrolled, 0)),
        Figure::memory(format!("memory of the screen, {ENTRIES} entries"), screen.resident, 60),
        Figure::memory(format!("memory of the host, {ENTRIES} entries"), host.resident, 40),
        Figure::memory("memory of the screen, scrolled to the top", top.resident, 60),
    ]
}

/// The two sides of a comparison.
type Sides = [Times; 2];

fn rounds(round: impl Fn(usize) -> Sides) -> Vec<Sides> {
    (0..ROUNDS).map(round).collect()
}

/// How much longer the first side takes at its 99th percentile, in the middle of all rounds.
fn ratio(what: &str, rounds: &[Sides]) -> Figure {
    let ratios = rounds.iter().map(|[long, short]| {
        long.percentile(99).as_secs_f64() / short.percentile(99).as_secs_f64()
    });
    let ratio = median(ratios.collect());
    Figure::held(what, format!("{ratio:.2} x"), "within 1.2 x", ratio <= 1.2)
}

fn spread(rounds: &[Sides], side: usize) -> String {
    let mut all = Times::default();
    rounds.iter().for_each(|round| all.extend(&round[side]));
    all.spread()
}

/// The first keys meet cold caches on every side.
fn prepare(terminals: &[&Terminal]) {
    for terminal in terminals {
        for _ in 0..LINE {
            terminal.echo("w");
        }
        for _ in 0..LINE {
            terminal.echo(BACKSPACE);
        }
    }
}

fn typed(long: &Terminal, empty: &Terminal, round: usize) -> Sides {
    let key = |n: usize| if (n / LINE).is_multiple_of(2) { "x" } else { BACKSPACE };
    let sides = turn_by_turn(
        round,
        |n, side| {
            if side == 0 { long.echo(key(n)) } else { empty.echo(key(n)) }
        },
    );
    // What is left of the line goes.
    for terminal in [long, empty] {
        for _ in 0..KEYS % (2 * LINE) {
            terminal.echo(BACKSPACE);
        }
    }
    sides
}

fn scrolled(long: &Terminal, short: &Terminal, round: usize) -> Sides {
    let key = |n: usize| if (n / PAGES).is_multiple_of(2) { PAGE_UP } else { PAGE_DOWN };
    turn_by_turn(round, |n, side| {
        if side == 0 { long.frame_after(key(n)) } else { short.frame_after(key(n)) }
    })
}

/// Both sides in turn, and who comes first changes.
fn turn_by_turn(round: usize, mut press: impl FnMut(usize, usize) -> std::time::Duration) -> Sides {
    let mut sides = Sides::default();
    for n in 0..KEYS {
        let first = (n + round) % 2;
        for side in [first, 1 - first] {
            sides[side].push(press(n, side));
        }
    }
    sides
}
