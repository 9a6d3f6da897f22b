//! Diagnostics of this process: events and spans become lines, and each line goes, redacted, to a
//! bounded ring in memory and to a rotated file in the state directory. Messages, prompts, tool
//! arguments and tool output are never logged, only their sizes and ids.

/// How an event and the spans around it become one line.
mod layer;
/// Panics become events.
mod panic;
/// What looks like a secret is replaced.
mod redact;
/// The newest lines, bounded in bytes.
mod ring;
/// The values that must never be shown.
pub mod secrets;
/// Failures that stop nothing are logged instead of dropped.
mod or_log;

pub use or_log::OrLog;
pub use redact::{Hidden, MARK, redact};

use crate::disk::{self, RotatedFile};
use crate::text::SafeText;
use ring::Ring;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

/// The name of the newest log file in the state directory, shared by all processes of it.
pub const LOG_FILE: &str = "yoi.log";
/// How large one log file may become, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// How many bytes of lines are kept in memory.
const RING_BYTES: usize = 512 * 1024;
/// The variables that name a filter, the first one set counts: `yoi=debug,warn`.
const FILTER_VARIABLES: [&str; 2] = ["YOI_LOG", "RUST_LOG"];

/// Whether the output of this process goes to the log file.
static OWN_OUTPUT: AtomicBool = AtomicBool::new(false);
/// What this process logs to; set once.
static SINK: OnceLock<Arc<Sink>> = OnceLock::new();

/// Where lines go. Both locks are held for one line only, and never across an await.
pub(crate) struct Sink {
    ring: Mutex<Ring>,
    /// `None`: there is no state directory, or the file could not be written.
    file: Mutex<Option<RotatedFile>>,
}

impl Sink {
    fn new(state: Option<&Path>) -> Self {
        let file = state.map(|state| RotatedFile::at(&state.join(LOG_FILE), MAX_BYTES));
        Self { ring: Mutex::new(Ring::new(RING_BYTES)), file: Mutex::new(file) }
    }

    /// Takes one line: the only door to the ring and the file.
    pub(crate) fn line(&self, text: &str) {
        let line = safe(text);
        let mut file = lock(&self.file);
        let written = file.as_mut().map_or(Ok(()), |file| file.write(&line));
        if let Err(error) = written {
            *file = None;
            let said = format!("log lines are kept in memory only from here on: {error}");
            lock(&self.ring).push(safe(&said));
        }
        lock(&self.ring).push(line);
    }
}

/// One line without secrets and without characters that a terminal would obey or hide.
fn safe(text: &str) -> String {
    SafeText::spelled_row(redact(text)).into_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts diagnostics for this process, once; a second call changes nothing. Secret values of
/// `env` are remembered, so that no line shows one. Without a usable `state` directory lines are
/// kept in memory only.
pub fn start(env: &BTreeMap<String, String>, state: Option<&Path>) {
    secrets::register_environment(env);
    let mut new = false;
    let sink = SINK.get_or_init(|| {
        new = true;
        Arc::new(Sink::new(state))
    });
    if !new {
        return;
    }
    let (filter, diagnostic) = filter(env);
    let layer = layer::Lines::new(sink.clone()).with_filter(filter);
    let subscriber = tracing_subscriber::registry().with(layer);
    // A program that set its own subscriber keeps it.
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        return;
    }
    if let Some(diagnostic) = diagnostic {
        tracing::warn!("{diagnostic}");
    }
    panic::install();
}

/// Sends the standard output and standard error of this process to the log file, for a process
/// that has no terminal. Text that bypasses the events, such as the last words of the allocator,
/// is found there.
pub fn redirect_output() {
    let Some(sink) = SINK.get() else { return };
    OWN_OUTPUT.store(true, Ordering::Relaxed);
    let mut file = lock(&sink.file);
    if let Some(Err(error)) = file.as_mut().map(RotatedFile::take_output) {
        drop(file);
        tracing::warn!(%error, "the output of this process goes nowhere");
    }
}

fn has_own_output() -> bool {
    OWN_OUTPUT.load(Ordering::Relaxed)
}

/// The newest lines of this process, oldest first, that contain `filter` in any case.
pub fn recent(filter: &str) -> Vec<String> {
    SINK.get().map_or_else(Vec::new, |sink| lock(&sink.ring).matching(filter))
}

/// Where the log file of a state directory and the older ones of it lie, newest first, whether
/// they exist or not.
pub fn files(state: &Path) -> Vec<PathBuf> {
    disk::generations(&state.join(LOG_FILE))
}

/// The filter the environment names, else `info` for yoi and `warn` for libraries; and a complaint
/// about one that cannot be read.
fn filter(env: &BTreeMap<String, String>) -> (Targets, Option<String>) {
    let usual =
        // The library of MCP logs the messages of servers.
        Targets::new().with_target("yoi", LevelFilter::INFO).with_target("rmcp", LevelFilter::OFF).with_default(LevelFilter::WARN);
    let set = |name: &&str| env.get(*name).map(|value| value.trim()).filter(|v| !v.is_empty());
    let Some((name, text)) = FILTER_VARIABLES.iter().find_map(|name| Some((name, set(name)?)))
    else {
        return (usual, None);
    };
    match text.parse::<Targets>() {
        Ok(filter) => (filter, None),
        Err(error) => {
            let diagnostic = format!("{name} is ignored: {error}; write it as yoi=debug,warn");
            (usual, Some(diagnostic))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
