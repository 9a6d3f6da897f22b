//! The host of a conversation of lines: a running one, one that is started, or this process.

use crate::headless::exit::Failure;
use crate::start::{self, Opening};
use yoi::client::{Client, Events};
use yoi::host::{Host, HostError, HostLockError, MeshUse};
use yoi::protocol::AtHostEnd;

/// How often the running host is looked for again after another process was faster.
const TRIES: u32 = 5;

/// Where the host comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The running one; without one, this process is the host until the conversation ends.
    OrBeTheHost,
    /// The running one; without one, a new one in the background.
    OrStart,
}

pub async fn connect(
    opening: &Opening,
    attach: Attach,
) -> Result<(Client, Events, Option<Host>), Failure> {
    if attach == Attach::OrStart {
        let (client, events) = start::attach_or_start(opening, AtHostEnd::Leaves).await?;
        return Ok((client, events, None));
    }
    let mut tries = TRIES;
    loop {
        if let Some((client, events)) = start::attach(opening, AtHostEnd::Leaves).await? {
            return Ok((client, events, None));
        }
        match start::inside(opening, MeshUse::Never).await {
            Ok((host, client, events)) => return Ok((client, events, Some(host))),
            Err(error) if tries > 0 && is_taken(&error) => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether another process became the host in the meantime.
fn is_taken(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(HostError::HostLock(HostLockError::Taken { .. })))
}
