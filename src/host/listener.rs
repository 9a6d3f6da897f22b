//! The sockets: created private, replaced when an earlier host left one, created anew when they
//! vanish.

use crate::config::dirs::ConfigError;
use crate::disk::FileId;
use crate::host::host_lock::HostLock;
use crate::host::{Shared, host_connection, pod, pod_connection, supervisor};
use crate::protocol::PodName;
use crate::trace::OrLog as _;
use futures_util::future::join_all;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::task::AbortOnDropHandle;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(transparent)]
    Place(#[from] ConfigError),
    #[error("cannot listen on {}: {source}", path.display())]
    Listen { path: PathBuf, source: std::io::Error },
    #[error(
        "this host may have {limit} files open and keeps the last of them for its clients; stop some pods, or raise the limit (ulimit -n) and start the host again"
    )]
    Crowded { limit: u64 },
}

impl ListenError {
    /// Whether this process, or the system, has no file descriptor left.
    fn is_want_of_descriptors(&self) -> bool {
        use rustix::io::Errno;
        let Self::Listen { source, .. } = self else { return false };
        [Errno::MFILE, Errno::NFILE]
            .map(Errno::raw_os_error)
            .map(Some)
            .contains(&source.raw_os_error())
    }
}

/// File descriptors that no Pod's socket takes, and no connection to one: clients connect and logs are written with them.
const RESERVED: u64 = 16;
/// How many of these no client of the host takes, either.
const OWN: u64 = 8;

/// The most connections that have not greeted.
const SILENT: u64 = 256;
/// How long the Pods may take to make their sockets again before the lock file names the new socket of the host. Clients
/// wait longer than this for that name.
const PODS_REMADE: Duration = Duration::from_secs(1);

/// How many files this process may have open; `None`: any number.
fn limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current
}

/// The limit of open files, if a new descriptor is one of the last so many. The kernel gives the lowest that is free.
fn crowded(new: &impl AsRawFd, last: u64) -> Option<u64> {
    let descriptor = u64::try_from(new.as_raw_fd()).unwrap_or(0);
    limit().filter(|limit| descriptor + last > *limit)
}

