//! The table itself: holders and leases with their indexes. Every change goes through two functions
//! that update the indexes and record how to undo it.

use crate::scope::lease::index::{Ends, LentPaths, PathIndex};
use crate::scope::lease::recompute::Stale;
use crate::scope::lease::{Holder, Lease, LeaseKind, Restrictions, reads};
use crate::scope::{Permission, Rule, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// All holders and the leases between them, by the holders' keys.
#[derive(Clone, Debug, Default)]
pub struct LeaseTable {
    holders: BTreeMap<String, Holder>,
    /// By number, which ascends with time and is the row in the store.
    leases: BTreeMap<u64, Lease>,
    children: BTreeMap<String, BTreeSet<String>>,
    borrowed: Ends,
    lent: Ends,
    lent_paths: LentPaths,
    /// The paths that live holders claim for writing.
    pub(super) claims: PathIndex,
    /// The paths that live holders write, including parts that they lent on.
    pub(super) writers: PathIndex,
    /// The holders that have a turn.
    pub(super) in_turn: BTreeSet<String>,
    /// Holders whose restrictions may be outdated.
    pub(super) stale: BTreeMap<String, Stale>,
    /// Those of them that became stale since the last recomputation.
    pub(super) newly_stale: Vec<String>,
    /// Holders that changed since the last commit, even if only the reason of a note changed.
    affected: BTreeSet<String>,
    /// The number of turns so far. A number is not given twice, also after a rollback.
    pub(super) turns: u64,
    undo: Vec<Undo>,
}

/// The inverse of one change.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    Holder(String, Option<Holder>),
    Lease(u64, Option<Lease>),
    Stale(String, Stale),
}

/// A state to which the table can be rolled back until the next commit.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    changes: usize,
}

/// What changed since the last commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Leases by their number; `None` has ended.
    pub leases: Vec<(u64, Option<Lease>)>,
    /// Restrictions that differ, by the holders' keys.
    pub restrictions: Vec<(String, Restrictions)>,
}

impl PartialEq for LeaseTable {
    /// Two tables are equal if they have the same holders, and the same leases in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.holders == other.holders && self.leases().eq(other.leases())
    }
}

impl LeaseTable {
    /// Adds a holder as it is.
    pub fn add(&mut self, key: impl Into<String>, holder: Holder) {
        let (key, live) = (key.into(), holder.live);
        self.set_holder(&key, Some(holder));
        if live {
            self.mark_whole(&key);
        }
    }

    /// Adds a stored lease with its number.
    pub fn load_lease(&mut self, id: u64, lease: Lease) {
        self.set_lease(id, Some(lease));
    }

    pub(super) fn add_lease(&mut self, lease: Lease) {
        let id = self.leases.last_key_value().map_or(1, |(last, _)| last + 1);
        self.set_lease(id, Some(lease));
    }

    pub fn holder(&self, key: &str) -> Option<&Holder> {
        self.holders.get(key)
    }

    pub fn is_live(&self, key: &str) -> bool {
        self.holder(key).is_some_and(|holder| holder.live)
    }

    pub fn holders(&self) -> impl Iterator<Item = (&String, &Holder)> {
        self.holders.iter()
    }

    /// Every lease, oldest first.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }

    pub(super) fn lease(&self, id: u64) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// The leases from this holder to others, oldest first; without grants beyond its scope, which
    /// are stored as lent by itself.
    pub fn lent_by<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Lease> {
        let leases = self.lent.of(key).filter_map(|id| self.leases.get(&id));
        leases.filter(move |lease| lease.borrower != key)
    }

    /// The leases to this holder, oldest first.
    pub fn borrowed_by<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Lease> {
        self.borrowed.of(key).filter_map(|id| self.leases.get(&id))
    }

    /// The numbers of all leases, oldest first.
    pub(super) fn lease_ids(&self) -> Vec<u64> {
        self.leases.keys().copied().collect()
    }

