//! A reference implementation of the lease table: all leases in one list, and everything recomputed
//! after each change. The table must always have the same result.

use crate::scope::lease::{
    Blocked, Holder, Lease, LeaseKind, NotLent, Reclaimed, Restrictions, Turn, reads, refuses,
};
use crate::scope::{Permission, Rule, Scope};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Slow {
    pub holders: BTreeMap<String, Holder>,
    pub leases: Vec<Lease>,
}

impl Slow {
    pub fn lent_by<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Lease> {
        self.leases.iter().filter(move |lease| lease.lender == key && lease.borrower != key)
    }

    pub fn held(&self, key: &str) -> Scope {
        let Some(holder) = self.holders.get(key).filter(|holder| holder.live) else {
            return Scope::default();
        };
        let mut scope = self.claim(key, holder);
        for b in &holder.restrictions.blocked {
            if b.region.contains(&b.rule) {
                reads(&mut scope, &b.rule);
            } else {
                scope.deny.push(b.region.clone());
            }
        }
        scope
    }

    pub fn may_lend(&self, lender: &str, rule: &Rule) -> Result<(), NotLent> {
        let Some(holder) = self.holders.get(lender).filter(|holder| holder.live) else {
            return Err(NotLent::NotLive(lender.into()));
        };
        let held = self.held(lender);
        if !held.allow.iter().any(|own| own.permission >= rule.permission && own.contains(rule)) {
            let wanted = |b: &Blocked| b.rule.contains(rule);
            if holder.restrictions.blocked.iter().any(wanted)
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
            if holder.restrictions.blocked.iter().any(|b| b.region == *deny)
                && let Some(other) = self.writer_of(deny, lender)
            {
                return Err(NotLent::HeldBy(other));
            }
            return Err(NotLent::Denied(deny.clone()));
        }
        Ok(())
    }

    fn keeper(&self, lease: &Lease, rule: &Rule) -> String {
        let mut at = lease.borrower.clone();
        // A path can be lent in a circle; more steps than leases lead nowhere new.
        for _ in &self.leases {
            let on =
                |on: &&Lease| on.rule.permission == Permission::Write && on.rule.contains(rule);
            let Some(on) = self.lent_by(&at).find(on) else { break };
            at = on.borrower.clone();
        }
        at
    }

    pub fn child_scope(&self, parent: &str, rules: Vec<Rule>) -> Scope {
        let deny = self.holders.get(parent).map(|holder| holder.wanted.deny.clone());
        let deny = deny.unwrap_or_default();
        Scope { allow: rules, deny }
    }

    pub fn go_live_all(&mut self, keys: &[String]) {
        for key in keys {
            self.enter(key);
        }
        self.recompute(keys);
    }

    fn enter(&mut self, key: &str) {
        let Some(holder) = self.holders.get(key).filter(|holder| !holder.live) else { return };
        let (parent, wanted, own) = (holder.parent.clone(), holder.wanted.clone(), holder.own);
        let (parent, lender) = if own { (None, None) } else { (parent, self.live_ancestor(key)) };
        if let Some(lender) = &lender
            && wanted.allow.iter().any(|rule| self.is_disputed(key, lender, rule))
        {
            self.take_back(lender);
        }
        let capped = self.beyond(parent.as_deref(), &wanted);
        let Some(holder) = self.holders.get_mut(key) else { return };
        holder.live = true;
        let reclaimed = std::mem::take(&mut holder.restrictions).reclaimed;
        holder.restrictions.reclaimed.clone_from(&reclaimed);
        self.restrictions(key).capped = capped;
        self.rehome();
        if let Some(lender) = lender {
            for rule in wanted.allow {
                let was_reclaimed = reclaimed.iter().any(|one| one.rule == rule);
                let writes = rule.permission == Permission::Write;
                if writes && (was_reclaimed || self.is_disputed(key, &lender, &rule)) {
                    continue;
                }
                let kind = LeaseKind::Born;
                let (lender, borrower) = (lender.clone(), key.to_owned());
                self.leases.push(Lease { lender, borrower, rule, kind });
            }
        }
        let blocked = self.blocked(key, &self.all_held());
        self.restrictions(key).blocked = blocked;
    }

    pub fn stop_all(&mut self, keys: &[String]) -> Vec<Vec<Lease>> {
        let mut returned = Vec::new();
        for key in keys {
            let live = self.holders.get_mut(key).filter(|holder| holder.live);
            let Some(holder) = live else {
                returned.push(Vec::new());
                continue;
            };
            (holder.live, holder.turn) = (false, None);
            let reclaimed = std::mem::take(&mut holder.restrictions).reclaimed;
            holder.restrictions.reclaimed = reclaimed;
            let all = std::mem::take(&mut self.leases).into_iter();
            let (back, rest) = all.partition::<Vec<_>, _>(|lease| lease.borrower == *key);
            self.leases = rest;
            returned.push(back);
        }
        self.rehome();
        let first: Vec<String> = returned.iter().flatten().map(|l| l.lender.clone()).collect();
        self.recompute(&first);
        returned
    }

