//! One Pod's actor: it owns what the Pod is, starts and ends its runs, numbers its events, and
//! answers requests. It awaits neither a run nor a caller.

use crate::config::dirs::Env;
use crate::host::Shared;
use crate::host::events::Publisher;
use crate::host::mesh::membership::Membership;
use crate::host::pod::approval::PendingApproval;
use crate::host::pod::exchange::Exchange;
use crate::host::pod::handle::REQUESTS;
use crate::host::pod::jobs::Records;
use crate::host::pod::model::LookedAt;
use crate::host::pod::phase::{Admission, Phase};
use crate::host::pod::resolved::Resolved;
use crate::host::pod::worktree::Counting;
use crate::mcp::PodServers;
use crate::protocol::{AlertSource, Effort, EntryId, Lent, PodInfo, Queued};
use crate::run::{Commands, alert};
use crate::sandbox::PodWorld;
use crate::scope::Scope;
use crate::session::Files;
use crate::store::{PodRow, Wanted};
use crate::tools::jobs::Jobs;
use crate::tools::{PathThreads, ToolSet};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Handles with which other tasks use a Pod.
mod handle;
/// The phase of a Pod, and whether it accepts requests.
mod phase;
/// The configuration of a Pod, and what is known of it from the store alone.
pub(crate) mod resolved;
/// The end of a log: how the last run ended.
pub(crate) mod tail;
/// The state of a Pod as screens and other Pods see it.
mod show;
/// The methods of the protocol.
mod calls;
/// Messages for a Pod, and its queue.
mod messages;
/// When a mailbox message starts a run.
mod mailbox;
/// The messages of other Pods that wait.
pub(crate) mod waiting;
/// The model of a Pod and its key.
mod model;
/// The reply to `:explain`: the grants of the next command.
mod explain;
/// Slows down agents that only answer each other.
mod exchange;
/// The start of a run.
pub(crate) mod start;
/// The events and the end of a run.
mod follow;
/// The approval request that a Pod waits for.
mod approval;
/// Child events: those to the parent, and those from children.
mod child_events;
/// Rewinds the history to before an input.
mod rewind;
/// Making a Pod live.
mod live;
mod directory;
/// The commands in the background.
mod jobs;
/// Turning an ephemeral Pod into an ordinary one.
mod keep;
/// The log between runs.
mod log;
/// Whether the Pod takes part in the mesh, and the tools that it has then.
mod mesh;
/// Stopping a Pod, also at the end of the host.
mod stop;
/// The working tree of a Pod.
mod worktree;
/// Handling of a panic in a Pod.
mod fault;

pub(crate) use handle::{Fact, Handle, Parental, PodRequest, Subscription, View};

/// The initial state of an actor.
#[derive(Clone, Debug)]
pub(crate) enum Birth {
    /// The Pod is older than this host: `queue` has its queued messages, `waiting` the waiting ones of other Pods.
    Restarted { queue: Vec<Queued>, waiting: Vec<String> },
    /// A person makes the Pod; its commands get this environment.
    New { env: Env },
    /// A parent makes the Pod. Until its first message is committed it is not listed, serves that
    /// parent only, and can be discarded without a trace.
    Child { env: Env },
}

/// The scope of a Pod by the lease table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Granted {
    /// While the Pod is not live: the scope that it asks for.
    pub(crate) scope: Scope,
    /// The scope that a person gave to the Pod or to one above it.
    pub(crate) given: Scope,
    pub(crate) lent: Vec<Lent>,
    /// Sentences about paths that the Pod may only read although it wants to write them.
    pub(crate) notes: Vec<String>,
}

