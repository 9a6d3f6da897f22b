//! The last stage before a command: applies Landlock and seccomp to itself and executes the
//! command. It always has one thread.

use crate::protocol::family::Confined;
use crate::sandbox::access::confinement::{Confinement, Isolation};
use crate::sandbox::access::limits::FIRST_TO_DIE;
use crate::sandbox::access::view::{CommandView, Network, Sockets};
use crate::sandbox::process::messages::{Inner, JsonLine as _, Ready, Streams};
use crate::sandbox::process::{bash, capabilities, landlock, pipes, reaper, seccomp};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// The message of this stage as soon as it runs.
const STARTED: &[u8] = b"\n";

/// The main function of this stage. Reads the order from standard input, and writes its messages to
/// standard output; the command's output goes to standard error.
pub fn confine_main() -> ExitCode {
    let Ok(answer) = std::io::stdout().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut answer = File::from(answer);
    // The libraries of this program are loaded now, so the root directory may change.
    let _ = answer.write_all(STARTED);
    let reason = match become_command(&mut answer) {
        Ok(never) => match never {},
        Err(reason) => reason,
    };
    // This fails only when the reader has exited.
    let _ = answer.write_all(Ready { failed: Some(reason), ..Ready::default() }.line().as_bytes());
    ExitCode::FAILURE
}

fn become_command(answer: &mut File) -> Result<std::convert::Infallible, String> {
    // The kernel divides the processor between sessions first, so that many processes of a command
    // cannot starve those that watch it.
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let order = Inner::parse(&text).ok_or("the order is not readable")?;
    empty_input()?;
    let (program, cwd, env) = (order.program.clone(), order.cwd.clone(), order.env.clone());
    let pipes = match order.streams {
        Streams::Output => None,
        Streams::Pipes => Some(pipes::received()?),
    };
    let confinement = confine(order)?;
    let ready = Ready { confinement: Some(confinement), failed: None };
    answer.write_all(ready.line().as_bytes()).map_err(|error| error.to_string())?;
    match pipes {
        None => rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|error| error.to_string())?,
        Some(pipes) => pipes.put_in_place().map_err(|error| error.to_string())?,
    }
    let error = bash::command(&program, &cwd, &env).exec();
    Err(bash::not_started(&cwd, &error))
}

fn empty_input() -> Result<(), String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty());
    let null = null.map_err(|error| format!("/dev/null: {error}"))?;
    rustix::stdio::dup2_stdin(null).map_err(|error| format!("/dev/null: {error}"))
}

/// Applies every confinement that this kernel supports and returns what is missing. Limits come
/// first and seccomp last: each step needs system calls that the next one forbids.
fn confine(order: Inner) -> Result<Confinement, String> {
    let Inner { view, rules, mut open, mut cost, .. } = order;
    capabilities::drop_all().map_err(|error| format!("dropping capabilities: {error}"))?;
    if view.isolation == Isolation::LandlockOnly {
        // The first process of a world did this already. If it fails, the kernel may kill other
        // programs before commands.
        let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_TO_DIE);
    }
    reaper::give_back_limit(order.nofile);
    view.limits.apply(view.isolation);
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let (abi, missed) = landlock::restrict(&view, &rules).map_err(|error| error.to_string())?;
    cost.extend(missed);
    let filtered = seccomp::refuse(&view, abi);
    open.extend(openings(&view, abi, filtered.err()));
    let held = view.isolation == Isolation::Namespaces || abi > 0;
    let word = match (held, open.is_empty()) {
        (false, _) => Confined::NotEnforced,
        (true, true) => Confined::Enforced,
        (true, false) => Confined::Partly,
    };
    Ok(Confinement { word, open, cost, abi, no_world: None })
}

/// The actions that this confinement does not prevent. With namespaces Landlock is only a second
/// layer, so its absence adds none.
fn openings(view: &CommandView, abi: u32, unfiltered: Option<String>) -> Vec<String> {
    let alone = view.isolation == Isolation::LandlockOnly;
    let mut open = Vec::new();
    if alone && abi == 0 {
        open.push("files: this kernel has no Landlock, or it is not enabled".into());
    }
    if alone && (1..3).contains(&abi) {
        open.push("files that may not be written can be emptied (needs Landlock 3)".into());
    }
    if alone && abi < landlock::SCOPES {
        open.push("your other processes can be signalled (needs Landlock 6)".into());
    }
    if let Some(reason) = unfiltered {
        open.push(format!("local sockets and calls of the kernel: no seccomp ({reason})"));
    }
    if view.sockets == Sockets::Named && abi < landlock::PATH_SOCKETS {
        open.push(
            "every socket of another program whose path a command sees can be connected to".into(),
        );
    }
    // A world with the network shares the names of these sockets with the machine.
    if view.sockets == Sockets::Named && view.network == Network::On && abi < landlock::SCOPES {
        open.push(
            "every abstract socket of another program can be connected to (needs Landlock 6)"
                .into(),
        );
    }
    open
}
