//! One connection to a Pod's own socket: alerts, one snapshot, then live events and replies. A
//! client that falls behind gets another snapshot.
//!
//! Two tasks, as for the host socket: this one reads lines and begins requests, the other one
//! writes.

use crate::host::events::{Classic, Content, Published, Rewound};
use crate::host::host_connection::{sized, too_long};
use crate::host::line_writer::write;
use crate::host::pod::{Handle, Subscription};
use crate::host::request_log::logged;
use crate::host::requests::{Replies, Requests};
use crate::host::splice::{LogRange, write_entries};
use crate::host::subscribers::{Queue, Queued};
use crate::protocol::frame::{Lines, encode_event};
use crate::protocol::{Event, Frame, Incoming, MAX_LINE, Method, Refusal};
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// How a request ended.
enum Outcome {
    Reply(Result<Event, Refusal>),
    Rewound(Arc<Rewound>),
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::Reply(Err(refusal))
    }
}

/// Whether the client has sent an accepted request with an id. From then on it also gets events that the first version of
/// the protocol does not have.
type Extended = Arc<AtomicBool>;

/// Serves until the Pod stops, a write fails, or the client has closed its side and has all replies.
pub(crate) async fn serve(stream: UnixStream, handle: Handle) {
    let (reader, writer) = stream.into_split();
    // Subscribed first, so that this connection gets the events of its own first request.
    let Ok(subscription) = handle.subscribe().await else { return };
    let (requests, replies) = Requests::new();
    let (done, writer_done) = oneshot::channel();
    let extended = Extended::default();
    let mut writer = Writer { writer, handle: handle.clone(), extended: extended.clone(), replies };
    let writer_task = tokio::spawn(async move {
        // A client that cannot be written to is gone; its requests run to their end.
        let _ = writer.write_events(subscription).await;
        let _ = done.send(());
        let _ = writer.write_last_replies().await;
    });
    tokio::select! {
        () = read_on(Lines::new(reader, MAX_LINE), requests, &handle, &extended) => {}
        _ = writer_done => {}
    }
    // If the writer panicked, the connection is over anyway.
    let _ = writer_task.await;
}

