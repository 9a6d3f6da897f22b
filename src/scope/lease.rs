//! Who holds what: scope is lent along the family and returned, and no two live Pods may write one
//! path. Pure; the store keeps the same facts as rows.

mod mend;

use crate::scope::{Permission, Rule, Scope};
use std::collections::BTreeMap;

/// All holders and everything that is lent between them, by the holders' keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseTable {
    holders: BTreeMap<String, Holder>,
    loans: Vec<Lease>,
}

/// One Pod as the book knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    pub parent: Option<String>,
    /// What it was made with; it asks for the same each time it becomes live.
    pub wanted: Scope,
    pub live: bool,
    pub gaps: Gaps,
    /// Decides who is served first; a time of creation.
    pub created: u64,
}

/// Where a live holder reads although it asked for write.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Gaps {
    /// Because somebody else held it first. Closed when that one lets go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgone: Vec<Gap>,
    /// Whole rules, because its parent itself was never given it or has taken it back. Looked at
    /// anew at the next restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capped: Vec<Rule>,
}

/// Where somebody else writes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Gap {
    /// The rule of the holder that asked for write.
    pub rule: Rule,
    /// The part of it that another one has; all of it when it contains the rule.
    pub region: Rule,
}

/// A part of the lender's scope that another one has for now.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lease {
    pub lender: String,
    pub borrower: String,
    pub rule: Rule,
    pub kind: LeaseKind,
}

/// How a loan came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseKind {
    /// A parent made the borrower with it.
    Born,
    /// A person lent it.
    Lent,
}

/// Why a rule cannot be handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotLent {
    /// No rule of the lender gives as much.
    Outside,
    /// Another one got it from the lender. `has` has it now: the same one, or who has it from there.
    LentTo { to: String, has: String },
    /// Another one holds it.
    HeldBy(String),
    /// This rule of the lender's own scope forbids it.
    Denied(Rule),
    /// The borrower reads all of this region because somebody else holds it: a part of it alone
    /// would not be its to write.
    PartOf(Rule),
    /// The lender or the borrower is not live.
    NotLive(String),
}

impl LeaseTable {
    /// Adds a holder that is not live.
    pub fn add(&mut self, key: impl Into<String>, holder: Holder) {
        self.holders.insert(key.into(), holder);
    }

    /// A loan that was there already, as the store has it.
    pub fn add_loan(&mut self, loan: Lease) {
        self.loans.push(loan);
    }

    pub fn holder(&self, key: &str) -> Option<&Holder> {
        self.holders.get(key)
    }

    pub fn holders(&self) -> impl Iterator<Item = (&String, &Holder)> {
        self.holders.iter()
    }

    pub fn loans(&self) -> &[Lease] {
        &self.loans
    }

    /// What this one lent and to whom. What it got beyond its own scope stands as lent by itself,
    /// and is no such loan.
    pub fn lent_by<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Lease> {
        self.loans.iter().filter(move |loan| loan.lender == key && loan.borrower != key)
    }

    /// What a live Pod may do now; nothing when it is not live.
    pub fn held(&self, key: &str) -> Scope {
        let Some(holder) = self.holders.get(key).filter(|holder| holder.live) else {
            return Scope::default();
        };
        let mut scope = self.claim(key, holder);
        for gap in &holder.gaps.forgone {
            if gap.region.contains(&gap.rule) {
                reads(&mut scope, &gap.rule);
            } else {
                scope.deny.push(gap.region.clone());
            }
        }
        scope
    }

    /// Whether `lender` could hand this rule on now.
    pub fn may_lend(&self, lender: &str, rule: &Rule) -> Result<(), NotLent> {
        let Some(holder) = self.holders.get(lender).filter(|holder| holder.live) else {
            return Err(NotLent::NotLive(lender.into()));
        };
        let held = self.held(lender);
        if !held.allow.iter().any(|own| own.permission >= rule.permission && own.contains(rule)) {
            let forgone = |gap: &Gap| gap.rule.contains(rule);
            if holder.gaps.forgone.iter().any(forgone)
                && let Some(other) = self.writer_of(rule, lender)
            {
                return Err(NotLent::HeldBy(other));
            }
            return Err(NotLent::Outside);
        }
        if let Some(deny) = held.deny.iter().find(|deny| refuses(deny, rule)) {
            if let Some(loan) = self.lent_by(lender).find(|loan| loan.rule.overlaps(deny)) {
                let (to, has) = (loan.borrower.clone(), self.keeper(loan, rule));
                return Err(NotLent::LentTo { to, has });
            }
            if holder.gaps.forgone.iter().any(|gap| gap.region == *deny)
                && let Some(other) = self.writer_of(deny, lender)
            {
                return Err(NotLent::HeldBy(other));
            }
            return Err(NotLent::Denied(deny.clone()));
        }
        Ok(())
    }

