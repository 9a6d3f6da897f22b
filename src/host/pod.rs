//! One Pod's actor: it owns what the Pod is, starts and ends its runs, numbers its events, and
//! answers what it is asked. It awaits no run and no caller.

use crate::config::dirs::Env;
use crate::host::events::{Published, Publisher, Rewound};
use crate::host::pod::life::Resolved;
use crate::host::subscribers::Queue;
use crate::host::{Answer, Shared};
use crate::protocol::Lent;
use crate::protocol::{
    Alert, Entry, Event, Greeting, InFlight, Method, PodInfo, PodName, PodStatus, Queued, Refusal,
    RewindTargetId, SegmentId, SessionId, State,
};
use crate::run::{ApprovalDecided, Commands, End, Interrupt, RunEvent, SessionState};
use crate::scope::Scope;
use crate::session::Files;
use crate::store::{MailboxMessage, PodRow, Wanted};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) mod approval;
mod calls;
pub(crate) mod life;
mod child_events;
mod fault;
mod rewind;
pub(crate) mod runs;
pub(crate) mod tail;

/// Orders that wait for a Pod; when it is full the asker waits.
const ORDERS: usize = 64;
/// How long a turn may take to end by itself when its Pod is stopped.
const TO_FINISH: Duration = Duration::from_secs(5);
/// How long a Pod may take to answer what it knows at once.
const SHORT: Duration = Duration::from_secs(10);
/// How long a Pod may take to become live, with a long log to look at.
const LONG: Duration = Duration::from_secs(60);
/// How long an idle Pod keeps its log open.
const CLOSE_AFTER: Duration = Duration::from_secs(10);

/// How others reach a Pod.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) name: PodName,
    pub(crate) session: SessionId,
    pub(crate) created: u64,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) info: watch::Receiver<PodInfo>,
    /// What it holds; the supervisor is the only writer. Tools look here at each call.
    pub(crate) granted: Arc<watch::Sender<Granted>>,
    /// What it runs.
    pub(crate) commands: Commands,
}

/// What a Pod is asked.
pub(crate) enum Order {
    Call {
        method: Method,
        /// The Pod that asks; `None` is a person.
        by: Option<PodName>,
        answer: Answer,
    },
    /// As the request to rewind, for a reader that is sent the log.
    Rewind {
        target: RewindTargetId,
        expected: usize,
        answer: oneshot::Sender<Result<Arc<Rewound>, Refusal>>,
    },
    /// Everything a new reader of the Pod socket needs, taken at one instant. A Pod that has no
    /// socket any more does not answer.
    Subscribe { answer: oneshot::Sender<Subscription> },
    /// Where the transcript lies and how far it may be shown.
    Look { answer: oneshot::Sender<View> },
    /// Take the place among the living that the supervisor has made; the notes say what a person
    /// should know.
    Live { notes: Vec<String>, answer: Answer },
    /// What it holds has changed: answer when that is shown.
    Regranted { answer: oneshot::Sender<()> },
    /// It has its first message and is listed now.
    Listed { answer: oneshot::Sender<()> },
    /// Take no more orders and end the turn, within [`TO_FINISH`].
    LetGo { answer: oneshot::Sender<()> },
    /// The store says that it is stopped.
    Stopped { answer: oneshot::Sender<()> },
    /// Its parent was deleted.
    Orphaned { answer: oneshot::Sender<()> },
    /// What a child of it takes over.
    Parental { answer: oneshot::Sender<Parental> },
    /// News of a child, which the mailbox holds already.
    ChildEvent { row: MailboxMessage, answer: oneshot::Sender<()> },
    /// A person answered what the Pod asked; the store holds it.
    ApprovalDecided { answered: ApprovalDecided, answer: oneshot::Sender<()> },
    /// Make the socket anew; it vanished.
    Reopen,
    /// Panic, as a fault in the program would.
    #[cfg(test)]
    Panic,
    /// The host ends: pause what runs, close everything, stay wanted.
    Leave { answer: oneshot::Sender<()> },
}

