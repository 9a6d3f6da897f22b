//! Trace: the newest log lines of this host.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Trace {
    /// Words that each line contains, in any case.
    pub(crate) filter: String,
}

impl Verb for Trace {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, _cx: Cx) -> Result<Event, Refusal> {
        Ok(Event::Trace { lines: crate::trace::recent(&self.filter) })
    }
}
