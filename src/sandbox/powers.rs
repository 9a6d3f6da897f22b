//! The capabilities that a process gives up before it becomes a command.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The capabilities with which root could undo the confinement.
const UNDOING: CapabilitySet = CapabilitySet::SYS_ADMIN
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

/// Drops every capability of this process and of all it starts. Root keeps `CAP_DAC_OVERRIDE`, because the
/// files of its workspace may belong to other users.
pub fn give_up_all() -> rustix::io::Result<()> {
    let kept = match rustix::process::geteuid().is_root() {
        true => CapabilitySet::DAC_OVERRIDE,
        false => CapabilitySet::empty(),
    };
    rustix::thread::clear_ambient_capability_set()?;
    for power in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(power) {
            // This kernel does not know it.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    let held = rustix::thread::capabilities(None)?.permitted.intersection(kept);
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: held, permitted: held, inheritable };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

/// Removes [`UNDOING`] from the bounding set, which takes effect when the command is started.
pub fn give_up_undoing() {
    for power in UNDOING.iter() {
        // A process of an ordinary user may not remove any, and has none.
        let _ = rustix::thread::remove_capability_from_bounding_set(power);
    }
}
