//! The MCP clients that are connected. The requests of a client that is gone for a while are withdrawn, because no
//! call of it will take the decision. A program that answers one prompt and ends is away until its next prompt.

use crate::host::Shared;
use crate::host::clients::COUNTS;
use crate::protocol::{McpClient, Verdict};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// How long a client may be away: as long as a decision waits for its call.
pub(crate) const AWAY: Duration = COUNTS;

/// The clients that are connected, and those that left a while ago.
#[derive(Default)]
pub(crate) struct Presence(Mutex<Vec<Present>>);

struct Present {
    client: McpClient,
    connections: usize,
    /// The time at which the last connection of the client ended.
    left: Instant,
}

impl Presence {
    fn all(&self) -> MutexGuard<'_, Vec<Present>> {
        // Each change is one step, so the list is whole also after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self, client: &McpClient) {
        let mut all = self.all();
        match all.iter_mut().find(|present| present.client.is_same_program(client)) {
            Some(present) => present.connections += 1,
            None => {
                let client = client.clone();
                all.push(Present { client, connections: 1, left: Instant::now() });
            }
        }
    }

    /// Notes that a connection ended; returns whether it was the last one of its client.
    fn disconnected(&self, client: &McpClient) -> bool {
        let mut all = self.all();
        let Some(present) = all.iter_mut().find(|present| present.client.is_same_program(client))
        else {
            return false;
        };
        present.connections -= 1;
        present.left = Instant::now();
        present.connections == 0
    }

    /// Forgets a client if it has been away for long enough; returns whether it was.
    fn forget(&self, client: &McpClient) -> bool {
        let mut all = self.all();
        let gone = |present: &Present| {
            present.connections == 0
                && present.left.elapsed() >= AWAY
                && present.client.is_same_program(client)
        };
        let before = all.len();
        all.retain(|present| !gone(present));
        all.len() < before
    }
}

/// A connection that speaks for an MCP client. It is dropped when the connection and its requests have ended.
pub(crate) struct ClientConnection {
    shared: Shared,
    /// The client with its canonical folder; set by the first request.
    client: OnceLock<McpClient>,
}

impl ClientConnection {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared, client: OnceLock::new() }
    }

    /// Notes the client for which the connection speaks.
    pub(crate) fn speaks_for(&self, client: &McpClient) {
        if self.client.set(client.clone()).is_ok() {
            self.shared.clients.presence.connected(client);
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if self.shared.clients.presence.disconnected(&client)
            // Without a runtime the host has ended, and the requests with it.
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(withdraw(self.shared.clone(), client));
        }
    }
}

/// Withdraws the requests of a client, unless it connects again.
async fn withdraw(shared: Shared, client: McpClient) {
    sleep(AWAY).await;
    if !shared.clients.presence.forget(&client) {
        return;
    }
    let why = "its program has ended, and no call of it waits any more";
    for id in shared.clients.withdraw(&client) {
        shared.approval_decided(&id, &Verdict::Withdrawn { why: why.to_owned() });
    }
}
