//! The lock that makes a host the only one of its data directory, and the file in which clients
//! find its socket.

use crate::client::find::{Holder, lock_file};
use crate::config::dirs::Dirs;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock that another program only looked at is tried again, 20 ms apart.
const TRIES: u32 = 10;

/// Why a host did not get the lock.
#[derive(Debug, thiserror::Error)]
pub enum HostLockError {
    #[error("a host already runs for {} (process {pid}); `yoi host stop` ends it", data.display())]
    Taken { data: PathBuf, pid: u32 },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// The held lock.
pub(crate) struct HostLock {
    file: File,
    path: PathBuf,
}

impl HostLock {
    /// Takes the lock for the life of this value.
    pub(crate) fn take(dirs: &Dirs) -> Result<Self, HostLockError> {
        let path = lock_file(&dirs.data);
        for _ in 0..TRIES {
            let io = |action, source| HostLockError::Io { action, path: path.clone(), source };
            let file = open(&path).map_err(|e| io("open", e))?;
            match file.try_lock() {
                // The host before this one removes its file when it ends: a lock on that file protects
                // nothing.
                Ok(()) if same(&file, &path) => {
                    // A host that was killed left its address, which clients must not use.
                    file.set_len(0).map_err(|e| io("empty", e))?;
                    return Ok(Self { file, path });
                }
                Ok(()) => {}
                // A client that looks whether the lock is held holds it for a moment.
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
                Err(TryLockError::Error(source)) => return Err(io("lock", source)),
            }
        }
        let pid = open(&path).ok().and_then(|file| holder(&file)).map_or(0, |holder| holder.pid);
        Err(HostLockError::Taken { data: dirs.data.clone(), pid })
    }

    /// Writes the process and the socket of the host that holds the lock.
    pub(crate) fn hold(&self, socket: &Path) -> Result<(), HostLockError> {
        let holder = Holder {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            socket: socket.to_owned(),
        };
        let mut text = serde_json::to_vec(&holder).unwrap_or_default();
        text.push(b'\n');
        self.write(&text).map_err(|source| HostLockError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    }

    /// Removes the sockets, then the lock. What cannot be removed is found and replaced by the
    /// next start.
    pub(crate) fn leave(self, dirs: &Dirs) {
        let socket = dirs.host_socket();
        let _ = std::fs::remove_file(&socket);
        if let Some(dir) = socket.parent() {
            let _ = std::fs::remove_dir(dir);
        }
        let _ = std::fs::remove_dir(&dirs.runtime);
        let _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn same(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

fn holder(mut file: &File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