/// How an actor begins.
#[derive(Clone, Debug)]
pub(crate) enum Birth {
    /// The Pod was there before this host, with these messages in its queue.
    Restarted { queue: Vec<Queued> },
    /// A person makes it; its commands get this environment.
    New { env: Env },
    /// A parent makes it. Until its first message is committed it is not listed, serves that parent
    /// only, and can be discarded without a trace.
    Child { env: Env },
}

/// What a Pod holds by the lease table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Granted {
    /// What it asks for, while it is not live.
    pub(crate) scope: Scope,
    pub(crate) lent: Vec<Lent>,
    /// Where it reads although it asked for write, in sentences.
    pub(crate) notes: Vec<String>,
}

/// What a child takes over from its parent unless it is told otherwise.
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
    /// How much of the segment has been told.
    pub(crate) end: Option<u64>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) seq: u64,
}

/// A reader of a Pod socket begins here.
pub(crate) struct Subscription {
    pub(crate) view: View,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) greeting: Greeting,
    pub(crate) status: PodStatus,
    pub(crate) events: Queue<Published>,
}

/// The actor's own state.
pub(crate) struct Pod {
    shared: Shared,
    row: PodRow,
    granted: Arc<watch::Sender<Granted>>,
    commands: Commands,
    /// What a person should know since it became live, beside what concerns its scope.
    notes: Vec<String>,
    files: Files,
    info: watch::Sender<PodInfo>,
    publisher: Publisher,
    resolved: Resolved,
    /// What clients offered; never written.
    env: Env,
    run: Option<Running>,
    /// What the turn waits for a person for.
    question: Option<approval::Waiting>,
    session_state: Option<SessionState>,
    close_at: Option<Instant>,
    /// How much of the segment has been told, while this process knows.
    end: Option<u64>,
    listener: Option<JoinHandle<()>>,
    /// Who waits for the running turn to end before the Pod stops.
    letting_go: Vec<oneshot::Sender<()>>,
    /// When a turn that does not end by itself is ended.
    end_at: Option<Instant>,
    /// It has let go and is being stopped.
    released: bool,
    /// Its first message is not committed: it serves its parent only and is not shown.
    newborn: bool,
    leaving: Option<oneshot::Sender<()>>,
    /// How this Pod's own readers reach it; weak, so that the actor ends with its last handle.
    orders: mpsc::WeakSender<Order>,
    /// A reader of this Pod's socket asks the supervisor through it.
    supervisor: mpsc::WeakSender<crate::host::supervisor::Step>,
}

/// A run under way.
struct Running {
    task: JoinHandle<(Option<SessionState>, End)>,
    out: mpsc::Receiver<RunEvent>,
    interrupt: watch::Sender<Interrupt>,
    mailbox: mpsc::Sender<MailboxMessage>,
    answers: mpsc::Sender<ApprovalDecided>,
    /// Queued inputs that the run was given and may take at any moment.
    handed: BTreeSet<String>,
    /// Those that its log holds; the store may not say so yet.
    taken: BTreeSet<String>,
    /// Who waits for the run to have halted.
    interrupting: Vec<Answer>,
    /// The entry that ended it, once that is told.
    ended: Option<Entry>,
}

impl Handle {
    /// Sends an order and waits for its answer.
    pub(crate) async fn call(&self, method: Method) -> Result<Event, Refusal> {
        self.call_by(None, method).await
    }

    /// As [`Handle::call`], in the name of a Pod.
    pub(crate) async fn call_by(
        &self,
        by: Option<PodName>,
        method: Method,
    ) -> Result<Event, Refusal> {
        let (answer, reply) = oneshot::channel();
        self.orders.send(Order::Call { method, by, answer }).await.map_err(|_| self.gone())?;
        reply.await.map_err(|_| self.gone())?
    }