/// Begins the request of each line until the client sends nothing more.
async fn read_on<R: AsyncRead + Unpin>(
    mut lines: Lines<R>,
    requests: Requests<Outcome>,
    handle: &Handle,
    extended: &Extended,
) {
    loop {
        match lines.next().await {
            Ok(Some(Frame::Line(line))) => begin(&line, &requests, handle, extended).await,
            Ok(Some(Frame::TooLong(bytes))) => requests.refuse(None, too_long(bytes)).await,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn begin(line: &[u8], requests: &Requests<Outcome>, handle: &Handle, extended: &Extended) {
    let (id, method) = match Incoming::decode(line) {
        Ok(Incoming { id, method, .. }) if !method.is_classic() => {
            let text = "invalid method: this request exists on the host socket only";
            return requests.refuse(id, Refusal::invalid(text)).await;
        }
        Ok(Incoming { id, pod: Some(other), .. }) if other.key() != handle.name.key() => {
            let text = format!(
                "this is the socket of pod `{}`: send requests for pod `{other}` to its own socket \
                 or to the host's",
                handle.name
            );
            return requests.refuse(id, Refusal::invalid(text)).await;
        }
        Ok(Incoming { id, method, .. }) => (id, method),
        Err(error) => {
            let refusal = Refusal::invalid(error.to_string());
            return requests.refuse(error.id, refusal).await;
        }
    };
    if id.is_some() {
        extended.store(true, Ordering::Relaxed);
    }
    let handle = handle.clone();
    let (size, method) = sized(method);
    let request = async move {
        match method {
            Method::Rewind { target, expected_head_entries } => {
                let rewound = handle.rewind(target, expected_head_entries).await;
                rewound.map_or_else(Outcome::from, Outcome::Rewound)
            }
            method => {
                let (name, pod) = (method.name(), handle.name.clone());
                Outcome::Reply(logged(name, Some(&pod), None, handle.call(method)).await)
            }
        }
    };
    requests.begin(id, line.len(), size, request).await;
}

/// The writing half of a connection.
struct Writer<W> {
    writer: W,
    handle: Handle,
    extended: Extended,
    replies: Replies<Outcome>,
}

/// What comes after the events of a subscription.
enum Next {
    /// The client fell behind, and has the events that waited: another snapshot.
    Snapshot,
    /// Nothing: the Pod stopped, or the client has closed its side and has all replies.
    Close,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes snapshots and events. A client that falls behind gets another snapshot.
    async fn write_events(&mut self, mut subscription: Subscription) -> io::Result<()> {
        loop {
            self.write_snapshot(&subscription).await?;
            if let Next::Close = self.forward(subscription.events).await? {
                return Ok(());
            }
            match self.handle.subscribe().await {
                Ok(next) => subscription = next,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Writes the alerts and the snapshot.
    async fn write_snapshot(&mut self, subscription: &Subscription) -> io::Result<()> {
        for alert in &subscription.alerts {
            let line = encode_event(None, None, None, &Event::Alert(alert.clone()));
            write(&mut self.writer, &line).await?;
        }
        let view = &subscription.view;
        let mut rest = json!({ "greeting": subscription.greeting, "status": subscription.status });
        if !view.in_flight.is_empty() {
            rest["in_flight"] = json!(view.in_flight);
        }
        let log = view.segment.map(|segment| {
            let (files, end) = (view.files.clone(), view.end);
            LogRange { files, segment, end }
        });
        write_entries(&mut self.writer, None, "snapshot", log, &rest).await
    }

    /// Forwards events and replies.
    async fn forward(&mut self, mut events: Queue<Published>) -> io::Result<Next> {
        loop {
            tokio::select! {
                queued = events.next() => match queued {
                    None => return Ok(Next::Snapshot),
                    Some(queued) => {
                        if self.write_event(queued).await? {
                            return Ok(Next::Close);
                        }
                    }
                },
                reply = self.replies.recv() => {
                    let Some(reply) = reply else { return Ok(Next::Close) };
                    // The events that were published before the reply come first.
                    for _ in 0..events.len() {
                        let Some(queued) = events.next().await else { break };
                        if self.write_event(queued).await? {
                            self.write_outcome(reply.id.as_deref(), reply.outcome).await?;
                            return Ok(Next::Close);
                        }
                    }
                    self.write_outcome(reply.id.as_deref(), reply.outcome).await?;
                }
            }
        }
    }

    /// Writes an event as this client reads it. Returns whether it was the Pod's last one.
    async fn write_event(&mut self, queued: Queued<Published>) -> io::Result<bool> {
        let Published { content, classic } = &queued.line;
        match classic {
            _ if self.extended.load(Ordering::Relaxed) => self.write_content(content).await?,
            Classic::Same => self.write_content(content).await?,
            Classic::Line(line) => write(&mut self.writer, line).await?,
            Classic::Nothing => {}
        }
        Ok(matches!(content, Content::Stopped(_)))
    }

    async fn write_content(&mut self, content: &Content) -> io::Result<()> {
        match content {
            Content::Line(line) | Content::Stopped(line) => write(&mut self.writer, line).await,
            Content::Rewound(rewound) => self.write_rewound(None, rewound).await,
        }
    }

    /// Writes the reply. A request without an id gets no `accepted`, which the first version of the protocol does not have,
    /// and no second copy of a rewind, which every client gets as an event.
    async fn write_outcome(&mut self, id: Option<&str>, outcome: Outcome) -> io::Result<()> {
        match outcome {
            Outcome::Rewound(_) | Outcome::Reply(Ok(Event::Accepted { .. })) if id.is_none() => {
                Ok(())
            }
            Outcome::Rewound(rewound) => self.write_rewound(id, &rewound).await,
            Outcome::Reply(result) => {
                let event = result.unwrap_or_else(Event::from);
                write(&mut self.writer, &encode_event(id, None, None, &event)).await
            }
        }
    }

    async fn write_rewound(&mut self, re: Option<&str>, rewound: &Rewound) -> io::Result<()> {
        let rest = json!({ "input": rewound.input, "summary": rewound.summary });
        let log = Some(rewound.log.clone());
        write_entries(&mut self.writer, re, "rewind_applied", log, &rest).await
    }

    /// Replies to what was in flight when the Pod stopped.
    async fn write_last_replies(&mut self) -> io::Result<()> {
        while let Some(reply) = self.replies.recv().await {
            self.write_outcome(reply.id.as_deref(), reply.outcome).await?;
        }
        Ok(())
    }
}
