//! The network, and system calls that lead round it.

use crate::escape::cell::{Cell, no_world_to_test};
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use yoi::protocol::family::Confined;
use yoi::sandbox::Need;

fn system_call(number: u32) -> String {
    format!(
        "import ctypes, os\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         libc.syscall.restype = ctypes.c_long\n\
         if libc.syscall({number}, 0, 0, 0, 0, 0) < 0:\n    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))"
    )
}

/// Programs of one command reach each other in its own network namespace.
#[tokio::test]
async fn a_command_without_the_network_has_one_of_its_own() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let program = "import socket\ns = socket.create_server(('127.0.0.1', 0))\n\
                c = socket.create_connection(s.getsockname())\n\
                s.accept()[0].send(b'hello'); print(c.recv(5).decode())";
    assert_eq!(cell.python(program).await.well(), "hello\n");
    let devices = cell.run("cat /proc/net/dev").await;
    assert_eq!(devices.well().lines().skip(2).count(), 1, "{}", devices.text);
}

#[tokio::test]
async fn tcp_udp_and_names_are_off() {
    let cell = Cell::new();
    for program in [
        "import socket; socket.socket(socket.AF_INET6)",
        "import socket; socket.socket(socket.AF_INET).bind(('127.0.0.1', 0))",
    ] {
        let did = cell.python(program).await;
        match cell.has_world() {
            true => _ = did.well(),
            false => did.refused(),
        }
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    for program in [
        format!("import socket; socket.create_connection(('127.0.0.1', {tcp_port}))"),
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)".to_owned(),
        "import socket; socket.socket(socket.AF_VSOCK)".to_owned(),
        "import socket; socket.socket(socket.AF_ALG)".to_owned(),
    ] {
        cell.python(&program).await.refused();
    }
    let send = format!(
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port}))"
    );
    // In its own network namespace no program receives it.
    cell.python(&send).await;
    let names = "import socket\ntry: socket.getaddrinfo('example.com', 80)\nexcept OSError: raise SystemExit(7)";
    let did = cell.python(names).await;
    assert_eq!(did.ended.outcome, yoi::sandbox::Outcome::Exited(7), "{}", did.text);
    cell.run(&format!("exec 3<>/dev/tcp/127.0.0.1/{tcp_port}")).await.refused();
    tcp.set_nonblocking(true).unwrap();
    assert_eq!(tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    udp.set_nonblocking(true).unwrap();
    assert_eq!(udp.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn with_the_network_granted_it_works_and_nothing_else_is_open() {
    let cell = Cell::with(&[Need::Network]);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    cell.python(&format!("import socket; socket.create_connection(('127.0.0.1', {port}))"))
        .await
        .well();
    tcp.accept().unwrap();
    cell.python("import socket; socket.socket(socket.AF_UNIX)").await.refused();
    cell.python("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)").await.refused();
    cell.run("cat ../outside/secret").await.refused();
}

#[tokio::test]
async fn io_uring_is_not_available() {
    let cell = Cell::with(&[Need::Network, Need::Outside, Need::Git]);
    for number in [425, 426, 427] {
        let did = cell.python(&system_call(number)).await;
        did.refused();
        assert!(did.text.contains("Function not implemented"), "{}", did.text);
    }
}

#[tokio::test]
async fn system_calls_that_change_mounts_or_take_descriptors_are_refused() {
    let cell = Cell::with(&[Need::Network, Need::Outside, Need::Git]);
    // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr: the
    // same numbers on every processor.
    for number in [428, 429, 430, 431, 432, 433, 438, 442] {
        let did = cell.python(&system_call(number)).await;
        did.refused();
        assert!(did.text.contains("Operation not permitted"), "{number}: {}", did.text);
    }
    cell.run("unshare -n true").await.refused();
    cell.run("unshare -U true").await.refused();
}

/// While a command held a lease on a file of git, a look at it failed and the file counted as missing.
#[tokio::test]
async fn a_command_takes_no_lease_on_a_file() {
    let cell = Cell::new();
    // The number is `F_SETDELEG` of Linux 6.19.
    for command in ["fcntl.F_SETLEASE", "1040"] {
        let program =
            format!("import fcntl; fcntl.fcntl(open('program.py'), {command}, fcntl.F_WRLCK)");
        let did = cell.python(&program).await;
        did.refused();
        assert!(did.text.contains("Operation not permitted"), "{}", did.text);
    }
}

#[tokio::test]
async fn a_program_that_wants_more_rights_gets_none() {
    let did = Cell::new().run("grep -h -e NoNewPrivs -e Seccomp: /proc/self/status").await;
    assert_eq!(did.well(), "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

#[tokio::test]
async fn a_probe_says_what_holds_here() {
    let cell = Cell::new();
    let helper = cell.bench.ctx.helper.clone();
    let confinement =
        yoi::sandbox::Sandbox { helper, ..yoi::sandbox::Sandbox::default() }.probe().await;
    let seen = cell.run(":").await;
    assert_eq!(confinement.abi, seen.confinement().abi);
    assert_eq!(confinement.word == Confined::Enforced, confinement.open.is_empty());
    let broken =
        yoi::sandbox::Sandbox { helper: "/bin/false".into(), ..yoi::sandbox::Sandbox::default() };
    assert_eq!(broken.probe().await.word, Confined::NotEnforced);
    println!("confinement here: {} (Landlock {})", confinement.text(), confinement.abi);
}
