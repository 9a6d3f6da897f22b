//! Ephemeral Pods: those of `yoi -p`, and their children. They are stopped when the program that made them is
//! gone, and deleted once the whole tree has rested for a day; a use by a person makes a tree of them ordinary.

use crate::host::Shared;
use crate::host::pod::Fact;
use crate::host::supervisor::Step;
use crate::host::verb::{Cx, carry_out, remove};
use crate::protocol::family::EPHEMERAL_MS;
use crate::protocol::{Method, PodInfo, PodName, Refusal, State, now_ms};
use crate::store::StoreError;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;

/// Makes a Pod ordinary, with the Pods above and below it. When it returns, that is committed and
/// shown.
pub(crate) async fn keep(shared: &Shared, pod: &PodName) -> Result<(), StoreError> {
    let kept = shared.store.keep_pods(pod).await?;
    tell(shared, kept).await;
    Ok(())
}

/// Tells Pods that they are ordinary from now on.
pub(crate) async fn tell(shared: &Shared, kept: Vec<PodName>) {
    for pod in kept.iter().filter_map(|name| shared.any_pod(name)) {
        pod.tell(Fact::Kept).await;
    }
}

/// Stops a Pod whose program is gone, unless a person has used it.
pub(crate) async fn stop_left(shared: &Shared, supervisor: &mpsc::Sender<Step>, pod: PodName) {
    let is_left = |info: &PodInfo| info.ephemeral && info.state != State::Stopped;
    if !shared.pod(&pod).is_some_and(|handle| is_left(&handle.info.borrow())) {
        return;
    }
    let stop = Method::StopPods { tree: true, unless_busy: false, silent: false };
    let stopped = carry_out(shared, supervisor, None, Some(pod.clone()), stop).await;
    match stopped {
        Ok(_) => tracing::info!(%pod, "stopped an ephemeral pod whose program is gone"),
        Err(refusal) => tracing::warn!(%pod, %refusal, "cannot stop an ephemeral pod"),
    }
}

/// Deletes a stopped ephemeral Pod whose name a new child needs: a program that is started twice may give its
/// children the same names. A Pod below a live one stays, because the live one could restore it.
pub(crate) async fn give_way(cx: &Cx, name: &PodName) -> Result<(), Refusal> {
    let family = cx.shared.family();
    let of = |name: &PodName| family.iter().find(|info| info.name.key() == name.key());
    let mut next = of(name);
    while let Some(info) = next {
        if !info.ephemeral || info.state != State::Stopped {
            return Ok(());
        }
        next = info.parent.as_ref().and_then(of);
    }
    if of(name).is_none() {
        return Ok(());
    }
    let cx = Cx { to: Some(name.clone()), by: None, ..cx.clone() };
    remove::ephemeral(&cx).await?;
    tracing::info!(pod = %name, "deleted an ephemeral pod whose name another one needs");
    Ok(())
}

/// Deletes trees of ephemeral Pods when they are due: now, and as long as the host lives.
pub(crate) async fn delete_when_due(shared: Shared, supervisor: mpsc::WeakSender<Step>) {
    loop {
        let now = now_ms();
        for tree in trees(&shared.family()).filter(|tree| tree.due <= now) {
            let Some(supervisor) = supervisor.upgrade() else { return };
            if let Err(refusal) = delete(&shared, &supervisor, &tree).await {
                tracing::warn!(pod = %tree.pods[0], %refusal, "cannot delete an ephemeral pod");
            }
        }
        let now = now_ms();
        // What could not be deleted is tried again at the next time.
        let next = trees(&shared.family()).map(|tree| tree.due).filter(|due| *due > now).min();
        // A Pod that begins to rest from now on is due no earlier than after the whole time.
        let wait = next.map_or(EPHEMERAL_MS, |next| next - now).min(EPHEMERAL_MS);
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
}

/// A tree of ephemeral Pods that all rest.
#[derive(Debug, PartialEq)]
struct Tree {
    /// Parents before children.
    pods: Vec<PodName>,
    is_live: bool,
    /// Milliseconds since the Unix epoch.
    due: u64,
}

/// The trees that can be deleted, now or later.
fn trees(family: &[PodInfo]) -> impl Iterator<Item = Tree> {
    let mut below: HashMap<Option<&PodName>, Vec<&PodInfo>> = HashMap::new();
    for info in family {
        below.entry(info.parent.as_ref()).or_default().push(info);
    }
    let roots: Vec<&PodInfo> = below.get(&None).into_iter().flatten().copied().collect();
    roots.into_iter().filter_map(move |root| tree(root, &below))
}

fn tree(root: &PodInfo, below: &HashMap<Option<&PodName>, Vec<&PodInfo>>) -> Option<Tree> {
    let mut pods = vec![root];
    let mut next = 0;
    // Each Pod has one parent and the root has none, so no Pod comes twice.
    while let Some(info) = pods.get(next) {
        pods.extend(below.get(&Some(&info.name)).into_iter().flatten());
        next += 1;
    }
    let rests = |info: &&PodInfo| !matches!(info.state, State::Running | State::NeedsYou);
    if !pods.iter().all(|info| info.ephemeral && rests(info)) {
        return None;
    }
    Some(Tree {
        is_live: pods.iter().any(|info| info.state != State::Stopped),
        due: pods.iter().map(|info| info.deleted_at()).max()?,
        pods: pods.into_iter().map(|info| info.name.clone()).collect(),
    })
}

/// Stops what is live of a tree, and deletes it, children before parents.
async fn delete(
    shared: &Shared,
    supervisor: &mpsc::Sender<Step>,
    tree: &Tree,
) -> Result<(), Refusal> {
    if tree.is_live {
        let root = Some(tree.pods[0].clone());
        carry_out(
            shared,
            supervisor,
            None,
            root,
            Method::StopPods { tree: true, unless_busy: false, silent: false },
        )
        .await?;
    }
    for pod in tree.pods.iter().rev() {
        let to = Some(pod.clone());
        let (shared, supervisor) = (shared.clone(), supervisor.clone());
        let cx = Cx { shared, by: None, to, supervisor, gone: Default::default() };
        remove::ephemeral(&cx).await?;
        tracing::info!(%pod, "deleted an ephemeral pod that had rested for a day");
    }
    Ok(())
}
