//! Work on paths that people and models name. A path may lie on a mount that never answers, so this
//! work has threads of its own, few of them, and each piece has a deadline.

use crate::protocol::Refusal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

/// How many paths are worked on at once. A path that never answers keeps its thread.
const THREADS: usize = 8;
/// How long a path may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// The threads for paths.
#[derive(Clone)]
pub(crate) struct Files {
    free: Arc<Semaphore>,
    /// The paths that are worked on now, for the sentence that says why none is free.
    busy: Arc<Mutex<BTreeMap<u64, PathBuf>>>,
    next: Arc<AtomicU64>,
    deadline: Duration,
    #[cfg(test)]
    pub(crate) replacement: Arc<Replacement>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(THREADS)),
            busy: Arc::default(),
            next: Arc::default(),
            deadline: DEADLINE,
            #[cfg(test)]
            replacement: Arc::default(),
        }
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
        let end = Instant::now() + self.deadline;
        let free = self.free.clone().acquire_owned();
        let permit = match tokio::time::timeout_at(end, free).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) | Err(_) => return Err(self.none_free(path)),
        };
        let (done, result) = oneshot::channel();
        let job = Job::new(self, path);
        #[cfg(test)]
        let (replacement, named) = (self.replacement.clone(), path.to_owned());
        let thread = std::thread::Builder::new().name("path".into());
        let started = thread.spawn(move || {
            let _kept = (permit, job);
            #[cfg(test)]
            replacement.wait(&named);
            // The asker may have stopped waiting.
            let _ = done.send(work());
        });
        started.map_err(|e| Refusal::internal(format!("cannot start a thread: {e}")))?;
        match tokio::time::timeout_at(end, result).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(Refusal::internal(format!("{}: cannot be used", path.display()))),
            Err(_) => Err(self.late(path)),
        }
    }

    fn none_free(&self, path: &Path) -> Refusal {
        let busy = self.busy().values().next().cloned().unwrap_or_default();
        Refusal::internal(format!(
            "{}: not looked at, because all {THREADS} threads for paths wait, the first for {}",
            path.display(),
            busy.display()
        ))
    }

    fn late(&self, path: &Path) -> Refusal {
        let seconds = self.deadline.as_secs();
        Refusal::internal(format!("{} did not answer within {seconds} s", path.display()))
    }

    fn busy(&self) -> MutexGuard<'_, BTreeMap<u64, PathBuf>> {
        // The map is whole at any moment.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path that is worked on, as long as it is.
struct Job {
    files: Files,
    id: u64,
}

impl Job {
    fn new(files: &Files, path: &Path) -> Self {
        let id = files.next.fetch_add(1, Ordering::Relaxed);
        files.busy().insert(id, path.to_owned());
        Self { files: files.clone(), id }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.files.busy().remove(&self.id);
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

    #[tokio::test]
    async fn a_path_that_never_answers_is_refused_by_name_and_others_are_served() {
        let files = Files { deadline: Duration::from_secs(1), ..Files::default() };
        files.replacement.hang(Path::new("/slow"));
        let refused = files.run(Path::new("/slow/x"), || ()).await.unwrap_err();
        assert_eq!(refused.message, "/slow/x did not answer within 1 s");
        assert_eq!(files.run(Path::new("/fast"), || 7).await.unwrap(), 7);
        files.replacement.release();
    }

    #[tokio::test]
    async fn paths_that_never_answer_keep_no_more_threads_than_there_are() {
        let files = Files { deadline: Duration::from_secs(1), ..Files::default() };
        files.replacement.hang(Path::new("/slow"));
        let hanging = (0..THREADS).map(|_| files.run(Path::new("/slow/x"), || ()));
        for refused in futures_util::future::join_all(hanging).await {
            assert!(refused.is_err());
        }
        assert_eq!(files.free.available_permits(), 0);
        let refused = files.run(Path::new("/fast"), || ()).await.unwrap_err();
        let expected =
            "/fast: not looked at, because all 8 threads for paths wait, the first for /slow/x";
        assert_eq!(refused.message, expected);
        files.replacement.release();
        // Each thread gives its place back when its path has answered.
        assert_eq!(files.run(Path::new("/fast"), || 7).await.unwrap(), 7);
    }
}
