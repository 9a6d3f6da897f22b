//! What the file tools leave alone although a scope may hold it: what nobody is given, and what
//! somebody else executes.

use crate::sandbox::Person;
use crate::scope::Permission;
use crate::tools::Context;
use rustix::fs::{FsWord, PROC_SUPER_MAGIC, fstatfs, statfs};
use std::os::fd::AsFd;
use std::path::Path;

/// File systems whose files are orders to the kernel, by the number of their kind: sysfs, the two
/// of cgroups, debugfs, tracefs, securityfs, bpf, configfs, efivarfs, binfmt_misc, selinuxfs.
const ORDERS: [FsWord; 11] = [
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6265_6570,
    0xde5e_81e4,
    0x4249_4e4d,
    0xf97c_ff8c,
];

/// Why no scope and no answer opens a canonical path for this; `None` when nothing speaks against
/// it. Looks at the disk.
pub fn closed(ctx: &Context, path: &Path, need: Permission) -> Option<String> {
    if let Some(secret) = (Person { env: &ctx.env }).secret(path) {
        return Some(format!(
            "path is secret, no tool reads or writes it: {} ({} is on the list of secrets)",
            path.display(),
            secret.display()
        ));
    }
    // What is not there yet would lie on the file system of its nearest directory.
    let kind = path.ancestors().find_map(|path| statfs(path).ok())?.f_type;
    kernels(kind, need).then(|| kernels_own(path))
}

/// The same for a file that is open.
pub fn closed_file(file: impl AsFd, path: &Path, need: Permission) -> Option<String> {
    let kind = fstatfs(file).ok()?.f_type;
    kernels(kind, need).then(|| kernels_own(path))
}

/// Whether this directory shows the processes of the machine.
pub fn is_processes(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
}

/// Whether what lies on this kind of file system is the kernel's: `/proc` shows what processes hold
/// in memory, the host's keys among it.
fn kernels(kind: FsWord, need: Permission) -> bool {
    kind == PROC_SUPER_MAGIC || need == Permission::Write && ORDERS.contains(&kind)
}

fn kernels_own(path: &Path) -> String {
    format!("path is the kernel's own, no file tool opens it: {}; use Bash", path.display())
}
