//! ReadOutput: what a Pod's model wrote since the asking Pod last read it.

use crate::host::output;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct ReadOutput;

impl Verb for ReadOutput {
    const ALLOWED: Caller = Caller::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        output::read(&cx.shared, cx.by.as_ref(), cx.to()?).await
    }
}
