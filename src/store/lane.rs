//! A thread that owns a connection and does one piece of work after the other. Work that waits at the same time shares one
//! transaction, because the disk takes longer for a commit than SQLite for a change.

use crate::disk::DiskError;
use crate::store::StoreError;
use rusqlite::{Connection, ffi};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// Work that waits for the thread; when so much does, the next caller waits.
const WAITING: usize = 128;
/// Pieces of work that are committed together, at most.
const TOGETHER: usize = 64;

/// Work with the connection, or with the reason why it cannot be used.
type Work = Box<dyn FnOnce(rusqlite::Result<&Connection>) -> Done + Send>;

/// A piece of work that was done, and is committed with others.
struct Done {
    /// Whether its changes stay.
    succeeded: bool,
    /// The error of SQLite for which it failed.
    cause: Option<rusqlite::Error>,
    answer: Answer,
}

/// Answers the caller, with the error of the transaction if that has failed.
type Answer = Box<dyn FnOnce(Option<&rusqlite::Error>)>;

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

    /// Does something with the connection, wholly or not at all, and gives its result once that is
    /// committed. If the caller is cancelled once the work is in the queue, it is done all the same.
    pub async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, outcome) = oneshot::channel();
        let (path, guard) = (Arc::clone(&self.path), Arc::clone(&self.guard));
        let work = Box::new(move |connection: rusqlite::Result<&Connection>| {
            let result = match guard.get().and_then(|guard| guard()) {
                Some(why) => Err(StoreError::NotOurs(why).into()),
                None => connection.map_err(Failure::from).and_then(work),
            };
            let succeeded = result.is_ok();
            let cause = match &result {
                Err(Failure::Sql(error)) => Some(copy(error)),
                Ok(_) | Err(Failure::Refused(_)) => None,
            };
            let answer = Box::new(move |failed: Option<&rusqlite::Error>| {
                let result = match (result, failed) {
                    (Ok(_), Some(error)) => Err(copy(error).into()),
                    (result, _) => result,
                };
                let result = result.map_err(|failure| match failure {
                    Failure::Sql(error) => StoreError::at(action, &path)(error),
                    Failure::Refused(error) => *error,
                });
                // The caller may have been cancelled meanwhile.
                let _ = done.send(result);
            });
            Done { succeeded, cause, answer }
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
    let mut works = VecDeque::new();
    while let Some(first) = waiting.blocking_recv() {
        let mut next = Some(first);
        let mut closing = None;
        while let Some(request) = next.take() {
            match request {
                LaneRequest::Do(work) => works.push_back(work),
                LaneRequest::Close(closed) => {
                    closing = Some(closed);
                    break;
                }
            }
            next = if works.len() < TOGETHER { waiting.try_recv().ok() } else { None };
        }
        while !works.is_empty() {
            transact(&mut connection, &mut works);
        }
        if let Some(closed) = closing {
            drop(connection);
            // The caller may have gone.
            let _ = closed.send(());
            return;
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

/// Does work as one transaction and answers its callers. Where the transaction ends early, what is left of the work comes
/// into the next one.
fn transact(connection: &mut Connection, works: &mut VecDeque<Work>) {
    let mut done = Vec::with_capacity(works.len());
    let committed = do_together(connection, works, &mut done);
    done.into_iter().for_each(|done| (done.answer)(committed.as_ref().err()));
}

fn do_together(
    connection: &mut Connection,
    works: &mut VecDeque<Work>,
    all: &mut Vec<Done>,
) -> rusqlite::Result<()> {
    let mut transaction = match connection.transaction() {
        Ok(transaction) => transaction,
        Err(error) => {
            all.extend(works.drain(..).map(|work| work(Err(copy(&error)))));
            return Err(error);
        }
    };
    // For a savepoint SQLite copies each page. The first work needs none: the transaction is empty if it fails.
    if let Some(work) = works.pop_front() {
        let done = work(Ok(&transaction));
        let succeeded = done.succeeded;
        all.push(done);
        if !succeeded {
            return transaction.rollback();
        }
    }
    while let Some(work) = works.pop_front() {
        let savepoint = match transaction.savepoint() {
            Ok(savepoint) => savepoint,
            Err(error) => {
                all.push(work(Err(copy(&error))));
                return Err(error);
            }
        };
        let done = work(Ok(&savepoint));
        let ended = match done.succeeded {
            true => savepoint.commit(),
            false => savepoint.finish(),
        };
        let cause = done.cause.as_ref().map(copy);
        all.push(done);
        ended.map_err(|error| cause.unwrap_or(error))?;
    }
    transaction.commit()
}

/// The same error, for another caller.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    let code = error.sqlite_error().copied();
    let code = code.unwrap_or_else(|| ffi::Error::new(ffi::SQLITE_ERROR));
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}

#[cfg(test)]
mod tests;
