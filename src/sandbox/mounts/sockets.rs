//! The sockets of other programs at paths that a command would see. They are hidden, so that the command can use sockets of
//! its own. Before Landlock 9 nothing else keeps it from them.

use crate::files::canonical;
use crate::protocol::OutsideAccess;
use crate::sandbox::access::view::{CommandView, Hole, Level, Why};
use crate::sandbox::git::scan::Scan;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Every socket of the network namespace of this machine, with its path in the last column of a line.
const ALL: &str = "/proc/net/unix";
const COLUMNS: usize = 7;
/// A socket whose program may live in another network namespace, below a directory that every command sees.
const DAEMONS: [&str; 1] = ["/nix/var/nix/daemon-socket/socket"];

/// A hole for each socket that a program listens at.
pub fn holes(view: &CommandView, scan: &Scan) -> Vec<Hole> {
    let listed = fs::read_to_string(ALL).unwrap_or_default();
    let listed = listed.lines().filter_map(path).filter(|path| view.granted(path) > Level::Hidden);
    let daemons = DAEMONS.iter().map(PathBuf::from);
    let own = scan.sockets().filter(|path| answers(path));
    let all = listed.chain(daemons).chain(own).filter_map(|path| canonical(&path).ok());
    let is_named = |path: &Path| {
        let named = view.outside.iter().filter(|named| named.access == OutsideAccess::Socket);
        named.into_iter().any(|named| named.path == path)
    };
    let all = all.filter(|path| !is_named(path));
    all.map(|path| Hole { path, level: Level::Hidden, why: Why::Socket }).collect()
}

fn path(line: &str) -> Option<PathBuf> {
    let path = line
        .split_ascii_whitespace()
        .nth(COLUMNS)
        .and_then(|first| Some(&line[line.find(first)?..]));
    path.filter(|path| path.starts_with('/')).map(PathBuf::from)
}

/// Whether a program listens at a socket. A datagram socket that is connected to it sends nothing, and the kernel refuses
/// it where the other one is a stream, so the program notices nothing.
fn answers(path: &Path) -> bool {
    let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    let is_left = |error: std::io::Error| {
        matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
    };
    !asked.is_err_and(is_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_at_which_a_program_listens_is_known_and_one_that_is_left_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (stream, other, left) =
            (dir.path().join("a b"), dir.path().join("datagram"), dir.path().join("left"));
        let listener = UnixListener::bind(&stream).unwrap();
        let _datagram = UnixDatagram::bind(&other).unwrap();
        drop(UnixListener::bind(&left).unwrap());
        let found = [&stream, &other, &left, &dir.path().join("missing")].map(|path| answers(path));
        assert_eq!(found, [true, true, false, false]);
        listener.set_nonblocking(true).unwrap();
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            ErrorKind::WouldBlock,
            "it noticed nothing"
        );
        let all = fs::read_to_string(ALL).unwrap();
        assert!(all.lines().filter_map(path).any(|path| path == stream));
    }
}
