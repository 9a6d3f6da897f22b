//! Restore: stopped Pods come back, each with what was stored with it; a plan says beforehand what
//! that means now.

use crate::host::pod::{Fact, Handle, tail};
use crate::host::supervisor::{Doing, Family, Mark};
use crate::host::verb::{Caller, Cx, Verb};
use crate::host::{Shared, authority, ephemeral, worktree};
use crate::protocol::{Event, PlanStep, PodName, Refusal, Restoring, State};
use crate::scope::{Permission, Rule};
use crate::session::LogError;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many logs are looked at side by side.
const SIDE_BY_SIDE: usize = 32;

/// Bring the addressed Pod back, with `tree` everything below it, too; with `plan` only say what
/// that would do.
pub(crate) struct Restore {
    pub(crate) tree: bool,
    pub(crate) plan: bool,
}

impl Verb for Restore {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let first = cx.pod()?;
        let (name, tree) = (first.name.clone(), self.tree);
        let mut steps = cx.family(move |family| Ok(find(family, &name, tree))).await?;
        look(&cx, &mut steps).await;
        if self.plan {
            let steps = cx.family(move |family| Ok(foresee(family, steps))).await?;
            let steps = steps.into_iter().map(|step| step.plan).collect();
            return Ok(Event::Plan { steps, done: false });
        }
        possible(&steps)?;
        keep(&cx, &first).await?;
        bring(&cx, &mut steps).await?;
        possible(&steps)?;
        let steps = steps.into_iter().map(|step| step.plan).collect();
        Ok(Event::Plan { steps, done: true })
    }
}

/// Whether the first Pod, which is the addressed one, can come back.
fn possible(steps: &[Step]) -> Result<(), Refusal> {
    match steps.first().map(|step| &step.plan) {
        Some(PlanStep { name, what: Restoring::Impossible, notes }) => {
            Err(not_restorable(name, &notes.join(" · ")))
        }
        _ => Ok(()),
    }
}

/// The same verb as a Pod's own socket and the tools have it: one Pod, by its name, and a reply of
/// its own. The name is free text: what it names may not exist.
pub(crate) struct RestoreByName {
    pub(crate) name: String,
}

impl Verb for RestoreByName {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let missing = || Refusal::invalid(crate::tools::pods::missing(&self.name));
        let handle = named(&cx.shared, cx.by.as_ref(), &self.name)?;
        let name = handle.name.clone();
        cx.settled(&name).await?;
        let mut steps = cx.family(move |family| Ok(find(family, &name, false))).await?;
        steps.truncate(1);
        keep(&cx, &handle).await?;
        look(&cx, &mut steps).await;
        bring(&cx, &mut steps).await?;
        let Some(step) = steps.pop() else { return Err(missing()) };
        if step.plan.what == Restoring::AlreadyLive {
            return Ok(already_live(&cx, &handle));
        }
        step.reply.ok_or_else(|| not_restorable(&handle.name, &step.plan.notes.join(" · ")))
    }
}

/// The Pod of this name, if the asker sees it and its record can be read.
pub(crate) fn named(shared: &Shared, by: Option<&PodName>, name: &str) -> Result<Handle, Refusal> {
    let missing = || Refusal::invalid(crate::tools::pods::missing(name));
    let name = PodName::parse(name).map_err(|_| missing())?;
    if let Some(by) = by {
        authority::must_see(shared, by, &name)?;
    }
    if let Some(row) = shared.damaged_row(&name) {
        let why = format!("its record is damaged ({})", row.reason);
        return Err(not_restorable(&name, &why));
    }
    shared.pod(&name).ok_or_else(missing)
}

/// A Pod that a person restores is an ordinary one.
async fn keep(cx: &Cx, pod: &Handle) -> Result<(), Refusal> {
    if cx.by.is_none() && pod.info.borrow().ephemeral {
        ephemeral::keep(&cx.shared, &pod.name).await?;
    }
    Ok(())
}

fn already_live(cx: &Cx, handle: &Handle) -> Event {
    let status = cx.shared.status(&handle.info.borrow());
    let socket = cx.shared.sockets().socket(handle.name.as_str());
    Event::PodRestored {
        result: json!({
            "action": "already_live", "pod_name": handle.name,
            "socket_path": socket, "status": status,
        }),
    }
}

