//! The Pods that run here: a supervisor that knows the family, one actor per Pod, and the sockets
//! through which both are reached.

use crate::client::pod_api::Request;
use crate::client::{Client, ConnectError, Events};
use crate::config::dirs::{Dirs, Env};
use crate::config::model_select::Destination;
use crate::config::settings_file::SettingsFile;
use crate::disk::DiskError;
use crate::host::screen_feed::{About, ScreenFeed, ScreenLine};
use crate::host::subscribers::{Follows, Limits, Subscribers};
use crate::protocol::name::folded;
use crate::protocol::{ApprovalRequest, Event, PeerEdge, PodInfo, PodName, Refusal, State};
use crate::sandbox::{Confinement, Sandbox};
use crate::store::{DamagedRow, Store, StoreError};
use crate::tools::jobs::EndedBy;
use futures_util::future::join;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Approval requests of all Pods, the decisions on them, and the rules that decisions leave behind.
mod approvals;
/// MCP clients that want to use Pods.
mod clients;
/// Which requests a Pod may make, and of which other Pods.
mod authority;
/// One connection to the host socket.
mod host_connection;
/// Requests that the tools of Pods make of the host.
mod pod_api;
/// The sockets: created, replaced, removed.
mod listener;
/// The relation of one Pod to another: itself, a descendant, a peer or a stranger.
mod relations;
/// The log of requests.
mod request_log;
/// Lists of Pods, and completions of file names.
mod listing;
pub use listing::files_for_new_pod;
/// The texts that a Pod's model wrote, read from its log.
mod output;
/// The lock on the data directory.
mod host_lock;
/// Whether the data directory is still this host's own.
mod ownership;
/// What a person has to know about the whole host.
mod notices;
/// Working trees of git that are made for Pods.
mod worktree;
/// One Pod: the actor that owns it, and the handle by which others reach it.
mod pod;
/// One connection to a Pod's own socket.
mod pod_connection;
/// The requests of one connection: begun in order, each run to its end.
mod requests;
/// The subscribers of a stream of lines, each with a bounded queue.
mod subscribers;
/// The lines of one screen, with the rows of Pods that it does not follow merged.
mod screen_feed;
/// Writing to a client that may read slowly.
mod line_writer;
/// Events that carry a whole log, copied from it piece by piece.
mod splice;
/// Which model a Pod gets, and where a person agreed that text is sent.
mod models;
/// What a run needs of its host: the policy and the Pod's relations.
mod rules;
/// The end of a host that has neither clients nor work.
mod idle_exit;
/// What a program leaves behind when it is gone.
mod left_behind;
/// The family: which Pods there are, which are live, and who holds which lease.
mod supervisor;
/// Calls a person who has no screen open.
mod absent_person;
/// Events of one Pod on their way to screens and to readers of its socket.
mod events;
/// The Pods of this host on the agent mesh.
mod mesh;
/// Child events: how a parent learns of its children, each event once.
mod notify_parent;
/// The Pods of a data directory that cannot be written.
mod reader;
/// Pods that are deleted once they have rested for a day.
mod ephemeral;
/// Work on paths that may lie on a mount that never answers.
mod files;
/// Paths that people and models write, in the one form that scopes compare.
mod paths;
/// Refusals from errors of the rooms below.
mod errors;
/// The verbs: how each request is carried out.
mod verb;
#[cfg(test)]
mod tests;

pub use host_lock::HostLockError;
pub use listener::ListenError;
pub use reader::Reader;

/// The queue of one watching connection. One that falls further behind gets a mark that it
/// missed events, and reads again.
const FEED: Limits = Limits { lines: 1024, bytes: 4 * 1024 * 1024 };
/// The name of the database in the data directory.
const DATABASE: &str = "yoi.db";
/// How long runs may take to pause when the host ends.
const PAUSE: Duration = Duration::from_secs(5);

/// How a host is started.
pub struct Options {
    pub dirs: Dirs,
    /// The environment this program was started with.
    pub env: Env,
    /// The program that runs commands (`__run`): `/proc/self/exe`.
    pub helper: PathBuf,
    /// The soft limit of open files before this program raised it; commands get it back.
    pub old_nofile: Option<u64>,
    /// Whether the host ends by itself after some time without screen and work.
    pub idle_exit: IdleExit,
}

