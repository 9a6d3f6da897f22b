//! One agent per folder and name. An agent holds the lock of a file as long as it lives: flock(2) admits exactly one
//! process, also of several that start at once, and ends with the process. Agents of remote-pi know no such file:
//! their lock is a socket that listens (`cwd_lock`), so on their mesh this process listens there as well.

use crate::config::dirs::{Env, var};
use crate::disk::{self, FileId};
use crate::mesh::election::{self, ElectionError, Seat, Wants};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;
use tokio_util::task::AbortOnDropHandle;

/// Where the socket of remote-pi's mesh lies below a home directory.
const REMOTE_PI_SOCKET: &str = ".pi/remote/sessions/local/broker.sock";
/// Where its locks lie.
const REMOTE_PI_LOCKS: &str = ".pi/remote/locks";
/// Characters of the hash that name a lock.
const ID: usize = 12;
/// The longest text in a lock file that is read, in bytes.
const MAX_RECORD: u64 = 4096;
/// The name of an agent in a folder without a name.
const USUAL: &str = "agent";

/// An agent of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderAgent {
    /// The folder, without links.
    pub folder: PathBuf,
    /// The name it asks for on the mesh.
    pub name: String,
}

impl FolderAgent {
    /// The agent of a folder under a name; without one, under the name of the folder. A path that leads nowhere
    /// stays as it is.
    pub fn new(folder: &Path, name: Option<String>) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = name.unwrap_or_else(|| usual_name(&folder));
        Self { folder, name }
    }

    /// Names this agent among all of this machine; fits into a file name.
    pub fn id(&self) -> String {
        self.hash(Some(&self.name))
    }

    /// The name of remote-pi's lock: of the folder alone for the agent under the folder's name, as its releases up
    /// to 0.4.2 know it; of folder and name for every other one, as later releases do.
    fn cwd_lock_id(&self) -> String {
        self.hash((self.name != usual_name(&self.folder)).then_some(&self.name))
    }

    fn hash(&self, name: Option<&String>) -> String {
        let mut text = self.folder.as_os_str().as_bytes().to_vec();
        if let Some(name) = name {
            text.push(0);
            text.extend_from_slice(name.as_bytes());
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, &text);
        let mut id = BASE64_URL_SAFE_NO_PAD.encode(digest);
        id.truncate(ID);
        id
    }
}

fn usual_name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| USUAL.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The directory of remote-pi's locks, if this is the socket of its mesh.
pub fn remote_pi_locks(socket: &Path, env: &Env) -> Option<PathBuf> {
    if !socket.ends_with(REMOTE_PI_SOCKET) {
        return None;
    }
    let home = var(env, "REMOTE_PI_HOME").or_else(|| var(env, "HOME"))?;
    Some(Path::new(home).join(REMOTE_PI_LOCKS))
}

/// Why an agent did not get its lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another agent already serves {} as `{name}`{}: end it, or start this one under another name", folder.display(), by(*pid))]
    Taken { folder: PathBuf, name: String, pid: Option<u32> },
    #[error("an agent of remote-pi already serves {}{}: end it, or start this one under another name", folder.display(), by(*pid))]
    RemotePi { folder: PathBuf, pid: Option<u32> },
    #[error("cannot use the lock {}: {source}", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("cannot use the locks of remote-pi: {0}")]
    Socket(ElectionError),
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> LockError {
    let path = path.to_owned();
    move |source| LockError::Unusable { path, source }
}

/// What the file of a lock says about its holder, for people.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    name: String,
    folder: PathBuf,
}

/// The held lock; dropping it releases it.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    path: PathBuf,
    socket: Option<Socket>,
}

/// The socket in remote-pi's place.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    id: FileId,
    /// Takes connections, so that the queue of the socket never fills: an agent of remote-pi would take that for a
    /// lock without a holder.
    _listening: AbortOnDropHandle<()>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        election::remove_own(&self.path, self.id);
    }
}

impl FolderLock {
    /// Takes the lock of an agent: a file in `dir`, which is made, and, with the directory of remote-pi's locks, a
    /// socket there.
    pub async fn take(
        agent: &FolderAgent,
        dir: &Path,
        remote_pi: Option<&Path>,
    ) -> Result<Self, LockError> {
        disk::private_dir(dir).map_err(|error| unusable(dir)(error.source))?;
        let path = dir.join(format!("{}.lock", agent.id()));
        let mut file = lock(&path, agent)?;
        record(&mut file, agent).map_err(unusable(&path))?;
        let socket = match remote_pi {
            Some(locks) => Some(listen(agent, locks).await?),
            None => None,
        };
        Ok(Self { file, path, socket })
    }

    /// Whether the lock still keeps others out. An agent of remote-pi that found a socket of a crash may remove the
    /// one that took its place.
    pub fn is_held(&self) -> bool {
        let listens = |socket: &Socket| {
            FileId::at_link(&socket.path).is_ok_and(|there| there == Some(socket.id))
        };
        FileId::is_at(&self.file, &self.path) && self.socket.as_ref().is_none_or(listens)
    }
}

/// Opens and locks the file. One that was removed meanwhile protects nothing, so the one at the path counts.
fn lock(path: &Path, agent: &FolderAgent) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    let flags = disk::without_following() | disk::without_waiting();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let options = options.custom_flags(flags);
    loop {
        let mut file = options.open(path).map_err(unusable(path))?;
        disk::must_have_one_name(&file).map_err(unusable(path))?;
        match file.try_lock() {
            Ok(()) if FileId::is_at(&file, path) => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (folder, name) = (agent.folder.clone(), agent.name.clone());
                let pid = holder(&mut file).map(|holder| holder.pid);
                return Err(LockError::Taken { folder, name, pid });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(path)(source)),
        }
    }
}

fn holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(MAX_RECORD).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn record(file: &mut File, agent: &FolderAgent) -> io::Result<()> {
    let (name, folder) = (agent.name.clone(), agent.folder.clone());
    let holder = Holder { pid: std::process::id(), name, folder };
    let text = serde_json::to_vec(&holder)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)
}

/// Listens at the place of remote-pi's lock, unless a process does.
async fn listen(agent: &FolderAgent, locks: &Path) -> Result<Socket, LockError> {
    let path = locks.join(format!("{}.sock", agent.cwd_lock_id()));
    match election::take_seat(&path, Wants::LeadOrFollow).await.map_err(LockError::Socket)? {
        Seat::Leads(listener, id) => {
            let listening = AbortOnDropHandle::new(tokio::spawn(take_connections(listener)));
            Ok(Socket { path, id, _listening: listening })
        }
        Seat::Follows(stream, _) => {
            let pid = stream.peer_cred().ok().and_then(|holder| holder.pid());
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            Err(LockError::RemotePi { folder: agent.folder.clone(), pid })
        }
    }
}

async fn take_connections(listener: UnixListener) {
    loop {
        // An error is one of that connection, or of this process: it has no file left, which passes.
        if listener.accept().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}