/// The working tree that was made for the Pod of a step.
fn tree(step: &Step) -> Option<PathBuf> {
    Some(step.pod.info.borrow().worktree.as_ref()?.path.clone())
}

/// One Pod on its way back.
struct Step {
    pod: Handle,
    plan: PlanStep,
    /// The reply of the Pod, once it is live.
    reply: Option<Event>,
}

impl Step {
    fn new(pod: Handle, what: Restoring, note: Option<String>) -> Self {
        let (name, notes) = (pod.name.clone(), note.into_iter().collect());
        Self { pod, plan: PlanStep { name, what, notes }, reply: None }
    }

    /// Whether it is to come back.
    fn comes(&self) -> bool {
        matches!(self.plan.what, Restoring::Idle | Restoring::Paused)
    }

    fn fails(&mut self, why: String) {
        self.plan.what = Restoring::Impossible;
        self.plan.notes.push(why);
    }
}

/// The steps, parents first, in the order in which they happen.
fn find(family: &mut Family, first: &PodName, tree: bool) -> Vec<Step> {
    let mut keys = vec![first.key()];
    keys.extend(family.table.below(&first.key()));
    let mut steps = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        let Some(pod) = family.name_of(key).and_then(|name| family.shared.pod(&name)) else {
            continue;
        };
        let busy = family.must_not_be_stopping(&pod.name);
        let busy = busy.and_then(|()| family.must_not_be_starting(&pod.name)).err();
        let live = family.table.is_live(key);
        let failed = live && has_failed(&pod);
        let (what, note) = match busy {
            _ if n > 0 && !tree && !live => (Restoring::StaysStopped, None),
            Some(refusal) => (Restoring::Impossible, Some(refusal.message)),
            None if live && !(failed && (n == 0 || tree)) => (Restoring::AlreadyLive, None),
            None => (Restoring::Idle, None),
        };
        steps.push(Step::new(pod, what, note));
    }
    steps
}

/// A live Pod that failed is restored as if it were stopped.
fn has_failed(pod: &Handle) -> bool {
    let state = pod.info.borrow().state;
    state != State::Stopped && state.can_be_restored()
}

/// Looks at the directory and at the log of each Pod that is to come back.
async fn look(cx: &Cx, steps: &mut [Step]) {
    let mut dirs: BTreeMap<PathBuf, Result<bool, Refusal>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.comes()) {
        dirs.insert(step.pod.info.borrow().cwd.clone(), Ok(false));
    }
    let asked = dirs.into_keys().map(|dir| async move {
        let at = dir.clone();
        let there = cx.files(&dir, move || at.is_dir()).await;
        (dir, there)
    });
    let dirs: BTreeMap<_, _> = join_all(asked).await.into_iter().collect();
    let trees: Vec<PathBuf> = steps.iter().filter(|step| step.comes()).filter_map(tree).collect();
    let looking = steps.iter_mut().filter(|step| step.comes()).map(|step| {
        let dir = step.pod.info.borrow().cwd.clone();
        let is_made_again = trees.iter().any(|tree| dir.starts_with(tree));
        let there = dirs.get(&dir).cloned();
        async move {
            match there {
                Some(Ok(true)) => look_back(step).await,
                Some(Ok(false)) if is_made_again => look_back(step).await,
                Some(Err(refusal)) => step.fails(refusal.message),
                Some(Ok(false)) | None => {
                    step.fails(no_directory(&step.pod.name, &dir));
                }
            }
        }
    });
    futures_util::stream::iter(looking).for_each_concurrent(SIDE_BY_SIDE, |look| look).await;
}

async fn look_back(step: &mut Step) {
    match interrupted(&step.pod).await {
        Ok(None) => {}
        Ok(Some(notes)) => {
            step.plan.what = Restoring::Paused;
            step.plan.notes.extend(notes);
        }
        Err(refusal) => step.fails(refusal.message),
    }
}

/// How a run was interrupted, and which calls of it are not repeated; `None` when none was.
async fn interrupted(pod: &Handle) -> Result<Option<Vec<String>>, Refusal> {
    let view = pod.view().await?;
    let Some(segment) = view.segment else { return Ok(None) };
    let look = move || {
        let tail = tail::read(&view.files, segment)?;
        let Some(interrupted) = tail.interrupted else { return Ok(None) };
        let calls = tail::open_calls(&view.files, segment)?;
        let cut = calls.iter().map(|call| format!("{call} was interrupted and is not repeated"));
        Ok::<_, LogError>(Some(std::iter::once(interrupted.sentence()).chain(cut).collect()))
    };
    Ok(tokio::task::spawn_blocking(look).await??)
}

