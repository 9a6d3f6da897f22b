//! Pods that want to write the same paths take turns. A turn lasts as long as a run: what the Pod wants to write and a
//! Pod at rest writes is its own from then on. A Pod is at rest while no Pod of its family writes in a turn. What was lent
//! stays lent, whoever rests.

use crate::scope::Rule;
use crate::scope::lease::{Holder, LeaseTable};
use std::collections::BTreeSet;

/// The number of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u64);

#[cfg(test)]
impl Turn {
    pub(super) fn of(number: u64) -> Self {
        Self(number)
    }
}

impl LeaseTable {
    /// Begins a turn of a live Pod; it takes the place of an earlier one of the same Pod.
    pub fn begin_turn(&mut self, key: &str) -> Option<Turn> {
        let holder = self.holder(key).filter(|holder| holder.live).cloned()?;
        self.turns += 1;
        let turn = Turn(self.turns);
        self.set_holder(key, Some(Holder { turn: Some(turn), ..holder }));
        self.mark_whole(key);
        self.mark_waiting();
        self.recompute(&[key.to_owned()]);
        Some(turn)
    }

    /// Ends this turn of a Pod, unless it has ended or another one has begun. Where the family of the Pod is at rest then,
    /// others write whose turn lasts.
    pub fn end_turn(&mut self, key: &str, turn: Turn) {
        self.forget_turn(key, turn);
        self.recompute(&[]);
    }

    /// Ends this turn, and leaves it to the next recomputation who writes then.
    pub fn forget_turn(&mut self, key: &str, turn: Turn) {
        if let Some(holder) = self.holder(key).filter(|holder| holder.turn == Some(turn)).cloned() {
            self.set_holder(key, Some(Holder { turn: None, ..holder }));
            self.mark_waiting();
        }
    }

    /// Gives a Pod what it would get by a turn, before something of it is lent.
    pub(super) fn take_back(&mut self, key: &str) {
        let lacks =
            |holder: &&Holder| holder.turn.is_none() && !holder.restrictions.blocked.is_empty();
        if self.holder(key).filter(lacks).is_some()
            && let Some(turn) = self.begin_turn(key)
        {
            self.end_turn(key, turn);
        }
    }

    /// The Pods that write where this one wants to, although its turn lasts; without those below it, which work for it.
    pub fn in_the_way_of(&self, key: &str) -> BTreeSet<String> {
        self.in_the_way_at(key, |_| true)
    }

    /// Those of them that write in one of the regions that count.
    pub fn in_the_way_at(&self, key: &str, counts: impl Fn(&Rule) -> bool) -> BTreeSet<String> {
        let blocked = self.holder(key).map(|holder| holder.restrictions.blocked.as_slice());
        let regions = blocked.unwrap_or_default().iter().map(|blocked| &blocked.region);
        let regions = regions.filter(|region| counts(region));
        let passed = |other: &str| other == key || self.is_below(other, key);
        regions.flat_map(|region| self.writers_at(region, passed)).collect()
    }

    /// Where in this region another Pod writes and keeps it: all of it while the turn of `key` lasts, else what was lent.
    /// For a Pod at rest no other is in the way, not even one in a turn: that ends, and until then the run itself says
    /// where it reads.
    pub fn kept_in(&self, region: &Rule, key: &str) -> Vec<(String, Rule)> {
        let writers = self.writers_at(region, |other| other == key);
        if self.has_turn(key) {
            let widest = self.widest(region, writers);
            return widest.map(|other| (other, region.clone())).into_iter().collect();
        }
        let mut kept: Vec<(String, Rule)> = Vec::new();
        for other in writers {
            let lent = self.lent_writes(&other).filter_map(|rule| region.shared(&rule));
            kept.extend(lent.map(|rule| (other.clone(), rule)));
        }
        let all: Vec<Rule> = kept.iter().map(|(_, rule)| rule.clone()).collect();
        kept.retain(|(_, rule)| !all.iter().any(|wider| wider != rule && wider.contains(rule)));
        kept
    }

    /// A Pod may be at rest now: looks again at what Pods whose turn lasts cannot write.
    pub(super) fn mark_waiting(&mut self) {
        let blocked =
            |key: &String| Some((key.clone(), self.holder(key)?.restrictions.blocked.clone()));
        for (key, blocked) in self.in_turn.iter().filter_map(blocked).collect::<Vec<_>>() {
            for blocked in blocked {
                self.mark(&key, &blocked.region);
            }
        }
    }

    /// Whether `other` does not write by this rule where `key` wants to, because the turn of `key` lasts: `other` would
    /// give it up, since the rule was not lent to it and its family is at rest. A Pod below `key` keeps what it has: one that
    /// came back before its parent was lent nothing.
    pub(super) fn yields(&self, other: &str, rule: &Rule, key: &str) -> bool {
        self.has_turn(key)
            && !self.is_lent(other, rule)
            && !self.is_below(other, key)
            && self.is_at_rest(other, key)
    }

    /// Whether no Pod in the family of this one, but for `key`, writes in a turn.
    pub fn is_at_rest(&self, other: &str, key: &str) -> bool {
        let root = self.root_of(other);
        let writes =
            |member: &String| self.root_of(member) == root && !self.writes(member).is_empty();
        !self.in_turn.iter().any(|member| member != key && writes(member))
    }

    /// Whether the turn of a Pod lasts.
    pub fn has_turn(&self, key: &str) -> bool {
        self.holder(key).is_some_and(|holder| holder.turn.is_some())
    }

    /// Whether a Pod would write in this region if no other one did.
    pub fn wants(&self, key: &str, region: &Rule) -> bool {
        self.claimed(key).iter().any(|rule| rule.overlaps(region))
    }

    /// Whether another Pod lent what `key` writes by this rule. A lease to read says nothing about that.
    fn is_lent(&self, key: &str, rule: &Rule) -> bool {
        self.borrowed_by(key).any(|lease| lease.takes() && lease.rule.contains(rule))
    }

    /// Whether another Pod lent what this one writes in a region: no turn of a third one ends that.
    pub fn was_lent(&self, key: &str, region: &Rule) -> bool {
        self.lent_writes(key).any(|rule| rule.overlaps(region))
    }

    /// The rules by which a Pod writes what another one lent it.
    fn lent_writes(&self, key: &str) -> impl Iterator<Item = Rule> {
        self.writes(key).into_iter().filter(move |rule| self.is_lent(key, rule))
    }

    fn is_below(&self, key: &str, above: &str) -> bool {
        self.above(key).iter().any(|other| other == above)
    }

    /// The root of the tree that this Pod is in.
    fn root_of(&self, key: &str) -> String {
        self.above(key).pop().unwrap_or_else(|| key.to_owned())
    }
}
