//! Other processes and other programs on this machine.

use crate::escape::cell::Cell;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use yoi::sandbox::{Need, Outcome};

#[tokio::test]
async fn the_host_and_the_helper_are_not_killed_landlock_6() {
    let cell = Cell::new();
    if !cell.covered(6, "signals").await {
        return;
    }
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let host = std::process::id();
    for pid in [bystander.id().to_string(), host.to_string(), "$PPID".to_owned(), "1".to_owned()] {
        cell.run(&format!("kill -9 {pid}")).await.refused();
    }
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
    if !cell.covered(1, "other processes").await {
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
async fn what_forks_twice_does_not_outlive_its_command() {
    let cell = Cell::new();
    let program = "(setsid sh -c 'echo $$ > pid; exec sleep 975' >/dev/null 2>&1 </dev/null &); \
                   until [ -s pid ]; do :; done";
    let did = cell.run(program).await;
    assert!(did.ended.left_over.iter().any(|name| name.contains("sleep 975")), "{:?}", did.ended);
    let pid = std::fs::read_to_string(cell.path("ws/pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

/// docker, tmux, systemd, an agent of keys: whoever listens would act for the command.
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
        assert_ne!(did.ended.outcome, Outcome::Exited(0), "{program}: {}", did.text);
    }
    for server in servers {
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn a_pair_of_sockets_works_and_sends_to_nobody_else() {
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
    let name = format!("yoi-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let server = UnixListener::bind_addr(&address).unwrap();
    let connect = format!("import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')");
    cell.python(&connect).await.refused();
    if cell.covered(6, "abstract sockets").await {
        cell.needs = vec![Need::Outside];
        cell.python(&connect).await.refused();
    }
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// The sockets of a host and its Pods ask who is at the other end.
#[tokio::test]
async fn a_command_is_known_by_its_descent_also_after_it_forked_away() {
    let cell = Cell::with(&[Need::Outside]);
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
    if !cell.mounted().await {
        return;
    }
    let name = format!("/dev/shm/yoi-test-{}", std::process::id());
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
async fn temporary_files_have_a_place_of_their_own_that_is_gone_afterwards() {
    let cell = Cell::new();
    let did = cell.run("echo x > $TMPDIR/a && mktemp >/dev/null && echo -n $TMPDIR").await;
    let temp = std::path::PathBuf::from(did.well());
    assert!(temp.is_absolute() && !temp.exists(), "{}", temp.display());
    let foreign = tempfile::tempdir().unwrap();
    cell.run(&format!("touch {}/x", foreign.path().display())).await.refused();
}
