//! The stage that creates the namespaces and starts the first process in them. It always has one
//! thread.

use crate::sandbox::access::view::Network;
use crate::sandbox::process::messages::{self, JsonLine as _, Report};
use crate::sandbox::process::procfs::Process;
use crate::sandbox::process::reexec::{self, INIT_ARG};
use crate::sandbox::process::{capabilities, control_group, reaper};
use nix::sched::{CloneFlags, setns, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::Duration;

/// The argument with which the command gets the network of the machine.
pub const NETWORK: &str = "network";
/// The argument before the control group in which the command is started.
pub const GROUP: &str = "group";
/// The argument before the keeper whose network the command gets.
pub const KEEPER: &str = "keeper";

/// How long the first process of a world may take to end everything in it before it is killed:
/// longer than it needs to report processes that could not be ended.
pub const GRACE: Duration = Duration::from_secs(reaper::LONGEST_END.as_secs() + 2);

/// The main function of this stage. Reads the order from standard input; when that is closed, it
/// ends everything. The first process inherits the other streams.
pub fn enter_main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    let network = if words.iter().any(|word| word == NETWORK) { Network::On } else { Network::Off };
    let after = |name| words.windows(2).find(|pair| pair[0] == name).map(|pair| &pair[1]);
    if let Some(group) = after(GROUP) {
        // Without a group the other limits hold.
        let _ = control_group::enter(group.as_ref());
    }
    // The first process changes the root directory of this one, too, so this one opens nothing
    // afterwards.
    let null = match fs::File::options().write(true).open("/dev/null") {
        Ok(null) => null,
        Err(error) => return messages::fail(format!("/dev/null: {error}")),
    };
    let entered = match after(KEEPER) {
        Some(keeper) => namespaces_beside(keeper).map_err(|reason| Report::keeper_lost(&reason)),
        None => namespaces(network).map_err(Report::failed),
    };
    if let Err(report) = entered {
        return report.send();
    }
    let mut child = match start(&null) {
        Ok(child) => child,
        Err(reason) => return messages::fail(reason),
    };
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    // An unreadable order fails in the first process, and a first process that has ended needs
    // none.
    let _ = input.read_line(&mut line);
    let _ = child.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()));
    let mut rest = [0; 64];
    while matches!(input.read(&mut rest), Ok(n) if n > 0) {}
    drop(child.stdin.take());
    if !ends_within(&child, GRACE) {
        // The kernel kills all processes of the world with the first one, which may have ended
        // meanwhile.
        let _ = child.kill();
    }
    match child.wait() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// Whether the first process ends by itself in this time, after a request.
