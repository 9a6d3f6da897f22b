//! Counts what a run does, for the entry that ends it.

use crate::protocol::{Entry, Fact, Work};
use crate::run::Run;
use crate::run::batch::Call;
use crate::tools::Lane;
use crate::tools::tasks::Status;

/// The most tasks whose subjects the end of a run names.
const MAX_SUBJECTS: usize = 10;

/// What let a call begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Walls,
    Rule,
    Person,
}

/// What a run did so far.
#[derive(Debug, Default)]
pub(super) struct WorkSoFar {
    pub(super) counted: Work,
    /// The cost of the Pod when the run began.
    pub(super) cost_before: f64,
}

impl Run {
    /// Counts a call that begins. What only looks is bound by walls as well, and is not counted for that.
    pub(super) fn count_allowed(&mut self, call: &Call, by: By) {
        let changes = matches!(self.offered.lane(&call.name), Some(Lane::Change | Lane::Shell));
        let work = &mut self.work.counted;
        match by {
            By::Walls => work.by_walls += u64::from(changes),
            By::Rule => work.by_rules += 1,
            By::Person => work.by_person += 1,
        }
    }

    /// Adds what the run did to the entry that ends it.
    pub(super) fn add_work(&mut self, end: &mut Entry) {
        let (Fact::RunCompleted { work, .. } | Fact::RunErrored { work, .. }) = &mut end.fact
        else {
            return;
        };
        let state = &self.session_state.state;
        let mut done = std::mem::take(&mut self.work.counted);
        done.cost = state.cost.map(|cost| cost - self.work.cost_before).filter(|cost| *cost > 0.0);
        done.cost_unknown = self.requests > 0 && done.cost.is_none();
        let tasks = self.session_state.tasks.all().iter();
        let pending: Vec<_> = tasks.filter(|task| task.status == Status::Pending).collect();
        done.tasks_not_begun = pending.len() as u64;
        done.subjects =
            pending.iter().take(MAX_SUBJECTS).map(|task| task.subject.clone()).collect();
        *work = (done != Work::default()).then(|| Box::new(done));
    }
}