    pub fn remove(&mut self, key: &str) {
        self.stop_all(&[key.to_owned()]);
        self.holders.remove(key);
        self.leases.retain(|lease| lease.lender != key);
        for holder in self.holders.values_mut() {
            if holder.parent.as_deref() == Some(key) {
                holder.parent = None;
            }
            holder.restrictions.reclaimed.retain(|one| one.by != key);
        }
        self.recompute(&[]);
    }

    pub fn lend(&mut self, from: &str, to: &str, rule: Rule) -> Result<(), NotLent> {
        if !self.holders.get(to).is_some_and(|holder| holder.live) {
            return Err(NotLent::NotLive(to.into()));
        }
        self.lend_as(LeaseKind::Lent, from, to, rule)
    }

    fn lend_as(
        &mut self,
        kind: LeaseKind,
        from: &str,
        to: &str,
        rule: Rule,
    ) -> Result<(), NotLent> {
        let before = self.clone();
        if matches!(self.may_lend(from, &rule), Err(NotLent::HeldBy(_))) {
            self.take_back(from);
        }
        self.may_lend(from, &rule).inspect_err(|_| self.clone_from(&before))?;
        if rule.permission == Permission::Write {
            // The lease replaces an earlier reclaim from the borrower.
            self.restrictions(to).capped.retain(|own| !rule.contains(own));
            self.restrictions(to).reclaimed.retain(|own| !rule.contains(&own.rule));
        }
        let (lender, borrower) = (from.to_owned(), to.to_owned());
        self.leases.push(Lease { lender, borrower, rule: rule.clone(), kind });
        self.recompute(&[to.to_owned()]);
        self.must_hold(to, &rule).inspect_err(|_| *self = before)
    }

    fn must_hold(&self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        if self.held(key).covers(rule) {
            return Ok(());
        }
        let gaps = self.holders.get(key).map(|holder| holder.restrictions.blocked.as_slice());
        let around = gaps.unwrap_or_default().iter().find(|b| b.region.overlaps(rule));
        let denied = |key: &str| self.held(key).deny.into_iter().find(|deny| deny.overlaps(rule));
        let region = around.map(|b| b.region.clone()).or_else(|| denied(key));
        Err(region.map_or(NotLent::Outside, NotLent::PartOf))
    }

    pub fn extend(&mut self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        let mut chain = vec![key.to_owned()];
        while let Some(above) = self.live_ancestor(&chain[0]) {
            chain.insert(0, above);
        }
        if !self.holders.get(key).is_some_and(|holder| holder.live) {
            return Err(NotLent::NotLive(key.into()));
        }
        let wanted = Scope::new(vec![rule.clone()]);
        let writes = |other: &&String| !wanted.write_conflicts(&self.held(other)).is_empty();
        let other = self.live().filter(|other| !chain.contains(other)).find(writes).cloned();
        if let Some(other) = other {
            return Err(NotLent::HeldBy(other));
        }
        let has = chain.iter().rposition(|key| self.held(key).covers(rule));
        let (from, before) = (has.unwrap_or(0), self.clone());
        if has.is_none() {
            let (lender, borrower) = (chain[0].clone(), chain[0].clone());
            let (rule, kind) = (rule.clone(), LeaseKind::Granted);
            self.leases.push(Lease { lender, borrower, rule, kind });
            self.recompute(&chain[..1]);
        }
        let mut given = self.must_hold(&chain[from], rule);
        for pair in chain[from..].windows(2) {
            given = given
                .and_then(|()| self.lend_as(LeaseKind::Granted, &pair[0], &pair[1], rule.clone()));
        }
        given.inspect_err(|_| *self = before)
    }

    pub fn end_grants(&mut self, keys: &[String], rule: &Rule) {
        let mut lenders = Vec::new();
        for key in keys {
            for at in (0..self.leases.len()).rev() {
                let lease = self.leases[at].clone();
                if lease.kind != LeaseKind::Granted || lease.borrower != *key || lease.rule != *rule
                {
                    continue;
                }
                let mut without = self.clone();
                without.leases.remove(at);
                let wanted = without.holders.get(key).map(|holder| holder.wanted.allow.clone());
                let has = without.leases.iter().filter(|own| own.borrower == *key);
                let has: Vec<Rule> =
                    wanted.into_iter().flatten().chain(has.map(|l| l.rule.clone())).collect();
                let needs = |lent: &Lease| {
                    rule.contains(&lent.rule) && !has.iter().any(|own| own.contains(&lent.rule))
                };
                if !without.lent_by(key).any(needs) {
                    lenders.push(lease.lender);
                    self.leases.remove(at);
                }
            }
        }
        self.recompute(&lenders);
    }

