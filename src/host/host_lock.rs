//! The lock that makes a host the only one of its data directory, and the file in which clients
//! find its socket. The directory itself is locked, too: whoever deletes the lock file does not let
//! a second host in.

use crate::client::find::{Holder, lock_file};
use crate::config::dirs::Dirs;
use crate::disk::{FileId, without_waiting};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock that another program only looked at is tried again.
const TRIES: u32 = 10;
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a host did not get the lock.
#[derive(Debug, thiserror::Error)]
pub enum HostLockError {
    #[error("a host already runs for {} (process {pid}); `yoi host stop` ends it", data.display())]
    Taken { data: PathBuf, pid: u32 },
    /// The directory is locked and no lock file names the process.
    #[error(
        "a host already runs for {} and its lock file was removed: that host ends by itself; try again in a moment",
        data.display()
    )]
    Ending { data: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// The held lock.
pub(crate) struct HostLock {
    file: File,
    path: PathBuf,
    /// Held open for its lock.
    dir: File,
    data: PathBuf,
}

impl HostLock {
    /// Takes the lock for the life of this value.
    pub(crate) fn take(dirs: &Dirs) -> Result<Self, HostLockError> {
        let path = lock_file(&dirs.data);
        let io = |action, path: &Path, source| HostLockError::Io {
            action,
            path: path.to_owned(),
            source,
        };
        for _ in 0..TRIES {
            let dir = File::open(&dirs.data).map_err(|e| io("open", &dirs.data, e))?;
            // A file system on which a directory cannot be locked leaves it to the file.
            if let Err(TryLockError::WouldBlock) = dir.try_lock() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let file = open(&path).map_err(|e| io("open", &path, e))?;
            match file.try_lock() {
                // The host before this one removes its file when it ends: a lock on that file protects
                // nothing.
                Ok(()) if FileId::is_at(&file, &path) && FileId::is_at(&dir, &dirs.data) => {
                    // A host that was killed left its address, which clients must not use.
                    file.set_len(0).map_err(|e| io("empty", &path, e))?;
                    return Ok(Self { file, path, dir, data: dirs.data.clone() });
                }
                Ok(()) => {}
                // A client that looks whether the lock is held holds it for a moment.
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(io("lock", &path, source)),
            }
        }
        let data = dirs.data.clone();
        let holder = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Err(holder.map_or(HostLockError::Ending { data: data.clone() }, |holder: Holder| {
            HostLockError::Taken { data, pid: holder.pid }
        }))
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

    /// The directory and the file that are locked, each with its path and its identity.
    pub(crate) fn files(&self) -> std::io::Result<[(PathBuf, FileId); 2]> {
        Ok([
            (self.data.clone(), FileId::of(&self.dir)?),
            (self.path.clone(), FileId::of(&self.file)?),
        ])
    }

    /// Takes the socket of a host that ends out of the lock file. A client waits then until the lock is free.
    pub(crate) fn hide(&self) {
        if let Err(error) = self.file.set_len(0) {
            tracing::warn!(%error, "the lock file cannot be emptied");
        }
    }

    /// Removes the lock file, if it is this host's, and lets go of the lock. What cannot be removed
    /// is found and replaced by the next start.
    pub(crate) fn leave(&self) {
        if FileId::is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
        // Dropping the files does the same, later.
        let _ = (self.file.unlock(), self.dir.unlock());
    }
}

/// Opens the lock file, or creates it. A FIFO in its place does not block.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(without_waiting()).open(path)
}
