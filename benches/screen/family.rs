//! Families of many Pods, 20 of which stream: what the tree shows, and what it costs.

use crate::figure::{Figure, Times};
use crate::home::Home;
use crate::process::{cpu, memory};
use crate::terminal::Terminal;
use std::time::{Duration, Instant};

/// 200 Pods, and 1,000.
const FAMILIES: [Shape; 2] =
    [Shape { roots: 12, children: 15, alone: 8 }, Shape { roots: 60, children: 15, alone: 40 }];
/// How many of them stream 20 pieces a second.
const STREAMING: usize = 20;
/// How often the list is asked for.
const LISTS: usize = 100;
/// How often a child is made that cannot start.
const SPAWNS: usize = 200;
/// Rows that the cursor of the tree goes down.
const STEPS: usize = 100;

/// Roots with children, children of each, and roots alone.
#[derive(Clone, Copy)]
struct Shape {
    roots: usize,
    children: usize,
    alone: usize,
}

pub fn measure() -> Vec<Figure> {
    FAMILIES.into_iter().flat_map(measured).collect()
}

fn measured(shape: Shape) -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    let (names, spawned) = grow(&home, shape);
    let mut refused = Times::default();
    (0..SPAWNS).for_each(|_| refused.push(home.spawn_in_vain("root-0", "vain")));
    let all = names.len();
    let terminal = Terminal::open(&home, &["--pod", "root-0"]);
    terminal.until("the first root shows", |seen| seen.shows("root-0"));
    // Into the tree, all workspaces, and back to the composer.
    terminal.send("\x18t");
    terminal.send("w");
    terminal.until("the family shows", |seen| seen.shows("kid-1-0"));
    terminal.send("\x1b");
    // The children are at work already.
    for name in names.iter().filter(|name| !name.starts_with("kid")).take(STREAMING) {
        home.start(name, "tick");
    }
    terminal.until("its tree is in order", |seen| in_order(&seen.text(), &names));
    let list = home.lists(LISTS);
    let (screen, host) = (terminal.pid(), home.host());
    let before = (cpu(screen), cpu(host), Instant::now());
    let times = terminal.typed();
    let passed = before.2.elapsed();
    let after = (cpu(screen), cpu(host));
    let share = |now: Duration, before: Duration| {
        format!("{:.1} % of one core", 100.0 * (now - before).as_secs_f64() / passed.as_secs_f64())
    };
    terminal.send("\x18t");
    terminal.until("the tree has the keys", |seen| !seen.shows("Enter sends"));
    let mut steps = Times::default();
    (0..STEPS).for_each(|_| steps.push(terminal.frame_after("j")));
    let ordered = u64::from(!terminal.seen(|seen| in_order(&seen.text(), &names)));
    let list_limit = if all > 200 { 250 } else { 50 };
    let what = format!("{all} Pods, {STREAMING} streaming 20 pieces/s");
    vec![
        Figure::count(format!("rows of the tree out of order, {what}"), ordered, 0),
        Figure::time("p99 of SpawnPod", spawned.percentile(99), 1_000),
        Figure::time(
            format!("p99 of {SPAWNS} SpawnPods that fail and are undone"),
            refused.percentile(99),
            1_000,
        ),
        Figure::time(format!("p99 of ListPods, {what}"), list.percentile(99), list_limit),
        Figure::time(format!("p99 of a key on screen, {what}"), times.percentile(99), 16),
        Figure::seen(format!("a key on screen, {what}"), times.spread()),
        Figure::time(format!("p99 of a step in the tree, {what}"), steps.percentile(99), 16),
        Figure::seen(format!("a step in the tree, {what}"), steps.spread()),
        Figure::memory(
            format!("memory of the host, {what}"),
            memory(host).resident,
            (60 * all / 200) as u64,
        ),
        Figure::seen(format!("host, {what}"), share(after.1, before.1)),
        Figure::seen(format!("screen, {what}"), share(after.0, before.0)),
    ]
}

/// The names in the order in which the tree shows them, and how long each child took.
fn grow(home: &Home, shape: Shape) -> (Vec<String>, Times) {
    let (mut names, mut spawned) = (Vec::new(), Times::default());
    for root in 0..shape.roots {
        let name = format!("root-{root}");
        home.new_pod(&name);
        names.push(name.clone());
        for child in 0..shape.children {
            let kid = format!("kid-{root}-{child}");
            spawned.push(home.spawn_at_work(&name, &kid));
            names.push(kid);
        }
    }
    for alone in 0..shape.alone {
        let name = format!("alone-{alone}");
        home.new_pod(&name);
        names.push(name);
    }
    (names, spawned)
}

/// Whether the rows that show these Pods show them in this order.
fn in_order(text: &str, names: &[String]) -> bool {
    let word = |line: &str| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.find_map(|word| names.iter().position(|name| name == word))
    };
    // Children that have ended are one row. The tree stands left of the rule, and its last row names the workspace of the selected Pod
    // and counts the rows out of view.
    let is_row = |line: &&str| {
        line.contains('│') && !line.contains(['↑', '↓']) && !line.contains("workspace")
    };
    let tree = text.lines().filter(is_row);
    let rows: Vec<usize> =
        tree.filter_map(|line| word(&line.chars().take(30).collect::<String>())).collect();
    rows.len() > 8 && rows.windows(2).all(|pair| pair[0] < pair[1])
}