/// The actor's own state.
pub(crate) struct Pod {
    shared: Shared,
    row: PodRow,
    granted: Arc<watch::Sender<Granted>>,
    commands: Commands,
    /// The MCP servers that the Pod uses.
    used_servers: PodServers,
    path_threads: PathThreads,
    pod_world: PodWorld,
    /// The commands in the background.
    jobs: Jobs,
    /// What changed in the working tree of the Pod.
    counting: Counting,
    /// The calls without a result that change no file.
    harmless: HashSet<String>,
    /// Notes for a person from when the Pod became live, beside those about its scope.
    notes: Vec<String>,
    /// The notice shown while the rules of the workspace are unknown.
    rules_note: Option<String>,
    files: Files,
    info: watch::Sender<PodInfo>,
    /// When every screen last learned the time of the newest event, in milliseconds since the Unix epoch.
    shown_activity: u64,
    publisher: Publisher,
    resolved: Resolved,
    looked_at: LookedAt,
    /// The effort of the next request; a run under way reads it, too.
    effort: watch::Sender<Option<Effort>>,
    /// While there is no model: the mistakes that were met when one was looked for.
    mistakes: Vec<String>,
    /// The environment that clients offered; never written.
    env: Env,
    phase: Phase,
    admission: Admission,
    /// The last input that this process recorded in the log, and the id that it had in the queue.
    last_input: Option<(EntryId, Option<String>)>,
    /// The last run: the id of the input that began it.
    run: Option<EntryId>,
    /// The approval request that the Pod waits for, while a run is under way or after one.
    pending: Option<PendingApproval>,
    /// The published bytes of the segment; `None` until this process knows them.
    end: Option<u64>,
    /// Serves the Pod's own socket; `None` while the Pod is not live.
    listener: Option<JoinHandle<()>>,
    /// The Pod's membership of the mesh, while it takes part.
    mesh: Option<Membership>,
    /// The runs in a row that messages of one agent started.
    exchange: Exchange,
    /// When messages that came are shown as waiting.
    waiting_shown_at: Option<Instant>,
    /// When the end of a host interrupted the run that waits to go on, in milliseconds since the Unix epoch.
    cut_at: Option<u64>,
    /// The tools of the host, and those of the mesh while the Pod takes part.
    tool_set: watch::Sender<ToolSet>,
    /// The first message of the Pod is not committed: it serves its parent only and is not shown.
    newborn: bool,
    /// The way in for readers of the Pod's socket; weak, so that the actor ends with its last handle.
    requests: mpsc::WeakSender<PodRequest>,
    /// The way to the supervisor for readers of the Pod's socket.
    supervisor: mpsc::WeakSender<crate::host::supervisor::Step>,
}

/// Starts the actor of a Pod, stopped; [`PodRequest::GoLive`] makes it live.
pub(crate) fn spawn(
    shared: &Shared,
    supervisor: mpsc::WeakSender<crate::host::supervisor::Step>,
    row: PodRow,
    granted: Arc<watch::Sender<Granted>>,
    birth: Birth,
) -> Handle {
    let (requests, inbox) = mpsc::channel(REQUESTS);
    let resolved = Resolved::read(&row.config);
    let newborn = matches!(birth, Birth::Child { .. });
    let settings = shared.settings.last().settings;
    let (queue, waiting, env) = match birth {
        Birth::Restarted { queue, waiting } => {
            (queue, waiting, model::stored_env(&row, &resolved, &settings))
        }
        Birth::New { env } | Birth::Child { env } => {
            (Vec::new(), Vec::new(), with_offered(&row.env, env))
        }
    };
    let (name, session, created) = (row.name.clone(), row.session, row.created);
    let info = PodInfo { waiting, ..resolved::info(shared, &row, &resolved, queue) };
    let (info, watched) = watch::channel(info);
    let commands = Commands::default();
    let records =
        Records { shared: shared.clone(), pod: name.clone(), requests: requests.downgrade() };
    let jobs = Jobs::new(Arc::new(records));
    let servers = PodServers::new(shared.mcp.clone(), row.name.clone());
    let pod = Pod {
        publisher: Publisher::new(name.clone(), shared.clone()),
        files: Files::new(&shared.dirs.data, row.session),
        shared: shared.clone(),
        granted: granted.clone(),
        commands: commands.clone(),
        used_servers: servers.clone(),
        path_threads: PathThreads::default(),
        pod_world: PodWorld::default(),
        jobs: jobs.clone(),
        counting: Counting::default(),
        harmless: HashSet::new(),
        notes: Vec::new(),
        rules_note: None,
        row,
        info,
        shown_activity: 0,
        effort: watch::Sender::new(resolved.effort.or(settings.effort)),
        resolved,
        looked_at: LookedAt { settings, env: env.clone() },
        mistakes: Vec::new(),
        env,
        phase: Phase::Idle(None),
        admission: Admission::Open,
        last_input: None,
        run: None,
        pending: None,
        end: None,
        listener: None,
        mesh: None,
        exchange: Exchange::default(),
        waiting_shown_at: None,
        cut_at: None,
        tool_set: watch::Sender::new(shared.tools.borrow().clone()),
        newborn,
        requests: requests.downgrade(),
        supervisor,
    };
    tokio::spawn(pod.serve(inbox));
    Handle { name, session, created, requests, info: watched, granted, commands, jobs, servers }
}

/// The environment of the store, with what a client offers.
fn with_offered(stored: &Env, offered: Env) -> Env {
    crate::trace::secrets::register_environment(&offered);
    let mut env = stored.clone();
    env.extend(offered);
    env
}

