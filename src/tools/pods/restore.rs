//! `RestorePod`: a stopped Pod that one can see is brought back.

use crate::protocol::{Event, Method, PodName};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Named, Verb};
use crate::tools::{Output, input};

pub const DESCRIPTION: &str = "Brings a stopped Pod back as it was: its conversation, settings, \
working directory, scope and relations. It may be a Pod you spawned, one below it, or a peer. \
Nothing runs in it until it gets a message; a turn that was cut off stays paused. A Pod that is \
live stays as it is.";

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::PATIENCE,
    late: "it is not back within 10 s; ListPods shows its state",
};

fn request(arguments: &str, me: &PodName) -> Result<HostRequest, Fault> {
    let Named { name } = input::parse("RestorePod", arguments)?;
    Ok(HostRequest { pod: me.clone(), named: name.clone(), method: Method::Restore { name } })
}

fn tell(named: &str, event: Event) -> Option<Output> {
    let Event::PodRestored { result } = event else { return None };
    let name = result["pod_name"].as_str().unwrap_or(named);
    let summary = match result["action"].as_str()? {
        "already_live" => format!("pod `{name}` is already live"),
        _ => format!("pod `{name}` restored from pod state"),
    };
    Some(Output::with(summary, result.to_string()))
}
