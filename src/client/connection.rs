//! The two tasks of a connection to a host: one writes requests, the other one reads replies and
//! events. Neither waits for the other, so a host that writes a page while this side writes a long
//! message stops neither.
//!
//! A host that hangs must not hang its clients. How long a request takes is the request's own: a
//! stop takes seconds, a rewind of a large log longer. So the limit is on silence. While a reply
//! is due and nothing at all arrives for [`NO_REPLY`], the client asks `host_status`, which any
//! host that lives answers at once. When [`SIGN_OF_LIFE`] passes in silence too, every call is
//! refused with a sentence that names the process, and the connection ends: within 5 seconds. A person
//! waits for a Pod that runs, too: then the client asks after [`SILENCE`]. Every other connection is left alone.

use crate::client::{Call, Fault, Reply, silent};
use crate::protocol::frame::Lines;
use crate::protocol::{
    Event, Frame, IN_FLIGHT, Incoming, Method, Outgoing, PodInfo, PodName, Refusal, State,
};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// How long nothing may arrive while a reply is due, before the client probes the host.
pub const NO_REPLY: Duration = Duration::from_secs(1);
/// The same while only a Pod runs.
pub const SILENCE: Duration = Duration::from_secs(10);
/// How long the host may be silent after that. The answer takes no Pod, no disk and no lock.
pub const SIGN_OF_LIFE: Duration = Duration::from_secs(4);
/// The id of that request; the others are numbers.
const ALIVE: &str = "alive";
/// Calls in flight: what the host takes, less one place for the request whether it lives.
const CALLS: usize = IN_FLIGHT - 1;

/// A reply that is due.
struct Due {
    id: String,
    answer: oneshot::Sender<Reply>,
    _slot: Option<OwnedSemaphorePermit>,
}

/// Serves until the host closes the stream or falls silent, or every handle and every reader of events is gone. `pid` is the
/// host's process, where it is another one. `fault` says afterwards that the host fell silent.
pub(super) async fn converse<R, W>(
    lines: Lines<R>,
    writer: W,
    calls: mpsc::Receiver<Call>,
    events: mpsc::Sender<Outgoing>,
    pid: Option<u32>,
    fault: Fault,
) where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let (sent, due) = mpsc::channel(IN_FLIGHT);
    let (probe, probes) = mpsc::channel(1);
    let (waiting, running) = (HashMap::new(), BTreeSet::new());
    let unread = events.clone();
    let reader = Reader { waiting, running, events, probe, pid, fault };
    let mut reading = tokio::spawn(reader.read_on(lines, due));
    let written = tokio::select! {
        // It has refused what was due.
        _ = &mut reading => return,
        written = write_on(writer, calls, sent, probes) => written,
    };
    if written.is_err() {
        // The host is gone, or going: what it has sent is still read.
        let _ = reading.await;
        return;
    }
    tokio::select! {
        // The host closes the stream, too.
        _ = &mut reading => {}
        () = unread.closed() => reading.abort(),
    }
}

/// Writes each call, and the request whether the host lives. Ends when every handle is gone.
async fn write_on<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut calls: mpsc::Receiver<Call>,
    sent: mpsc::Sender<Due>,
    mut probes: mpsc::Receiver<()>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CALLS));
    let mut count = 0_u64;
    loop {
        let line = tokio::select! {
            (slot, call) = next_call(&slots, &mut calls) => {
                let Some(Call { pod, method, answer }) = call else {
                    return writer.shutdown().await;
                };
                count += 1;
                let id = count.to_string();
                let line = match (Incoming { id: Some(id.clone()), pod, method }).encode() {
                    Ok(line) => line,
                    Err(refusal) => {
                        // A caller that is gone needs no refusal.
                        let _ = answer.send(Err(refusal));
                        continue;
                    }
                };
                // First: the reply finds what it belongs to.
                let due = Due { id, answer, _slot: slot };
                sent.send(due).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
                line
            }
            Some(()) = probes.recv() => {
                let id = Some(ALIVE.to_owned());
                let probe = Incoming { id, pod: None, method: Method::HostStatus }.encode();
                probe.map_err(|refusal| io::Error::other(refusal.message))?
            }
        };
        writer.write_all(&line).await?;
    }
}

