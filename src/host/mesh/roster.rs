//! The agents of the mesh as screens show them: one list for the host. When a member notices a change, the host asks
//! the leader for the list; many changes at once cost one question and one event.

use crate::host::Shared;
use crate::host::mesh::view;
use crate::protocol::Event;
use crate::protocol::mesh::MeshAgent;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long changes are collected before the leader is asked.
const COLLECT: Duration = Duration::from_millis(250);
/// The same after a leader was replaced: its other members join within this time, so that they do not vanish from
/// screens meanwhile.
const AFTER_LEADER: Duration = Duration::from_secs(1);
/// Questions in a row that a leader may leave unanswered. After them the next change asks again.
const TRIES: u32 = 3;
/// The most agents that screens are sent. A leader of yoi has at most as many members.
const AGENTS: usize = 1024;
/// The longest name in it, in bytes. No leader of yoi assigns a longer one.
const NAME: usize = 256;

/// The agents other than the Pods of this host, by name.
pub(crate) struct Roster {
    agents: watch::Sender<Arc<Vec<MeshAgent>>>,
    /// Held for one step, never across an await.
    refresh: Mutex<Refresh>,
    ending: CancellationToken,
}

/// When the list is made anew.
#[derive(Debug, Default)]
struct Refresh {
    due: Option<Instant>,
    /// Whether a task that makes the list is running.
    is_under_way: bool,
}

/// A change that a member noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// An agent or a Pod joined, left, or was blocked.
    Member,
    /// The member follows another leader, and the list of members began anew.
    Leader,
}

impl Refresh {
    /// Notes a change, and returns whether a task has to be started for it. A stream of changes does not postpone a
    /// change that is due; only a new leader does.
    fn note(&mut self, change: Change, now: Instant) -> bool {
        match change {
            Change::Member => drop(self.due.get_or_insert(now + COLLECT)),
            Change::Leader => self.due = Some(now + AFTER_LEADER),
        }
        !std::mem::replace(&mut self.is_under_way, true)
    }

    /// When the list is due; `None` ends the task.
    fn next(&mut self) -> Option<Instant> {
        self.is_under_way = self.due.is_some();
        self.due
    }

    /// Takes the changes that are due now; `false` if they were postponed.
    fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
        }
        is_due
    }
}

impl Roster {
    pub(super) fn new() -> Self {
        let ending = CancellationToken::new();
        Self { agents: watch::Sender::default(), refresh: Mutex::default(), ending }
    }

    pub(crate) fn agents(&self) -> Arc<Vec<MeshAgent>> {
        self.agents.borrow().clone()
    }

    /// Ends the task that makes the list.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }

    fn refresh(&self) -> MutexGuard<'_, Refresh> {
        // A panic while the lock is held leaves the fields consistent.
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the list anew soon.
pub(crate) fn changed(shared: &Shared, change: Change) {
    let roster = &shared.mesh.roster;
    if roster.refresh().note(change, Instant::now()) && !roster.ending.is_cancelled() {
        let shared = shared.clone();
        tokio::spawn(async move {
            let ending = shared.mesh.roster.ending.clone();
            ending.run_until_cancelled(refresh(&shared)).await;
        });
    }
}

/// Makes the list anew until no change waits.
async fn refresh(shared: &Shared) {
    let roster = &shared.mesh.roster;
    let mut unanswered = 0;
    loop {
        let Some(due) = roster.refresh().next() else { return };
        sleep_until(due).await;
        if !roster.refresh().take(Instant::now()) {
            continue;
        }
        unanswered = match look(shared).await {
            Some(agents) => {
                show(shared, agents);
                0
            }
            None => unanswered + 1,
        };
        if (1..TRIES).contains(&unanswered) {
            roster.refresh().note(Change::Member, Instant::now());
        }
    }
}

/// The agents that are there now; `None` if the leader did not answer.
async fn look(shared: &Shared) -> Option<Vec<MeshAgent>> {
    let seat = shared.mesh.seats.borrow().values().next().cloned();
    let Some(seat) = seat else { return Some(Vec::new()) };
    let mut agents = view::outside(shared, &seat).await.ok()?;
    agents.retain(|agent| agent.name.len() <= NAME);
    agents.sort_by(|one, two| one.name.cmp(&two.name));
    agents.dedup_by(|one, two| one.name == two.name);
    agents.truncate(AGENTS);
    Some(agents)
}

/// Sends the list to every screen if it changed.
fn show(shared: &Shared, agents: Vec<MeshAgent>) {
    let agents = Arc::new(agents);
    let changed = shared.mesh.roster.agents.send_if_modified(|shown| {
        let changes = *shown != agents;
        if changes {
            *shown = agents.clone();
        }
        changes
    });
    if changed {
        shared.feed(None, None, &Event::MeshRoster { agents: agents.as_ref().clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_changes_is_looked_at_once_in_a_while_and_not_put_off() {
        let (mut refresh, begun) = (Refresh::default(), Instant::now());
        let (mut looks, mut started) = (0, 0);
        for millisecond in 0..1000 {
            let now = begun + Duration::from_millis(millisecond);
            started += u32::from(refresh.note(Change::Member, now));
            looks += u32::from(refresh.take(now));
        }
        assert_eq!((looks, started), (3, 1));
        let end = refresh.next().expect("the last changes are due");
        assert!(refresh.take(end) && refresh.next().is_none());
        assert!(refresh.note(Change::Member, end), "the task had ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_leader_puts_a_look_off_until_its_members_have_joined() {
        let (mut refresh, begun) = (Refresh::default(), Instant::now());
        refresh.note(Change::Member, begun);
        refresh.note(Change::Leader, begun);
        refresh.note(Change::Member, begun + COLLECT);
        assert!(!refresh.take(begun + COLLECT));
        assert!(refresh.take(begun + AFTER_LEADER));
    }
}
