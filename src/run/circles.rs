//! Notices a run that repeats a failing or denied call, by comparing calls and outputs, without a model.

use crate::config::settings::Watch;
use crate::protocol::{CircleKind, Circling, now_ms};
use crate::run::batch::{Call, label};
use crate::run::{Run, RunEvent};
use crate::tools::{Output, succeeded};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// The most failing calls that are remembered; at the limit all are forgotten.
const MAX_CALLS: usize = 1000;
/// So many other calls in a row end what is shown: the run is about something else.
const OTHER_CALLS: u32 = 10;
/// What stands behind the number of a duration, or in one word with it.
const UNITS: [&str; 12] =
    ["ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "h"];

/// The failing calls of a run, by a hash of tool and arguments.
#[derive(Debug, Default)]
pub(super) struct Circles {
    failures: HashMap<u64, Failures>,
    /// The call that is shown, and how many others ended since.
    shown: Option<(u64, u32)>,
}

/// How many times in a row a call failed in the same way.
#[derive(Debug)]
struct Failures {
    ending: Ending,
    times: u32,
    since: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded,
    /// With the hash of its output.
    Failed(u64),
    /// A rule or the person did not let it start.
    Denied,
}

impl Ending {
    pub(super) fn of(call: &Call, output: &Output) -> Self {
        let failed = output.is_error || (call.name == "Bash" && !succeeded(&output.summary));
        match failed {
            true => Self::failed(&output.summary, output.content.as_deref()),
            false => Self::Succeeded,
        }
    }

    pub(super) fn failed(summary: &str, content: Option<&str>) -> Self {
        Self::Failed(output_hash(summary, content))
    }
}

/// What the end of a call changes about what is shown.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Unchanged,
    Show(Circling),
    Clear,
}

impl Circles {
    fn record(&mut self, call: &Call, ending: Ending, watch: &Watch, now: u64) -> Change {
        let key = hash(&(&call.name, &call.arguments));
        if ending == Ending::Succeeded {
            self.failures.remove(&key);
            return self.clear(key);
        }
        if self.failures.len() >= MAX_CALLS && !self.failures.contains_key(&key) {
            self.failures.clear();
        }
        let new = Failures { ending, times: 0, since: now };
        let failures = self.failures.entry(key).or_insert(new);
        if failures.ending != ending {
            *failures = Failures { ending, times: 0, since: now };
        }
        failures.times += 1;
        let (kind, threshold) = match ending {
            Ending::Denied => (CircleKind::Denied, watch.same_requests),
            _ => (CircleKind::Failure, watch.same_failures),
        };
        if threshold == 0 || failures.times < threshold {
            return self.clear(key);
        }
        let call = label(&call.name, &call.arguments);
        let circling = Circling { kind, times: failures.times, call, since: failures.since };
        self.shown = Some((key, 0));
        Change::Show(circling)
    }

