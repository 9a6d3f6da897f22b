//! A thread that owns a connection and does one piece of work after the other.

use crate::disk::DiskError;
use crate::store::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// Work that waits for the thread; when so much does, the next caller waits.
const WAITING: usize = 128;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

enum LaneRequest {
    Do(Work),
    /// Answered when the connection is closed.
    Close(oneshot::Sender<()>),
}

/// Says why nothing may be done any more, if so. Called on the thread of the lane.
pub type Guard = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The handle to such a thread.
#[derive(Clone)]
pub struct Lane {
    requests: mpsc::Sender<LaneRequest>,
    guard: Arc<OnceLock<Guard>>,
    path: Arc<PathBuf>,
}

impl Lane {
    pub fn start(name: &str, path: &Path, connection: Connection) -> Result<Self, StoreError> {
        let (requests, waiting) = mpsc::channel(WAITING);
        let serve = move || serve(connection, waiting);
        std::thread::Builder::new()
            .name(name.into())
            .spawn(serve)
            .map_err(DiskError::at("start a thread for", path))?;
        Ok(Self { requests, guard: Arc::default(), path: Arc::new(path.to_owned()) })
    }

    /// Asks `guard` before each piece of work from now on; the first guard stays.
    pub fn guard(&self, guard: Guard) {
        let _ = self.guard.set(guard);
    }

    /// Does something with the connection, as one transaction, and gives its result once that is
    /// committed. If the caller is cancelled while it waits, the work is done all the same.
    pub async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, outcome) = oneshot::channel();
        let (path, guard) = (Arc::clone(&self.path), Arc::clone(&self.guard));
        let work = Box::new(move |connection: &mut Connection| {
            let result = match guard.get().and_then(|guard| guard()) {
                Some(why) => Err(StoreError::NotOurs(why).into()),
                None => transact(connection, work),
            };
            let result = result.map_err(|failure| match failure {
                Failure::Sql(error) => StoreError::at(action, &path)(error),
                Failure::Refused(error) => *error,
            });
            // The caller may have been cancelled meanwhile.
            let _ = done.send(result);
        });
        self.requests.send(LaneRequest::Do(work)).await.map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }

    /// Closes the connection, for every handle, behind the work that waits.
    pub async fn close(&self) {
        let (closing, closed) = oneshot::channel();
        // Where this fails it is closed already.
        let _ = self.requests.send(LaneRequest::Close(closing)).await;
        let _ = closed.await;
    }
}

/// Does the work that arrives until it is closed or every handle is gone.
fn serve(mut connection: Connection, mut waiting: mpsc::Receiver<LaneRequest>) {
    while let Some(order) = waiting.blocking_recv() {
        match order {
            LaneRequest::Do(work) => work(&mut connection),
            LaneRequest::Close(closed) => {
                drop(connection);
                // The caller may have gone.
                let _ = closed.send(());
                return;
            }
        }
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