/// The connections that have not greeted yet, the oldest first. Where they are many, or a quarter of the files, the oldest
/// gives way to a new one, so that a program that only connects keeps no person out.
#[derive(Default)]
struct Silent(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Silent {
    fn add(&mut self, connection: AbortHandle, greeted: Arc<AtomicBool>) {
        self.0.retain(|(connection, greeted)| {
            !connection.is_finished() && !greeted.load(Ordering::Relaxed)
        });
        self.0.push_back((connection, greeted));
        let most = limit().map_or(SILENT, |limit| SILENT.min(limit / 4));
        if self.0.len() as u64 > most
            && let Some((oldest, _)) = self.0.pop_front()
        {
            oldest.abort();
        }
    }
}

/// The name of the host's own socket. No Pod can be called so.
const HOST: &str = ".host";

/// Opens the host's own socket.
pub(crate) fn open(
    shared: &Shared,
    steps: &mpsc::Sender<supervisor::Step>,
) -> Result<JoinHandle<()>, ListenError> {
    let listener = listen_or_move(shared)?;
    let (shared, steps) = (shared.clone(), steps.clone());
    Ok(tokio::spawn(async move {
        let mut silent = Silent::default();
        while let Some(stream) = accept(&listener).await {
            if crowded(&stream, OWN).is_some() {
                continue;
            }
            // A client that was led here by an old lock file must not be served.
            if !shared.end_if_lost().await {
                return;
            }
            let greeted = Arc::new(AtomicBool::default());
            let served =
                host_connection::serve(stream, shared.clone(), steps.clone(), greeted.clone());
            silent.add(tokio::spawn(served).abort_handle(), greeted);
        }
    }))
}

/// Opens a Pod's socket.
pub(crate) fn open_pod(
    shared: &Shared,
    handle: pod::Handle,
) -> Result<JoinHandle<()>, ListenError> {
    let listener = listen(shared, handle.name.as_str())?;
    if let Some(limit) = crowded(&listener, RESERVED) {
        close_pod(shared, &handle.name);
        return Err(ListenError::Crowded { limit });
    }
    Ok(tokio::spawn(async move {
        while let Some(stream) = accept(&listener).await {
            if crowded(&stream, RESERVED).is_none() {
                tokio::spawn(pod_connection::serve(stream, handle.clone()));
            }
        }
    }))
}

/// Removes a Pod's socket and its directory; what cannot be removed is replaced next time.
pub(crate) fn close_pod(shared: &Shared, name: &PodName) {
    remove_own(shared, &shared.sockets().socket(name.as_str()));
}

/// Removes the host's own socket.
pub(crate) fn close(shared: &Shared) {
    remove_own(shared, &shared.sockets().host_socket());
}

/// Removes the sockets that a killed host left. What cannot be removed is replaced when
/// its Pod is live.
pub(crate) fn sweep(shared: &Shared) {
    for socket in shared.sockets().sockets() {
        remove(&socket);
    }
}

/// Removes a socket only if this host made it: the path may now hold the socket of another host.
fn remove_own(shared: &Shared, socket: &Path) {
    let ours = shared.bound.lock().unwrap_or_else(PoisonError::into_inner).remove(socket);
    if ours.is_some() && FileId::at_link(socket).ok().flatten() == ours {
        remove(socket);
    }
}

fn remove(socket: &Path) {
    let _ = std::fs::remove_file(socket);
    if let Some(dir) = socket.parent() {
        let _ = std::fs::remove_dir(dir);
    }
}

/// Makes the socket of the host. Where the runtime directory cannot be used any more, all sockets
/// move below the data directory.
fn listen_or_move(shared: &Shared) -> Result<UnixListener, ListenError> {
    let error = match listen(shared, HOST) {
        Err(error) if !error.is_want_of_descriptors() => error,
        listening => return listening,
    };
    if !shared.move_sockets() {
        return Err(error);
    }
    let place = shared.sockets();
    shared.add_notice(format!("the sockets lie in {} now: {error}", place.runtime.display()));
    listen(shared, HOST)
}

fn listen(shared: &Shared, name: &str) -> Result<UnixListener, ListenError> {
    let path = shared.sockets().make_socket_dir(name)?;
    let bound = bind(&path);
    let listener = bound.map_err(|source| ListenError::Listen { path: path.clone(), source })?;
    if let Ok(Some(id)) = FileId::at_link(&path) {
        let mut bound = shared.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.insert(path, id);
    }
    Ok(listener)
}

fn bind(path: &Path) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The next connection of the user that this host runs as. Commands that this host started are refused: they
/// reach their Pod through tools, within its policy. Running out of descriptors is no reason to stop listening: the next try
/// comes when the kernel reports the waiting connection again.
async fn accept(listener: &UnixListener) -> Option<tokio::net::UnixStream> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_other_user(&stream) || is_command(&stream) => {}
            Ok((stream, _)) => return Some(stream),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

/// Whether another user is at the other end, or one that the kernel does not tell. The modes of the sockets keep
/// other users out as long as they are not changed.
fn is_other_user(stream: &tokio::net::UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().map_or(true, |peer| peer.uid() != own)
}

/// Whether a command that this host started, or something that one started, is at the other end.
fn is_command(stream: &tokio::net::UnixStream) -> bool {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    pid.is_some_and(crate::sandbox::is_ours)
}

/// A client that finds the lock held but no socket sends SIGUSR1: the sockets are made again, and the
/// lock file names the new one.
pub(crate) fn refresh_on_signal(
    shared: Shared,
    steps: mpsc::Sender<supervisor::Step>,
    lock: Weak<HostLock>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Ok(mut asked) = signal(SignalKind::user_defined1()) else { return };
        let mut listener = None;
        while asked.recv().await.is_some() {
            if shared.sockets().host_socket().exists() || !shared.end_if_lost().await {
                continue;
            }
            match open(&shared, &steps) {
                Ok(new) => drop(listener.replace(AbortOnDropHandle::new(new))),
                Err(error) => {
                    tracing::warn!("the socket cannot be made again: {error}");
                    continue;
                }
            }
            let members = shared.members.borrow().clone();
            let remade = tokio::spawn(async move {
                // Each Pod that is live opens its socket again; the others stay closed.
                let pods = members.0.values();
                join_all(pods.map(|handle| handle.tell(pod::Fact::SocketVanished))).await
            });
            // A client that reads the lock file then finds the sockets of all Pods that are not busy.
            let _ = tokio::time::timeout(PODS_REMADE, remade).await;
            if let Some(lock) = lock.upgrade() {
                lock.hold(&shared.sockets().host_socket()).or_log("name the new socket");
            }
        }
    })
}
