//! The age of a Pod's state. A Pod that runs or needs a person shows the time elapsed, which ticks; that of any
//! other Pod is said by the minute.

use crate::wording::duration::{elapsed, elapsed_changes};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use yoi::protocol::{PodInfo, State};

const MINUTE: u64 = 60_000;

/// The age of a Pod's state, at most 6 columns wide; empty for an unknown state.
pub fn age(info: &PodInfo, now: u64) -> String {
    match ticks(info.state) {
        true => elapsed(now.saturating_sub(info.since)),
        false => by_minute(info, now),
    }
}

/// When [`age`] changes next; `None` if it does not change without an event.
pub fn changes_at(info: &PodInfo, now: u64) -> Option<u64> {
    ticks(info.state).then(|| elapsed_changes(info.since, now))
}

fn ticks(state: State) -> bool {
    matches!(state, State::Running | State::NeedsYou)
}

/// The time since a Pod's state began, by the minute, at most 3 columns wide, as [`ago`] writes it. Empty for an unknown
/// state.
pub fn by_minute(info: &PodInfo, now: u64) -> String {
    match info.state {
        State::Unknown => String::new(),
        _ => ago(now.saturating_sub(info.since)),
    }
}

/// How long ago something was, by the minute, at most 3 columns wide: `now`, `4m`, `7h`, `2d`, then weeks and years.
pub fn ago(passed: u64) -> String {
    let minutes = passed / MINUTE;
    let days = minutes / 1440;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        _ if days < 100 => format!("{days}d"),
        _ if days < 365 => format!("{}w", days / 7),
        _ => format!("{}y", days / 365),
    }
}

/// When [`by_minute`] changes next while a Pod works or waits. The age of a Pod that rests is drawn with the next frame:
/// it makes none.
pub fn by_minute_changes_at(info: &PodInfo, now: u64) -> Option<u64> {
    let passed = now.saturating_sub(info.since) / MINUTE;
    ticks(info.state).then(|| info.since + (passed + 1) * MINUTE)
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
    fn an_age_by_the_minute_has_one_unit_and_changes_by_itself_only_while_a_pod_works() {
        let since = |minutes: u64| {
            let state = State::Running;
            let since = NOON - minutes * MINUTE;
            by_minute(&PodInfo { since, ..crate::screen::app::tests::pod("alice", state) }, NOON)
        };
        let shown = [0, 1, 59, 60, 1_439, 1_440, 144_000, 3_000_000].map(since);
        assert_eq!(shown, ["now", "1m", "59m", "1h", "23h", "1d", "14w", "5y"]);
        let mut info =
            PodInfo { since: NOON, ..crate::screen::app::tests::pod("alice", State::Running) };
        assert_eq!(by_minute_changes_at(&info, NOON + 30_000), Some(NOON + MINUTE));
        assert_eq!(by_minute_changes_at(&info, NOON + MINUTE), Some(NOON + 2 * MINUTE));
        info.state = State::Idle;
        assert_eq!(by_minute_changes_at(&info, NOON), None);
    }

    #[test]
    fn a_pod_at_rest_has_an_age_and_no_time_of_day() {
        let of = |state| {
            let since = NOON - 90 * MINUTE;
            age(&PodInfo { since, ..crate::screen::app::tests::pod("alice", state) }, NOON)
        };
        assert_eq!([State::Failed, State::Running, State::Unknown].map(of), ["1h", "1h30", ""]);
    }

    #[test]
    fn only_a_running_or_waiting_pod_ticks() {
        let mut info = crate::screen::app::tests::pod("alice", State::Running);
        info.since = 1_000;
        assert_eq!(changes_at(&info, 1_500), Some(2_000));
        assert_eq!(changes_at(&info, 2_000), Some(3_000));
        info.state = State::Paused;
        assert_eq!(changes_at(&info, 1_500), None);
    }
}
