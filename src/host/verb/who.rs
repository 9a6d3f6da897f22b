//! `:who`: the Pods that may read or write a path.

use crate::host::paths::canonical;
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PathHolder, Refusal};
use crate::scope::Permission;
use std::path::{Path, PathBuf};

pub(crate) struct WhoHolds {
    pub(crate) path: PathBuf,
}

impl Verb for WhoHolds {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let path = canonical(&cx, &self.path).await?;
        let holders = cx.family(move |family| Ok(holders(family, &path))).await?;
        Ok(Event::Holders { holders })
    }
}

fn holders(family: &Family, path: &Path) -> Vec<PathHolder> {
    let mut holders = Vec::new();
    for (key, holder) in family.table.holders().filter(|(_, holder)| holder.live) {
        let held = family.table.held(key).permission(path);
        let (Some(permission), Some(pod)) = (held, family.name_of(key)) else { continue };
        let mut leases = family.table.borrowed_by(key);
        let lease = leases.find(|l| l.rule.permission >= permission && l.rule.covers(path));
        // A grant by a rule is stored as a lease whose lender is the Pod itself.
        let lender = lease.map(|lease| &lease.lender).filter(|lender| *lender != key);
        let lender = lender.and_then(|lender| family.name_of(lender));
        holders.push((holder.created, PathHolder { pod, permission, lender }));
    }
    holders.sort_by_key(|(created, holder)| (holder.permission < Permission::Write, *created));
    holders.into_iter().map(|(_, holder)| holder).collect()
}
