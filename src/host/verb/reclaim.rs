//! Reclaim: a person takes back what a Pod lent around a path.

use crate::host::paths::canonical;
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Lent, PodName, Refusal, WhileRunning};
use crate::scope::lease::Lease;
use crate::scope::{Permission, Rule};
use std::path::PathBuf;

pub(crate) struct Reclaim {
    pub(crate) path: PathBuf,
    pub(crate) running: WhileRunning,
}

impl Verb for Reclaim {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let owner = cx.pod()?.name;
        let region = Rule::new(canonical(&cx, &self.path).await?, Permission::Write);
        crate::crash_point!("reclaim-asked");
        let reclaimed = cx.family_when_unused(self.running, move |family: &mut Family| {
            let around: Vec<Lease> =
                family.table.lent_around(&owner.key(), &region).cloned().collect();
            let taken = family.table.reclaim(&owner.key(), &region);
            if taken.is_empty() {
                return Err(nothing(family, &owner, &region, &around));
            }
            family.must_be_unused();
            let leases = taken.iter().map(|lease| lent(family, lease, lease.rule.permission));
            let leases = leases.collect::<Result<_, _>>()?;
            Ok(Event::Reclaimed { leases, left: left(family, &around)? })
        });
        let reclaimed = reclaimed.await?;
        crate::crash_point!("reclaim-stored");
        Ok(reclaimed)
    }
}

/// What the borrowers of these leases may do there now, each once.
fn left(family: &Family, leases: &[Lease]) -> Result<Vec<Lent>, Refusal> {
    let mut left: Vec<Lent> = Vec::new();
    for lease in leases {
        let held = family.table.held(&lease.borrower);
        let Some(permission) = held.permission(&lease.rule.target) else { continue };
        let may = lent(family, lease, permission)?;
        if !left.contains(&may) {
            left.push(may);
        }
    }
    Ok(left)
}

fn lent(family: &Family, lease: &Lease, permission: Permission) -> Result<Lent, Refusal> {
    let unknown = || format!("the lease table names `{}`, which is no pod", lease.borrower);
    let to = family.name_of(&lease.borrower).ok_or_else(|| Refusal::invalid(unknown()))?;
    Ok(Lent { to, rule: Rule { permission, ..lease.rule.clone() } })
}

/// The refusal of a reclaim that takes nothing; `kept` are the leases whose borrowers still read.
fn nothing(family: &Family, owner: &PodName, region: &Rule, kept: &[Lease]) -> Refusal {
    let path = region.target.display();
    let mut readers: Vec<String> =
        kept.iter().map(|lease| format!("`{}`", family.named(&lease.borrower))).collect();
    readers.sort_unstable();
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
