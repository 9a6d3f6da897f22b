//! seccomp: refuses system calls with which a command could bypass its confinement.

use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::view::{CommandView, Network, Sockets};
use crate::sandbox::process::landlock::PATH_SOCKETS;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;

/// The calls of the x32 ABI of this processor carry this bit.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Since Linux 6.15; the same number on every architecture.
const OPEN_TREE_ATTR: i64 = 467;
/// The set-user-ID and set-group-ID bits of a mode.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Mounts and namespaces, other processes' memory, the kernel itself, keys of the session.
const REFUSED: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_pidfd_getfd,
];

/// Refused with `ENOSYS`, so that programs fall back to other calls. The arguments of `clone3` and
/// `openat2` are in memory that a filter cannot read.
const UNKNOWN: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
    libc::SYS_openat2,
];

/// System V IPC and message queues, which have no path. All processes share them unless the command
/// has an IPC namespace of its own.
const NUMBERED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Scheduling of a process. The first argument is its id.
const PACE: &[i64] = &[
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];

/// System calls that set the mode of a file, with the index of the mode argument.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];
/// System calls that create a file of any kind, with the index of the mode argument. Every user can
/// create one device, number 0:0, which overlay file systems read as a removed file (whiteout).
const MAKES: &[(i64, u8)] = &[
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// Since Linux 6.6; the same number on every architecture.
const FCHMODAT2: i64 = 452;
/// A command of `fcntl`, of Linux 6.19; the same number on every processor.
const F_SETDELEG: i32 = 1040;
/// System calls that may create a file, with the indexes of the flags and of the mode.
const OPENS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The `which` argument of [`libc::SYS_setpriority`] and [`libc::SYS_ioprio_set`] for a single
/// process. Groups and users could include other programs.
const ONE_PRIORITY: u64 = 0;
const ONE_IOPRIO: u64 = 1;

/// The rules in the form of seccompiler.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters for this thread and its children. `abi` is the version of Landlock in use.
/// The command that this process executes may change its own limits and priority by its pid, too.
pub fn refuse(view: &CommandView, abi: u32) -> Result<(), String> {
    let plain = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Rules>();
    let mut refused = plain(REFUSED);
    if view.isolation == Isolation::LandlockOnly {
        refused.extend(plain(NUMBERED));
    }
    refused.insert(libc::SYS_clone, namespaces()?);
    refused.extend(of_others()?);
    refused.extend(modes()?);
    refused.insert(libc::SYS_fcntl, leases()?);
    install(refused, libc::EPERM)?;
    install(plain(UNKNOWN), libc::ENOSYS)?;
    install(sockets(view, abi)?, libc::EACCES)
}

fn install(rules: Rules, errno: i32) -> Result<(), String> {
    let arch = std::env::consts::ARCH.try_into().map_err(words)?;
    let errno = errno.unsigned_abs();
    let refuse = SeccompAction::Errno(errno);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(words)?;
    let mut program: BpfProgram = filter.try_into().map_err(words)?;
    program.splice(0..0, other_abi(errno));
    seccompiler::apply_filter(&program).map_err(words)
}

/// Refuses every call of the x32 ABI before the rules, which name calls by their usual numbers. Every call of a command
/// that opens a file runs through the whole filter, so it stays short.
#[cfg(target_arch = "x86_64")]
fn other_abi(errno: u32) -> [sock_filter; 3] {
    let step = |code: u32, jf, k| sock_filter { code: code as u16, jt: 0, jf, k };
    [
        // The number of the call is the first field that a filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn other_abi(_: u32) -> [sock_filter; 0] {
    []
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Refuses `clone` with any flag for a new namespace.
fn namespaces() -> Result<Vec<SeccompRule>, String> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let with = |flag: i32| {
        let flag = u64::from(flag.unsigned_abs());
        rule(vec![(0, Op::MaskedEq(flag), flag)])
    };
    flags.into_iter().map(with).collect()
}

/// Limits and scheduling of other processes, which every process of the same user may change. A
/// filter cannot tell the owner of a pid, so only 0 and the pid of the command itself are allowed.
fn of_others() -> Result<Rules, String> {
    let own = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
    let other = |index| [(index, Op::Ne, 0), (index, Op::Ne, own)];
    let mut rules = Rules::new();
    for call in PACE {
        rules.insert(*call, vec![rule(other(0).into())?]);
    }
    for (call, one) in [(libc::SYS_setpriority, ONE_PRIORITY), (libc::SYS_ioprio_set, ONE_IOPRIO)] {
        rules.insert(call, vec![rule(vec![(0, Op::Ne, one)])?, rule(other(1).into())?]);
    }
    // Reading a limit is allowed.
    let set = SeccompCondition::new(2, Len::Qword, Op::Ne, 0).map_err(words)?;
    let mut limit = conditions(other(0).into())?;
    limit.push(set);
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(limit).map_err(words)?]);
    Ok(rules)
}

