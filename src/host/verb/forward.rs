//! The verbs that concern one Pod only: its own actor carries them out.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Method, Refusal};

pub(crate) struct Forward(pub(crate) Method);

impl Verb for Forward {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        cx.pod()?.call_by(cx.by, self.0).await
    }
}
