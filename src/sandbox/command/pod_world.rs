//! What the host keeps for the next commands of a Pod: a keeper, which holds the network that they share, and a helper that
//! waits. The keeper ends a minute after the last command, when a command has another view, and with the last clone of its
//! [`PodWorld`].

use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::view::{CommandView, Why};
use crate::sandbox::command::next_helper::NextHelper;
use crate::sandbox::command::{Command, Sandbox};
use crate::sandbox::process::messages::{JsonLine as _, MOST_BYTES};
use crate::sandbox::process::procfs::Process;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

/// How long a network without commands is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How long a keeper may take to begin.
const KEEPER_TIME: Duration = Duration::from_secs(5);

/// The kept network of a Pod and the helper of its next command, shared by the commands of the Pod.
#[derive(Clone, Debug, Default)]
pub struct PodWorld {
    pub(crate) next: NextHelper,
    /// Locked while a keeper begins, so that commands that start together wait for one keeper.
    keeping: Arc<Mutex<Keeping>>,
}

#[derive(Debug, Default)]
enum Keeping {
    #[default]
    Nothing,
    Network(Box<Kept>),
    /// This machine starts no keeper, or lets no command enter its network.
    Impossible,
}

/// A keeper at the host. When this is dropped it is killed.
#[derive(Debug)]
struct Kept {
    child: Child,
    keeper: Process,
    /// The view of the commands that share it, without scripts.
    view: CommandView,
    /// The number of commands that run in its network.
    running: watch::Sender<usize>,
}

/// A command that runs in a kept network.
#[derive(Debug)]
pub struct Joined {
    pub keeper: Process,
    running: watch::Sender<usize>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.running.send_modify(|running| *running -= 1);
    }
}

impl PodWorld {
    /// The kept network for a command, which is begun if there is none that fits; `None` if the command gets one of its own,
    /// as one with needs does.
    pub async fn join(&self, sandbox: &Sandbox, command: &Command) -> Option<Joined> {
        let view = command.view.as_ref().filter(|view| {
            view.isolation == Isolation::Namespaces && view.private.is_some() && view.shares_network
        })?;
        // A server in the background is there for the other commands.
        let holes = view.holes.iter().filter(|hole| hole.why != Why::Job).cloned().collect();
        let (scripts, writes) = (Vec::new(), Vec::new());
        let view = CommandView { scripts, in_background: false, writes, holes, ..view.clone() };
        let mut keeping = self.keeping.lock().await;
        let fits = match &mut *keeping {
            Keeping::Nothing => false,
            Keeping::Network(kept) => kept.lives() && kept.view == view,
            Keeping::Impossible => return None,
        };
        if !fits {
            // The earlier keeper ends. Commands that run in its network keep that until they end.
            *keeping = Keeping::Nothing;
            *keeping = self.begun(sandbox, view).await;
        }
        let Keeping::Network(kept) = &*keeping else { return None };
        kept.running.send_modify(|running| *running += 1);
        Some(Joined { keeper: kept.keeper, running: kept.running.clone() })
    }

    /// A command could not enter the network of this keeper.
    pub async fn lost(&self, keeper: Process) {
        let mut keeping = self.keeping.lock().await;
        if let Keeping::Network(kept) = &mut *keeping
            && kept.keeper == keeper
        {
            *keeping = if kept.lives() { Keeping::Impossible } else { Keeping::Nothing };
        }
    }

    /// The network that the next command of the same view would share, by its keeper; `None` if none is kept, or one begins.
    pub fn network(&self) -> Option<Process> {
        match &*self.keeping.try_lock().ok()? {
            Keeping::Network(kept) => Some(kept.keeper),
            Keeping::Nothing | Keeping::Impossible => None,
        }
    }

    /// What is kept now and by which process, as a sentence; `None` if that is nothing.
    pub fn cost(&self) -> Option<String> {
        let keeping = self.keeping.try_lock().ok()?;
        let Keeping::Network(kept) = &*keeping else { return None };
        let (pid, kib) = (kept.keeper.pid, kept.keeper.memory_kib()?);
        Some(format!(
            "a keeper (process {pid}) holds the network of this Pod for its next commands, in {kib} KiB of memory"
        ))
    }

    async fn begun(&self, sandbox: &Sandbox, view: CommandView) -> Keeping {
        let Ok(mut child) = sandbox.keeper().spawn() else { return Keeping::Nothing };
        let keeper = match timeout(KEEPER_TIME, answer(&mut child)).await {
            Ok(Some(Ok(keeper))) => keeper,
            Ok(Some(Err(reason))) => {
                tracing::debug!(reason, "commands of a Pod share no network");
                return Keeping::Impossible;
            }
            Ok(None) | Err(_) => return Keeping::Nothing,
        };
        let running = watch::Sender::new(0);
        tokio::spawn(end_when_idle(Arc::downgrade(&self.keeping), keeper, running.subscribe()));
        Keeping::Network(Box::new(Kept { child, keeper, view, running }))
    }
}

impl Kept {
    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// The first line of a keeper; `None` if it ended without one.
async fn answer(child: &mut Child) -> Option<Result<Process, String>> {
    let mut line = String::new();
    let answers = child.stdout.take()?.take(MOST_BYTES);
    BufReader::new(answers).read_line(&mut line).await.ok()?;
    Result::parse(&line)
}

/// Ends this keeper when no command ran in its network for a while.
async fn end_when_idle(
    keeping: Weak<Mutex<Keeping>>,
    keeper: Process,
    mut running: watch::Receiver<usize>,
) {
    while running.wait_for(|running| *running == 0).await.is_ok() {
        tokio::select! {
            changed = running.changed() => if changed.is_err() { return },
            () = sleep(IDLE) => {
                let Some(keeping) = keeping.upgrade() else { return };
                let mut keeping = keeping.lock().await;
                let is_idle = |kept: &Kept| kept.keeper == keeper && *kept.running.borrow() == 0;
                if matches!(&*keeping, Keeping::Network(kept) if is_idle(kept)) {
                    *keeping = Keeping::Nothing;
                    return;
                }
            }
        }
    }
}
