//! `SendToPod`: a message to a child or descendant.

use crate::protocol::{ErrorCode, Event, Method, PodName, Refusal, Segment};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Verb};
use crate::tools::{Output, input};
use schemars::JsonSchema;
use serde::Deserialize;

pub const DESCRIPTION: &str = "Sends a message to a Pod that you, or one of your children, spawned; \
it starts a turn there. Does not wait for the turn: a notification tells you when it ended. A Pod \
that is running refuses the message unless `queue` is set.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The Pod's name.
    name: String,
    /// What to tell it.
    message: String,
    /// Whether the message may wait until the Pod has ended the turn it is in.
    #[serde(default)]
    queue: bool,
}

pub const VERB: Verb = Verb {
    request,
    tell,
    refused,
    patience: pods::PATIENCE,
    late: "the message was not confirmed within 10 s and may or may not arrive; see ReadPodOutput",
};

fn request(arguments: &str, _me: &PodName) -> Result<HostRequest, Fault> {
    let Input { name, message, queue } = input::parse("SendToPod", arguments)?;
    let input = vec![Segment::Text { content: message }];
    Ok(HostRequest { pod: pods::child(&name)?, named: name, method: Method::Send { input, queue } })
}

fn tell(named: &str, event: Event) -> Option<Output> {
    match event {
        Event::Accepted { queued: Some(_), .. } => {
            Some(Output::line(format!("queued message for `{named}`: a later turn takes it")))
        }
        Event::Accepted { queued: None, .. } => {
            Some(Output::line(format!("sent message to `{named}`")))
        }
        _ => None,
    }
}

fn refused(named: &str, refusal: Refusal) -> Fault {
    match refusal.code {
        ErrorCode::AlreadyRunning => Fault::Execution(format!(
            "pod `{named}` is already running a turn; wait for it to finish and retry: a notification tells you when; or set `queue`"
        )),
        ErrorCode::InvalidRequest => Fault::Argument(refusal.message),
        code => Fault::Execution(format!(
            "pod `{named}` rejected the run with {code:?}: {}",
            refusal.message
        )),
    }
}
