//! A thread that owns a connection and does one piece of work after the other.

use crate::disk::DiskError;
use crate::store::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Work that waits for the thread; who comes later waits to hand its work over.
const WAITING: usize = 128;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// The handle to such a thread.
#[derive(Clone)]
pub struct Lane {
    work: mpsc::Sender<Work>,
    path: Arc<PathBuf>,
}

impl Lane {
    pub fn start(name: &str, path: &Path, mut connection: Connection) -> Result<Self, StoreError> {
        let (work, mut waiting) = mpsc::channel::<Work>(WAITING);
        let serve = move || {
            while let Some(work) = waiting.blocking_recv() {
                work(&mut connection);
            }
        };
        std::thread::Builder::new()
            .name(name.into())
            .spawn(serve)
            .map_err(DiskError::at("start a thread for", path))?;
        Ok(Self { work, path: Arc::new(path.to_owned()) })
    }

    /// Does something with the connection, as one transaction, and gives its result once that is
    /// committed. If the caller is cancelled while it waits, the work is done all the same.
    pub async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, outcome) = oneshot::channel();
        let path = Arc::clone(&self.path);
        let work = Box::new(move |connection: &mut Connection| {
            let result = transact(connection, work);
            let result = result.map_err(|failure| match failure {
                Failure::Sql(error) => StoreError::at(action, &path)(error),
                Failure::Refused(error) => *error,
            });
            // Who was cancelled meanwhile does not hear of it.
            let _ = done.send(result);
        });
        self.work.send(work).await.map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }
}

/// Why a piece of work failed.
pub enum Failure {
    Sql(rusqlite::Error),
    Refused(Box<StoreError>),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(Box::new(error))
    }
}

fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let transaction = connection.transaction()?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}
