//! The table of scopes and leases: a Pod lends parts of its scope to its children and gets them
//! back, and no two live Pods may write one path. Reads no disk; the database stores the same rows.

mod grants;
mod index;
mod mend;
mod recompute;
mod relocate;
mod table;
mod turns;

pub use grants::Revoked;
pub use table::{Changes, LeaseTable, Savepoint};
pub use turns::Turn;

use crate::scope::lease::recompute::Side;
use crate::scope::{Permission, Rule, Scope};

/// One Pod in the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    pub parent: Option<String>,
    /// Its initial scope, which it requests each time it becomes live.
    pub wanted: Scope,
    /// Whether another Pod spawned it, so that a model chose its initial scope; true also after that Pod is deleted.
    pub spawned: bool,
    /// Whether its initial scope was made for it: its parent never had it, and lends nothing of it.
    pub own: bool,
    pub live: bool,
    /// Its turn, while a run of it lasts. It is not stored.
    pub turn: Option<Turn>,
    pub restrictions: Restrictions,
    /// The time of creation. If two Pods want to write one path, the older one gets it.
    pub created: u64,
}

/// The paths that a live holder may only read although it wants to write them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Restrictions {
    /// Restrictions because another Pod writes there; lifted when that Pod releases the path.
    #[serde(default, rename = "forgone", skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// Whole rules that its parent never had or has reclaimed. Recomputed at the next restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capped: Vec<Rule>,
    /// Whole rules that were reclaimed. They outlast a stop and a restore, until they are lent again
    /// or the Pod that took them back is deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reclaimed: Vec<Reclaimed>,
}

/// A rule of a holder that another Pod took back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reclaimed {
    /// The key of the Pod that took it back.
    pub by: String,
    pub rule: Rule,
}

impl Restrictions {
    /// Whole write rules that only allow reading although no other Pod writes there.
    fn read_only(&self) -> impl Iterator<Item = &Rule> {
        self.capped.iter().chain(self.reclaimed.iter().map(|reclaimed| &reclaimed.rule))
    }

    /// The restrictions that remain when the holder stops.
    fn kept(self) -> Self {
        Self { reclaimed: self.reclaimed, ..Self::default() }
    }
}

/// A path that another Pod writes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Blocked {
    /// The rule with which the holder wants to write it.
    pub rule: Rule,
    /// The part of it that another Pod has; the whole rule if the region contains it.
    pub region: Rule,
}

impl Blocked {
    /// Whether nothing of the rule is left to write.
    fn is_whole(&self) -> bool {
        self.region.contains(&self.rule)
    }
}

/// A part of the lender's scope that another Pod has until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lease {
    pub lender: String,
    pub borrower: String,
    pub rule: Rule,
    pub kind: LeaseKind,
}

impl Lease {
    /// Whether the lease takes write access from its lender. A grant beyond a Pod's scope is stored
    /// as lent by the Pod itself and takes nothing from it.
    fn takes(&self) -> bool {
        self.lender != self.borrower && self.rule.permission == Permission::Write
    }
}

/// The origin of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseKind {
    /// The parent gave it to the borrower at its creation.
    Born,
    /// A person lent it.
    Lent,
    /// A rule granted it, or the approval that created the rule.
    Granted,
}

/// Why a rule cannot be lent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotLent {
    /// No rule of the lender covers it.
    Outside,
    /// The lender lent it to `to`. `has` holds it now: `to`, or a Pod to which it was lent on.
    LentTo { to: String, has: String },
    /// Another Pod holds it.
    HeldBy(String),
    /// This rule of the lender's own scope forbids it.
    Denied(Rule),
    /// The borrower only reads this region because another Pod holds it, so it could not write a
    /// part of it.
    PartOf(Rule),
    /// The lender or the borrower is not live.
    NotLive(String),
}

