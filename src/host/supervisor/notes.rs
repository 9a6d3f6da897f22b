//! Notes for a person about the scope that a Pod got.

use crate::host::supervisor::Family;
use crate::scope::Rule;
use crate::scope::lease::{NotLent, Reclaimed};
use crate::text::shell_word;

impl Family {
    /// Where a Pod reads although it asked for write: which Pod holds it, and the ways out.
    pub(crate) fn scope_notes(&self, key: &str) -> Vec<String> {
        let Some(holder) = self.table.holder(key) else { return Vec::new() };
        let mut notes = Vec::new();
        let blocked = holder.restrictions.blocked.iter();
        let mut kept: Vec<(String, Rule)> =
            blocked.flat_map(|blocked| self.table.kept_in(&blocked.region, key)).collect();
        kept.sort_by(|a, b| a.1.target.cmp(&b.1.target));
        kept.dedup();
        let reads = |rule: &Rule| kept.iter().any(|(_, region)| region.contains(rule));
        let reads_all = holder.wanted.writable().all(reads);
        for (other, region) in &kept {
            let (part, there) = match reads_all {
                true => ("read-only".to_owned(), "here"),
                false => (format!("read-only below {}", region.target.display()), "there"),
            };
            let ways = self.ways_to_write(key, other, region);
            let other = self.named(other);
            notes.push(format!("{part}: {other} holds write {there} · {ways}"));
        }
        for rule in &holder.restrictions.capped {
            let path = rule.target.display();
            notes.push(format!("read-only below {path}: it was not lent for writing"));
        }
        for Reclaimed { by, rule } in &holder.restrictions.reclaimed {
            let path = rule.target.display().to_string();
            let (name, owner) = (self.named(key), self.named(by));
            let taken = format!("read-only below {path}: {owner} took it back");
            if self.is_ephemeral(key) {
                notes.push(taken);
                continue;
            }
            let lend = format!(":lend {owner} {name} {} gives it back", shell_word(&path));
            let way = match self.table.may_lend(by, rule) {
                Ok(()) => lend,
                Err(NotLent::NotLive(_)) => format!(":restore {owner}, then {lend}"),
                Err(_) => format!(":who {} names the pod that writes there now", shell_word(&path)),
            };
            notes.push(format!("{taken} · {way}"));
        }
        notes
    }

    /// How a person lets a Pod write what `holder` holds: only verbs that work as the family is now.
    pub(crate) fn ways_to_write(&self, key: &str, holder: &str, region: &Rule) -> String {
        let path = region.target.display().to_string();
        let (name, other) = (self.named(key), self.named(holder));
        let mut ways = Vec::new();
        // The verb lends all that is below the path.
        let whole = Rule::new(&region.target, crate::scope::Permission::Write);
        if !self.is_ephemeral(key) && self.table.may_lend(holder, &whole).is_ok() {
            ways.push(format!(":lend {other} {name} {} hands it over", shell_word(&path)));
        }
        let ends = self.table.wants(key, region) && !self.table.was_lent(holder, region);
        if ends && !self.table.is_at_rest(holder, key) {
            let below =
                if self.table.has_turn(holder) { "the run of" } else { "the last run below" };
            ways.push(format!("{name} writes there when {below} {other} has ended"));
            return ways.join(" · ");
        }
        let before = self.table.written_before(key, region);
        let below = self.table.below(holder);
        if before.iter().all(|key| key == holder || below.contains(key)) {
            let tree = if before.len() > 1 { "--tree " } else { "" };
            ways.push(format!(":stop {tree}{other} frees it"));
        } else {
            let next = before.iter().filter(|key| *key != holder).map(|key| self.named(key));
            let next: Vec<String> = next.collect();
            ways.push(format!(
                "it is free when {other} has stopped, and so have those next in line: {}",
                next.join(", ")
            ));
        }
        ways.join(" · ")
    }

    /// Whether a Pod ends with the program that made it: no other Pod lends it anything in time.
    fn is_ephemeral(&self, key: &str) -> bool {
        self.known(key).is_some_and(|handle| handle.info.borrow().ephemeral)
    }
}
