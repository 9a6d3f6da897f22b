//! `ReadPodOutput`: what a child or descendant said since the last read.

use crate::protocol::family::State;
use crate::protocol::{Event, LastRun, Method, PodName, PodOutput};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Named, Verb};
use crate::tools::{Output, Reading, input};

pub const DESCRIPTION: &str = "Shows what a Pod that you, or one of your children, spawned has said \
since you last read it with this tool, the state it is in, and how its last run ended. Works on \
stopped Pods, too. That a Pod ended a turn does not mean that its work is done.";

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::PATIENCE,
    late: "its output could not be read within 10 s; try again",
};

fn request(arguments: &str, _me: &PodName) -> Result<HostRequest, Fault> {
    let Named { name } = input::parse("ReadPodOutput", arguments)?;
    Ok(HostRequest { pod: pods::child(&name)?, named: name, method: Method::ReadOutput })
}

fn tell(_named: &str, event: Event) -> Option<Output> {
    let Event::Output(output) = event else { return None };
    let PodOutput { name, state, why, texts, cut, upto, last_result } = *output;
    let word = if state == State::Stopped { "is stopped" } else { word(state) };
    let text = texts.join("\n\n");
    let summary = match text.lines().count() {
        0 => format!("pod `{name}` {word}; no new assistant text"),
        lines => format!("pod `{name}`: {lines} new line(s) of assistant text; {word}"),
    };
    let mut content = format!("[state: {}{}]", word.trim_start_matches("is "), because(why));
    if let Some(last) = last_result {
        content.push_str(&format!("\n[{}]", ended(&last)));
    }
    if cut {
        content.push_str("\n[older new text is left out: there is too much of it]");
    }
    if !text.is_empty() {
        content.push_str("\n\n");
        content.push_str(&text);
    }
    let read = upto.map(|upto| Reading { pod: name, upto });
    Some(Output { read, ..Output::with(summary, content) })
}

fn because(why: Option<String>) -> String {
    why.map(|why| format!(", {why}")).unwrap_or_default()
}

fn ended(last: &LastRun) -> String {
    let words = last.result.replace('_', " ");
    match &last.error {
        Some(error) => format!("last run: {words}: {error}"),
        None => format!("last run: {words}"),
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::NeedsYou => "waits for a person",
        State::Paused => "paused",
        State::Idle => "idle",
        State::Stopped => "stopped",
        State::Failed => "failed",
        State::Damaged => "damaged",
        State::Unknown => "in an unknown state",
    }
}