    /// Who has all of a rule by this loan now, the borrower or the last of those it went on to.
    fn keeper(&self, loan: &Lease, rule: &Rule) -> String {
        let mut at = loan.borrower.clone();
        // A path can be lent in a circle; more steps than loans lead nowhere new.
        for _ in &self.loans {
            let on =
                |on: &&Lease| on.rule.permission == Permission::Write && on.rule.contains(rule);
            let Some(on) = self.lent_by(&at).find(on) else { break };
            at = on.borrower.clone();
        }
        at
    }

    /// What a new child of `parent` asks for: these rules, under the parent's own denies.
    pub fn child_scope(&self, parent: &str, rules: Vec<Rule>) -> Scope {
        let deny = self.holders.get(parent).map(|holder| holder.wanted.deny.clone());
        let deny = deny.unwrap_or_default();
        Scope { allow: rules, deny }
    }

    /// Makes a holder live: its parent lends it what it asks for, and where somebody else writes
    /// it reads. One that is live already changes nothing.
    pub fn go_live(&mut self, key: &str) {
        let Some(holder) = self.holders.get_mut(key).filter(|holder| !holder.live) else { return };
        holder.live = true;
        holder.gaps = Gaps::default();
        let (parent, wanted) = (holder.parent.clone(), holder.wanted.clone());
        let capped = self.beyond(parent.as_deref(), &wanted);
        self.gaps(key).capped = capped;
        self.rehome();
        if let Some(lender) = self.live_ancestor(key) {
            for rule in wanted.allow {
                if rule.permission == Permission::Write && self.is_disputed(key, &lender, &rule) {
                    continue;
                }
                let kind = LeaseKind::Born;
                let (lender, borrower) = (lender.clone(), key.to_owned());
                self.loans.push(Lease { lender, borrower, rule, kind });
            }
        }
        self.settle(&[key.to_owned()]);
    }

    /// A holder lets go of everything; what it had on loan is the lender's again, except what it
    /// lent on and is still used. Returns what went back.
    pub fn stop(&mut self, key: &str) -> Vec<Lease> {
        let Some(holder) = self.holders.get_mut(key).filter(|holder| holder.live) else {
            return Vec::new();
        };
        holder.live = false;
        holder.gaps = Gaps::default();
        let (back, rest) = std::mem::take(&mut self.loans)
            .into_iter()
            .partition::<Vec<_>, _>(|loan| loan.borrower == key);
        self.loans = rest;
        self.rehome();
        let first: Vec<String> = back.iter().map(|loan| loan.lender.clone()).collect();
        self.settle(&first);
        back
    }

    /// Forgets a holder that is not live; its children are nobody's.
    pub fn remove(&mut self, key: &str) {
        self.stop(key);
        self.holders.remove(key);
        self.loans.retain(|loan| loan.lender != key);
        for holder in self.holders.values_mut() {
            if holder.parent.as_deref() == Some(key) {
                holder.parent = None;
            }
        }
        self.settle(&[]);
    }

    /// Lends a rule to another live Pod until that one stops or it is reclaimed.
    pub fn lend(&mut self, from: &str, to: &str, rule: Rule) -> Result<(), NotLent> {
        if !self.holders.get(to).is_some_and(|holder| holder.live) {
            return Err(NotLent::NotLive(to.into()));
        }
        self.may_lend(from, &rule)?;
        let before = self.clone();
        // What was taken back from the borrower is given again.
        self.gaps(to).capped.retain(|own| !rule.contains(own));
        let (lender, borrower, kind) = (from.to_owned(), to.to_owned(), LeaseKind::Lent);
        self.loans.push(Lease { lender, borrower, rule: rule.clone(), kind });
        self.settle(&[to.to_owned()]);
        self.must_hold(to, &rule).inspect_err(|_| *self = before)
    }

