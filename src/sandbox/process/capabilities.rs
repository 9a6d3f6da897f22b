//! Drops capabilities before a process executes a command.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Drops every capability of this process and its children. Root keeps only `CAP_DAC_OVERRIDE`,
/// because the files of its workspace may belong to other users. It cannot change owners of files
/// or its user id, so system packages must be installed by the person.
pub fn drop_all() -> rustix::io::Result<()> {
    let kept = match rustix::process::geteuid().is_root() {
        true => CapabilitySet::DAC_OVERRIDE,
        false => CapabilitySet::empty(),
    };
    rustix::thread::clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel does not know the capability, or this process may not change the set. The
            // process drops its own capabilities nevertheless, and no_new_privs prevents its
            // programs from regaining any.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    let held = rustix::thread::capabilities(None)?.permitted.intersection(kept);
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: held, permitted: held, inheritable };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

/// The capabilities that the first process needs to build the world and to drop all capabilities
/// afterwards. Each overlay has a work directory of mode 0, which only `DAC_OVERRIDE` can enter; in
/// a user namespace it covers only the user's own files.
const KEPT: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP, CapabilitySet::DAC_OVERRIDE];

/// Makes the kept capabilities ambient: an ordinary user loses all others at `execve`.
pub fn keep_for_first_process() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    let kept = KEPT.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    sets = CapabilitySets { inheritable: kept, ..sets };
    rustix::thread::set_capabilities(None, sets)?;
    KEPT.into_iter().try_for_each(|capability| {
        rustix::thread::configure_capability_in_ambient_set(capability, true)
    })
}
