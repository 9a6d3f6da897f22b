//! Notices that a run goes in circles: a call fails in the same way, or is denied, again and again.

use crate::config::settings::Watch;
use crate::protocol::{CircleKind, Circling, Item, now_ms};
use crate::run::batch::{Call, label};
use crate::run::{Run, RunEvent};
use crate::tools::SUCCEEDED;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most calls that are remembered; what a run does beyond that begins anew.
const MAX_CALLS: usize = 1000;

/// The failures of a run, by call.
#[derive(Debug, Default)]
pub(super) struct Circles {
    failures: HashMap<(String, String), Failures>,
    /// The call that is shown.
    shown: Option<(String, String)>,
}

/// How often a call failed in one way, without another end between.
#[derive(Debug)]
struct Failures {
    way: u64,
    times: u32,
    since: u64,
}

/// What a result changes about what is shown.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Same,
    Begins(Circling),
    Ends,
}

impl Circles {
    fn ended(&mut self, call: &Call, result: &Item, watch: &Watch, now: u64) -> Change {
        let Item::ToolResult { summary, content, is_error, .. } = result else {
            return Change::Same;
        };
        let key = (call.name.clone(), call.arguments.clone());
        let failed = *is_error || (call.name == "Bash" && !summary.starts_with(SUCCEEDED));
        if !failed {
            self.failures.remove(&key);
            return self.ends(&key);
        }
        if self.failures.len() >= MAX_CALLS {
            self.failures.clear();
        }
        let text = content.as_deref().unwrap_or(summary);
        let way = way(text);
        let failures =
            self.failures.entry(key.clone()).or_insert(Failures { way, times: 0, since: now });
        if failures.way != way {
            *failures = Failures { way, times: 1, since: now };
            return self.ends(&key);
        }
        failures.times += 1;
        let (kind, most) = match text.starts_with("denied") {
            true => (CircleKind::Denied, watch.same_requests),
            false => (CircleKind::Failure, watch.same_failures),
        };
        if most == 0 || failures.times < most {
            return Change::Same;
        }
        let call = label(&call.name, &call.arguments);
        let circling = Circling { kind, times: failures.times, call, since: failures.since };
        self.shown = Some(key);
        Change::Begins(circling)
    }

    fn ends(&mut self, key: &(String, String)) -> Change {
        match self.shown.as_ref() == Some(key) {
            true => {
                self.shown = None;
                Change::Ends
            }
            false => Change::Same,
        }
    }
}

/// The way in which something failed: its output without figures, which differ each time (durations, ports, addresses).
fn way(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).for_each(|part| {
        part.hash(&mut hasher);
    });
    hasher.finish()
}

