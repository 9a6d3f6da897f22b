//! Ending the host.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct End;

impl Verb for End {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let end = |family: &mut crate::host::supervisor::Family| {
            family.ends = true;
            Ok(())
        };
        cx.family(end).await?;
        Ok(Event::done())
    }
}
