//! Rebuilds a table with inconsistent records from the initial scopes of its holders.

use crate::scope::lease::{Holder, Lease, LeaseKind, LeaseTable};

impl LeaseTable {
    /// Rebuilds the leases of all live Pods when a record is missing: first of Pods whose parent is
    /// lost, so that they keep their scopes, then the oldest first; at last the leases by persons
    /// and rules, where that is still possible. Returns whether anything was wrong.
    pub fn mend(&mut self) -> bool {
        if self.fault().is_none() && !self.has_strays() {
            return false;
        }
        let mut live: Vec<(bool, u64, String)> = Vec::new();
        for (key, holder) in self.holders().filter(|(_, holder)| holder.live) {
            live.push((!self.is_orphan(holder), holder.created, key.clone()));
        }
        live.sort_unstable();
        let lent: Vec<Lease> = self.take_leases();
        let lent = lent.into_iter().filter(|lease| lease.kind != LeaseKind::Born);
        let live: Vec<String> = live.into_iter().map(|(_, _, key)| key).collect();
        for key in &live {
            if let Some(holder) = self.holder(key).cloned() {
                self.set_holder(key, Some(Holder { live: false, ..holder }));
            }
        }
        // At once: a recomputation after each of many Pods in one workspace would be quadratic.
        self.go_live_all(&live);
        for Lease { lender, borrower, rule, kind } in lent {
            // A lease that is no longer possible returns to its lender.
            let _ = if lender == borrower {
                self.extend(&borrower, &rule)
            } else {
                self.lend_as(kind, &lender, &borrower, rule)
            };
        }
        true
    }

    /// Whether it has a parent that the table does not know.
    fn is_orphan(&self, holder: &Holder) -> bool {
        holder.parent.as_ref().is_some_and(|parent| self.holder(parent).is_none())
    }

    /// Whether a lease has a lender that the table does not know.
    fn has_strays(&self) -> bool {
        self.leases().any(|lease| self.holder(&lease.lender).is_none())
    }
}

#[cfg(test)]
mod tests {
    use crate::scope::lease::{Holder, Lease, LeaseKind, LeaseTable};
    use crate::scope::{Permission, Rule, Scope};

    fn write(target: &str) -> Rule {
        Rule::new(target, Permission::Write)
    }

    /// p writes /w and lent /w/a to its child and /w/b, as a person wished, to z.
    fn table() -> LeaseTable {
        let mut table = LeaseTable::default();
        for (n, (key, parent, at)) in
            [("p", None, "/w"), ("kid", Some("p"), "/w/a"), ("z", None, "/z")].iter().enumerate()
        {
            let wanted = Scope::new(vec![write(at)]);
            let parent = parent.map(str::to_owned);
            let created = n as u64;
            table.add(*key, Holder { parent, wanted, created, ..Holder::default() });
            table.go_live(key);
        }
        table.lend("p", "z", write("/w/b")).unwrap();
        table
    }

    #[test]
    fn a_table_that_adds_up_is_left_alone() {
        let mut whole = table();
        assert!(!whole.mend());
        assert_eq!(whole, table());
    }

    #[test]
    fn a_lost_record_of_a_lease_is_written_anew() {
        let mut torn = table();
        let first = torn.lease_ids()[0];
        torn.set_lease(first, None);
        assert!(torn.fault().is_some());
        assert!(torn.mend());
        assert_eq!(torn, table());
    }

    #[test]
    fn what_was_lent_to_a_lost_pod_is_the_lenders_again() {
        let mut torn = table();
        torn.set_holder("kid", None);
        assert!(torn.mend());
        assert_eq!(torn.fault(), None);
        assert!(torn.held("p").covers(&write("/w/a")));
        assert!(torn.held("z").covers(&write("/w/b")));
    }

    #[test]
    fn a_pod_whose_parent_is_lost_keeps_what_it_had() {
        let mut torn = table();
        let wanted = Scope::new(vec![write("/w/a/b")]);
        let parent = Some("kid".to_owned());
        torn.add("sub", Holder { parent, wanted, created: 9, ..Holder::default() });
        torn.go_live("sub");
        torn.set_holder("kid", None);
        assert!(torn.mend());
        assert_eq!(torn.fault(), None);
        assert!(torn.held("sub").covers(&write("/w/a/b")));
        assert!(torn.held("p").covers(&write("/w/a/c")));
        assert!(!torn.held("p").covers(&write("/w/a/b")));
    }

    #[test]
    fn a_lease_of_an_unknown_lender_is_forgotten() {
        let mut torn = table();
        let stray = Lease {
            lender: "ghost".into(),
            borrower: "kid".into(),
            rule: write("/g"),
            kind: LeaseKind::Born,
        };
        torn.load_lease(99, stray);
        assert!(torn.mend());
        assert_eq!(torn, table());
    }
}
