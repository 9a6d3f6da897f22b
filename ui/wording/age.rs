//! The age of a Pod's state. A Pod that runs or needs a person shows the time elapsed, which ticks; any
//! other Pod shows since when it has been in its state.

use crate::wording::duration::{elapsed, elapsed_changes};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use yoi::protocol::{PodInfo, State};

/// The age of a Pod's state, at most 6 columns wide; empty for an unknown state.
pub fn age(info: &PodInfo, now: u64, zone: &TimeZone) -> String {
    if info.state == State::Unknown {
        String::new()
    } else if ticks(info.state) {
        elapsed(now.saturating_sub(info.since))
    } else {
        clock(info.since, now, zone)
    }
}

/// When [`age`] changes next; `None` if it does not change without an event.
pub fn changes_at(info: &PodInfo, now: u64) -> Option<u64> {
    ticks(info.state).then(|| elapsed_changes(info.since, now))
}

fn ticks(state: State) -> bool {
    matches!(state, State::Running | State::NeedsYou)
}

/// A moment as people read it: the time of day, or the day when that was another one.
pub fn clock(at: u64, now: u64, zone: &TimeZone) -> String {
    let local = |millis: u64| {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_zoned(zone.clone())
    };
    let (at, now) = (local(at), local(now));
    let format = match (at.year() == now.year(), at.date() == now.date()) {
        (_, true) => "%H:%M",
        (true, false) => "%b %d",
        (false, false) => "%Y",
    };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_793_534_400_000; // 2026-11-01 12:00 UTC

    #[test]
    fn the_clock_names_the_day_when_it_was_another() {
        let of = |at| clock(at, NOON, &TimeZone::UTC);
        assert_eq!(of(NOON - 60_000), "11:59");
        assert_eq!(of(NOON - 24 * 3_600_000), "Oct 31");
        assert_eq!(of(NOON - 400 * 24 * 3_600_000), "2025");
    }

    #[test]
    fn only_a_running_or_waiting_pod_ticks() {
        let mut info = crate::app::tests::pod("alice", State::Running);
        info.since = 1_000;
        assert_eq!(changes_at(&info, 1_500), Some(2_000));
        assert_eq!(changes_at(&info, 2_000), Some(3_000));
        info.state = State::Paused;
        assert_eq!(changes_at(&info, 1_500), None);
    }
}
