//! Damaged lines, for tests of the code that reads lines. `YOI_FUZZ` is the number of seconds that such a test takes;
//! the default is half a second.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::time::{Duration, Instant};

/// No more bytes than this are changed in one line.
const MOST: usize = 4;

/// One of these lines with a few bytes changed and perhaps a part cut out, or up to `noise` random bytes.
pub fn line(lines: Vec<String>, noise: usize) -> impl Strategy<Value = Vec<u8>> {
    let cut = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let damage = (any::<prop::sample::Index>(), any::<u8>());
    let near =
        (prop::sample::select(lines), prop::collection::vec(damage, 0..MOST), cut, any::<bool>());
    let near = near.prop_map(|(line, damages, (from, to), cuts)| {
        let mut line = line.into_bytes();
        for (at, byte) in damages {
            let at = at.index(line.len());
            line[at] = byte;
        }
        if cuts {
            let (from, to) = (from.index(line.len()), to.index(line.len()));
            line.drain(from.min(to)..from.max(to));
        }
        line
    });
    prop_oneof![8 => near, 1 => prop::collection::vec(any::<u8>(), 0..noise)]
}

/// Random values, for as long as the test takes.
pub fn values<S: Strategy>(strategy: S) -> impl Iterator<Item = S::Value> {
    let seconds = std::env::var("YOI_FUZZ").ok().and_then(|seconds| seconds.parse().ok());
    let until = Instant::now() + seconds.map_or(Duration::from_millis(500), Duration::from_secs);
    let mut runner = TestRunner::default();
    std::iter::from_fn(move || {
        (Instant::now() < until).then(|| strategy.new_tree(&mut runner).expect("a value").current())
    })
}
