//! Finding the host of a data directory: the process that holds the lock, and its socket.

use crate::client::{Client, ConnectError, Events, OtherHost};
use crate::protocol::{ClientKind, Event, Method, PodName, State};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// How long a host may take to make a vanished socket again.
const REMAKE: Duration = Duration::from_secs(2);
/// How long a host may take from its lock to its socket.
const START: Duration = Duration::from_secs(10);
/// How long a host of an older program may take to list its Pods.
const ANSWER: Duration = Duration::from_secs(2);
/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(20);

/// The host of a data directory, as the lock file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub version: String,
    pub socket: PathBuf,
}

/// Where the lock of a data directory lies.
pub fn lock_file(data: &Path) -> PathBuf {
    data.join("host.lock")
}

/// Whether a host runs for a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    NoHost,
    /// It has the lock and does not say where it is reached: it starts, or it ends because its lock
    /// file was removed.
    Starting,
    By(Holder),
}

/// The host that runs for this data directory.
pub fn held(data: &Path) -> Held {
    let path = lock_file(data);
    if is_locked(&path) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        return serde_json::from_str(&text).map_or(Held::Starting, Held::By);
    }
    // A host locks the directory before its file, and holds it also where that file was removed.
    if is_locked(data) { Held::Starting } else { Held::NoHost }
}

fn is_locked(path: &Path) -> bool {
    // Nothing but a file or a directory holds a lock, and opening a FIFO would wait for its writer.
    let lockable = std::fs::metadata(path).is_ok_and(|found| found.is_file() || found.is_dir());
    let file = lockable.then(|| File::open(path).ok()).flatten();
    file.is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The host of this data directory, if it can be reached.
pub fn holder(data: &Path) -> Option<Holder> {
    match held(data) {
        Held::By(holder) => Some(holder),
        Held::NoHost | Held::Starting => None,
    }
}

/// Connects to the running host; `None` when there is none. Waits for a host that starts, signals a
/// host whose socket vanished to open it again, and fails with the process of a host that does not
/// answer.
pub async fn connect(data: &Path) -> Result<Option<(Client, Events)>, ConnectError> {
    connect_as(data, ClientKind::Brief).await
}

/// As [`connect`], for a client that says how long it needs the host.
pub async fn connect_as(
    data: &Path,
    kind: ClientKind,
) -> Result<Option<(Client, Events)>, ConnectError> {
    let begun = tokio::time::Instant::now();
    let deadline = begun + REMAKE;
    let mut asked = false;
    loop {
        let holder = match held(data) {
            Held::NoHost => return Ok(None),
            Held::By(holder) => holder,
            Held::Starting if begun.elapsed() > START => return Err(ConnectError::NotReady),
            Held::Starting => {
                tokio::time::sleep(LOOK).await;
                continue;
            }
        };
        match UnixStream::connect(&holder.socket).await {
            Ok(stream) => match Client::over_socket_of(holder.pid, stream, kind).await {
                // A host that is dying takes a connection and says nothing on it.
                Err(ConnectError::Closed | ConnectError::Io(_))
                    if tokio::time::Instant::now() < deadline =>
                {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                Err(ConnectError::OtherVersion(other)) if other.is_older() => {
                    let running = running(&holder, other.protocol).await;
                    let other = OtherHost { running, ..*other };
                    return Err(ConnectError::OtherVersion(Box::new(other)));
                }
                greeted => return greeted.map(Some),
            },
            Err(error) if tokio::time::Instant::now() >= deadline => {
                return Err(unreachable(&holder, error));
            }
            Err(_) => {}
        }
        if !std::mem::replace(&mut asked, true) {
            remake(&holder);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Connects to the running host also where it is of an older program, to end it.
pub async fn connect_to_end(data: &Path) -> Result<Option<(Client, Events)>, ConnectError> {
    match (connect(data).await, holder(data)) {
        (Err(ConnectError::OtherVersion(other)), Some(holder)) if other.is_older() => {
            to_older(&holder, other.protocol).await.map(Some)
        }
        (found, _) => found,
    }
}

async fn to_older(holder: &Holder, protocol: u32) -> Result<(Client, Events), ConnectError> {
    let stream = UnixStream::connect(&holder.socket).await?;
    Client::over_socket_of_older(holder.pid, stream, protocol).await
}

/// The Pods that run in a host of an older program; `None` if it does not say.
async fn running(holder: &Holder, protocol: u32) -> Option<Vec<PodName>> {
    let listed = async {
        let (client, mut events) = to_older(holder, protocol).await.ok()?;
        running_in(&client, &mut events).await
    };
    tokio::time::timeout(ANSWER, listed).await.ok().flatten()
}

/// The Pods that run in a host; `None` if it does not say.
pub async fn running_in(client: &Client, events: &mut Events) -> Option<Vec<PodName>> {
    client.call(None, Method::Watch).await.ok()?;
    let pods = loop {
        if let Event::Family { pods, .. } = events.recv().await?.event {
            break pods;
        }
    };
    let runs = pods.into_iter().filter(|pod| pod.state == State::Running);
    Some(runs.map(|pod| pod.name).collect())
}

/// Why a host that holds its lock takes no connection.
fn unreachable(holder: &Holder, error: std::io::Error) -> ConnectError {
    match error.kind() {
        // Connections that it has not taken wait already, as many as the system keeps.
        std::io::ErrorKind::WouldBlock => ConnectError::Silent(Some(holder.pid)),
        _ => error.into(),
    }
}

/// Signals the host to open its sockets again. A host that is gone meanwhile holds no lock.
fn remake(holder: &Holder) {
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::USR1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_without_a_name_in_it_is_a_host_that_starts() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(held(temp.path()), Held::NoHost);
        let file = File::create(lock_file(temp.path())).unwrap();
        assert_eq!(held(temp.path()), Held::NoHost);
        file.lock().unwrap();
        assert_eq!(held(temp.path()), Held::Starting);
        let holder = Holder { pid: 7, version: "1".into(), socket: "/s".into() };
        std::fs::write(lock_file(temp.path()), serde_json::to_vec(&holder).unwrap()).unwrap();
        assert_eq!(held(temp.path()), Held::By(holder));
        std::fs::remove_file(lock_file(temp.path())).unwrap();
        let dir = File::open(temp.path()).unwrap();
        dir.lock().unwrap();
        assert_eq!(held(temp.path()), Held::Starting, "a host without its lock file");
    }
}
