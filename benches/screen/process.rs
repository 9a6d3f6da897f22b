//! What the kernel counted for a process.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Memory in kibibytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub resident: u64,
    /// What of it is the process's own and not the program's file.
    pub own: u64,
}

/// How much memory a process has now.
pub fn memory(pid: u32) -> Memory {
    let status = read(pid, "status");
    Memory { resident: field(&status, "VmRSS:"), own: field(&status, "RssAnon:") }
}

/// Processor time of all its threads.
pub fn cpu(pid: u32) -> Duration {
    let nanos = tasks(pid).into_iter().filter_map(|task| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Bytes it asked the kernel to read, from files and everything else.
pub fn bytes_read(pid: u32) -> u64 {
    field(&read(pid, "io"), "rchar:")
}

pub fn threads(pid: u32) -> usize {
    tasks(pid).len()
}

/// Voluntary context switches of every thread of some processes.
#[derive(Debug)]
pub struct Switches(BTreeMap<(u32, u32), (String, u64)>);

impl Switches {
    pub fn of(pids: &[u32]) -> Self {
        let threads = pids.iter().flat_map(|pid| tasks(*pid).into_iter().map(|task| (*pid, task)));
        let counted = threads.map(|(pid, task)| {
            let status = read(pid, &format!("task/{task}/status"));
            let name = status.lines().next().unwrap_or_default().replace("Name:\t", "");
            ((pid, task), (name, field(&status, "voluntary_ctxt_switches:")))
        });
        Self(counted.collect())
    }

    /// How many there were since an earlier count. A thread that is new counts with all of its
    /// own, one that ended meanwhile with the switch that it took to end.
    pub fn since(&self, before: &Self) -> u64 {
        let grown = self.0.iter().map(|(thread, (_, now))| now - before.count(*thread));
        let ended = before.0.keys().filter(|thread| !self.0.contains_key(thread)).count();
        grown.sum::<u64>() + ended as u64
    }

    /// Which threads they were.
    pub fn explain(&self, before: &Self) -> String {
        let grown = self.0.iter().filter_map(|(thread, (name, now))| {
            let grown = now - before.count(*thread);
            (grown > 0).then(|| format!("{name} {} in process {}: {grown}", thread.1, thread.0))
        });
        let gone = before.0.iter().filter(|(thread, _)| !self.0.contains_key(thread));
        let gone = gone.map(|(thread, (name, _))| format!("{name} {} ended", thread.1));
        grown.chain(gone).collect::<Vec<_>>().join("; ")
    }

    fn count(&self, thread: (u32, u32)) -> u64 {
        self.0.get(&thread).map_or(0, |(_, count)| *count)
    }
}

fn tasks(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
