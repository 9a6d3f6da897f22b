//! The world of a command: what is in it, what is not, and how much of the machine it takes.

use crate::escape::cell::{Cell, no_world_to_test};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use yoi::sandbox::{CommandLimits, Isolation};
use yoi::scope::{Permission, Rule};

/// Readable files keep their mode, owner, times and attributes, too; files that were not granted do
/// not exist.
#[tokio::test]
async fn modes_owners_and_times_of_what_may_only_be_read_are_not_changed() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let rule = Rule::new(cell.path("outside"), Permission::Read);
    cell.bench.ctx.scope.allow.push(rule);
    let secret = cell.path("outside/secret");
    let before = fs::metadata(&secret).unwrap();
    for program in [
        "chmod 777 ../outside/secret",
        "chmod 4755 ../outside/secret",
        "chown 1:1 ../outside/secret",
        "touch -t 200001010000 ../outside/secret",
        "python3 -c 'import os; os.setxattr(\"../outside/secret\", \"user.a\", b\"b\")'",
        "chmod 777 ../home/../own",
    ] {
        cell.run(program).await.refused();
    }
    let after = fs::metadata(&secret).unwrap();
    let seen = |meta: &fs::Metadata| (meta.mode(), meta.uid(), meta.mtime(), meta.ctime_nsec());
    assert_eq!(seen(&after), seen(&before));
}

/// A program with such a mode would run as this user for everybody outside.
#[tokio::test]
async fn no_file_gets_a_mode_to_run_as_its_owner() {
    let cell = Cell::new();
    for program in [
        "cp /bin/true own; chmod 4755 own",
        "cp /bin/true own; chmod g+s own",
        "python3 -c 'import os; os.open(\"made\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
        "python3 -c 'import os; os.mknod(\"node\", 0o104755)'",
        "python3 -c 'import os; os.fchmod(os.open(\"own\", os.O_RDONLY), 0o2755)'",
    ] {
        cell.run(program).await.refused();
    }
    for entry in fs::read_dir(&cell.bench.ctx.cwd).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o6000, 0, "{entry:?}");
    }
    cell.run("cp /bin/true own; chmod 755 own; mkdir d; chmod 1777 d; install -m 600 own x")
        .await
        .well();
}

#[tokio::test]
async fn other_processes_and_other_files_are_neither_listed_nor_watched() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let mut bystander = std::process::Command::new("sleep").arg("974.25").spawn().unwrap();
    let did =
        cell.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; ls -d /proc/[0-9]* | wc -l").await;
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(!did.well().contains("974.25"), "{}", did.text);
    let count: usize = did.text.lines().last().unwrap().trim().parse().unwrap();
    assert!(count < 10, "{}", did.text);
    let watch = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                 if libc.inotify_add_watch(libc.inotify_init(), b'../outside', 0xfff) < 0: \
                 raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))";
    cell.python(watch).await.refused();
    cell.run("stat ../outside/secret").await.refused();
    cell.run("ls -A ../outside").await.refused();
    for file in ["/etc/shadow", "/etc/sudoers", "/sys/kernel", "/root/.bashrc", "/boot"] {
        let did = cell.run(&format!("ls {file}")).await;
        assert!(did.text.contains("No such file"), "{}", did.text);
    }
}

