//! The handle to a running host. It speaks the lines of the host socket over any stream, so a host
//! in this process (a duplex pipe) and one behind a socket are the same to everything above.

use crate::protocol::frame::{Hello, Lines};
use crate::protocol::{Event, Frame, Incoming, MAX_LINE, Method, Outgoing, PodName, Refusal};
use std::collections::HashMap;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

pub mod pod_api;
pub mod find;
pub mod pod_socket;

/// Calls that wait for the connection to take them.
const CALLS: usize = 64;
/// Events that wait for the reader. When it is full the connection is not read on, and the host
/// sees a slow reader: it sends a fresh page instead of what was missed.
const EVENTS: usize = 1024;

/// A handle to a host; cheap to clone, all clones share one connection.
#[derive(Clone, Debug)]
pub struct Client {
    calls: mpsc::Sender<Call>,
}

#[derive(Debug)]
struct Call {
    pod: Option<PodName>,
    method: Method,
    answer: oneshot::Sender<Result<Event, Refusal>>,
}

/// Events that are not replies, in the order the host sent them; `None` when the connection ends.
pub type Events = mpsc::Receiver<Outgoing>;

/// Why there is no conversation with a host.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the host closed the connection before it said hello")]
    Closed,
    #[error(
        "the host speaks protocol {theirs} (version {version}), this program speaks {ours}; end it with the program that started it (`yoi host stop`), then start again"
    )]
    OtherVersion { theirs: u32, ours: u32, version: String },
    #[error("a host is starting here and cannot be reached yet; try again in a moment")]
    NotReady,
    #[error("what answers on the host socket is no yoi host: {0}")]
    NotAHost(String),
    #[error("cannot talk to the host: {0}")]
    Io(#[from] std::io::Error),
}

impl Client {
    /// Says hello over `stream` and starts the task that owns it.
    pub async fn over<S>(stream: S) -> Result<(Self, Events), ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = Lines::new(reader, MAX_LINE);
        writer.write_all(&Hello::line()).await?;
        let Some(Frame::Line(first)) = lines.next().await? else {
            return Err(ConnectError::Closed);
        };
        let hello: Hello = serde_json::from_slice(&first)
            .map_err(|_| ConnectError::NotAHost(String::from_utf8_lossy(&first).into_owned()))?;
        let (theirs, ours) = (hello.hello.protocol, crate::protocol::PROTOCOL);
        if theirs != ours {
            return Err(ConnectError::OtherVersion { theirs, ours, version: hello.hello.version });
        }
        let (calls, orders) = mpsc::channel(CALLS);
        let (events, received) = mpsc::channel(EVENTS);
        tokio::spawn(converse(lines, writer, orders, events));
        Ok((Self { calls }, received))
    }

    /// Sends an order and waits for its one reply. A refusal is the host's own; when the connection
    /// ends first, the refusal says that.
    pub async fn call(&self, pod: Option<&PodName>, method: Method) -> Result<Event, Refusal> {
        let gone = || Refusal::internal("the connection to the host ended");
        let (answer, reply) = oneshot::channel();
        let call = Call { pod: pod.cloned(), method, answer };
        self.calls.send(call).await.map_err(|_| gone())?;
        reply.await.map_err(|_| gone())?
    }
}

/// Owns the connection: writes orders, matches replies, hands events on. Ends when the host closes
/// the stream or every handle is gone.
async fn converse<R, W>(
    mut lines: Lines<R>,
    mut writer: W,
    mut orders: mpsc::Receiver<Call>,
    events: mpsc::Sender<Outgoing>,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut waiting: HashMap<String, oneshot::Sender<Result<Event, Refusal>>> = HashMap::new();
    let mut count = 0_u64;
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Call { pod, method, answer }) = order else { return };
                count += 1;
                let id = count.to_string();
                let line = Incoming { id: Some(id.clone()), pod, method }.encode();
                waiting.insert(id, answer);
                if writer.write_all(&line).await.is_err() {
                    return;
                }
            }
            frame = lines.next() => {
                let Ok(Some(frame)) = frame else { return };
                let Frame::Line(line) = frame else { continue };
                let Ok(Outgoing { re, pod, seq, event }) = Outgoing::decode(&line) else { continue };
                let Some(re) = re else {
                    // A reader that is gone only cares for replies.
                    let _ = events.send(Outgoing { re, pod, seq, event }).await;
                    continue;
                };
                if let Some(answer) = waiting.remove(&re) {
                    // A caller that gave up does not want the answer.
                    let _ = answer.send(match event {
                        Event::Error { code, message } => Err(Refusal { code, message }),
                        event => Ok(event),
                    });
                }
            }
        }
    }
}
