//! The leader's part of a mesh: one task that owns every connection and routes between them, so messages keep
//! their order. Each turn reads what arrived, bounded per connection, and then writes what has to go out, many
//! messages at once.

mod audit;
mod connection;
mod gateway;
mod queue;
mod routing;

pub(crate) use audit::{Audit, Entry as AuditEntry};
pub(crate) use routing::{ABSENT, read_ack};

use crate::mesh::{Admits, Socket};
use crate::protocol::Framer;
use connection::{Connection, Stage};
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use gateway::Gateway;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, sleep_until};

/// The most members; further ones are closed when they register.
pub(crate) const MAX_MEMBERS: usize = 1024;
/// The most connections that have not registered; a further one closes the oldest of them.
const MAX_UNREGISTERED: usize = 128;
/// How long a connection may be open without registering.
const REGISTER_LIMIT: Duration = Duration::from_secs(30);
/// A member that takes nothing for this long, although something waits for it, is closed.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is read of one connection before others have their turn, in bytes.
const PIECE: usize = 64 * 1024;
/// Connections that are read before what has to go out is written.
const READ_AT_ONCE: usize = 32;
/// How long a leader that ends still serves its members, so that messages under way between them arrive.
const LAST_SERVICE: Duration = Duration::from_millis(100);
/// How often the audit is handed over and deadlines are looked at, while there are any.
const TICK: Duration = Duration::from_millis(50);

/// The handle of the process that leads to its own leader task. Dropping it ends the leadership.
#[derive(Debug)]
pub(crate) struct Leadership {
    commands: mpsc::Sender<UnixStream>,
    task: JoinHandle<()>,
}

impl Leadership {
    /// Starts to lead on a socket that listens already.
    pub(crate) fn start(listener: UnixListener, socket: &Socket) -> Self {
        let (commands, inbox) = mpsc::channel(1);
        let broker = Broker::new(Audit::start(&socket.audit), socket.admits);
        let task = tokio::spawn(broker.run(listener, inbox));
        Self { commands, task }
    }

    /// A connection to this leader that does not go by the path, so it is one to no other leader.
    pub(crate) async fn connect(&self) -> std::io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let gone = |_| std::io::Error::from(ErrorKind::BrokenPipe);
        self.commands.send(theirs).await.map_err(gone)?;
        Ok(ours)
    }

    /// Routes what its members have written so far, closes every connection and writes the audit.
    pub(crate) async fn end(self) {
        drop(self.commands);
        // A leader that panicked holds no connection any more.
        let _ = self.task.await;
    }
}

struct Broker {
    connections: BTreeMap<u64, Connection>,
    /// The number of the next connection; none is used twice.
    next: u64,
    /// Registered connections by name.
    names: HashMap<Arc<str>, u64>,
    /// Registered connections in the order in which they joined.
    roster: BTreeMap<u64, u64>,
    joined: u64,
    gateway: Option<Gateway>,
    /// Connections that have something to be written.
    dirty: VecDeque<u64>,
    /// Connections to be waited for.
    awaited: Vec<(u64, Arc<UnixStream>, Interest)>,
    /// Bytes in all queues.
    queued: usize,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    ids: crate::mesh::id::Ids,
    audit: Audit,
    admits: Admits,
    /// Whether accepting failed and waits for the next tick.
    resting: bool,
}

/// Resolves when a connection is ready.
async fn ready(key: u64, stream: Arc<UnixStream>, interest: Interest) -> (u64, Interest) {
    // A connection with an error is ready: the read or write that follows finds it.
    let _ = stream.ready(interest).await;
    (key, interest)
}

impl Broker {
    fn new(audit: Audit, admits: Admits) -> Self {
        Self {
            connections: BTreeMap::new(),
            next: 0,
            names: HashMap::new(),
            roster: BTreeMap::new(),
            joined: 0,
            gateway: None,
            dirty: VecDeque::new(),
            awaited: Vec::new(),
            queued: 0,
            buffer: vec![0; PIECE],
            scratch: Vec::new(),
            ids: crate::mesh::id::Ids::new(),
            audit,
            admits,
            resting: false,
        }
    }

    async fn run(mut self, listener: UnixListener, mut commands: mpsc::Receiver<UnixStream>) {
        let mut waiting = FuturesUnordered::new();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ends: Option<Instant> = None;
        loop {
            waiting
                .extend(self.awaited.drain(..).map(|(key, stream, what)| ready(key, stream, what)));
            tokio::select! {
                Some((key, interest)) = waiting.next() => {
                    self.serve(key, interest);
                    for _ in 1..READ_AT_ONCE {
                        let Some(Some((key, interest))) = waiting.next().now_or_never() else { break };
                        self.serve(key, interest);
                    }
                }
                accepted = listener.accept(), if !self.resting && ends.is_none() => match accepted {
                    Ok((stream, _)) => self.accept(stream),
                    Err(error) => self.resting = error.kind() != ErrorKind::ConnectionAborted,
                },
                added = commands.recv(), if ends.is_none() => match added {
                    Some(stream) => self.add(stream),
                    None => {
                        let until = Instant::now() + LAST_SERVICE;
                        self.read_rest(until);
                        ends = Some(until);
                    }
                },
                _ = tick.tick(), if self.has_deadlines() => self.look_at_deadlines(),
                () = sleep_until(ends.unwrap_or_else(Instant::now).into()), if ends.is_some() => break,
            }
            self.write_out();
            if ends.is_some() && self.is_settled() {
                break;
            }
        }
        let audit = self.audit;
        // The audit is written in a thread; if that fails, its lines are lost and nothing else.
        let _ = tokio::task::spawn_blocking(move || audit.close()).await;
    }