/// Devices and set-user-ID programs: users outside could use one that a command created. The mode
/// of an open counts only if it creates a file.
fn modes() -> Result<Rules, String> {
    let mut rules = Rules::new();
    let bit = |argument: u8, bit: u32| (argument, Op::MaskedEq(bit.into()), u64::from(bit));
    for (call, argument) in MODES {
        let each = SET_ID.iter().map(|id| rule(vec![bit(*argument, *id)]));
        rules.insert(*call, each.collect::<Result<_, _>>()?);
    }
    for (call, argument) in MAKES {
        let kind = |kind: u32| (*argument, Op::MaskedEq(libc::S_IFMT.into()), u64::from(kind));
        for device in [libc::S_IFCHR, libc::S_IFBLK] {
            rules.entry(*call).or_default().push(rule(vec![kind(device)])?);
        }
    }
    let makes = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(i32::unsigned_abs);
    for (call, flags, mode) in OPENS {
        let each = SET_ID.iter().flat_map(|id| makes.map(|make| (*id, make)));
        let each = each.map(|(id, make)| rule(vec![bit(*flags, make), bit(*mode, id)]));
        rules.insert(*call, each.collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// Leases and delegations of files: while a process holds one, others wait to open the file, or fail to.
fn leases() -> Result<Vec<SeccompRule>, String> {
    [libc::F_SETLEASE, F_SETDELEG]
        .map(|command| rule(vec![(1, Op::Eq, u64::from(command.unsigned_abs()))]))
        .into_iter()
        .collect()
}

/// `(argument, comparison, value)`, all of which must hold.
fn rule(all: Vec<(u8, Op, u64)>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions(all)?).map_err(words)
}

fn conditions(all: Vec<(u8, Op, u64)>) -> Result<Vec<SeccompCondition>, String> {
    let one = |(index, op, value)| SeccompCondition::new(index, Len::Dword, op, value);
    all.into_iter().map(one).collect::<Result<_, _>>().map_err(words)
}

/// The families of sockets that may be created. `socketpair` is allowed, except for the types that
/// could still send to a socket with a path.
fn sockets(view: &CommandView, abi: u32) -> Result<Rules, String> {
    let mut families = vec![libc::AF_NETLINK];
    let is_own = view.sockets == Sockets::Own && view.isolation == Isolation::Namespaces;
    let local = view.sockets == Sockets::Named || is_own || abi >= PATH_SOCKETS;
    if local {
        families.push(libc::AF_UNIX);
    }
    // A world without the network has a network namespace of its own, without other programs.
    if view.network == Network::On || view.isolation == Isolation::Namespaces {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let other = families.iter().map(|family| (0, Op::Ne, u64::from(family.unsigned_abs())));
    let mut rules = Rules::from([(libc::SYS_socket, vec![rule(other.collect())?])]);
    if !local {
        let kind = |kind: i32| rule(vec![(1, Op::MaskedEq(0xf), u64::from(kind.unsigned_abs()))]);
        rules.insert(libc::SYS_socketpair, vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?]);
    }
    Ok(rules)
}