    /// Ends every lease.
    pub(super) fn take_leases(&mut self) -> Vec<Lease> {
        self.lease_ids().into_iter().filter_map(|id| self.set_lease(id, None)).collect()
    }

    pub(super) fn lent_ids(&self, key: &str) -> impl Iterator<Item = u64> {
        self.lent.of(key)
    }

    pub(super) fn borrowed_ids(&self, key: &str) -> impl Iterator<Item = u64> {
        self.borrowed.of(key)
    }

    /// The children of a holder, by key.
    pub fn children(&self, key: &str) -> Vec<String> {
        self.children.get(key).into_iter().flatten().cloned().collect()
    }

    /// The descendants of a holder, parents before children and older ones before younger ones.
    pub fn below(&self, key: &str) -> Vec<String> {
        let mut found = vec![key.to_owned()];
        let mut seen = BTreeSet::from([key.to_owned()]);
        let mut at = 0;
        while at < found.len() {
            let mut children = self.children(&found[at]);
            children.sort_by_key(|child| self.holder(child).map(|holder| holder.created));
            // A circle of parents, which only a damaged database can contain, is visited once.
            found.extend(children.into_iter().filter(|child| seen.insert(child.clone())));
            at += 1;
        }
        found.split_off(1)
    }

    /// The ancestors of a holder, the nearest first.
    pub fn above(&self, key: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut at = self.holder(key).and_then(|holder| holder.parent.clone());
        while let Some(parent) = at.filter(|parent| parent != key && !found.contains(parent)) {
            at = self.holder(&parent).and_then(|holder| holder.parent.clone());
            found.push(parent);
        }
        found
    }

    /// The nearest ancestor that is live.
    pub fn live_ancestor(&self, key: &str) -> Option<String> {
        self.above(key).into_iter().find(|above| self.is_live(above))
    }

    /// The current scope of a live Pod; empty if it is not live.
    pub fn held(&self, key: &str) -> Scope {
        let Some(holder) = self.holders.get(key).filter(|holder| holder.live) else {
            return Scope::default();
        };
        let mut scope = self.claim(key, holder);
        for blocked in &holder.restrictions.blocked {
            if blocked.is_whole() {
                reads(&mut scope, &blocked.rule);
            } else {
                scope.deny.push(blocked.region.clone());
            }
        }
        scope
    }

    /// The scope of a holder if no other Pod restricted it.
    fn claim(&self, key: &str, holder: &Holder) -> Scope {
        let mut scope = holder.wanted.clone();
        for lease in self.borrowed_by(key) {
            if !scope.allow.contains(&lease.rule) {
                scope.allow.push(lease.rule.clone());
            }
        }
        let taken = self.lent_by(key).filter(|lease| lease.takes());
        scope.deny.extend(taken.map(|lease| lease.rule.clone()));
        for rule in holder.restrictions.read_only() {
            reads(&mut scope, rule);
        }
        scope
    }

