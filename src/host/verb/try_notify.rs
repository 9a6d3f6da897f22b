//! Try notify: calls the person by the command and the address of `[notify]` once, as a test.

use crate::host::absent_person;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct TryNotify;

impl Verb for TryNotify {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        Ok(Event::NotifyTried { ways: absent_person::try_ways(&cx.shared).await })
    }
}
