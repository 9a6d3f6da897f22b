//! The Pods of this host on the agent mesh. Each Pod that takes part is a member of its own, under its own name,
//! while it is live. Messages of agents and of peers come into mailboxes on one path, [`delivery`].

/// How a message of an agent or a peer comes into a mailbox.
pub(crate) mod delivery;
/// One Pod as a member: it joins, takes messages and leaves.
pub(crate) mod membership;
/// The hosts of other machines.
pub(crate) mod machines;
/// How many messages each agent may send.
mod rates;
/// The agents of the mesh as screens show them.
pub(crate) mod roster;
/// The agents that a Pod can reach, and how this host takes part.
pub(crate) mod view;
/// Where a message of a Pod goes.
pub(crate) mod sending;

use crate::host::Shared;
use crate::mesh::machines::{MachineName, address};
use crate::mesh::{Member, Peer, Standing};
use crate::protocol::PodName;
use crate::store::agent_key;
use rates::Rates;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long members may take to leave when the host ends.
const TO_LEAVE: Duration = Duration::from_secs(2);

/// What the tasks of the members share.
pub(crate) struct Mesh {
    /// The Pods that have joined, by [`PodName::key`].
    seats: watch::Sender<Arc<BTreeMap<String, Seat>>>,
    /// The agents that a person blocked; only the verb writes it.
    blocked: watch::Sender<Arc<BTreeSet<String>>>,
    /// Held for one message, never across an await.
    rates: Mutex<Rates>,
    members: TaskTracker,
    pub(crate) roster: roster::Roster,
    pub(crate) machines: machines::Machines,
}

/// A Pod that has joined.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) pod: PodName,
    pub(crate) member: Arc<Member>,
    pub(crate) standing: Standing,
}

impl Mesh {
    pub(crate) fn new(blocked: BTreeSet<String>) -> Self {
        Self {
            seats: watch::Sender::default(),
            blocked: watch::Sender::new(Arc::new(blocked)),
            rates: Mutex::default(),
            members: TaskTracker::new(),
            roster: roster::Roster::new(),
            machines: machines::Machines::new(),
        }
    }

    /// The seat of a Pod, once it has joined.
    pub(crate) fn seat(&self, pod: &PodName) -> Option<Seat> {
        self.seats.borrow().get(&pod.key()).cloned()
    }

    /// Notes that a Pod has joined, unless its membership is `leaving`, because the next membership may have joined
    /// already. Returns whether the Pod was noted.
    pub(super) fn note_joined(&self, seat: Seat, leaving: &CancellationToken) -> bool {
        self.seats.send_if_modified(|seats| {
            let stays = !leaving.is_cancelled();
            if stays {
                Arc::make_mut(seats).insert(seat.pod.key(), seat);
            }
            stays
        })
    }

    /// Forgets a member that leaves, if the Pod has no newer membership.
    pub(super) fn note_left(&self, pod: &PodName, member: &Arc<Member>) {
        self.seats.send_if_modified(|seats| {
            let own = seats.get(&pod.key()).is_some_and(|seat| Arc::ptr_eq(&seat.member, member));
            if own {
                Arc::make_mut(seats).remove(&pod.key());
            }
            own
        });
    }

    /// The Pod of this host that has this name on the mesh.
    pub(crate) fn pod_named(&self, name: &str) -> Option<PodName> {
        let seats = self.seats.borrow();
        seats.values().find(|seat| seat.standing.name == name).map(|seat| seat.pod.clone())
    }

    /// The agents of a roster that are no Pods of this host.
    pub(crate) fn others(&self, roster: Vec<Peer>) -> Vec<Peer> {
        let seats = self.seats.borrow();
        let own: BTreeSet<&str> = seats.values().map(|seat| seat.standing.name.as_str()).collect();
        roster.into_iter().filter(|peer| !own.contains(peer.name.as_str())).collect()
    }

    /// Whether a person blocked an agent, or the machine that it is on. A machine is blocked as `casa:`, an agent of this
    /// machine as `casa`.
    pub(crate) fn is_blocked(&self, name: &str) -> bool {
        let blocked = self.blocked.borrow();
        stored_block(&blocked, name).is_some() || on_blocked_machine(&blocked, name).is_some()
    }

    /// The agents and machines that a person blocked.
    pub(crate) fn blocked(&self) -> Arc<BTreeSet<String>> {
        self.blocked.borrow().clone()
    }

    pub(crate) fn set_blocked(&self, blocked: BTreeSet<String>) {
        self.blocked.send_replace(Arc::new(blocked));
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        // The counts are whole at any moment.
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when every member has left.
    pub(crate) async fn left(&self) {
        self.roster.end();
        self.machines.end();
        self.members.close();
        if tokio::time::timeout(TO_LEAVE, self.members.wait()).await.is_err() {
            tracing::warn!("members of the mesh did not leave within {TO_LEAVE:?}");
        }
    }
}

/// The name under which a person blocked this agent or machine. Names of Pods of other machines ignore case.
pub(crate) fn stored_block<'a>(blocked: &'a BTreeSet<String>, name: &str) -> Option<&'a str> {
    let key = agent_key(name);
    blocked.iter().find(|stored| agent_key(stored) == key).map(String::as_str)
}

/// The machine of this agent, if a person blocked the machine.
pub(crate) fn on_blocked_machine(blocked: &BTreeSet<String>, name: &str) -> Option<MachineName> {
    let (machine, _) = address(name)?;
    blocked.contains(&format!("{machine}:")).then_some(machine)
}

impl Shared {
    /// Whether a Pod of this host takes part in the mesh, or tries to.
    pub(crate) fn uses_mesh(&self) -> bool {
        let members = self.members.borrow();
        members.0.values().any(|handle| handle.info.borrow().mesh.is_some())
    }
}
