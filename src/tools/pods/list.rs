//! `ListPods`: oneself, everything below, and peers.

use crate::protocol::{Event, Method, PodName};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Verb};
use crate::tools::{Output, input};
use schemars::JsonSchema;
use serde::Deserialize;

pub const DESCRIPTION: &str = "Lists the Pods you can see: yourself, the Pods you spawned and those \
below them, and your peers, each with its state, since when, and how its last run ended. Look here \
first. Peers are not your children: SendToPeerPod reaches them and RestorePod brings them back, the \
other tools are for your children.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {}

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::PATIENCE,
    late: "the host has not answered within 10 s; try again",
};

fn request(arguments: &str, me: &PodName) -> Result<HostRequest, Fault> {
    let Input {} = input::parse("ListPods", arguments)?;
    Ok(HostRequest { pod: me.clone(), named: me.to_string(), method: Method::ListPods })
}

fn tell(_named: &str, event: Event) -> Option<Output> {
    let Event::PodsListed { pods } = event else { return None };
    let text = serde_json::to_string_pretty(&pods).ok()?;
    Some(Output::with(format!("{} visible pod(s)", pods.len()), text))
}
