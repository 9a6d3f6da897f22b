//! The records of all Pods in one SQLite database. One thread owns the connection that writes,
//! another the one that reads; a write is on disk when its future resolves.

mod approvals;
mod clients;
mod consents;
mod copy;
mod counts;
mod cursors;
mod discards;
mod error;
mod family;
mod jobs;
mod lane;
mod learned;
mod machine_peers;
mod mailbox;
mod mesh;
mod open;
mod peers;
mod pods;
mod policy;
mod recover;
mod rows;
mod runs;
mod schema;
mod server_tools;
mod trusts;
mod wal;

pub use approvals::{Decided, StoredApproval};
pub use clients::StoredClient;
pub use consents::StoredConsent;
pub use copy::copy;
pub use counts::{Counts, counts};
pub use discards::Discard;
pub use error::StoreError;
pub use family::{Change, ChildMessage, Relocated};
pub use machine_peers::{MachinePeer, PeerChange, PeerState, Said, agent_key};
pub use mailbox::{MailboxKind, MailboxMessage};
pub use mesh::{Offer, Offered, Room};
pub use open::Opening;
pub use pods::{DamagedRow, PodRow, Wanted};
pub use policy::StoredRule;
pub use recover::recover;
pub use trusts::StoredTrust;

use lane::{Guard, Lane};
use std::path::Path;

/// The handle to the database. Its threads end with the last clone.
#[derive(Clone)]
pub struct Store {
    writer: Lane,
    reader: Lane,
}

impl Store {
    /// Opens the database, creates a missing one, migrates an older one after copying it, and
    /// renames a damaged one. A database of a newer program is refused.
    pub async fn open(path: &Path) -> Result<(Self, Opening), StoreError> {
        let at = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open::open(&at, schema::MIGRATIONS)).await;
        let (writer, reader, opening) = opened.map_err(|_| StoreError::Closed)??;
        let store = Self {
            writer: Lane::start("store-write", path, writer)?,
            reader: Lane::start("store-read", path, reader)?,
        };
        Ok((store, opening))
    }

    /// Asks `guard` before each change from now on; a reason that it gives refuses the change.
    pub fn guard(&self, guard: Guard) {
        self.writer.guard(guard);
    }

    /// Closes the database, for every handle, behind what is under way; one file is left.
    pub async fn close(self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

#[cfg(test)]
mod tests;
