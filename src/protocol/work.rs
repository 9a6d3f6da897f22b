//! What runs did, in figures: the entry that ends a run says it, and sums are made of those.

use crate::protocol::family::is_false;
use crate::protocol::{LastRun, PodName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::AddAssign;

/// The most file names that one sum keeps. Lines of further files still count.
pub const MAX_FILES: usize = 100;

/// How many lines of texts came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesChanged {
    pub added: u64,
    pub removed: u64,
}

impl AddAssign for LinesChanged {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
    }
}

/// What a run did, or several runs together. An older program left it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// The files that Write and Edit changed, at most 100; commands may have changed others.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub files: BTreeSet<String>,
    /// The lines that Write and Edit changed.
    pub lines: LinesChanged,
    /// Commands and changes of files that began without a decision, because walls bind them.
    pub by_walls: u64,
    /// Calls that began because a rule allows them.
    pub by_rules: u64,
    /// Calls that began because the person allowed them.
    pub by_person: u64,
    /// The cost of the requests in US dollars, where the price of the model is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Some requests cost money that is not known.
    #[serde(skip_serializing_if = "is_false")]
    pub cost_unknown: bool,
    /// How many tasks are pending when the last run ends, also those of earlier runs.
    pub tasks_not_begun: u64,
    /// The subjects of the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// The last line of the model's last text, or its last call. Only sums have it; in the log it stands elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

impl Work {
    /// Counts a change of a file.
    pub fn changed(&mut self, path: &str, lines: LinesChanged) {
        if self.files.len() < MAX_FILES {
            self.files.insert(path.to_owned());
        }
        self.lines += lines;
    }

    /// Adds what a later run did: its report and its tasks take the place of the earlier ones.
    pub fn add(&mut self, later: Self) {
        let room = MAX_FILES.saturating_sub(self.files.len());
        let new: Vec<_> = later.files.difference(&self.files).take(room).cloned().collect();
        self.files.extend(new);
        self.lines += later.lines;
        self.by_walls += later.by_walls;
        self.by_rules += later.by_rules;
        self.by_person += later.by_person;
        self.cost = self.cost.map_or(later.cost, |cost| Some(cost + later.cost.unwrap_or(0.0)));
        self.cost_unknown |= later.cost_unknown;
        self.tasks_not_begun = later.tasks_not_begun;
        self.subjects = later.subjects;
        self.report = later.report.or(self.report.take());
    }
}

/// What a Pod did in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodWork {
    pub pod: PodName,
    /// How many runs ended.
    pub runs: u64,
    /// How the last of them ended.
    pub last: LastRun,
    pub work: Work,
}
