//! Send: a message for a Pod.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Method, Refusal, Segment, State};

pub(crate) struct Send {
    pub(crate) input: Vec<Segment>,
    pub(crate) queue: bool,
}

impl Verb for Send {
    const ALLOWED: Caller = Caller::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        if cx.by.is_some() && pod.info.borrow().state == State::Stopped {
            let text = "is stopped; bring it back with RestorePod, then send again";
            return Err(Refusal::invalid(format!("pod `{}` {text}", pod.name)));
        }
        pod.call_by(cx.by, Method::Send { input: self.input, queue: self.queue }).await
    }
}
