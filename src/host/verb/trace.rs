//! Trace: the newest log lines of this host.

use crate::host::verb::{Cx, Verb, Who};
use crate::protocol::{Event, Refusal};

pub(crate) struct Trace {
    /// Words that each line contains, in any case.
    pub(crate) filter: String,
}

impl Verb for Trace {
    const WHO: Who = Who::Person;

    async fn run(self, _cx: Cx) -> Result<Event, Refusal> {
        Ok(Event::Trace { lines: crate::trace::recent(&self.filter) })
    }
}