/// What each Pod would hold; nothing is changed.
fn foresee(family: &mut Family, mut steps: Vec<Step>) -> Vec<Step> {
    let before = family.table.savepoint();
    for step in steps.iter_mut().filter(|step| step.comes()) {
        let key = step.pod.name.key();
        family.table.go_live(&key);
        let mut notes = family.scope_notes(&key);
        notes.append(&mut step.plan.notes);
        step.plan.notes = notes;
    }
    family.table.roll_back(before);
    steps
}

/// Brings Pods back: in one transaction, or where that is refused each in its own.
async fn bring(cx: &Cx, steps: &mut [Step]) -> Result<(), Refusal> {
    if let Some(by) = &cx.by {
        for step in steps.iter_mut().filter(|step| step.comes()) {
            if let Err(refusal) = worktree_allowed(cx, by, &step.pod).await {
                step.fails(refusal.message);
            }
        }
    }
    let coming: Vec<usize> = (0..steps.len()).filter(|n| steps[*n].comes()).collect();
    if coming.is_empty() {
        return Ok(());
    }
    let mut marks = Vec::new();
    match enter(cx, steps, &coming).await {
        Ok(entered) => marks.push(entered),
        Err(refusal) if coming.len() == 1 => steps[coming[0]].fails(refusal.message),
        Err(_) => {
            for n in &coming {
                match enter(cx, steps, &[*n]).await {
                    Ok(entered) => marks.push(entered),
                    Err(refusal) => steps[*n].fails(refusal.message),
                }
                if steps[0].plan.what == Restoring::Impossible {
                    // Pods below it are not restored without it; one that was live already needs no restore.
                    return Ok(());
                }
            }
        }
    }
    crate::crash_point!("restore-stored");
    let trees = make_trees(cx, steps).await;
    let coming = steps.iter_mut().filter(|step| step.comes());
    let live = coming.zip(trees).map(|(step, ready)| async move {
        let live = match ready {
            Ok(notes) => {
                step.plan.notes.extend(notes);
                step.pod.live(Vec::new()).await
            }
            Err(refusal) => Err(refusal),
        };
        match live {
            Ok(reply) => step.is_live(reply),
            Err(refusal) => return Some((step, refusal)),
        }
        None
    });
    let failed: Vec<_> = join_all(live).await.into_iter().flatten().collect();
    crate::crash_point!("restore-live");
    for (step, refusal) in failed {
        take_back(cx, &step.pod).await?;
        step.fails(refusal.message);
    }
    Ok(())
}

/// Makes the working trees of the Pods that come back. Others of them may work in one; they are refused with its own Pod.
async fn make_trees(cx: &Cx, steps: &[Step]) -> Vec<Result<Vec<String>, Refusal>> {
    let coming: Vec<&Step> = steps.iter().filter(|step| step.comes()).collect();
    let ready = coming.iter().map(|step| worktree::ready(&cx.shared, &step.pod));
    let ready = join_all(ready).await;
    let of_tree = |(step, ready): (&&Step, &Result<_, Refusal>)| {
        Some((tree(step)?, ready.as_ref().err()?.clone()))
    };
    let missing: Vec<(PathBuf, Refusal)> = coming.iter().zip(&ready).filter_map(of_tree).collect();
    let or_missing = |(step, ready): (&Step, _)| {
        let cwd = step.pod.info.borrow().cwd.clone();
        let gone = missing.iter().find(|(tree, _)| cwd.starts_with(tree));
        gone.map_or(ready, |(_, refusal)| Err(refusal.clone()))
    };
    coming.into_iter().zip(ready).map(or_missing).collect()
}

/// A Pod that brings another one back into a working tree must be allowed to write the repository, as for a new one.
async fn worktree_allowed(cx: &Cx, by: &PodName, pod: &Handle) -> Result<(), Refusal> {
    let resolved = pod.parental().await?.resolved;
    let Some(tree) = resolved.worktree.filter(|_| resolved.own_scope) else { return Ok(()) };
    let by = by.clone();
    cx.family(move |family| {
        let rule = |top: PathBuf| Rule::new(top, Permission::Write);
        let from = tree.from.map(rule);
        if from.is_some_and(|rule| family.table.may_lend(&by.key(), &rule).is_ok()) {
            return Ok(());
        }
        let rule = rule(tree.repository);
        let lent = family.table.may_lend(&by.key(), &rule);
        lent.map_err(|why| family.not_within(&by, &rule, &why))
    })
    .await
}