    pub fn reclaim(&mut self, owner: &str, region: &Rule) -> Vec<Lease> {
        let around: Vec<Lease> =
            self.lent_by(owner).filter(|lease| lease.rule.overlaps(region)).cloned().collect();
        let mut without = self.clone();
        without.leases.retain(|lease| !around.contains(lease));
        let reads = |lease: &Lease| {
            let Some(holder) = without.holders.get(&lease.borrower) else { return false };
            let own = without.leases.iter().filter(|own| own.borrower == lease.borrower);
            let mut rules = holder.wanted.allow.iter().chain(own.map(|own| &own.rule));
            lease.rule.permission == Permission::Read && rules.any(|own| own.contains(&lease.rule))
        };
        let back: Vec<Lease> = around.iter().filter(|lease| !reads(lease)).cloned().collect();
        self.leases.retain(|lease| !back.contains(lease));
        for lease in back.iter().filter(|lease| lease.rule.permission == Permission::Write) {
            let Some(holder) = self.holders.get_mut(&lease.borrower) else { continue };
            let reclaimed = Reclaimed { by: owner.to_owned(), rule: lease.rule.clone() };
            let kept = &mut holder.restrictions.reclaimed;
            if holder.wanted.allow.contains(&lease.rule) && !kept.contains(&reclaimed) {
                kept.push(reclaimed);
            }
        }
        self.recompute(&[owner.to_owned()]);
        back
    }

    pub fn writer_of(&self, rule: &Rule, but: &str) -> Option<String> {
        let scope = Scope::new(vec![Rule { permission: Permission::Write, ..rule.clone() }]);
        let others = self.live().filter(|key| key.as_str() != but);
        let writers: Vec<(&String, Scope)> = others
            .map(|key| (key, self.held(key)))
            .filter(|(_, held)| !scope.write_conflicts(held).is_empty())
            .collect();
        let has_all = |(_, held): &&(&String, Scope)| {
            held.allow.iter().any(|own| own.permission == Permission::Write && own.contains(rule))
        };
        writers.iter().find(has_all).or(writers.first()).map(|(key, _)| (*key).clone())
    }

    pub fn live_ancestor(&self, key: &str) -> Option<String> {
        let mut at = self.holders.get(key)?.parent.clone();
        while let Some(parent) = at {
            let holder = self.holders.get(&parent)?;
            if holder.live {
                return Some(parent);
            }
            at = holder.parent.clone();
        }
        None
    }

    fn live(&self) -> impl Iterator<Item = &String> {
        self.holders.iter().filter(|(_, holder)| holder.live).map(|(key, _)| key)
    }

    fn restrictions(&mut self, key: &str) -> &mut Restrictions {
        &mut self.holders.entry(key.to_owned()).or_default().restrictions
    }

    fn claim(&self, key: &str, holder: &Holder) -> Scope {
        let mut scope = holder.wanted.clone();
        for lease in self.leases.iter().filter(|lease| lease.borrower == key) {
            if !scope.allow.contains(&lease.rule) {
                scope.allow.push(lease.rule.clone());
            }
        }
        let writes = |lease: &&Lease| lease.rule.permission == Permission::Write;
        scope.deny.extend(self.lent_by(key).filter(writes).map(|lease| lease.rule.clone()));
        for rule in holder.restrictions.read_only() {
            reads(&mut scope, rule);
        }
        scope
    }

    fn beyond(&self, parent: Option<&str>, wanted: &Scope) -> Vec<Rule> {
        let Some((key, parent)) = parent.and_then(|key| Some((key, self.holders.get(key)?))) else {
            return Vec::new();
        };
        let borrowed = self.leases.iter().filter(|lease| lease.borrower == key).map(|l| &l.rule);
        let given: Vec<&Rule> = parent.wanted.allow.iter().chain(borrowed).collect();
        let covered = |rule: &Rule| {
            given.iter().any(|own| own.permission >= rule.permission && own.contains(rule))
        };
        let writes = wanted.allow.iter().filter(|rule| rule.permission == Permission::Write);
        writes.filter(|rule| !covered(rule)).cloned().collect()
    }

    fn is_disputed(&self, key: &str, lender: &str, rule: &Rule) -> bool {
        let Some(holder) = self.holders.get(key) else { return false };
        let mut claim = self.claim(key, holder);
        claim.allow = vec![rule.clone()];
        let mut others = self.live().filter(|other| *other != key && *other != lender);
        others.any(|other| !claim.write_conflicts(&self.held(other)).is_empty())
    }

