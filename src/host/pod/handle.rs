//! The handle by which others reach a Pod, and the requests that it carries. No caller waits for a
//! Pod longer than a deadline.

use crate::config::dirs::Env;
use crate::host::Answer;
use crate::host::events::{Published, Rewound};
use crate::host::pod::Granted;
use crate::host::pod::resolved::Resolved;
use crate::host::subscribers::Queue;
use crate::host::worktree;
use crate::mcp::PodServers;
use crate::protocol::mesh::MeshStanding;
use crate::protocol::{
    Alert, Begun, Event, Greeting, InFlight, Method, PodInfo, PodName, PodStatus, Refusal,
    RewindTargetId, SegmentId, SessionId, WorktreeInfo,
};
use crate::run::{ApprovalDecided, Commands, Notification};
use crate::session::Files;
use crate::store::{MailboxMessage, Relocated};
use crate::tools;
use crate::tools::jobs::Jobs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// Requests that wait for a Pod; when so many do, the next caller waits.
pub(super) const REQUESTS: usize = 64;
/// How long a Pod may take for what it knows at once.
const SHORT: Duration = Duration::from_secs(10);
/// How long a Pod may take for what reads or copies its log, which can be long.
const LONG: Duration = Duration::from_secs(60);

/// How others reach a Pod.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) name: PodName,
    pub(crate) session: SessionId,
    pub(crate) created: u64,
    pub(crate) requests: mpsc::Sender<PodRequest>,
    pub(crate) info: watch::Receiver<PodInfo>,
    /// What the Pod holds; the supervisor is the only writer. Tools look here at each call.
    pub(crate) granted: Arc<watch::Sender<Granted>>,
    /// The commands that the Pod runs.
    pub(crate) commands: Commands,
    /// Those that it runs in the background.
    pub(crate) jobs: Jobs,
    /// The MCP servers that the Pod uses.
    pub(crate) servers: PodServers,
}

/// What the host asks of a Pod's actor, and the facts that it tells the actor.
pub(crate) enum PodRequest {
    Call {
        method: Method,
        /// The Pod that asks; `None` is a person.
        by: Option<PodName>,
        answer: Answer,
    },
    /// As the method to rewind, for a reader that is sent the log.
    Rewind {
        target: RewindTargetId,
        expected: usize,
        answer: oneshot::Sender<Result<Arc<Rewound>, Refusal>>,
    },
    /// Everything that a new reader of the Pod socket needs, taken at one instant. A Pod without a
    /// socket drops the answer.
    Subscribe { answer: oneshot::Sender<Subscription> },
    /// Where the transcript lies and how far it may be shown.
    View { answer: oneshot::Sender<View> },
    /// Become live, as the store says already; the notes are for a person.
    /// `host_starts`: the Pod was live when the last host ended.
    GoLive { notes: Vec<String>, host_starts: bool, answer: Answer },
    /// Take no more requests and end the run, within 5 s.
    PrepareStop { answer: oneshot::Sender<()> },
    /// As `PrepareStop` for a Pod that has nothing to do; a busy one goes on. The answer says whether
    /// the stop is prepared.
    PrepareStopIfIdle { answer: oneshot::Sender<bool> },
    /// The stop that was prepared is refused: take requests again.
    StopRefused,
    /// Store what became of the working tree.
    ChangeWorktree { change: worktree::Change, answer: oneshot::Sender<Result<(), Refusal>> },
    /// The context of a command of the Pod.
    CommandContext { answer: oneshot::Sender<tools::Context> },
    /// What a child takes over from the Pod.
    Parental { answer: oneshot::Sender<Parental> },
    /// A fact that the actor has to know; answer when it is shown.
    Fact { fact: Fact, answer: oneshot::Sender<()> },
    /// Panic, as a mistake in the program would.
    #[cfg(test)]
    Panic,
    /// The host ends: pause the run and close everything; the next start brings the Pod back.
    HostEnds { answer: oneshot::Sender<()> },
}