/// Root without powers still owns the kernel's own files.
#[tokio::test]
async fn no_setting_of_the_kernel_is_changed_and_no_power_is_left() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    for program in [
        "echo '|/bin/true' > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger",
        "echo 0 > /proc/self/oom_score_adj",
        // The first process of the PID namespace.
        "exec 3<>/proc/1/mem",
        "cat /proc/1/environ",
        "ls -l /proc/1/exe",
        "mount -t tmpfs none /tmp",
        "mknod /tmp/disk b 254 0",
        "touch /new",
        "touch /usr/new",
        "touch /etc/new",
        "touch /dev/new",
    ] {
        cell.run(program).await.refused();
    }
    assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern);
    let did = cell.run("grep -h Cap /proc/self/status; cat /proc/self/oom_score_adj").await;
    // Root keeps one capability, because workspaces may belong to another user. An ordinary user
    // without namespaces has none, and cannot drop its bounding set, which no_new_privs makes
    // useless.
    let root = rustix::process::geteuid().is_root();
    let held = if root { 2 } else { 0 };
    let could_give = if root || cell.has_world() { held } else { bound() };
    let sets = ["Inh", "Prm", "Eff", "Bnd", "Amb"];
    let held = [0, held, held, could_give, 0];
    let expected: String =
        sets.iter().zip(held).map(|(set, held)| format!("Cap{set}:\t{held:016x}\n")).collect();
    assert_eq!(did.well(), format!("{expected}800\n"));
}

/// The capability bounding set of this process.
fn bound() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let bound = status.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
    u64::from_str_radix(bound, 16).unwrap()
}

/// Some containers let no process change its capability bounding set.
#[tokio::test]
async fn root_that_may_not_change_its_bounding_set_keeps_one_power_all_the_same() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut cell = Cell::new();
    let helper = cell.path("helper");
    let own = cell.bench.ctx.helper.display().to_string();
    let line = format!("#!/bin/sh\nexec setpriv --bounding-set -setpcap {own} \"$@\"\n");
    fs::write(&helper, line).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o700)).unwrap();
    cell.bench.ctx.helper = helper;
    for isolation in [cell.isolation, Isolation::LandlockOnly] {
        cell.isolation = isolation;
        let did = cell.run("grep -hE 'Cap(Prm|Eff)' /proc/self/status").await;
        let held = "0000000000000002";
        assert_eq!(did.well(), format!("CapPrm:\t{held}\nCapEff:\t{held}\n"), "{isolation:?}");
    }
}

#[tokio::test]
async fn memory_of_a_command_has_an_end() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.limits = CommandLimits {
        memory_mib: 200,
        file_mib: 6,
        tmp_mib: 8,
        home_mib: 4,
        shm_mib: 2,
        ..CommandLimits::default()
    };
    // Without namespaces a command cannot write there.
    for (place, mib) in [("/dev/shm", 2), ("$HOME", 4)].into_iter().filter(|_| cell.has_world()) {
        let fill =
            format!("for i in $(seq {}); do head -c 1M /dev/zero > {place}/$i; done", mib + 1);
        let did = cell.run(&fill).await;
        assert!(did.text.contains("No space left"), "{place}: {}", did.text);
        cell.run(&format!("head -c {}M /dev/zero > {place}/fits", mib / 2)).await.well();
        let many = format!("for i in $(seq 3000); do : > {place}/$i || exit 1; done");
        assert!(cell.run(&many).await.text.contains("No space left"), "{place}");
    }
    assert!(cell.run("head -c 7M /dev/zero > big").await.text.contains("File size limit"));
    let heap = cell.python("held = [bytearray(1 << 20) for i in range(400)]").await;
    assert!(heap.text.contains("MemoryError"), "{}", heap.text);
}

#[tokio::test]
async fn processes_of_a_command_have_an_end() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.only_where_processes_are_counted();
    cell.limits.processes = 320;
    let bomb = "import os, time\nmade = 0\ntry:\n    while made < 1000:\n        \
                if os.fork() == 0:\n            time.sleep(60)\n            os._exit(0)\n        \
                made += 1\nexcept OSError: pass\nprint(made)\nos.kill(-1, 9)";
    let did = cell.python(bomb).await;
    let made: usize = did.text.trim().parse().unwrap();
    // The kernel gives root 300 ids beyond the limit, once.
    assert!(made < 620, "{made}");
    let again =
        cell.python("import subprocess\nfor _ in range(700): subprocess.run(['true'])").await;
    assert!(
        again.text.trim().is_empty(),
        "the limit holds for processes at a time: {}",
        again.text
    );
}