    fn rehome(&mut self) {
        for n in 0..self.leases.len() {
            if self.leases[n].kind != LeaseKind::Born {
                continue;
            }
            let borrower = self.leases[n].borrower.clone();
            let parent = self.holders.get(&borrower).and_then(|holder| holder.parent.clone());
            if let Some(lender) = self.live_ancestor(&borrower).or(parent) {
                self.leases[n].lender = lender;
            }
        }
    }

    fn recompute(&mut self, first: &[String]) {
        let mut order: Vec<String> = self.live().cloned().collect();
        order.sort_by_key(|key| {
            let rank = first.iter().position(|name| name == key).unwrap_or(first.len());
            let holder = self.holders.get(key);
            let created = holder.map_or(0, |holder| holder.created);
            (!self.has_turn(key), rank, created, key.clone())
        });
        let mut held = self.all_held();
        for key in order {
            let blocked = self.blocked(&key, &held);
            self.restrictions(&key).blocked = blocked;
            held.insert(key.clone(), self.held(&key));
        }
    }

    fn all_held(&self) -> BTreeMap<String, Scope> {
        self.live().map(|key| (key.clone(), self.held(key))).collect()
    }

    fn blocked(&self, key: &str, held: &BTreeMap<String, Scope>) -> Vec<Blocked> {
        let Some(holder) = self.holders.get(key) else { return Vec::new() };
        let claim = self.claim(key, holder);
        let stay = |(other, held): (&String, &Scope)| {
            let mut stays = held.clone();
            stays.allow.retain(|rule| !self.has_turn(key) || !self.gives_up(other, rule, key));
            stays
        };
        let others: Vec<Scope> = held.iter().filter(|(other, _)| *other != key).map(stay).collect();
        let mut found = Vec::new();
        for rule in claim.allow.iter().filter(|rule| rule.permission == Permission::Write) {
            let one = Scope { allow: vec![rule.clone()], deny: claim.deny.clone() };
            for region in others.iter().flat_map(|held| one.write_overlaps(held)) {
                let blocked = Blocked { rule: rule.clone(), region };
                if !found.contains(&blocked) {
                    found.push(blocked);
                }
            }
        }
        found.sort_by(|a: &Blocked, b: &Blocked| {
            let place = |b: &Blocked| (b.rule.target.clone(), b.rule.recursive);
            let region = |b: &Blocked| (b.region.target.clone(), b.region.recursive);
            place(a).cmp(&place(b)).then(region(a).cmp(&region(b)))
        });
        found
    }

    pub fn begin_turn(&mut self, key: &str, turn: Turn) {
        if let Some(holder) = self.holders.get_mut(key).filter(|holder| holder.live) {
            holder.turn = Some(turn);
            self.recompute(&[key.to_owned()]);
        }
    }

    pub fn end_turn(&mut self, key: &str) {
        if let Some(holder) = self.holders.get_mut(key).filter(|holder| holder.turn.is_some()) {
            holder.turn = None;
            self.recompute(&[]);
        }
    }

    /// A Pod without a turn gets what it would get by one.
    fn take_back(&mut self, key: &str) {
        let Some(holder) = self.holders.get(key).filter(|holder| holder.live) else { return };
        if holder.turn.is_none() && !holder.restrictions.blocked.is_empty() {
            self.begin_turn(key, Turn::of(0));
            self.end_turn(key);
        }
    }

    fn has_turn(&self, key: &str) -> bool {
        self.holders.get(key).is_some_and(|holder| holder.turn.is_some())
    }

    fn root_of(&self, key: &str) -> String {
        let (mut at, mut seen) = (key.to_owned(), vec![key.to_owned()]);
        while let Some(parent) = self.holders.get(&at).and_then(|holder| holder.parent.clone()) {
            if seen.contains(&parent) {
                break;
            }
            seen.push(parent.clone());
            at = parent;
        }
        at
    }

    /// Whether `other` writes by this rule only until a turn of `key`.
    fn gives_up(&self, other: &str, rule: &Rule, key: &str) -> bool {
        let is_lent = self.leases.iter().any(|lease| {
            let takes = lease.lender != other && lease.rule.permission == Permission::Write;
            lease.borrower == other && takes && lease.rule.contains(rule)
        });
        let root = self.root_of(other);
        let writes = |member: &String| {
            let held = self.held(member);
            held.allow.iter().any(|rule| rule.permission == Permission::Write)
        };
        let busy = self.live().filter(|member| *member != key && self.root_of(member) == root);
        let mut above = Vec::new();
        let mut at = self.holders.get(other).and_then(|holder| holder.parent.clone());
        while let Some(parent) = at.filter(|parent| !above.contains(parent)) {
            at = self.holders.get(&parent).and_then(|holder| holder.parent.clone());
            above.push(parent);
        }
        let is_below = above.iter().any(|above| above == key);
        !is_lent
            && !is_below
            && !busy.into_iter().any(|member| self.has_turn(member) && writes(member))
    }
}
