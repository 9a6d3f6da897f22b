//! seccomp: system calls that lead round the walls are refused.

use crate::sandbox::cage::{Cage, Network, Sockets};
use crate::sandbox::mounts::Private;
use crate::sandbox::walls::PATH_SOCKETS;
use nix::libc;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// Calls of the other ABI of this processor carry this bit.
const X32: i64 = 0x4000_0000;

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

/// These look as if the kernel did not know them: programs have another way. The arguments of
/// `clone3` lie where no filter can see them.
const UNKNOWN: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
];

/// Memory, queues and semaphores that have a number instead of a place: everybody's, unless they
/// are this command's own.
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

/// How another process is made slow. The first argument says which one.
const PACE: &[i64] = &[
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];

/// What [`libc::SYS_setpriority`] and [`libc::SYS_ioprio_set`] call a single process. Groups and
/// users are more than this command.
const ONE_PRIORITY: u64 = 0;
const ONE_IOPRIO: u64 = 1;

/// A rule set as seccompiler takes it.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters for this thread and all it starts. `abi` is the Landlock in use. What this
/// process becomes may change its own limits and pace by its pid, too.
pub fn refuse(cage: &Cage, abi: u32, private: Private) -> Result<(), String> {
    let plain = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Rules>();
    let mut refused = plain(REFUSED);
    if !private.numbered {
        refused.extend(plain(NUMBERED));
    }
    refused.insert(libc::SYS_clone, namespaces()?);
    refused.extend(of_others()?);
    install(refused, libc::EPERM)?;
    install(plain(UNKNOWN), libc::ENOSYS)?;
    install(sockets(cage, abi)?, libc::EACCES)
}

fn install(mut rules: Rules, errno: i32) -> Result<(), String> {
    if cfg!(target_arch = "x86_64") {
        let other: Rules = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(other);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(words)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(words)?;
    let program: seccompiler::BpfProgram = filter.try_into().map_err(words)?;
    seccompiler::apply_filter(&program).map_err(words)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// New namespaces by `clone`: each flag alone is enough.
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

/// Limits and pace of other processes, which the kernel leaves to everybody of the same user. A
/// filter cannot see whose a pid is: only 0 and the pid of the command itself pass.
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
    // To look at a limit is not to set one.
    let set = SeccompCondition::new(2, Len::Qword, Op::Ne, 0).map_err(words)?;
    let mut limit = conditions(other(0).into())?;
    limit.push(set);
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(limit).map_err(words)?]);
    Ok(rules)
}

/// `(argument, comparison, value)`, all of which must hold.
fn rule(all: Vec<(u8, Op, u64)>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions(all)?).map_err(words)
}

fn conditions(all: Vec<(u8, Op, u64)>) -> Result<Vec<SeccompCondition>, String> {
    let one = |(index, op, value)| SeccompCondition::new(index, Len::Dword, op, value);
    all.into_iter().map(one).collect::<Result<_, _>>().map_err(words)
}

/// Which families of sockets may be made. A pair that is connected to itself always may, unless it
/// could send to a named socket all the same.
fn sockets(cage: &Cage, abi: u32) -> Result<Rules, String> {
    let mut families = vec![libc::AF_NETLINK];
    let local = cage.sockets == Sockets::Open || abi >= PATH_SOCKETS;
    if local {
        families.push(libc::AF_UNIX);
    }
    if cage.network == Network::On {
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
