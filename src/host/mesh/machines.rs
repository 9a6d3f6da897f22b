//! This host and the hosts of other machines: a task that keeps the connection to their server, commits what arrives to
//! mailboxes, and knows which agents the others have. Without a connection everything on this machine works as before.

/// A message to an agent of another machine.
mod outgoing;
/// A message of an agent of another machine.
mod incoming;
/// Agents of other machines as peers of Pods.
mod peers;
/// Agents of this machine that are no Pods.
mod gateway;
/// What becomes of messages, for screens and in the audit.
mod record;

pub(crate) use outgoing::Sending;
pub(crate) use peers::Asked;

use crate::backoff::Backoff;
use crate::disk::{Changes, private_dir};
use crate::host::Shared;
use crate::host::mesh::roster::{self, Change};
use crate::mesh::Id;
use crate::mesh::machines::{
    Arrived, Credentials, InOrder, Incoming, Link, MachineName, Outcome, Presence, Receipt,
    address, connect,
};
use crate::protocol::mesh::{MachineView, MeshAgent};
use crate::protocol::{Event, Refusal};
use crate::trace::OrLog as _;
use outgoing::{Key, Waiting};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Between two tries to connect, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a machine says which agents it has, also where nothing changed.
const ANNOUNCE: Duration = Duration::from_secs(60);
/// A machine that is silent for longer is away.
const PRESENT: Duration = Duration::from_secs(150);
/// How long changes are collected before screens are shown them.
const COLLECT: Duration = Duration::from_millis(250);
/// How long a message waits for a connection that is down.
const SOON: Duration = Duration::from_secs(3);
/// What is taken together at most.
const BATCH: usize = 64;
/// The most machines that are remembered as present.
const MACHINES: usize = 256;

/// What the tasks of this host share about other machines.
pub(crate) struct Machines {
    state: watch::Sender<Arc<State>>,
    /// The messages whose outcome is not known. Held for one step, never across an await.
    waiting: Mutex<HashMap<Key, Waiting>>,
    /// Where messages go that are for agents of this machine which are no Pods. Held for one step, never across an await.
    gateway: Mutex<Option<mpsc::Sender<incoming::Pending>>>,
    /// Ends the pause before a lost connection is opened again.
    wanted: Notify,
    /// Another machine has to be told something about peers.
    owes: Notify,
    /// Held while what is known of a pair of peers is stored and shown, so that both happen in one order.
    pairs: tokio::sync::Mutex<()>,
    /// When a person denied that an agent of a machine becomes a peer of a Pod, by its [`key`](crate::protocol::PodName::key). Held for one step, never across an await.
    denied: Mutex<HashMap<(MachineName, String), Instant>>,
    /// Held for one step, never across an await.
    record: Mutex<record::Record>,
    /// Another machine has to be told that a message was read.
    read: Notify,
    ending: CancellationToken,
}

/// This machine among the others.
#[derive(Clone, Default)]
struct State {
    /// The name of this machine, and its server; `None`: it reaches no others.
    own: Option<(MachineName, String)>,
    /// While the connection is up.
    link: Option<Arc<Link>>,
    /// Why it is not up.
    why: Option<String>,
    present: BTreeMap<MachineName, Present>,
    /// The outcome that this machine sent itself, and when.
    sent_itself: Option<(Id, SystemTime)>,
    /// By how many milliseconds the clock of the server is ahead of this one's.
    clock_ms: Option<i64>,
}

impl State {
    /// Why no other machine can be reached, as a sentence.
    fn unreachable(&self) -> String {
        let why = match (&self.why, &self.own) {
            (Some(why), _) => why.as_str(),
            (None, Some(_)) => "it is being connected",
            (None, None) => "this machine has joined none",
        };
        format!("no other machine can be reached: {why}")
    }
}

