//! `StopPod`: the end of a child or descendant, and what it gave back.

use crate::protocol::{Event, Method, PodName, StoppedPod};
use crate::scope::{Permission, Rule};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Verb};
use crate::tools::{MAX_SUMMARY, Output, input};
use schemars::JsonSchema;
use serde::Deserialize;

pub const DESCRIPTION: &str = "Stops a Pod that you, or one of your children, spawned: what it runs \
is ended, and the scope it was lent is back at once. Its conversation is kept: RestorePod brings it \
back, ReadPodOutput still reads it. Set `tree` to stop everything below it, too.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The Pod's name.
    name: String,
    /// Whether the Pods below it are stopped, too, before it.
    #[serde(default)]
    tree: bool,
}

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::STOP_PATIENCE,
    late: "it has not ended within 8 s; the host continues to end it, ListPods shows its state",
};

fn request(arguments: &str, _me: &PodName) -> Result<HostRequest, Fault> {
    let Input { name, tree } = input::parse("StopPod", arguments)?;
    Ok(HostRequest {
        pod: pods::child(&name)?,
        named: name,
        method: Method::StopPods { tree, unless_busy: false, silent: false },
    })
}

fn tell(named: &str, event: Event) -> Option<Output> {
    let Event::PodsStopped { stopped } = event else { return None };
    let Some((own, below)) = stopped.split_last() else {
        return Some(Output::line(format!("pod `{named}` was stopped already")));
    };
    let summary = match below.len() {
        0 => line(own),
        n => format!("{} ({n} below it stopped, too)", line(own)),
    };
    if below.is_empty() && summary.chars().count() <= MAX_SUMMARY {
        return Some(Output::line(summary));
    }
    let lines: Vec<String> = stopped.iter().map(line).collect();
    Some(Output::with(summary, lines.join("\n")))
}

fn line(stopped: &StoppedPod) -> String {
    let rules: Vec<String> = stopped.returned.iter().map(rule).collect();
    let returned = if rules.is_empty() { "(none)".into() } else { rules.join(", ") };
    let gained = stopped
        .gained
        .iter()
        .map(|gained| format!("; `{}` has {} now", gained.to, rule(&gained.rule)));
    let gained: String = gained.collect();
    format!("stopped pod `{}`; reclaimed scope: {returned}{gained}", stopped.name)
}

fn rule(rule: &Rule) -> String {
    let permission = match rule.permission {
        Permission::Read => "read",
        Permission::Write => "write",
    };
    let depth = if rule.recursive { "" } else { " [non-recursive]" };
    format!("{permission}:{}{depth}", rule.target.display())
}
