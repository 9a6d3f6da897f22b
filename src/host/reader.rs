//! The Pods of a data directory that cannot be written, as the last host left them: no host can run there, and reading
//! needs none. Nothing in the directory is changed; what a host would change in the database when it starts is changed
//! in a private copy.

use crate::client::{Client, ConnectError, Events};
use crate::host::{DATABASE, HostError, Options, Shared, host_connection, supervisor};
use crate::store::{self, Store, StoreError};
use std::io;
use std::path::Path;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Answers the requests that read, as a host that started now would.
pub struct Reader {
    shared: Shared,
    /// The receiver is dropped, so that a request that changes the family fails.
    steps: mpsc::Sender<supervisor::Step>,
    pub(super) copy: TempDir,
}

impl Reader {
    /// Why no host can run for a data directory that is there: it cannot be written.
    pub fn is_needed(data: &Path) -> Option<io::Error> {
        use rustix::fs::{Access, access};
        use rustix::io::Errno;
        match access(data, Access::WRITE_OK) {
            Err(error @ (Errno::ROFS | Errno::ACCESS | Errno::PERM)) => Some(error.into()),
            Ok(()) | Err(_) => None,
        }
    }

    /// Reads the store and the ends of the logs. Nothing is sent to a model and no command is run.
    pub async fn open(options: Options) -> Result<Self, HostError> {
        let database = options.dirs.data.join(DATABASE);
        let copied = tokio::task::spawn_blocking(move || store::copy(&database)).await;
        let copy = copied.map_err(|_| StoreError::Closed)??;
        let (store, opening) = Store::open(&copy.path().join(DATABASE)).await?;
        let (shared, _) = Shared::new(options, store, None).await?;
        supervisor::recover(&shared, &opening).await?;
        let (steps, _) = mpsc::channel(1);
        supervisor::bring_back(&shared, &steps).await?;
        Ok(Self { shared, steps, copy })
    }

    /// A client in this process that speaks to the reader as it would to a host.
    pub async fn client(&self) -> Result<(Client, Events), ConnectError> {
        host_connection::over_pipe(&self.shared, &self.steps).await
    }

    /// Removes the copy of the database.
    pub async fn end(self) {
        self.shared.store.clone().close().await;
        drop(self.copy);
    }
}
