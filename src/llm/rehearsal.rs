//! The scripted model: a TOML file replaces the provider, and its tool calls are real.
//!
//! A reply is chosen from the request alone, so a script continues correctly after a restart. The
//! newest user message picks a `[[when]]` by its pattern; the number of tool rounds since then
//! picks its `[[when.step]]`; and text of the reply that is already in the history (after a broken
//! stream) is not repeated. Only `times` of a fault before any text is counted in the process.
//!
//! ```toml
//! chunk = 12                 # characters in a delta
//! delay_ms = 0               # between deltas
//! otherwise = "No line."     # when nothing matches
//!
//! [[when]]
//! says = "fix *"             # `*` is any text, upper and lower case are one; or `any = true`;
//!                            # or `note = "*"` for a notification
//! [[when.step]]              # one reply: think, then text, then calls
//! text = "I look at {1}."    # {1}… what `*` stood for, {input}, {cwd}, {result}
//! call = [{ name = "Read", args = { file_path = "{cwd}/{1}" } }]
//!
//! [[when.step]]              # the reply to the results of those calls
//! text = "It says: {result}"
//! fault = { cut = 10 }       # or hang, status, error, refuse
//! ```
//!
//! `docs/rehearsal.md` describes every key.

mod pattern;
mod play;
mod script;

use crate::llm::{Deltas, Failure, Request};
use crate::protocol::PodInfo;
use futures_util::stream;
use play::Act;
use script::Script;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// The script that `:tour` plays, as a model: `rehearsal:@tour`.
pub const TOUR: &str = "@tour";
/// The script of the tour as a model with its provider.
pub const TOUR_MODEL: &str = "rehearsal:@tour";
/// The prefix of a tour's directory, which is in the directory for temporary files.
pub const TOUR_DIRECTORY: &str = "yoi-tour-";
/// How many characters follow it.
const TOUR_RANDOM: usize = 6;

/// Whether `:tour` names its directories so.
pub fn is_tour_directory(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(TOUR_DIRECTORY));
    random.is_some_and(|random| {
        random.len() == TOUR_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether a Pod belongs to a tour.
pub fn plays_tour(pod: &PodInfo) -> bool {
    pod.model == TOUR_MODEL
}

/// The messages of the tour, one for each scene. `:tour` sends the first and writes the others into the line, one after the
/// other.
pub const TOUR_LINES: [&str; 5] = [
    "Count words: one of you writes, one of you tests.",
    "Ask the counter on the network.",
    "Let the two of them ask me something.",
    "I leave for a moment.",
    "I am back.",
];
/// The index of the message that only the next screen writes, because the message before it asks the person to leave.
pub const TOUR_RETURN: usize = 4;

const TOUR_SCRIPT: &str = include_str!("../../prompts/tour.toml");

/// The script's answer to a request, delta by delta.
///
/// Fails with [`Failure::Unusable`] when the script cannot be read or does not fit (file, line and
/// column are named), and with whatever fault the script asks for.
pub fn open(script: &Path, request: &Request) -> Result<Deltas, Failure> {
    let script = load(script)?;
    play::check_length(&script, request)?;
    let acts = play::reply(&script, request)?;
    Ok(Box::pin(stream::unfold(VecDeque::from(acts), |mut acts| async move {
        loop {
            match acts.pop_front()? {
                // Other tasks run between two deltas, as with a real connection.
                Act::Say(delta) => {
                    tokio::task::yield_now().await;
                    return Some((Ok(delta), acts));
                }
                Act::Stream(mut text) => {
                    let delay = text.delay_ms();
                    let Some(delta) = text.next() else { continue };
                    if delay > 0 {
                        tokio::time::sleep(Duration::from_millis(delay)).await;
                    }
                    tokio::task::yield_now().await;
                    acts.push_front(Act::Stream(text));
                    return Some((Ok(delta), acts));
                }
                Act::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                Act::Hang => std::future::pending().await,
                Act::Fail(failure) => return Some((Err(failure), VecDeque::new())),
            }
        }
    })))
}

fn load(path: &Path) -> Result<Script, Failure> {
    if path == Path::new(TOUR) {
        return Script::read(path, TOUR_SCRIPT).map_err(|e| Failure::Unusable(e.to_string()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Unusable(format!("cannot read the script {}: {error}", path.display()))
    })?;
    Script::read(path, &text).map_err(|error| Failure::Unusable(error.to_string()))
}

#[cfg(test)]
mod tests;
