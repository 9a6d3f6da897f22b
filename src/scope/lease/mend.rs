//! A book whose records do not add up is written anew from what every holder was made with.

use crate::scope::lease::{Lease, LeaseKind, LeaseTable};

impl LeaseTable {
    /// Lends everything anew when a record is missing: to those that are live, first the ones whose
    /// parent is lost, so that they keep what they had, then the oldest first; at last what persons
    /// lent, where that is still possible. Returns whether anything was wrong.
    pub fn mend(&mut self) -> bool {
        if self.fault().is_none() && !self.has_strays() {
            return false;
        }
        let mut live: Vec<String> = self.live().cloned().collect();
        live.sort_by_key(|key| (!self.is_orphan(key), self.holders[key].created));
        let loans = std::mem::take(&mut self.loans);
        for holder in self.holders.values_mut() {
            holder.live = false;
        }
        for key in live {
            self.go_live(&key);
        }
        for Lease { lender, borrower, rule, .. } in
            loans.into_iter().filter(|loan| loan.kind == LeaseKind::Lent)
        {
            // What cannot be lent any more is back with who lent it.
            let _ = if lender == borrower {
                self.extend(&borrower, &rule)
            } else {
                self.lend(&lender, &borrower, rule)
            };
        }
        true
    }

    /// Whether it has a parent that the book does not know.
    fn is_orphan(&self, key: &str) -> bool {
        let parent = self.holders[key].parent.as_ref();
        parent.is_some_and(|parent| !self.holders.contains_key(parent))
    }

    /// Whether somebody lends whom the book does not know.
    fn has_strays(&self) -> bool {
        self.loans.iter().any(|loan| !self.holders.contains_key(&loan.lender))
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
    fn book() -> LeaseTable {
        let mut book = LeaseTable::default();
        for (n, (key, parent, at)) in
            [("p", None, "/w"), ("kid", Some("p"), "/w/a"), ("z", None, "/z")].iter().enumerate()
        {
            let wanted = Scope::new(vec![write(at)]);
            let parent = parent.map(str::to_owned);
            let created = n as u64;
            book.add(*key, Holder { parent, wanted, created, ..Holder::default() });
            book.go_live(key);
        }
        book.lend("p", "z", write("/w/b")).unwrap();
        book
    }

    #[test]
    fn a_book_that_adds_up_is_left_alone() {
        let mut whole = book();
        assert!(!whole.mend());
        assert_eq!(whole, book());
    }

    #[test]
    fn a_lost_record_of_a_loan_is_written_anew() {
        let mut torn = book();
        torn.loans.remove(0);
        assert!(torn.fault().is_some());
        assert!(torn.mend());
        assert_eq!(torn, book());
    }

    #[test]
    fn what_was_lent_to_nobody_is_the_lenders_again() {
        let mut torn = book();
        torn.holders.remove("kid");
        assert!(torn.mend());
        assert_eq!(torn.fault(), None);
        assert!(torn.held("p").covers(&write("/w/a")));
        assert!(torn.held("z").covers(&write("/w/b")));
    }

    #[test]
    fn who_lost_its_parent_keeps_what_it_had() {
        let mut torn = book();
        let wanted = Scope::new(vec![write("/w/a/b")]);
        let parent = Some("kid".to_owned());
        torn.add("sub", Holder { parent, wanted, created: 9, ..Holder::default() });
        torn.go_live("sub");
        torn.holders.remove("kid");
        assert!(torn.mend());
        assert_eq!(torn.fault(), None);
        assert!(torn.held("sub").covers(&write("/w/a/b")));
        assert!(torn.held("p").covers(&write("/w/a/c")));
        assert!(!torn.held("p").covers(&write("/w/a/b")));
    }

    #[test]
    fn a_loan_of_somebody_unknown_is_forgotten() {
        let mut torn = book();
        let stray = Lease {
            lender: "ghost".into(),
            borrower: "kid".into(),
            rule: write("/g"),
            kind: LeaseKind::Born,
        };
        torn.add_loan(stray);
        assert!(torn.mend());
        assert_eq!(torn, book());
    }
}
