//! Which process leads. A socket is made under a private name, listens there, and becomes the leader's with
//! link(2): of several processes exactly one succeeds, and no moment exists at which the path leads to a socket that
//! does not listen yet. A socket without a listener is removed under a lock on a file beside it, and only while it
//! is the one that refused. Agents of other programs know no such lock, so a leader and its followers also watch
//! the path.

use crate::disk::{self, FileId};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, sleep};

/// How often an election is begun anew before it fails.
const ROUNDS: u32 = 20;
/// Between two looks at a lock or a socket that another process is about to change.
const PAUSE: Duration = Duration::from_millis(5);
/// How often the lock is tried before the election goes on without it: its holder may be stopped.
const LOCK_TRIES: u32 = 100;
/// How often a connection is tried at a socket whose queue of connections is full.
const FULL_TRIES: u32 = 100;
/// How long a process that does not lead waits for a leader: members elect one in this time when theirs is gone.
const ELECTING: Duration = Duration::from_millis(250);
/// The longest text in the lock file that is read, in bytes.
const MAX_RECORD: u64 = 4096;

/// Why a process can neither lead nor follow.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    #[error("no agent leads a mesh at {}", .0.display())]
    NoLeader(PathBuf),
    #[error("{} is not a socket: remove it, or name another path as `socket` below [mesh]", .0.display())]
    NoSocket(PathBuf),
    #[error("cannot use the mesh socket {}: {source}", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("the mesh socket in {} could be replaced by another user: run `chmod go-w {}`, or name another path as `socket` below [mesh]", .0.display(), .0.display())]
    Exposed(PathBuf),
    #[error("no leader could be found for the mesh at {}: other agents replace its socket all the time", .0.display())]
    Unsettled(PathBuf),
}

/// How a process takes part in a mesh.
#[derive(Debug)]
pub(crate) enum Seat {
    Leads(UnixListener, FileId),
    /// A connection to the leader, and which socket the path led to.
    Follows(UnixStream, FileId),
}

/// Whether a process may lead where no other does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    LeadOrFollow,
    Follow,
}

/// Follows the leader of a socket, or leads.
pub(crate) async fn take_seat(path: &Path, wants: Wants) -> Result<Seat, ElectionError> {
    if let Some(dir) = path.parent().filter(|dir| is_exposed(dir)) {
        return Err(ElectionError::Exposed(dir.to_owned()));
    }
    if wants == Wants::Follow {
        return follow_soon(path).await;
    }
    for _ in 0..ROUNDS {
        if let Some((stream, id)) = follow(path).await? {
            return Ok(Seat::Follows(stream, id));
        }
        if let Some((listener, id)) = lead(path, None).await? {
            return Ok(Seat::Leads(listener, id));
        }
    }
    Err(ElectionError::Unsettled(path.to_owned()))
}

/// Follows a leader that is there, or that the members elect at this moment.
async fn follow_soon(path: &Path) -> Result<Seat, ElectionError> {
    let until = Instant::now() + ELECTING;
    loop {
        if let Some((stream, id)) = follow(path).await? {
            return Ok(Seat::Follows(stream, id));
        }
        if Instant::now() >= until {
            return Err(ElectionError::NoLeader(path.to_owned()));
        }
        sleep(PAUSE).await;
    }
}

/// Leads in the place of a leader of ours that does not answer; `None`: it is not ours, or another process was
/// faster.
pub(crate) async fn replace(path: &Path, frozen: FileId) -> Result<Option<Seat>, ElectionError> {
    let led = lead(path, Some(frozen)).await?;
    Ok(led.map(|(listener, id)| Seat::Leads(listener, id)))
}

/// Removes the socket on leaving, if it is still ours.
pub(crate) fn remove_own(path: &Path, own: FileId) {
    if let Err(error) = remove(path, own) {
        tracing::warn!("the mesh socket stays: cannot remove {}: {error}", path.display());
    }
}

/// Whether the socket at the path was made by a leader of ours.
fn is_recorded(lock: &mut File, path: &Path) -> bool {
    let mut text = String::new();
    let read = lock.rewind().and_then(|()| lock.take(MAX_RECORD).read_to_string(&mut text));
    let record: Option<Record> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    let there = fs::symlink_metadata(path).ok().map(|found| Inode::of(&found));
    record.is_some_and(|record| Some(record.socket) == there)
}

/// The content of the lock file: which socket the last leader of ours made.
#[derive(Serialize, Deserialize)]
struct Record {
    pid: u32,
    socket: Inode,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Inode {
    device: u64,
    inode: u64,
    /// When the socket was made, in seconds and nanoseconds since the Unix epoch. A file system may give the inode
    /// number of a removed file to a new one, so the number alone does not identify a socket.
    #[serde(default)]
    made: (i64, i64),
}

impl Inode {
    fn of(found: &fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino(), made: (found.mtime(), found.mtime_nsec()) }
    }
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> ElectionError {
    let path = path.to_owned();
    move |source| ElectionError::Unusable { path, source }
}

/// A connection to the process that listens at the path, and which socket that is. `None`: no process does.
async fn follow(path: &Path) -> Result<Option<(UnixStream, FileId)>, ElectionError> {
    for _ in 0..FULL_TRIES {
        let Some(before) = socket_at(path)? else { return Ok(None) };
        match UnixStream::connect(path).await {
            Ok(stream) => {
                // Replaced meanwhile: it is not known to which of the two this connection leads.
                if socket_at(path)? == Some(before) {
                    return Ok(Some((stream, before)));
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => return Ok(None),
                ErrorKind::WouldBlock => sleep(PAUSE).await,
                _ => return Err(unusable(path)(error)),
            },
        }
    }
    Err(unusable(path)(io::Error::new(ErrorKind::WouldBlock, "its leader takes no connection")))
}

/// Which socket lies at the path.
fn socket_at(path: &Path) -> Result<Option<FileId>, ElectionError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(Some(FileId::read(&found))),
        Ok(_) => Err(ElectionError::NoSocket(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path)(error)),
    }
}