/// Something that is true already, whatever the actor of the Pod does about it.
#[derive(Debug)]
pub(crate) enum Fact {
    /// The lease table changed what the Pod holds.
    Regranted,
    /// Something changed for the Pod that a person has to know.
    Notice(String),
    /// The first message of the Pod is committed, and the family lists it.
    Listed,
    /// The store says that the Pod is stopped.
    Stopped,
    /// The parent of the Pod was deleted.
    Orphaned,
    /// The Pod is an ordinary one from now on.
    Kept,
    /// The store says where the Pod works from now on, and with which scope.
    Relocated(Box<Relocated>),
    /// An event of a child is in the Pod's mailbox.
    ChildEvent(MailboxMessage),
    /// The message about a command in the background that has ended is in the Pod's mailbox.
    JobEnded(MailboxMessage),
    /// Messages of agents or peers are in the Pod's mailbox.
    Delivered(Vec<MailboxMessage>),
    /// A person had the Pod join the mesh, or leave it.
    MeshChosen(bool),
    /// A person sent this message in the name of the Pod, or one that the Pod sent has arrived.
    Noted(Notification),
    /// A message of an agent was not taken, and its sender does not learn of it; the sentence says which and why.
    AgentRefused(String),
    /// How the Pod takes part in the mesh now.
    Mesh(MeshStanding),
    /// The program that attended this message is gone.
    SenderGone(Begun),
    /// The store holds the decision on the Pod's approval request.
    ApprovalDecided(ApprovalDecided),
    /// The socket of the Pod vanished.
    SocketVanished,
    /// What changed in the working tree of the Pod; `None` if git could not say it.
    LinesCounted(Option<Box<WorktreeInfo>>),
}

/// What a child takes over from its parent unless its spawn says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Parental {
    pub(crate) cwd: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) resolved: Resolved,
    pub(crate) env: Env,
}

/// Where a transcript stands.
pub(crate) struct View {
    pub(crate) files: Files,
    pub(crate) segment: Option<SegmentId>,
    /// How many bytes of the segment have been published.
    pub(crate) end: Option<u64>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) seq: u64,
}

/// Where a reader of a Pod socket begins.
pub(crate) struct Subscription {
    pub(crate) view: View,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) greeting: Greeting,
    pub(crate) status: PodStatus,
    pub(crate) events: Queue<Published>,
}

impl Handle {
    /// Carries out a method in the name of a person.
    pub(crate) async fn call(&self, method: Method) -> Result<Event, Refusal> {
        self.call_by(None, method).await
    }

    /// As [`Handle::call`], in the name of a Pod.
    pub(crate) async fn call_by(
        &self,
        by: Option<PodName>,
        method: Method,
    ) -> Result<Event, Refusal> {
        self.request(LONG, |answer| PodRequest::Call { method, by, answer }).await?
    }

    /// Goes back to before an input.
    pub(crate) async fn rewind(
        &self,
        target: RewindTargetId,
        expected: usize,
    ) -> Result<Arc<Rewound>, Refusal> {
        self.request(LONG, |answer| PodRequest::Rewind { target, expected, answer }).await?
    }

    pub(crate) async fn live(&self, notes: Vec<String>) -> Result<Event, Refusal> {
        self.go_live(notes, false).await
    }

    /// Brings back a Pod that was live when the last host ended, in the state that its log says.
    pub(crate) async fn live_as_before(&self) -> Result<Event, Refusal> {
        self.go_live(Vec::new(), true).await
    }

    async fn go_live(&self, notes: Vec<String>, host_starts: bool) -> Result<Event, Refusal> {
        self.request(LONG, |answer| PodRequest::GoLive { notes, host_starts, answer }).await?
    }

    pub(crate) async fn parental(&self) -> Result<Parental, Refusal> {
        self.request(SHORT, |answer| PodRequest::Parental { answer }).await
    }

    /// The context of a command that the Pod begins now.
    pub(crate) async fn command_context(&self) -> Result<tools::Context, Refusal> {
        self.request(SHORT, |answer| PodRequest::CommandContext { answer }).await
    }

    /// Resolves when the store has what became of the working tree of the Pod.
    pub(crate) async fn change_worktree(&self, change: worktree::Change) -> Result<(), Refusal> {
        self.request(SHORT, |answer| PodRequest::ChangeWorktree { change, answer }).await?
    }

