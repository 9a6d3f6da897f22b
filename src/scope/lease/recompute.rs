//! Recomputes which of two live Pods writes a path that both want. Visits only the holders that a
//! change can affect, in the order of a full recomputation.

use crate::scope::lease::table::Undo;
use crate::scope::lease::{Blocked, Holder, LeaseTable};
use crate::scope::{Permission, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// With more regions a full recomputation is not slower.
const MANY_REGIONS: usize = 256;

/// The part of a holder's restrictions that may be outdated.
#[derive(Clone, Debug)]
pub enum Stale {
    Whole,
    /// What overlaps one of these.
    Regions(Vec<Rule>),
}

/// The rules of a holder that are compared with the writers of a path.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// The rules by which it would write if no other Pod did.
    Claims,
    /// Where it writes.
    Writes,
}

impl LeaseTable {
    pub(super) fn mark_whole(&mut self, key: &str) {
        self.stale.insert(key.to_owned(), Stale::Whole);
        self.newly_stale.push(key.to_owned());
        self.affect(key);
    }

    /// Something changed for this holder at a region.
    pub(super) fn mark(&mut self, key: &str, region: &Rule) {
        let stale = self.stale.entry(key.to_owned()).or_insert(Stale::Regions(Vec::new()));
        if let Stale::Regions(regions) = stale {
            if !regions.contains(region) {
                regions.push(region.clone());
            }
            if regions.len() > MANY_REGIONS {
                *stale = Stale::Whole;
            }
        }
        self.newly_stale.push(key.to_owned());
        self.affect(key);
    }

    /// Something changed for every other holder that wants to write at a region.
    pub(super) fn mark_around(&mut self, region: &Rule, but: &str) {
        let keys = self.claims.around(&region.target);
        let others: Vec<String> = keys.into_iter().filter(|key| *key != but).cloned().collect();
        for key in others {
            self.mark(&key, region);
        }
    }

    /// Determines where a holder that has just become live may write; only those regions affect the
    /// others. Where it may not write, nothing changes for them: they have not seen it write there.
    pub(super) fn look_around(&mut self, key: &str) {
        self.mark_whole(key);
        self.look(key);
        for rule in self.writes(key) {
            self.mark_around(&rule, key);
        }
    }

    /// Recomputes the restrictions of every affected holder: first those whose turn lasts, of these and of the others first
    /// those in `first`, which may have gained access, then the oldest. Later ones see the paths that are taken, so no two
    /// Pods write one path.
    pub(super) fn recompute(&mut self, first: &[String]) {
        let ranks: BTreeMap<&String, usize> =
            first.iter().enumerate().rev().map(|(rank, key)| (key, rank)).collect();
        let place = |key: &String, holder: &Holder| {
            let rank = ranks.get(key).copied().unwrap_or(first.len());
            (holder.turn.is_none(), rank, holder.created, key.clone())
        };
        self.newly_stale = self.stale.keys().cloned().collect();
        let (mut queue, mut now) = (BTreeSet::new(), None);
        loop {
            for key in std::mem::take(&mut self.newly_stale) {
                match self.holder(&key).filter(|holder| holder.live) {
                    // A holder that was visited already is visited by the next recomputation.
                    Some(holder) => {
                        let place = Some(place(&key, holder));
                        if place > now {
                            queue.insert(place);
                        }
                    }
                    None => drop(self.stale.remove(&key)),
                }
            }
            let Some(next) = queue.pop_first() else { return };
            if let Some((_, _, _, key)) = &next {
                for region in self.look(key) {
                    self.mark_around(&region, key);
                }
            }
            now = next;
        }
    }

    /// Recomputes the stale part of a holder's restrictions. Returns the regions where it may write now and could not
    /// before, or the reverse.
    fn look(&mut self, key: &str) -> Vec<Rule> {
        let Some(stale) = self.stale.remove(key) else { return Vec::new() };
        let Some(mut holder) = self.holder(key).cloned() else { return Vec::new() };
        let before = std::mem::take(&mut holder.restrictions.blocked);
        let regions = match &stale {
            Stale::Whole => None,
            Stale::Regions(regions) => Some(regions.as_slice()),
        };
        self.remember(Undo::Stale(key.to_owned(), stale.clone()));
        let after = self.blocked(key, &before, regions);
        if after == before {
            return Vec::new();
        }
        let changed = before
            .iter()
            .filter(|old| !after.contains(old))
            .chain(after.iter().filter(|new| !before.contains(new)))
            .map(|b| if b.is_whole() { b.rule.clone() } else { b.region.clone() })
            .collect();
        holder.restrictions.blocked = after;
        self.set_holder(key, Some(holder));
        changed
    }

    /// The regions of this holder's claims that others write; unchanged outside of `regions`.
    fn blocked(&self, key: &str, before: &[Blocked], regions: Option<&[Rule]>) -> Vec<Blocked> {
        let concerned =
            |region: &Rule| regions.is_none_or(|all| all.iter().any(|one| one.overlaps(region)));
        let claimed = self.claimed(key);
        let kept = before.iter().filter(|b| !concerned(&b.region) && claimed.contains(&b.rule));
        let mut found: Vec<Blocked> = kept.cloned().collect();
        for rule in &claimed {
            for (_, region) in self.conflicts(key, rule, Side::Claims, regions) {
                if concerned(&region) {
                    found.push(Blocked { rule: rule.clone(), region });
                }
            }
        }
        found.sort_by(|a, b| place(a).cmp(&place(b)));
        found.dedup();
        found
    }

    /// The regions that other Pods write in a rule of this one. Only near `regions`, if given.
    pub(super) fn conflicts(
        &self,
        key: &str,
        rule: &Rule,
        side: Side,
        regions: Option<&[Rule]>,
    ) -> Vec<(String, Rule)> {
        let mut found = Vec::new();
        for other in self.near(rule, regions).into_iter().filter(|other| *other != key) {
            for theirs in self.writes(other) {
                let Some(region) = rule.shared(&theirs) else { continue };
                let hidden = match side {
                    Side::Claims => {
                        self.claim_hides(key, &region) || self.yields(other, &theirs, key)
                    }
                    Side::Writes => self.hides(key, &region),
                };
                if !hidden && !self.hides(other, &region) {
                    found.push((other.clone(), region));
                }
            }
        }
        found
    }

    fn near(&self, rule: &Rule, regions: Option<&[Rule]>) -> BTreeSet<&String> {
        match regions {
            None => self.writers.around(&rule.target),
            Some(regions) => {
                let near = regions.iter().filter(|region| region.overlaps(rule));
                near.flat_map(|region| self.writers.around(&region.target)).collect()
            }
        }
    }

    /// The Pods that write in the region of this rule, by key.
    pub(super) fn writers_at(&self, rule: &Rule, but: impl Fn(&str) -> bool) -> Vec<String> {
        let rule = Rule { permission: Permission::Write, ..rule.clone() };
        let others = self.writers.around(&rule.target).into_iter().filter(|key| !but(key));
        let writes = |key: &&String| {
            let regions = self.writes(key).into_iter().filter_map(|own| rule.shared(&own));
            regions.into_iter().any(|region| !self.hides(key, &region))
        };
        others.filter(writes).cloned().collect()
    }
}

/// The sort key of restrictions: their paths.
fn place(blocked: &Blocked) -> (&std::path::Path, bool, &std::path::Path, bool) {
    let Blocked { rule, region } = blocked;
    (&rule.target, rule.recursive, &region.target, region.recursive)
}
