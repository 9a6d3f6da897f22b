//! The keeper of a Pod's world: a process that starts no command. It holds the network and the layers over caches that the
//! commands of the Pod share, until the host closes its pipe or ends it. Each command has namespaces of its own in those of
//! the keeper.

use crate::disk::remove_tree;
use crate::sandbox::order::{JsonLine as _, Keep, Keeper, KeptWorld};
use crate::sandbox::pod_storage::{LayerLock, PodStorage};
use crate::sandbox::prepare::ViewOnDisk;
use crate::sandbox::process::Process;
use crate::sandbox::world::{build, enter};
use crate::sandbox::{reaper, stage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The main function of a keeper, for the first argument [`crate::sandbox::KEEPER_ARG`]. Reads its order from standard
/// input and writes its answer to standard output. It has one thread.
pub fn keeper_main() -> ExitCode {
    // Fails only for a group leader, which a fresh child is not.
    let _ = rustix::process::setsid();
    let kept = keep();
    let (answer, held) = match kept {
        Ok((world, held)) => (Ok(world), Some(held)),
        Err(reason) => (Err(reason), None),
    };
    let is_sent = stage::send(&answer.line()).is_ok();
    let Some((storage, _lock)) = held.filter(|_| is_sent) else { return ExitCode::FAILURE };
    // What is not removed is left to the next keeper or command.
    storage.old_work().iter().for_each(|dir| drop(remove_tree(dir)));
    reaper::wait_for_end();
    ExitCode::SUCCESS
}

/// Creates the world.
fn keep() -> Result<(KeptWorld, (PodStorage, LayerLock)), String> {
    let order = reaper::read_order::<Keep>().ok_or("the order is not readable")?;
    let Keep { mut view, mut env, make_measurable } = order;
    let storage = view.private.as_mut().ok_or("a command without a Pod has no kept world")?;
    let lock = storage.lock_own_layers().map_err(|error| format!("its caches: {error}"))?;
    let lock = lock.ok_or("a command uses the caches of the Pod")?;
    if make_measurable {
        storage.make_measurable(&lock).map_err(|error| format!("its caches: {error}"))?;
    }
    let storage = storage.clone();
    let disk = ViewOnDisk::without_repositories(view);
    let world = disk.world(&disk.holes().0, Path::new("/"), &mut env);
    let caches: Vec<PathBuf> = world.caches().cloned().collect();
    enter::kept_namespaces()?;
    let (layers, cost) = build::mount_layers(&storage, &caches)?;
    let process = Process::own().ok_or("/proc does not list it")?;
    let keeper = Keeper { process, storage: PodStorage::of(storage.dir()) };
    Ok((KeptWorld { keeper, layers, cost }, (storage, lock)))
}
