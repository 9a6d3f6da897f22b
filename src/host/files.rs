//! Work on paths that people and models name. A path may lie on a mount that never answers, so this
//! work has threads of its own, few of them, and each piece has a deadline. Paths on remote mounts
//! have other threads than all others, and a thread whose path is late makes room for the next one.

use crate::protocol::Refusal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

mod mount_point;

/// How many local paths are worked on at once, and how many on remote mounts.
const THREADS: usize = 8;
/// How many threads there are at most, with those whose paths are late. A path that never answers
/// keeps its thread.
const MOST: usize = 64;
/// How long a path may take to answer. A request waits at most twice as long for a thread: the
/// threads that work then are free after one such time.
const DEADLINE: Duration = Duration::from_secs(5);

/// The threads for paths.
#[derive(Clone)]
pub(crate) struct Files {
    local: Arc<Semaphore>,
    remote: Arc<Semaphore>,
    /// The paths that are worked on now.
    jobs: Arc<Mutex<BTreeMap<u64, Job>>>,
    next: Arc<AtomicU64>,
    deadline: Duration,
    #[cfg(test)]
    pub(crate) replacement: Arc<Replacement>,
}

/// A path that is worked on.
struct Job {
    path: PathBuf,
    /// The remote mount that it lies on, else the path itself: all of it is silent when the path is.
    root: PathBuf,
    late: bool,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            local: Arc::new(Semaphore::new(THREADS)),
            remote: Arc::new(Semaphore::new(THREADS)),
            jobs: Arc::default(),
            next: Arc::default(),
            deadline: DEADLINE,
            #[cfg(test)]
            replacement: Arc::default(),
        }
    }
}

/// Starts work on a thread of its own. Where the machine has none left, it is done on one of those that
/// the host keeps for such times.
fn start<F: FnOnce() + Send + 'static>(work: F) {
    fn run<F: FnOnce()>(waiting: &Mutex<Option<F>>) {
        let work = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            work();
        }
    }
    let waiting = Arc::new(Mutex::new(Some(work)));
    let own = Arc::clone(&waiting);
    let started = std::thread::Builder::new().name("path".into()).spawn(move || run(&own));
    if started.is_err() {
        tokio::task::spawn_blocking(move || run(&waiting));
    }
}

impl Files {
    /// Does something with a path on a thread of this pool and gives what it returns; a refusal
    /// that names the path when that takes too long. The thread may outlive the wait, but not the
    /// number of threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (thread, wait) = self.begin(path).await?;
        let (done, result) = oneshot::channel();
        #[cfg(test)]
        let (replacement, named) = (self.replacement.clone(), path.to_owned());
        let work = move || {
            let working = thread;
            #[cfg(test)]
            replacement.wait(&named);
            let result = work();
            // Before the caller goes on: a path that has answered is not late.
            drop(working);
            // The caller may have stopped waiting.
            let _ = done.send(result);
        };
        start(work);
        let result = timeout(self.deadline, result).await;
        drop(wait);
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(Refusal::internal(format!("{}: cannot be used", path.display()))),
            Err(_) => Err(self.late(path)),
        }
    }

    /// Waits for a free thread and counts one more path that is worked on: the part of its thread
    /// and the part of its caller.
    async fn begin(&self, path: &Path) -> Result<(Thread, Wait), Refusal> {
        let mount = self.mount(path);
        let threads = if mount.is_some() { &self.remote } else { &self.local };
        let free = timeout(2 * self.deadline, threads.clone().acquire_owned());
        let Ok(Ok(permit)) = free.await else { return Err(self.none_free(path)) };
        let mut jobs = self.jobs();
        if let Some(silent) = jobs.values().find(|job| job.late && path.starts_with(&job.root)) {
            return Err(not_looked_at(path, &format!("{} does not answer", silent.root.display())));
        }
        if jobs.len() >= MOST {
            return Err(not_looked_at(path, &format!("{} paths do not answer", jobs.len())));
        }
        let (id, path) = (self.next.fetch_add(1, Ordering::Relaxed), path.to_owned());
        jobs.insert(id, Job { root: mount.unwrap_or_else(|| path.clone()), path, late: false });
        let files = || self.clone();
        Ok((Thread { files: files(), id }, Wait { files: files(), id, _permit: permit }))
    }

    /// The remote mount that a path lies on.
    fn mount(&self, path: &Path) -> Option<PathBuf> {
        #[cfg(test)]
        if let Some(mount) = self.replacement.mount_of(path) {
            return Some(mount);
        }
        mount_point::of_remote(path)
    }

    fn none_free(&self, path: &Path) -> Refusal {
        let jobs = self.jobs();
        let first = jobs.values().map(|job| job.path.display().to_string()).next();
        let first = first.unwrap_or_default();
        not_looked_at(path, &format!("all {THREADS} threads for paths wait, the first for {first}"))
    }

    fn late(&self, path: &Path) -> Refusal {
        let seconds = self.deadline.as_secs();
        Refusal::internal(format!("{} did not answer within {seconds} s", path.display()))
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<u64, Job>> {
        // The map is whole at any moment.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_looked_at(path: &Path, why: &str) -> Refusal {
    Refusal::internal(format!("{}: not looked at, because {why}", path.display()))
}

/// Held by the thread that works on a path, as long as it does.
struct Thread {
    files: Files,
    id: u64,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.files.jobs().remove(&self.id);
    }
}

