//! What became of a tool call, in a few words: what the runtime says of its result.

use crate::screen::pane::transcript::tool::{Outcome, Tool};
use crate::screen::pane::transcript::{clean, diff};
use crate::theme::Role;
use crate::wording::{counted, duration};

/// Shorter than this, the time that a call took says nothing, in milliseconds.
pub const LONG: u64 = 10_000;
/// The words with which a tool refuses a path, and what the row says instead: the path stands in it already.
const REFUSALS: &[(&str, &str)] = &[
    ("path is outside allowed scope", "refused: outside its scope"),
    ("path leads through a symbolic link outside allowed scope", "refused: outside its scope"),
    ("path is read-only in this scope", "refused: read-only"),
    ("path is secret", "refused: secret"),
];

/// What became of a call.
pub struct State {
    pub role: Role,
    pub words: String,
    /// Whether the words leave out why it failed.
    pub lacks_reason: bool,
}

impl State {
    fn hoped(words: String) -> Self {
        Self { role: Role::Dim, words, lacks_reason: false }
    }

    fn failed(words: String, lacks_reason: bool) -> Self {
        Self { role: Role::Error, words, lacks_reason }
    }
}

/// The state of a call with this result.
pub fn state(tool: &Tool, outcome: &Outcome) -> State {
    let summary = outcome.summary.as_str();
    if outcome.is_error {
        let known = REFUSALS.iter().find(|(begins, _)| summary.starts_with(begins));
        return match known {
            Some((_, words)) => State::failed((*words).to_owned(), false),
            None if summary.starts_with("denied") => State::failed("refused".into(), true),
            None => State::failed("failed".into(), true),
        };
    }
    let status = summary.strip_prefix("Exit ").and_then(|rest| rest.split(' ').next());
    let status = status.filter(|status| *status != "0").map(|status| format!("exit {status}"));
    let ended = status.or_else(|| {
        let signal = summary.strip_prefix("Ended by signal ")?.split(' ').next()?;
        Some(format!("signal {signal}"))
    });
    let took = took(tool, outcome).map(|took| format!(" · {took}")).unwrap_or_default();
    match ended {
        Some(ended) => State::failed(format!("{}{took}", clean::one_line(&ended)), true),
        None => State::hoped(outcome.words(|| hoped(tool, outcome)) + &took),
    }
}

/// How long a call took, if that was long.
fn took(tool: &Tool, outcome: &Outcome) -> Option<String> {
    let since = tool.since.filter(|since| *since > 0)?;
    let millis = outcome.ts.checked_sub(since).filter(|millis| *millis >= LONG)?;
    Some(duration::took(millis))
}

/// The result of a call that went as it should.
fn hoped(tool: &Tool, outcome: &Outcome) -> String {
    let summary = outcome.summary.as_str();
    let of = |begins: &str| first_number(summary.strip_prefix(begins)?);
    let words = match tool.name.as_str() {
        "Read" => match (lines_read(outcome), of("Listed ")) {
            (Some(lines), _) => Some(counted(lines, "line", "lines")),
            (None, Some(entries)) => Some(counted(entries, "entry", "entries")),
            (None, None) => summary.starts_with("Read image").then(|| "image".to_owned()),
        },
        "Grep" | "Glob" => found(summary),
        "Write" => written(tool, summary.starts_with("Created ")),
        "Edit" => edited(tool, summary),
        "SpawnPod" => Some("spawned".to_owned()),
        _ => None,
    };
    words.unwrap_or_else(|| "ok".to_owned())
}

/// How many lines of a file a call has read.
pub fn lines_read(outcome: &Outcome) -> Option<u64> {
    let rest = outcome.summary.strip_prefix("Read ")?;
    rest.split_once(' ')?.1.starts_with("line(s)").then(|| first_number(rest))?
}

/// What a search found.
fn found(summary: &str) -> Option<String> {
    let rest = summary.strip_prefix("Found ")?;
    let (more, rest) = match rest.strip_prefix("at least ") {
        Some(rest) => ("over ", rest),
        None => ("", rest),
    };
    let number = first_number(rest)?;
    let found = match rest.contains(" match(es) ") {
        true => counted(number, "hit", "hits"),
        false => counted(number, "file", "files"),
    };
    Some(format!("{more}{found}"))
}

fn first_number(text: &str) -> Option<u64> {
    text.split(' ').next()?.parse().ok()
}

fn written(tool: &Tool, is_new: bool) -> Option<String> {
    let lines =
        tool.argument("content").map(|content| counted(content.lines().count(), "line", "lines"));
    match (is_new, lines) {
        (true, Some(lines)) => Some(format!("new · {lines}")),
        (true, None) => Some("new".into()),
        (false, lines) => lines,
    }
}

/// The lines that an edit added and removed, in all places where it replaced its text.
fn edited(tool: &Tool, summary: &str) -> Option<String> {
    let old = tool.argument("old_string")?;
    let (added, removed) = diff::count(&old, &tool.argument("new_string")?);
    let (_, places) = summary.split_once(" replacement(s)")?.0.rsplit_once('(')?;
    let places: usize = places.parse().ok()?;
    Some(format!("+{} −{}", added * places, removed * places))
}