impl LeaseTable {
    /// Whether `lender` could lend this rule now.
    pub fn may_lend(&self, lender: &str, rule: &Rule) -> Result<(), NotLent> {
        let Some(holder) = self.holder(lender).filter(|holder| holder.live) else {
            return Err(NotLent::NotLive(lender.into()));
        };
        let held = self.held(lender);
        if !held.allow.iter().any(|own| own.permission >= rule.permission && own.contains(rule)) {
            if holder.restrictions.blocked.iter().any(|blocked| blocked.rule.contains(rule))
                && let Some(other) = self.writer_of(rule, lender)
            {
                return Err(NotLent::HeldBy(other));
            }
            return Err(NotLent::Outside);
        }
        if let Some(deny) = held.deny.iter().find(|deny| refuses(deny, rule)) {
            let takes = |lease: &&Lease| lease.takes() && lease.rule.overlaps(deny);
            if let Some(lease) = self.lent_by(lender).find(takes) {
                let (to, has) = (lease.borrower.clone(), self.keeper(lease, rule));
                return Err(NotLent::LentTo { to, has });
            }
            if holder.restrictions.blocked.iter().any(|blocked| blocked.region == *deny)
                && let Some(other) = self.writer_of(deny, lender)
            {
                return Err(NotLent::HeldBy(other));
            }
            return Err(NotLent::Denied(deny.clone()));
        }
        Ok(())
    }

    /// The Pod that has all of a rule by this lease now: the borrower, or the last Pod to which it
    /// was lent on.
    fn keeper(&self, lease: &Lease, rule: &Rule) -> String {
        let mut seen = vec![lease.borrower.clone()];
        loop {
            let at = seen[seen.len() - 1].clone();
            let on =
                |on: &&Lease| on.rule.permission == Permission::Write && on.rule.contains(rule);
            // A path can be lent in a circle, so each Pod is visited once.
            let next = self.lent_by(&at).find(on).map(|on| on.borrower.clone());
            match next {
                Some(next) if !seen.contains(&next) => seen.push(next),
                _ => return at,
            }
        }
    }

    /// The scope of a new child of `parent`: these rules, with the parent's denies.
    pub fn child_scope(&self, parent: &str, rules: Vec<Rule>) -> Scope {
        let deny = self.holder(parent).map(|holder| holder.wanted.deny.clone());
        Scope { allow: rules, deny: deny.unwrap_or_default() }
    }

    /// Makes a holder live: its parent lends it the wanted scope, and paths that another Pod writes
    /// become read-only. Has no effect on a live holder.
    pub fn go_live(&mut self, key: &str) {
        self.go_live_all(&[key.to_owned()]);
    }

    /// Makes several holders live in this order, and recomputes the table once.
    pub fn go_live_all(&mut self, keys: &[String]) {
        for key in keys {
            self.enter(key);
        }
        self.recompute(keys);
    }

    /// The part of going live that concerns the holder itself.
    fn enter(&mut self, key: &str) {
        let Some(holder) = self.holder(key).filter(|holder| !holder.live).cloned() else { return };
        let (parent, wanted) = (holder.parent.clone(), holder.wanted.clone());
        let lender = self.live_ancestor(key).filter(|_| !holder.own);
        if let Some(lender) = &lender
            && wanted.allow.iter().any(|rule| self.is_disputed(key, lender, rule))
        {
            // Before the holder is live: until it has looked around, it would stand in the way of its own parent.
            self.take_back(lender);
        }
        let parent = parent.filter(|_| !holder.own);
        let capped = self.beyond(parent.as_deref(), &wanted);
        let restrictions = Restrictions { capped, ..holder.restrictions.kept() };
        let reclaimed = restrictions.reclaimed.clone();
        self.set_holder(key, Some(Holder { live: true, restrictions, ..holder }));
        self.rehome(key);
        if let Some(lender) = lender {
            for rule in wanted.allow {
                let was_reclaimed = reclaimed.iter().any(|reclaimed| reclaimed.rule == rule);
                if rule.permission == Permission::Write
                    && (was_reclaimed || self.is_disputed(key, &lender, &rule))
                {
                    continue;
                }
                let kind = LeaseKind::Born;
                let (lender, borrower) = (lender.clone(), key.to_owned());
                self.add_lease(Lease { lender, borrower, rule, kind });
            }
        }
        self.look_around(key);
    }