    /// Goes back to before an input.
    pub(crate) async fn rewind(
        &self,
        target: RewindTargetId,
        expected: usize,
    ) -> Result<Arc<Rewound>, Refusal> {
        let (answer, reply) = oneshot::channel();
        let order = Order::Rewind { target, expected, answer };
        self.orders.send(order).await.map_err(|_| self.gone())?;
        reply.await.map_err(|_| self.gone())?
    }

    pub(crate) async fn live(&self, notes: Vec<String>) -> Result<Event, Refusal> {
        let (answer, reply) = oneshot::channel();
        self.approval(LONG, Order::Live { notes, answer }, reply).await?
    }

    pub(crate) async fn parental(&self) -> Result<Parental, Refusal> {
        let (answer, reply) = oneshot::channel();
        self.approval(SHORT, Order::Parental { answer }, reply).await
    }

    /// Sends an order and waits for what comes of it, no longer than `limit`.
    async fn approval<T>(
        &self,
        limit: Duration,
        order: Order,
        reply: oneshot::Receiver<T>,
    ) -> Result<T, Refusal> {
        let approval = async {
            self.orders.send(order).await.map_err(|_| self.gone())?;
            reply.await.map_err(|_| self.gone())
        };
        let late = |_| {
            let text = format!("pod `{}` did not answer within {} s", self.name, limit.as_secs());
            Refusal::internal(text)
        };
        tokio::time::timeout(limit, approval).await.map_err(late)?
    }

    fn gone(&self) -> Refusal {
        Refusal::internal(format!("pod `{}` is gone", self.name))
    }

    /// Resolves when every screen is told what the Pod holds now, or the Pod is too busy to say.
    pub(crate) async fn regranted(&self) {
        self.wait_for(|answer| Order::Regranted { answer }).await;
    }

    pub(crate) async fn listed(&self) {
        self.wait_for(|answer| Order::Listed { answer }).await;
    }

    pub(crate) async fn let_go(&self) {
        self.wait_for(|answer| Order::LetGo { answer }).await;
    }

    pub(crate) async fn stopped(&self) {
        self.wait_for(|answer| Order::Stopped { answer }).await;
    }

    pub(crate) async fn orphaned(&self) {
        self.wait_for(|answer| Order::Orphaned { answer }).await;
    }

    pub(crate) async fn look(&self) -> Option<View> {
        let (answer, view) = oneshot::channel();
        self.approval(SHORT, Order::Look { answer }, view).await.ok()
    }

    pub(crate) async fn subscribe(&self) -> Option<Subscription> {
        let (answer, subscription) = oneshot::channel();
        self.orders.send(Order::Subscribe { answer }).await.ok()?;
        subscription.await.ok()
    }

    /// Hands on news of a child; resolves when the Pod has taken them up, or does not. Only from a
    /// child to its parent: nobody who is waited for here waits for that child.
    pub(crate) async fn child_event(&self, row: MailboxMessage) {
        // A Pod that ends meanwhile finds the news in its mailbox.
        self.wait_for(|answer| Order::ChildEvent { row, answer }).await;
    }

    /// Hands a person's answer over; resolves when the Pod has told of it.
    pub(crate) async fn answered(&self, answered: ApprovalDecided) {
        let (answer, reply) = oneshot::channel();
        if self.orders.send(Order::ApprovalDecided { answered, answer }).await.is_ok() {
            // A Pod that is gone finds the answer in the store.
            let _ = reply.await;
        }
    }

    /// Waits until the Pod has let go of everything.
    pub(crate) async fn leave(&self) {
        self.wait_for(|answer| Order::Leave { answer }).await;
    }

    /// Sends an order and waits until it is carried out, or for so long that it is not waited for
    /// any more.
    async fn wait_for(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) {
        let (answer, done) = oneshot::channel();
        // A Pod that is gone has nothing left to carry out; one that is late does it later.
        let _ = self.approval(SHORT, order(answer), done).await;
    }
}