    pub(crate) async fn view(&self) -> Result<View, Refusal> {
        self.request(SHORT, |answer| PodRequest::View { answer }).await
    }

    /// Subscribes to the events of the Pod, for a reader of its socket.
    pub(crate) async fn subscribe(&self) -> Result<Subscription, Refusal> {
        self.request(LONG, |answer| PodRequest::Subscribe { answer }).await
    }

    /// Resolves when the run has ended, or the Pod is too busy to end it. Then the stop that
    /// follows ends it.
    pub(crate) async fn prepare_stop(&self) {
        let _ = self.request(SHORT, |answer| PodRequest::PrepareStop { answer }).await;
    }

    /// Prepares the stop of a Pod that has nothing to do. False if it is busy.
    pub(crate) async fn prepare_stop_if_idle(&self) -> bool {
        let prepared = self.request(SHORT, |answer| PodRequest::PrepareStopIfIdle { answer });
        prepared.await.unwrap_or(false)
    }

    /// The stop that was prepared is refused. A Pod that is gone needs no word of it.
    pub(crate) async fn stop_refused(&self) {
        let _ = self.requests.send(PodRequest::StopRefused).await;
    }

    /// Resolves when the Pod has closed everything, or is too busy to. Then the end of the process
    /// closes it.
    pub(crate) async fn host_ends(&self) {
        let _ = self.request(SHORT, |answer| PodRequest::HostEnds { answer }).await;
    }

    /// Sends a request and waits for its answer, no longer than `limit`.
    async fn request<T>(
        &self,
        limit: Duration,
        request: impl FnOnce(oneshot::Sender<T>) -> PodRequest,
    ) -> Result<T, Refusal> {
        let deadline = Instant::now() + limit;
        let (answer, reply) = oneshot::channel();
        match timeout_at(deadline, self.requests.send(request(answer))).await {
            Ok(sent) => sent.map_err(|_| self.gone())?,
            Err(_) => return Err(self.too_busy()),
        }
        match timeout_at(deadline, reply).await {
            Ok(reply) => reply.map_err(|_| self.gone()),
            Err(_) => Err(self.late(limit)),
        }
    }

    /// Tells the Pod a fact; resolves when the Pod has shown it. A Pod that is late shows it later,
    /// and no caller waits for that longer than [`SHORT`].
    pub(crate) async fn tell(&self, fact: Fact) {
        let (answer, shown) = oneshot::channel();
        self.hand_over(PodRequest::Fact { fact, answer }).await;
        let _ = timeout(SHORT, shown).await;
    }

    /// Tells the Pod a fact and does not wait until it has shown it.
    pub(crate) async fn post(&self, fact: Fact) {
        let (answer, _) = oneshot::channel();
        self.hand_over(PodRequest::Fact { fact, answer }).await;
    }

    /// Whether no request and no fact waits for the Pod.
    pub(crate) fn has_no_request(&self) -> bool {
        self.requests.capacity() == self.requests.max_capacity()
    }

    /// Puts a fact into the Pod's queue. Where the queue is full, a task of its own keeps the place
    /// in the order, so that the fact is not lost.
    async fn hand_over(&self, fact: PodRequest) {
        let requests = self.requests.clone();
        // A Pod that is gone reads the fact from the store at its next start.
        let mut sending = Box::pin(async move { drop(requests.send(fact).await) });
        if futures_util::poll!(&mut sending).is_pending() {
            tokio::spawn(sending);
        }
    }

    fn gone(&self) -> Refusal {
        Refusal::internal(format!("pod `{}` is gone", self.name))
    }

    fn too_busy(&self) -> Refusal {
        let name = &self.name;
        Refusal::internal(format!(
            "pod `{name}` took no request, because {REQUESTS} wait for it already; nothing was \
             changed, so try again in a moment"
        ))
    }

    fn late(&self, limit: Duration) -> Refusal {
        let (name, seconds) = (&self.name, limit.as_secs());
        Refusal::internal(format!(
            "pod `{name}` did not answer within {seconds} s and may still carry the request out; \
             look at the pod before you repeat it, and if it stays silent, `yoi host stop` and a \
             new start bring it back"
        ))
    }
}
