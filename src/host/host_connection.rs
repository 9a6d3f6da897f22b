//! One connection to the host socket: hello, requests with an address, and for a connection that
//! watches the events of the family and of every Pod.
//!
//! Two tasks: this one reads lines and begins requests, the other one writes replies and events.
//! Neither waits for the other but through queues, which are bounded.

use crate::client::{Client, ConnectError, Events};
use crate::host::left_behind::LeftBehind;
use crate::host::line_writer::{PATIENCE, write};
use crate::host::requests::{Replies, Requests, Size};
use crate::host::screen_feed::{ScreenFeed, ScreenLine};
use crate::host::subscribers::{Follows, Queued};
use crate::host::verb::{carry_out_for, client};
use crate::host::{Shared, absent_person, idle_exit, supervisor};
use crate::protocol::frame::{Hello, Lines, encode_event};
use crate::protocol::{ClientKind, Event, Frame, Incoming, MAX_LINE, Method, PodName, Refusal};
use crate::trace::OrLog as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How much of a pipe inside this process is buffered, in bytes.
const PIPE: usize = 256 * 1024;

/// The largest page, in bytes of log, also when a client wants a larger one: a page is built in
/// memory, and waits there for a client that does not read.
const PAGE: u64 = 1024 * 1024;

/// How many bytes of events are written together, and one event more.
const TOGETHER: usize = 64 * 1024;
/// How long a client that begins to watch waits for a look at the settings.
const LOOK: Duration = Duration::from_secs(1);

/// The most Pods that a screen shows at once; those beyond do not count as shown.
const MAX_SHOWN: usize = 16;

/// Counts a connection while it lasts.
pub(crate) struct Counted(Shared);

impl Counted {
    /// `None` once the host ends because it had no client: this one finds the next host.
    pub(crate) fn new(shared: Shared) -> Option<Self> {
        let is_counted = shared.connections.send_if_modified(|connections| {
            connections.open += usize::from(!connections.is_closed);
            !connections.is_closed
        });
        is_counted.then_some(Self(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.send_modify(|connections| connections.open -= 1);
    }
}

/// The Pods that the screen of a connection shows; none once the connection has ended.
struct Showing {
    shared: Shared,
    pods: Vec<PodName>,
    /// Those whose text the connection gets; `None`: the text of every Pod.
    follows: watch::Sender<Option<Vec<PodName>>>,
    /// Whether it has a screen: it showed Pods, or said that it shows none.
    is_screen: bool,
}

impl Showing {
    /// Replaces what this screen shows; the first time, the connection counts as a screen. Names that no Pod has are
    /// passed over.
    fn change(&mut self, pods: &[PodName], follows: Option<Vec<PodName>>) {
        self.follows.send_replace(follows);
        if !std::mem::replace(&mut self.is_screen, true) {
            self.shared.attached.send_modify(|attached| attached.screens += 1);
        }
        let known = pods.iter().filter(|pod| self.shared.any_pod(pod).is_some());
        let before = std::mem::replace(&mut self.pods, known.take(MAX_SHOWN).cloned().collect());
        self.shared.screens.send_modify(|screens| screens.change(&before, &self.pods));
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        if self.is_screen {
            self.change(&[], None);
            self.shared.attached.send_modify(absent_person::Attached::screen_left);
        }
    }
}

/// What the writer does when a request has ended.
enum Outcome {
    Reply(Result<Event, Refusal>),
    /// The connection watches from now on.
    Watch(ScreenFeed),
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::Reply(Err(refusal))
    }
}

/// The context of the requests of a connection.
struct To<'a> {
    shared: &'a Shared,
    supervisor: &'a mpsc::Sender<supervisor::Step>,
    followed: Follows,
    /// Dropped when the connection is closed and its requests have ended.
    left_behind: Arc<LeftBehind>,
    /// Cancelled when the connection is closed.
    gone: CancellationToken,
}

/// A client in this process, over a pipe that speaks the host socket's lines.
pub(crate) async fn over_pipe(
    shared: &Shared,
    supervisor: &mpsc::Sender<supervisor::Step>,
) -> Result<(Client, Events), ConnectError> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    tokio::spawn(serve(theirs, shared.clone(), supervisor.clone(), Arc::default()));
    Client::over(ours).await
}

