//! A control group (cgroup v2) for each command, inside one for its Pod, where the kernel's controllers are delegated
//! to this user: they count the memory and the processes of a whole command, and of all commands of the Pod together.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::access::limits::{CommandLimits, MAX_TOGETHER};
use crate::sandbox::mounts::mountinfo::mounts;
use rustix::fs::{Access, access};
use rustix::process::{geteuid, getpid};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

/// The prefix of a command's group; the process id of the helper follows.
const PREFIX: &str = "yoi-";
/// The prefix of a Pod's group.
const POD_PREFIX: &str = "yoi-pod-";
/// The processes of yoi that start and watch a command count too, with their threads.
const STAGES: u32 = 8;
/// `cpu.weight` of a Pod; the kernel gives a new group 100.
const WEIGHT: u32 = 50;
/// A group is removed once its last process is gone, which the kernel may notice a moment later.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(5);

/// A group in which this user may make groups with limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated(PathBuf);

/// The group of one command. When this is dropped it is removed, and that of its Pod if no other command runs in it.
#[derive(Debug)]
pub struct ControlGroup {
    dir: PathBuf,
    limits: CommandLimits,
    /// The Pod's counts of limit events when the command started.
    before: PodEvents,
}

/// Counts of limit events of a Pod's group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PodEvents {
    memory: u64,
    processes: u64,
}

impl Delegated {
    /// Finds the nearest usable group. Changes no group.
    pub fn find() -> Option<Self> {
        Self::around().into_iter().next()
    }

    /// The ancestor groups of this process in which this user may create groups, the nearest first.
    /// The process's own group is usually none of them: the kernel enables no controllers for
    /// subgroups of a group that has processes.
    fn around() -> Vec<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let Some((top, own)) = own_group(&groups, &table) else { return Vec::new() };
        let around = own.ancestors().take_while(|dir| dir.starts_with(&top));
        let all = around.map(|dir| Self(dir.to_owned()));
        all.filter(|group| group.is_usable(geteuid().is_root())).collect()
    }

    /// Creates the group of a command in that of its Pod, and removes leftover groups of killed
    /// helpers.
    fn group(&self, limits: CommandLimits, pod: &str) -> io::Result<ControlGroup> {
        enable_controllers(&self.0);
        for abandoned in self.abandoned() {
            // A group that still has processes is left for a later command to remove.
            let _ = fs::remove_dir(abandoned);
        }
        let pod = self.0.join(format!("{POD_PREFIX}{pod}"));
        let mut made = ControlGroup::in_pod(&pod, limits);
        for _ in 1..TRIES {
            match made {
                // The last command of the Pod ended at this moment and removed the Pod's group.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    made = ControlGroup::in_pod(&pod, limits);
                }
                made => return made,
            }
        }
        made
    }

    /// Leftover groups: of commands whose helper has ended, and of Pods without commands, inner
    /// ones first. A group with the process id of this helper is a leftover, too.
    pub fn abandoned(&self) -> Vec<PathBuf> {
        let pods = groups_in(&self.0, |name| name.starts_with(POD_PREFIX));
        let mut found = groups_in(&self.0, is_of_dead_helper);
        for pod in pods {
            let dead = groups_in(&pod, is_of_dead_helper);
            let is_idle = dead.len() == groups_in(&pod, |_| true).len();
            found.extend(dead);
            found.extend(is_idle.then_some(pod));
        }
        found
    }

    fn is_usable(&self, root: bool) -> bool {
        // The kernel moves a process only if the user may write to the common ancestor of both
        // groups.
        let may = |file: &str| access(self.0.join(file), Access::WRITE_OK).is_ok();
        if !may("") || !may("cgroup.procs") {
            return false;
        }
        // As root, this program enables no controllers: the group belongs to the system.
        gives_limits(&self.0)
            || !root && names_both(&self.0.join("cgroup.controllers")) && self.is_empty()
    }

    /// Whether no process is directly in it.
    fn is_empty(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|pids| pids.trim().is_empty())
    }
}

