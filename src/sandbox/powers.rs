//! The capabilities that a process gives up before it becomes a command.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Drops every capability of this process and of all it starts. Root keeps `CAP_DAC_OVERRIDE`, because the
/// files of its workspace may belong to other users. It keeps none with which it
/// could give files to other users or be one: installing packages of the system is the person's to do.
pub fn give_up_all() -> rustix::io::Result<()> {
    let kept = match rustix::process::geteuid().is_root() {
        true => CapabilitySet::DAC_OVERRIDE,
        false => CapabilitySet::empty(),
    };
    rustix::thread::clear_ambient_capability_set()?;
    for power in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(power) {
            // This kernel does not know it, or this process may not change the set. The process gives up what it
            // holds all the same, and without new privileges no program that it starts gets any of it back.
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
