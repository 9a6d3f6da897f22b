//! Revoke: a rule that a person's decision made, a consent, or the trust in a workspace's file ends.

use crate::host::verb::policy::{answer_listed, client_listed, trust_listed};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Revoke {
    pub(crate) rule: u64,
}

impl Verb for Revoke {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let (rule, store) = (self.rule, &cx.shared.store);
        let (mut rules, mut consents, mut trusts, mut clients) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let stored = store.policy().await?.into_iter().filter(|stored| stored.id == rule);
        if store.revoke(rule).await? {
            rules.extend(stored.map(answer_listed));
        } else if let Some(consent) = cx.shared.end_consent(rule).await? {
            consents.push(consent);
        } else if let Some(trust) = store.end_trust(rule).await? {
            trusts.push(trust_listed(trust));
        } else if let Some(client) = store.end_client(rule).await? {
            clients.push(client_listed(client));
        } else {
            let text = format!("there is no rule {rule} that an answer made; :policy lists them");
            return Err(Refusal::invalid(text));
        }
        Ok(Event::Policy { rules, consents, trusts, clients })
    }
}
