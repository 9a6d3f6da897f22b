//! ReadOutput: what a Pod's model wrote since the asking Pod last read it.

use crate::host::output::{self, Reader};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct ReadOutput;

impl Verb for ReadOutput {
    const ALLOWED: Caller = Caller::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let reader = cx.by.as_ref().map_or(Reader::Person, Reader::Pod);
        output::read(&cx.shared, reader, cx.to()?).await
    }
}