/// The directories of groups in a group, by name.
fn groups_in(group: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let named = dirs.filter(|entry| entry.file_name().to_str().is_some_and(&wanted));
    named.map(|entry| entry.path()).collect()
}

fn is_of_dead_helper(name: &str) -> bool {
    let pid = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<i32>().ok());
    pid.is_some_and(|pid| {
        let own = pid == getpid().as_raw_nonzero().get();
        own || !Path::new("/proc").join(pid.to_string()).exists()
    })
}

/// Enables the controllers for the subgroups of a group, if they are not enabled yet.
fn enable_controllers(group: &Path) {
    if gives_limits(group) {
        return;
    }
    for controller in ["+memory", "+pids", "+cpu"] {
        // A controller that is missing is reported when the limits are set.
        let _ = fs::write(group.join("cgroup.subtree_control"), controller);
    }
}

/// Whether the subgroups of a group have the files of both controllers.
fn gives_limits(group: &Path) -> bool {
    names_both(&group.join("cgroup.subtree_control"))
}

fn names_both(file: &Path) -> bool {
    let given = fs::read_to_string(file).unwrap_or_default();
    ["memory", "pids"].iter().all(|name| given.split_whitespace().any(|word| word == *name))
}

/// Sets the limits of a group; a memory limit of 0 means none.
fn limit(group: &Path, processes: u32, memory_mib: Option<u64>) -> io::Result<()> {
    fs::write(group.join("pids.max"), processes.to_string())?;
    let Some(mib) = memory_mib else { return set_if_there(group, "memory.max", "max") };
    fs::write(group.join("memory.max"), (mib << 20).to_string())?;
    set_if_there(group, "memory.swap.max", "0")
}

/// Writes to a file that does not exist on every kernel.
fn set_if_there(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let file = group.join(file);
    if file.exists() { fs::write(file, value) } else { Ok(()) }
}

/// The kernel's count of an event in a group.
fn times(group: &Path, file: &str, event: &str) -> u64 {
    counted(&fs::read_to_string(group.join(file)).unwrap_or_default(), event)
}

impl PodEvents {
    /// Reads the current counts from the `.local` files, which count only the group's own limits.
    /// On a kernel without these files a met limit is reported as that of the command.
    fn of(pod: &Path) -> Self {
        Self {
            memory: times(pod, "memory.events.local", "oom"),
            processes: times(pod, "pids.events.local", "max"),
        }
    }
}

impl ControlGroup {
    /// Creates a group for the command of this process and the Pod of this name; `None` if that is
    /// not possible.
    pub fn make(limits: CommandLimits, pod: &str) -> Option<Self> {
        Delegated::around().iter().find_map(|around| around.group(limits, pod).ok())
    }

    /// Creates the group of the Pod, if it does not exist, and that of a command in it.
    fn in_pod(pod: &Path, limits: CommandLimits) -> io::Result<Self> {
        match fs::create_dir(pod) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        // The helper of the next command waits beside them.
        let most = limits.most_processes().saturating_add(STAGES * (u32::from(MAX_TOGETHER) + 1));
        limit(pod, most, limits.memory_of_pod_mib())?;
        set_if_there(pod, "cpu.weight", &WEIGHT.to_string())?;
        enable_controllers(pod);
        let dir = pod.join(format!("{PREFIX}{}", getpid().as_raw_nonzero()));
        fs::create_dir(&dir)?;
        let group = Self { dir, limits, before: PodEvents::of(pod) };
        let most = limits.most_processes().saturating_add(STAGES);
        limit(&group.dir, most, limits.memory_together_mib())?;
        Ok(group)
    }

    /// The command starts now: what other commands of the Pod met before does not count for it.
    pub fn begin(&mut self) {
        self.before = PodEvents::of(self.pod());
    }

