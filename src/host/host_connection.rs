//! One connection to the host socket: hello, orders with an address, and the feed of what happens.

use crate::host::{Shared, approvals, pod, supervisor};
use crate::protocol::frame::{Hello, Lines, encode_event};
use crate::protocol::{Event, Frame, Incoming, MAX_LINE, Method, PodName, Refusal};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{broadcast, mpsc, oneshot};

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

/// Carries an order out: a person's, or a Pod's (`by`).
pub(crate) async fn carry_out(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    by: Option<PodName>,
    pod: Option<PodName>,
    method: Method,
) -> Result<Event, Refusal> {
    match pod {
        Some(name) => of_pod(shared, orders, by, name, method).await,
        None => of_host(shared, orders, method).await,
    }
}

/// Asks the supervisor and waits for its answer.
async fn ask(
    orders: &mpsc::Sender<supervisor::Order>,
    order: impl FnOnce(crate::host::Answer) -> supervisor::Order,
) -> Result<Event, Refusal> {
    let ending = || Refusal::internal("the host is ending");
    let (answer, reply) = oneshot::channel();
    orders.send(order(answer)).await.map_err(|_| ending())?;
    reply.await.map_err(|_| ending())?
}

async fn of_host(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    method: Method,
) -> Result<Event, Refusal> {
    use supervisor::Order;
    match method {
        Method::New(new) => ask(orders, |answer| Order::New { new, answer }).await,
        Method::Restore { name } => ask(orders, |answer| Order::Restore { name, answer }).await,
        Method::Stop => ask(orders, |answer| Order::Stop { answer }).await,
        Method::Who { path } => ask(orders, |answer| Order::Who { path, answer }).await,
        Method::ListPods => Ok(crate::host::listing::of_host(shared)),
        Method::Decide { ask, verdict } => approvals::answer(shared, orders, &ask, verdict).await,
        Method::ListPolicy => approvals::list(shared, None).await,
        Method::Revoke { rule } => approvals::revoke(shared, rule).await,
        Method::HostStatus => Ok(Event::Host {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            data_dir: shared.dirs.data.clone(),
            runtime_dir: shared.dirs.runtime.clone(),
        }),
        _ => Err(Refusal::invalid("this order needs a pod: add \"pod\": its name")),
    }
}

async fn of_pod(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    by: Option<PodName>,
    name: PodName,
    method: Method,
) -> Result<Event, Refusal> {
    use supervisor::{Order, Restore};
    if matches!(method, Method::Remove) {
        // Also one whose record cannot be read, which is no member.
        return ask(orders, |answer| Order::Remove { name, answer }).await;
    }
    let missing = || Refusal::invalid(format!("no pod named `{name}`"));
    let handle = shared.pod(&name).ok_or_else(missing)?;
    match method {
        Method::Spawn(new) => {
            ask(orders, |answer| Order::Spawn { parent: name, new, answer }).await
        }
        Method::StopPods { tree } => {
            ask(orders, |answer| Order::StopPods { name, tree, by, answer }).await
        }
        Method::RestorePods { tree, plan } => {
            let how = Restore { tree, plan };
            ask(orders, |answer| Order::RestorePods { name, how, answer }).await
        }
        Method::Unpeer { name: peer } => {
            ask(orders, |answer| Order::Unpeer { source: name, name: peer, answer }).await
        }
        Method::Lend { to, rule } => {
            ask(orders, |answer| Order::Lend { from: name, to, rule, answer }).await
        }
        Method::Reclaim { path } => {
            ask(orders, |answer| Order::Reclaim { owner: name, path, answer }).await
        }
        Method::Fork { name: new, at } => {
            ask(orders, |answer| Order::Fork { source: name, name: new, at, answer }).await
        }
        Method::ListPolicy => approvals::list(shared, Some(&handle)).await,
        // Whoever it is addressed to, it is the host's to do.
        method @ (Method::Who { .. } | Method::Decide { .. } | Method::Revoke { .. }) => {
            of_host(shared, orders, method).await
        }
        Method::Page { before, max_bytes } => page(&handle, before, max_bytes).await,
        Method::Fetch { entry } => fetch(&handle, entry).await,
        Method::ReadOutput => crate::host::output::read(shared, by.as_ref(), &name).await,
        method => {
            let event = handle.call_by(by, method).await?;
            Ok(crate::host::events::screen(&event).unwrap_or(event))
        }
    }
}

async fn page(
    handle: &pod::Handle,
    before: Option<crate::protocol::EntryId>,
    max_bytes: u64,
) -> Result<Event, Refusal> {
    let view = handle.look().await.ok_or_else(|| Refusal::internal("the pod is gone"))?;
    let (seq, in_flight) = (view.seq, view.in_flight);
    let Some(segment) = view.segment else {
        return Ok(Event::Page { entries: Vec::new(), before: None, in_flight, seq });
    };
    let read = move || crate::session::page(&view.files, segment, view.end, before, max_bytes);
    let page = tokio::task::spawn_blocking(read).await;
    let page = page.map_err(|e| Refusal::internal(e.to_string()))?;
    let page = page.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(Event::Page { entries: page.entries, before: page.before, in_flight, seq })
}

async fn fetch(handle: &pod::Handle, entry: crate::protocol::EntryId) -> Result<Event, Refusal> {
    let view = handle.look().await.ok_or_else(|| Refusal::internal("the pod is gone"))?;
    let none = || Refusal::invalid("that entry is not in this transcript");
    let segment = view.segment.ok_or_else(none)?;
    let read = move || crate::session::fetch(&view.files, segment, entry);
    let entry = tokio::task::spawn_blocking(read).await;
    let entry = entry.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(Event::Fetched { entry: Box::new(entry.map_err(|e| Refusal::invalid(e.to_string()))?) })
}
