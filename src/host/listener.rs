//! The sockets: created private, replaced when an earlier host left one, created anew when they
//! vanish.

use crate::config::dirs::ConfigError;
use crate::host::{Shared, host_connection, pod, pod_connection, supervisor};
use crate::protocol::PodName;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(transparent)]
    Place(#[from] ConfigError),
    #[error("cannot listen on {}: {source}", path.display())]
    Listen { path: PathBuf, source: std::io::Error },
}

/// Opens the host's own socket.
pub(crate) fn open(
    shared: &Shared,
    steps: &mpsc::Sender<supervisor::Step>,
) -> Result<JoinHandle<()>, ListenError> {
    let listener = listen(shared, ".host")?;
    let (shared, steps) = (shared.clone(), steps.clone());
    Ok(tokio::spawn(async move {
        while let Some(stream) = accept(&listener).await {
            tokio::spawn(host_connection::serve(stream, shared.clone(), steps.clone()));
        }
    }))
}

/// Opens a Pod's socket.
pub(crate) fn open_pod(
    shared: &Shared,
    handle: pod::Handle,
) -> Result<JoinHandle<()>, ListenError> {
    let listener = listen(shared, handle.name.as_str())?;
    Ok(tokio::spawn(async move {
        while let Some(stream) = accept(&listener).await {
            tokio::spawn(pod_connection::serve(stream, handle.clone()));
        }
    }))
}

/// Removes a Pod's socket and its directory; what cannot be removed is replaced next time.
pub(crate) fn close_pod(shared: &Shared, name: &PodName) {
    remove(&shared.dirs.socket(name.as_str()));
}

/// Removes the sockets that a killed host left. What cannot be removed is replaced when
/// its Pod is live.
pub(crate) fn sweep(shared: &Shared) {
    for socket in shared.dirs.sockets() {
        remove(&socket);
    }
}

fn remove(socket: &Path) {
    let _ = std::fs::remove_file(socket);
    if let Some(dir) = socket.parent() {
        let _ = std::fs::remove_dir(dir);
    }
}

fn listen(shared: &Shared, name: &str) -> Result<UnixListener, ListenError> {
    let path = shared.dirs.make_socket_dir(name)?;
    bind(&path).map_err(|source| ListenError::Listen { path, source })
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

/// The next connection. Commands that this host started are refused: they reach their Pod through
/// tools, within its policy. Running out of descriptors is no reason to stop listening: the next try
/// comes when the kernel reports the waiting connection again.
async fn accept(listener: &UnixListener) -> Option<tokio::net::UnixStream> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_command(&stream) => {}
            Ok((stream, _)) => return Some(stream),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

/// Whether a command that this host started, or something that one started, is at the other end.
fn is_command(stream: &tokio::net::UnixStream) -> bool {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    pid.is_some_and(crate::sandbox::is_ours)
}

/// A client that finds the lock held but no socket sends SIGUSR1: the sockets are made again.
pub(crate) fn refresh_on_signal(
    shared: Shared,
    steps: mpsc::Sender<supervisor::Step>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Ok(mut asked) = signal(SignalKind::user_defined1()) else { return };
        let mut listener: Option<JoinHandle<()>> = None;
        while asked.recv().await.is_some() {
            if shared.dirs.host_socket().exists() {
                continue;
            }
            if let Ok(new) = open(&shared, &steps)
                && let Some(old) = listener.replace(new)
            {
                old.abort();
            }
            let members = shared.members.borrow().clone();
            for handle in members.0.values() {
                // Each Pod that is live opens its socket again; the others stay closed.
                handle.tell(pod::Fact::SocketVanished).await;
            }
        }
    })
}