impl Step {
    fn is_live(&mut self, reply: Event) {
        self.plan.what = match self.pod.info.borrow().state {
            State::Paused => Restoring::Paused,
            _ => Restoring::Idle,
        };
        self.reply = Some(reply);
    }
}

/// Makes these live in the store, with what they hold; the notes say where they read only.
async fn enter(cx: &Cx, steps: &mut [Step], which: &[usize]) -> Result<Vec<Mark>, Refusal> {
    let pods: Vec<Handle> = which.iter().map(|n| steps[*n].pod.clone()).collect();
    let entered = cx.family(move |family| {
        let names: Vec<PodName> = pods.iter().map(|pod| pod.name.clone()).collect();
        let mut refused: BTreeMap<usize, String> = BTreeMap::new();
        let mut came_back = BTreeSet::new();
        let mut enter = Vec::new();
        let mut room: BTreeMap<String, usize> = BTreeMap::new();
        for (n, pod) in pods.iter().enumerate() {
            let name = &pod.name;
            // Another request may have been faster since this one looked.
            family.must_not_be_stopping(name)?;
            family.must_not_be_starting(name)?;
            if family.is_live(name) && !has_failed(pod) {
                came_back.insert(n);
                continue;
            }
            match has_room(family, name, &mut room) {
                Ok(()) => enter.push(name.clone()),
                Err(refusal) => drop(refused.insert(n, refusal.message)),
            }
        }
        family.go_live(&enter);
        let notes: Vec<Vec<String>> =
            names.iter().map(|name| family.scope_notes(&name.key())).collect();
        let marks: Vec<Mark> =
            enter.iter().map(|name| family.mark(&name.key(), Doing::Starting)).collect();
        Ok((marks, notes, refused, came_back))
    });
    let (marks, notes, refused, came_back) = entered.await?;
    for (at, n) in which.iter().enumerate() {
        let step = &mut steps[*n];
        match refused.get(&at) {
            _ if came_back.contains(&at) => step.plan.what = Restoring::AlreadyLive,
            Some(why) => step.fails(why.clone()),
            None => drop(step.plan.notes.splice(0..0, notes[at].clone())),
        }
    }
    Ok(marks)
}

/// A child counts among those that may be live below its root.
fn has_room(
    family: &Family,
    name: &PodName,
    room: &mut BTreeMap<String, usize>,
) -> Result<(), Refusal> {
    if family.is_live(name) {
        return Ok(());
    }
    let Some(root) = family.table.above(&name.key()).pop() else { return Ok(()) };
    let left = match room.get(&root) {
        Some(left) if *left > 0 => *left,
        _ => {
            let root = family.name_of(&root).unwrap_or_else(|| name.clone());
            let most = family.shared.settings.last().settings.limits.live_children.get() as usize;
            match room.get(&root.key()) {
                None => family.room_below(&root)?,
                Some(_) => {
                    return Err(Refusal::invalid(format!(
                        "{most} pods are live below `{root}` and limits.live_children is {most}; stop one first"
                    )));
                }
            }
        }
    };
    room.insert(root, left - 1);
    Ok(())
}

/// A Pod that could not become live is stopped again, which its parent knows already.
async fn take_back(cx: &Cx, pod: &Handle) -> Result<(), Refusal> {
    let (name, parent) = (pod.name.clone(), pod.info.borrow().parent.clone());
    let by = parent.clone();
    let stopped = cx.family(move |family| {
        family.stop(std::slice::from_ref(&name), by.as_ref(), false);
        Ok(())
    });
    stopped.await?;
    pod.tell(Fact::Stopped).await;
    Ok(())
}

/// Why a Pod without its directory cannot work, and the way out.
pub(crate) fn no_directory(pod: &PodName, dir: &Path) -> String {
    format!(
        "its directory {} is not there; if it was moved, :restore --cwd=DIR {pod} has the family follow it to DIR",
        dir.display()
    )
}

fn not_restorable(name: &PodName, why: &str) -> Refusal {
    Refusal::invalid(format!("pod `{name}` cannot be restored: {why}"))
}