/// Serves until the client sends nothing more and has its replies, or reads nothing more. `greeted` says from when on the
/// client has said who it is.
pub(crate) async fn serve<S>(
    stream: S,
    shared: Shared,
    supervisor: mpsc::Sender<supervisor::Step>,
    greeted: Arc<AtomicBool>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    if let Some(counted) = Counted::new(shared) {
        serve_counted(stream, counted, supervisor, greeted).await;
    }
}

/// As [`serve`], a connection that is counted already.
pub(crate) async fn serve_counted<S>(
    stream: S,
    counted: Counted,
    supervisor: mpsc::Sender<supervisor::Step>,
    has_greeted: Arc<AtomicBool>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let shared = counted.0.clone();
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = Lines::new(reader, MAX_LINE);
    if write(&mut writer, &Hello::line()).await.is_err() {
        return;
    }
    match greeted(&mut lines, &mut writer).await {
        Some(ClientKind::Brief) => {}
        Some(ClientKind::Lasting) => {
            shared.connections.send_modify(|connections| connections.is_lasting = true);
        }
        None => return,
    }
    has_greeted.store(true, Ordering::Relaxed);
    let (requests, replies) = Requests::new();
    let (gone, writer_ended) = oneshot::channel();
    let (follows, followed) = Follows::new();
    let feed = Feed { shared: shared.clone(), follows: followed.clone(), lines: None };
    let writing = tokio::spawn(async move {
        // A client that cannot be written to is gone; its requests run to their end.
        let _ = write_on(&mut writer, replies, feed).await;
        let _ = gone.send(());
    });
    let left_behind = Arc::new(LeftBehind::new(shared.clone(), supervisor.clone()));
    let gone = CancellationToken::new();
    let is_open = gone.clone().drop_guard();
    let to = To { shared: &shared, supervisor: &supervisor, followed, left_behind, gone };
    let showing = Showing { shared: shared.clone(), pods: Vec::new(), follows, is_screen: false };
    tokio::select! {
        () = read_on(&mut lines, requests, to, showing) => {}
        _ = writer_ended => {}
        // Without its supervisor the host can do nothing more for this client.
        () = shared.failed() => {}
    }
    drop(is_open);
    // A panic of the writer has ended the connection, too.
    let _ = writing.await;
    drop(counted);
    // The last client of a host that ends now sees its connection close when the host is gone.
    idle_exit::until_it_stays(&shared).await;
}

