//! The handle to a running host. It speaks the lines of the host socket over any stream, so a host
//! in this process (a duplex pipe) and one behind a socket are the same to everything above.

use crate::protocol::frame::{Hello, HelloBody, Lines};
use crate::protocol::{ClientKind, Event, Frame, MAX_LINE, Method, Outgoing, PodName, Refusal};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

mod connection;
/// The family as the events of a host describe it.
pub mod family;
/// Which events of a Pod go on from what is known of it.
pub mod follow;
pub mod pod_api;
pub mod find;
/// The pages of a log from a place on.
pub mod pages;
mod other_host;
pub mod pod_socket;
pub mod whole_entry;
#[cfg(test)]
mod tests;

pub use other_host::OtherHost;

/// Calls that wait for the connection to take them; the next caller waits.
const CALLS: usize = 64;
/// Events that wait for the reader. When it is full the connection is not read on, and the host
/// sees a slow reader: it sends a fresh page instead of what was missed.
const EVENTS: usize = 1024;
/// How long a host may take to say hello, the first thing it does on a connection.
const HELLO: Duration = Duration::from_secs(5);

/// A handle to a host; cheap to clone, all clones share one connection.
#[derive(Clone, Debug)]
pub struct Client {
    calls: mpsc::Sender<Call>,
    fault: Fault,
}

/// Set before a connection ends because its host fell silent.
type Fault = Arc<OnceLock<Refusal>>;

/// How a call ended.
type Reply = Result<Event, Refusal>;

/// A call on its way to the connection.
#[derive(Debug)]
struct Call {
    pod: Option<PodName>,
    method: Method,
    answer: oneshot::Sender<Reply>,
}

/// Events that are not replies, in the order the host sent them; `None` when the connection ends.
pub type Events = mpsc::Receiver<Outgoing>;

/// Why there is no conversation with a host.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the host closed the connection before it said hello")]
    Closed,
    #[error("{0}")]
    OtherVersion(Box<OtherHost>),
    #[error("a host is starting here and cannot be reached yet; try again in a moment")]
    NotReady,
    #[error("what answers on the host socket is no yoi host: {0}")]
    NotAHost(String),
    /// It took the connection and says nothing. The process, where it is another one.
    #[error("{}", silent(*.0))]
    Silent(Option<u32>),
    #[error("cannot talk to the host: {0}")]
    Io(#[from] std::io::Error),
}

/// What to do about a host that does not answer.
fn silent(pid: Option<u32>) -> String {
    match pid {
        None => "the host does not answer; end this program and start it again".into(),
        Some(pid) => format!(
            "the host (process {pid}) does not answer; `kill -CONT {pid}` wakes it if it was stopped, `kill -9 {pid}` ends it, and its Pods come back with the next start"
        ),
    }
}

impl Client {
    /// Says hello over `stream` and starts the tasks that own it.
    pub async fn over<S>(stream: S) -> Result<(Self, Events), ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::to(None, stream, &Hello::ours(ClientKind::Lasting)).await
    }

    /// As [`Client::over`], to the host that is process `pid`: when it does not answer, the error
    /// says which process that is.
    pub async fn over_socket_of<S>(
        pid: u32,
        stream: S,
        kind: ClientKind,
    ) -> Result<(Self, Events), ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::to(Some(pid), stream, &Hello::ours(kind)).await
    }

    /// As [`Client::over_socket_of`], to a host that speaks an older protocol. The requests for the family and for the
    /// end of the host are the same in every protocol; no others are to be made.
    async fn over_socket_of_older<S>(
        pid: u32,
        stream: S,
        protocol: u32,
    ) -> Result<(Self, Events), ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut hello = Hello::ours(ClientKind::Brief);
        hello.hello.protocol = protocol;
        Self::to(Some(pid), stream, &hello).await
    }

    async fn to<S>(
        pid: Option<u32>,
        stream: S,
        hello: &Hello,
    ) -> Result<(Self, Events), ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = Lines::new(reader, MAX_LINE);
        let greeted = greet(&mut lines, &mut writer, hello, pid);
        let greeted = tokio::time::timeout(HELLO, greeted).await;
        greeted.map_err(|_| ConnectError::Silent(pid))??;
        let (calls, called) = mpsc::channel(CALLS);
        let (events, received) = mpsc::channel(EVENTS);
        let fault = Fault::default();
        tokio::spawn(connection::converse(lines, writer, called, events, pid, fault.clone()));
        Ok((Self { calls, fault }, received))
    }

    /// Sends a request and waits for its one reply. A refusal is the host's own; when the
    /// connection ends first, or the host falls silent, the refusal says that.
    pub async fn call(&self, pod: Option<&PodName>, method: Method) -> Result<Event, Refusal> {
        let gone = || self.why_ended();
        let (answer, reply) = oneshot::channel();
        let call = Call { pod: pod.cloned(), method, answer };
        self.calls.send(call).await.map_err(|_| gone())?;
        reply.await.map_err(|_| gone())?
    }

    /// Why there is no connection any more.
    pub fn why_ended(&self) -> Refusal {
        let fault = self.fault.get().cloned();
        fault.unwrap_or_else(|| Refusal::internal("the connection to the host ended"))
    }
}

/// The first line each way.
async fn greet<R, W>(
    lines: &mut Lines<R>,
    writer: &mut W,
    ours: &Hello,
    pid: Option<u32>,
) -> Result<(), ConnectError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    writer.write_all(&ours.encode()).await?;
    let Some(Frame::Line(first)) = lines.next().await? else {
        return Err(ConnectError::Closed);
    };
    let theirs: Hello = serde_json::from_slice(&first)
        .map_err(|_| ConnectError::NotAHost(String::from_utf8_lossy(&first).into_owned()))?;
    let HelloBody { protocol, version, .. } = theirs.hello;
    if protocol == ours.hello.protocol {
        return Ok(());
    }
    let other = OtherHost { pid, protocol, version, running: None };
    Err(ConnectError::OtherVersion(Box::new(other)))
}
