//! `SendToPeerPod`: a word to a peer.

use crate::mesh::Status;
use crate::protocol::mesh::SentMessage;
use crate::protocol::{Event, Method, PodName};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Verb};
use crate::tools::{Output, input};
use schemars::JsonSchema;
use serde::Deserialize;

pub const DESCRIPTION: &str = "Sends a message to a peer: a Pod that a person made known to you, \
which may also be one that you, or one of your children, spawned. It gets the message as a \
notification under your name, does what it thinks right, and may answer in the same way. A stopped \
peer is not reached: RestorePod brings it back.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The peer's name.
    name: String,
    /// What to tell it. Say all that it needs: it sees nothing of your conversation.
    message: String,
}

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::PATIENCE,
    late: "the message was not confirmed within 10 s and may or may not arrive",
};

fn request(arguments: &str, _me: &PodName) -> Result<HostRequest, Fault> {
    let Input { name, message } = input::parse("SendToPeerPod", arguments)?;
    Ok(HostRequest { pod: pods::any(&name)?, named: name, method: Method::Notify { message } })
}

fn tell(named: &str, event: Event) -> Option<Output> {
    let Event::Accepted { queued, .. } = event else { return None };
    let sent = queued.zip(PodName::parse(named).ok()).map(|(id, pod)| SentMessage {
        id,
        status: Status::Received.as_str().to_owned(),
        pods: vec![pod],
        handed_over: false,
    });
    Some(Output { sent, ..Output::line(format!("sent peer message to `{named}`")) })
}