/// Begins the request of each line until the client sends nothing more.
async fn read_on<R: AsyncRead + Unpin>(
    lines: &mut Lines<R>,
    requests: Requests<Outcome>,
    to: To<'_>,
    mut showing: Showing,
) {
    // Requests count as a person's until the connection says that it belongs to a client.
    let mut client = None;
    loop {
        match lines.next().await {
            Ok(Some(Frame::Line(line))) => {
                begin(&line, &requests, &to, &mut client, &mut showing).await;
            }
            Ok(Some(Frame::TooLong(bytes))) => requests.refuse(None, too_long(bytes)).await,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn begin(
    line: &[u8],
    requests: &Requests<Outcome>,
    to: &To<'_>,
    by: &mut Option<Result<Arc<client::Acting>, Refusal>>,
    showing: &mut Showing,
) {
    let Incoming { id, pod, method } = match Incoming::decode(line) {
        Ok(incoming) => incoming,
        Err(error) => {
            let refusal = Refusal::invalid(error.to_string());
            return requests.refuse(error.id, refusal).await;
        }
    };
    if let Method::ActAs(as_client) = method {
        // No later request of this connection counts as a person's, even if this one is refused.
        let before = by.as_ref().and_then(|before| before.as_ref().ok());
        let acting = client::Acting::new(as_client, before.map(Arc::as_ref), to.shared);
        let reply = acting.as_ref().map(|_| Event::done()).map_err(Clone::clone);
        *by = Some(acting);
        return requests.begin(id, 0, Size::Small, std::future::ready(Outcome::Reply(reply))).await;
    }
    if let (Method::Watch, None, None) = (&method, &pod, &by) {
        let (shared, followed) = (to.shared.clone(), to.followed.clone());
        let watch = async move {
            look_at_settings(shared.clone()).await;
            Outcome::Watch(shared.subscribe(followed))
        };
        return requests.begin(id, 0, Size::Small, watch).await;
    }
    if let (Method::Show { pods, follows }, None, None) = (&method, &pod, &by) {
        showing.change(pods, follows.clone());
        let reply = std::future::ready(Outcome::Reply(Ok(Event::done())));
        return requests.begin(id, 0, Size::Small, reply).await;
    }
    if let (Method::Attend { attends }, None, None) = (&method, &pod, &by) {
        to.left_behind.attend(*attends);
        let reply = std::future::ready(Outcome::Reply(Ok(Event::done())));
        return requests.begin(id, 0, Size::Small, reply).await;
    }
    let (size, method) = sized(method);
    let (shared, supervisor, gone) = (to.shared.clone(), to.supervisor.clone(), to.gone.clone());
    let (left_behind, by) = (Arc::clone(&to.left_behind), by.clone());
    let receiver = pod.clone().filter(|_| matches!(method, Method::Send { .. }));
    let request = async move {
        let reply = match by {
            None => carry_out_for(&shared, &supervisor, None, pod, method, gone).await,
            Some(Ok(by)) => client::carry_out(&shared, &supervisor, by, pod, method).await,
            Some(Err(refusal)) => Err(refusal),
        };
        left_behind.note(receiver, &reply);
        Outcome::Reply(reply)
    };
    // It is as large as the largest of all verbs: on the heap it is moved by its address.
    let request = Box::pin(request.instrument(tracing::info_span!("client", id)));
    requests.begin(id, line.len(), size, request).await;
}

/// Looks at the settings for a client that watches from now on: the mistakes that it gets first are those of the file as
/// it is now. The client does not wait for a disk that hangs; it learns later what a late look finds.
async fn look_at_settings(shared: Shared) {
    let look = tokio::spawn(async move {
        shared.read_settings().await.map(drop).or_log("look at the settings");
    });
    // A look that panicked has said so in the log.
    let _ = tokio::time::timeout(LOOK, look).await;
}

/// The request with a limit on its reply.
pub(crate) fn sized(method: Method) -> (Size, Method) {
    match method {
        Method::Page { before, max_bytes } => {
            (Size::Large, Method::Page { before, max_bytes: max_bytes.min(PAGE) })
        }
        method @ (Method::Fetch { .. } | Method::ReadOutput | Method::ListRewindTargets) => {
            (Size::Large, method)
        }
        method => (Size::Small, method),
    }
}

/// Why a line that was not kept is refused.
pub(crate) fn too_long(bytes: usize) -> Refusal {
    let text = format!("invalid method: a line of {bytes} bytes is over the limit of {MAX_LINE}");
    Refusal::invalid(text)
}

/// The events for a connection.
struct Feed {
    shared: Shared,
    follows: Follows,
    /// `None` until the connection watches.
    lines: Option<ScreenFeed>,
}

impl Feed {
    /// The next line; `None` when the connection fell behind and has read what waited. Pending
    /// while it does not watch.
    async fn next(&mut self) -> Option<Queued<Arc<ScreenLine>>> {
        match &mut self.lines {
            Some(lines) => lines.next().await,
            None => std::future::pending().await,
        }
    }

    /// Subscribes anew and says that events were left out, with the family as it is now.
    fn start_over(&mut self) -> Vec<u8> {
        self.lines = Some(self.shared.subscribe(self.follows.clone()));
        let mut lines = encode_event(None, None, None, &Event::Lagged);
        // Also when there are none any more: the event that said so may be among those left out.
        lines.extend(encode_event(None, None, None, &self.shared.all_notices()));
        lines.extend(encode_event(None, None, None, &self.shared.whole_family()));
        lines.extend(self.machine());
        lines
    }

    /// How this machine takes part among others, if it does.
    fn machine(&self) -> Vec<u8> {
        let machine = self.shared.mesh.machines.view().map(Box::new);
        let event = machine.map(|machine| Event::Machine { machine: Some(machine) });
        event.map(|event| encode_event(None, None, None, &event)).unwrap_or_default()
    }

    /// The family, behind what a person has to know about the host.
    fn family(&self) -> Vec<u8> {
        let notices = self.shared.host_notices();
        let mut lines = notices.map(|event| encode_event(None, None, None, &event));
        let family = encode_event(None, None, None, &self.shared.whole_family());
        lines.get_or_insert_default().extend(family.into_iter().chain(self.machine()));
        lines.unwrap_or_default()
    }

    /// Writes a line, with those that need not wait either.
    async fn write_ready<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        first: Queued<Arc<ScreenLine>>,
    ) -> io::Result<()> {
        let Some(lines) = self.lines.as_mut() else { return Ok(()) };
        let mut next = lines.ready();
        if next.is_none() {
            return write(writer, &first.line.line).await;
        }
        let (mut bytes, mut waiting) = (first.line.line.clone(), vec![first]);
        while let Some(line) = next {
            bytes.extend_from_slice(&line.line.line);
            // It counts as waiting until it is written.
            waiting.push(line);
            next = if bytes.len() < TOGETHER { lines.ready() } else { None };
        }
        write(writer, &bytes).await
    }

    /// Writes the events that wait now: a reply never overtakes the events that it follows. Events
    /// that come later follow the reply, so a busy family does not hold it up.
    async fn write_waiting<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<()> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        for queued in lines.waiting() {
            write(writer, &queued.line.line).await?;
        }
        if self.lines.as_ref().is_some_and(ScreenFeed::is_over) {
            write(writer, &self.start_over()).await?;
        }
        Ok(())
    }

    /// Writes the line that ends a request.
    async fn write_outcome<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        id: Option<&str>,
        outcome: Outcome,
    ) -> io::Result<()> {
        let result = match outcome {
            Outcome::Reply(result) => result,
            Outcome::Watch(lines) => {
                self.lines = Some(lines);
                let accepted = Event::done();
                write(writer, &reply_line(id, &accepted)).await?;
                return write(writer, &self.family()).await;
            }
        };
        write(writer, &reply_line(id, &result.unwrap_or_else(Event::from))).await
    }
}

