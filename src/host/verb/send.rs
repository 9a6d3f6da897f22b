//! Send: a message for a Pod.

use crate::host::pod::Handle;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Method, Refusal, Segment, State};
use crate::tools::pods::stopped;

pub(crate) struct Send {
    pub(crate) input: Vec<Segment>,
    pub(crate) queue: bool,
}

impl Verb for Send {
    const ALLOWED: Caller = Caller::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        if cx.by.is_some() {
            must_be_live(&pod)?;
        }
        pod.call_by(cx.by, Method::Send { input: self.input, queue: self.queue }).await
    }
}

/// Refuses a message of a Pod to one that is stopped.
pub(crate) fn must_be_live(pod: &Handle) -> Result<(), Refusal> {
    match pod.info.borrow().state {
        State::Stopped => Err(Refusal::invalid(stopped(pod.name.as_str()))),
        _ => Ok(()),
    }
}