    /// Whether a loan came to what it was made for.
    fn must_hold(&self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        if self.held(key).covers(rule) {
            return Ok(());
        }
        let gaps = self.holders.get(key).map(|holder| holder.gaps.forgone.as_slice());
        let around = gaps.unwrap_or_default().iter().find(|gap| gap.region.overlaps(rule));
        let denied = |key: &str| self.held(key).deny.into_iter().find(|deny| deny.overlaps(rule));
        let region = around.map(|gap| gap.region.clone()).or_else(|| denied(key));
        Err(region.map_or(NotLent::Outside, NotLent::PartOf))
    }

    /// Gives a live holder a rule beyond what it was made with, until it stops. The uppermost live
    /// ancestor gets it first and lends it down: a child is never wider than its parent.
    pub fn extend(&mut self, key: &str, rule: &Rule) -> Result<(), NotLent> {
        let mut chain = vec![key.to_owned()];
        while let Some(above) = self.live_ancestor(&chain[0]) {
            chain.insert(0, above);
        }
        if !self.holders.get(key).is_some_and(|holder| holder.live) {
            return Err(NotLent::NotLive(key.into()));
        }
        let wish = Scope::new(vec![rule.clone()]);
        let writes = |other: &&String| !wish.write_conflicts(&self.held(other)).is_empty();
        let other = self.live().filter(|other| !chain.contains(other)).find(writes).cloned();
        if let Some(other) = other {
            return Err(NotLent::HeldBy(other));
        }
        let has = chain.iter().rposition(|key| self.held(key).covers(rule));
        let (from, before) = (has.unwrap_or(0), self.clone());
        if has.is_none() {
            let (lender, borrower) = (chain[0].clone(), chain[0].clone());
            let (rule, kind) = (rule.clone(), LeaseKind::Lent);
            self.loans.push(Lease { lender, borrower, rule, kind });
            self.settle(&chain[..1]);
        }
        let mut given = self.must_hold(&chain[from], rule);
        for pair in chain[from..].windows(2) {
            given = given.and_then(|()| self.lend(&pair[0], &pair[1], rule.clone()));
        }
        given.inspect_err(|_| *self = before)
    }

    /// The loans that `reclaim` would end.
    pub fn reclaimable(&self, owner: &str, region: &Rule) -> Vec<Lease> {
        self.lent_by(owner).filter(|loan| loan.rule.overlaps(region)).cloned().collect()
    }

    /// Takes back everything lent in this region; the borrowers read there from now on, until they
    /// come back from a stop or are lent it again.
    pub fn reclaim(&mut self, owner: &str, region: &Rule) -> Vec<Lease> {
        let back = self.reclaimable(owner, region);
        self.loans.retain(|loan| !back.contains(loan));
        for loan in back.iter().filter(|loan| loan.rule.permission == Permission::Write) {
            let capped = &mut self.gaps(&loan.borrower).capped;
            if !capped.contains(&loan.rule) {
                capped.push(loan.rule.clone());
            }
        }
        self.settle(&[owner.to_owned()]);
        back
    }

    /// Who writes something that this rule speaks about, other than `but`: who has all of it, if
    /// somebody does, though parts of it may be lent on.
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

    /// The nearest ancestor that is live.
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

    /// What breaks the rules of the book, in a sentence; nothing ever does.
    pub fn fault(&self) -> Option<String> {
        let live: Vec<(&String, Scope)> = self.live().map(|key| (key, self.held(key))).collect();
        for (n, (one, held)) in live.iter().enumerate() {
            for (two, other) in &live[n + 1..] {
                if let Some(path) = held.write_conflicts(other).first() {
                    return Some(format!("{one} and {two} both write {}", path.display()));
                }
            }
        }
        let dead = |key: &String| !self.holders.get(key).is_some_and(|holder| holder.live);
        let stray = self.loans.iter().find(|loan| dead(&loan.borrower));
        stray.map(|loan| format!("{} is not live and has a loan", loan.borrower))
    }

    fn live(&self) -> impl Iterator<Item = &String> {
        self.holders.iter().filter(|(_, holder)| holder.live).map(|(key, _)| key)
    }

    fn gaps(&mut self, key: &str) -> &mut Gaps {
        &mut self.holders.entry(key.to_owned()).or_default().gaps
    }

