//! The resource limits of one command.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::access::confinement::Isolation;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The least number of processes that a command may have.
const FEWEST: u32 = 16;
/// The low process ids of a PID namespace, which the kernel does not reuse.
const GIVEN_ONCE: u32 = 300;

/// The `oom_score_adj` of commands: the kernel kills them before other programs when memory runs out.
pub const FIRST_TO_DIE: &str = "800";

/// How many calls of one reply, and so commands of one Pod, run at the same time at most. A reply may have a thousand
/// calls, and each command has processes of its own.
pub const MAX_TOGETHER: u16 = 16;

/// The most files per MiB of an in-memory file system.
pub const FILES_PER_MIB: u64 = 128;

/// Memory that a process uses beyond what `RLIMIT_DATA` counts, in MiB.
const BESIDE_DATA_MIB: u32 = 64;

/// The limits of one command; sizes are in MiB, and 0 means no limit where it is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads, together.
    pub processes: u32,
    /// Memory of one process; with a control group also, plus a little, of the whole command. 0
    /// means no limit.
    pub memory_mib: u32,
    /// Open files and sockets of one process.
    pub open_files: u32,
    /// One file that it writes; 0 is no limit.
    pub file_mib: u32,
    /// The size of the Pod's `/tmp`.
    pub tmp_mib: u32,
    /// The size of the Pod's layers over caches.
    pub cache_mib: u32,
    /// The size of the home directory without the paths granted in it.
    pub home_mib: u32,
    /// The size of `/dev/shm`.
    pub shm_mib: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        let (memory_mib, file_mib) = (0, 16_384);
        let (tmp_mib, cache_mib, home_mib, shm_mib) = (4096, 8192, 256, 256);
        let (processes, open_files) = (4096, 65_536);
        Self { processes, memory_mib, open_files, file_mib, tmp_mib, cache_mib, home_mib, shm_mib }
    }
}

impl CommandLimits {
    /// The limit on processes and threads, raised to the least with which a shell can work.
    pub fn most_processes(&self) -> u32 {
        self.processes.max(FEWEST)
    }

    /// The `pid_max` of a PID namespace that leaves `processes` ids after the low ids are used up.
    pub fn pid_max(&self) -> u32 {
        self.most_processes().saturating_add(GIVEN_ONCE)
    }

    /// Sets the resource limits of this process. Lower existing limits do not change.
    pub fn apply(&self, isolation: Isolation) {
        let bytes = |mib: u32| (mib > 0).then_some(u64::from(mib) << 20);
        lower(Resource::Data, bytes(self.memory_mib));
        lower(Resource::Fsize, bytes(self.file_mib));
        lower(Resource::Nofile, Some(self.open_files.into()));
        lower(Resource::Core, Some(0));
        // The kernel counts processes for each user of a user namespace. Without a user namespace
        // of the command the person's other processes would count.
        if isolation == Isolation::Namespaces {
            lower(Resource::Nproc, Some(self.most_processes().into()));
        }
    }

    /// The sentence and kind of a met limit; `None` if the limit is not set.
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

    /// A full in-memory file system as a met limit.
    pub fn full(place: &Path, mib: u32) -> LimitMet {
        let (place, files) = (place.display(), u64::from(mib) * FILES_PER_MIB);
        let sentence = format!("a command has {mib} MiB in {place}, for at most {files} files");
        LimitMet { kind: LimitKind::Space, sentence }
    }

    /// The limit on processes as a met limit.
    pub fn processes_met(&self) -> LimitMet {
        LimitMet { kind: LimitKind::Processes, sentence: self.most_processes_sentence() }
    }

    /// The memory limit of a whole command with a control group, as a met limit.
    pub fn memory_together_met(&self) -> Option<LimitMet> {
        let sentence = self.most_memory_together()?;
        Some(LimitMet { kind: LimitKind::Memory, sentence })
    }

    /// The limits of all commands of a Pod together with control groups, as met limits.
    pub fn pod_met(&self, kind: LimitKind) -> LimitMet {
        LimitMet { kind, sentence: self.most_of_pod() }
    }

    /// A sentence for each limit; `grouped` is whether commands get control groups.
    pub fn sentences(&self, isolation: Isolation, grouped: bool) -> Vec<String> {
        let Self { cache_mib, tmp_mib, .. } = self;
        let world = isolation == Isolation::Namespaces;
        let kept =
            format!("the Pod keeps at most {tmp_mib} MiB in /tmp and {cache_mib} MiB in caches");
        let all = [
            world.then(|| self.most_processes_sentence()),
            self.most_memory(),
            (world && grouped).then(|| self.most_memory_together()).flatten(),
            (world && grouped).then(|| self.most_of_pod()),
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
        (mib > 0).then(|| {
            format!(
                "a process of a command has at most {mib} MiB of memory, shared memory not counted"
            )
        })
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

    /// The memory of a whole command, in MiB: more than that of one process, which meets its own
    /// limit first and can report it itself.
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
    // Lowering a limit of this process never fails.
    let _ = setrlimit(resource, limit);
}
