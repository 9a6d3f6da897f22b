//! One Pod's actor: it owns what the Pod is, starts and ends its runs, numbers its events, and
//! answers what it is asked. It awaits no run and no caller.

use crate::config::dirs::Env;
use crate::host::told::{Teller, Told};
use crate::host::{Answer, Shared};
use crate::protocol::{
    Alert, Event, Greeting, InFlight, Method, PodInfo, PodName, PodStatus, SegmentId, State,
};
use crate::scope::Scope;
use crate::session::Files;
use crate::store::{PodRow, Wanted};
use crate::turn::{End, Halt, Mind, Out};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

mod calls;
pub(crate) mod life;
mod rewind;
mod runs;
mod tail;

/// Orders that wait for a Pod; when it is full the asker waits.
const ORDERS: usize = 64;
/// How long an idle Pod keeps its log open.
const CLOSE_AFTER: Duration = Duration::from_secs(10);

/// How others reach a Pod.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) name: PodName,
    pub(crate) created: u64,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) info: watch::Receiver<PodInfo>,
}

/// What a Pod is asked.
pub(crate) enum Order {
    Call {
        method: Method,
        answer: Answer,
    },
    /// Everything a new reader of the Pod socket needs, taken at one instant.
    Subscribe {
        answer: oneshot::Sender<Subscription>,
    },
    /// Where the transcript lies and how far it may be shown.
    Look {
        answer: oneshot::Sender<View>,
    },
    /// Become live with this scope; the notes say what a person should know about it.
    Live {
        grant: Grant,
        answer: Answer,
    },
    /// Make the socket anew; it vanished.
    Reopen,
    /// The host ends: pause what runs, close everything, stay wanted.
    Leave {
        answer: oneshot::Sender<()>,
    },
}

/// The scope a Pod goes live with.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) scope: Scope,
    pub(crate) notes: Vec<String>,
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
    pub(crate) told: broadcast::Receiver<Told>,
}

/// The actor's own state.
pub(crate) struct Pod {
    shared: Shared,
    row: PodRow,
    /// What it got of the scope it wants.
    granted: Scope,
    files: Files,
    info: watch::Sender<PodInfo>,
    teller: Teller,
    model: Option<crate::config::choice::Choice>,
    max_turns: u32,
    /// What clients offered; never written.
    env: Env,
    run: Option<Running>,
    mind: Option<Mind>,
    close_at: Option<Instant>,
    /// How much of the segment has been told, while this process knows.
    end: Option<u64>,
    door: Option<JoinHandle<()>>,
    /// Who waits for the running turn to end before the Pod stops.
    stopping: Vec<Answer>,
    leaving: Option<oneshot::Sender<()>>,
    /// How this Pod's own readers reach it; weak, so that the actor ends with its last handle.
    orders: mpsc::WeakSender<Order>,
    /// A reader of this Pod's socket asks the supervisor through it.
    supervisor: mpsc::WeakSender<crate::host::supervisor::Order>,
}

/// A run under way.
struct Running {
    task: JoinHandle<(Option<Mind>, End)>,
    out: mpsc::Receiver<Out>,
    halt: watch::Sender<Halt>,
    mail: mpsc::Sender<crate::store::Mail>,
    /// Queued inputs that the run was given and may take at any moment.
    handed: BTreeSet<String>,
    /// Who waits for the run to have halted.
    halting: Vec<Answer>,
}

impl Handle {
    /// Sends an order and waits for its answer.
    pub(crate) async fn call(&self, method: Method) -> Result<Event, crate::protocol::Refusal> {
        let (answer, reply) = oneshot::channel();
        let gone = || crate::protocol::Refusal::internal(format!("pod `{}` is gone", self.name));
        self.orders.send(Order::Call { method, answer }).await.map_err(|_| gone())?;
        reply.await.map_err(|_| gone())?
    }

    pub(crate) async fn live(&self, grant: Grant) -> Result<Event, crate::protocol::Refusal> {
        let (answer, reply) = oneshot::channel();
        let gone = || crate::protocol::Refusal::internal(format!("pod `{}` is gone", self.name));
        self.orders.send(Order::Live { grant, answer }).await.map_err(|_| gone())?;
        reply.await.map_err(|_| gone())?
    }

    pub(crate) async fn look(&self) -> Option<View> {
        let (answer, view) = oneshot::channel();
        self.orders.send(Order::Look { answer }).await.ok()?;
        view.await.ok()
    }

    pub(crate) async fn subscribe(&self) -> Option<Subscription> {
        let (answer, subscription) = oneshot::channel();
        self.orders.send(Order::Subscribe { answer }).await.ok()?;
        subscription.await.ok()
    }

    /// Waits until the Pod has let go of everything.
    pub(crate) async fn leave(&self) {
        let (answer, left) = oneshot::channel();
        if self.orders.send(Order::Leave { answer }).await.is_ok() {
            // A Pod that is gone has let go.
            let _ = left.await;
        }
    }
}

