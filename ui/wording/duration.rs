//! Durations: as a clock that ticks while something goes on, in words of one unit in a sentence, and with
//! tenths of a second for something short that has ended.

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
/// Beyond this, a clock shows minutes.
const FINE: u64 = 10 * MINUTE;

/// How long something has been going on: `12s`, `9m59`, `12m`, `1h05`, `3d`.
pub fn elapsed(millis: u64) -> String {
    let (seconds, minutes) = (millis / SECOND, millis / MINUTE);
    match minutes {
        0 => format!("{seconds}s"),
        1..10 => format!("{minutes}m{:02}", seconds % 60),
        10..60 => format!("{minutes}m"),
        60..1440 => format!("{}h{:02}", minutes / 60, minutes % 60),
        _ => format!("{}d", minutes / 1440),
    }
}

/// When [`elapsed`] since the time `since` changes next.
pub fn elapsed_changes(since: u64, now: u64) -> u64 {
    let passed = now.saturating_sub(since);
    let step = if passed < FINE { SECOND } else { MINUTE };
    since + (passed / step + 1) * step
}

/// A duration in a sentence, in its largest unit: `12 s`, `4 min`, `2 h`, `3 d`.
pub fn in_words(millis: u64) -> String {
    let minutes = millis / MINUTE;
    match minutes {
        0 => format!("{} s", millis / SECOND),
        1..60 => format!("{minutes} min"),
        60..1440 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

/// How long something took: `1.2s`, `12s`, `2m 05s`.
pub fn took(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{}s", millis / SECOND, millis % SECOND / 100),
        10_000..MINUTE => format!("{}s", millis / SECOND),
        _ => format!("{}m {:02}s", millis / MINUTE, millis / SECOND % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_gets_coarser_and_says_when_it_changes() {
        let of = |seconds: u64| elapsed(seconds * SECOND);
        let shown = [12, 599, 600, 3_900, 3 * 86_400].map(of);
        assert_eq!(shown, ["12s", "9m59", "10m", "1h05", "3d"]);
        assert_eq!(elapsed_changes(1_000, 1_000), 2_000);
        assert_eq!(elapsed_changes(1_000, 2_500), 3_000);
        assert_eq!(elapsed_changes(0, FINE), FINE + MINUTE);
    }

    #[test]
    fn a_sentence_names_one_unit() {
        let said = [12_000, 250_000, 7_200_000, 3 * 86_400_000].map(in_words);
        assert_eq!(said, ["12 s", "4 min", "2 h", "3 d"]);
    }

    #[test]
    fn a_short_duration_that_has_ended_shows_tenths() {
        let said = [1_250, 12_000, 125_000].map(took);
        assert_eq!(said, ["1.2s", "12s", "2m 05s"]);
    }
}