    fn pod(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// The directory of the group, for the process that enters it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The limit of this group, or of that of its Pod, that the kernel counted as met. `oom_kill`
    /// alone also counts processes that were killed because the memory of the machine or of an
    /// outer group ran out.
    pub fn limit_met(&self) -> Option<LimitMet> {
        let Self { dir, limits, before } = self;
        let now = PodEvents::of(self.pod());
        let killed = times(dir, "memory.events", "oom_kill") > 0;
        if killed && times(dir, "memory.events", "oom") > 0 {
            return limits.memory_together_met();
        }
        if killed && now.memory > before.memory {
            return Some(limits.pod_met(LimitKind::Memory));
        }
        if times(dir, "pids.events", "max") > 0 {
            return Some(limits.processes_met());
        }
        let of_pod = now.processes > before.processes;
        of_pod.then(|| limits.pod_met(LimitKind::Processes))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
                // A group that could not be removed is removed by a later command.
                Ok(()) | Err(_) => break,
            }
        }
        // It stays while another command of the Pod runs in it.
        let _ = fs::remove_dir(self.pod());
    }
}

/// Moves this process, and so its later children, into a group.
pub fn enter(group: &Path) -> io::Result<()> {
    // The kernel reads 0 as the writing process.
    fs::write(group.join("cgroup.procs"), "0")
}

/// The mount point of the groups, and the group of the process with these files of `/proc`.
fn own_group(groups: &str, table: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut mounted = mounts(table).filter(|mount| mount.kind == "cgroup2");
    mounted.find_map(|mount| {
        let below = Path::new(own).strip_prefix(&mount.root).ok()?;
        let top = mount.point;
        let own = if below.as_os_str().is_empty() { top.clone() } else { top.join(below) };
        Some((top, own))
    })
}

