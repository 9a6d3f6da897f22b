//! Notify: background text for a Pod. From a Pod it is a peer's message, under that peer's name.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Method, Refusal};

pub(crate) struct Notify {
    pub(crate) message: String,
}

impl Verb for Notify {
    const ALLOWED: Caller = Caller::Peer;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let message = match &cx.by {
            Some(by) => format!("[Peer message from `{by}`]\n{}", self.message),
            None => self.message,
        };
        cx.pod()?.call_by(cx.by, Method::Notify { message }).await
    }
}