/// Starts the actor of a Pod, stopped; [`Order::Live`] makes it live.
pub(crate) async fn spawn(
    shared: &Shared,
    supervisor: mpsc::WeakSender<crate::host::supervisor::Order>,
    row: PodRow,
) -> Handle {
    let (orders, inbox) = mpsc::channel(ORDERS);
    let resolved = life::Resolved::read(&row.config);
    let info = life::info(shared, &row, &resolved).await;
    let (name, created) = (row.name.clone(), row.created);
    let (info, watched) = watch::channel(info);
    let files = Files::new(&shared.dirs.data, row.session);
    let env = row.env.clone();
    let pod = Pod {
        teller: Teller::new(name.clone(), shared.clone()),
        shared: shared.clone(),
        files,
        info,
        model: resolved.model,
        max_turns: resolved.max_turns,
        granted: row.scope.clone(),
        env,
        row,
        run: None,
        mind: None,
        close_at: None,
        end: None,
        door: None,
        stopping: Vec::new(),
        leaving: None,
        orders: orders.downgrade(),
        supervisor,
    };
    tokio::spawn(pod.live_on(inbox));
    Handle { name, created, orders, info: watched }
}

impl Pod {
    /// Serves orders and follows the run, until every handle is gone.
    async fn live_on(mut self, mut inbox: mpsc::Receiver<Order>) {
        loop {
            let close_at = self.close_at.unwrap_or_else(Instant::now);
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(order) => self.order(order).await,
                    None => break,
                },
                out = next(&mut self.run) => match out {
                    Some(out) => self.follow(out).await,
                    None => self.run_ended().await,
                },
                () = tokio::time::sleep_until(close_at), if self.close_at.is_some() => {
                    self.close_log().await;
                }
            }
        }
        self.close_log().await;
    }

    async fn order(&mut self, order: Order) {
        match order {
            Order::Call { method, answer } => self.call(method, answer).await,
            Order::Subscribe { answer } => {
                let subscription = self.subscription();
                // A reader that is gone needs nothing.
                let _ = answer.send(subscription);
            }
            Order::Look { answer } => {
                let _ = answer.send(self.view());
            }
            Order::Live { grant, answer } => self.go_live(grant, answer).await,
            Order::Reopen => self.reopen(),
            Order::Leave { answer } => self.leave(answer).await,
        }
    }

    fn view(&self) -> View {
        View {
            files: self.files.clone(),
            segment: self.row.segment,
            end: self.end,
            in_flight: self.teller.in_flight.clone(),
            seq: self.teller.seq,
        }
    }

    fn subscription(&mut self) -> Subscription {
        let info = self.info.borrow().clone();
        let (wire, model) = match &self.model {
            Some(choice) => (choice.model.wire.name().to_owned(), choice.model.model.clone()),
            None => (String::new(), String::new()),
        };
        let mut tools: Vec<String> =
            crate::tools::TABLE.iter().map(|tool| tool.name.to_owned()).collect();
        tools.sort();
        Subscription {
            greeting: Greeting {
                pod_name: self.row.name.to_string(),
                cwd: self.row.cwd.display().to_string(),
                provider: wire,
                model,
                scope_summary: self.granted.summary(),
                tools,
                context_window: info.context_window,
                context_tokens: info.context_tokens,
            },
            alerts: self.teller.alerts.iter().cloned().collect(),
            status: self.status(),
            told: self.teller.reader(),
            view: self.view(),
        }
    }

    /// The status in the words of the frozen wire.
    fn status(&self) -> PodStatus {
        match self.info.borrow().state {
            State::Running => PodStatus::Running,
            State::Paused => PodStatus::Paused,
            State::NeedsYou | State::Idle | State::Stopped | State::Failed | State::Unknown => {
                PodStatus::Idle
            }
        }
    }

    fn is_live(&self) -> bool {
        self.row.wanted == Wanted::Live && self.door.is_some()
    }

    /// Changes what is known about the Pod, and tells every screen when it did change.
    fn change(&mut self, change: impl FnOnce(&mut PodInfo)) {
        let seq = self.teller.seq;
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
            let info = Box::new(self.info.borrow().clone());
            self.shared.feed(None, None, &Event::PodChanged { info });
        }
    }

    /// Enters a state, and says so on the wire when its word there changes.
    fn enter(&mut self, state: State, why: Option<String>) {
        let before = self.status();
        self.change(|info| {
            info.state = state;
            info.why = why;
        });
        let status = self.status();
        if status != before {
            self.teller.tell(&Event::Status { status });
        }
    }

    async fn close_log(&mut self) {
        self.close_at = None;
        if let Some(mind) = self.mind.take() {
            mind.close().await;
        }
    }
}

/// What the run says next; `None` when it has ended. Pending while none is under way.
async fn next(run: &mut Option<Running>) -> Option<Out> {
    match run {
        Some(run) => run.out.recv().await,
        None => std::future::pending().await,
    }
}
