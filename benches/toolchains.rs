//! Toolchains in a Pod and outside, side by side: an untouched Rust crate, Node package, Python
//! project, Go module and git repository are built, tested and committed, ten times each.
//!
//! `cargo bench --bench toolchains` measures everything; names after `--` choose: `rust node python
//! go git`. It fails when a project takes more than 15 % longer in a Pod, or when a command there fails
//! or asks for anything. A project whose programs are not on `PATH` is left out and named. `YOI`
//! may name another build of the program.
#![forbid(unsafe_code)]

#[path = "toolchains/pod.rs"]
mod pod;
#[path = "toolchains/project.rs"]
mod project;

use pod::Place;
use project::{PROJECTS, Project};
use std::process::ExitCode;
use std::time::Duration;

/// How often each project is built, in a Pod and outside, turn by turn.
const RUNS: usize = 10;
/// How much longer a project may take in a Pod.
const LIMIT: f64 = 1.15;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("nothing is measured here: cargo bench --bench toolchains");
        return ExitCode::SUCCESS;
    }
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = names.iter().find(|name| !PROJECTS.iter().any(|p| p.name == ***name)) {
        eprintln!("no project {unknown}");
        return ExitCode::from(2);
    }
    let chosen = PROJECTS.iter().filter(|p| names.is_empty() || names.iter().any(|n| *n == p.name));
    println!("| | outside | in a Pod | |\n|---|---|---|---|");
    let mut met = true;
    for project in chosen {
        match project.missing() {
            Some(program) => println!("| {} | {program} is not installed | | |", project.name),
            None => met &= measure(project),
        }
    }
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Builds one project in turn outside and in a Pod, and prints the medians of its steps and of the
/// whole. Returns whether the whole keeps its limit.
fn measure(project: &'static Project) -> bool {
    eprintln!("measuring {}", project.name);
    let place = Place::of(project);
    // The first build outside fills the person's caches, as they are filled on their machine.
    place.outside();
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        outside.push(place.outside());
        inside.push(place.inside());
    }
    for (index, (step, _)) in project.steps.iter().enumerate() {
        let of = |runs: &[Vec<Duration>]| median(runs.iter().map(|run| run[index]).collect());
        row(&format!("{}: {step}", project.name), of(&outside), of(&inside), "");
    }
    let whole = |runs: &[Vec<Duration>]| median(runs.iter().map(|run| run.iter().sum()).collect());
    let (before, now) = (whole(&outside), whole(&inside));
    let met = now.as_secs_f64() <= before.as_secs_f64() * LIMIT;
    row(project.name, before, now, if met { "" } else { " **missed**" });
    met
}

fn row(what: &str, outside: Duration, inside: Duration, missed: &str) {
    let ratio = (inside.as_secs_f64() / outside.as_secs_f64() - 1.0) * 100.0;
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "| {what} | {:.0} ms | {:.0} ms | {ratio:+.0} %{missed} |",
        millis(outside),
        millis(inside)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    // With an even number the mean of the two in the middle.
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (low + high) / 2
}