    /// Takes a connection of this user that is none of a Pod's commands.
    fn accept(&mut self, stream: UnixStream) {
        let own = rustix::process::geteuid().as_raw();
        let Ok(peer) = stream.peer_cred() else { return };
        if peer.uid() == own && peer.pid().is_none_or(self.admits) {
            self.add(stream);
        }
    }

    fn add(&mut self, stream: UnixStream) {
        let unregistered = self.connections.len() - self.roster.len();
        if unregistered >= MAX_UNREGISTERED {
            let oldest = self.connections.iter().find(|(_, connection)| !connection.is_member());
            if let Some((key, _)) = oldest {
                self.close(*key);
            }
        }
        let key = self.next;
        self.next += 1;
        let stream = Arc::new(stream);
        self.awaited.push((key, stream.clone(), Interest::READABLE));
        self.connections.insert(key, Connection::new(stream));
    }

    fn serve(&mut self, key: u64, interest: Interest) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if interest.is_writable() {
            connection.blocked = None;
            self.mark(key);
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        match connection.stream.try_read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.await_readable(key),
            Ok(count) if count > 0 => self.arrived(key, &buffer[..count]),
            // A member that closes its stream, or only its own direction of it, has left.
            Ok(_) | Err(_) => self.close(key),
        }
        self.buffer = buffer;
    }

    fn arrived(&mut self, key: u64, bytes: &[u8]) {
        if self.feed(key, bytes) {
            self.await_readable(key);
        }
    }

    /// Handles the lines that end in these bytes; returns whether the connection is still open.
    fn feed(&mut self, key: u64, bytes: &[u8]) -> bool {
        let Some(connection) = self.connections.get_mut(&key) else { return false };
        let mut framer = std::mem::replace(&mut connection.framer, Framer::new(0));
        framer.feed(bytes);
        while let Some(frame) = framer.line() {
            if self.line(key, &mut framer, frame).is_break() {
                self.close(key);
                break;
            }
        }
        let Some(connection) = self.connections.get_mut(&key) else { return false };
        connection.framer = framer;
        true
    }

    /// Reads all bytes that the members have written so far, also those that the runtime has not reported yet.
    fn read_rest(&mut self, until: Instant) {
        let mut unread: Vec<u64> = self.connections.keys().copied().collect();
        let mut buffer = std::mem::take(&mut self.buffer);
        while !unread.is_empty() && Instant::now() < until {
            unread.retain(|key| {
                let Some(connection) = self.connections.get(key) else { return false };
                let read = rustix::io::read(&*connection.stream, &mut buffer);
                read.is_ok_and(|count| count > 0 && self.feed(*key, &buffer[..count]))
            });
        }
        self.buffer = buffer;
    }

    /// Whether no message is under way between members.
    fn is_settled(&self) -> bool {
        self.queued == 0 && self.connections.values().all(|member| member.unconfirmed.is_empty())
    }

    fn await_readable(&mut self, key: u64) {
        if let Some(connection) = self.connections.get(&key) {
            self.awaited.push((key, connection.stream.clone(), Interest::READABLE));
        }
    }

    /// Notes that something has to be written to a connection.
    fn mark(&mut self, key: u64) {
        if let Some(connection) = self.connections.get_mut(&key)
            && !std::mem::replace(&mut connection.dirty, true)
        {
            self.dirty.push_back(key);
        }
    }

    /// Writes what the connections take. A message that was written whole is acknowledged then, so what was
    /// acknowledged is in the kernel, whatever happens to this process.
    fn write_out(&mut self) {
        while let Some(key) = self.dirty.pop_front() {
            let Some(connection) = self.connections.get_mut(&key) else { continue };
            connection.dirty = false;
            let before = connection.queue.len();
            let written = connection.write();
            self.queued -= before - connection.queue.len();
            match written {
                Err(_) => {
                    self.close(key);
                    continue;
                }
                Ok(connection::Written::All) => {}
                Ok(connection::Written::Blocked) => {
                    self.awaited.push((key, connection.stream.clone(), Interest::WRITABLE));
                }
                Ok(connection::Written::StillBlocked) => {}
            }
            self.acknowledge_written(key);
        }
    }

    fn has_deadlines(&self) -> bool {
        let gateways = usize::from(self.gateway.is_some());
        let all_members = self.connections.len() == self.roster.len() + gateways;
        !self.audit.is_empty() || self.resting || !all_members || self.queued > 0
    }

    fn look_at_deadlines(&mut self) {
        self.audit.look();
        self.resting = false;
        let overdue = |connection: &Connection| match (&connection.stage, connection.blocked) {
            (Stage::Unregistered(since), _) => since.elapsed() > REGISTER_LIMIT,
            (Stage::Member(_), Some(since)) => since.elapsed() > PATIENCE,
            (Stage::Member(_), None) => false,
        };
        let overdue: Vec<u64> =
            self.connections.iter().filter(|(_, c)| overdue(c)).map(|(key, _)| *key).collect();
        overdue.into_iter().for_each(|key| self.close(key));
    }
}

/// Now, for the deadline of a connection.
fn now() -> Instant {
    Instant::now()
}