    /// Ends what is shown where this call did not fail as before, or is one of many others.
    fn clear(&mut self, key: u64) -> Change {
        let Some((shown, others)) = &mut self.shown else { return Change::Unchanged };
        *others += 1;
        if *shown != key && *others < OTHER_CALLS {
            return Change::Unchanged;
        }
        self.shown = None;
        Change::Clear
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A hash of what a call said, without what differs each time: durations, times of day, addresses, numbers of
/// processes and ports, temporary names.
fn output_hash(summary: &str, content: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut words =
        summary.split_whitespace().chain(content.unwrap_or_default().split_whitespace()).peekable();
    while let Some(word) = words.next() {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let is_unit = |next: &&str| UNITS.contains(&next.trim_end_matches([',', '.', ';', ')']));
        if is_number && words.next_if(is_unit).is_some() || is_fleeting(word) {
            continue;
        }
        word.hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether a word differs each time although the same thing happens.
fn is_fleeting(word: &str) -> bool {
    let core = word.trim_matches(|c: char| !c.is_alphanumeric());
    let unit = core.trim_start_matches(|c: char| c.is_ascii_digit() || ".:,".contains(c));
    let number = &core[..core.len() - unit.len()];
    let is_duration = !number.is_empty() && UNITS.contains(&unit);
    let is_clock = unit.is_empty() && number.contains(':');
    let is_address = word.contains("0x") || word.contains("/tmp");
    is_duration || is_clock || is_address || has_long_number(word)
}

/// Whether four or more digits in a row stand behind no letter, as in `pid 28042` and not in `E0308`.
fn has_long_number(word: &str) -> bool {
    let (mut digits, mut behind_letter, mut last) = (0, false, ' ');
    for c in word.chars() {
        match c.is_ascii_digit() {
            true if digits == 0 => (digits, behind_letter) = (1, last.is_alphabetic()),
            true => digits += 1,
            false => digits = 0,
        }
        if digits >= 4 && !behind_letter {
            return true;
        }
        last = c;
    }
    false
}

impl Run {
    /// Updates what is shown of repeated failures after a call has ended.
    pub(super) async fn watch_for_circles(&mut self, call: &Call, ending: Ending) {
        let circling = match self.circles.record(call, ending, &self.setup.watch, now_ms()) {
            Change::Unchanged => return,
            Change::Show(circling) => Some(Box::new(circling)),
            Change::Clear => None,
        };
        self.send(RunEvent::Circling(circling)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown after each of these calls, as kind and number.
    fn shown(calls: &[(&str, &str, Ending)]) -> Vec<Option<(CircleKind, u32)>> {
        let (mut circles, mut now) = (Circles::default(), None);
        let watch = Watch::default();
        let each = calls.iter().map(|(name, arguments, ending)| {
            let (name, arguments) = ((*name).to_owned(), (*arguments).to_owned());
            let call = Call { id: "c".into(), name, arguments };
            match circles.record(&call, *ending, &watch, 7) {
                Change::Unchanged => {}
                Change::Show(circling) => now = Some((circling.kind, circling.times)),
                Change::Clear => now = None,
            }
            now
        });
        each.collect()
    }

    fn fails(output: &str) -> Ending {
        Ending::failed("Exit 101 after 1.0 s", Some(output))
    }

    const OK: Ending = Ending::Succeeded;

    #[test]
    fn the_same_failure_of_the_same_call_is_shown_from_the_fifth_on_until_it_ends_otherwise() {
        let mut calls = [("Edit", "1", OK), ("Bash", "test", fails("no reply"))].repeat(6);
        calls.extend([("Bash", "test", fails("another")), ("Bash", "test", OK)]);
        let shown = shown(&calls);
        assert_eq!(shown[..9], [None; 9]);
        assert_eq!(shown[9], Some((CircleKind::Failure, 5)));
        assert_eq!(shown[10..12], [Some((CircleKind::Failure, 5)), Some((CircleKind::Failure, 6))]);
        assert_eq!(shown[12..], [None; 2]);
    }

    #[test]
    fn many_other_calls_end_what_is_shown() {
        let mut calls = vec![("Bash", "test", fails("no reply")); 5];
        let other = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        calls.extend(other.map(|path| ("Read", path, OK)));
        let shown = shown(&calls);
        assert_eq!(shown[13], Some((CircleKind::Failure, 5)));
        assert_eq!(shown[14], None);
    }

    #[test]
    fn a_call_that_is_denied_is_shown_from_the_third_time_on_whatever_the_reason() {
        let calls = [("Bash", "curl x", Ending::Denied); 3];
        assert_eq!(shown(&calls), [None, None, Some((CircleKind::Denied, 3))]);
    }

    #[test]
    fn failures_are_the_same_whatever_time_they_took_and_differ_by_what_failed() {
        let same = |one: &str, other: &str| fails(one) == fails(other);
        for (one, other) in [
            ("finished in 0.53s", "finished in 12.1s"),
            ("no reply after 3 s", "no reply after 41 s,"),
            ("12:31:04 down", "12:32:59 down"),
            ("thread 'a' (28042) panicked", "thread 'a' (30694) panicked"),
            ("refused 127.0.0.1:35333", "refused 127.0.0.1:41007"),
            ("at 0x7ffd3a", "at 0x66aa01"),
            ("/tmp/.tmpA1b2/x is gone", "/tmp/.tmpZ9y8/x is gone"),
        ] {
            assert!(same(one, other), "{one} | {other}");
        }
        for (one, other) in [
            ("error[E0308] a.rs:10", "error[E0425] a.rs:99"),
            ("test_1 failed", "test_2 failed"),
            ("9 failed", "1 failed"),
            ("3 failed in 2.0s", "4 failed in 2.0s"),
        ] {
            assert!(!same(one, other), "{one} | {other}");
        }
        let exits = ["Exit 1 after 0.1 s, no output", "Exit 101 after 0.1 s, no output"];
        assert_ne!(output_hash(exits[0], None), output_hash(exits[1], None));
    }

    /// Sessions of ordinary work: none of them is shown.
    #[test]
    fn ordinary_work_is_no_circle() {
        let numbered = |count: u32, text: fn(u32) -> String| (0..count).map(text).collect();
        let many = |name, arguments: &[String], ending: fn(&str) -> Ending| -> Vec<_> {
            let each = arguments.iter().map(|argument| (name, argument.clone(), ending(argument)));
            each.collect()
        };
        let again = |endings: Vec<Ending>| -> Vec<_> {
            endings.into_iter().map(|ending| ("Bash", "test".to_owned(), ending)).collect()
        };
        let files: Vec<String> = numbered(50, |n| format!("/w/{n}"));
        let failures: Vec<String> = numbered(8, |n| format!("test_{n} failed"));
        let fewer: Vec<String> = numbered(9, |n| format!("{} failed; 0.{n}2s", 9 - n));
        let places: Vec<String> = numbered(9, |n| format!("error[E0308] a.rs:{n}1"));
        let sessions = [
            ("reading only", many("Read", &files, |_| OK)),
            ("a slow build again and again", again(vec![OK; 20])),
            ("a long test loop", again(failures.iter().map(|text| fails(text)).collect())),
            ("fewer failures each time", again(fewer.iter().map(|text| fails(text)).collect())),
            (
                "one type error after the other",
                again(places.iter().map(|text| fails(text)).collect()),
            ),
            ("two failures by turns", again([fails("a failed"), fails("b failed")].repeat(6))),
            ("searches without a hit", many("Bash", &files, |_| fails(""))),
            ("files that are not there", many("Read", &files, fails)),
            ("a server that is waited for", again([vec![fails("refused"); 4], vec![OK]].concat())),
            ("a flaky test", again([fails("flaky"), fails("flaky"), OK].repeat(7))),
            ("two denials and another way", again(vec![Ending::Denied, Ending::Denied, OK])),
        ];
        for (name, session) in &sessions {
            let calls: Vec<_> = session
                .iter()
                .map(|(tool, words, ending)| (*tool, words.as_str(), *ending))
                .collect();
            assert!(shown(&calls).iter().all(Option::is_none), "{name}");
        }
    }
}
