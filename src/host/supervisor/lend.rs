//! Lending by a person: a path goes from one live Pod to another and comes back.

use crate::host::supervisor::canonical::canonical;
use crate::host::supervisor::{Supervisor, done};
use crate::protocol::{Event, Lent, PathHolder, PodName, Refusal};
use crate::scope::lease::NotLent;
use crate::scope::{Permission, Rule};
use crate::store::Change;
use std::path::{Path, PathBuf};

impl Supervisor {
    /// Lends a part of one Pod's scope to another one.
    pub(super) async fn lend(
        &mut self,
        from: &PodName,
        to: &str,
        rule: Rule,
    ) -> Result<Event, Refusal> {
        let (from, to) = (self.pod(from)?.name, self.named(to)?);
        if from.key() == to.key() {
            return Err(Refusal::invalid(format!("`{from}` has it already")));
        }
        let rule = Rule { target: absolute(&rule.target)?, ..rule };
        let mut next = self.book.clone();
        match next.lend(&from.key(), &to.key(), rule.clone()) {
            Ok(()) => {}
            Err(NotLent::NotLive(_)) => {
                let text = format!("both `{from}` and `{to}` must be live; :restore comes first");
                return Err(Refusal::invalid(text));
            }
            Err(why) => return Err(self.not_within(&from, &rule, &why)),
        }
        self.commit_leases_if_unused(next, Change::default()).await?;
        crate::crash_point!("lend-stored");
        Ok(done())
    }

    /// Takes back what was lent around a path.
    pub(super) async fn reclaim(
        &mut self,
        owner: &PodName,
        path: PathBuf,
    ) -> Result<Event, Refusal> {
        let owner = self.pod(owner)?.name;
        let region = Rule::new(absolute(&path)?, Permission::Write);
        let mut loans = Vec::new();
        for loan in self.book.reclaimable(&owner.key(), &region) {
            let Some(to) = self.name_of(&loan.borrower) else { continue };
            loans.push(Lent { to, rule: loan.rule });
        }
        if loans.is_empty() {
            let text = format!("`{owner}` has lent nothing at {}", region.target.display());
            return Err(Refusal::invalid(text));
        }
        let mut next = self.book.clone();
        next.reclaim(&owner.key(), &region);
        crate::crash_point!("reclaim-asked");
        self.commit_leases_if_unused(next, Change::default()).await?;
        crate::crash_point!("reclaim-stored");
        Ok(Event::Reclaimed { loans })
    }

    /// Who may do what with a path.
    pub(super) fn who(&self, path: PathBuf) -> Result<Event, Refusal> {
        let path = absolute(&path)?;
        let mut holders = Vec::new();
        for (key, holder) in self.book.holders().filter(|(_, holder)| holder.live) {
            let held = self.book.held(key).permission(&path);
            let (Some(permission), Some(pod)) = (held, self.name_of(key)) else { continue };
            let loan = self
                .book
                .borrowed_by(key)
                .find(|loan| loan.rule.permission >= permission && loan.rule.covers(&path));
            let lender = loan.and_then(|loan| self.name_of(&loan.lender));
            holders.push((holder.created, PathHolder { pod, permission, lender }));
        }
        holders.sort_by_key(|(created, holder)| (holder.permission < Permission::Write, *created));
        Ok(Event::Holders { holders: holders.into_iter().map(|(_, holder)| holder).collect() })
    }

    fn named(&self, name: &str) -> Result<PodName, Refusal> {
        let parsed = PodName::parse(name).map_err(|e| Refusal::invalid(e.to_string()))?;
        Ok(self.pod(&parsed)?.name)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    canonical(path)
        .ok_or_else(|| Refusal::invalid(format!("{} is no absolute path", path.display())))
}
