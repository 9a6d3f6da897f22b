//! The keeper of a Pod's network: a process that starts no command, and holds a network that commands of the Pod share, until
//! the host closes its pipe or kills it. It knows nothing of the scope, and has none of the Pod's files.

use crate::sandbox::order::JsonLine as _;
use crate::sandbox::process::Process;
use crate::sandbox::world::enter;
use crate::sandbox::{reaper, stage};
use nix::sched::CloneFlags;
use std::process::ExitCode;

/// The main function of a keeper, for the first argument [`crate::sandbox::KEEPER_ARG`]. Says on standard output which
/// process it is. It has one thread.
pub fn keeper_main() -> ExitCode {
    // Fails only for a group leader, which a fresh child is not.
    let _ = rustix::process::setsid();
    let network = enter::with_network(CloneFlags::empty());
    let answer = network.and_then(|()| Process::own().ok_or_else(|| "it has no /proc".to_owned()));
    if stage::send(&answer.line()).is_err() || answer.is_err() {
        return ExitCode::FAILURE;
    }
    reaper::wait_for_end();
    ExitCode::SUCCESS
}
