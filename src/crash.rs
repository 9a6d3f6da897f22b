//! Named points at which the program kills itself, for the tests of what survives. Without the
//! feature `crash-points` they are nothing.

/// Ends the process as `kill -9` would, when `YOI_CRASH_AT` names this point (`name`, or `name:n`
/// for its n-th passing).
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::crash::pass($name);
    };
}

/// Passes a point.
#[cfg(feature = "crash-points")]
pub fn pass(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var("YOI_CRASH_AT") else { return };
    let (point, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if point != name {
        return;
    }
    if (PASSED.fetch_add(1, Ordering::SeqCst) + 1).to_string() == nth {
        let me = rustix::process::getpid();
        // A process may always signal itself.
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}
