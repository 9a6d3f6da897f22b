//! What the host keeps for the next commands of a Pod: a keeper, which holds the network and the layers over caches that
//! they share, and a helper that waits. The keeper ends a minute after the last command, when a command has another view,
//! and with the last clone of its [`PodWorld`].

use crate::sandbox::next_helper::NextHelper;
use crate::sandbox::order::{JsonLine as _, Keep, Keeper, KeptWorld, MOST_BYTES};
use crate::sandbox::view::{CommandView, Isolation};
use crate::sandbox::{Command, Sandbox};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

/// How long a world without commands is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How long a keeper may take to begin or to end.
const KEEPER_TIME: Duration = Duration::from_secs(10);
/// The mounts of this machine.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The kept world of a Pod and the helper of its next command, shared by the commands of the Pod.
#[derive(Clone, Debug, Default)]
pub struct PodWorld {
    pub(crate) next: NextHelper,
    /// Locked while a keeper begins or ends, so that commands that start together wait for one keeper.
    kept: Arc<Mutex<Option<Kept>>>,
    /// The next keeper opens directories in the layers that cannot be listed.
    make_measurable: Arc<AtomicBool>,
}

/// A keeper at the host. When this is dropped it is killed.
#[derive(Debug)]
struct Kept {
    child: Child,
    world: KeptWorld,
    basis: Basis,
    /// The number of running commands in its world.
    running: watch::Sender<usize>,
}

/// What a world was computed from.
#[derive(Debug, PartialEq, Eq)]
struct Basis {
    view: CommandView,
    env: BTreeMap<String, String>,
    mounts: Vec<u8>,
}

/// A command that runs in a kept world.
#[derive(Debug)]
pub struct Joined {
    pub world: KeptWorld,
    running: watch::Sender<usize>,
    make_measurable: Arc<AtomicBool>,
}

impl Joined {
    /// The layers hold too much, or cannot be measured: the next command does not start in this world.
    pub fn make_measurable(&self) {
        self.make_measurable.store(true, Ordering::Relaxed);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.running.send_modify(|running| *running -= 1);
    }
}

impl PodWorld {
    /// The kept world for a command, which is begun if there is none that fits; `None` if the command gets a world of its
    /// own. One with needs shares nothing with the others: a keeper that no command uses ends before it, because the
    /// command gets the layers of the caches.
    pub async fn join(&self, sandbox: &Sandbox, command: &Command) -> Option<Joined> {
        let view = command.view.as_ref().filter(|view| view.isolation == Isolation::Namespaces)?;
        view.private.as_ref()?;
        let mut kept = self.kept.lock().await;
        if !view.shares_world {
            if kept.as_ref().is_some_and(Kept::is_unused) {
                end(&self.next, &mut kept).await;
            }
            return None;
        }
        let basis = Basis::of(view, command)?;
        // If the keeper cannot begin, a command finds them again and is ended for it.
        let make_measurable = self.make_measurable.swap(false, Ordering::Relaxed);
        if make_measurable || !kept.as_mut().is_some_and(|kept| kept.lives() && kept.basis == basis)
        {
            end(&self.next, &mut kept).await;
            *kept = self.begun(sandbox, basis, make_measurable).await;
        }
        let kept = kept.as_ref()?;
        kept.running.send_modify(|running| *running += 1);
        let (world, running) = (kept.world.clone(), kept.running.clone());
        Some(Joined { world, running, make_measurable: self.make_measurable.clone() })
    }

    /// Ends a kept world in which a command could not start, unless it was replaced meanwhile.
    pub async fn end_lost(&self, world: &KeptWorld) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|kept| kept.world.keeper == world.keeper) {
            end(&self.next, &mut kept).await;
        }
    }

    /// What the kept world costs now, as a sentence; `None` if there is none. Reads `/proc`.
    pub fn cost(&self) -> Option<String> {
        let kept = self.kept.try_lock().ok()?;
        let world = &kept.as_ref()?.world;
        let file = |name| fs::read_to_string(format!("/proc/{}/{name}", world.keeper.process.pid));
        let (memory, mounts) = (file("smaps_rollup").ok()?, file("mountinfo").ok()?);
        let own = memory.lines().filter(|line| line.starts_with("Private_"));
        let own = own.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        let (kib, mounts, caches) = (own.sum::<u64>(), mounts.lines().count(), world.layers.len());
        Some(format!(
            "a keeper holds the network and the caches ({caches}) of this Pod for its next commands: {kib} KiB of \
             memory, {mounts} mounts"
        ))
    }

    /// Starts a keeper. Without one the command gets a world of its own.
    async fn begun(&self, sandbox: &Sandbox, basis: Basis, make_measurable: bool) -> Option<Kept> {
        let mut child = sandbox.keeper().spawn().ok()?;
        let (view, env) = (basis.view.clone(), basis.env.clone());
        let order = Keep { view, env, make_measurable };
        let world = match timeout(KEEPER_TIME, answer(&mut child, &order)).await {
            Ok(Some(Ok(world))) => world,
            Ok(Some(Err(reason))) => {
                tracing::debug!(reason, "a command of a Pod has no kept world");
                return None;
            }
            Ok(None) | Err(_) => return None,
        };
        let running = watch::Sender::new(0);
        let (next, kept, keeper) =
            (self.next.clone(), Arc::downgrade(&self.kept), world.keeper.clone());
        tokio::spawn(end_when_idle(next, kept, keeper, running.subscribe()));
        Some(Kept { child, world, basis, running })
    }
}

impl Kept {
    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn is_unused(&self) -> bool {
        *self.running.borrow() == 0
    }
}

impl Basis {
    /// `None` if the mounts of this machine cannot be read.
    fn of(view: &CommandView, command: &Command) -> Option<Self> {
        let view = CommandView { scripts: Vec::new(), ..view.clone() };
        Some(Self { view, env: command.env.clone(), mounts: fs::read(MOUNTS).ok()? })
    }
}

/// Sends a keeper its order; `None` if it does not answer.
async fn answer(child: &mut Child, order: &Keep) -> Option<Result<KeptWorld, String>> {
    child.stdin.as_mut()?.write_all(order.line().as_bytes()).await.ok()?;
    let mut line = String::new();
    let answers = child.stdout.take()?.take(MOST_BYTES);
    BufReader::new(answers).read_line(&mut line).await.ok()?;
    Result::parse(&line)
}

/// Ends the helper that waits in a kept world, then the keeper, and waits until both are gone: then no process has the
/// layers mounted but those of commands that still run in them, whose helpers hold a lock.
async fn end(next: &NextHelper, kept: &mut Option<Kept>) {
    let Some(mut kept) = kept.take() else { return };
    next.end(&kept.world.keeper).await;
    // A keeper that cannot be killed keeps its lock, so the layers are not mounted again.
    let _ = timeout(KEEPER_TIME, kept.child.kill()).await;
}

/// Ends the world of this keeper when no command ran in it for a while.
async fn end_when_idle(
    next: NextHelper,
    kept: Weak<Mutex<Option<Kept>>>,
    keeper: Keeper,
    mut running: watch::Receiver<usize>,
) {
    while running.wait_for(|running| *running == 0).await.is_ok() {
        tokio::select! {
            changed = running.changed() => if changed.is_err() { return },
            () = sleep(IDLE) => {
                let Some(kept) = kept.upgrade() else { return };
                let mut kept = kept.lock().await;
                let is_idle = |kept: &Kept| kept.world.keeper == keeper && kept.is_unused();
                if kept.as_ref().is_some_and(is_idle) {
                    return end(&next, &mut kept).await;
                }
            }
        }
    }
}
