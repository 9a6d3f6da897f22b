//! PutOff: a person puts off the request of a client or of an agent. It still waits, and comes last among what needs a person.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal, now_ms};

pub(crate) struct PutOff {
    /// The id of the request.
    pub(crate) approval: String,
}

impl Verb for PutOff {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        if cx.shared.request_put_off(&self.approval, now_ms()) {
            return Ok(Event::done());
        }
        Err(Refusal::invalid("that request was decided or withdrawn already"))
    }
}
