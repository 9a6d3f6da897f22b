//! Commands that may be writing what a step takes from their Pod.

use crate::host::pod::Handle;
use crate::protocol::family::WAITS_TO_LEND;
use crate::scope::Rule;
use crate::tools::jobs::EndedBy;
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

    /// Resolves when they have ended; `tell` tells them to. Meanwhile none starts in the background that writes there, and
    /// the Pod shows what waits.
    pub(crate) async fn ended(&self, tell: bool) {
        let Self { pod, lost, commands, .. } = self;
        let what = format!("{WAITS_TO_LEND}{commands} has ended");
        let _wait = pod.jobs.wait(lost.clone(), what);
        let none_writes = pod.jobs.none_writes_in(lost, tell.then_some(EndedBy::Lent));
        join(none_writes, pod.commands.have_ended(tell)).await;
    }
}