impl Run {
    /// Looks at the result of a call.
    pub(super) async fn watch_for_circles(&mut self, call: &Call, result: &Item) {
        let circling = match self.circles.ended(call, result, &self.setup.watch, now_ms()) {
            Change::Same => return,
            Change::Begins(circling) => Some(Box::new(circling)),
            Change::Ends => None,
        };
        self.send(RunEvent::Circling(circling)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> Call {
        Call { id: "c".into(), name: name.into(), arguments: arguments.into() }
    }

    fn result(summary: &str, content: Option<&str>, is_error: bool) -> Item {
        Item::ToolResult {
            call_id: "c".into(),
            summary: summary.into(),
            content: content.map(str::to_owned),
            is_error,
            images: Vec::new(),
        }
    }

    /// What is shown after each of these ends of calls, as kind and number.
    fn shown(ends: &[(&Call, Item)]) -> Vec<Option<(CircleKind, u32)>> {
        let (mut circles, mut now) = (Circles::default(), None);
        let watch = Watch::default();
        let each = ends.iter().map(|(call, result)| {
            match circles.ended(call, result, &watch, 7) {
                Change::Same => {}
                Change::Begins(circling) => now = Some((circling.kind, circling.times)),
                Change::Ends => now = None,
            }
            now
        });
        each.collect()
    }

    #[test]
    fn the_same_failure_of_the_same_call_is_shown_from_the_fifth_on_until_it_ends_otherwise() {
        let test = call("Bash", r#"{"command":"cargo test"}"#);
        let fails = |seconds: u32| {
            let (summary, output) =
                (format!("Exit 101 after {seconds}.0 s"), format!("no reply after {seconds} s"));
            (&test, result(&summary, Some(&output), false))
        };
        let passes = (&test, result("Exit 0 after 1.0 s", Some("ok"), false));
        let edit = call("Edit", "{}");
        let edits = (&edit, result("Edited a", None, false));
        let mut ends = Vec::new();
        for seconds in 1..=6 {
            ends.extend([fails(seconds), edits.clone()]);
        }
        ends.push(passes);
        let shown = shown(&ends);
        assert_eq!(shown[..8], [None; 8]);
        assert_eq!(shown[8], Some((CircleKind::Failure, 5)));
        assert_eq!(shown[10], Some((CircleKind::Failure, 6)));
        assert_eq!(shown[12], None);
    }

    #[test]
    fn a_call_that_is_denied_is_shown_from_the_third_time_on() {
        let fetch = call("Bash", r#"{"command":"curl x"}"#);
        let denied = || (&fetch, result("denied: not now", None, true));
        assert_eq!(
            shown(&[denied(), denied(), denied()]),
            [None, None, Some((CircleKind::Denied, 3))]
        );
    }

    /// Ten ordinary sessions: none of them is shown.
    #[test]
    fn ordinary_work_is_no_circle() {
        let bash = |command: &str| call("Bash", &format!(r#"{{"command":"{command}"}}"#));
        let read = |path: usize| call("Read", &format!(r#"{{"file_path":"/w/{path}"}}"#));
        let ok = || result("Exit 0 after 9.1 s", Some("built"), false);
        let exit = |output: &str| result("Exit 1 after 0.1 s", Some(output), false);
        let many = |call: &Call, results: Vec<Item>| {
            results.into_iter().map(|result| (call.clone(), result)).collect::<Vec<_>>()
        };
        let numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
        let sessions: [(&str, Vec<(Call, Item)>); 10] = [
            (
                "reading only",
                (0..50).map(|n| (read(n), result("Read", Some("text"), false))).collect(),
            ),
            (
                "reading one file again",
                many(&read(1), (0..9).map(|_| result("Read", None, false)).collect()),
            ),
            ("a slow build", many(&bash("make"), (0..9).map(|_| ok()).collect())),
            (
                "a long test loop",
                many(
                    &bash("test"),
                    numbers.iter().map(|name| exit(&format!("{name} failed"))).collect(),
                ),
            ),
            (
                "tests that get better by turns",
                many(
                    &bash("test"),
                    (0..12)
                        .map(|n| exit(if n % 3 == 0 { "a failed" } else { "b failed" }))
                        .collect(),
                ),
            ),
            (
                "searches without a hit",
                numbers.iter().map(|name| (bash(&format!("grep {name}")), exit(""))).collect(),
            ),
            (
                "files that are not there",
                (0..9).map(|n| (read(n), result("no such file", None, true))).collect(),
            ),
            (
                "a server that is waited for",
                many(&bash("curl x"), (0..4).map(|_| exit("refused")).chain([ok()]).collect()),
            ),
            (
                "a flaky test",
                many(
                    &bash("test"),
                    (0..20).map(|n| if n % 4 == 0 { ok() } else { exit("flaky") }).collect(),
                ),
            ),
            (
                "two denials and another way",
                [
                    many(
                        &bash("curl x"),
                        (0..2).map(|_| result("denied: no", None, true)).collect(),
                    ),
                    many(&bash("cat x"), vec![ok()]),
                ]
                .concat(),
            ),
        ];
        for (name, session) in sessions {
            let ends: Vec<(&Call, Item)> =
                session.iter().map(|(call, result)| (call, result.clone())).collect();
            assert!(shown(&ends).iter().all(Option::is_none), "{name}");
        }
    }
}
