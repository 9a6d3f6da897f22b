//! Reclaim: a person takes back what a Pod lent around a path.

use crate::host::paths::canonical;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Lent, Refusal};
use crate::scope::{Permission, Rule};
use std::path::PathBuf;

pub(crate) struct Reclaim {
    pub(crate) path: PathBuf,
}

impl Verb for Reclaim {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let owner = cx.pod()?.name;
        let region = Rule::new(canonical(&cx, &self.path).await?, Permission::Write);
        crate::crash_point!("reclaim-asked");
        let leases = cx.family(move |family| {
            let back = family.table.reclaim(&owner.key(), &region);
            let lent = back.into_iter().filter_map(|lease| {
                Some(Lent { to: family.name_of(&lease.borrower)?, rule: lease.rule })
            });
            let lent: Vec<Lent> = lent.collect();
            if lent.is_empty() {
                let text = format!("`{owner}` has lent nothing at {}", region.target.display());
                return Err(Refusal::invalid(text));
            }
            family.must_be_unused();
            Ok(lent)
        });
        let leases = leases.await?;
        crate::crash_point!("reclaim-stored");
        Ok(Event::Reclaimed { leases })
    }
}
