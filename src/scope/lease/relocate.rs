//! Holders whose directory was moved: their rules, and what they lent or borrowed, follow it.

use crate::scope::lease::{Blocked, Holder, Lease, LeaseTable, Reclaimed, Restrictions};
use std::path::Path;

impl LeaseTable {
    /// Rewrites every rule of these holders at or below `from` to its place in `to`, with the leases that they gave and
    /// got. A path that another holder writes at the new place becomes read-only.
    pub fn relocate(&mut self, keys: &[String], from: &Path, to: &Path) {
        for key in keys {
            self.mark_around_writes(key);
        }
        let ids: Vec<u64> = keys
            .iter()
            .flat_map(|key| self.lent_ids(key).chain(self.borrowed_ids(key)).collect::<Vec<_>>())
            .collect();
        for id in ids {
            // A lease between two of them is met twice, and the second time it stays as it is.
            if let Some(lease) = self.lease(id).cloned() {
                let rule = lease.rule.relocated(from, to);
                if rule != lease.rule {
                    self.mark_whole(&lease.lender);
                    self.mark_whole(&lease.borrower);
                    self.set_lease(id, Some(Lease { rule, ..lease }));
                }
            }
        }
        for key in keys {
            if let Some(holder) = self.holder(key).cloned() {
                let wanted = holder.wanted.relocated(from, to);
                let restrictions = holder.restrictions.relocated(from, to);
                self.set_holder(key, Some(Holder { wanted, restrictions, ..holder }));
                self.mark_whole(key);
            }
        }
        for key in keys {
            self.mark_around_writes(key);
        }
        self.recompute(&[]);
    }

    fn mark_around_writes(&mut self, key: &str) {
        for rule in self.writes(key) {
            self.mark_around(&rule, key);
        }
    }
}

impl Restrictions {
    fn relocated(&self, from: &Path, to: &Path) -> Self {
        let blocked = |blocked: &Blocked| Blocked {
            rule: blocked.rule.relocated(from, to),
            region: blocked.region.relocated(from, to),
        };
        let reclaimed = |reclaimed: &Reclaimed| Reclaimed {
            by: reclaimed.by.clone(),
            rule: reclaimed.rule.relocated(from, to),
        };
        Self {
            blocked: self.blocked.iter().map(blocked).collect(),
            capped: self.capped.iter().map(|rule| rule.relocated(from, to)).collect(),
            reclaimed: self.reclaimed.iter().map(reclaimed).collect(),
        }
    }
}