    /// Ends all leases of a holder, except those that it lent on and that are still used. Returns
    /// the ended ones.
    pub fn stop(&mut self, key: &str) -> Vec<Lease> {
        self.stop_all(&[key.to_owned()]).pop().unwrap_or_default()
    }

    /// Stops several holders and recomputes the table once; returns the leases that ended, for each
    /// holder.
    pub fn stop_all(&mut self, keys: &[String]) -> Vec<Vec<Lease>> {
        let mut returned = Vec::new();
        for key in keys {
            returned.push(self.let_go(key));
        }
        for key in keys {
            self.rehome(key);
        }
        self.mark_waiting();
        let lenders = returned.iter().flatten().map(|lease| lease.lender.clone());
        let mut first: Vec<String> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        first.extend(lenders.filter(|lender| seen.insert(lender.clone())));
        self.recompute(&first);
        returned
    }

    fn let_go(&mut self, key: &str) -> Vec<Lease> {
        let Some(holder) = self.holder(key).filter(|holder| holder.live).cloned() else {
            return Vec::new();
        };
        for rule in self.writes(key) {
            self.mark_around(&rule, key);
        }
        let restrictions = holder.restrictions.kept();
        self.set_holder(key, Some(Holder { live: false, turn: None, restrictions, ..holder }));
        let ids: Vec<u64> = self.borrowed_ids(key).collect();
        ids.into_iter().filter_map(|id| self.set_lease(id, None)).collect()
    }

    /// Forgets a holder that is not live; its children have no parent any more.
    pub fn remove(&mut self, key: &str) {
        self.stop(key);
        let ids: Vec<u64> = self.lent_ids(key).collect();
        for id in ids {
            self.set_lease(id, None);
        }
        for child in self.children(key) {
            if let Some(holder) = self.holder(&child).cloned() {
                self.set_holder(&child, Some(Holder { parent: None, ..holder }));
            }
        }
        let reclaimed_from: Vec<(String, Rule)> = self
            .holders()
            .flat_map(|(other, holder)| {
                holder.restrictions.reclaimed.iter().map(move |r| (other, r))
            })
            .filter(|(_, reclaimed)| reclaimed.by == key)
            .map(|(other, reclaimed)| (other.clone(), reclaimed.rule.clone()))
            .collect();
        for (other, rule) in reclaimed_from {
            self.change_restrictions(&other, &rule, |r| r.reclaimed.retain(|one| one.by != key));
        }
        self.set_holder(key, None);
        // Its tree may be several now.
        self.mark_waiting();
        self.recompute(&[]);
    }

    /// Lends a rule to another live Pod until that one stops or it is reclaimed.
    pub fn lend(&mut self, from: &str, to: &str, rule: Rule) -> Result<(), NotLent> {
        self.lend_as(LeaseKind::Lent, from, to, rule)
    }

    fn lend_as(
        &mut self,
        kind: LeaseKind,
        from: &str,
        to: &str,
        rule: Rule,
    ) -> Result<(), NotLent> {
        if !self.holder(to).is_some_and(|holder| holder.live) {
            return Err(NotLent::NotLive(to.into()));
        }
        let before = self.savepoint();
        if matches!(self.may_lend(from, &rule), Err(NotLent::HeldBy(_))) {
            self.take_back(from);
        }
        self.may_lend(from, &rule).inspect_err(|_| self.roll_back(before))?;
        if rule.permission == Permission::Write {
            // The lease replaces an earlier reclaim from the borrower.
            self.change_restrictions(to, &rule, |restrictions| {
                restrictions.capped.retain(|own| !rule.contains(own));
                restrictions.reclaimed.retain(|own| !rule.contains(&own.rule));
            });
        }
        let (lender, borrower) = (from.to_owned(), to.to_owned());
        self.add_lease(Lease { lender, borrower, rule: rule.clone(), kind });
        self.recompute(&[to.to_owned()]);
        self.must_hold(to, &rule).inspect_err(|_| self.roll_back(before))
    }

