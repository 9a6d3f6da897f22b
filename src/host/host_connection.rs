//! One connection to the host socket: hello, orders with an address, and the feed of what happens.

use crate::host::verb::carry_out;
use crate::host::{Shared, supervisor};
use crate::protocol::frame::{Hello, Lines, encode_event};
use crate::protocol::{Event, Frame, Incoming, MAX_LINE, Method, Refusal};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{broadcast, mpsc};

/// A reader that takes nothing for this long is closed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts a connection while it lasts.
struct Counted(Shared);

impl Counted {
    fn new(shared: Shared) -> Self {
        shared.connections.send_modify(|n| *n += 1);
        Self(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.send_modify(|n| *n -= 1);
    }
}

type Replies = FuturesUnordered<
    Pin<Box<dyn Future<Output = (Option<String>, Result<Event, Refusal>)> + Send>>,
>;

/// Serves until either side closes.
pub(crate) async fn serve<S>(stream: S, shared: Shared, orders: mpsc::Sender<supervisor::Order>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let _counted = Counted::new(shared.clone());
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = Lines::new(reader, MAX_LINE);
    if write(&mut writer, &Hello::line()).await.is_err() || !greeted(&mut lines, &mut writer).await
    {
        return;
    }
    let mut replies = Replies::new();
    let mut feed: Option<broadcast::Receiver<crate::host::Fed>> = None;
    loop {
        let line = tokio::select! {
            frame = lines.next() => match frame {
                Ok(Some(Frame::Line(line))) => match Incoming::decode(&line) {
                    Ok(Incoming { id, pod: None, method: Method::Watch }) => {
                        feed = Some(shared.feed.subscribe());
                        let mut out = reply_line(id.as_deref(), &Event::Accepted { entry: None, queued: None });
                        out.extend(family(&shared));
                        out
                    }
                    Ok(incoming) => {
                        let (shared, orders) = (shared.clone(), orders.clone());
                        let Incoming { id, pod, method } = incoming;
                        replies.push(Box::pin(async move {
                            (id, carry_out(&shared, &orders, None, pod, method).await)
                        }));
                        continue;
                    }
                    Err(error) => {
                        let refusal = Refusal::invalid(error.to_string());
                        reply_line(error.id.as_deref(), &refusal.into())
                    }
                },
                Ok(Some(Frame::TooLong(bytes))) => too_long(bytes),
                Ok(None) | Err(_) => return,
            },
            fed = next(&mut feed) => match fed {
                Ok(fed) => fed.0.to_vec(),
                Err(broadcast::error::RecvError::Lagged(_)) => lagged(&shared),
                Err(broadcast::error::RecvError::Closed) => return,
            },
            Some((id, result)) = replies.next() => {
                let event = result.unwrap_or_else(Event::from);
                let mut out = told_before(&mut feed, &shared);
                out.extend(reply_line(id.as_deref(), &event));
                out
            }
        };
        if write(&mut writer, &line).await.is_err() {
            return;
        }
    }
}

/// The line that refuses a line nobody kept.
pub(crate) fn too_long(bytes: usize) -> Vec<u8> {
    let text = format!("invalid method: a line of {bytes} bytes is over the limit of {MAX_LINE}");
    encode_event(None, None, None, &Refusal::invalid(text).into())
}

fn reply_line(id: Option<&str>, event: &Event) -> Vec<u8> {
    encode_event(id, None, None, event)
}

fn family(shared: &Shared) -> Vec<u8> {
    encode_event(None, None, None, &shared.whole_family())
}

fn lagged(shared: &Shared) -> Vec<u8> {
    let mut out = encode_event(None, None, None, &Event::Lagged);
    out.extend(family(shared));
    out
}

/// What waits in the feed: a reply never overtakes what was told before it.
fn told_before(
    feed: &mut Option<broadcast::Receiver<crate::host::Fed>>,
    shared: &Shared,
) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(feed) = feed else { return out };
    // Only what is there now: a busy family must not hold the reply up.
    for _ in 0..feed.len() {
        match feed.try_recv() {
            Ok(fed) => out.extend_from_slice(&fed.0),
            Err(broadcast::error::TryRecvError::Lagged(_)) => out.extend(lagged(shared)),
            Err(_) => break,
        }
    }
    out
}

async fn next(
    feed: &mut Option<broadcast::Receiver<crate::host::Fed>>,
) -> Result<crate::host::Fed, broadcast::error::RecvError> {
    match feed {
        Some(feed) => feed.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether the other side speaks our protocol; one that does not is told so.
async fn greeted<R, W>(lines: &mut Lines<R>, writer: &mut W) -> bool
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Ok(Ok(Some(Frame::Line(line)))) = tokio::time::timeout(PATIENCE, lines.next()).await else {
        return false;
    };
    let ours = crate::protocol::PROTOCOL;
    let text = match serde_json::from_slice::<Hello>(&line) {
        Ok(hello) if hello.hello.protocol == ours => return true,
        Ok(hello) => format!(
            "this host speaks protocol {ours} (version {}), the client speaks {}",
            env!("CARGO_PKG_VERSION"),
            hello.hello.protocol
        ),
        Err(_) => "the first line on this socket must be a hello".into(),
    };
    // Closed right after; whether it could be read is the client's business.
    let _ = write(writer, &reply_line(None, &Refusal::invalid(text).into())).await;
    false
}

/// Writes a line; a reader that does not take it in time is gone.
pub(crate) async fn write<W: AsyncWrite + Unpin>(
    writer: &mut W,
    line: &[u8],
) -> std::io::Result<()> {
    match tokio::time::timeout(PATIENCE, writer.write_all(line)).await {
        Ok(result) => result,
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}
