//! Measures what a Pod keeps while one of its commands runs, and once more when the command is over.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::access::limits::CommandLimits;
use crate::sandbox::access::pod_storage::{LayerLock, PodStorage, Size};
use crate::sandbox::process::reaper;
use rustix::fs::statvfs;
use rustix::process::getpid;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often what a Pod keeps is measured, and how many times longer than it took the next look at it
/// waits at least.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const LOOK_SELDOM: u32 = 20;
/// So many bytes have to be written, or lost by the file system, before the end of a command is worth a look.
const WORTH_A_LOOK: u64 = 1 << 20;

/// The looks at what the Pod of a running command keeps.
pub struct StorageWatch {
    private: PodStorage,
    limits: CommandLimits,
    state: Arc<Mutex<State>>,
    /// The place whose free space tells whether anything grew, and the bytes that were free there at the beginning.
    free: (PathBuf, Option<u64>),
}

#[derive(Default)]
struct State {
    first: Option<Size>,
    /// Why the command is ended.
    too_much: Option<String>,
    /// The command is over, so that nothing ends it any more.
    is_over: bool,
}

/// What a Pod keeps beyond its limits after a command.
pub struct Excess {
    pub met: LimitMet,
    /// The command was ended for it.
    pub ended: bool,
}

impl StorageWatch {
    /// Begins before the command does, so that the first size holds nothing of it. `end` ends the command.
    pub fn start(
        private: PodStorage,
        limits: CommandLimits,
        end: impl FnOnce() + Send + 'static,
    ) -> Result<Self, String> {
        let state = Arc::new(Mutex::new(State::default()));
        let free = (private.dir().to_owned(), None);
        let mut watch = Self { private, limits, state, free };
        watch.free.1 = watch.free_now();
        let (private, state) = (watch.private.clone(), watch.state.clone());
        reaper::thread(move || {
            if look_until_too_much(&private, &limits, &state) {
                end();
            }
        })?;
        Ok(watch)
    }

    /// The command is over: nothing ends it any more.
    pub fn stop(&self) {
        locked(&self.state).is_over = true;
    }

    /// What is too much after the command, whose processes are all gone and waited for. It may have ended between two
    /// looks, so a last one is made if it wrote or if there is less free space than before.
    pub fn finish(self, hold: &LayerLock) -> Option<Excess> {
        let met = |sentence| LimitMet { kind: LimitKind::Space, sentence };
        let (ended_for, first) = {
            let mut state = locked(&self.state);
            (state.too_much.take(), state.first.unwrap_or(Size::UNKNOWN))
        };
        if let Some(sentence) = ended_for {
            return Some(Excess { met: met(sentence), ended: true });
        }
        let lost = self.free.1.zip(self.free_now()).map(|(was, now)| was.saturating_sub(now));
        if lost.is_some_and(|bytes| bytes < WORTH_A_LOOK)
            && written(own_pid()).is_none_or(|bytes| bytes < WORTH_A_LOOK)
        {
            return None;
        }
        let now = self.private.size_at_end(hold);
        let sentence = first.too_much(&now, &self.limits)?;
        Some(Excess { met: met(sentence), ended: false })
    }

    fn free_now(&self) -> Option<u64> {
        // The directory is made for the first command of a Pod; before that there is its parent.
        let found = self.free.0.ancestors().find_map(|dir| statvfs(dir).ok())?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Looks until the command is over, or until the Pod keeps too much: then this returns true.
fn look_until_too_much(private: &PodStorage, limits: &CommandLimits, state: &Mutex<State>) -> bool {
    let first = private.size();
    locked(state).first = Some(first);
    let (mut now, mut took) = (first, Duration::ZERO);
    loop {
        {
            let mut state = locked(state);
            if state.is_over {
                return false;
            }
            state.too_much = first.too_much(&now, limits);
            if state.too_much.is_some() {
                return true;
            }
        }
        std::thread::sleep(LOOK_AGAIN.max(took * LOOK_SELDOM));
        let begun = Instant::now();
        now = private.size();
        took = begun.elapsed();
    }
}

/// Bytes that a process, and those of its children that were waited for, wrote to files and pipes. Space that is
/// allocated and not written to does not count.
fn written(pid: i32) -> Option<u64> {
    let counts = match std::fs::read_to_string(format!("/proc/{pid}/io")) {
        Ok(counts) => counts,
        // It ended meanwhile, and its parent has what it wrote.
        Err(_) if !Path::new("/proc").join(pid.to_string()).exists() => return Some(0),
        Err(_) => return None,
    };
    let of = |name: &str| counts.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    // Memory that is mapped from a file is written without a call.
    Some(of("wchar: ").unwrap_or(0).max(of("write_bytes: ").unwrap_or(0)))
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
