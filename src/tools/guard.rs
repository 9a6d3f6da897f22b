//! What the file tools leave alone although a scope may hold it: what nobody is given, and what
//! somebody else executes.

use crate::sandbox::{GUARDED, Need, Person};
use crate::scope::Permission;
use crate::tools::{Context, scoped_path};
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

/// The directory of a repository, or the file that says where it is.
const GIT: &str = ".git";
/// Where a repository keeps others: of its submodules, and what is each worktree's own.
const INNER: [&str; 2] = ["modules", "worktrees"];

/// What a call has to be granted before it changes this canonical path, although the scope holds
/// it: the same that a command needs. Looks at the disk.
pub fn needs(ctx: &Context, path: &Path) -> Vec<Need> {
    let git = is_gits_orders(path).then_some(Need::Git);
    let programs = is_program(ctx, path).then_some(Need::Outside);
    git.into_iter().chain(programs).collect()
}

/// Why a path that needs these is not changed by a call that was not granted them.
pub fn not_granted(path: &Path, needs: &[Need]) -> String {
    let what = needs.iter().map(|need| of_a_file(*need)).collect::<Vec<_>>().join("; ");
    format!("path is guarded, {what}: {}", path.display())
}

/// Why a path that needs these does not become part of a scope.
pub fn not_extended(path: &Path, needs: &[Need]) -> String {
    let mut words: Vec<&str> = needs.iter().map(|need| need.word()).collect();
    words.push(Need::Outside.word());
    words.dedup();
    format!("{}, and outside the scope; use Bash with needs {words:?}", not_granted(path, needs))
}

/// What it means to change a file that needs this.
fn of_a_file(need: Need) -> &'static str {
    match need {
        Need::Git => "git executes it or takes its settings from it",
        Need::Outside => "it lies in a directory on PATH",
        Need::Network => "it is the network's",
    }
}

/// Whether git executes what is at this path, or takes orders from it.
fn is_gits_orders(path: &Path) -> bool {
    let of = |git: &Path| path.strip_prefix(git).is_ok_and(is_order_inside);
    path.ends_with(GIT) || path.ancestors().skip(1).any(|dir| is_repository(dir) && of(dir))
}

fn is_repository(dir: &Path) -> bool {
    dir.ends_with(GIT) || dir.join("HEAD").is_file() && dir.join("objects").is_dir()
}

/// Whether a path inside a repository is one of its orders, or of one that it keeps.
fn is_order_inside(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let order = |name: &&str| GUARDED.contains(name);
    match names.split_first() {
        Some((first, inner)) if INNER.contains(first) => inner.iter().any(order),
        Some((first, _)) => order(first),
        None => false,
    }
}

/// Whether programs are looked for where this path lies.
fn is_program(ctx: &Context, path: &Path) -> bool {
    let real = |dir: &Path| scoped_path::resolve(dir.to_str()?).ok();
    let dirs = Person { env: &ctx.env }.programs();
    dirs.iter().any(|dir| path.starts_with(dir) || real(dir).is_some_and(|d| path.starts_with(d)))
}

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