    /// What a holder would have if nobody else wrote where it wants to.
    fn claim(&self, key: &str, holder: &Holder) -> Scope {
        let mut scope = holder.wanted.clone();
        for loan in self.loans.iter().filter(|loan| loan.borrower == key) {
            if !scope.allow.contains(&loan.rule) {
                scope.allow.push(loan.rule.clone());
            }
        }
        let writes = |loan: &&Lease| loan.rule.permission == Permission::Write;
        scope.deny.extend(self.lent_by(key).filter(writes).map(|loan| loan.rule.clone()));
        for rule in &holder.gaps.capped {
            reads(&mut scope, rule);
        }
        scope
    }

    /// The part of a wish that the parent itself was never given.
    fn beyond(&self, parent: Option<&str>, wanted: &Scope) -> Vec<Rule> {
        let Some((key, parent)) = parent.and_then(|key| Some((key, self.holders.get(key)?))) else {
            return Vec::new();
        };
        let borrowed = self.loans.iter().filter(|loan| loan.borrower == key).map(|l| &l.rule);
        let given: Vec<&Rule> = parent.wanted.allow.iter().chain(borrowed).collect();
        let covered = |rule: &Rule| {
            given.iter().any(|own| own.permission >= rule.permission && own.contains(rule))
        };
        let writes = wanted.allow.iter().filter(|rule| rule.permission == Permission::Write);
        writes.filter(|rule| !covered(rule)).cloned().collect()
    }

    /// Whether somebody other than the lender writes where this new borrower wants to.
    fn is_disputed(&self, key: &str, lender: &str, rule: &Rule) -> bool {
        let Some(holder) = self.holders.get(key) else { return false };
        let mut claim = self.claim(key, holder);
        claim.allow = vec![rule.clone()];
        let mut others = self.live().filter(|other| *other != key && *other != lender);
        others.any(|other| !claim.write_conflicts(&self.held(other)).is_empty())
    }

    /// Loans along the family belong to the nearest live ancestor, or to the parent when none is.
    fn rehome(&mut self) {
        for n in 0..self.loans.len() {
            if self.loans[n].kind == LeaseKind::Lent {
                continue;
            }
            let borrower = self.loans[n].borrower.clone();
            let parent = self.holders.get(&borrower).and_then(|holder| holder.parent.clone());
            if let Some(lender) = self.live_ancestor(&borrower).or(parent) {
                self.loans[n].lender = lender;
            }
        }
    }

    /// Looks anew at what everybody has to forgo. Who may have gained something goes first: the
    /// others then see what it took, and nobody ever writes where another one does.
    fn settle(&mut self, first: &[String]) {
        let mut order: Vec<String> = self.live().cloned().collect();
        order.sort_by_key(|key| {
            let rank = first.iter().position(|name| name == key).unwrap_or(first.len());
            (rank, self.holders.get(key).map_or(0, |holder| holder.created), key.clone())
        });
        let mut held = self.all_held();
        for key in order {
            let forgone = self.forgone(&key, &held);
            self.gaps(&key).forgone = forgone;
            held.insert(key.clone(), self.held(&key));
        }
    }

    /// What each live holder may do now.
    fn all_held(&self) -> BTreeMap<String, Scope> {
        self.live().map(|key| (key.clone(), self.held(key))).collect()
    }

    /// Where others write that this one would, by what all of them hold.
    fn forgone(&self, key: &str, held: &BTreeMap<String, Scope>) -> Vec<Gap> {
        let Some(holder) = self.holders.get(key) else { return Vec::new() };
        let claim = self.claim(key, holder);
        let others = held.iter().filter(|(other, _)| *other != key).map(|(_, held)| held);
        let mut gaps = Vec::new();
        for rule in claim.allow.iter().filter(|rule| rule.permission == Permission::Write) {
            let one = Scope { allow: vec![rule.clone()], deny: claim.deny.clone() };
            for region in others.clone().flat_map(|held| one.write_overlaps(held)) {
                let gap = Gap { rule: rule.clone(), region };
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
            }
        }
        gaps
    }
}

/// Takes the right to write out of this very rule of a scope.
fn reads(scope: &mut Scope, rule: &Rule) {
    for own in scope.allow.iter_mut().filter(|own| *own == rule) {
        own.permission = Permission::Read;
    }
}

/// Whether a deny of the lender stands in the way: it narrows what the rule would give. Parts
/// nobody may read stay denied to the borrower instead.
fn refuses(deny: &Rule, rule: &Rule) -> bool {
    match deny.permission {
        Permission::Read => deny.contains(rule),
        Permission::Write => rule.permission == Permission::Write && deny.overlaps(rule),
    }
}

#[cfg(test)]
mod tests;
