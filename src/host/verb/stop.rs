//! Stop: the runs halt side by side and within their time, then one transaction says that the Pods
//! are stopped, that their leases are back, and the child events for their parents.

use crate::host::pod::{Fact, Handle};
use crate::host::supervisor::{Doing, Family, Mark};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PodName, Refusal};
use crate::store::ChildMessage;
use crate::tools::jobs::EndedBy;
use futures_util::future::{join, join_all};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The caller has its reply within this time in any case.
pub(super) const IN_ANY_CASE: Duration = Duration::from_millis(7500);

/// Stop the addressed Pod; with `tree`, everything below it first. With `unless_busy`, only a Pod that
/// has nothing to do.
pub(crate) struct Stop {
    pub(crate) tree: bool,
    pub(crate) unless_busy: bool,
    /// Their parents are not notified.
    pub(crate) silent: bool,
}

impl Verb for Stop {
    const ALLOWED: Caller = Caller::Above;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        stop(&cx, &self).await
    }
}

/// The same verb as a Pod's own socket has it, with the reply that it has there.
pub(crate) struct Shutdown;

impl Verb for Shutdown {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        stop(&cx, &Stop { tree: false, unless_busy: false, silent: false }).await?;
        Ok(Event::done())
    }
}

async fn stop(cx: &Cx, stop: &Stop) -> Result<Event, Refusal> {
    let &Stop { tree, unless_busy, silent } = stop;
    let name = cx.pod()?.name;
    let end = Instant::now() + IN_ANY_CASE;
    let (handles, marks) = targets(cx, &name, tree, unless_busy, end).await?;
    // The addressed Pod is the last one.
    let root = handles.last().filter(|_| unless_busy);
    if let Some(root) = root
        && !root.prepare_stop_if_idle().await
    {
        return Ok(Event::PodsStopped { stopped: Vec::new() });
    }
    let leaving = Leaving::new(handles);
    // A Pod whose run does not end in time is stopped all the same; its run was aborted.
    // What it runs in the background ends beside its run.
    let ends =
        leaving.pods.iter().map(|pod| join(pod.prepare_stop(), pod.jobs.close(EndedBy::Stop)));
    let _ = tokio::time::timeout_at(end, join_all(ends)).await;
    let names: Vec<PodName> = leaving.pods.iter().map(|pod| pod.name.clone()).collect();
    let by = cx.by.clone();
    let stopped = cx.family(move |family| Ok(family.stop(&names, by.as_ref(), silent))).await;
    // Where it is refused they are not stopped: dropping `leaving` makes them take requests again.
    let stopped = stopped?;
    crate::crash_point!("stop-stored");
    let pods = leaving.done();
    let gone = |pod: &&Handle| stopped.were_live.contains(&pod.name.key());
    join_all(pods.iter().filter(gone).map(|pod| pod.tell(Fact::Stopped))).await;
    for pod in &stopped.pods {
        for gained in &pod.gained {
            let Some(handle) = cx.shared.pod(&gained.to) else { continue };
            let path = gained.rule.target.display();
            let (to, from) = (&gained.to, &pod.name);
            let text =
                format!("`{to}` may write {path} now: `{from}`, which wrote there, has stopped");
            handle.tell(Fact::Notice(text)).await;
        }
    }
    drop(marks);
    notify_parents(cx, stopped.notified).await;
    Ok(Event::PodsStopped { stopped: stopped.pods })
}

/// The Pods to stop, children before parents, each marked. Waits until no Pod of them is being
/// started.
async fn targets(
    cx: &Cx,
    name: &PodName,
    tree: bool,
    unless_busy: bool,
    end: Instant,
) -> Result<(Vec<Handle>, Vec<Mark>), Refusal> {
    loop {
        let name = name.clone();
        match cx.family(move |family| find(family, &name, tree, unless_busy)).await? {
            Found::Ready(handles, marks) => return Ok((handles, marks)),
            Found::Starting(name, mut gone) => {
                // Ends when the mark is dropped, which closes the channel.
                if tokio::time::timeout_at(end, gone.changed()).await.is_err() {
                    let text = format!("pod `{name}` is being started; try again when it is");
                    return Err(Refusal::invalid(text));
                }
            }
        }
    }
}

enum Found {
    Ready(Vec<Handle>, Vec<Mark>),
    Starting(String, watch::Receiver<()>),
}

fn find(
    family: &mut Family,
    name: &PodName,
    tree: bool,
    unless_busy: bool,
) -> Result<Found, Refusal> {
    let mut keys = if tree { family.table.below(&name.key()) } else { Vec::new() };
    keys.reverse();
    keys.push(name.key());
    if let Some((key, gone)) = keys.iter().find_map(|key| Some((key, family.starting(key)?))) {
        return Ok(Found::Starting(family.named(key), gone));
    }
    keys.retain(|key| family.table.is_live(key));
    // Programs that share a Pod stop it with `unless_busy`: the second one finds it stopped.
    if keys.is_empty() && !unless_busy {
        let below = if tree { " and so is everything below it" } else { "" };
        let text = format!("pod `{name}` is stopped already{below}");
        return Err(Refusal::invalid(text));
    }
    let mut found = (Vec::new(), Vec::new());
    for key in keys {
        let handle = family.name_of(&key).and_then(|name| family.shared.pod(&name));
        found.0.extend(handle);
        found.1.push(family.mark(&key, Doing::Stopping));
    }
    Ok(Found::Ready(found.0, found.1))
}

/// Hands the stored child events to the parents that are live.
async fn notify_parents(cx: &Cx, notified: Vec<ChildMessage>) {
    let notified = notified.into_iter().filter(|notified| !notified.taken).filter_map(|notified| {
        let parent = cx.shared.pod(&notified.parent)?;
        Some(async move { parent.tell(Fact::ChildEvent(notified.message)).await })
    });
    crate::crash_point!("upward-stored");
    join_all(notified).await;
}

/// Pods that end their runs. Unless the stop is done, they take requests again.
struct Leaving {
    pods: Vec<Handle>,
}

impl Leaving {
    fn new(pods: Vec<Handle>) -> Self {
        Self { pods }
    }

    fn done(mut self) -> Vec<Handle> {
        std::mem::take(&mut self.pods)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // Without a runtime the host has ended, and the next one brings them back.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for pod in std::mem::take(&mut self.pods) {
            runtime.spawn(async move { pod.stop_refused().await });
        }
    }
}
