//! The second stage of the helper: raises the walls around itself and becomes the command. It has
//! one thread from its beginning to its end.

use crate::protocol::family::Confined;
use crate::sandbox::cage::{Cage, Hole, Level, Mounts, Sockets};
use crate::sandbox::confinement::Confinement;
use crate::sandbox::mounts::{self, Private};
use crate::sandbox::order::{Inner, JsonLine as _, Ready};
use crate::sandbox::plan::{self, Give, Plan, Right};
use crate::sandbox::{bash, calls, resolve, walls};
use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

/// Of root's powers those that reach through every wall.
const POWERS: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_PACCT)
    .union(CapabilitySet::SYS_TTY_CONFIG)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::AUDIT_CONTROL);

/// The whole life of the second stage; called first thing in `main`. The order on standard input,
/// what came of it on standard output, the command's output on standard error.
pub fn cage_main() -> ExitCode {
    let Ok(answer) = std::io::stdout().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut answer = File::from(answer);
    let reason = match become_command(&mut answer) {
        Ok(never) => match never {},
        Err(reason) => reason,
    };
    // Without a reader there is nobody to tell.
    let _ = answer.write_all(Ready { failed: Some(reason), ..Ready::default() }.line().as_bytes());
    ExitCode::FAILURE
}

fn become_command(answer: &mut File) -> Result<std::convert::Infallible, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let order = Inner::parse(&text).ok_or("the order is not readable")?;
    empty_input()?;
    let cage = resolve::resolved(order.cage);
    entry(&cage, &order.cwd)?;
    let confinement = raise(&cage)?;
    let ready = Ready { confinement: Some(confinement), failed: None };
    answer.write_all(ready.line().as_bytes()).map_err(|error| error.to_string())?;
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|error| error.to_string())?;
    let error = bash::command(&order.program, &order.cwd, &order.env).exec();
    Err(bash::not_started(&order.cwd, &error))
}

/// A command does not begin where it can see nothing.
fn entry(cage: &Cage, cwd: &Path) -> Result<(), String> {
    let Ok(cwd) = cwd.canonicalize() else { return Ok(()) };
    let (holes, _) = plan::holes(cage);
    let hidden = |hole: &&Hole| hole.level == Level::Hidden && cwd.starts_with(&hole.path);
    let Some(hole) = holes.iter().find(hidden) else { return Ok(()) };
    let (cwd, hole) = (cwd.display(), hole.path.display());
    Err(format!("the directory {cwd} is shut for commands: {hole} is secret or not this pod's"))
}

fn empty_input() -> Result<(), String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty());
    let null = null.map_err(|error| format!("/dev/null: {error}"))?;
    rustix::stdio::dup2_stdin(null).map_err(|error| format!("/dev/null: {error}"))
}

/// Everything this kernel offers, outermost wall last; says what it does not offer.
fn raise(cage: &Cage) -> Result<Confinement, String> {
    let (holes, mut open) = plan::holes(cage);
    let (mut plan, view) = match build(cage, &holes) {
        Ok(private) => (plan::inside_mounts(cage, &holes), private),
        Err(reason) => {
            let mut plan = plan::around_holes(cage, &holes);
            plan.cost.push(format!("no view of the file system of its own: {reason}"));
            (plan, Private::default())
        }
    };
    devices(&mut plan, view);
    give_up_powers();
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let (abi, missed) = walls::raise(cage, &plan.gives).map_err(|error| error.to_string())?;
    plan.cost.extend(missed);
    let filtered = calls::refuse(cage, abi, view);
    open.extend(openings(cage, abi, filtered.err()));
    let word = match (abi, open.is_empty()) {
        (0, _) => Confined::NotEnforced,
        (_, true) => Confined::Enforced,
        (_, false) => Confined::Partly,
    };
    Ok(Confinement { word, open, cost: plan.cost, abi })
}

fn build(cage: &Cage, holes: &[Hole]) -> Result<Private, String> {
    match cage.mounts {
        Mounts::WhenPossible => mounts::build(&plan::mounts(cage, holes)),
        Mounts::Never => Err("not wanted".into()),
    }
}

/// Shared memory and terminals are granted where they are this command's own.
fn devices(plan: &mut Plan, view: Private) {
    let mut give = |path: &str, right| {
        if let Ok(path) = Path::new(path).canonicalize() {
            plan.gives.push(Give { path, right });
        }
    };
    if view.shared_memory {
        give("/dev/shm", Right::Write);
    }
    if view.terminals {
        give("/dev/pts", Right::Device);
        give("/dev/ptmx", Right::Device);
    }
}

/// Takes effect when the command is started.
fn give_up_powers() {
    for power in POWERS.iter() {
        // Who is not root has none to give up.
        let _ = rustix::thread::remove_capability_from_bounding_set(power);
    }
}

/// What a command could do although it should not.
fn openings(cage: &Cage, abi: u32, unfiltered: Option<String>) -> Vec<String> {
    let mut open = Vec::new();
    if abi == 0 {
        open.push("files: this kernel has no Landlock, or it is not enabled".into());
    }
    if (1..3).contains(&abi) {
        open.push("files that may not be written can be emptied (needs Landlock 3)".into());
    }
    if abi < 6 {
        open.push("your other processes can be signalled (needs Landlock 6)".into());
    }
    if let Some(reason) = unfiltered {
        open.push(format!("network and local sockets: no seccomp ({reason})"));
    }
    if cage.sockets == Sockets::Open && abi < walls::PATH_SOCKETS {
        open.push("sockets of other programs (asked for)".into());
    }
    open
}