/// When a host without screen and work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleExit {
    Never,
    /// After the time the settings say.
    BySettings,
    /// With the last client that needs it for its own work only, unless another kind of client came: then after the
    /// time the settings say. Until then its Pods join no mesh.
    WithLastClient,
}

/// Why a host ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A client asked for it, or there was neither screen nor work for long.
    Asked,
    /// A mistake in the program ended the supervisor; the sentence says which.
    Failed(String),
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    HostLock(#[from] HostLockError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Config(#[from] crate::config::dirs::ConfigError),
    #[error(transparent)]
    Listener(#[from] ListenError),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A running host.
pub struct Host {
    shared: Shared,
    supervisor: mpsc::Sender<supervisor::Step>,
    lock: Arc<host_lock::HostLock>,
    listener: tokio::task::JoinHandle<()>,
    refresh: tokio::task::JoinHandle<()>,
    /// Deletes ephemeral Pods when they are due.
    deleting: tokio::task::JoinHandle<()>,
    calling: tokio::task::JoinHandle<()>,
    watching: tokio::task::JoinHandle<()>,
}

/// What every task of the host may use; nothing in it changes but through its own channel.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) dirs: Dirs,
    /// No host runs: the data directory is not written, and the store is a private copy.
    pub(crate) only_reads: bool,
    /// The directories with the runtime directory in which the sockets lie now.
    sockets: watch::Sender<Arc<Dirs>>,
    pub(crate) store: Store,
    pub(crate) settings: SettingsFile,
    /// Where a person agreed that text is sent.
    pub(crate) consents: watch::Sender<Arc<BTreeSet<Destination>>>,
    pub(crate) env: Env,
    pub(crate) http: crate::llm::http::Http,
    pub(crate) printed_keys: crate::config::PrintedKeys,
    pub(crate) providers: crate::llm::provider::Providers,
    /// The MCP servers that run.
    pub(crate) mcp: crate::mcp::Pool,
    pub(crate) timeouts: crate::llm::http::Timeouts,
    pub(crate) helper: PathBuf,
    pub(crate) old_nofile: Option<u64>,
    /// How well commands are confined here, once it is known.
    pub(crate) confinement: tokio::sync::OnceCell<Confinement>,
    /// Lines for every watching connection. Held for one line, never across an await.
    pub(crate) feed: Mutex<Subscribers<Arc<ScreenLine>, Follows>>,
    /// The pairs of peers; the supervisor is the only writer.
    pub(crate) peers: watch::Sender<Arc<Vec<PeerEdge>>>,
    /// Records that could not be read; they hide no other.
    pub(crate) damaged: watch::Sender<Arc<Vec<DamagedRow>>>,
    /// The tools that Pods have now.
    pub(crate) tools: watch::Sender<crate::tools::ToolSet>,
    /// The way in for Pods' own tools.
    pub(crate) pod_api: mpsc::Sender<Request>,
    /// All Pods, live or stopped, by [`PodName::key`]; the supervisor is the only writer.
    pub(crate) members: watch::Sender<Members>,
    /// Children that do not have their first message yet, by key; the supervisor is the only writer.
    pub(crate) newborns: watch::Sender<BTreeMap<String, pod::Handle>>,
    /// What the members of the agent mesh share.
    pub(crate) mesh: mesh::Mesh,
    /// Work on paths.
    pub(crate) files: files::Files,
    /// What must lie where this host found it.
    pub(crate) ownership: ownership::Ownership,
    /// The sockets that this host made, by path. The lock is never held across an await.
    pub(crate) bound: Mutex<BTreeMap<PathBuf, crate::disk::FileId>>,
    /// What a person has to know about the whole host.
    pub(crate) notices: watch::Sender<Arc<Vec<String>>>,
    /// Approval requests that wait, oldest first; each Pod writes its own.
    pub(crate) approvals: watch::Sender<Arc<Vec<ApprovalRequest>>>,
    /// The requests of MCP clients to use Pods.
    pub(crate) clients: clients::Clients,
    /// Why the host ends, once it does.
    pub(crate) ending: watch::Sender<Option<Ending>>,
    /// The clients of the host.
    pub(crate) connections: watch::Sender<idle_exit::Connections>,
    /// The Pods that the screens of these connections show.
    pub(crate) screens: watch::Sender<crate::run::Screens>,
    /// How many screens are open, and the Pods that a person without one is called for.
    pub(crate) attached: watch::Sender<absent_person::Attached>,
    pub(crate) matters: watch::Sender<absent_person::Matters>,
    /// Changes when a turn to write has ended, and when the family or what its Pods hold has changed.
    pub(crate) turns: watch::Sender<()>,
    /// One command of git at a time changes the list of working trees of a repository: git fails at an entry that another
    /// one is just writing.
    pub(crate) worktree_lists: Mutex<BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

impl std::ops::Deref for Shared {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// All Pods in the order they were created.
#[derive(Clone, Default)]
pub(crate) struct Members(pub(crate) Arc<BTreeMap<String, pod::Handle>>);

/// Where the reply to a request goes. Dropping it tells the caller that the task of the Pod ended.
pub(crate) type Answer = oneshot::Sender<Result<Event, Refusal>>;

impl Shared {
    /// What the tasks of a host share, and the requests of Pods' own tools. Without an `ownership` it is no host: the
    /// data directory is only read.
    async fn new(
        options: Options,
        store: Store,
        ownership: Option<ownership::Ownership>,
    ) -> Result<(Self, mpsc::Receiver<Request>), StoreError> {
        crate::llm::http::install_crypto();
        let file = SettingsFile::open(&options.dirs.config);
        let reading = file.last();
        let settings = reading.settings;
        crate::config::keys::register_secrets(&options.env, &settings);
        let timeouts = crate::llm::http::Timeouts {
            connect: settings.timeouts.connect(),
            first_event: settings.timeouts.first_event(),
            idle: settings.timeouts.idle(),
            ..crate::llm::http::Timeouts::default()
        };
        let consents = store.consents().await?.into_iter().map(|stored| stored.to).collect();
        // What another release wrote in another form is learned again.
        let learned = store.learned().await?;
        let learned = learned.iter().filter_map(|row| serde_json::from_str(row).ok()).collect();
        let blocked = store.blocked_agents().await?;
        let is_lasting = options.idle_exit != IdleExit::WithLastClient;
        let (pod_api, requests) = mpsc::channel(crate::client::pod_api::WAITING);
        let shared = Shared(Arc::new(Inner {
            http: crate::llm::http::Http::new(&timeouts),
            printed_keys: crate::config::PrintedKeys::default(),
            providers: crate::llm::provider::Providers::that_know(learned),
            mcp: crate::mcp::Pool::default(),
            timeouts,
            sockets: watch::Sender::new(Arc::new(options.dirs.clone())),
            dirs: options.dirs,
            only_reads: ownership.is_none(),
            store,
            settings: file,
            consents: watch::Sender::new(Arc::new(consents)),
            env: options.env,
            helper: options.helper,
            old_nofile: options.old_nofile,
            confinement: tokio::sync::OnceCell::new(),
            feed: Mutex::new(Subscribers::new(FEED)),
            peers: watch::Sender::default(),
            damaged: watch::Sender::default(),
            tools: watch::Sender::default(),
            pod_api,
            members: watch::Sender::default(),
            newborns: watch::Sender::default(),
            mesh: mesh::Mesh::new(blocked),
            files: files::Files::default(),
            ownership: ownership.unwrap_or_default(),
            bound: Mutex::default(),
            notices: watch::Sender::default(),
            approvals: watch::Sender::default(),
            clients: clients::Clients::default(),
            ending: watch::Sender::default(),
            connections: idle_exit::Connections::none_of(is_lasting),
            screens: watch::Sender::default(),
            attached: watch::Sender::default(),
            matters: watch::Sender::default(),
            turns: watch::Sender::default(),
            worktree_lists: Mutex::default(),
        }));
        Ok((shared, requests))
    }

    /// Where the sockets lie now.
    pub(crate) fn sockets(&self) -> Arc<Dirs> {
        self.sockets.borrow().clone()
    }

    /// Moves the sockets below the data directory, where that is another place than now.
    pub(crate) fn move_sockets(&self) -> bool {
        self.sockets.send_if_modified(|sockets| {
            let mut moved = Dirs::clone(sockets);
            let moves = moved.move_runtime().is_ok_and(|moves| moves);
            if moves {
                *sockets = Arc::new(moved);
            }
            moves
        })
    }

    /// Sends an event to every watching connection, the text of a Pod to those that follow the Pod.
    pub(crate) fn feed(&self, pod: Option<&PodName>, seq: Option<u64>, event: &Event) {
        let text_of = pod.filter(|_| event.is_text());
        let takes = |follows: &Follows| text_of.is_none_or(|pod| follows.holds(pod));
        if !self.feed_lock().any(takes) {
            return;
        }
        let about = match (event, pod) {
            (Event::PodChanged { info }, _) => About::Row(info.name.clone()),
            (_, Some(pod)) if event.is_piece() => About::Piece(pod.clone()),
            (_, Some(pod)) => About::Pod(pod.clone()),
            (_, None) => About::All,
        };
        let line = Arc::new(ScreenLine { line: events::screen_line(pod, seq, event), about });
        self.feed_lock().publish_to(&line, line.line.len(), takes);
    }

    /// The events from now on; of those about text only these Pods'.
    pub(crate) fn subscribe(&self, follows: Follows) -> ScreenFeed {
        ScreenFeed::new(self.feed_lock().subscribe_to(follows.clone()), follows)
    }

    fn feed_lock(&self) -> MutexGuard<'_, Subscribers<Arc<ScreenLine>, Follows>> {
        // The list is whole at any moment, also when a publisher panicked.
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the host has reason to end.
    pub(crate) async fn ended(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let ended = ending.wait_for(Option::is_some).await;
        // The sender is in `self`, so the channel is open.
        ended.ok().and_then(|ending| ending.clone()).unwrap_or(Ending::Asked)
    }

    /// Resolves when the host ends because of a mistake in the program.
    pub(crate) async fn failed(&self) {
        if self.ended().await == Ending::Asked {
            std::future::pending::<()>().await;
        }
    }

    /// How well commands are confined here; found out once.
    pub(crate) async fn confinement(&self) -> &Confinement {
        let sandbox = Sandbox { helper: self.helper.clone(), ..Sandbox::default() };
        self.confinement.get_or_init(|| async move { sandbox.probe().await }).await
    }

    /// Every Pod as it is now, oldest first.
    pub(crate) fn family(&self) -> Vec<PodInfo> {
        let members = self.members.borrow().clone();
        let mut pods: Vec<(u64, PodInfo)> =
            members.0.values().map(|h| (h.created, h.info.borrow().clone())).collect();
        pods.sort_by_key(|(created, info)| (*created, info.name.clone()));
        let damaged = self.damaged.borrow().clone();
        let damaged = damaged.iter().filter_map(pod::resolved::damaged_info);
        pods.into_iter().map(|(_, info)| info).chain(damaged).collect()
    }

    /// The family with everything between its members.
    pub(crate) fn whole_family(&self) -> Event {
        let peers = self.peers.borrow().as_ref().clone();
        let agents = self.mesh.roster.agents().as_ref().clone();
        Event::Family { pods: self.family(), peers, approvals: self.approvals(), agents }
    }

    /// The record of this name, if it is one that could not be read.
    pub(crate) fn damaged_row(&self, name: &PodName) -> Option<DamagedRow> {
        let damaged = self.damaged.borrow();
        damaged.iter().find(|row| folded(&row.name) == name.key()).cloned()
    }

    /// The Pod of that name, whatever its case; also a child that is not listed yet.
    pub(crate) fn any_pod(&self, name: &PodName) -> Option<pod::Handle> {
        self.pod(name).or_else(|| self.newborns.borrow().get(&name.key()).cloned())
    }

    /// The Pod of that name, whatever its case.
    pub(crate) fn pod(&self, name: &PodName) -> Option<pod::Handle> {
        self.members.borrow().0.get(&name.key()).cloned()
    }

    /// Whether a Pod is live and a child of this one.
    pub(crate) fn is_live_child(&self, name: &PodName, parent: &PodName) -> bool {
        self.pod(name).is_some_and(|child| {
            let info = child.info.borrow();
            info.state != State::Stopped && info.parent.as_ref() == Some(parent)
        })
    }
}

impl Host {
    /// Takes the data directory, opens the store, brings every Pod back that was live, and opens
    /// the sockets. Nothing is sent to a model and no command is run.
    pub async fn start(options: Options) -> Result<Self, HostError> {
        let mut options = options;
        options.dirs.make()?;
        let (idle_exit, dirs) = (options.idle_exit, &options.dirs);
        let lock = Arc::new(host_lock::HostLock::take(dirs)?);
        let database = dirs.data.join(DATABASE);
        let (store, opening) = Store::open(&database).await?;
        let ownership = ownership::Ownership::of(&lock, &database);
        let ownership = ownership.map_err(DiskError::at("look at", &dirs.data))?;
        let (shared, requests) = Shared::new(options, store, Some(ownership)).await?;
        shared.guard_store();
        supervisor::recover(&shared, &opening).await?;
        let (steps, inbox) = mpsc::channel(supervisor::STEPS);
        let owner = supervisor::bring_back(&shared, &steps).await?;
        let listener = listener::open(&shared, &steps)?;
        lock.hold(&shared.sockets().host_socket())?;
        let weak = Arc::downgrade(&lock);
        let refresh = listener::refresh_on_signal(shared.clone(), steps.clone(), weak);
        let watching = ownership::watch(&shared);
        tokio::spawn(pod_api::serve(shared.clone(), steps.downgrade(), requests));
        tokio::spawn(owner.run(inbox, idle_exit));
        let deleting = ephemeral::delete_when_due(shared.clone(), steps.downgrade());
        let deleting = tokio::spawn(deleting);
        let calling = tokio::spawn(absent_person::call(shared.clone()));
        mesh::machines::start(&shared);
        let (version, pods) = (env!("CARGO_PKG_VERSION"), shared.members.borrow().0.len());
        tracing::info!(version, pods, data = %shared.dirs.data.display(), "host started");
        let supervisor = steps;
        Ok(Self { shared, supervisor, lock, listener, refresh, deleting, calling, watching })
    }

    /// The mistakes in the settings as they were read last, each with its place.
    pub fn mistakes_in_settings(&self) -> Vec<String> {
        self.shared.settings.last().sentences()
    }

    /// A handle for this process, over a pipe that speaks the host socket's lines.
    pub async fn client(&self) -> Result<(Client, Events), ConnectError> {
        host_connection::over_pipe(&self.shared, &self.supervisor).await
    }

    /// Serves the client that started this host, over a pipe between the two. The host ends with the last of its
    /// brief clients, of which this is the first.
    pub fn serve_starter(&self, stream: tokio::net::UnixStream) {
        let (shared, supervisor) = (self.shared.clone(), self.supervisor.clone());
        if let Some(counted) = host_connection::Counted::new(shared.clone()) {
            let served =
                host_connection::serve_counted(stream, counted, supervisor, Arc::default());
            tokio::spawn(served);
        }
        tokio::spawn(idle_exit::end_with_last_client(shared));
    }

    /// Resolves when the host has reason to end.
    pub async fn ended(&self) -> Ending {
        self.shared.ended().await
    }

    /// Pauses what runs, takes the sockets away and lets go of the data directory. No Pod is
    /// stopped: each comes back at the next start.
    pub async fn end(self) {
        // Clients wait for the next host from now on.
        self.lock.hide();
        self.listener.abort();
        self.refresh.abort();
        self.deleting.abort();
        self.calling.abort();
        self.watching.abort();
        let members = self.shared.members.borrow().clone();
        let mut leaving = tokio::task::JoinSet::new();
        for handle in members.0.values() {
            let handle = handle.clone();
            leaving.spawn(async move {
                join(handle.host_ends(), handle.jobs.close(EndedBy::Host)).await
            });
        }
        // A Pod that does not pause in time is cut off; the next start says so.
        if tokio::time::timeout(PAUSE, leaving.join_all()).await.is_err() {
            tracing::warn!("host ends although runs did not pause within {PAUSE:?}");
        }
        self.shared.mesh.left().await;
        listener::close(&self.shared);
        // The next host opens the database when the lock is free: this one has closed it by then.
        if tokio::time::timeout(PAUSE, self.shared.store.clone().close()).await.is_err() {
            tracing::warn!("the database was not closed within {PAUSE:?}");
        }
        tracing::info!("host ended");
        self.lock.leave();
    }
}