/// Held by the caller as long as it waits. A thread that still works then is late, and its place is
/// free for another path.
struct Wait {
    files: Files,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(job) = self.files.jobs().get_mut(&self.id) {
            job.late = true;
        }
    }
}

/// In tests, the mount that never answers: work on paths below it blocks until it is released.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Replacement {
    mount: Mutex<Option<PathBuf>>,
    released: std::sync::Condvar,
}

#[cfg(test)]
impl Replacement {
    pub(crate) fn hang(&self, mount: &Path) {
        *self.mount.lock().unwrap() = Some(mount.to_owned());
    }

    pub(crate) fn release(&self) {
        *self.mount.lock().unwrap() = None;
        self.released.notify_all();
    }

    fn mount_of(&self, path: &Path) -> Option<PathBuf> {
        let mount = self.mount.lock().unwrap();
        mount.as_ref().filter(|mount| path.starts_with(mount)).cloned()
    }

    fn wait(&self, path: &Path) {
        let hangs = |mount: &mut Option<PathBuf>| {
            mount.as_ref().is_some_and(|mount| path.starts_with(mount))
        };
        let mount = self.mount.lock().unwrap();
        drop(self.released.wait_while(mount, hangs).unwrap());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;

    fn hanging() -> Files {
        let files = Files { deadline: Duration::from_secs(1), ..Files::default() };
        files.replacement.hang(Path::new("/slow"));
        files
    }

    impl Files {
        /// Lets the mount answer, and waits until no thread works on a path.
        async fn answer(&self) {
            self.replacement.release();
            while !self.jobs().is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_path_that_never_answers_is_refused_by_name_and_others_are_served() {
        let files = hanging();
        let refused = files.run(Path::new("/slow/x"), || ()).await.unwrap_err();
        assert_eq!(refused.message, "/slow/x did not answer within 1 s");
        assert_eq!(files.run(Path::new("/fast"), || 7).await.unwrap(), 7);
        files.answer().await;
    }

    #[tokio::test]
    async fn more_paths_that_never_answer_than_threads_delay_no_path_elsewhere() {
        let files = hanging();
        let paths: Vec<PathBuf> = (0..THREADS * 4).map(|n| format!("/slow/{n}").into()).collect();
        let late = join_all(paths.iter().map(|path| files.run(path, || ())));
        tokio::pin!(late);
        tokio::select! {
            biased;
            late = &mut late => panic!("the other path waited for them: {late:?}"),
            served = files.run(Path::new("/fast"), || 7) => assert_eq!(served.unwrap(), 7),
        }
        assert!(late.await.iter().all(Result::is_err));
        assert_eq!(files.jobs().len(), THREADS, "one mount keeps no more threads");
        let refused = files.run(Path::new("/slow/x"), || ()).await.unwrap_err();
        assert_eq!(refused.message, "/slow/x: not looked at, because /slow does not answer");
        files.answer().await;
        assert_eq!(files.run(Path::new("/slow/x"), || 7).await.unwrap(), 7, "it answers again");
    }

    #[tokio::test]
    async fn a_request_that_waits_for_a_thread_gets_that_of_a_late_path() {
        let files = hanging();
        // Links lead to the mount, so that its name does not say that it is remote.
        let late: Vec<_> = (0..THREADS).map(|_| hang_behind_a_link(&files)).collect();
        let (late, served) = tokio::join!(join_all(late), files.run(Path::new("/fast"), || 7));
        assert!(late.iter().all(Result::is_err));
        assert_eq!(served.unwrap(), 7);
        files.answer().await;
    }

    async fn hang_behind_a_link(files: &Files) -> Result<(), Refusal> {
        let replacement = files.replacement.clone();
        files.run(Path::new("/link"), move || replacement.wait(Path::new("/slow/x"))).await
    }

    #[tokio::test]
    async fn there_are_no_more_threads_than_the_limit_however_many_paths_never_answer() {
        let files = Files { remote: Arc::new(Semaphore::new(MOST)), ..hanging() };
        let late = join_all((0..MOST).map(|_| files.run(Path::new("/slow/x"), || ()))).await;
        assert!(late.iter().all(Result::is_err));
        let refused = files.run(Path::new("/fast"), || ()).await.unwrap_err();
        assert_eq!(refused.message, "/fast: not looked at, because 64 paths do not answer");
        files.answer().await;
        assert_eq!(files.run(Path::new("/fast"), || 7).await.unwrap(), 7);
    }
}