impl Pod {
    /// Serves requests and follows the run, until every handle is gone.
    async fn serve_requests(&mut self, inbox: &mut mpsc::Receiver<PodRequest>) {
        let mut granted = self.granted.subscribe();
        let mut consents = self.shared.consents.subscribe();
        let mut tools = self.shared.tools.subscribe();
        let mut jobs = self.jobs.running();
        loop {
            let deadline = self.phase.deadline();
            let held = self.exchange.next().filter(|_| !self.phase.is_running());
            let unshown = self.waiting_shown_at;
            tokio::select! {
                request = inbox.recv() => match request {
                    Some(request) => self.carry_out(request).await,
                    None => break,
                },
                event = self.phase.next_event() => self.on_run_event(event).await,
                Ok(()) = granted.changed() => self.show_granted(),
                Ok(()) = consents.changed() => self.consents_changed().await,
                Ok(()) = tools.changed() => self.choose_tools(),
                Ok(()) = jobs.changed() => self.show_jobs(),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.deadline_passed().await;
                }
                () = sleep_until(held.unwrap_or_else(Instant::now)), if held.is_some() => {
                    self.exchange_goes_on().await;
                }
                () = sleep_until(unshown.unwrap_or_else(Instant::now)), if unshown.is_some() => {
                    self.show_what_waits().await;
                }
            }
        }
        self.close_log().await;
    }

    async fn deadline_passed(&mut self) {
        match self.phase {
            Phase::Idle(_) => self.close_log().await,
            Phase::Running(_) => self.abort_run(),
        }
    }

    /// Carries a request out. A caller that is gone wants no answer, so an answer that cannot be
    /// delivered is dropped.
    async fn carry_out(&mut self, request: PodRequest) {
        match request {
            PodRequest::Call { method, by, answer } => self.call(method, by, answer).await,
            PodRequest::Rewind { target, expected, answer } => {
                let _ = answer.send(self.rewind(target, expected).await);
            }
            PodRequest::Subscribe { answer } => {
                if self.listener.is_some() {
                    let _ = answer.send(self.subscription());
                }
            }
            PodRequest::View { answer } => {
                let in_flight = self.publisher.in_flight_tail();
                let _ = answer.send(View { in_flight, ..self.view() });
            }
            PodRequest::ChangeWorktree { change, answer } => {
                let _ = answer.send(self.change_worktree(change).await);
            }
            PodRequest::CommandContext { answer } => {
                let _ = answer.send(self.command_context().await);
            }
            PodRequest::Parental { answer } => {
                let _ = answer.send(self.parental());
            }
            PodRequest::GoLive { notes, host_starts, answer } => {
                self.go_live(notes, host_starts, answer).await;
            }
            PodRequest::PrepareStop { answer } => self.prepare_stop(answer).await,
            PodRequest::PrepareStopIfIdle { answer } => {
                let is_prepared = self.prepare_stop_if_idle().await;
                // The caller stopped waiting while the Pod was busy, so the Pod is not stopped.
                if answer.send(is_prepared).is_err() && is_prepared {
                    self.stop_refused();
                }
            }
            PodRequest::StopRefused => self.stop_refused(),
            PodRequest::HostEnds { answer } => self.host_ends(answer).await,
            PodRequest::Fact { fact, answer } => {
                self.take_note(fact).await;
                let _ = answer.send(());
            }
            #[cfg(test)]
            PodRequest::Panic => panic!("on purpose"),
        }
    }

    /// Does what follows from a fact.
    async fn take_note(&mut self, fact: Fact) {
        match fact {
            Fact::Regranted => self.show_granted(),
            Fact::Notice(text) => self.publisher.publish(&alert(AlertSource::Pod, text)),
            Fact::Listed => {
                self.newborn = false;
                self.show_info();
            }
            Fact::Stopped => self.stopped().await,
            Fact::Orphaned => {
                self.row.parent = None;
                self.change(|info| info.parent = None);
            }
            Fact::Relocated(place) => self.relocated(*place).await,
            Fact::Kept => self.is_kept(),
            Fact::ChildEvent(message) => self.child_event(message).await,
            Fact::JobEnded(message) => self.job_ended(message).await,
            Fact::Delivered(messages) => self.delivered(messages).await,
            Fact::MeshChosen(joined) => self.mesh_chosen(joined),
            Fact::Mesh(standing) => self.show_mesh(standing),
            Fact::Noted(message) => self.note(message).await,
            Fact::AgentRefused(text) => self.agent_refused(text).await,
            Fact::SenderGone(message) => self.sender_gone(message).await,
            Fact::ApprovalDecided(decision) => self.approval_decided(decision).await,
            Fact::SocketVanished => self.reopen_socket(),
            Fact::LinesCounted(counted) => self.lines_counted(counted.map(|counted| *counted)),
        }
    }

    fn is_live(&self) -> bool {
        self.row.wanted == Wanted::Live && self.listener.is_some() && self.admission.is_open()
    }
}
