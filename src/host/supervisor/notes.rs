//! What a person should know about the scope a Pod got, in sentences.

use crate::host::supervisor::Supervisor;
use crate::scope::lease::LeaseTable;
use crate::scope::{Permission, Rule};

impl Supervisor {
    /// Where a Pod reads although it asked for write: who holds it and the ways out.
    pub(super) fn scope_notes(&self, book: &LeaseTable, key: &str) -> Vec<String> {
        let Some(holder) = book.holder(key) else { return Vec::new() };
        let name = self.name_of(key).map_or_else(|| key.to_owned(), |name| name.to_string());
        let mut notes = Vec::new();
        let writes = holder.wanted.allow.iter().filter(|own| own.permission == Permission::Write);
        let whole = |rule: &Rule| {
            holder.restrictions.blocked.iter().any(|b| b.rule == *rule && b.region.contains(rule))
        };
        let part = if writes.clone().all(whole) { "reads only" } else { "reads there only" };
        for blocked in &holder.restrictions.blocked {
            let path = blocked.region.target.display();
            let Some(other) = book.writer_of(&blocked.region, key) else { continue };
            let other = self.name_of(&other).map_or(other, |name| name.to_string());
            notes.push(format!(
                "{part}: {other} holds write on {path}; :stop {other} frees it, \
                 :lend {other} {name} {path} shares it, --cwd works elsewhere"
            ));
        }
        for rule in &holder.restrictions.capped {
            let path = rule.target.display();
            notes.push(format!("reads {path} only: its parent does not lend that"));
        }
        notes
    }
}
