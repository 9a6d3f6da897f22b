//! One connection to a Pod's own socket: alerts, one snapshot, live events; orders once the
//! snapshot is written. A reader that falls behind gets another snapshot.

use crate::host::events::{Classic, Published};
use crate::host::host_connection::{too_long, write};
use crate::host::pod::{Handle, Subscription, View};
use crate::protocol::frame::{Lines, encode_event};
use crate::protocol::{Event, Frame, Incoming, MAX_LINE, Refusal};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use std::io::{Read as _, Seek as _};
use std::pin::Pin;
use tokio::io::{AsyncWrite, WriteHalf};
use tokio::net::UnixStream;
use tokio::sync::{broadcast::error::RecvError, mpsc};

/// Pieces of a snapshot that wait to be written.
const PIECES: usize = 4;
/// How large a piece of a snapshot gets, in bytes.
const PIECE: usize = 64 * 1024;

type Replies = FuturesUnordered<
    Pin<Box<dyn Future<Output = (Option<String>, Result<Event, Refusal>)> + Send>>,
>;

/// Why a connection ends; which side closed makes no difference.
struct Closed;

/// Serves until either side closes or the Pod stops.
pub(crate) async fn serve(stream: UnixStream, handle: Handle) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = Lines::new(reader, MAX_LINE);
    let mut replies = Replies::new();
    let mut extended = false;
    while let Ok(told) = greet(&handle, &mut writer).await {
        let lagged =
            follow(&handle, &mut lines, &mut writer, &mut replies, &mut extended, told).await;
        if lagged.is_err() {
            return;
        }
    }
}

/// Alerts and the snapshot; what is told from then on.
async fn greet(
    handle: &Handle,
    writer: &mut WriteHalf<UnixStream>,
) -> Result<tokio::sync::broadcast::Receiver<Published>, Closed> {
    let subscription = handle.subscribe().await.ok_or(Closed)?;
    for alert in &subscription.alerts {
        let line = encode_event(None, None, None, &Event::Alert(alert.clone()));
        write(writer, &line).await.map_err(|_| Closed)?;
    }
    snapshot(&subscription, writer).await?;
    Ok(subscription.told)
}

/// Forwards events and serves orders; `Ok` when the reader fell behind.
async fn follow<R: tokio::io::AsyncRead + Unpin>(
    handle: &Handle,
    lines: &mut Lines<R>,
    writer: &mut WriteHalf<UnixStream>,
    replies: &mut Replies,
    extended: &mut bool,
    mut told: tokio::sync::broadcast::Receiver<Published>,
) -> Result<(), Closed> {
    loop {
        let line = tokio::select! {
            event = told.recv() => match event {
                Ok(told) => translate(told, *extended),
                Err(RecvError::Lagged(_)) => return Ok(()),
                Err(RecvError::Closed) => {
                    while let Some((id, result)) = replies.next().await {
                        let Some(line) = answer(id.as_deref(), result) else { continue };
                        write(writer, &line).await.map_err(|_| Closed)?;
                    }
                    return Err(Closed);
                }
            },
            frame = lines.next() => match frame {
                Ok(Some(Frame::Line(line))) => order(handle, &line, replies, extended),
                Ok(Some(Frame::TooLong(bytes))) => Some(Bytes::from(too_long(bytes))),
                Ok(None) | Err(_) => return Err(Closed),
            },
            Some((id, result)) = replies.next() => answer(id.as_deref(), result),
        };
        if let Some(line) = line {
            write(writer, &line).await.map_err(|_| Closed)?;
        }
    }
}

/// What this connection is told of an event.
fn translate(told: Published, extended: bool) -> Option<Bytes> {
    match told.classic {
        _ if extended => Some(told.line),
        Classic::Same => Some(told.line),
        Classic::Line(line) => Some(line),
        Classic::Nothing => None,
    }
}

/// Takes an order; the line that refuses it when it is none.
fn order(
    handle: &Handle,
    line: &[u8],
    replies: &mut Replies,
    extended: &mut bool,
) -> Option<Bytes> {
    let refuse = |id: Option<&str>, text: String| {
        Some(Bytes::from(encode_event(id, None, None, &Refusal::invalid(text).into())))
    };
    match Incoming::decode(line) {
        Ok(Incoming { id, method, .. }) if !method.is_classic() => {
            let text = "invalid method: this order exists on the host socket only";
            refuse(id.as_deref(), text.into())
        }
        Ok(Incoming { id, method, .. }) => {
            *extended |= id.is_some();
            let handle = handle.clone();
            replies.push(Box::pin(async move { (id, handle.call(method).await) }));
            None
        }
        Err(error) => refuse(error.id.as_deref(), error.to_string()),
    }
}

/// The reply's line. Without an id there is none for what the predecessor did not answer, nor for
/// what everyone is told anyway.
fn answer(id: Option<&str>, result: Result<Event, Refusal>) -> Option<Bytes> {
    let event = result.unwrap_or_else(Event::from);
    if id.is_none() && matches!(event, Event::Accepted { .. } | Event::RewindApplied { .. }) {
        return None;
    }
    Some(Bytes::from(encode_event(id, None, None, &event)))
}

/// Writes the snapshot: the log's own lines, spliced, never held in memory as a whole.
async fn snapshot<W: AsyncWrite + Unpin>(
    subscription: &Subscription,
    writer: &mut W,
) -> Result<(), Closed> {
    let mut write_all = async |bytes: &[u8]| write(writer, bytes).await.map_err(|_| Closed);
    write_all(br#"{"event":"snapshot","data":{"entries":["#).await?;
    let (pieces, mut spliced) = mpsc::channel(PIECES);
    let view = &subscription.view;
    if let Some(segment) = view.segment {
        let (path, end) = (view.files.segment(segment), view.end);
        tokio::task::spawn_blocking(move || splice(&path, end, &pieces));
    } else {
        drop(pieces);
    }
    while let Some(piece) = spliced.recv().await {
        write_all(&piece).await?;
    }
    write_all(&tail(subscription, view)).await
}

/// What follows the entries.
fn tail(subscription: &Subscription, view: &View) -> Vec<u8> {
    let mut rest = json!({ "greeting": subscription.greeting, "status": subscription.status });
    if !view.in_flight.is_empty() {
        rest["in_flight"] = json!(view.in_flight);
    }
    let rest = rest.to_string();
    // The object's members go on in the one that is already open.
    format!("],{}}}\n", &rest[1..]).into_bytes()
}

/// Sends the readable lines of a segment, parted by commas. A reader that is gone, or a log that
/// cannot be read on, ends it: what is left out is a shorter transcript, not a broken line.
fn splice(path: &std::path::Path, end: Option<u64>, pieces: &mpsc::Sender<Vec<u8>>) {
    let Ok(mut file) = std::fs::File::open(path) else { return };
    let end = end.unwrap_or_else(|| file.metadata().map_or(0, |meta| meta.len()));
    let Ok(spans) = crate::session::spans(path, end) else { return };
    let mut piece = Vec::with_capacity(PIECE);
    for (n, span) in spans.iter().enumerate() {
        if n > 0 {
            piece.push(b',');
        }
        let length = span.end - span.start;
        let whole = file.seek(std::io::SeekFrom::Start(span.start)).is_ok()
            && (&file).take(length).read_to_end(&mut piece).is_ok_and(|n| n as u64 == length);
        if !whole
            || (piece.len() >= PIECE && pieces.blocking_send(std::mem::take(&mut piece)).is_err())
        {
            return;
        }
    }
    // The reader may be gone.
    let _ = pieces.blocking_send(piece);
}
