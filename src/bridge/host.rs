//! The connection of an MCP client to the host of this user. It names the client; it is made when it is needed, and
//! again after a restart of the host. This program starts no host.

use crate::client::{Client, Events, find};
use crate::protocol::{ClientKind, ErrorCode, Event, McpClient, Method, PodName, Refusal};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a call may take. The host itself waits a shorter time for a person.
const PATIENCE: Duration = Duration::from_secs(45);

/// The way to the host.
pub struct Host {
    data: PathBuf,
    /// Locked while a connection is made, so that only one is made.
    connection: Mutex<Option<(Client, Events)>>,
}

/// Whether a call may be made again when the connection ends before its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The call only reads.
    Harmless,
    /// The call may have been carried out already.
    Harmful,
}

impl Host {
    pub fn new(data: PathBuf) -> Self {
        Self { data, connection: Mutex::default() }
    }

    /// Makes a call in the name of a client. The error is a sentence.
    pub async fn call(
        &self,
        client: &McpClient,
        pod: Option<&PodName>,
        method: Method,
        again: Again,
    ) -> Result<Event, String> {
        loop {
            let host = self.connect().await?;
            let introduced = host.call(None, Method::ActAs(client.clone())).await;
            if let Err(refusal) = introduced {
                if self.has_ended().await {
                    continue;
                }
                return Err(stranger(&refusal));
            }
            let called = timeout(PATIENCE, host.call(pod, method.clone())).await;
            let refusal = match called {
                Ok(Ok(event)) => return Ok(event),
                Ok(Err(refusal)) => refusal,
                Err(_) => return Err(late()),
            };
            // The host may have refused the call and then ended.
            if refusal.code != ErrorCode::Internal || !self.has_ended().await {
                return Err(refusal.message);
            }
            if again == Again::Harmful {
                return Err(unknown(&refusal));
            }
        }
    }

    /// The connection, or a new one.
    async fn connect(&self) -> Result<Client, String> {
        let mut connection = self.connection.lock().await;
        if let Some((client, events)) = &*connection
            && !events.is_closed()
        {
            return Ok(client.clone());
        }
        *connection = find::connect_as(&self.data, ClientKind::Lasting)
            .await
            .map_err(|error| error.to_string())?;
        let no_host = "no host of yoi runs, so there are no live Pods and no person can be asked: your user starts one \
                       with `yoi`; call again then";
        connection.as_ref().map(|(client, _)| client.clone()).ok_or_else(|| no_host.to_owned())
    }

    async fn has_ended(&self) -> bool {
        let connection = self.connection.lock().await;
        connection.as_ref().is_none_or(|(_, events)| events.is_closed())
    }
}

/// The host does not take clients.
fn stranger(refusal: &Refusal) -> String {
    format!(
        "the host that runs does not let MCP clients use Pods ({}); if it is of an older version, `yoi host stop` ends it",
        refusal.message
    )
}

fn late() -> String {
    let seconds = PATIENCE.as_secs();
    format!(
        "the host has not finished this within {seconds} s; it may still do it: list_pods shows how it is"
    )
}

fn unknown(refusal: &Refusal) -> String {
    format!("{}; it may have been done or not: list_pods shows how it is", refusal.message)
}
