//! The MCP server of yoi: through it a client of MCP becomes an agent of the mesh and a caller of Pods. The program hands
//! in the streams, and says when to leave.

mod agent;
mod host;
mod mailbox;
mod pods;
mod server;
mod tools;
mod transport;
mod waiting;
mod words;

pub use server::{Serving, serve};

use crate::config::{ConfigError, Dirs, Env, settings};
use crate::mesh::Socket;

/// The socket of the mesh that these settings name.
pub fn socket_of(settings: &settings::Mesh, dirs: &Dirs, env: &Env) -> Result<Socket, ConfigError> {
    let mut dirs = dirs.clone();
    dirs.make()?;
    Socket::find(settings, &dirs, env, |pid| !crate::sandbox::is_ours(pid))
}