/// Starts the actor of a Pod, stopped; [`Order::Live`] makes it live.
pub(crate) fn spawn(
    shared: &Shared,
    supervisor: mpsc::WeakSender<crate::host::supervisor::Step>,
    row: PodRow,
    granted: Arc<watch::Sender<Granted>>,
    birth: Birth,
) -> Handle {
    let (orders, inbox) = mpsc::channel(ORDERS);
    let resolved = life::Resolved::read(&row.config);
    let newborn = matches!(birth, Birth::Child { .. });
    let (queue, env) = match birth {
        Birth::Restarted { queue } => (queue, row.env.clone()),
        Birth::New { env } | Birth::Child { env } => {
            crate::trace::secrets::register_environment(&env);
            let mut all = row.env.clone();
            all.extend(env);
            (Vec::new(), all)
        }
    };
    let info = life::info(&row, &resolved, queue);
    let (name, session, created) = (row.name.clone(), row.session, row.created);
    let (info, watched) = watch::channel(info);
    let files = Files::new(&shared.dirs.data, row.session);
    let commands = Commands::default();
    let pod = Pod {
        publisher: Publisher::new(name.clone(), shared.clone()),
        shared: shared.clone(),
        files,
        info,
        resolved,
        granted: granted.clone(),
        commands: commands.clone(),
        notes: Vec::new(),
        env,
        row,
        run: None,
        question: None,
        session_state: None,
        close_at: None,
        end: None,
        listener: None,
        letting_go: Vec::new(),
        end_at: None,
        released: false,
        newborn,
        leaving: None,
        orders: orders.downgrade(),
        supervisor,
    };
    tokio::spawn(pod.serve(inbox));
    Handle { name, session, created, orders, info: watched, granted, commands }
}

