//! Worktree: the working tree of a Pod, kept or dropped by a person.

use crate::host::pod::Handle;
use crate::host::supervisor::{Doing, Mark};
use crate::host::verb::{Caller, Cx, Verb};
use crate::host::{Shared, worktree};
use crate::protocol::{Event, PodName, Refusal, State, WorktreeChange};
use std::path::Path;

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
                worktree::delete(&cx.shared, &pod, &digest).await?;
            }
        }
        let state = worktree::state(&cx.shared, &pod).await?;
        Ok(Event::Worktree(Box::new(state)))
    }
}

/// Deletes the working tree of a Pod that is to be deleted, if all of it is committed.
pub(crate) async fn let_go(cx: &Cx, pod: &Handle) {
    if pod.info.borrow().worktree.is_none() {
        return;
    }
    let gone = match at_rest(cx, pod).await {
        Ok(_mark) => worktree::let_go(&cx.shared, pod).await,
        // What comes next refuses a Pod that is not stopped.
        Err(_) => return,
    };
    if let Err(why) = gone {
        cx.shared.add_notice(why);
    }
}

/// Keeps a stopped Pod stopped as long as the mark is held, and refuses if another Pod works in its working tree.
async fn at_rest(cx: &Cx, pod: &Handle) -> Result<Mark, Refusal> {
    let name = pod.name.clone();
    let path = pod.info.borrow().worktree.as_ref().map(|tree| tree.path.clone());
    cx.family(move |family| {
        family.must_not_be_stopping(&name)?;
        family.must_not_be_starting(&name)?;
        if family.is_live(&name) {
            let text = format!(
                "pod `{name}` is live and may change its working tree; :stop {name} comes first"
            );
            return Err(Refusal::invalid(text));
        }
        if let Some(other) = path.and_then(|path| writer(&family.shared, &path)) {
            let text = format!(
                "pod `{other}` may write in the working tree of `{name}`; :stop {other} comes first"
            );
            return Err(Refusal::invalid(text));
        }
        Ok(family.mark(&name.key(), Doing::Starting))
    })
    .await
}

/// A Pod that is not stopped and whose scope lies in a directory or contains it.
fn writer(shared: &Shared, dir: &Path) -> Option<PodName> {
    let members = shared.members.borrow().clone();
    let has = |pod: &&Handle| {
        let scope = &pod.granted.borrow().scope;
        let meets = |target: &Path| target.starts_with(dir) || dir.starts_with(target);
        pod.info.borrow().state != State::Stopped
            && scope.allow.iter().any(|rule| meets(&rule.target))
    };
    members.0.values().find(has).map(|pod| pod.name.clone())
}
