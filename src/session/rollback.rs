//! A run without a result is rolled back by an entry that says from where on; readers leave out the
//! entries between.

use crate::protocol::entry::{Fact, domain};
use crate::protocol::name::EntryId;
use crate::session::line::{Forward, decode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// Which entry a rollback goes back to, when this fact is one.
pub fn from(fact: &Fact) -> Option<EntryId> {
    match fact {
        Fact::Extension { domain, payload } if domain == domain::ROLLED_BACK => {
            payload.get("from").and_then(Value::as_str)?.parse().ok()
        }
        _ => None,
    }
}

/// As [`from`], for a line; any other line is left after a glance.
pub fn from_line(line: &[u8]) -> Option<EntryId> {
    const LONGEST: usize = 512;
    let text = std::str::from_utf8(line).ok().filter(|text| text.len() < LONGEST)?;
    let fact = text.contains(domain::ROLLED_BACK).then(|| decode(line).ok())??.fact;
    from(&fact)
}

/// Skips what was rolled back, when it is fed every line in order.
#[derive(Default)]
pub struct Skip {
    /// The rollbacks whose first entry has not come yet: where they go back to, and where their
    /// own line begins.
    ahead: BTreeMap<EntryId, u64>,
    until: Option<u64>,
}

impl Skip {
    /// Looks for the rollbacks in the first `end` bytes of a segment.
    pub fn read(path: &Path, end: u64) -> io::Result<Self> {
        let mut ahead = BTreeMap::new();
        let mut lines = Forward::new(File::open(path)?, 0, end)?;
        let mut line = Vec::new();
        while let Some(start) = lines.next_into(&mut line)? {
            ahead.extend(from_line(&line).map(|from| (from, start)));
        }
        Ok(Self { ahead, until: None })
    }

    /// Whether the line at `start`, with this id, was rolled back.
    pub fn skips(&mut self, start: u64, id: Option<EntryId>) -> bool {
        let until = id.and_then(|id| self.ahead.remove(&id)).filter(|until| *until > start);
        self.until = self.until.max(until);
        if self.until.is_some_and(|until| start >= until) {
            self.until = None;
        }
        self.until.is_some()
    }

    /// Whether the entry that a rollback goes back to has come.
    pub fn has_met(&self, from: EntryId) -> bool {
        !self.ahead.contains_key(&from)
    }
}
