//! The agent of an MCP client: a task that takes the lock of its folder, joins the mesh, keeps what arrives, and begins
//! anew when one of these is lost. Others hold the handle.

use crate::backoff::Backoff;
use crate::bridge::mailbox::{Arrival, Batch, Kept, Mailbox};
use crate::bridge::socket_of;
use crate::config::{Dirs, Env, SettingsFile, settings};
use crate::disk;
use crate::mesh::{
    self, FolderAgent, FolderLock, Inbox, Member, Message, Options, Received, Socket,
    remote_pi_locks,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Requests to the task that wait; the next caller waits.
const COMMANDS: usize = 16;
/// Between two tries to take the lock or to join, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a tool waits for the first try to join.
const JOINING: Duration = Duration::from_secs(2);
/// How often the lock is looked at on the mesh of remote-pi, whose agents can take it away.
const LOOK: Duration = Duration::from_secs(1);
/// Messages that are kept with one write.
const BURST_MESSAGES: usize = 256;
/// The bytes of their bodies, but for the last one.
const BURST_BYTES: usize = 4 * 1024 * 1024;
/// The directory of locks and mailboxes in the data directory.
const DIR: &str = "mcp";

/// The handle to the agent; cheap to clone.
#[derive(Clone)]
pub struct Agent {
    commands: mpsc::Sender<Command>,
    place: watch::Receiver<Place>,
}

/// Where the agent is now.
#[derive(Clone)]
enum Place {
    /// The first try to join is under way.
    Joining,
    /// It is not on the mesh; why, as a sentence.
    Apart(String),
    Joined(Arc<Member>),
}

/// A message that was kept and that the client does not know of.
#[derive(Debug)]
pub struct Arrived {
    pub from: String,
    pub id: String,
}

/// What the client is given.
#[derive(Debug)]
pub struct Delivery {
    pub batch: Batch,
    /// What is wrong, as sentences.
    pub notes: Vec<String>,
}

enum Command {
    /// The next batch; whether the client took the last one.
    Give { confirmed: bool, done: oneshot::Sender<Result<Delivery, String>> },
    /// The client answered a message, so it took the batch of that message.
    Answered { id: String, done: oneshot::Sender<()> },
}

impl Agent {
    /// Starts the agent. `arrived` is told of each message that was kept. It leaves when `leaving` is cancelled; the
    /// task ends then.
    pub fn start(
        dirs: Dirs,
        env: Env,
        agent: FolderAgent,
        arrived: mpsc::Sender<Arrived>,
        leaving: CancellationToken,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (commands, requests) = mpsc::channel(COMMANDS);
        let (place, current) = watch::channel(Place::Joining);
        let settings = SettingsFile::open(&dirs.config);
        for mistake in settings.last().mistakes {
            tracing::warn!("{mistake}");
        }
        let task = Task {
            dirs,
            env,
            agent,
            requests,
            place,
            arrived,
            leaving,
            lock: None,
            mailbox: None,
            settings,
            denied: BTreeMap::new(),
        };
        (Self { commands, place: current }, tokio::spawn(task.run()))
    }

    /// The member of the mesh, or why there is none.
    pub async fn member(&self) -> Result<Arc<Member>, String> {
        let mut place = self.place.clone();
        let decided = place.wait_for(|place| !matches!(place, Place::Joining));
        // Without a decision the place is still the first one.
        drop(timeout(JOINING, decided).await);
        match &*self.place.borrow() {
            Place::Joined(member) => Ok(member.clone()),
            Place::Apart(why) => Err(why.clone()),
            Place::Joining => {
                Err("the mesh is still being joined: call again in a moment".to_owned())
            }
        }
    }

    /// The name that the mesh gave the agent, while it is on the mesh.
    pub fn name(&self) -> Option<String> {
        match &*self.place.borrow() {
            Place::Joined(member) => Some(member.standing().name),
            Place::Joining | Place::Apart(_) => None,
        }
    }

    /// The next messages; `confirmed` says that the client took those before.
    pub async fn give(&self, confirmed: bool) -> Result<Delivery, String> {
        let ended = || "the agent has ended: start the MCP server anew".to_owned();
        let (done, delivery) = oneshot::channel();
        self.commands.send(Command::Give { confirmed, done }).await.map_err(|_| ended())?;
        delivery.await.map_err(|_| ended())?
    }

    /// Notes that the client answered a message.
    pub async fn answered(&self, id: String) {
        let (done, noted) = oneshot::channel();
        // An agent that has ended notes nothing.
        let _ = self.commands.send(Command::Answered { id, done }).await;
        let _ = noted.await;
    }
}

struct Task {
    dirs: Dirs,
    env: Env,
    agent: FolderAgent,
    requests: mpsc::Receiver<Command>,
    place: watch::Sender<Place>,
    arrived: mpsc::Sender<Arrived>,
    leaving: CancellationToken,
    lock: Option<FolderLock>,
    mailbox: Option<Mailbox>,
    settings: SettingsFile,
    /// The messages that were denied since the client was last told, by whether their senders know.
    denied: BTreeMap<bool, Denied>,
}

/// Messages that were denied.
#[derive(Default)]
struct Denied {
    count: usize,
    /// The sentence about the last of them.
    last: String,
}

impl Denied {
    fn note(self) -> String {
        match self.count {
            1 => self.last,
            count => format!("{count} messages were not taken; of the last one: {}", self.last),
        }
    }
}

/// The limits of the mailbox in the present settings.
#[derive(Clone, Copy)]
struct Limits {
    /// The most bytes of a body.
    body: usize,
    /// The most messages that wait.
    waiting: usize,
}

impl Limits {
    fn of(settings: &settings::Mesh) -> Self {
        let number =
            |number: std::num::NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
        Self {
            body: number(settings.message_kib).saturating_mul(1024),
            waiting: number(settings.waiting),
        }
    }
}

/// Leaves the mesh, also while a call holds the member, so that the name is free.
async fn leave(member: Arc<Member>) {
    let mut standing = member.standings();
    member.begin_to_leave();
    drop(member);
    // The task of the member holds the other end until it has left.
    while standing.changed().await.is_ok() {}
}

/// Why a stay on the mesh ended.
enum End {
    /// The agent leaves.
    Left,
    /// It lost its place, or did not get one; why.
    Apart(String),
}

impl Task {
    async fn run(mut self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut logged = None;
        loop {
            match self.stay(&mut backoff).await {
                End::Left => return,
                End::Apart(why) => {
                    if logged.as_ref() != Some(&why) {
                        tracing::warn!("the agent {} is not on the mesh: {why}", self.agent.name);
                        logged = Some(why.clone());
                    }
                    self.place.send_replace(Place::Apart(why));
                }
            }
            if self.beside(sleep(backoff.pause())).await.is_none() {
                return;
            }
        }
    }

    /// Takes the lock, joins and serves, until one of these fails.
    async fn stay(&mut self, backoff: &mut Backoff) -> End {
        let socket = match self.socket() {
            Ok(socket) => socket,
            Err(why) => return End::Apart(why),
        };
        match self.take_place(&socket).await {
            Some(Ok(())) => {}
            Some(Err(why)) => return End::Apart(why),
            None => return End::Left,
        }
        let name = self.agent.name.clone();
        let options = Options { socket, name, leads: true, confirms: true };
        let (member, inbox) = match self.beside(mesh::join(options)).await {
            Some(Ok(joined)) => joined,
            Some(Err(error)) => return End::Apart(format!("the mesh cannot be joined: {error}")),
            None => return End::Left,
        };
        backoff.reset();
        self.place.send_replace(Place::Joined(Arc::new(member)));
        let end = self.serve(inbox).await;
        let last = self.place.send_replace(Place::Apart("the mesh was left".to_owned()));
        if let Place::Joined(member) = last {
            leave(member).await;
        }
        end
    }

    /// The socket as the settings say it now.
    fn socket(&self) -> Result<Socket, String> {
        let settings = self.settings.now().settings;
        socket_of(&settings.mesh, &self.dirs, &self.env).map_err(|error| error.to_string())
    }

    fn dir(&self) -> PathBuf {
        self.dirs.data.join(DIR)
    }

    /// Takes the lock, unless it is held, and opens the mailbox. `None`: the agent leaves.
    async fn take_place(&mut self, socket: &Socket) -> Option<Result<(), String>> {
        if !self.lock.as_ref().is_some_and(FolderLock::is_held) {
            self.mailbox = None;
            self.lock = None;
            let (agent, dir) = (self.agent.clone(), self.dir());
            let theirs = remote_pi_locks(&socket.path, &self.env);
            let taking = async move { FolderLock::take(&agent, &dir, theirs.as_deref()).await };
            match self.beside(taking).await? {
                Ok(lock) => self.lock = Some(lock),
                Err(error) => return Some(Err(error.to_string())),
            }
        }
        Some(self.with_mailbox(|_| Ok(())).await)
    }

    /// Waits for something and serves the client meanwhile. `None`: the agent leaves.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                command = self.requests.recv() => self.carry_out(command?).await,
                () = self.leaving.cancelled() => return None,
            }
        }
    }

    /// Serves as a member.
    async fn serve(&mut self, mut inbox: Inbox) -> End {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                received = inbox.next() => match received {
                    Some(Received::Message(message)) => self.keep(message, &mut inbox).await,
                    // Presence wakes no client.
                    Some(Received::PeerJoined(_) | Received::PeerLeft(_) | Received::Rejoined(_)) => {}
                    None => return End::Apart("the mesh was lost".to_owned()),
                },
                command = self.requests.recv() => match command {
                    Some(command) => self.carry_out(command).await,
                    None => return End::Left,
                },
                _ = look.tick() => {
                    if !self.lock.as_ref().is_some_and(FolderLock::is_held) {
                        let folder = self.agent.folder.display();
                        return End::Apart(format!("the lock of {folder} was taken away"));
                    }
                }
                () = self.leaving.cancelled() => return End::Left,
            }
        }
    }

    /// Keeps a message and those that arrived with it, and then tells their senders.
    async fn keep(&mut self, first: Message, inbox: &mut Inbox) {
        let mut size = first.body.get().len();
        let mut messages = vec![first];
        while messages.len() < BURST_MESSAGES && size < BURST_BYTES {
            match inbox.try_next() {
                Some(Received::Message(message)) => {
                    size += message.body.get().len();
                    messages.push(message);
                }
                Some(_) => {}
                None => break,
            }
        }
        let limit = Limits::of(&self.settings.now().settings.mesh);
        let (messages, large): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| message.body.get().len() <= limit.body);
        for message in large {
            let why = format!("the body of a message to it has at most {} KiB", limit.body / 1024);
            self.deny(&message, why, inbox).await;
        }
        let now = crate::protocol::now_ms();
        let arrived: Vec<Kept> = messages.iter().map(|message| Kept::new(message, now)).collect();
        match self.with_mailbox(move |mailbox| mailbox.keep(arrived, limit.waiting)).await {
            Ok(outcome) => {
                for (message, arrival) in messages.iter().zip(outcome) {
                    self.tell(message, arrival, inbox).await;
                }
            }
            Err(why) => {
                for message in &messages {
                    self.deny(message, format!("its mailbox cannot be written: {why}"), inbox)
                        .await;
                }
            }
        }
    }

    async fn deny(&mut self, message: &Message, why: String, inbox: &Inbox) {
        let member = match &*self.place.borrow() {
            Place::Joined(member) => Some(member.clone()),
            Place::Joining | Place::Apart(_) => None,
        };
        if let Some(standing) = member.map(|member| member.standing()) {
            let denied = self.denied.entry(standing.tells_sender(message)).or_default();
            denied.count += 1;
            denied.last = standing.not_taken(message, &why);
        }
        inbox.deny(message, why).await;
    }

    /// Tells the sender whether its message was kept, and the client that a new message is there.
    async fn tell(&mut self, message: &Message, arrival: Arrival, inbox: &Inbox) {
        match arrival {
            Arrival::Full => {
                let why = "so many messages wait for it that it takes no more; try again later";
                return self.deny(message, why.to_owned(), inbox).await;
            }
            Arrival::Known => {}
            Arrival::Kept => {
                let arrived = Arrived { from: message.from.clone(), id: message.id.to_string() };
                // A client that is told of so many already knows that messages wait.
                let _ = self.arrived.try_send(arrived);
            }
        }
        inbox.confirm(message).await;
    }

    async fn carry_out(&mut self, command: Command) {
        match command {
            Command::Give { confirmed, done } => {
                let delivery = self.give(confirmed).await;
                // A client that gave up is given the batch again.
                let _ = done.send(delivery);
            }
            Command::Answered { id, done } => {
                let confirm = move |mailbox: &mut Mailbox| match mailbox.gave(&id) {
                    true => mailbox.confirm(),
                    false => Ok(()),
                };
                if let Err(why) = self.with_mailbox(confirm).await {
                    tracing::warn!("a batch could not be noted as taken: {why}");
                }
                // The caller may be gone.
                let _ = done.send(());
            }
        }
    }

    async fn give(&mut self, confirmed: bool) -> Result<Delivery, String> {
        let apart = match &*self.place.borrow() {
            Place::Apart(why) => Some(why.clone()),
            Place::Joining | Place::Joined(_) => None,
        };
        if self.lock.is_none() {
            return Err(apart.unwrap_or_else(|| "the mesh is still being joined".to_owned()));
        }
        let batch = self.with_mailbox(move |mailbox| mailbox.give(confirmed)).await?;
        let denied = std::mem::take(&mut self.denied).into_values().map(Denied::note);
        let apart = apart.map(|why| format!("no message arrives at the moment: {why}"));
        Ok(Delivery { batch, notes: denied.chain(apart).collect() })
    }

    /// Works on the mailbox, which is opened first where it is not.
    async fn with_mailbox<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Mailbox) -> Result<T, disk::DiskError> + Send + 'static,
    ) -> Result<T, String> {
        let (mailbox, path) =
            (self.mailbox.take(), self.dir().join(format!("{}.jsonl", self.agent.id())));
        let done = disk::commit(move || {
            let mut mailbox = match mailbox {
                Some(mailbox) => mailbox,
                None => Mailbox::open(&path)?,
            };
            let done = work(&mut mailbox);
            Ok((mailbox, done))
        });
        let done: Result<_, disk::DiskError> = done.await.map_err(|error| error.to_string())?;
        let (mailbox, done) = done.map_err(|error| error.to_string())?;
        self.mailbox = Some(mailbox);
        done.map_err(|error| error.to_string())
    }
}
