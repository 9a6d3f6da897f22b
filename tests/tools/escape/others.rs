//! Other processes and other programs on this machine.

use crate::escape::cell::{Cell, no_world_to_test, runs, seconds};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use yoi::protocol::OutsideAccess;
use yoi::sandbox::{Need, Outcome};

#[tokio::test]
async fn the_host_and_the_helper_are_not_killed_landlock_6() {
    let cell = Cell::new();
    if !cell.covered(6, "signals") {
        return;
    }
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let host = std::process::id();
    for pid in [bystander.id(), host] {
        cell.run(&format!("kill -9 {pid}")).await.refused();
    }
    // The kernel ignores such a signal from a process of a PID namespace to its first process,
    // without an error.
    let did =
        cell.run("for signal in KILL STOP TERM; do kill -$signal $PPID 1; done; echo lives").await;
    assert!(did.well().ends_with("lives\n"), "{}", did.text);
    let by_handle = format!(
        "import os, signal; signal.pidfd_send_signal(os.pidfd_open({}), signal.SIGKILL)",
        bystander.id()
    );
    cell.python(&by_handle).await.refused();
    cell.run("kill -9 -1").await;
    assert!(bystander.try_wait().unwrap().is_none(), "it lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    cell.run("sleep 50 & kill -9 $!; wait $!; [ $? = 137 ]").await.well();
}

#[tokio::test]
async fn another_process_is_not_traced_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "other processes") {
        return;
    }
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let program = format!(
        "import ctypes, os\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         libc.ptrace.restype = ctypes.c_long\n\
         if libc.ptrace(16, {}, None, None) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))",
        bystander.id()
    );
    cell.python(&program).await.refused();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_process_that_forks_twice_ends_with_its_command() {
    let cell = Cell::new();
    let sleep = format!("sleep {}", seconds("975.5"));
    let program = format!(
        "(setsid sh -c 'echo $$ > pid; exec {sleep}' >/dev/null 2>&1 </dev/null &); \
         until [ -s pid ]; do :; done"
    );
    let did = cell.run(&program).await;
    assert!(did.ended.left_over.iter().any(|name| name.contains(&sleep)), "{:?}", did.ended);
    assert!(!runs(&sleep));
}

/// Docker, tmux, systemd and ssh-agent: each would act for a command that could connect to it.
#[tokio::test]
async fn sockets_of_docker_tmux_and_systemd_are_not_reached() {
    let cell = Cell::new();
    let names = ["outside/docker.sock", "outside/tmux", "outside/bus", "ws/inside"];
    let servers = names.map(|name| UnixListener::bind(cell.path(name)).unwrap());
    for name in names {
        let connect = format!(
            "import socket; socket.socket(socket.AF_UNIX).connect('{}')",
            cell.path(name).display()
        );
        cell.python(&connect).await.refused();
    }
    let bus = cell.path("outside/bus").display().to_string();
    for program in [
        format!("docker -H unix://{} ps", cell.path("outside/docker.sock").display()),
        format!("tmux -S {} new -d true", cell.path("outside/tmux").display()),
        format!(
            "XDG_RUNTIME_DIR=../outside DBUS_SESSION_BUS_ADDRESS=unix:path={bus} systemd-run --user true"
        ),
    ] {
        let did = cell.run(&program).await;
        // tmux says so and exits with 0.
        let failed = did.ended.outcome != Outcome::Exited(0) || did.text.contains("error creating");
        assert!(failed, "{program}: {}", did.text);
    }
    for server in servers {
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// Its own sockets are a command's; those of other programs are hidden, also where it may write.
#[tokio::test]
async fn a_command_uses_sockets_of_its_own_and_reaches_none_of_another_program() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.bench.file("deep/er/a", "");
    cell.bench
        .ctx
        .scope
        .allow
        .push(yoi::scope::Rule::new(cell.path("outside"), yoi::scope::Permission::Read));
    let names = ["ws/stream", "ws/deep/er/stream", "outside/read", "home/.cache/cached"];
    std::fs::create_dir(cell.path("home/.cache")).unwrap();
    let servers = names.map(|name| UnixListener::bind(cell.path(name)).unwrap());
    let datagram = UnixDatagram::bind(cell.path("ws/datagram")).unwrap();
    drop(UnixListener::bind(cell.path("ws/left")).unwrap());
    let program = "import os, socket
def own(path):
    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
    c = socket.socket(socket.AF_UNIX); c.connect(path); s.accept()[0].send(b'x'); return c.recv(1)
os.unlink('left')
print(own('left'), own('deep/own'), own('/tmp/own'), own('\\0abstract'))
for path in ['stream', 'deep/er/stream', '../outside/read', '../home/.cache/cached']:
    for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM]:
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path); print('reached', path)
        except OSError: pass
