//! Grants of rules and approvals, beyond the scope with which a Pod was created.

use crate::scope::lease::{Lease, LeaseKind, LeaseTable, NotLent};
use crate::scope::{Permission, Rule, Scope};

/// The grants that a revocation ended, and those that it could not end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revoked {
    pub ended: Vec<Lease>,
    /// These remain, because their holder has lent a part of them on.
    pub kept: Vec<Lease>,
}

impl LeaseTable {
    /// Grants a live holder a rule beyond its initial scope, until it stops. The uppermost live
    /// ancestor gets the rule first and lends it down, because the scope of a child is never wider
    /// than that of its parent.
    pub fn extend(&mut self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        let mut chain = vec![key.to_owned()];
        while let Some(above) = self.live_ancestor(&chain[0]).filter(|a| !chain.contains(a)) {
            chain.insert(0, above);
        }
        if !self.is_live(key) {
            return Err(NotLent::NotLive(key.into()));
        }
        if rule.permission == Permission::Write {
            let writers = self.writers_at(rule, |_| false);
            if let Some(other) = writers.into_iter().find(|other| !chain.contains(other)) {
                return Err(NotLent::HeldBy(other));
            }
        }
        let has = chain.iter().rposition(|key| self.held(key).covers(rule));
        let (from, before) = (has.unwrap_or(0), self.savepoint());
        if has.is_none() {
            let (lender, borrower) = (chain[0].clone(), chain[0].clone());
            let (rule, kind) = (rule.clone(), LeaseKind::Granted);
            self.add_lease(Lease { lender, borrower, rule, kind });
            self.recompute(&chain[..1]);
        }
        let mut given = self.must_hold(&chain[from], rule);
        for pair in chain[from..].windows(2) {
            let lend = |()| self.lend_as(LeaseKind::Granted, &pair[0], &pair[1], rule.clone());
            given = given.and_then(lend);
        }
        given.inspect_err(|_| self.roll_back(before))
    }

    /// Ends the leases that [`LeaseTable::extend`] gave these holders and for which `is_over` is
    /// true. `keys` lists children before parents, so that a parent also loses a lease that it only
    /// lent down.
    pub fn end_grants(
        &mut self,
        keys: &[String],
        is_over: impl Fn(&str, &Rule) -> bool,
    ) -> Revoked {
        let mut revoked = Revoked::default();
        for key in keys {
            for id in self.borrowed_ids(key).collect::<Vec<u64>>() {
                let Some(lease) = self.lease(id).cloned() else { continue };
                if lease.kind != LeaseKind::Granted || !is_over(key, &lease.rule) {
                    continue;
                }
                if self.is_lent_on(key, id, &lease.rule) {
                    revoked.kept.push(lease);
                } else {
                    revoked.ended.extend(self.set_lease(id, None));
                }
            }
        }
        let lenders: Vec<String> = revoked.ended.iter().map(|lease| lease.lender.clone()).collect();
        self.recompute(&lenders);
        revoked
    }

    /// The rules that a person gave to this holder or to one above it: the initial scope of the uppermost one, and
    /// what a person lent. A model chose the initial scopes of the others, and that of a child whose parent was deleted.
    pub fn given_by_person(&self, key: &str) -> Scope {
        let above = self.above(key);
        let top = self.holder(above.last().map_or(key, String::as_str));
        let initial = top.into_iter().filter(|top| !top.spawned);
        let borrowed = above.iter().map(String::as_str).chain([key]);
        let lent = borrowed.flat_map(|key| self.borrowed_by(key));
        let lent = lent.filter(|lease| lease.kind == LeaseKind::Lent).map(|lease| &lease.rule);
        Scope::new(initial.flat_map(|top| &top.wanted.allow).chain(lent).cloned().collect())
    }

    /// Whether a holder has lent on a path to which only this lease gives it access.
    fn is_lent_on(&self, key: &str, id: u64, rule: &Rule) -> bool {
        let wanted = self.holder(key).into_iter().flat_map(|holder| &holder.wanted.allow);
        let others = self.borrowed_ids(key).filter(|other| *other != id);
        let others = others.filter_map(|other| self.lease(other)).map(|lease| &lease.rule);
        let own: Vec<&Rule> = wanted.chain(others).collect();
        let gives =
            |own: &Rule, lent: &Rule| own.permission >= lent.permission && own.contains(lent);
        let mut lent = self.lent_around(key, rule).map(|lease| &lease.rule);
        lent.any(|lent| gives(rule, lent) && !own.iter().any(|own| gives(own, lent)))
    }
}
