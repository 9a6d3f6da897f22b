//! How much of the machine one command may use.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::control_group::Delegated;
use crate::sandbox::view::Isolation;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The least number of processes that a command may have.
const FEWEST: u32 = 16;
/// The low process ids of a PID namespace, which the kernel does not reuse.
const GIVEN_ONCE: u32 = 300;

/// Files per MiB of a directory in memory.
pub const FILES_PER_MIB: u64 = 128;

/// Memory that a process uses beyond what `RLIMIT_DATA` counts, in MiB.
const BESIDE_DATA_MIB: u32 = 64;

/// The limits of one command; sizes are in MiB, and 0 is no limit where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads, together.
    pub processes: u32,
    /// Memory of one process, and with a little more of a whole command where a control group counts it; 0 is no
    /// limit.
    pub memory_mib: u32,
    /// Files and sockets that one process has open.
    pub open_files: u32,
    /// One file that it writes; 0 is no limit.
    pub file_mib: u32,
    /// What `/tmp` of the Pod holds.
    pub tmp_mib: u32,
    /// What the Pod adds to the caches of toolchains.
    pub cache_mib: u32,
    /// What the home directory holds beyond what is granted in it.
    pub home_mib: u32,
    /// What `/dev/shm` holds.
    pub shm_mib: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        let (memory_mib, file_mib) = (0, 16_384);
        let (tmp_mib, cache_mib, home_mib, shm_mib) = (1024, 8192, 256, 256);
        let (processes, open_files) = (4096, 65_536);
        Self { processes, memory_mib, open_files, file_mib, tmp_mib, cache_mib, home_mib, shm_mib }
    }
}

impl CommandLimits {
    /// The limit on processes and threads, raised to the least with which a shell can work.
    pub fn most_processes(&self) -> u32 {
        self.processes.max(FEWEST)
    }

    /// The `pid_max` of a PID namespace that leaves so many ids when those that are given once are used up.
    pub fn pid_max(&self) -> u32 {
        self.most_processes().saturating_add(GIVEN_ONCE)
    }

    /// Sets the resource limits of this process. A limit that is lower already stays.
    pub fn apply(&self, isolation: Isolation) {
        let bytes = |mib: u32| (mib > 0).then_some(u64::from(mib) << 20);
        lower(Resource::Data, bytes(self.memory_mib));
        lower(Resource::Fsize, bytes(self.file_mib));
        lower(Resource::Nofile, Some(self.open_files.into()));
        lower(Resource::Core, Some(0));
        // The kernel counts processes for each user of a user namespace. Outside of a namespace of the
        // command's own, the person's other processes would count.
        if isolation == Isolation::Namespaces {
            lower(Resource::Nproc, Some(self.most_processes().into()));
        }
    }

    /// A limit of this kind as one that was met; `None` where there is none.
    pub fn met(&self, kind: LimitKind, isolation: Isolation) -> Option<LimitMet> {
        let world = isolation == Isolation::Namespaces;
        let sentence = match kind {
            LimitKind::Processes => world.then(|| self.most_processes_sentence()),
            LimitKind::OpenFiles => Some(self.most_open_files()),
            LimitKind::FileSize => self.largest_file(),
            LimitKind::Memory => self.most_memory(),
            LimitKind::Space => world.then(|| self.space_in_memory()),
            LimitKind::Unknown => None,
        };
        Some(LimitMet { kind, sentence: sentence? })
    }

    /// A place in memory that has no room left.
    pub fn full(place: &Path, mib: u32) -> LimitMet {
        let (place, files) = (place.display(), u64::from(mib) * FILES_PER_MIB);
        let sentence = format!("a command has {mib} MiB in {place}, for at most {files} files");
        LimitMet { kind: LimitKind::Space, sentence }
    }

    /// The limit on processes, as one that was met.
    pub fn processes_met(&self) -> LimitMet {
        LimitMet { kind: LimitKind::Processes, sentence: self.most_processes_sentence() }
    }

    /// The limit on the memory of a whole command, where a control group counts it.
    pub fn memory_together_met(&self) -> Option<LimitMet> {
        let sentence = self.most_memory_together()?;
        Some(LimitMet { kind: LimitKind::Memory, sentence })
    }

    /// The limits that the commands of a Pod have together, where control groups count it.
    pub fn pod_met(&self, kind: LimitKind) -> Option<LimitMet> {
        Some(LimitMet { kind, sentence: self.most_of_pod() })
    }

    /// Every limit, each as a sentence; `groups` are where each command gets a control group.
    pub fn sentences(&self, isolation: Isolation, groups: Option<&Delegated>) -> Vec<String> {
        let Self { cache_mib, tmp_mib, .. } = self;
        let world = isolation == Isolation::Namespaces;
        let kept =
            format!("the Pod keeps at most {tmp_mib} MiB in /tmp and {cache_mib} MiB in caches");
        let all = [
            world.then(|| self.most_processes_sentence()),
            self.most_memory(),
            groups.filter(|_| world).and_then(|_| self.most_memory_together()),
            groups.filter(|_| world).map(|_| self.most_of_pod()),
            Some(self.most_open_files()),
            self.largest_file(),
            world.then_some(kept),
        ];
        all.into_iter().flatten().collect()
    }

    fn most_processes_sentence(&self) -> String {
        format!("a command has at most {} processes and threads", self.most_processes())
    }

    fn most_memory(&self) -> Option<String> {
        let mib = self.memory_mib;
        (mib > 0).then(|| format!("a process of a command has at most {mib} MiB of memory"))
    }

    fn most_memory_together(&self) -> Option<String> {
        let mib = self.memory_together_mib()?;
        Some(format!("all processes of a command have at most {mib} MiB of memory together"))
    }

    fn most_of_pod(&self) -> String {
        let memory = self.memory_of_pod_mib();
        let memory = memory.map_or(String::new(), |mib| format!(" and {mib} MiB of memory"));
        format!(
            "the commands of a Pod that run at the same time have at most {} processes and threads{memory} together",
            self.most_processes()
        )
    }

    /// The memory of all commands of a Pod that run at the same time, in MiB: more than that of one command, which
    /// meets its own limit first.
    pub fn memory_of_pod_mib(&self) -> Option<u64> {
        Some(self.memory_together_mib()? + u64::from(BESIDE_DATA_MIB))
    }

    /// The memory of a whole command, in MiB: more than that of one process, which meets its own limit first and
    /// can tell so itself.
    pub fn memory_together_mib(&self) -> Option<u64> {
        (self.memory_mib > 0).then(|| u64::from(self.memory_mib) + u64::from(BESIDE_DATA_MIB))
    }

    fn most_open_files(&self) -> String {
        let most = self.open_files;
        format!(
            "a process of a command has at most {most} files and sockets open, fewer where `ulimit -n` says so"
        )
    }

    fn space_in_memory(&self) -> String {
        let Self { home_mib, shm_mib, .. } = self;
        format!("a command has {home_mib} MiB in its home directory and {shm_mib} MiB in /dev/shm")
    }

    fn largest_file(&self) -> Option<String> {
        let mib = self.file_mib;
        (mib > 0).then(|| format!("a file that a command writes has at most {mib} MiB"))
    }
}

fn lower(resource: Resource, most: Option<u64>) {
    let Some(most) = most else { return };
    let held = rustix::process::getrlimit(resource);
    let least = |held: Option<u64>| Some(held.map_or(most, |held| held.min(most)));
    let limit = Rlimit { current: least(held.current), maximum: least(held.maximum) };
    // Lowering never fails for this process itself.
    let _ = setrlimit(resource, limit);
}