/// The next call, and its place among those in flight. Cancel-safe.
async fn next_call(
    slots: &Arc<Semaphore>,
    calls: &mut mpsc::Receiver<Call>,
) -> (Option<OwnedSemaphorePermit>, Option<Call>) {
    // The semaphore is never closed.
    let slot = slots.clone().acquire_owned().await.ok();
    (slot, calls.recv().await)
}

/// The reading half of a connection.
struct Reader {
    waiting: HashMap<String, Due>,
    /// The Pods that run, as far as the events of this connection say.
    running: BTreeSet<PodName>,
    events: mpsc::Sender<Outgoing>,
    probe: mpsc::Sender<()>,
    pid: Option<u32>,
    fault: Fault,
}

impl Reader {
    /// Reads until the host closes the stream or falls silent.
    async fn read_on<R: AsyncRead + Unpin>(
        mut self,
        mut lines: Lines<R>,
        mut due: mpsc::Receiver<Due>,
    ) {
        let mut asked = false;
        let mut limit = Instant::now();
        loop {
            tokio::select! {
                biased;
                Some(due) = due.recv() => {
                    let is_first = self.waiting.is_empty() && !asked;
                    self.waiting.insert(due.id.clone(), due);
                    if is_first {
                        limit = Instant::now() + self.patience();
                    }
                }
                frame = lines.next() => {
                    let Ok(Some(frame)) = frame else { return };
                    // A call can be sent and replied to between the two polls above. It was put here
                    // before its line was written, so it is found now.
                    while let Ok(due) = due.try_recv() {
                        self.waiting.insert(due.id.clone(), due);
                    }
                    if let Frame::Line(line) = frame {
                        self.line(&line).await;
                    }
                    (asked, limit) = (false, Instant::now() + self.patience());
                }
                () = sleep_until(limit), if self.expects() => {
                    if std::mem::replace(&mut asked, true) {
                        return self.give_up();
                    }
                    // A probe that is not written yet serves as well.
                    let _ = self.probe.try_send(());
                    limit = Instant::now() + SIGN_OF_LIFE;
                }
            }
        }
    }

    /// How long nothing may arrive now.
    fn patience(&self) -> Duration {
        if self.waiting.is_empty() { SILENCE } else { NO_REPLY }
    }

    async fn line(&mut self, line: &[u8]) {
        let Ok(Outgoing { re, pod, seq, event }) = Outgoing::decode(line) else { return };
        let Some(re) = re else {
            self.note(&event);
            // A client that dropped its events still wants its replies.
            let _ = self.events.send(Outgoing { re, pod, seq, event }).await;
            return;
        };
        if let Some(due) = self.waiting.remove(&re) {
            // A caller that gave up does not want the answer.
            let _ = due.answer.send(match event {
                Event::Error { code, message } => Err(Refusal { code, message }),
                event => Ok(event),
            });
        }
    }

    /// Whether the host owes something.
    fn expects(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    /// Keeps the Pods that run.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Family { pods, .. } => {
                self.running.clear();
                pods.iter().for_each(|info| self.note_state(info));
            }
            Event::PodChanged { info } => self.note_state(info),
            Event::PodRemoved { name } => drop(self.running.remove(name)),
            _ => {}
        }
    }

    fn note_state(&mut self, info: &PodInfo) {
        if info.state != State::Running {
            self.running.remove(&info.name);
        } else if !self.running.contains(&info.name) {
            self.running.insert(info.name.clone());
        }
    }

    /// Refuses what is due: the host does not answer.
    fn give_up(self) {
        let refusal = self.fault.get_or_init(|| Refusal::internal(silent(self.pid)));
        for (_, due) in self.waiting {
            let _ = due.answer.send(Err(refusal.clone()));
        }
    }
}
