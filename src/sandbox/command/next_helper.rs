//! The helper of a Pod's next command, started while the command before it runs: four starts of this program are the
//! largest part of a trivial command. It has started the stages of the command, which have namespaces of their own, and
//! waits for the order. It knows the limits of the command, but nothing of its scope, and has none of the Pod's files.

use crate::sandbox::access::view::Network;
use crate::sandbox::command::{Command, Sandbox};
use crate::sandbox::process::messages::{Stages, new_mark};
use crate::sandbox::process::procfs::Process;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

/// How long a helper waits for its command.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most helpers that wait at a time: each takes about 10 MB with its three stages.
const MOST: usize = 8;
/// The mounts of this machine.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The places of this process.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MOST)));

/// The helper that waits for the next command of a Pod, at most one. It ends after a minute, and with the last clone.
#[derive(Clone, Debug)]
pub struct NextHelper {
    waiting: Arc<Mutex<Option<Waiting>>>,
    places: Arc<Semaphore>,
}

impl Default for NextHelper {
    fn default() -> Self {
        Self { waiting: Arc::default(), places: Arc::clone(&PLACES) }
    }
}

#[derive(Debug)]
struct Waiting {
    child: Child,
    mark: String,
    stages: Stages,
    /// The mounts of this machine at its start. Its stages may miss later ones.
    mounts: Vec<u8>,
    _place: OwnedSemaphorePermit,
    _end: AbortOnDropHandle<()>,
}

impl NextHelper {
    /// The helper that waits for a command with these stages, and the mark of its processes. One that has ended, or whose
    /// stages may miss a mount, is dropped.
    pub fn take(&self, command: &Command, keeper: Option<Process>) -> Option<(Child, String)> {
        let stages = Stages::of(command.view.as_ref()?, keeper)?;
        let mut waiting = self.slot().take_if(|waiting| waiting.stages == stages)?;
        let lives = matches!(waiting.child.try_wait(), Ok(None));
        let fits = lives && mounts().is_some_and(|mounts| mounts == waiting.mounts);
        fits.then_some((waiting.child, waiting.mark))
    }

    /// Starts the helper of the next command, if this one belongs to a Pod, has namespaces, and is without the network.
    pub fn start(&self, sandbox: &Sandbox, command: &Command, keeper: Option<Process>) {
        let stages = command.view.as_ref().and_then(|view| Stages::of(view, keeper));
        let usual = |stages: &Stages| stages.network == Network::Off && !stages.pod.is_empty();
        let Some(stages) = stages.filter(usual) else { return };
        let mut slot = self.slot();
        if slot.as_ref().is_none_or(|waiting| waiting.stages != stages) {
            // Its place is free for the new one.
            *slot = None;
            // Without it the next command starts its helper itself.
            *slot = self.started(sandbox, stages);
        }
    }

    fn started(&self, sandbox: &Sandbox, stages: Stages) -> Option<Waiting> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let (mounts, mark) = (mounts()?, new_mark());
        let child = sandbox.helper_ahead(&mark, &stages).spawn().ok()?;
        let (slot, own) = (Arc::downgrade(&self.waiting), mark.clone());
        let patience = tokio::time::sleep(PATIENCE);
        let end = tokio::spawn(async move {
            patience.await;
            if let Some(slot) = slot.upgrade() {
                lock(&slot).take_if(|waiting| waiting.mark == own);
            }
        });
        let end = AbortOnDropHandle::new(end);
        Some(Waiting { child, mark, stages, mounts, _place: place, _end: end })
    }

    fn slot(&self) -> MutexGuard<'_, Option<Waiting>> {
        lock(&self.waiting)
    }
}

fn lock(slot: &Mutex<Option<Waiting>>) -> MutexGuard<'_, Option<Waiting>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mounts() -> Option<Vec<u8>> {
    std::fs::read(MOUNTS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::access::confinement::Isolation;
    use crate::sandbox::access::places::UserPaths;
    use crate::sandbox::access::view::{CommandView, Need, ViewInputs};
    use crate::sandbox::command::start_group::StartGroup;
    use crate::scope::Scope;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// The command of a Pod with these needs.
    fn command(needs: &[Need]) -> Command {
        let (env, scope) = (BTreeMap::new(), Scope::default());
        let private = Some(Path::new("/private"));
        let isolation = Isolation::Namespaces;
        let around = ViewInputs::new(&scope, UserPaths { env: &env });
        let view = Some(CommandView::new(&ViewInputs { needs, private, isolation, ..around }));
        let (program, cwd, timeout) = (":".to_owned(), "/".into(), PATIENCE);
        Command { program, cwd, env, timeout, view, group: StartGroup::default() }
    }

    /// With places of its own.
    fn next_helper() -> NextHelper {
        NextHelper { places: Arc::new(Semaphore::new(MOST)), ..NextHelper::default() }
    }

    /// A program in the place of the helper that lives until nobody reads what it writes.
    fn sandbox() -> Sandbox {
        Sandbox { helper: "yes".into(), ..Sandbox::default() }
    }

    #[tokio::test]
    async fn a_helper_that_waits_is_for_the_next_command_of_its_kind() {
        let (sandbox, next) = (sandbox(), next_helper());
        next.start(&sandbox, &command(&[Need::Network]), None);
        assert!(next.slot().is_none());
        next.start(&sandbox, &command(&[]), None);
        let first = next.slot().as_ref().map(|waiting| waiting.mark.clone()).unwrap();
        next.start(&sandbox, &command(&[]), None);
        assert!(next.take(&command(&[Need::Network]), None).is_none(), "it has no network");
        assert_eq!(
            next.clone().take(&command(&[]), None).unwrap().1,
            first,
            "there is at most one"
        );
        assert!(next.take(&command(&[]), None).is_none());
    }

    #[tokio::test]
    async fn a_helper_that_ended_or_may_miss_a_mount_is_not_used() {
        let (sandbox, next) = (sandbox(), next_helper());
        next.start(&sandbox, &command(&[]), None);
        next.slot().as_mut().unwrap().mounts.push(b'\n');
        assert!(next.take(&command(&[]), None).is_none());
        next.start(&sandbox, &command(&[]), None);
        let mut slot = next.slot().take();
        slot.as_mut().unwrap().child.kill().await.unwrap();
        *next.slot() = slot;
        assert!(next.take(&command(&[]), None).is_none() && next.slot().is_none());
    }

    #[tokio::test]
    async fn no_more_helpers_wait_than_there_are_places() {
        let (sandbox, next) = (sandbox(), next_helper());
        let all = next.places.acquire_many(u32::try_from(MOST).unwrap()).await.unwrap();
        next.start(&sandbox, &command(&[]), None);
        assert!(next.slot().is_none());
        drop(all);
        let others = next.places.acquire_many(u32::try_from(MOST - 1).unwrap()).await.unwrap();
        next.start(&sandbox, &command(&[]), None);
        assert!(next.slot().is_some());
        // The one of a command with another limit takes its place.
        let mut other = command(&[]);
        other.view.as_mut().unwrap().limits.memory_mib = 7;
        next.start(&sandbox, &other, None);
        assert!(next.take(&command(&[]), None).is_none() && next.take(&other, None).is_some());
        drop(others);
    }
}