    /// Fails unless the borrower holds the rule now.
    fn must_hold(&self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        let held = self.held(key);
        if held.covers(rule) {
            return Ok(());
        }
        let blocked = self.holder(key).map(|holder| holder.restrictions.blocked.as_slice());
        let around = blocked.unwrap_or_default().iter().find(|b| b.region.overlaps(rule));
        let denied = || held.deny.iter().find(|deny| deny.overlaps(rule)).cloned();
        let region = around.map(|blocked| blocked.region.clone()).or_else(denied);
        Err(region.map_or(NotLent::Outside, NotLent::PartOf))
    }

    /// The leases of a lender that overlap this region.
    pub fn lent_around<'a>(
        &'a self,
        owner: &'a str,
        region: &'a Rule,
    ) -> impl Iterator<Item = &'a Lease> {
        self.lent_by(owner).filter(|lease| lease.rule.overlaps(region))
    }

    /// Whether the borrower of a read lease can read the region without the leases of this lender:
    /// by its initial scope, or by another lease.
    fn reads_without(&self, lease: &Lease, region: &Rule) -> bool {
        let stays = |own: &&Lease| own.lender != lease.lender || !own.rule.overlaps(region);
        let others = self.borrowed_by(&lease.borrower).filter(stays).map(|own| &own.rule);
        let wanted =
            self.holder(&lease.borrower).into_iter().flat_map(|holder| &holder.wanted.allow);
        let reads = lease.rule.permission == Permission::Read;
        reads && wanted.chain(others).any(|own| own.contains(&lease.rule))
    }

    /// Reclaims the leases in this region. Borrowers whose initial scope writes there may only read
    /// until the region is lent to them again, also after a stop. A read lease stays if its
    /// borrower can read without it. Returns the leases that ended.
    pub fn reclaim(&mut self, owner: &str, region: &Rule) -> Vec<Lease> {
        let around = |id: &u64| {
            self.lease(*id).is_some_and(|lease| {
                let lent = lease.lender != lease.borrower && lease.rule.overlaps(region);
                lent && !self.reads_without(lease, region)
            })
        };
        let ids: Vec<u64> = self.lent_ids(owner).filter(around).collect();
        let back: Vec<Lease> = ids.into_iter().filter_map(|id| self.set_lease(id, None)).collect();
        for lease in back.iter().filter(|lease| lease.rule.permission == Permission::Write) {
            let reclaimed = Reclaimed { by: owner.to_owned(), rule: lease.rule.clone() };
            let asked = |holder: &Holder| holder.wanted.allow.contains(&lease.rule);
            let asked = self.holder(&lease.borrower).is_some_and(asked);
            self.change_restrictions(&lease.borrower, &lease.rule, |restrictions| {
                if asked && !restrictions.reclaimed.contains(&reclaimed) {
                    restrictions.reclaimed.push(reclaimed);
                }
            });
        }
        self.recompute(&[owner.to_owned()]);
        back
    }

    /// A Pod other than `but` that may write in the region of this rule: preferably the one that
    /// holds the whole region, even if it has lent parts of it on.
    pub fn writer_of(&self, rule: &Rule, but: &str) -> Option<String> {
        self.widest(rule, self.writers_at(rule, |key| key == but))
    }

    /// The first of these Pods that holds the whole region, or else the first.
    fn widest(&self, rule: &Rule, mut writers: Vec<String>) -> Option<String> {
        let has_all = |key: &String| self.writes(key).iter().any(|own| own.contains(rule));
        let at = writers.iter().position(has_all).unwrap_or(0);
        (!writers.is_empty()).then(|| writers.swap_remove(at))
    }

    /// The Pods that have priority over this one for writing in a region: its writers, the Pods
    /// that lent it to them, and older Pods that want it; but for its writers only those that do not give it up for a turn
    /// of this one.
    pub fn written_before(&self, key: &str, region: &Rule) -> Vec<String> {
        let claims_too = self.wants(key, region);
        let stays = |other: &String| !claims_too || !self.is_at_rest(other, key);
        let mut found = self.writers_at(region, |other| other == key);
        let mut at = 0;
        while at < found.len() {
            let lenders: Vec<String> = self
                .borrowed_by(&found[at])
                .filter(|lease| lease.takes() && lease.rule.overlaps(region))
                .map(|lease| lease.lender.clone())
                .filter(|lender| lender != key && !found.contains(lender) && stays(lender))
                .collect();
            found.extend(lenders);
            at += 1;
        }
        let created = |key: &str| self.holder(key).map(|holder| holder.created);
        for other in self.claims.around(&region.target) {
            let first = !claims_too || created(other) < created(key);
            if other != key
                && first
                && !found.contains(other)
                && self.wants(other, region)
                && stays(other)
            {
                found.push(other.clone());
            }
        }
        found
    }

    /// A sentence about a violated invariant of the table; always `None` unless the program has a
    /// defect.
    pub fn fault(&self) -> Option<String> {
        for (key, _) in self.holders().filter(|(_, holder)| holder.live) {
            for rule in self.writes(key) {
                let conflicts = self.conflicts(key, &rule, Side::Writes, None);
                if let Some((other, region)) = conflicts.first() {
                    let path = region.target.display();
                    return Some(format!("{key} and {other} both write {path}"));
                }
            }
        }
        let dead = |key: &String| !self.holder(key).is_some_and(|holder| holder.live);
        let stray = self.leases().find(|lease| dead(&lease.borrower));
        stray.map(|lease| format!("{} is not live and has a lease", lease.borrower))
    }

    /// The part of a wanted scope that the parent itself never had.
    fn beyond(&self, parent: Option<&str>, wanted: &Scope) -> Vec<Rule> {
        let Some((key, parent)) = parent.and_then(|key| Some((key, self.holder(key)?))) else {
            return Vec::new();
        };
        let borrowed = self.borrowed_by(key).map(|lease| &lease.rule);
        let given: Vec<&Rule> = parent.wanted.allow.iter().chain(borrowed).collect();
        let covered = |rule: &Rule| {
            given.iter().any(|own| own.permission >= rule.permission && own.contains(rule))
        };
        wanted.writable().filter(|rule| !covered(rule)).cloned().collect()
    }

    /// Whether a Pod other than the lender writes where this new borrower wants to.
    fn is_disputed(&self, key: &str, lender: &str, rule: &Rule) -> bool {
        let conflicts = || self.conflicts(key, rule, Side::Claims, None);
        rule.permission == Permission::Write && conflicts().iter().any(|(other, _)| other != lender)
    }

    fn change_restrictions(
        &mut self,
        key: &str,
        rule: &Rule,
        change: impl FnOnce(&mut Restrictions),
    ) {
        let Some(mut holder) = self.holder(key).cloned() else { return };
        change(&mut holder.restrictions);
        self.set_holder(key, Some(holder));
        self.mark(key, rule);
        self.mark_around(rule, key);
    }
}

/// Makes exactly this rule of a scope read-only.
fn reads(scope: &mut Scope, rule: &Rule) {
    for own in scope.allow.iter_mut().filter(|own| *own == rule) {
        own.permission = Permission::Read;
    }
}

/// Whether a deny of the lender prevents lending this rule, because it would narrow it. Parts that
/// no Pod may read stay denied to the borrower instead.
fn refuses(deny: &Rule, rule: &Rule) -> bool {
    match deny.permission {
        Permission::Read => deny.contains(rule),
        Permission::Write => rule.permission == Permission::Write && deny.overlaps(rule),
    }
}

#[cfg(test)]
mod tests;