/// Writes replies and events until the last reply is written.
async fn write_on<W: AsyncWrite + Unpin>(
    writer: &mut W,
    mut replies: Replies<Outcome>,
    mut feed: Feed,
) -> io::Result<()> {
    loop {
        tokio::select! {
            queued = feed.next() => match queued {
                Some(queued) => feed.write_ready(writer, queued).await?,
                None => write(writer, &feed.start_over()).await?,
            },
            reply = replies.recv() => {
                // Events that wait come first, also before the end: they may say why it comes.
                feed.write_waiting(writer).await?;
                let Some(reply) = reply else { return Ok(()) };
                feed.write_outcome(writer, reply.id.as_deref(), reply.outcome).await?;
            }
        }
    }
}

fn reply_line(id: Option<&str>, event: &Event) -> Vec<u8> {
    encode_event(id, None, None, event)
}

/// How long a client needs this host. A client that does not speak our protocol gets a refusal.
async fn greeted<R, W>(lines: &mut Lines<R>, writer: &mut W) -> Option<ClientKind>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Ok(Ok(Some(Frame::Line(line)))) = tokio::time::timeout(PATIENCE, lines.next()).await else {
        return None;
    };
    let ours = crate::protocol::PROTOCOL;
    let text = match serde_json::from_slice::<Hello>(&line) {
        Ok(Hello { hello }) if hello.protocol == ours => {
            return Some(if hello.brief { ClientKind::Brief } else { ClientKind::Lasting });
        }
        Ok(hello) => format!(
            "this host speaks protocol {ours} (version {}), the client speaks {}",
            env!("CARGO_PKG_VERSION"),
            hello.hello.protocol
        ),
        Err(_) => "the first line on this socket must be a hello".into(),
    };
    // The connection is closed right after; whether this can be read does not change that.
    let _ = write(writer, &reply_line(None, &Refusal::invalid(text).into())).await;
    None
}
