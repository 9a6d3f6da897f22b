//! Worktree: the working tree of a Pod, kept or dropped by a person.

use crate::host::pod::Handle;
use crate::host::supervisor::{Doing, Mark};
use crate::host::verb::{Caller, Cx, Verb};
use crate::host::worktree::{self, Loss};
use crate::protocol::{Event, Refusal, WorktreeChange, WorktreeState};

pub(crate) struct Worktree {
    pub(crate) change: Option<WorktreeChange>,
}

impl Verb for Worktree {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        match self.change {
            None => {}
            Some(WorktreeChange::Keep) => worktree::keep(&pod).await?,
            Some(WorktreeChange::Drop { digest }) => {
                let _mark = at_rest(&cx, &pod).await?;
                worktree::delete(&cx.shared, &pod, &digest, Loss::Agreed).await?;
            }
        }
        let state = worktree::state(&cx.shared, &pod).await?;
        Ok(Event::Worktree(Box::new(state)))
    }
}

/// Deletes the working tree of a Pod that is to be deleted, if all of it is committed; what became of it. `Err`: the Pod is
/// not stopped.
pub(crate) async fn let_go(cx: &Cx, pod: &Handle) -> Result<Option<WorktreeState>, Refusal> {
    if pod.info.borrow().worktree.is_none() {
        return Ok(None);
    }
    let _mark = at_rest(cx, pod).await?;
    Ok(worktree::let_go(&cx.shared, pod).await)
}

/// Keeps a stopped Pod stopped as long as the mark is held.
async fn at_rest(cx: &Cx, pod: &Handle) -> Result<Mark, Refusal> {
    let name = pod.name.clone();
    cx.family(move |family| {
        family.must_not_be_stopping(&name)?;
        family.must_not_be_starting(&name)?;
        if family.is_live(&name) {
            let text = format!(
                "pod `{name}` is live and may change its working tree; :stop {name} comes first"
            );
            return Err(Refusal::invalid(text));
        }
        Ok(family.mark(&name.key(), Doing::Starting))
    })
    .await
}
