//! The agent mesh of this machine: agents of several programs join one Unix socket, see each other and send
//! messages with an acknowledgement. One member leads: it holds the socket and routes. The wire is that of
//! remote-pi 0.4.2. The room `machines` reaches other machines. This room knows nothing of Pods.
//!
//! A process joins with [`crate::mesh::join`]. The member then follows the leader, or leads itself, and comes
//! back by itself after a leader is gone.

/// Lines of JSON: envelopes, and the few lines around the registration.
mod envelope;
/// Cuts a byte stream into lines, in linear time and with bounded memory.
/// The ids of envelopes.
mod id;
/// Names of members as they are assigned.
mod name;
/// The leader's part: it holds the socket and routes.
mod broker;
/// Which process leads: exactly one per socket, also after a crash.
mod election;
/// One agent per folder and name, also beside agents of remote-pi.
mod folder_lock;
/// How the message of an agent reads for a model.
mod for_model;
/// Notices that the path of the socket leads to another socket.
mod watch;
/// A member: joins, sends, receives, and joins again.
mod member;
/// Other machines, over a NATS server.
pub mod machines;

#[cfg(test)]
mod tests;

pub(crate) use broker::{Audit, AuditEntry, MAX_MEMBERS};
pub use election::ElectionError;
pub use envelope::{MAX_FRAME, To};
pub use folder_lock::{FolderAgent, FolderLock, LockError, remote_pi_locks};
pub use for_model::{message_for_model, text_of};
pub use id::Id;
pub use member::{
    Inbox, JoinError, Member, Message, Options, Peer, Received, SendError, Sent, Standing, Status,
    join, roster,
};

use crate::config::dirs::{ConfigError, Dirs, Env, var};
use crate::config::settings;
use std::path::PathBuf;
use std::time::Duration;

/// Whether a process may be a member; the leader asks with the id of each process that connects.
pub type Admits = fn(i32) -> bool;

/// The socket of a mesh, and how this process takes part in leading it.
#[derive(Clone, Debug)]
pub struct Socket {
    pub path: PathBuf,
    /// Where the leader writes one line for each envelope.
    pub audit: PathBuf,
    pub admits: Admits,
}

/// The directory of yoi's own mesh, beside the sockets of Pods. No Pod can be called so.
const OWN: &str = ".mesh";
/// The audit of yoi's own mesh, in the state directory.
const AUDIT: &str = "mesh-audit.jsonl";

impl Socket {
    /// The socket that the settings name, with its audit beside it; else that of yoi's own mesh, whose directory is
    /// made.
    pub fn find(
        settings: &settings::Mesh,
        dirs: &Dirs,
        env: &Env,
        admits: Admits,
    ) -> Result<Self, ConfigError> {
        let Some(named) = &settings.socket else {
            let path = dirs.make_socket_dir(OWN)?;
            return Ok(Self { path, audit: dirs.state.join(AUDIT), admits });
        };
        let path = match named.strip_prefix("~") {
            Ok(below) => PathBuf::from(var(env, "HOME").ok_or(ConfigError::NoHome)?).join(below),
            Err(_) => named.clone(),
        };
        if !path.is_absolute() {
            let (name, value) = ("socket below [mesh]".to_owned(), path.display().to_string());
            return Err(ConfigError::Relative { name, value });
        }
        Ok(Self { audit: path.with_file_name("audit.jsonl"), path, admits })
    }
}

/// How long a follower waits for the first line of a leader.
const REGISTER_WAIT: Duration = Duration::from_secs(5);
