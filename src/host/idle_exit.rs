//! The end of a host that has neither clients nor work.

use crate::host::pod::Handle;
use crate::host::{Ending, Shared};
use crate::protocol::{PodInfo, State};
use tokio::sync::watch;

/// The clients of a host, all of them connections to its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connections {
    pub(crate) open: usize,
    /// Whether the host stays without clients, as long as the settings say: a client was no brief one, or the host
    /// was started to stay.
    pub(crate) is_lasting: bool,
    /// Whether the host ends because it had no client. It takes no more of them.
    pub(crate) is_closed: bool,
}

impl Connections {
    pub(crate) fn none_of(is_lasting: bool) -> watch::Sender<Self> {
        watch::Sender::new(Self { open: 0, is_lasting, is_closed: false })
    }

    /// Whether the host has no client and stays nevertheless.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.open == 0 && self.is_lasting
    }

    fn has_only_left(&self) -> bool {
        self.open == 0 && !self.is_lasting
    }
}

/// Ends a host that only brief clients have used when the last of them has left and no Pod works. What waits for a
/// person is in the store, and does not keep the host.
pub(crate) async fn end_with_last_client(shared: Shared) {
    let mut connections = shared.connections.subscribe();
    loop {
        let left = connections.wait_for(|now| now.has_only_left() || now.is_lasting).await;
        if left.is_ok_and(|now| now.is_lasting) {
            return;
        }
        tokio::select! {
            () = until_all_rest(&shared) => {
                if end_if_alone(&shared) {
                    return;
                }
            }
            _ = connections.wait_for(|now| !now.has_only_left()) => {}
        }
    }
}

/// Ends the host unless it has a client. A client that connects from now on finds the next host.
pub(crate) fn end_if_alone(shared: &Shared) -> bool {
    let is_alone = shared.connections.send_if_modified(|connections| {
        connections.is_closed |= connections.open == 0;
        connections.is_closed
    });
    if is_alone {
        shared.ending.send_replace(Some(Ending::Asked));
    }
    is_alone
}

/// Resolves once the host has a client or a Pod that works, or stays without them.
pub(crate) async fn until_it_stays(shared: &Shared) {
    if busy_pod(shared).is_none() {
        let mut connections = shared.connections.subscribe();
        // The sender is in the same place as the receiver.
        let _ = connections.wait_for(|now| !now.has_only_left()).await;
    }
}

fn busy_pod(shared: &Shared) -> Option<Handle> {
    let is_busy = |pod: &&Handle| !pod.has_no_request() || works(&pod.info.borrow());
    shared.members.borrow().0.values().find(is_busy).cloned()
}

/// Resolves when no Pod works and none has a request to take.
async fn until_all_rest(shared: &Shared) {
    while let Some(pod) = busy_pod(shared) {
        if works(&pod.info.borrow()) {
            // A Pod whose actor ended works no more.
            if pod.info.clone().wait_for(|info| !works(info)).await.is_err() {
                return;
            }
        } else {
            // It answers after it has taken what came before.
            let _ = pod.parental().await;
        }
    }
}

/// Whether a Pod works, also in the background, or takes a message from its queue at once.
fn works(info: &PodInfo) -> bool {
    match info.state {
        _ if info.jobs > 0 => true,
        State::Running => true,
        State::Idle => !info.queue.is_empty(),
        _ => false,
    }
}

/// Whether a host that stays has nothing to stay for: no client, no work, no message and no request that waits.
pub(crate) fn is_idle(shared: &Shared) -> bool {
    shared.connections.borrow().open == 0
        && !shared.uses_mesh()
        // The event of a child that waits there may start a run.
        && shared.members.borrow().0.values().all(Handle::has_no_request)
        && shared.family().iter().all(|info| {
            !matches!(info.state, State::Running | State::NeedsYou)
                && info.queue.is_empty()
                && info.jobs == 0
        })
}
