//! Revoke: a rule that a person's decision made, a consent, or the trust in a workspace's file ends.

use crate::host::verb::policy::{answer_listed, trust_listed};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PolicyConsent, PolicyRule, PolicyTrust, Refusal};

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
            return Ok(ended(rules, Vec::new(), Vec::new()));
        }
        if let Some(consent) = cx.shared.end_consent(rule).await? {
            return Ok(ended(Vec::new(), vec![consent], Vec::new()));
        }
        if let Some(trust) = store.end_trust(rule).await? {
            return Ok(ended(Vec::new(), Vec::new(), vec![trust_listed(trust)]));
        }
        let text = format!("there is no rule {rule} that an answer made; :policy lists them");
        Err(Refusal::invalid(text))
    }
}

fn ended(rules: Vec<PolicyRule>, consents: Vec<PolicyConsent>, trusts: Vec<PolicyTrust>) -> Event {
    Event::Policy { rules, consents, trusts }
}
