//! Finding the host of a data directory: who holds the lock, and where it is reached.

use crate::client::{Client, ConnectError, Events};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// How long a host may take to make a vanished socket again.
const REMAKE: Duration = Duration::from_secs(2);
/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(20);

/// Who holds a data directory, as the lock file says.
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

/// The host that runs for this data directory; `None` when there is none.
pub fn holder(data: &Path) -> Option<Holder> {
    let path = lock_file(data);
    let file = File::open(&path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()
}

/// Connects to the running host; `None` when there is none. A host whose socket vanished is asked
/// to make it again.
pub async fn connect(data: &Path) -> Result<Option<(Client, Events)>, ConnectError> {
    let deadline = tokio::time::Instant::now() + REMAKE;
    let mut asked = false;
    loop {
        let Some(holder) = holder(data) else { return Ok(None) };
        match UnixStream::connect(&holder.socket).await {
            Ok(stream) => return Client::over(stream).await.map(Some),
            Err(error) if tokio::time::Instant::now() >= deadline => return Err(error.into()),
            Err(_) => {}
        }
        if !std::mem::replace(&mut asked, true) {
            remake(&holder);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Asks the host to make its sockets again. One that is gone meanwhile is found out by the lock.
fn remake(holder: &Holder) {
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::USR1);
    }
}
