//! Ends the programs of a test that hangs, so that the whole of the tests ends too and says which one it was.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// Longer than any test takes that does not hang, also on a loaded machine.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The directories of the tests under way, with the names of their tests and when they began.
static UNDER_WAY: Mutex<BTreeMap<PathBuf, (String, Instant)>> = Mutex::new(BTreeMap::new());

/// Watches the test of this thread, which works in this directory.
pub fn watch(dir: &Path) {
    static WATCHER: Once = Once::new();
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    under_way.insert(dir.to_owned(), (test, Instant::now()));
    WATCHER.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(5));
                end_what_hangs();
            }
        });
    });
}

/// Ends the watch over a directory when it is dropped.
pub struct Unwatch<'a>(pub &'a Path);

impl Drop for Unwatch<'_> {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).remove(self.0);
    }
}

fn end_what_hangs() {
    let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    for (dir, (test, began)) in under_way.iter_mut() {
        if began.elapsed() < LONGEST {
            continue;
        }
        *began = Instant::now();
        // Past the capture of the output of tests.
        let _ = writeln!(std::io::stderr(), "{test} hangs; its programs, which end now:");
        for process in processes_of(dir) {
            let read = |file: &str| std::fs::read(process.join(file)).unwrap_or_default();
            let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let waits = String::from_utf8_lossy(&read("wchan")).into_owned();
            let _ = writeln!(std::io::stderr(), "  {} ({waits}) {words}", process.display());
            let pid = process.file_name().map(|pid| pid.to_string_lossy().into_owned());
            let _ = std::process::Command::new("kill").arg("-KILL").args(pid).status();
        }
    }
}

/// The processes with this directory in their environment.
fn processes_of(dir: &Path) -> Vec<PathBuf> {
    let dir = dir.as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let own = |process: &PathBuf| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        memchr::memmem::find(&environment, dir).is_some()
    };
    all.filter(own).collect()
}
