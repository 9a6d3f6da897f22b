//! Reclaim: a person takes back what a Pod lent around a path.

use crate::host::paths::canonical;
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Lent, PodName, Refusal};
use crate::scope::lease::Lease;
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
            let (kept, taken): (Vec<Lease>, Vec<Lease>) =
                back.into_iter().partition(|lease| still_reads(family, lease));
            if taken.is_empty() {
                return Err(nothing(family, &owner, &region, &kept));
            }
            family.must_be_unused();
            let lent = taken.into_iter().filter_map(|lease| {
                Some(Lent { to: family.name_of(&lease.borrower)?, rule: lease.rule })
            });
            Ok(lent.collect())
        });
        let leases = leases.await?;
        crate::crash_point!("reclaim-stored");
        Ok(Event::Reclaimed { leases })
    }
}

/// Whether the borrower of a lease for reading reads there without it: by the scope that it was
/// made with, or by another lease.
fn still_reads(family: &Family, lease: &Lease) -> bool {
    let held = || family.table.held(&lease.borrower).permission(&lease.rule.target);
    lease.rule.permission == Permission::Read && held().is_some()
}

/// The refusal of a reclaim that takes nothing; `kept` are the leases whose borrowers still read.
fn nothing(family: &Family, owner: &PodName, region: &Rule, kept: &[Lease]) -> Refusal {
    let path = region.target.display();
    let mut readers: Vec<String> =
        kept.iter().map(|lease| format!("`{}`", family.named(&lease.borrower))).collect();
    readers.sort();
    readers.dedup();
    let verb = if readers.len() == 1 { "reads" } else { "read" };
    Refusal::invalid(match readers.as_slice() {
        [] => format!("`{owner}` has lent nothing at {path}"),
        readers => format!(
            "nothing can be taken back at {path}: {} still {verb} there by \
             a scope given for as long as a pod is live; :stop ends that",
            readers.join(", ")
        ),
    })
}
