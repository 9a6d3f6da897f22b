//! The real program is killed: at every named point of what it does, and at random moments under
//! load. What clients were told, what tools did and what models were asked is written down outside
//! and held against what is there afterwards.
//!
//! Both take their time from the environment: `YOI_TORTURE_ROUNDS` is how often every point is
//! passed, `YOI_TORTURE_KILLS` how many random kills there are, `YOI_TORTURE_SEED` repeats one.

#[path = "torture/bench.rs"]
mod bench;
#[path = "torture/check.rs"]
mod check;
#[path = "torture/disk.rs"]
mod disk;
#[path = "torture/family.rs"]
mod family;
#[path = "torture/hub.rs"]
mod hub;
#[path = "torture/kills.rs"]
mod kills;
#[path = "shared/dice.rs"]
mod dice;
#[path = "torture/relations.rs"]
mod relations;
#[path = "torture/ledger.rs"]
mod ledger;
#[cfg(feature = "crash-points")]
#[path = "torture/points.rs"]
mod points;
#[path = "torture/provider.rs"]
mod provider;
#[cfg(feature = "crash-points")]
#[path = "torture/scene.rs"]
mod scene;
#[cfg(not(feature = "crash-points"))]
#[path = "torture/shipped.rs"]
mod shipped;
#[path = "torture/traces.rs"]
mod traces;

use dice::Dice;

/// A number from the environment, or another one.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