/// The number after a word in a file of events.
fn counted(text: &str, event: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == event).and_then(|(_, n)| n.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
25 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
35 25 0:31 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate
40 25 0:40 / /mnt\\040x rw - ext4 /dev/a rw
";

    #[test]
    fn the_own_group_is_looked_up_below_the_mount_of_groups() {
        let own =
            |groups: &str, mounts: &str| own_group(groups, mounts.as_bytes()).map(|(_, own)| own);
        let found = own_group("0::/user.slice/a.scope\n", MOUNTS.as_bytes()).unwrap();
        assert_eq!(found.0, Path::new("/sys/fs/cgroup"));
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/user.slice/a.scope"));
        assert_eq!(own("4:memory:/x\n0::/\n", MOUNTS), Some("/sys/fs/cgroup".into()));
        assert_eq!(own("4:memory:/x\n", MOUNTS), None, "only version 1");
        assert_eq!(own("0::/a\n", "25 30 0:22 / /sys rw - sysfs sysfs rw\n"), None);
        let bound = MOUNTS.replace("0:31 / /sys", "0:31 /user.slice /sys");
        assert_eq!(own("0::/user.slice/a\n", &bound), Some("/sys/fs/cgroup/a".into()));
        assert_eq!(own("0::/other\n", &bound), None, "a group outside of what is mounted");
    }

    /// A directory with the files of a control group.
    fn delegated(given: &str) -> (tempfile::TempDir, Delegated) {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("cgroup.procs"), "").unwrap();
        fs::write(top.path().join("cgroup.subtree_control"), given).unwrap();
        let delegated = Delegated(top.path().to_owned());
        (top, delegated)
    }

    #[test]
    fn a_group_is_usable_where_both_controllers_are_given() {
        assert!(delegated("cpu memory pids\n").1.is_usable(true));
        let (top, group) = delegated("");
        assert!(!group.is_usable(false), "no controllers are delegated");
        fs::write(top.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert!(
            group.is_usable(false) && !group.is_usable(true),
            "root changes no group of the system"
        );
        fs::write(top.path().join("cgroup.procs"), "12\n").unwrap();
        assert!(!group.is_usable(false), "the kernel gives none to groups beside processes");
        fs::remove_file(top.path().join("cgroup.procs")).unwrap();
        fs::write(top.path().join("cgroup.subtree_control"), "memory pids").unwrap();
        assert!(!group.is_usable(false), "processes cannot be moved out of it");
    }

    #[test]
    fn controllers_are_asked_for_only_when_a_group_is_made() {
        let (top, delegated) = delegated("");
        let asked = || fs::read_to_string(top.path().join("cgroup.subtree_control")).unwrap();
        fs::write(top.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert!(delegated.is_usable(false) && asked().is_empty());
        let group = delegated.group(CommandLimits::default(), "a").unwrap();
        assert_eq!(asked(), "+cpu", "the last of the three that were written");
        fs::write(top.path().join("cgroup.subtree_control"), "memory pids").unwrap();
        enable_controllers(top.path());
        assert_eq!(asked(), "memory pids");
        fs::remove_file(group.dir().join("pids.max")).unwrap();
    }

    #[test]
    fn what_the_kernel_counted_is_the_limit_that_was_met() {
        let top = tempfile::tempdir().unwrap();
        let limits = CommandLimits { memory_mib: 64, processes: 100, ..CommandLimits::default() };
        let pod = top.path().join("pod");
        let group = ControlGroup::in_pod(&pod, limits).unwrap();
        let set = |dir: &Path| {
            ["pids.max", "memory.max"].map(|file| fs::read_to_string(dir.join(file)).unwrap())
        };
        assert_eq!(set(group.dir()), ["108".into(), (128 << 20).to_string()]);
        assert_eq!(set(&pod), ["236".into(), (192 << 20).to_string()]);
        let event = |file: &str, text: &str| fs::write(group.dir().join(file), text).unwrap();
        let of_pod = |file: &str, text: &str| fs::write(pod.join(file), text).unwrap();
        event("memory.events", "low 0\nhigh 0\nmax 31\noom 0\noom_kill 0\n");
        event("pids.events", "max 0\n");
        assert_eq!(group.limit_met(), None, "memory that could be taken back is no limit");
        event("pids.events", "max 3\n");
        assert_eq!(group.limit_met().map(|met| met.kind), Some(LimitKind::Processes));
        event("memory.events", "oom 0\noom_kill 2\n");
        let met = group.limit_met().map(|met| met.kind);
        assert_eq!(met, Some(LimitKind::Processes), "the memory of the machine ran out");
        event("memory.events", "oom 1\noom_kill 1\n");
        let met = group.limit_met().unwrap();
        assert!(met.sentence.contains("at most 128 MiB of memory together"), "{}", met.sentence);
        event("memory.events", "oom 0\noom_kill 1\n");
        event("pids.events", "max 0\n");
        of_pod("memory.events.local", "oom 2\n");
        let met = group.limit_met().unwrap();
        assert!(
            met.sentence.contains("commands of a Pod") && met.kind == LimitKind::Memory,
            "{met:?}"
        );
        let later = ControlGroup { before: PodEvents::of(&pod), dir: group.dir.clone(), limits };
        assert_eq!(later.limit_met(), None, "the Pod had met it before");
        of_pod("pids.events.local", "max 1\n");
        assert_eq!(later.limit_met().map(|met| met.kind), Some(LimitKind::Processes));
    }

    #[test]
    fn the_group_of_a_pod_stays_while_a_command_runs_in_it() {
        let (top, delegated) = delegated("memory pids");
        let pod = top.path().join("yoi-pod-a");
        let own = pod.join(format!("yoi-{}", getpid().as_raw_nonzero()));
        for dir in [
            &own,
            &pod.join("yoi-1"),
            &top.path().join("yoi-pod-idle"),
            &top.path().join("yoi-other"),
        ] {
            fs::create_dir_all(dir).unwrap();
        }
        // The process with this id is alive.
        assert_eq!(delegated.abandoned(), [own, top.path().join("yoi-pod-idle")]);
    }
}
