//! A control group (cgroup v2) for each command, where the kernel's controllers are delegated to this
//! user: it counts the memory and the processes of a whole command together.

use crate::protocol::LimitMet;
use crate::sandbox::limits::CommandLimits;
use crate::sandbox::world::unescaped;
use rustix::fs::{Access, access};
use rustix::process::{geteuid, getpid};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

/// The names of these groups begin with this, and the process id of the helper follows.
const PREFIX: &str = "yoi-";
/// The processes of yoi that start and watch a command count too, with their threads.
const STAGES: u32 = 8;
/// `cpu.weight`; the kernel gives a new group 100.
const WEIGHT: u32 = 50;
/// A group is removed once its last process is gone, which the kernel may notice a moment later.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(5);

/// A group in which this user may make groups with limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated(PathBuf);

/// The group of one command; it is removed when this is dropped.
#[derive(Debug)]
pub struct ControlGroup {
    dir: PathBuf,
    limits: CommandLimits,
}

impl Delegated {
    /// The nearest one around this process. The search changes no group.
    pub fn find() -> Option<Self> {
        Self::around().into_iter().next()
    }

    /// The groups around this process in which this user may make groups, the nearest first. The process's own
    /// group is usually none of them: the kernel gives no controllers to groups inside one that has processes.
    fn around() -> Vec<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let Some((top, own)) = own_group(&groups, &mounts) else { return Vec::new() };
        let around = own.ancestors().take_while(|dir| dir.starts_with(&top));
        let all = around.map(|dir| Self(dir.to_owned()));
        all.filter(|group| group.is_usable(geteuid().is_root())).collect()
    }

    /// Makes the group of a command, and removes groups that killed helpers left.
    fn group(&self, limits: CommandLimits) -> io::Result<ControlGroup> {
        self.enable_controllers();
        for abandoned in self.abandoned() {
            // A group that still has processes is left for a later command to remove.
            let _ = fs::remove_dir(abandoned);
        }
        let dir = self.0.join(format!("{PREFIX}{}", getpid().as_raw_nonzero()));
        fs::create_dir(&dir)?;
        let group = ControlGroup { dir, limits };
        group.set_limits()?;
        Ok(group)
    }

    /// Groups of commands whose helper is gone. A group with the process id of this helper is one, too.
    pub fn abandoned(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let is_abandoned = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<i32>().ok());
            pid.is_some_and(|pid| {
                let own = pid == getpid().as_raw_nonzero().get();
                own || !Path::new("/proc").join(pid.to_string()).exists()
            })
        };
        entries.filter(is_abandoned).map(|entry| entry.path()).collect()
    }

    fn is_usable(&self, root: bool) -> bool {
        // A process may be moved where its user may write to the group around both places.
        let may = |file: &str| access(self.0.join(file), Access::WRITE_OK).is_ok();
        if !may("") || !may("cgroup.procs") {
            return false;
        }
        // This program does not change the controllers of the system's groups.
        self.gives_limits() || !root && self.names_both("cgroup.controllers") && self.is_empty()
    }

    /// Gives the groups in it the controllers, where they have none yet.
    fn enable_controllers(&self) {
        if self.gives_limits() {
            return;
        }
        for controller in ["+memory", "+pids", "+cpu"] {
            // A controller that is missing is reported when the limits are set.
            let _ = fs::write(self.0.join("cgroup.subtree_control"), controller);
        }
    }

    /// Whether groups in it have the files of both controllers.
    fn gives_limits(&self) -> bool {
        self.names_both("cgroup.subtree_control")
    }

    fn names_both(&self, file: &str) -> bool {
        let given = fs::read_to_string(self.0.join(file)).unwrap_or_default();
        ["memory", "pids"].iter().all(|name| given.split_whitespace().any(|word| word == *name))
    }

    /// Whether no process is directly in it.
    fn is_empty(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|pids| pids.trim().is_empty())
    }
}

impl ControlGroup {
    /// A group for the command of this process; `None` where none can be made.
    pub fn make(limits: CommandLimits) -> Option<Self> {
        Delegated::around().iter().find_map(|around| around.group(limits).ok())
    }

