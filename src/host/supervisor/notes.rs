//! Notes for a person about the scope that a Pod got.

use crate::host::supervisor::Family;
use crate::scope::Rule;

impl Family {
    /// Where a Pod reads although it asked for write: which Pod holds it, and the ways out.
    pub(crate) fn scope_notes(&self, key: &str) -> Vec<String> {
        let Some(holder) = self.table.holder(key) else { return Vec::new() };
        let name = self.named(key);
        let mut notes = Vec::new();
        let mut writes = holder.wanted.writable();
        let whole = |rule: &Rule| {
            let mut blocked = holder.restrictions.blocked.iter();
            blocked.any(|b| b.rule == *rule && b.region.contains(rule))
        };
        let part = if writes.all(whole) { "reads only" } else { "reads there only" };
        for blocked in &holder.restrictions.blocked {
            let path = blocked.region.target.display();
            let Some(other) = self.table.writer_of(&blocked.region, key) else { continue };
            let other = self.named(&other);
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
