//! Threads that make appended lines durable, and do nothing else: readers that fill the pool for
//! blocking work keep no commit waiting. An idle thread exits after [`IDLE`], but the last one stays: a
//! commit is made also where the machine has no thread left.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Commits of different files that run at the same time. More wait: a disk does not get faster by
/// more syncs in flight, and a thread costs memory.
const THREADS: usize = 16;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(2);

type Work = Box<dyn FnOnce() + Send>;

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(THREADS, IDLE));

/// Why work was not done, or nothing is known of it.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The work panicked.
    #[error("a fault in the program stopped a commit")]
    BrokeOff,
    #[error("cannot start a thread for commits: {0}")]
    NoThread(io::Error),
}

/// Does work that ends with a sync on a thread of its own. It is done even if the caller is
/// cancelled while it waits.
pub async fn commit<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NotCommitted> {
    POOL.run(work)?.await.map_err(|_| NotCommitted::BrokeOff)
}

struct Pool {
    state: Mutex<State>,
    arrived: Condvar,
    threads: usize,
    idle: Duration,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    resting: usize,
}

impl Pool {
    fn new(threads: usize, idle: Duration) -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), threads, idle }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work over; the receiver fails when the work panics.
    fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, NotCommitted> {
        let (done, outcome) = oneshot::channel();
        let work = move || {
            // A caller that was cancelled does not learn the result.
            let _ = done.send(work());
        };
        let mut state = self.state();
        state.waiting.push_back(Box::new(work));
        if state.resting >= state.waiting.len() || state.threads >= self.threads {
            self.arrived.notify_one();
            return Ok(outcome);
        }
        state.threads += 1;
        drop(state);
        let started = std::thread::Builder::new().name("commit".into()).spawn(|| self.serve());
        if let Err(error) = started {
            let mut state = self.state();
            state.threads -= 1;
            if state.threads == 0 {
                // No thread is left to do it; the receivers of what waits fail.
                state.waiting.clear();
                return Err(NotCommitted::NoThread(error));
            }
        }
        Ok(outcome)
    }

    /// Works until there has been nothing to do for [`Pool::idle`].
    fn serve(&self) {
        while let Some(work) = self.next() {
            // The caller learns of a panic by the receiver that fails.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        state.resting += 1;
        let (state, _) = self
            .arrived
            .wait_timeout_while(state, self.idle, |state| state.waiting.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let last = |state: &mut State| state.waiting.is_empty() && state.threads == 1;
        let mut state =
            self.arrived.wait_while(state, last).unwrap_or_else(PoisonError::into_inner);
        state.resting -= 1;
        let work = state.waiting.pop_front();
        if work.is_none() {
            state.threads -= 1;
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn pool(threads: usize, idle: Duration) -> &'static Pool {
        Box::leak(Box::new(Pool::new(threads, idle)))
    }

    #[tokio::test]
    async fn work_beyond_the_threads_waits_and_is_done() {
        let pool = pool(2, Duration::from_secs(60));
        let (go, gate) = mpsc::channel::<()>();
        let gate = std::sync::Arc::new(Mutex::new(gate));
        let stuck: Vec<_> = (0..2)
            .map(|_| {
                let gate = gate.clone();
                pool.run(move || gate.lock().unwrap().recv().is_ok()).unwrap()
            })
            .collect();
        let more: Vec<_> = (0..5).map(|n| pool.run(move || n).unwrap()).collect();
        assert_eq!(pool.state().threads, 2);
        for _ in &stuck {
            go.send(()).unwrap();
        }
        for (n, outcome) in more.into_iter().enumerate() {
            assert_eq!(outcome.await.unwrap(), n);
        }
    }

    #[tokio::test]
    async fn work_that_panics_costs_no_thread() {
        let pool = pool(1, Duration::from_secs(60));
        assert!(pool.run(|| panic!("on purpose")).unwrap().await.is_err());
        assert_eq!(pool.run(|| 7).unwrap().await.unwrap(), 7);
    }

    #[test]
    fn threads_without_work_end_and_the_last_one_stays() {
        let pool = pool(2, Duration::ZERO);
        let both = std::sync::Arc::new(std::sync::Barrier::new(2));
        let work = [both.clone(), both].map(|both| pool.run(move || both.wait()).unwrap());
        for outcome in work {
            outcome.blocking_recv().unwrap();
        }
        let worker = || {
            while pool.state().threads > 1 || pool.state().resting < 1 {
                std::thread::yield_now();
            }
            pool.run(std::thread::current).unwrap().blocking_recv().unwrap().id()
        };
        assert_eq!(worker(), worker());
    }
}
