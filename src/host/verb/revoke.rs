//! Revoke: a rule that a person's decision made, a consent, or the trust in a workspace's file ends.

use crate::host::supervisor::Family;
use crate::host::verb::policy::{answer_listed, client_listed, trust_listed};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Action, Event, Lent, PodName, Refusal};
use crate::run::policy::{in_force, opens};
use crate::scope::Rule;
use crate::scope::lease::Lease;
use crate::store::StoredRule;

pub(crate) struct Revoke {
    pub(crate) rule: u64,
}

impl Verb for Revoke {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let (number, store) = (self.rule, &cx.shared.store);
        let mut stored = store.policy().await?;
        if let Some(at) = stored.iter().position(|stored| stored.id == number) {
            let ended = stored.remove(at);
            return cx.family(move |family| Ok(revoke(family, ended, &stored))).await;
        }
        let (mut consents, mut trusts, mut clients) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(consent) = cx.shared.end_consent(number).await? {
            consents.push(consent);
        } else if let Some(trust) = store.end_trust(number).await? {
            trusts.push(trust_listed(trust));
        } else if let Some(client) = store.end_client(number).await? {
            clients.push(client_listed(client));
        } else {
            let text = format!("there is no rule {number} from an approval; :policy lists them");
            return Err(Refusal::invalid(text));
        }
        let (rules, closed, kept) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Event::Policy { rules, consents, trusts, clients, closed, kept })
    }
}

/// Revokes a rule and the paths that it granted. `others` are the remaining rules.
fn revoke(family: &mut Family, rule: StoredRule, others: &[StoredRule]) -> Event {
    family.change.revoke = Some(rule.id);
    family.must_be_unused();
    let key = rule.pod.key();
    let mut bound = vec![key.clone()];
    if rule.tree {
        bound.extend(family.table.below(&key));
    }
    bound.reverse();
    // Ancestors received these paths only for the Pods that the rule binds.
    let keys: Vec<String> = bound.iter().cloned().chain(family.table.above(&key)).collect();
    let is_over = |rules: Vec<(String, Vec<StoredRule>)>, pattern| {
        move |key: &str, scope: &Rule| {
            let own = rules.iter().find(|(of, _)| of == key).map(|(_, rules)| rules.as_slice());
            let mut own = own.unwrap_or_default().iter();
            opens(&pattern, scope) && !own.any(|rule| opens(&rule.pattern, scope))
        }
    };
    let rules = keys.iter().map(|key| (key.clone(), rules_of(family, key, others))).collect();
    let revoked = family.table.end_grants(&keys, is_over(rules, rule.pattern.clone()));
    let lent = |lease: &Lease| -> Option<Lent> {
        Some(Lent { to: family.name_of(&lease.borrower)?, rule: lease.rule.clone() })
    };
    let closed = revoked.ended.iter().filter_map(lent).collect();
    let of_bound = |lease: &&Lease| bound.contains(&lease.borrower);
    let kept = revoked.kept.iter().filter(of_bound).filter_map(lent).collect();
    let (consents, trusts, clients) = (Vec::new(), Vec::new(), Vec::new());
    Event::Policy { rules: vec![answer_listed(rule)], consents, trusts, clients, closed, kept }
}

/// The allowing rules that bind a Pod.
fn rules_of(family: &Family, key: &str, stored: &[StoredRule]) -> Vec<StoredRule> {
    let Some(name) = family.name_of(key) else { return Vec::new() };
    let above = family.table.above(key);
    let mut lineage: Vec<PodName> = above.iter().filter_map(|key| family.name_of(key)).collect();
    lineage.reverse();
    let mut rules = in_force(&name, &lineage, stored.to_vec());
    rules.retain(|rule| rule.action == Action::Allow);
    rules
}
