//! Revoke: a rule that a person's decision made, or a consent, ends.

use crate::host::verb::policy::answer_listed;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Revoke {
    pub(crate) rule: u64,
}

impl Verb for Revoke {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let (rule, store) = (self.rule, &cx.shared.store);
        let stored = store.policy().await?.into_iter().filter(|stored| stored.id == rule);
        if store.revoke(rule).await? {
            let rules = stored.map(answer_listed).collect();
            return Ok(Event::Policy { rules, consents: Vec::new() });
        }
        if let Some(ended) = cx.shared.end_consent(rule).await? {
            return Ok(Event::Policy { rules: Vec::new(), consents: vec![ended] });
        }
        let text = format!("there is no rule {rule} that an answer made; :policy lists them");
        Err(Refusal::invalid(text))
    }
}