/// Files that a command creates at missing paths of the home directory are discarded with it.
#[tokio::test]
async fn nothing_is_left_in_places_of_the_person_that_do_not_exist_yet() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let path = format!("{}:{}", cell.path("home/bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    let make = "mkdir -p ~/bin ~/.gnupg && echo evil > ~/bin/git && echo evil > ~/.npmrc";
    let did = cell.run(make).await;
    assert_eq!(did.text.is_empty(), cell.has_world(), "{}", did.text);
    for name in ["bin", ".gnupg", ".npmrc"] {
        assert!(!cell.path("home").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn long_output_of_earlier_commands_is_read_and_not_changed() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let output = cell.bench.bash("seq 100000").await;
    let text = output.content.unwrap();
    let file = text.split(" in ").nth(1).unwrap().split(']').next().unwrap().to_owned();
    assert_eq!(cell.run(&format!("tail -n 1 {file}")).await.well(), "100000\n");
    cell.run(&format!("echo x >> {file}")).await.refused();
    cell.run(&format!("rm {file}")).await.refused();
}

#[tokio::test]
async fn a_command_that_met_a_limit_reads_which_one() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.bench.ctx.command_limits.shm_mib = 1;
    let output = cell.bench.bash("head -c 2M /dev/zero > /dev/shm/a").await;
    let text = output.content.unwrap();
    assert!(text.contains("1 MiB in /dev/shm") && text.contains("[limits]"), "{text}");
    cell.bench.ctx.command_limits.file_mib = 1;
    let output = cell.bench.bash("exec head -c 2M /dev/zero > large").await;
    let text = output.content.unwrap();
    assert!(text.contains("a file that a command writes has at most 1 MiB"), "{text}");
}

#[tokio::test]
async fn settings_of_git_are_shown_without_passwords_and_their_helpers() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let settings = "[user]\n\tname = a\n[credential]\n\thelper = store\n[http]\n\textraHeader = token\n\
                    [include]\n\tpath = work.conf\n";
    fs::write(cell.path("home/.gitconfig"), settings).unwrap();
    let work =
        "[user]\n\temail = a@b\n[url \"https://me:token@host/\"]\n\tinsteadOf = https://host/\n";
    fs::write(cell.path("home/work.conf"), work).unwrap();
    let did =
        cell.run("git config user.name; git config user.email; git config -l; cat ~/*.conf").await;
    assert!(did.well().starts_with("a\na@b\n"), "{}", did.text);
    assert!(!did.text.contains("token") && !did.text.contains("helper"), "{}", did.text);
    assert_eq!(fs::read_to_string(cell.path("home/.gitconfig")).unwrap(), settings);
}

#[test]
fn a_command_starts_while_a_person_makes_and_removes_repositories() {
    let cell = Cell::new();
    let ws = cell.path("ws");
    let has_ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // What a command put back while it ran may be in the way.
            while !has_ended.load(std::sync::atomic::Ordering::Relaxed) {
                let name = ws.join("new");
                let git =
                    std::process::Command::new("git").args(["init", "-q"]).arg(&name).output();
                let _ = (git, fs::remove_dir_all(name));
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for _ in 0..20 {
            let did = runtime.block_on(cell.try_run("true"));
            if did.is_err() {
                has_ended.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            did.unwrap();
        }
        has_ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[tokio::test]
async fn a_command_leaves_most_watches_of_files_to_other_programs() {
    let cell = Cell::new();
    // Root has no user namespace of its own.
    if no_world_to_test() || !cell.has_world() || fs::metadata("/proc/self").unwrap().uid() == 0 {
        return;
    }
    let open = "import ctypes\nc = ctypes.CDLL(None)\nn = 0\nwhile c.inotify_init() >= 0: n += 1\nprint(n)";
    let did = cell.python(open).await;
    let all = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
    let (own, all): (u32, u32) = (did.well().trim().parse().unwrap(), all.trim().parse().unwrap());
    assert!(own <= all / 4, "{own} of {all}");
}
