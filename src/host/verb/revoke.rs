//! Revoke: a rule that a person's decision made ends.

use crate::host::supervisor::done;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Revoke {
    pub(crate) rule: u64,
}

impl Verb for Revoke {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let rule = self.rule;
        if cx.shared.store.revoke(rule).await? {
            return Ok(done());
        }
        let text = format!("there is no rule {rule} that an answer made; :policy lists them");
        Err(Refusal::invalid(text))
    }
}