fn ends_within(child: &Child, limit: Duration) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return false;
    };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let Ok(limit) = Timespec::try_from(limit) else { return false };
    // An error counts as a timeout.
    poll(&mut ended, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Starts the first process. `null` takes the place of its streams in this one.
fn start(null: &fs::File) -> Result<Child, String> {
    // This process dies with the helper. A change of capabilities clears the signal, so it is set after
    // that. If the helper is gone already, the closed pipe of the order ends this process.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let child = first_process().map_err(|error| format!("its first process: {error}"))?;
    // The reader of these streams sees end of file when the first process ends.
    rustix::stdio::dup2_stdout(null).map_err(|error| error.to_string())?;
    rustix::stdio::dup2_stderr(null).map_err(|error| error.to_string())?;
    Ok(child)
}

fn first_process() -> std::io::Result<Child> {
    reexec::next(INIT_ARG)
        .stdout(std::io::stdout().as_fd().try_clone_to_owned()?)
        .stderr(std::io::stderr().as_fd().try_clone_to_owned()?)
        .spawn()
}

/// The commands of a Pod get one part of so many of what a user has for watching files.
const WATCHING: u64 = 4;
/// The namespaces that each command has of its own. Shared memory of System V ends with the command, as its processes do.
const OWN: CloneFlags = CloneFlags::CLONE_NEWNS
    .union(CloneFlags::CLONE_NEWPID)
    .union(CloneFlags::CLONE_NEWIPC)
    .union(CloneFlags::CLONE_NEWUTS);

/// Creates namespaces for this process and its children.
fn namespaces(network: Network) -> Result<(), String> {
    match network {
        Network::Off => with_network(OWN),
        Network::On => create(OWN),
    }
}

/// Creates these namespaces and one for a network with only loopback.
pub fn with_network(flags: CloneFlags) -> Result<(), String> {
    create(flags | CloneFlags::CLONE_NEWNET)?;
    loopback().map_err(|error| format!("its own network: {error}"))
}

/// Root needs no user namespace, unless it lacks `CAP_SYS_ADMIN`.
fn create(flags: CloneFlags) -> Result<(), String> {
    if rustix::process::geteuid().is_root() && unshare(flags).is_ok() {
        return Ok(());
    }
    as_ordinary_user(flags)
}

/// Enters the network of a keeper, then creates the command's own namespaces. An ordinary user gets one more user namespace
/// in that of the keeper: it counts the processes of this command alone, and gives it no power over the keeper.
fn namespaces_beside(keeper: &OsStr) -> Result<(), String> {
    let keeper = keeper.to_str().and_then(Process::parse).ok_or("it is not readable")?;
    let handle = keeper.open().ok_or("its keeper has ended")?;
    let sentence = |error: std::io::Error| error.to_string();
    let dir = PathBuf::from(format!("/proc/{}/ns", keeper.pid));
    let is_own = |name: &str| {
        let link = |dir: &Path| fs::read_link(dir.join(name)).map_err(sentence);
        Ok::<_, String>(link(&dir)? == link(Path::new("/proc/self/ns"))?)
    };
    if is_own("net")? {
        return Err("its keeper has the network of the machine".into());
    }
    let is_of_root = is_own("user")?;
    let user = if is_of_root { CloneFlags::empty() } else { CloneFlags::CLONE_NEWUSER };
    setns(handle, user | CloneFlags::CLONE_NEWNET).map_err(|error| sentence(error.into()))?;
    if is_of_root { create(OWN) } else { as_ordinary_user(OWN) }
}

fn as_ordinary_user(flags: CloneFlags) -> Result<(), String> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | flags).map_err(|error| {
        let error = std::io::Error::from(error);
        format!("namespaces: {error}")
    })?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| format!("{file}: {error}"))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    limit_watches();
    capabilities::keep_for_first_process()
        .map_err(|error| format!("capabilities in its user namespace: {error}"))
}

/// Leaves other programs of the user most of what there is for watching files: the commands of a Pod get a part of each
/// limit, which a user namespace counts for itself and those in it. A kernel without these files has no such count.
fn limit_watches() {
    for (all, own) in [
        ("max_user_instances", "max_inotify_instances"),
        ("max_user_watches", "max_inotify_watches"),
    ] {
        let most = fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(all)).ok();
        if let Some(most) = most.and_then(|most| most.trim().parse::<u64>().ok()) {
            let _ = fs::write(Path::new("/proc/sys/user").join(own), (most / WATCHING).to_string());
        }
    }
}

/// Brings up the loopback device of a new network, which is its first and only one: a netlink
/// request (`RTM_NEWLINK`) for device 1 with `IFF_UP`.
fn loopback() -> rustix::io::Result<()> {
    const NEWLINK: u16 = 16;
    const REQUEST: u16 = 1;
    const UP: u32 = 1;
    const DEVICE: i32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEWLINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Sequence number and port, then an interface of no family and no type.
    message.extend([0; 12]);
    message.extend(DEVICE.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty()).map(drop)
}

/// The main function of a keeper, for the first argument [`crate::sandbox::process::reexec::KEEPER_ARG`]. Says on standard output which
/// process it is. It has one thread.
pub fn keeper_main() -> ExitCode {
    // Fails only for a group leader, which a fresh child is not.
    let _ = rustix::process::setsid();
    let network = with_network(CloneFlags::empty());
    let answer = network.and_then(|()| Process::own().ok_or_else(|| "it has no /proc".to_owned()));
    if reexec::send(&answer.line()).is_err() || answer.is_err() {
        return ExitCode::FAILURE;
    }
    reaper::wait_for_end();
    ExitCode::SUCCESS
}
