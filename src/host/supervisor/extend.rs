//! Scope beyond what a Pod was made with, because a person allowed it.

use crate::host::supervisor::{Supervisor, done};
use crate::protocol::{Event, PodName, Refusal};
use crate::scope::Rule;
use crate::scope::lease::NotLent;
use crate::store::{Change, Decided};

impl Supervisor {
    /// Gives a live Pod one more rule until it stops. Its ancestors get it and lend it down, so a
    /// child is never wider than its parent. The answer that allows it is stored with it: neither is
    /// there without the other.
    pub(super) async fn extend(
        &mut self,
        name: &PodName,
        rule: Rule,
        decided: Option<Decided>,
    ) -> Result<Event, Refusal> {
        let handle = self.pod(name)?;
        let own = self.shared.dirs.own();
        if own.iter().any(|dir| rule.target.starts_with(dir) || dir.starts_with(&rule.target)) {
            let text = format!("{} is yoi's own; no pod is given that", rule.target.display());
            return Err(Refusal::invalid(text));
        }
        let mut next = self.book.clone();
        match next.extend(&handle.name.key(), &rule) {
            Ok(()) => {}
            Err(NotLent::HeldBy(other)) => {
                let other = self.name_of(&other).map_or(other, |name| name.to_string());
                return Err(Refusal::invalid(format!(
                    "`{other}` holds write on {}; :lend {other} {name} {} shares it",
                    rule.target.display(),
                    rule.target.display()
                )));
            }
            Err(why) => return Err(self.not_within(name, &rule, &why)),
        }
        self.commit_leases_if_unused(next, Change { answer: decided, ..Change::default() }).await?;
        crate::crash_point!("extend-stored");
        Ok(done())
    }
}
