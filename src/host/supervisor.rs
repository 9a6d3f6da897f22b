//! The one owner of the family: which Pods there are, which are live, and which of them may write
//! where. It takes one step after the other; a step is a pure function, and what it changed is
//! committed in one transaction and then published. The supervisor does no other I/O and awaits no
//! Pod.

use crate::config::settings::Settings;
use crate::host::errors::panic_text;
use crate::host::idle_exit::{end_if_alone, is_idle};
use crate::host::pod::{Fact, Handle};
use crate::host::{Ending, IdleExit, Shared};
use crate::protocol::{PodName, Refusal};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Committing what a step changed, and publishing it.
mod commit;
/// The family between two steps.
mod family;
/// Commands that may be writing what a step takes from their Pod.
mod in_use;
/// Pods that a verb is starting or stopping.
mod marks;
/// Where a Pod reads although it asked for write, in sentences.
mod notes;
/// What of a damaged store is made again, and what is said of it.
mod repair;
/// The family as the last host left it.
mod start;
/// What the last host began and did not finish.
pub(crate) mod unfinished;

pub(crate) use family::Family;
pub(crate) use in_use::InUse;
pub(crate) use marks::{Doing, Mark};
pub(crate) use repair::recover;
pub(crate) use start::bring_back;

/// Steps that wait for the supervisor; when it is full the verb waits.
pub(crate) const STEPS: usize = 64;

/// Ends a step that was committed or refused: with the Pods whose scope changed, or why nothing changed.
type Finish = Box<dyn FnOnce(Result<Vec<Handle>, NotTaken>) + Send>;

/// Why a step changed nothing.
pub(crate) enum NotTaken {
    Refused(Refusal),
    /// These may be writing what it takes from their Pods.
    InUse(Vec<InUse>),
}

impl From<NotTaken> for Refusal {
    fn from(why: NotTaken) -> Self {
        let in_use = match why {
            NotTaken::Refused(refusal) => return refusal,
            NotTaken::InUse(in_use) => in_use,
        };
        let each: Vec<String> = in_use.into_iter().map(|in_use| in_use.refusal).collect();
        Self::invalid(each.join("; "))
    }
}

/// A pure function on the family; `None` when it refuses.
type Run = Box<dyn FnOnce(&mut Family) -> Option<Finish> + Send>;

/// A step, as it waits for the supervisor.
pub(crate) struct Step(Run);

#[cfg(test)]
impl Step {
    /// A step that is committed and then panics, as a mistake in the program would.
    pub(crate) fn panics() -> Self {
        Self(Box::new(|_| Some(Box::new(|_| panic!("the family broke on purpose")))))
    }
}

/// Carries out a step. When this returns, its change is committed, published and shown on every
/// screen; a step that is refused has changed nothing.
pub(crate) async fn step<T: Send + 'static>(
    supervisor: &mpsc::Sender<Step>,
    run: impl FnOnce(&mut Family) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    Ok(attempt(supervisor, run).await?)
}

/// As [`step`]; one that is refused says which commands are in its way.
pub(crate) async fn attempt<T: Send + 'static>(
    supervisor: &mpsc::Sender<Step>,
    run: impl FnOnce(&mut Family) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, NotTaken> {
    let ending = || NotTaken::Refused(Refusal::internal("the host is ending"));
    let (answer, reply) = oneshot::channel();
    let step = Step(Box::new(move |family| {
        let refused = match run(family) {
            Ok(value) => {
                return Some(Box::new(move |committed: Result<Vec<Handle>, NotTaken>| {
                    // The task of the verb may be gone.
                    let _ = answer.send(committed.map(|changed| (value, changed)));
                }));
            }
            Err(refusal) => refusal,
        };
        let _ = answer.send(Err(NotTaken::Refused(refused)));
        None
    }));
    supervisor.send(step).await.map_err(|_| ending())?;
    let (value, changed) = reply.await.map_err(|_| ending())??;
    let shown = changed.iter().map(|pod| pod.tell(Fact::Regranted));
    futures_util::future::join_all(shown).await;
    Ok(value)
}

/// The owner itself.
pub(crate) struct Supervisor {
    family: Family,
}

impl Supervisor {
    /// Takes steps until the host ends. A panic outside a step ends the host, with the reason: what
    /// the family in memory and the store have in common is not known any more. The steps that wait
    /// are refused.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Step>, idle_exit: IdleExit) {
        let shared = self.family.shared.clone();
        let serving = self.take_steps(&mut inbox, idle_exit);
        if let Err(panic) = AssertUnwindSafe(serving).catch_unwind().await {
            let why = panic_text(&*panic);
            let why = format!("the host ends because of a mistake in the program: {why}");
            tracing::error!("{why}");
            shared.ending.send_replace(Some(Ending::Failed(why)));
        }
    }

    async fn take_steps(&mut self, inbox: &mut mpsc::Receiver<Step>, idle_exit: IdleExit) {
        let shared = self.family.shared.clone();
        let end = || shared.ending.send_replace(Some(Ending::Asked));
        let patience = patience(&shared.settings.last().settings, idle_exit);
        let mut connections = shared.connections.subscribe();
        let mut give_up = deadline(&shared, patience);
        loop {
            let at = give_up.unwrap_or_else(Instant::now);
            tokio::select! {
                step = inbox.recv() => match step {
                    None => return,
                    Some(step) => {
                        self.take(step).await;
                        // The reply is on its way before the sockets close.
                        if self.family.ends {
                            end();
                        }
                    }
                },
                _ = connections.changed() => {
                    give_up = deadline(&shared, patience);
                }
                () = tokio::time::sleep_until(at), if give_up.is_some() => {
                    let ends = is_idle(&shared) && end_if_alone(&shared);
                    give_up = deadline(&shared, patience).filter(|_| !ends);
                }
            }
        }
    }

    async fn take(&mut self, Step(run): Step) {
        self.family.begin();
        // A step that panics has changed nothing: its verb is refused, the next step is taken.
        let run = std::panic::catch_unwind(AssertUnwindSafe(|| run(&mut self.family)));
        match run {
            Ok(Some(finish)) => finish(self.family.commit().await),
            Ok(None) | Err(_) => self.family.roll_back(),
        }
    }
}

/// How long a host without screen and work stays; `None`: for ever.
pub(crate) fn patience(settings: &Settings, idle_exit: IdleExit) -> Option<Duration> {
    match idle_exit {
        IdleExit::Never => None,
        IdleExit::BySettings | IdleExit::WithLastClient => settings.host.idle_exit(),
    }
}

/// When a host that stays is looked at again; `None` while it has a client, and before it has one for which it stays.
fn deadline(shared: &Shared, patience: Option<Duration>) -> Option<Instant> {
    let stays_alone = shared.connections.borrow().is_left_alone();
    patience.filter(|_| stays_alone).map(|patience| Instant::now() + patience)
}

/// The sentence for a Pod that is not there.
pub(crate) fn missing(name: &PodName) -> Refusal {
    Refusal::invalid(format!("no pod named `{name}`"))
}
