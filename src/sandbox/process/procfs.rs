//! Finds and signals processes through /proc, safe against reused pids.

use crate::sandbox::process::reexec::HELPER_ARG;
use crate::text::SafeText;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{fs, io};

/// The most characters of a command line in the name of a process.
const NAME: usize = 60;
/// The most rounds of stopping everything before it is killed, against a process that keeps
/// forking.
const ROUNDS: usize = 50;
/// The pause between two checks for killed processes.
const PAUSE: Duration = Duration::from_millis(10);

/// A process: its start time distinguishes it from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    pub pid: i32,
    /// Clock ticks since boot.
    start: u64,
}

/// The fields of `/proc/<pid>/stat`.
struct Stat {
    parent: i32,
    start: u64,
    dead: bool,
}

/// The living descendants of `root`. An error means that `/proc` could not be read, not that there are none.
pub fn descendants(root: i32) -> io::Result<Vec<Process>> {
    let mut children: BTreeMap<i32, Vec<(Process, bool)>> = BTreeMap::new();
    for pid in pids()? {
        let Some(stat) = read_stat(pid)? else { continue };
        let process = Process { pid, start: stat.start };
        children.entry(stat.parent).or_default().push((process, stat.dead));
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (process, dead) in children.remove(&parent).unwrap_or_default() {
            open.push(process.pid);
            if !dead {
                found.push(process);
            }
        }
    }
    Ok(found)
}

/// Whether a process is a command of this process, or was started by one: it descends from a helper
/// of this process. A process that has ended counts as a command, because it may have been one.
pub fn is_ours(pid: i32) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut pid = pid;
    while pid > 1 && pid != own {
        let Some(stat) = stat(pid) else { return true };
        if stat.parent == own {
            return is_helper(pid);
        }
        pid = stat.parent;
    }
    false
}

fn is_helper(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(HELPER_ARG.as_bytes())
}

/// Ends every process that carries `mark` (`NAME=value`) in its environment; the same as [`end_below`].
pub fn end_marked(mark: &str, limit: Duration) -> (Vec<String>, Vec<String>) {
    end_all(|| marked(mark), limit)
}

/// Ends all descendants of `root`, for at most `limit`; returns the ended and the remaining ones.
pub fn end_below(root: i32, limit: Duration) -> (Vec<String>, Vec<String>) {
    end_all(|| descendants(root), limit)
}

fn end_all(
    find: impl Fn() -> io::Result<Vec<Process>>,
    limit: Duration,
) -> (Vec<String>, Vec<String>) {
    let (mut names, begun) = (BTreeMap::new(), Instant::now());
    let found = loop {
        let found = match find() {
            Ok(found) => found,
            Err(error) => return (Vec::new(), vec![unseen(&error)]),
        };
        for process in &found {
            names.entry(*process).or_insert_with(|| process.name());
        }
        if found.is_empty() || begun.elapsed() > limit {
            break found;
        }
        kill_all(|| find().unwrap_or_default());
        std::thread::sleep(PAUSE);
    };
    let stuck: Vec<String> = found.iter().filter_map(|process| names.remove(process)).collect();
    (names.into_values().collect(), stuck)
}

/// The entry for processes that could not be listed.
pub fn unseen(error: &io::Error) -> String {
    format!("processes that could not be listed (/proc: {error})")
}

/// Kills all processes that `find` returns. They are stopped first, so that none can fork
/// meanwhile.
pub fn kill_all(find: impl Fn() -> Vec<Process>) {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<Process> = find().into_iter().filter(|p| stopped.insert(*p)).collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            process.signal(Signal::STOP);
        }
    }
    for process in stopped {
        process.signal(Signal::KILL);
    }
}

impl Process {
    /// Sends a signal to exactly this process; does nothing if it has ended or belongs to another
    /// user.
    pub fn signal(self, signal: Signal) {
        if let Some(handle) = self.open() {
            // It may have ended meanwhile; a process of another user is reported as stuck.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// This process; `None` if `/proc` does not list it.
    pub fn own() -> Option<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Some(Self { pid, start: stat(pid)?.start })
    }

    /// The memory that it alone uses, in KiB; `None` if it has ended.
    pub fn memory_kib(self) -> Option<u64> {
        let file = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).ok()?;
        let own = file.lines().filter(|line| line.starts_with("Private_"));
        Some(own.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum())
    }

    /// A handle of exactly this process; `None` if it has ended.
    pub fn open(self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Checked after the handle was opened: it is of this process, or of none that lives.
        stat(self.pid).is_some_and(|stat| stat.start == self.start).then_some(handle)
    }

    /// Its command line, cut, and its pid.
    pub fn name(self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let text = String::from_utf8_lossy(&line).replace(['\0', '\n'], " ");
        let mut name: String = SafeText::brief(text.trim(), NAME).into_string();
        if name.is_empty() {
            let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
            name = comm.trim().to_owned();
        }
        format!("{name} (pid {})", self.pid)
    }
}

fn marked(mark: &str) -> io::Result<Vec<Process>> {
    Ok(pids()?.into_iter().filter_map(|pid| with_mark(pid, mark.as_bytes())).collect())
}

fn with_mark(pid: i32, mark: &[u8]) -> Option<Process> {
    let stat = stat(pid).filter(|stat| !stat.dead)?;
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let carries = environ.split(|byte| *byte == 0).any(|entry| entry == mark);
    carries.then_some(Process { pid, start: stat.start })
}

fn pids() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn stat(pid: i32) -> Option<Stat> {
    read_stat(pid).ok().flatten()
}

/// `None` if the process has ended.
fn read_stat(pid: i32) -> io::Result<Option<Stat>> {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(text: &[u8]) -> Option<Stat> {
    // The name in parentheses may itself contain parentheses, spaces and bytes that are not UTF-8.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(text.get(end + 2..)?).into_owned();
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Stat {
        dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}