impl Pod {
    /// Serves orders and follows the run, until every handle is gone.
    async fn live_on(&mut self, inbox: &mut mpsc::Receiver<Order>) {
        let mut granted = self.granted.subscribe();
        loop {
            let close_at = self.close_at.unwrap_or_else(Instant::now);
            let end_at = self.end_at.unwrap_or_else(Instant::now);
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(order) => self.order(order).await,
                    None => break,
                },
                out = next(&mut self.run) => self.on_run_event(out).await,
                Ok(()) = granted.changed() => self.show_granted(),
                () = tokio::time::sleep_until(close_at), if self.close_at.is_some() => {
                    self.close_log().await;
                }
                () = tokio::time::sleep_until(end_at), if self.end_at.is_some() => {
                    self.end_run();
                }
            }
        }
        self.close_log().await;
    }

    async fn order(&mut self, order: Order) {
        match order {
            Order::Call { method, by, answer } => self.call(method, by, answer).await,
            Order::Rewind { target, expected, answer } => {
                // An asker that is gone wants no answer.
                let _ = answer.send(self.rewind(target, expected).await);
            }
            Order::Subscribe { answer } => {
                if self.listener.is_some() {
                    // A reader that is gone needs nothing.
                    let _ = answer.send(self.subscription());
                }
            }
            Order::Look { answer } => {
                let _ =
                    answer.send(View { in_flight: self.publisher.in_flight_tail(), ..self.view() });
            }
            Order::Live { notes, answer } => self.go_live(notes, answer).await,
            Order::Regranted { answer } => {
                self.show_granted();
                let _ = answer.send(());
            }
            Order::Listed { answer } => {
                self.newborn = false;
                self.show_info();
                let _ = answer.send(());
            }
            Order::LetGo { answer } => self.let_go(answer).await,
            Order::Stopped { answer } => {
                self.stopped().await;
                let _ = answer.send(());
            }
            Order::Orphaned { answer } => {
                self.row.parent = None;
                self.change(|info| info.parent = None);
                let _ = answer.send(());
            }
            Order::Parental { answer } => {
                let (cwd, workspace) = (self.row.cwd.clone(), self.row.workspace.clone());
                let (resolved, env) = (self.resolved.clone(), self.env.clone());
                let _ = answer.send(Parental { cwd, workspace, resolved, env });
            }
            Order::ChildEvent { row, answer } => {
                self.child_event(row).await;
                let _ = answer.send(());
            }
            Order::ApprovalDecided { answered, answer } => {
                self.answered(answered).await;
                // The answering side may have gone.
                let _ = answer.send(());
            }
            Order::Reopen => self.reopen(),
            #[cfg(test)]
            Order::Panic => panic!("on purpose"),
            Order::Leave { answer } => self.leave(answer).await,
        }
    }

    fn view(&self) -> View {
        View {
            files: self.files.clone(),
            segment: self.row.segment,
            end: self.end,
            in_flight: self.publisher.in_flight.clone(),
            seq: self.publisher.seq,
        }
    }

    fn subscription(&mut self) -> Subscription {
        let info = self.info.borrow().clone();
        let (wire, model) = match &self.resolved.model {
            Some(choice) => (choice.model.wire.name().to_owned(), choice.model.model.clone()),
            None => (String::new(), String::new()),
        };
        Subscription {
            greeting: Greeting {
                pod_name: self.row.name.to_string(),
                cwd: self.row.cwd.display().to_string(),
                provider: wire,
                model,
                scope_summary: self.granted.borrow().scope.summary(),
                tools: self.shared.tools.borrow().names(),
                context_window: info.context_window,
                context_tokens: info.context_tokens,
            },
            alerts: self.publisher.alerts.iter().cloned().collect(),
            status: self.status(),
            events: self.publisher.reader(),
            view: self.view(),
        }
    }

    /// The status in the words of the frozen wire.
    fn status(&self) -> PodStatus {
        self.shared.status(&self.info.borrow())
    }

    fn is_live(&self) -> bool {
        let ending = self.leaving.is_some() || self.end_at.is_some() || self.released;
        self.row.wanted == Wanted::Live && self.listener.is_some() && !ending
    }

    /// Changes what is known about the Pod, and tells every screen when it did change.
    fn change(&mut self, change: impl FnOnce(&mut PodInfo)) {
        let seq = self.publisher.seq;
        let changed = self.info.send_if_modified(|info| {
            let before = info.clone();
            change(info);
            if info.state != before.state {
                info.since = crate::protocol::now_ms();
            }
            info.seq = seq;
            *info != before
        });
        if changed {
            self.show_info();
        }
    }

    /// Tells every screen what is known about the Pod, once it is listed.
    fn show_info(&self) {
        if !self.newborn {
            let info = Box::new(self.info.borrow().clone());
            self.shared.feed(None, None, &Event::PodChanged { info });
        }
    }

    /// Enters a state. Whatever a stopped Pod's last turn leaves behind does not show it as living.
    fn enter(&mut self, state: State, why: Option<String>) {
        if self.row.wanted == Wanted::Live || state == State::Stopped {
            self.show(state, why);
        }
    }

    /// Shows a state, and says so on the wire when its word there changes.
    fn show(&mut self, state: State, why: Option<String>) {
        let before = self.status();
        self.change(|info| {
            info.state = state;
            info.why = why;
        });
        let status = self.status();
        if status != before {
            self.publisher.publish(&Event::Status { status });
        }
    }

    async fn close_log(&mut self) {
        self.close_at = None;
        if let Some(session_state) = self.session_state.take() {
            session_state.close().await;
        }
    }
}

/// What the run says next; `None` when it has ended. Pending while none is under way.
async fn next(run: &mut Option<Running>) -> Option<RunEvent> {
    match run {
        Some(run) => run.out.recv().await,
        None => std::future::pending().await,
    }
}
