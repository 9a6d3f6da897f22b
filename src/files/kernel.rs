//! File systems of the kernel, such as `/proc` and `/sys`.

use crate::scope::Permission;
use rustix::fs::{FsWord, PROC_SUPER_MAGIC, fstatfs, statfs};
use std::os::fd::AsFd;
use std::path::Path;

/// File systems whose files control the kernel, by magic number: sysfs, the two
/// of cgroups, debugfs, tracefs, securityfs, bpf, configfs, efivarfs, binfmt_misc, selinuxfs.
const COMMANDS: [FsWord; 11] = [
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

/// Why file tools may not open a canonical path for `need`, judged by its file system. For a path
/// that does not exist, the file system of its nearest existing ancestor counts.
pub fn closes(path: &Path, need: Permission) -> Option<String> {
    let kind = path.ancestors().find_map(|path| statfs(path).ok())?.f_type;
    is_kernels(kind, need).then(|| sentence(path))
}

/// Why file tools may not read an open file, judged by its file system.
pub fn closes_file(file: impl AsFd, path: &Path) -> Option<String> {
    let kind = fstatfs(file).ok()?.f_type;
    is_kernels(kind, Permission::Read).then(|| sentence(path))
}

/// Whether this directory shows the processes of the machine.
pub fn is_processes(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
}

/// `/proc` is denied for reading, too, because it shows the memory of processes, with the keys of
/// the host.
fn is_kernels(kind: FsWord, need: Permission) -> bool {
    kind == PROC_SUPER_MAGIC || need == Permission::Write && COMMANDS.contains(&kind)
}

fn sentence(path: &Path) -> String {
    format!("path is the kernel's own, no file tool opens it: {}; use Bash", path.display())
}
