//! Families of 100, 300 and 1,000 Pods: what creating, stopping and restoring all of them costs, and
//! how long a verb on another Pod waits meanwhile.

use crate::figure::{Figure, Times};
use crate::home::Home;
use std::time::{Duration, Instant};
use yoi::protocol::{Event, Method, PodName};

const SIZES: [usize; 3] = [100, 300, 1_000];
/// How much more one Pod of a large family may cost than one of a small family, in percent.
const MOST: u64 = 130;

/// What one family cost.
struct Cost {
    size: usize,
    new: Duration,
    spawn: Duration,
    stop: Duration,
    restore: Duration,
    /// Stopping another Pod while the family stops.
    beside: Duration,
}

pub fn measure() -> Vec<Figure> {
    let costs: Vec<Cost> = SIZES.into_iter().map(family).collect();
    let mut figures = Vec::new();
    if let Some(largest) = costs.last() {
        let size = largest.size;
        figures.push(Figure::time(format!("{size} `new`"), largest.new, 10_000));
        figures.push(Figure::seen(format!("{size} SpawnPods"), format!("{:?}", largest.spawn)));
        figures.push(Figure::time(format!("stop --tree of {size} Pods"), largest.stop, 2_000));
        figures.push(Figure::time(format!("restore --tree of {size}"), largest.restore, 2_000));
        figures.push(Figure::time("an unrelated stop meanwhile", largest.beside, 50));
    }
    for (what, of) in [
        ("new", (|cost| cost.new) as fn(&Cost) -> Duration),
        ("stop --tree", |cost| cost.stop),
        ("restore --tree", |cost| cost.restore),
    ] {
        figures.push(growth(what, &costs, of));
    }
    figures
}

/// The dearest Pod of all sizes against the one of the smallest family.
fn growth(what: &str, costs: &[Cost], of: fn(&Cost) -> Duration) -> Figure {
    let each = |cost: &Cost| of(cost).as_micros() as u64 / cost.size as u64;
    let all: Vec<u64> = costs.iter().map(each).collect();
    let first = all.first().copied().unwrap_or(1).max(1);
    let grown = all.iter().map(|cost| cost * 100 / first).max().unwrap_or(100);
    let shown = format!("{all:?} µs");
    let what = format!("`{what}` for each Pod of {SIZES:?}");
    Figure::held(what, shown, format!("at most {MOST} % of the first"), grown <= MOST)
}

fn family(size: usize) -> Cost {
    let mut home = Home::new();
    home.start_host();
    let new = time(|| (0..size).for_each(|n| drop(home.new_pod(&format!("alone-{n}")))));
    home.new_pod("root");
    let mut spawned = Times::default();
    let spawn =
        time(|| (1..size).for_each(|n| spawned.push(home.spawn("root", &format!("kid-{n}")))));
    let (root, other) = (name("root"), name("alone-0"));
    let (mut stop, mut beside) = (Duration::ZERO, Duration::ZERO);
    home.conversation(async |client, _| {
        let begun = Instant::now();
        let tree = async {
            let reply = client
                .call(
                    Some(&root),
                    Method::StopPods { tree: true, unless_busy: false, silent: false },
                )
                .await;
            let Ok(Event::PodsStopped { stopped }) = reply else { panic!("{reply:?}") };
            assert_eq!(stopped.len(), size);
            begun.elapsed()
        };
        let single = async {
            let begun = Instant::now();
            let reply = client
                .call(
                    Some(&other),
                    Method::StopPods { tree: false, unless_busy: false, silent: false },
                )
                .await;
            assert!(matches!(reply, Ok(Event::PodsStopped { .. })), "{reply:?}");
            begun.elapsed()
        };
        (stop, beside) = tokio::join!(tree, single);
    });
    let restore = time(|| {
        home.conversation(async |client, _| {
            let method = Method::RestorePods { tree: true, plan: false };
            let reply = client.call(Some(&root), method).await;
            let Ok(Event::Plan { steps, done: true }) = reply else { panic!("{reply:?}") };
            assert_eq!(steps.len(), size);
        });
    });
    Cost { size, new, spawn, stop, restore, beside }
}

fn time(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

fn name(text: &str) -> PodName {
    PodName::parse(text).expect("a name")
}
