//! Named points at which the program kills itself, for the tests of what survives. Without the
//! feature `crash-points` they are nothing.

/// Ends the process as `kill -9` would, when `YOI_CRASH_AT` names this point (`name`, or `name:n`
/// for its n-th passing). With `YOI_CRASH_TRACE` every passing is noted in that file.
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::crash::pass($name);
    };
}

/// Every point there is. A point that is passed and not listed here ends the program.
#[cfg(feature = "crash-points")]
pub const POINTS: &[&str] = &[
    // a Pod begins
    "pod-stored",
    "pod-live",
    "segment-created",
    "segment-stored",
    // what comes into it
    "input-received",
    "input-committed",
    "mail-stored",
    "mail-received",
    "mail-taken",
    "mail-marked",
    "upward-stored",
    // one turn
    "block-received",
    "block-committed",
    "reply-received",
    "reply-committed",
    "ask-committed",
    "ask-stored",
    "answer-stored",
    "answer-committed",
    "tool-starting",
    "tool-ended",
    "tool-result-committed",
    "run-ending",
    "run-ended",
    // interrupted, dropped, gone on with
    "halt-received",
    "halt-committed",
    "drop-committed",
    "resume-committed",
    "log-closed",
    // another segment
    "compact-summarised",
    "compact-switched",
    "compact-closed",
    "rewind-committed",
    // a Pod stops and comes back
    "stop-stored",
    "restore-stored",
    "restore-live",
    // a host starts
    "unfinished-removed",
    "news-caught-up",
    "pod-back",
    // a family: children, peers, lent scope
    "spawn-stored",
    "spawn-told",
    "spawn-refused",
    "unspawn-stored",
    "peer-asked",
    "peer-stored",
    "unpeer-stored",
    "lend-stored",
    "reclaim-asked",
    "reclaim-stored",
    "extend-stored",
    // a family follows its directory
    "move-asked",
    "move-stored",
    "move-logged",
    // a second Pod with the same past, and one that is deleted
    "fork-copied",
    "fork-stored",
    "remove-stored",
    "session-deleted",
];

/// Passes a point.
#[cfg(feature = "crash-points")]
pub fn pass(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    if !POINTS.contains(&name) {
        end();
    }
    note(name);
    let Ok(wanted) = std::env::var("YOI_CRASH_AT") else { return };
    let (point, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if point == name && (PASSED.fetch_add(1, Ordering::SeqCst) + 1).to_string() == nth {
        end();
    }
}

#[cfg(feature = "crash-points")]
fn note(name: &str) {
    use std::io::Write as _;
    let Some(path) = std::env::var_os("YOI_CRASH_TRACE") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // The test that asked for the trace misses what could not be written.
    let _ = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
}

#[cfg(feature = "crash-points")]
fn end() -> ! {
    // A process may always signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