    /// Its directory, for the process that enters it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn set_limits(&self) -> io::Result<()> {
        let most = self.limits.most_processes().saturating_add(STAGES);
        self.set("pids.max", u64::from(most))?;
        if let Some(mib) = self.limits.memory_together_mib() {
            self.set("memory.max", mib << 20)?;
            self.set_if_there("memory.swap.max", 0)?;
        }
        self.set_if_there("cpu.weight", WEIGHT.into())
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.dir.join(file), value.to_string())
    }

    /// The same for a file that not every kernel has.
    fn set_if_there(&self, file: &str, value: u64) -> io::Result<()> {
        if self.dir.join(file).exists() { self.set(file, value) } else { Ok(()) }
    }

    /// The limit of this group that the kernel counted as met. `oom_kill` alone also counts processes that ended
    /// because the memory of the machine or of a group around this one ran out.
    pub fn limit_met(&self) -> Option<LimitMet> {
        let times = |file: &str, event| {
            let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            counted(&text, event)
        };
        let killed = ["oom", "oom_kill"].iter().all(|event| times("memory.events", event) > 0);
        let memory = self.limits.memory_together_met().filter(|_| killed);
        memory.or_else(|| (times("pids.events", "max") > 0).then(|| self.limits.processes_met()))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
                // A group that could not be removed is removed by a later command.
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Moves this process into a group, and with it all that it starts.
pub fn enter(group: &Path) -> io::Result<()> {
    // 0 is the process that writes.
    fs::write(group.join("cgroup.procs"), "0")
}

/// Where the groups are mounted, and the group of the process whose files of `/proc` these are.
fn own_group(groups: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = place.split(' ').skip(3).map(|field| PathBuf::from(unescaped(field)));
        let (root, top) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        let own = if below.as_os_str().is_empty() { top.clone() } else { top.join(below) };
        Some((top, own))
    };
    mounts.lines().find_map(mount)
}

/// The number behind a word in a file of events.
fn counted(text: &str, event: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == event).and_then(|(_, n)| n.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LimitKind;

    const MOUNTS: &str = "\
25 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
35 25 0:31 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate
40 25 0:40 / /mnt\\040x rw - ext4 /dev/a rw
";

    #[test]
    fn the_own_group_is_looked_up_below_the_mount_of_groups() {
        let own = |groups: &str, mounts: &str| own_group(groups, mounts).map(|(_, own)| own);
        let found = own_group("0::/user.slice/a.scope\n", MOUNTS).unwrap();
        assert_eq!(found.0, Path::new("/sys/fs/cgroup"));
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/user.slice/a.scope"));
        assert_eq!(own("4:memory:/x\n0::/\n", MOUNTS), Some("/sys/fs/cgroup".into()));
        assert_eq!(own("4:memory:/x\n", MOUNTS), None, "only version 1");
        assert_eq!(own("0::/a\n", "25 30 0:22 / /sys rw - sysfs sysfs rw\n"), None);
        let bound = MOUNTS.replace("0:31 / /sys", "0:31 /user.slice /sys");
        assert_eq!(own("0::/user.slice/a\n", &bound), Some("/sys/fs/cgroup/a".into()));
        assert_eq!(own("0::/other\n", &bound), None, "a group outside of what is mounted");
    }

    /// A directory with the files that the kernel gives a group.
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
        let group = delegated.group(CommandLimits::default()).unwrap();
        assert_eq!(asked(), "+cpu", "the last of the three that were written");
        fs::write(top.path().join("cgroup.subtree_control"), "memory pids").unwrap();
        delegated.enable_controllers();
        assert_eq!(asked(), "memory pids");
        fs::remove_file(group.dir().join("pids.max")).unwrap();
    }

    #[test]
    fn what_the_kernel_counted_is_the_limit_that_was_met() {
        let top = tempfile::tempdir().unwrap();
        let limits = CommandLimits { memory_mib: 64, processes: 100, ..CommandLimits::default() };
        let group = ControlGroup { dir: top.path().to_owned(), limits };
        group.set_limits().unwrap();
        let set = |file: &str| fs::read_to_string(top.path().join(file)).unwrap();
        assert_eq!((set("pids.max"), set("memory.max")), ("108".into(), (128 << 20).to_string()));
        let event = |file: &str, text: &str| fs::write(top.path().join(file), text).unwrap();
        event("memory.events", "low 0\nhigh 0\nmax 31\noom 0\noom_kill 0\n");
        event("pids.events", "max 0\n");
        assert_eq!(group.limit_met(), None, "memory that could be taken back is no limit");
        event("pids.events", "max 3\n");
        assert_eq!(group.limit_met().map(|met| met.kind), Some(LimitKind::Processes));
        event("memory.events", "oom 0\noom_kill 2\n");
        let met = group.limit_met().map(|met| met.kind);
        assert_eq!(met, Some(LimitKind::Processes), "the memory of the machine ran out");
        event("memory.events", "oom 1\noom_kill 1\n");
        let unlimited = CommandLimits { memory_mib: 0, ..limits };
        let other = ControlGroup { dir: top.path().to_owned(), limits: unlimited };
        assert_eq!(other.limit_met().map(|met| met.kind), Some(LimitKind::Processes));
        let met = group.limit_met().unwrap();
        assert!(met.sentence.contains("at most 128 MiB of memory together"), "{}", met.sentence);
    }
}