for path in ['datagram', 'stream']:
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path); print('reached', path)
    except OSError: pass
for act in [lambda: os.rename('stream', 'moved'), lambda: os.link('stream', 'linked'), lambda: os.unlink('stream')]:
    try:
        act(); print('moved')
    except OSError: pass
";
    let did = cell.python(program).await;
    assert_eq!(did.well(), "b'x' b'x' b'x' b'x'\n");
    for server in servers {
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    datagram.set_nonblocking(true).unwrap();
    assert_eq!(datagram.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_socket_pair_works_and_reaches_no_other_process() {
    let cell = Cell::new();
    let server = UnixDatagram::bind(cell.path("outside/log")).unwrap();
    let pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
    cell.python(pair).await.well();
    let send = format!(
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', '{}')",
        cell.path("outside/log").display()
    );
    cell.python(&send).await.refused();
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn an_abstract_socket_is_not_reached_landlock_6() {
    let mut cell = Cell::new();
    let name = format!("yoi-test-{}", uuid::Uuid::now_v7());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let server = UnixListener::bind_addr(&address).unwrap();
    let connect = format!("import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')");
    cell.python(&connect).await.refused();
    if cell.covered(6, "abstract sockets") {
        let _named = UnixListener::bind(cell.path("outside/named")).unwrap();
        cell.name(&[(OutsideAccess::Socket, "outside/named")]);
        cell.python(&connect).await.refused();
    }
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// The sockets of a host and its Pods ask who is at the other end.
#[tokio::test]
async fn a_command_is_known_by_its_descent_also_after_it_forked_away() {
    let cell = Cell::naming(&[(OutsideAccess::Socket, "outside/door")]);
    let listener = tokio::net::UnixListener::bind(cell.path("outside/door")).unwrap();
    let connect = format!(
        "import os, socket, sys\n\
         s = socket.socket(socket.AF_UNIX)\n\
         if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        s.connect('{0}'); s.recv(1); sys.exit()\n    sys.exit()\n\
         os.wait()\n\
         s = socket.socket(socket.AF_UNIX)\n\
         s.connect('{0}'); s.recv(1)",
        cell.path("outside/door").display()
    );
    let run = cell.python(&connect);
    let watch = async {
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            let pid = stream.peer_cred().unwrap().pid().unwrap();
            assert!(yoi::sandbox::is_ours(pid));
        }
    };
    tokio::join!(run, watch);
    let own = i32::try_from(std::process::id()).unwrap();
    assert!(!yoi::sandbox::is_ours(own));
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    assert!(!yoi::sandbox::is_ours(i32::try_from(child.id()).unwrap()), "no helper above it");
    child.kill().unwrap();
    let gone = i32::try_from(child.id()).unwrap();
    child.wait().unwrap();
    assert!(yoi::sandbox::is_ours(gone), "who is gone could have been a command");
}

#[tokio::test]
async fn shared_memory_and_terminals_are_the_commands_own() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    // Other runs of these tests in containers have equal process ids.
    let name = format!("/dev/shm/yoi-test-{}", uuid::Uuid::now_v7());
    std::fs::write(&name, "outside").unwrap();
    let did = cell.run(&format!("cat {name}")).await;
    std::fs::remove_file(&name).unwrap();
    assert_ne!(did.ended.outcome, Outcome::Exited(0));
    cell.python("import multiprocessing; multiprocessing.Lock()").await.well();
    cell.python("import pty, os; a, b = pty.openpty(); os.write(b, b'x'); print(os.read(a, 1))")
        .await
        .well();
    assert!(!cell.run("echo x > /dev/pts/0").await.text.is_empty());
}

#[tokio::test]
async fn temporary_files_have_a_place_of_their_own() {
    let cell = Cell::new();
    let did =
        cell.run("echo x > $TMPDIR/yoi-temporary && mktemp >/dev/null && echo -n $TMPDIR").await;
    assert_eq!(did.well() == "/tmp", cell.has_world(), "{}", did.text);
    assert!(!std::path::Path::new("/tmp/yoi-temporary").exists());
    let other = Cell::new().run("ls -A /tmp").await;
    assert!(!other.text.contains("yoi-temporary"), "{}", other.text);
    let without = Cell::without_mounts();
    let did = without.run("mktemp >/dev/null && stat -c %a $TMPDIR && echo -n $TMPDIR").await;
    let (mode, temp) = did.well().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    let temp = std::path::PathBuf::from(temp);
    assert!(temp.is_absolute() && !temp.exists(), "{}", temp.display());
    let foreign = tempfile::tempdir().unwrap();
    cell.run(&format!("touch {}/x", foreign.path().display())).await.refused();
}

/// Puts numbers and names of processes into a program: of a bystander, of the helper above it, and
/// of its own shell.
fn about(bystander: u32, body: &str) -> String {
    format!(
        "import ctypes, os, resource\n\
         helper = os.getppid()\n\
         bystander = {bystander}\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         libc.syscall.restype = ctypes.c_long\n\
         def call(*a):\n    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n\
         {body}\n"
    )
}

#[cfg(target_arch = "x86_64")]
const IOPRIO_SET: i64 = 251;
#[cfg(not(target_arch = "x86_64"))]
const IOPRIO_SET: i64 = 30;

/// Most kernels know no such calls and say so; the filter refuses them on every kernel.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_of_the_x32_abi_are_refused_as_a_whole() {
    let program = "import ctypes, errno, os\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        libc.syscall.restype = ctypes.c_long\n\
        assert libc.syscall(39) == os.getpid()\n\
        assert libc.syscall(0x40000000 | 39) == -1\n\
        assert ctypes.get_errno() in (errno.EPERM, errno.EACCES), ctypes.get_errno()";
    for cell in [Cell::new(), Cell::with(&Need::ALL)] {
        cell.python(program).await.well();
    }
}

/// seccomp, on every kernel.
#[tokio::test]
async fn limits_and_pace_of_other_processes_are_not_changed() {
    for cell in [Cell::new(), Cell::with(&Need::ALL)] {
        let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ways = [
            "resource.prlimit(bystander, resource.RLIMIT_FSIZE, (0, 0))".to_owned(),
            "resource.prlimit(helper, resource.RLIMIT_NOFILE, (0, 0))".to_owned(),
            "os.setpriority(os.PRIO_PROCESS, bystander, 19)".to_owned(),
            "os.setpriority(os.PRIO_PROCESS, helper, 19)".to_owned(),
            "os.setpriority(os.PRIO_USER, 0, 19)".to_owned(),
            "os.setpgid(0, helper); os.setpriority(os.PRIO_PGRP, 0, 19)".to_owned(),
            "os.sched_setaffinity(bystander, {0})".to_owned(),
            "os.sched_setscheduler(bystander, os.SCHED_IDLE, os.sched_param(0))".to_owned(),
            "os.sched_setparam(bystander, os.sched_param(0))".to_owned(),
            format!("call({IOPRIO_SET}, 1, bystander, 0x6000)"),
            format!("call({IOPRIO_SET}, 3, 0, 0x6000)"),
        ];
        let tried = ways.clone().map(|way| {
            format!("try: {way}\nexcept PermissionError as error: print(error.strerror)\nelse: print('done')")
        });
        let did = cell.python(&about(bystander.id(), &tried.join("\n"))).await;
        for (way, end) in ways.iter().zip(did.well().lines()) {
            assert_eq!(end, "Operation not permitted", "{way}");
        }
        assert_eq!(did.text.lines().count(), ways.len(), "{}", did.text);
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", bystander.id())).unwrap();
        let size = limits.lines().find(|line| line.starts_with("Max file size")).unwrap();
        assert!(size.contains("unlimited"), "{size}");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}

#[tokio::test]
async fn a_command_changes_its_own_limits_and_pace() {
    let cell = Cell::new();
    for program in [
        "nice -n 5 true && renice -n 6 -p $$ && taskset 1 true && taskset -p 1 $$",
        "ulimit -n 64 && [ $(ulimit -n) = 64 ] && ulimit -c 0",
        "prlimit --nofile=32 true && prlimit --pid $$ --nofile=32 && prlimit --pid $PPID",
        "ionice -c 3 true && ionice -c 3 -p $$ && chrt -b 0 true",
    ] {
        cell.run(program).await.well();
    }
    cell.python("import os, resource; os.nice(1); os.sched_setaffinity(0, {0}); resource.prlimit(0, resource.RLIMIT_CPU)").await.well();
}

/// An unconfined command can make `/proc` unreadable for the helper. Its remaining processes are
/// ended nevertheless.
#[tokio::test]
async fn a_helper_that_cannot_look_around_does_not_say_that_nothing_is_left() {
    let cell = Cell::new();
    let body = "pid = os.fork()\n\
                if pid == 0:\n    os.setsid()\n    os.execve('/bin/sleep', ['sleep', '973'], {})\n\
                open('pid', 'w').write(str(pid))\n\
                resource.prlimit(helper, resource.RLIMIT_NOFILE, (0, 0))";
    std::fs::write(cell.path("ws/program.py"), about(0, body)).unwrap();
    let ended = cell.free("exec python3 program.py").await;
    let pid = std::fs::read_to_string(cell.path("ws/pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "{ended:?}");
    assert!(ended.left_over.iter().any(|name| name.contains("sleep 973")), "{ended:?}");
    assert!(ended.stuck.is_empty(), "{ended:?}");
}

/// Memory, queues and semaphores with a number are the command's own where it has a view of its
/// own, and refused elsewhere.
#[tokio::test]
async fn numbered_memory_of_others_is_not_reached() {
    // Other runs of these tests in containers have equal process ids.
    let [.., a, b, c, d] = *uuid::Uuid::now_v7().as_bytes();
    let key = u32::from_le_bytes([a | 1, b, c, d & 0x7f]);
    let make = format!(
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.shmget({key}, 4096, 0o1600), libc.msgget({key}, 0o1600), libc.semget({key}, 1, 0o1600))"
    );
    let made = std::process::Command::new("python3").args(["-c", &make]).output().unwrap();
    let made = String::from_utf8(made.stdout).unwrap();
    let ids: Vec<&str> = made.split_whitespace().collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id != "-1"), "{made}");
    let reach = format!(
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.shmat.restype = ctypes.c_long\n\
         found = [libc.shmget({key}, 0, 0), libc.msgget({key}, 0), libc.semget({key}, 0, 0), libc.shmat({}, 0, 0o10000)]\n\
         assert all(id == -1 for id in found), found",
        ids[0]
    );
    for cell in [Cell::new(), Cell::with(&Need::ALL)] {
        cell.python(&reach).await.well();
    }
    let own = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
               if libc.shmget(0, 4096, 0o1600) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))";
    let cell = Cell::new();
    let did = cell.python(own).await;
    match cell.has_world() {
        true => _ = did.well(),
        false => did.refused(),
    }
    let removed = std::process::Command::new("ipcrm")
        .args(["-m", ids[0], "-q", ids[1], "-s", ids[2]])
        .status();
    assert!(removed.unwrap().success());
}
