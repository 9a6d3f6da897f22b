//! Runs work of a Pod on paths that a model or a message names. A path may be on a mount that never
//! answers, so each access has a deadline and a limited number of threads. Each Pod has its own
//! threads, so its blocked paths delay no other Pod.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The most threads that access paths at the same time. A path that never answers blocks its
/// thread.
const THREADS: usize = 8;
/// How long an access may take, and how long it may wait for a thread.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why there is no result, as a model reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResult {
    #[error("a path of it did not answer within 5 s")]
    Late,
    #[error("8 other paths do not answer")]
    NoThread,
    #[error("a fault in the program kept it from being looked at")]
    Fault,
}

/// The threads for the paths of one Pod's runs.
#[derive(Clone, Debug)]
pub struct PathThreads {
    free: Arc<Semaphore>,
    deadline: Duration,
}

impl Default for PathThreads {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(THREADS)), deadline: DEADLINE }
    }
}

impl PathThreads {
    /// Runs a function on a thread and returns its result, unless it takes too long. The thread may
    /// outlive the wait.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoResult> {
        let free = timeout(self.deadline, self.free.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = free else { return Err(NoResult::NoThread) };
        let task = tokio::task::spawn_blocking(move || {
            let _working = permit;
            work()
        });
        match timeout(self.deadline, task).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(NoResult::Fault),
            Err(_) => Err(NoResult::Late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn a_look_that_does_not_end_keeps_its_thread_and_is_reported() {
        let deadline = Duration::from_millis(200);
        let threads = PathThreads { free: Arc::new(Semaphore::new(1)), deadline };
        let (answer, silent) = channel::<()>();
        let late = threads.run(move || silent.recv().is_ok()).await;
        assert_eq!(late, Err(NoResult::Late));
        assert_eq!(threads.run(|| ()).await, Err(NoResult::NoThread));
        drop(answer);
        let permit = threads.free.acquire().await.unwrap();
        drop(permit);
        let threads = PathThreads { deadline: Duration::from_secs(60), ..threads };
        assert_eq!(threads.run(|| 7).await, Ok(7), "the thread is free when the path answers");
        assert_eq!(threads.run(|| panic!("a fault")).await, Err::<(), _>(NoResult::Fault));
    }
}
