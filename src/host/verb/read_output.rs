//! ReadOutput: what a Pod's model wrote since the asking Pod last read it.

use crate::host::output;
use crate::host::verb::{Cx, Verb, Who};
use crate::protocol::{Event, Refusal};

pub(crate) struct ReadOutput;

impl Verb for ReadOutput {
    const WHO: Who = Who::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        output::read(&cx.shared, cx.by.as_ref(), cx.to()?).await
    }
}