/// Makes this process the leader, unless another one leads. `frozen` is a socket that counts as one without a
/// listener, if a leader of ours made it.
async fn lead(
    path: &Path,
    frozen: Option<FileId>,
) -> Result<Option<(UnixListener, FileId)>, ElectionError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    crate::disk::private_dir(dir).map_err(|error| unusable(path)(error.source))?;
    let mut lock = lock(path).await?;
    match (socket_at(path)?, frozen) {
        (Some(there), Some(frozen)) if there == frozen => {
            if !is_recorded(&mut lock, path) {
                return Ok(None);
            }
            remove(path, there).map_err(unusable(path))?;
        }
        (Some(_), Some(_)) => return Ok(None),
        (Some(there), None) => {
            if listens(path).await {
                return Ok(None);
            }
            remove(path, there).map_err(unusable(path))?;
        }
        (None, _) => {}
    }
    let Some((listener, made)) = publish(path).map_err(unusable(path))? else { return Ok(None) };
    record(&mut lock, &made).map_err(unusable(path))?;
    Ok(Some((listener, FileId::read(&made))))
}

/// Whether a process listens. Another program binds first and listens a moment later, so a refusal counts when it
/// comes twice.
async fn listens(path: &Path) -> bool {
    for _ in 0..2 {
        match UnixStream::connect(path).await {
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) =>
            {
                sleep(PAUSE).await;
            }
            _ => return true,
        }
    }
    false
}

/// The lock that processes of ours hold while they replace a socket; it is released when the file is closed.
async fn lock(path: &Path) -> Result<File, ElectionError> {
    let beside = suffixed(path, ".lock");
    let mut options = OpenOptions::new();
    let flags = disk::without_following() | disk::without_waiting();
    let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let file = options.custom_flags(flags).open(&beside).map_err(unusable(&beside))?;
    disk::must_have_one_name(&file).map_err(unusable(&beside))?;
    for _ in 0..LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) => sleep(PAUSE).await,
            Err(error) => return Err(unusable(&beside)(error.into())),
        }
    }
    Ok(file)
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A new name in the directory of the path. It is not longer than the name of the socket, because the paths of
/// sockets are short.
fn private_name(path: &Path) -> PathBuf {
    let mut name = format!(".{:08x}", uuid::Uuid::now_v7().as_u128() & 0xffff_ffff);
    let length = path.file_name().map_or(0, |name| name.len());
    // The last digits are random.
    name.replace_range(1..name.len() + 1 - length.clamp(4, name.len()), "");
    path.with_file_name(name)
}

/// Removes the socket at the path if it is `expected`. It is moved aside first: one that another process put there
/// meanwhile is put back.
fn remove(path: &Path, expected: FileId) -> io::Result<()> {
    if FileId::at_link(path)? != Some(expected) {
        return Ok(());
    }
    let aside = private_name(path);
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    if FileId::at_link(&aside)? != Some(expected) {
        // Where a third one lies by now, the one that was moved is lost: its process looks at the path and joins.
        let _ = fs::hard_link(&aside, path);
    }
    fs::remove_file(&aside)
}

/// Makes a socket that listens and puts it at the path; `None`: another one lies there.
fn publish(path: &Path) -> io::Result<Option<(UnixListener, fs::Metadata)>> {
    let name = private_name(path);
    let listener = match UnixListener::bind(&name) {
        // Another process works under this name at this moment.
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(None),
        bound => bound?,
    };
    let placed = place(&name, path);
    fs::remove_file(&name)?;
    Ok(placed?.map(|made| (listener, made)))
}

fn place(name: &Path, path: &Path) -> io::Result<Option<fs::Metadata>> {
    fs::set_permissions(name, Permissions::from_mode(0o600))?;
    let found = fs::symlink_metadata(name)?;
    match fs::hard_link(name, path) {
        Ok(()) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

fn record(lock: &mut File, socket: &fs::Metadata) -> io::Result<()> {
    let record = Record { pid: std::process::id(), socket: Inode::of(socket) };
    let text = serde_json::to_vec(&record).map_err(io::Error::from)?;
    lock.rewind()?;
    lock.set_len(0)?;
    lock.write_all(&text)
}

/// Whether another user can change what lies in a directory.
fn is_exposed(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::metadata(dir).is_ok_and(|found| found.uid() != own || found.mode() & 0o022 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ext4 gives the next socket the number of the inode that was just freed.
    #[tokio::test]
    async fn a_socket_that_another_program_makes_later_is_not_taken_for_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("broker.sock");
        let mut lock = tempfile::tempfile_in(&dir).unwrap();
        let (ours, made) = publish(&path).unwrap().unwrap();
        record(&mut lock, &made).unwrap();
        assert!(is_recorded(&mut lock, &path));
        drop(ours);
        remove_own(&path, FileId::read(&made));
        assert!(!is_recorded(&mut lock, &path));
        let _theirs = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(!is_recorded(&mut lock, &path));
    }
}
