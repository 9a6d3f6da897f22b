//! `:since`: what the Pods did since a time.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Since {
    /// Milliseconds since the Unix epoch.
    pub(crate) at: u64,
}

impl Verb for Since {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        Ok(Event::Since { pods: cx.shared.store.work_since(self.at).await? })
    }
}
