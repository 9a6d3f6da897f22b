//! Commands that may be writing what a step takes from their Pod.

use crate::host::pod::Handle;
use crate::protocol::family::WAITS_TO_LEND;
use crate::scope::Rule;
use crate::tools::jobs::{EndedBy, Wait};
use futures_util::future::join;

/// The commands of one Pod that may be writing in regions which a step takes from it.
pub(crate) struct InUse {
    pod: Handle,
    lost: Vec<Rule>,
    /// `job-1 (npm run dev) in the background`.
    commands: String,
    /// Why the step is refused, in a sentence.
    pub(crate) refusal: String,
}

impl InUse {
    /// `None` if none of them may write there.
    pub(super) fn of(pod: &Handle, lost: &[Rule]) -> Option<Self> {
        let (name, first) = (&pod.name, lost.first()?.target.display());
        // One in the foreground may write the whole scope.
        let (foreground, jobs) = (pod.commands.oldest(), pod.jobs.that_write_in(lost).join(", "));
        let ways: Vec<String> = [
            foreground.as_ref().map(|_| format!(":pause {name}")),
            (!jobs.is_empty()).then(|| "end it with BashStop or :jobs stop".into()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let jobs = (!jobs.is_empty()).then(|| format!("{jobs} in the background"));
        let commands =
            foreground.into_iter().chain(jobs).reduce(|one, two| format!("{one} and {two}"))?;
        let refusal = format!(
            "`{name}` runs {commands}, which may write below {first}; wait for it or {}",
            ways.join(", and ")
        );
        Some(Self { pod: pod.clone(), lost: lost.to_vec(), commands, refusal })
    }

    /// The key of the Pod, and the wait for its commands: as long as it lives, none starts in the background that writes
    /// there, and the Pod shows what waits.
    pub(crate) fn wait(&self) -> (String, Wait) {
        let what = format!("{WAITS_TO_LEND}{} has ended", self.commands);
        (self.pod.name.key(), self.pod.jobs.wait(self.lost.clone(), what))
    }

    /// Resolves when they have ended; `tell` tells them to.
    pub(crate) async fn ended(&self, tell: bool) {
        let Self { pod, lost, .. } = self;
        let none_writes = pod.jobs.none_writes_in(lost, tell.then_some(EndedBy::Lent));
        join(none_writes, pod.commands.have_ended(tell)).await;
    }
}
