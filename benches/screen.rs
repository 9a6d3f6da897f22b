//! The performance contract, measured on the real binary in a terminal of 120 by 40.
//!
//! `cargo bench --bench screen` measures everything and prints the table of the README; names
//! after `--` choose: `idle keys open startup stream pods family crowd many since palette size`. It fails when a limit is missed.
//! `YOI` may name another build of the program.
//! Times that are compared are taken in one run, turn by turn, so that whatever else the machine
//! does meets both.
#![forbid(unsafe_code)]

#[path = "screen/figure.rs"]
mod figure;
#[path = "screen/home.rs"]
mod home;
#[path = "screen/log.rs"]
mod log;
#[path = "screen/process.rs"]
mod process;
#[path = "screen/terminal.rs"]
mod terminal;

#[path = "screen/crowd.rs"]
mod crowd;
#[path = "screen/family.rs"]
mod family;
#[path = "screen/idle.rs"]
mod idle;
#[path = "screen/keys.rs"]
mod keys;
#[path = "screen/many.rs"]
mod many;
#[path = "screen/open.rs"]
mod open;
#[path = "screen/palette.rs"]
mod palette;
#[path = "screen/pods.rs"]
mod pods;
#[path = "screen/since.rs"]
mod since;
#[path = "screen/size.rs"]
mod size;
#[path = "screen/startup.rs"]
mod startup;
#[path = "screen/stream.rs"]
mod stream;

use figure::Figure;
use std::process::ExitCode;

/// Measures something and says what it found.
type Measure = fn() -> Vec<Figure>;

/// Every measurement: its name, and what it finds.
const MEASUREMENTS: [(&str, Measure); 12] = [
    ("startup", startup::measure),
    ("idle", idle::measure),
    ("keys", keys::measure),
    ("stream", stream::measure),
    ("open", open::measure),
    ("pods", pods::measure),
    ("family", family::measure),
    ("crowd", crowd::measure),
    ("many", many::measure),
    ("since", since::measure),
    ("palette", palette::measure),
    ("size", size::measure),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("nothing is measured here: cargo bench --bench screen");
        return ExitCode::SUCCESS;
    }
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = names.iter().find(|name| !MEASUREMENTS.iter().any(|m| m.0 == ***name)) {
        eprintln!("no measurement {unknown}; there are {}", MEASUREMENTS.map(|m| m.0).join(", "));
        return ExitCode::from(2);
    }
    let mut figures = Vec::new();
    for (name, measure) in MEASUREMENTS {
        if names.is_empty() || names.iter().any(|wanted| *wanted == name) {
            eprintln!("measuring {name}");
            figures.extend(measure());
        }
    }
    println!("{}", figure::table(&figures));
    if figures.iter().all(Figure::is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
