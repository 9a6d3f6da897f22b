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
        let reads_all = writes.all(whole);
        for blocked in &holder.restrictions.blocked {
            let path = blocked.region.target.display();
            let Some(other) = self.table.writer_of(&blocked.region, key) else { continue };
            let other = self.named(&other);
            let (part, there) = match reads_all {
                true => ("read-only".to_owned(), "here"),
                false => (format!("read-only below {path}"), "there"),
            };
            notes.push(format!(
                "{part}: {other} is writing {there} · :lend {other} {name} {path} shares it · \
                 :stop {other} frees it"
            ));
        }
        for rule in &holder.restrictions.capped {
            let path = rule.target.display();
            notes.push(format!("read-only below {path}: it was not lent for writing"));
        }
        notes
    }
}