    /// The rules by which a live holder would write if no other Pod did; empty if it is not live.
    pub(super) fn claimed(&self, key: &str) -> Vec<Rule> {
        let Some(holder) = self.holders.get(key).filter(|holder| holder.live) else {
            return Vec::new();
        };
        let borrowed = self.borrowed_by(key).map(|lease| &lease.rule);
        let mut rules: Vec<Rule> = Vec::new();
        for rule in holder.wanted.allow.iter().chain(borrowed) {
            let capped = holder.restrictions.read_only().any(|own| own == rule);
            if rule.permission == Permission::Write && !capped && !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        rules
    }

    /// The rules by which a live holder writes; parts of them may be lent on or belong to another
    /// Pod.
    pub(super) fn writes(&self, key: &str) -> Vec<Rule> {
        let mut rules = self.claimed(key);
        if let Some(holder) = self.holders.get(key) {
            let blocked = &holder.restrictions.blocked;
            rules.retain(|rule| !blocked.iter().any(|b| b.rule == *rule && b.is_whole()));
        }
        rules
    }

    /// Whether a holder does not claim this region although a rule of it covers it: its scope denies
    /// it, or it is lent on.
    pub(super) fn claim_hides(&self, key: &str, region: &Rule) -> bool {
        let denied = |holder: &Holder| holder.wanted.deny.iter().any(|deny| deny.contains(region));
        let contains = |id| self.leases.get(&id).is_some_and(|lease| lease.rule.contains(region));
        self.holders.get(key).is_some_and(denied)
            || self.lent_paths.above(key, &region.target).any(contains)
    }

    /// As `claim_hides`, and also true where another Pod writes.
    pub(super) fn hides(&self, key: &str, region: &Rule) -> bool {
        let partly = |holder: &Holder| {
            let mut blocked = holder.restrictions.blocked.iter();
            blocked.any(|b| !b.is_whole() && b.region.contains(region))
        };
        self.claim_hides(key, region) || self.holders.get(key).is_some_and(partly)
    }

    /// Leases along the family below a holder whose life changed, and its own, belong to the nearest
    /// live ancestor of the borrower, or to its parent when none is live.
    pub(super) fn rehome(&mut self, key: &str) {
        let (mut at, mut seen) = (vec![key.to_owned()], BTreeSet::new());
        while let Some(borrower) = at.pop() {
            if !seen.insert(borrower.clone()) {
                continue;
            }
            self.rehome_one(&borrower);
            // Leases below a live holder do not change, because it is their nearest live ancestor.
            if borrower == key || !self.is_live(&borrower) {
                at.extend(self.children(&borrower));
            }
        }
    }

    fn rehome_one(&mut self, borrower: &str) {
        let parent = self.holders.get(borrower).and_then(|holder| holder.parent.clone());
        let Some(lender) = self.live_ancestor(borrower).or(parent) else { return };
        let ids: Vec<u64> = self.borrowed.of(borrower).collect();
        for id in ids {
            let Some(lease) = self.leases.get(&id) else { continue };
            if lease.kind == LeaseKind::Born && lease.lender != lender {
                let lease = Lease { lender: lender.clone(), ..lease.clone() };
                self.set_lease(id, Some(lease));
            }
        }
    }

    /// Puts a holder in, changes it or takes it out.
    pub(super) fn set_holder(&mut self, key: &str, holder: Option<Holder>) {
        self.unindex(key);
        let before = match holder {
            Some(holder) => self.holders.insert(key.to_owned(), holder),
            None => self.holders.remove(key),
        };
        match self.has_turn(key) {
            true => drop(self.in_turn.insert(key.to_owned())),
            false => drop(self.in_turn.remove(key)),
        }
        let parent = self.holders.get(key).and_then(|holder| holder.parent.clone());
        let old_parent = before.as_ref().and_then(|holder| holder.parent.clone());
        if parent != old_parent {
            self.move_child(key, old_parent, parent);
        }
        self.index(key);
        self.affected.insert(key.to_owned());
        self.undo.push(Undo::Holder(key.to_owned(), before));
    }

    fn move_child(&mut self, key: &str, from: Option<String>, to: Option<String>) {
        if let Some(from) = from
            && let Some(children) = self.children.get_mut(&from)
        {
            children.remove(key);
            if children.is_empty() {
                self.children.remove(&from);
            }
        }
        if let Some(to) = to {
            self.children.entry(to).or_default().insert(key.to_owned());
        }
    }

    /// Makes, changes or ends a lease; what it was before.
    pub(super) fn set_lease(&mut self, id: u64, lease: Option<Lease>) -> Option<Lease> {
        let before = self.leases.get(&id).cloned();
        let ends = before.iter().chain(&lease).cloned().collect::<Vec<_>>();
        for end in &ends {
            self.unindex(&end.borrower);
        }
        if let Some(old) = &before {
            self.borrowed.remove(&old.borrower, id);
            self.lent.remove(&old.lender, id);
            self.lent_paths.remove(&old.lender, &old.rule.target, id);
        }
        if let Some(new) = &lease {
            self.borrowed.insert(&new.borrower, id);
            self.lent.insert(&new.lender, id);
            if new.takes() {
                self.lent_paths.insert(&new.lender, &new.rule.target, id);
            }
        }
        match lease {
            Some(lease) => drop(self.leases.insert(id, lease)),
            None => drop(self.leases.remove(&id)),
        }
        for end in &ends {
            self.index(&end.borrower);
            self.affected.extend([end.lender.clone(), end.borrower.clone()]);
            if end.rule.permission == Permission::Write {
                self.mark(&end.borrower, &end.rule);
                self.mark(&end.lender, &end.rule);
                self.mark_around(&end.rule, &end.borrower);
            }
        }
        self.undo.push(Undo::Lease(id, before.clone()));
        before
    }

    fn unindex(&mut self, key: &str) {
        for path in targets(self.claimed(key)) {
            self.claims.remove(&path, key);
            self.writers.remove(&path, key);
        }
    }

    fn index(&mut self, key: &str) {
        for path in targets(self.claimed(key)) {
            self.claims.insert(&path, key);
        }
        let writes = targets(self.writes(key));
        if writes.is_empty() && self.has_turn(key) {
            // Its family may be at rest now.
            self.mark_waiting();
        }
        for path in writes {
            self.writers.insert(&path, key);
        }
    }

    pub(super) fn affect(&mut self, key: &str) {
        self.affected.insert(key.to_owned());
    }

    pub(super) fn remember(&mut self, undo: Undo) {
        self.undo.push(undo);
    }

    pub fn savepoint(&self) -> Savepoint {
        Savepoint { changes: self.undo.len() }
    }

    /// Takes back everything since that moment.
    pub fn roll_back(&mut self, to: Savepoint) {
        while self.undo.len() > to.changes {
            match self.undo.pop() {
                Some(Undo::Holder(key, before)) => self.set_holder(&key, before),
                Some(Undo::Lease(id, before)) => drop(self.set_lease(id, before)),
                // What became stale meanwhile is looked at once more, which changes nothing.
                Some(Undo::Stale(key, stale)) => {
                    self.stale.insert(key, stale);
                    continue;
                }
                None => return,
            }
            // Taking back is no change of its own.
            self.undo.pop();
        }
    }

    /// What changed since the last commit and concerns the store.
    pub fn changes(&self) -> Changes {
        let mut leases: BTreeMap<u64, &Option<Lease>> = BTreeMap::new();
        let mut holders: BTreeMap<&String, &Option<Holder>> = BTreeMap::new();
        for undo in self.undo.iter().rev() {
            match undo {
                Undo::Lease(id, before) => drop(leases.insert(*id, before)),
                Undo::Holder(key, before) => drop(holders.insert(key, before)),
                Undo::Stale(..) => {}
            }
        }
        let now = |id: &u64| self.leases.get(id);
        let leases = leases.into_iter().filter(|(id, before)| before.as_ref() != now(id));
        let restrictions = holders.into_iter().filter_map(|(key, before)| {
            let now = &self.holders.get(key)?.restrictions;
            let before = before.as_ref().map(|holder| &holder.restrictions);
            let same = before.map_or(*now == Restrictions::default(), |before| before == now);
            (!same).then(|| (key.clone(), now.clone()))
        });
        Changes {
            leases: leases.map(|(id, _)| (id, now(&id).cloned())).collect(),
            restrictions: restrictions.collect(),
        }
    }

    /// The keys of holders for which something changed since the last commit, if only the reason
    /// why they read somewhere.
    pub fn affected(&self) -> impl Iterator<Item = &String> {
        self.affected.iter()
    }

    /// What changed is stored: it cannot be taken back any more.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.affected.clear();
    }
}

fn targets(rules: Vec<Rule>) -> BTreeSet<PathBuf> {
    rules.into_iter().map(|rule| rule.target).collect()
}
