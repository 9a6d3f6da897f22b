//! One Pod's actor: it owns what the Pod is, starts and ends its runs, numbers its events, and
//! answers what it is asked. It awaits no run and no caller.

use crate::config::dirs::Env;
use crate::host::events::Publisher;
use crate::host::pod::handle::REQUESTS;
use crate::host::pod::life::Resolved;
use crate::host::{Answer, Shared};
use crate::protocol::{Entry, Event, Greeting, Lent, PodInfo, PodStatus, Queued, State};
use crate::run::{ApprovalDecided, Commands, End, Interrupt, RunEvent, SessionState};
use crate::scope::Scope;
use crate::session::Files;
use crate::store::{MailboxMessage, PodRow, Wanted};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

mod handle;
pub(crate) mod approval;
mod calls;
pub(crate) mod life;
mod child_events;
mod fault;
mod rewind;
pub(crate) mod runs;
pub(crate) mod tail;

pub(crate) use handle::{Handle, Parental, PodRequest, Subscription, View};

/// How long a turn may take to end by itself when its Pod is stopped.
const TO_FINISH: Duration = Duration::from_secs(5);
/// How long an idle Pod keeps its log open.
const CLOSE_AFTER: Duration = Duration::from_secs(10);

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
    requests: mpsc::WeakSender<PodRequest>,
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

/// Starts the actor of a Pod, stopped; [`PodRequest::Live`] makes it live.
pub(crate) fn spawn(
    shared: &Shared,
    supervisor: mpsc::WeakSender<crate::host::supervisor::Step>,
    row: PodRow,
    granted: Arc<watch::Sender<Granted>>,
    birth: Birth,
) -> Handle {
    let (requests, inbox) = mpsc::channel(REQUESTS);
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
        requests: requests.downgrade(),
        supervisor,
    };
    tokio::spawn(pod.serve(inbox));
    Handle { name, session, created, requests, info: watched, granted, commands }
}

impl Pod {
    /// Serves requests and follows the run, until every handle is gone.
    async fn live_on(&mut self, inbox: &mut mpsc::Receiver<PodRequest>) {
        let mut granted = self.granted.subscribe();
        loop {
            let close_at = self.close_at.unwrap_or_else(Instant::now);
            let end_at = self.end_at.unwrap_or_else(Instant::now);
            tokio::select! {
                request = inbox.recv() => match request {
                    Some(request) => self.carry_out(request).await,
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

    async fn carry_out(&mut self, request: PodRequest) {
        match request {
            PodRequest::Call { method, by, answer } => self.call(method, by, answer).await,
            PodRequest::Rewind { target, expected, answer } => {
                // An asker that is gone wants no answer.
                let _ = answer.send(self.rewind(target, expected).await);
            }
            PodRequest::Subscribe { answer } => {
                if self.listener.is_some() {
                    // A reader that is gone needs nothing.
                    let _ = answer.send(self.subscription());
                }
            }
            PodRequest::View { answer } => {
                let _ =
                    answer.send(View { in_flight: self.publisher.in_flight_tail(), ..self.view() });
            }
            PodRequest::GoLive { notes, answer } => self.go_live(notes, answer).await,
            PodRequest::Regranted { answer } => {
                self.show_granted();
                let _ = answer.send(());
            }
            PodRequest::Listed { answer } => {
                self.newborn = false;
                self.show_info();
                let _ = answer.send(());
            }
            PodRequest::PrepareStop { answer } => self.let_go(answer).await,
            PodRequest::Stopped { answer } => {
                self.stopped().await;
                let _ = answer.send(());
            }
            PodRequest::Orphaned { answer } => {
                self.row.parent = None;
                self.change(|info| info.parent = None);
                let _ = answer.send(());
            }
            PodRequest::Parental { answer } => {
                let (cwd, workspace) = (self.row.cwd.clone(), self.row.workspace.clone());
                let (resolved, env) = (self.resolved.clone(), self.env.clone());
                let _ = answer.send(Parental { cwd, workspace, resolved, env });
            }
            PodRequest::ChildEvent { row, answer } => {
                self.child_event(row).await;
                let _ = answer.send(());
            }
            PodRequest::ApprovalDecided { decision, answer } => {
                self.answered(decision).await;
                // The answering side may have gone.
                let _ = answer.send(());
            }
            PodRequest::ReopenSocket => self.reopen(),
            #[cfg(test)]
            PodRequest::Panic => panic!("on purpose"),
            PodRequest::HostEnds { answer } => self.leave(answer).await,
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