/// Where a name says that its agent is.
pub(crate) enum Named<'a> {
    /// On this machine, by this name.
    OfThisMachine(&'a str),
    /// On another machine, if there are any, by this name there.
    OfAnother(MachineName, &'a str),
}

/// A machine that said lately which agents it has.
#[derive(Clone)]
struct Present {
    agents: Vec<String>,
    until: Instant,
}

impl Machines {
    pub(super) fn new() -> Self {
        Self {
            state: watch::Sender::default(),
            waiting: Mutex::default(),
            gateway: Mutex::default(),
            wanted: Notify::new(),
            owes: Notify::new(),
            pairs: tokio::sync::Mutex::default(),
            denied: Mutex::default(),
            record: Mutex::default(),
            read: Notify::new(),
            ending: CancellationToken::new(),
        }
    }

    /// Begins to leave.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }

    /// The name of this machine, if it is connected to others or tries to be.
    pub(crate) fn own(&self) -> Option<MachineName> {
        self.state.borrow().own.as_ref().map(|(own, _)| own.clone())
    }

    /// Where a name says that its agent is. That of this machine before it says nothing more.
    pub(crate) fn named<'a>(&self, name: &'a str) -> Named<'a> {
        match address(name) {
            Some((machine, agent)) if self.own().as_ref() == Some(&machine) => {
                Named::OfThisMachine(agent)
            }
            Some((machine, agent)) => Named::OfAnother(machine, agent),
            None => Named::OfThisMachine(name),
        }
    }

    /// Why no other machine can be reached, as a sentence.
    pub(crate) fn unreachable(&self) -> String {
        self.state.borrow().unreachable()
    }

    /// Whether a machine of this name is present.
    pub(crate) fn knows(&self, machine: &str) -> bool {
        self.state.borrow().present.keys().any(|name| name.as_str() == machine)
    }

    /// How this machine takes part; `None`: it reaches no others.
    pub(crate) fn view(&self) -> Option<MachineView> {
        let state = self.state.borrow().clone();
        let own = state.own.as_ref().map(|(own, server)| (own.to_string(), server.clone()));
        let (name, server) = match (own, &state.why) {
            (Some(own), _) => own,
            (None, Some(_)) => (String::new(), String::new()),
            (None, None) => return None,
        };
        let machines = state.present.keys().map(ToString::to_string).collect();
        let why = state.why.clone().filter(|_| state.link.is_none());
        let (connected, messages, clock_ms) = (state.link.is_some(), self.sent(), state.clock_ms);
        Some(MachineView { name, server, connected, why, machines, messages, clock_ms })
    }

    /// Waits until what is known fits.
    #[cfg(test)]
    pub(crate) async fn until(
        &self,
        fits: impl Fn(&Option<MachineView>) -> bool,
    ) -> Option<MachineView> {
        let mut state = self.state.subscribe();
        loop {
            state.borrow_and_update();
            let view = self.view();
            if fits(&view) {
                return view;
            }
            state.changed().await.unwrap();
        }
    }

    /// The agents of other machines, by their addresses.
    pub(crate) fn agents(&self, is_blocked: impl Fn(&str) -> bool) -> Vec<MeshAgent> {
        let state = self.state.borrow().clone();
        let reachable = state.link.is_some();
        let agent = |name: String| MeshAgent {
            blocked: is_blocked(&name),
            reachable,
            ..MeshAgent::away(name)
        };
        let of_one = |(machine, present): (&MachineName, &Present)| {
            present.agents.iter().map(|name| format!("{machine}:{name}")).collect::<Vec<_>>()
        };
        state.present.iter().flat_map(of_one).map(agent).collect()
    }

    /// The state. While the connection is down, it is tried again at once, and waited for up to [`SOON`].
    async fn connected_soon(&self) -> Arc<State> {
        let mut state = self.state.subscribe();
        let is_settled = |state: &Arc<State>| state.link.is_some() || state.own.is_none();
        if !is_settled(&state.borrow()) {
            self.wanted.notify_one();
            let _ = timeout(SOON, state.wait_for(is_settled)).await;
        }
        self.state.borrow().clone()
    }

    /// The refusal where no other machine can be reached.
    async fn must_reach(&self) -> Result<(), Refusal> {
        let state = self.connected_soon().await;
        match state.link {
            Some(_) => Ok(()),
            None => Err(Refusal::invalid(state.unreachable())),
        }
    }

    fn link(&self) -> Option<Arc<Link>> {
        self.state.borrow().link.clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(|state| change(Arc::make_mut(state)));
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Key, Waiting>> {
        // Each step leaves the map whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects as soon as this machine has a server, until the host ends.
pub(crate) fn start(shared: &Shared) {
    shared.mesh.members.spawn(Task { shared: shared.clone() }.run());
    let shared = shared.clone();
    tokio::spawn(async move {
        let ending = shared.mesh.machines.ending.clone();
        ending.run_until_cancelled(show(&shared)).await;
    });
}

/// Shows every screen how this machine takes part, whenever that changes; many changes at once are one event.
async fn show(shared: &Shared) {
    let machines = &shared.mesh.machines;
    let (mut state, mut shown) = (machines.state.subscribe(), None);
    while state.changed().await.is_ok() {
        sleep(COLLECT).await;
        state.mark_unchanged();
        let view = machines.view();
        if view != shown {
            shown.clone_from(&view);
            shared.feed(None, None, &Event::Machine { machine: view.map(Box::new) });
        }
    }
}

struct Task {
    shared: Shared,
}

impl Task {
    fn machines(&self) -> &Machines {
        &self.shared.mesh.machines
    }

    async fn run(self) {
        self.show_requests().await;
        let ending = self.machines().ending.clone();
        let working = async { tokio::join!(self.keep_connected(), self.keep_gateway()) };
        ending.run_until_cancelled(working).await;
        if let Some(link) = self.machines().link() {
            link.leave().await;
        }
        let shared = self.shared.clone();
        // A thread writes the audit; if that fails, its last lines are lost and nothing else.
        let _ = tokio::task::spawn_blocking(move || shared.mesh.machines.end_audit()).await;
    }

    async fn keep_connected(&self) {
        let state = &self.shared.dirs.state;
        let dir = Credentials::dir(state);
        private_dir(&dir).or_log("make the directory for the connection to other machines");
        let changes = Changes::of(&dir);
        // A host that was started for single commands, and ends with the last of them, does not connect.
        let mut connections = self.shared.connections.subscribe();
        if connections.wait_for(|connections| connections.is_lasting).await.is_err() {
            return;
        }
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let (own, credentials, why) = match Credentials::read(state) {
                Ok(None) => (None, None, None),
                Ok(Some(found)) => {
                    let own = Some((found.machine.clone(), found.server.clone()));
                    match self.begin_network(&found).await {
                        Ok(()) => (own, Some(found), None),
                        // Connected, it would take agents of other machines for peers.
                        Err(error) => (own, None, Some(error.to_string())),
                    }
                }
                Err(error) => (None, None, Some(error.to_string())),
            };
            let is_tried_again = own.is_some();
            self.machines().change(|now| *now = State { own, why, ..State::default() });
            self.agents_changed();
            let connected = async {
                match &credentials {
                    Some(credentials) => {
                        backoff.reset();
                        self.connected(credentials).await;
                    }
                    None if is_tried_again => sleep(backoff.pause()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = connected => {}
                () = changed(&changes) => {}
            }
            if let Some(link) = self.machines().link() {
                link.leave().await;
            }
        }
    }

    /// Keeps a connection up. It never ends by itself.
    async fn connected(&self, credentials: &Credentials) {
        self.machines().begin_audit(&self.shared);
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let why = match connect(credentials).await {
                Ok((link, incoming)) => {
                    backoff.reset();
                    tracing::info!(machine = %credentials.machine, "connected to the server of other machines");
                    self.serve(Arc::new(link), incoming).await;
                    format!("the connection to {} was lost", credentials.server)
                }
                Err(error) => error.to_string(),
            };
            tracing::warn!("not connected to other machines: {why}");
            self.machines().change(|state| {
                state.link = None;
                state.why = Some(why);
                state.present.clear();
            });
            self.agents_changed();
            // The pause ends when a message is to be sent.
            let _ = timeout(backoff.pause(), self.machines().wanted.notified()).await;
        }
    }

    /// Takes what arrives until the connection is lost.
    async fn serve(&self, link: Arc<Link>, mut incoming: Incoming) {
        self.machines().change(|state| {
            state.link = Some(link.clone());
            state.why = None;
        });
        self.send_itself(&link).await;
        let mut seats = self.shared.mesh.seats.subscribe();
        let mut announce = interval(ANNOUNCE);
        announce.reset();
        self.announce(&link, true).await;
        self.tell_owed(&link).await;
        self.tell_read(&link).await;
        let taken = self.shared.store.taken_of_stream().await.unwrap_or_else(|error| {
            tracing::warn!("messages of other machines are kept back for a moment: {error}");
            0
        });
        let mut order = InOrder::after(taken);
        loop {
            tokio::select! {
                arrived = incoming.next() => match arrived {
                    Some(first) => {
                        let more = std::iter::from_fn(|| incoming.try_next()).take(BATCH - 1);
                        self.take(&link, &mut order, std::iter::once(first).chain(more)).await;
                    }
                    None => return,
                },
                changed = seats.changed() => match changed {
                    Ok(()) => self.announce(&link, false).await,
                    Err(_) => return,
                },
                () = self.machines().owes.notified() => self.tell_owed(&link).await,
                () = self.machines().read.notified() => self.tell_read(&link).await,
                _ = announce.tick() => {
                    self.announce(&link, false).await;
                    self.tell_owed(&link).await;
                    self.forget_silent();
                }
            }
        }
    }

    /// Takes what has arrived, in the order of the stream.
    async fn take(
        &self,
        link: &Link,
        order: &mut InOrder<Arrived>,
        arrived: impl Iterator<Item = Arrived>,
    ) {
        let (before, mut due) = (order.taken(), Vec::new());
        for arrived in arrived {
            match arrived.receipt() {
                Some(receipt) => {
                    due.extend(order.admit(receipt.place, receipt.is_repeated, arrived));
                }
                None => self.take_presence(link, arrived).await,
            }
        }
        let store = &self.shared.store;
        if order.taken() < before {
            store.begin_stream().await.or_log("note that the stream of this machine is a new one");
        }
        let before = order.taken();
        order.note(self.take_in_order(link, due).await);
        if order.taken() > before {
            let noted = store.note_taken_of_stream(order.taken()).await;
            noted.or_log("note up to where the messages of other machines were taken");
        }
    }

    /// Tells other machines which of their messages were read.
    async fn tell_read(&self, link: &Link) {
        while let Some((machine, outcome)) = self.machines().next_read() {
            link.tell(&machine, &outcome).await;
        }
    }

    /// Sends this machine itself an outcome, which comes back with the time of the server.
    async fn send_itself(&self, link: &Link) {
        let before = SystemTime::now();
        let id = link.tell_itself().await;
        self.machines().change(|state| state.sent_itself = Some((id, before)));
    }

    /// Compares the clocks when the outcome is back that this machine sent itself: the server took it in between.
    async fn compare_clocks(&self, link: &Link, outcome: &Outcome, receipt: &Receipt) {
        let sent = self.machines().state.borrow().sent_itself;
        let Some((_, before)) = sent.filter(|(id, _)| id.to_string() == outcome.id) else { return };
        match SystemTime::now().duration_since(before) {
            Ok(took) if took < SOON && !receipt.is_repeated => {
                let ahead = ahead_ms(receipt.taken, before + took / 2);
                self.machines().change(|state| state.clock_ms = Some(ahead));
            }
            // That is too long to tell.
            _ => self.send_itself(link).await,
        }
    }

    async fn take_presence(&self, link: &Link, arrived: Arrived) {
        match arrived {
            Arrived::Message { .. } | Arrived::Outcome { .. } | Arrived::Unreadable { .. } => {}
            Arrived::SameName => {
                let own = self.machines().own();
                let own = own.as_ref().map_or("", MachineName::as_str);
                self.shared.add_notice(format!(
                    "another host is connected as machine `{own}`, too, and each message reaches only one of the two: \
                     run yoi mesh leave on one of them, and give it a line of its own"
                ));
            }
            Arrived::Presence { from, presence } => {
                if presence.solicits {
                    self.announce(link, false).await;
                }
                self.note_present(from, presence);
            }
        }
    }

    /// Says which Pods of this host take part.
    async fn announce(&self, link: &Link, solicits: bool) {
        let seats = self.shared.mesh.seats.borrow().clone();
        let agents = seats.values().map(|seat| seat.pod.to_string()).collect();
        link.announce(Presence { agents, solicits, ..Presence::default() }).await;
    }

    fn note_present(&self, from: MachineName, presence: Presence) {
        let until = Instant::now() + PRESENT;
        let mut is_new = false;
        self.machines().change(|state| {
            let before = state.present.get(&from).map(|present| &present.agents);
            let known = before.is_some();
            if presence.leaves {
                is_new = state.present.remove(&from).is_some();
            } else if known || state.present.len() < MACHINES {
                is_new = before != Some(&presence.agents);
                state.present.insert(from, Present { agents: presence.agents, until });
            }
        });
        if is_new {
            self.agents_changed();
        }
    }

    fn forget_silent(&self) {
        let now = Instant::now();
        let mut forgets = false;
        self.machines().change(|state| {
            let before = state.present.len();
            state.present.retain(|_, present| present.until > now);
            forgets = state.present.len() < before;
        });
        if forgets {
            self.agents_changed();
        }
    }

    fn agents_changed(&self) {
        roster::changed(&self.shared, Change::Member);
    }
}

/// By how many milliseconds one time is later than another.
fn ahead_ms(one: SystemTime, other: SystemTime) -> i64 {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    match one.duration_since(other) {
        Ok(ahead) => ms(ahead),
        Err(behind) => -ms(behind.duration()),
    }
}

/// Resolves when something in a watched directory changed.
async fn changed(changes: &std::io::Result<Changes>) {
    let next = match changes {
        Ok(changes) => changes.next().await.is_ok(),
        Err(_) => false,
    };
    if !next {
        // Nothing is reported: the next start of the host reads the file.
        std::future::pending::<()>().await;
    }
}
