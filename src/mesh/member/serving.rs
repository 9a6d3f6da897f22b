//! The task of a member: serves one connection until it ends, and gets the next one.

use crate::backoff::Backoff;
use crate::disk::FileId;
use crate::mesh::envelope::{To, elsewhere, line, request};
use crate::mesh::id::Ids;
use crate::mesh::member::connecting::{self, Led, Seated};
use crate::mesh::member::resending::{Outgoing, Resends};
use crate::mesh::member::session::Session;
use crate::mesh::member::{Command, JoinError, Options, Received, Sent, Standing, Status};
use crate::mesh::name::GATEWAY;
use std::time::Duration;
use tokio::io::Interest;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// How often a leader of ours is asked for a sign of life.
const HEARTBEAT: Duration = Duration::from_millis(400);
/// Heartbeats in a row without a sign after which the leader counts as stopped.
const SILENT: u32 = 2;
/// How long a leader may take to answer that a member leaves, and how long the member may take to confirm its
/// messages.
const FAREWELL: Duration = Duration::from_millis(500);
/// Bytes that wait to be written above which no further send is taken.
const OUT: usize = 1024 * 1024;
/// Between two tries to join again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Why a connection ended.
enum End {
    /// The leader is gone, or the path leads to another one.
    Lost,
    /// The leader does not answer.
    Frozen,
    /// This member leaves.
    Left,
}

pub(super) struct Actor {
    options: Options,
    commands: mpsc::Receiver<Command>,
    inbox: mpsc::Sender<Received>,
    standing: watch::Sender<Standing>,
    leaving: CancellationToken,
    ids: Ids,
    buffer: Vec<u8>,
}

impl Actor {
    pub(super) fn new(
        options: Options,
        commands: mpsc::Receiver<Command>,
        inbox: mpsc::Sender<Received>,
        standing: watch::Sender<Standing>,
        leaving: CancellationToken,
    ) -> Self {
        Self { options, commands, inbox, standing, leaving, ids: Ids::new(), buffer: Vec::new() }
    }

    pub(super) async fn run(mut self, seated: Seated) {
        let Seated { mut session, leadership: mut led } = seated;
        session.take_lines();
        loop {
            let end = self.serve(&mut session, led.as_ref()).await;
            connecting::end(&self.options.socket.path, led.take()).await;
            let (socket, name, ours) = (session.socket, session.name.clone(), session.ours);
            let parked = std::mem::take(&mut session.parked);
            let seen = session.seen.take();
            let undecided = session.undecided();
            let frozen = match end {
                End::Left => return undecided.into_iter().for_each(Outgoing::fail),
                End::Lost => None,
                End::Frozen => Some(socket),
            };
            let undecided = if ours { undecided } else { failed_in_doubt(undecided) };
            let Some(seated) = self.join_again(frozen).await else {
                return undecided.into_iter().for_each(Outgoing::fail);
            };
            Seated { session, leadership: led } = seated;
            session.seen = seen;
            session.take_lines();
            // Under another name, or under a leader that does not know messages which are sent again, they would
            // come twice.
            let same = session.ours && session.name == name;
            let undecided = if same { undecided } else { failed_in_doubt(undecided) };
            session.resends = Resends::of(undecided);
            session.send_due();
            // What was read of the former leader comes before what the new one says.
            session.parked = parked.into_iter().chain(session.parked.drain(..)).collect();
            let standing = session.standing(led.is_some());
            session.parked.push_back(Received::Rejoined(standing.clone()));
            self.standing.send_replace(standing);
        }
    }

    /// Joins again, however long that takes; `None`: this member leaves, or the leader knows no gateway.
    async fn join_again(&self, mut frozen: Option<FileId>) -> Option<Seated> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let failed = tokio::select! {
                () = self.leaving.cancelled() => return None,
                joined = connecting::connect(&self.options, frozen.take()) => match joined {
                    Ok(seated) => return Some(seated),
                    Err(JoinError::Closed(_)) if self.options.name == GATEWAY => return None,
                    Err(error) => error,
                },
            };
            tracing::debug!("the mesh cannot be joined again yet: {failed}");
            tokio::select! {
                () = self.leaving.cancelled() => return None,
                () = sleep(backoff.pause()) => {}
            }
        }
    }

    async fn serve(&mut self, session: &mut Session, led: Option<&Led>) -> End {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat.reset();
        // The path may have changed before the watch began.
        if self.is_displaced(session, led) {
            return End::Lost;
        }
        let inbox = self.inbox.clone();
        loop {
            self.deliver(session);
            if session.may_end() {
                return self.end(session);
            }
            let (again, farewell) = (session.resends.again, session.farewell);
            let reads = session.parked.is_empty();
            let writes = !session.out.is_empty();
            let interest = match (reads, writes) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (_, false) => Interest::READABLE,
                (false, true) => Interest::WRITABLE,
            };
            let done = tokio::select! {
                ready = session.stream.ready(interest), if reads || writes => {
                    ready.is_ok_and(|ready| {
                        let read = !ready.is_readable() || !reads || session.read(&mut self.buffer).is_ok();
                        read && session.write().is_ok()
                    })
                }
                room = inbox.reserve(), if !reads => {
                    match (room, session.parked.pop_front()) {
                        (Ok(room), Some(received)) => room.send(received),
                        _ => session.parked.clear(),
                    }
                    true
                }
                command = self.commands.recv(), if session.out.len() < OUT => match command {
                    Some(command) => self.carry_out(session, command),
                    None => return End::Left,
                },
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                    session.resends.again = None;
                    session.send_due();
                    session.write().is_ok()
                }
                () = session.watch.changed() => !self.is_displaced(session, led),
                _ = heartbeat.tick() => {
                    if self.is_frozen(session, led) {
                        return End::Frozen;
                    }
                    session.write().is_ok()
                }
                () = self.leaving.cancelled(), if farewell.is_none() => {
                    if !session.ours {
                        return self.end(session);
                    }
                    let id = self.ids.next();
                    session.out.extend(request(&session.name, id, "yoi_leaving"));
                    session.farewell = Some((id, Instant::now() + FAREWELL));
                    session.write().is_ok()
                }
                () = sleep_until(farewell.map_or_else(Instant::now, |(_, until)| until)), if farewell.is_some() => {
                    return self.end(session);
                }
            };
            if !done {
                return End::Lost;
            }
        }
    }

    /// Leaves. Messages that were confirmed before are acknowledged.
    fn end(&mut self, session: &mut Session) -> End {
        while let Ok(command) = self.commands.try_recv() {
            self.command(session, command);
        }
        // If the leader takes no bytes, the rest is lost: this member leaves.
        let _ = session.write();
        End::Left
    }

    /// Gives what was read to the inbox, as far as that has room.
    fn deliver(&self, session: &mut Session) {
        while let Some(received) = session.parked.pop_front() {
            match self.inbox.try_send(received) {
                Ok(()) => {}
                Err(TrySendError::Full(received)) => return session.parked.push_front(received),
                // This process wants no messages.
                Err(TrySendError::Closed(_)) => return session.parked.clear(),
            }
        }
    }

    /// Carries out a command and what came with it, and writes once; whether the connection is still good.
    fn carry_out(&mut self, session: &mut Session, command: Command) -> bool {
        let mut next = Some(command);
        while let Some(command) = next {
            self.command(session, command);
            next = if session.out.len() < OUT { self.commands.try_recv().ok() } else { None };
        }
        session.write().is_ok()
    }

    fn command(&mut self, session: &mut Session, command: Command) {
        match command {
            // A caller that gave up must not find its message delivered later.
            Command::Send { done, .. } if done.is_closed() => {}
            Command::Send { from, id, to: To::One(to), re, body, done } => {
                let message = Outgoing { from, id, to, re, body, done, in_doubt: false };
                if let Some(message) = session.resends.behind(message) {
                    session.send(message);
                }
            }
            Command::Send { id, to, re, body, done, .. } => {
                session.out.extend(line(&session.name, &to, id, re, &body));
                let _ = done.send(Sent { id, status: Status::Sent, reason: None });
            }
            Command::List(done) => {
                let id = self.ids.next();
                session.out.extend(request(&session.name, id, "list_peers"));
                session.lists.insert(id, done);
            }
            Command::Elsewhere(agents) => {
                session.out.extend(elsewhere(self.ids.next(), agents));
            }
            Command::Confirm { from, to, id, fate } => {
                if let Some(seen) = &mut session.seen {
                    seen.note_fate(from, to, id, fate.clone());
                    session.confirm(id, &fate);
                }
            }
        }
    }

    /// Whether the path leads to another socket than this connection. A leader also steps down where the path leads
    /// nowhere; a follower stays until another leader is there.
    fn is_displaced(&self, session: &Session, led: Option<&Led>) -> bool {
        let there = FileId::at_link(&self.options.socket.path);
        match (led, there) {
            (Some(led), Ok(there)) => there != Some(led.socket),
            (None, Ok(Some(there))) => there != session.socket,
            (None, Ok(None)) | (_, Err(_)) => false,
        }
    }

    /// Whether a leader of ours has been silent for too long; asks for the next sign of life. A process that was
    /// itself stopped first reads what came meanwhile.
    fn is_frozen(&mut self, session: &mut Session, led: Option<&Led>) -> bool {
        session.pending.retain(|_, (_, message)| !message.done.is_closed());
        session.send_due();
        session.lists.retain(|_, done| !done.is_closed());
        if led.is_some() || !session.ours || !session.parked.is_empty() {
            session.silent = 0;
            return false;
        }
        // An error shows again at the next read.
        let _ = session.read(&mut self.buffer);
        session.silent = if std::mem::take(&mut session.alive) { 0 } else { session.silent + 1 };
        if session.silent >= SILENT {
            return true;
        }
        let ping = request(&session.name, self.ids.next(), "yoi_ping");
        session.out.extend(ping);
        false
    }
}

/// Fails the messages that a leader may have delivered; the others.
fn failed_in_doubt(messages: Vec<Outgoing>) -> Vec<Outgoing> {
    let (doubtful, others): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| message.in_doubt);
    doubtful.into_iter().for_each(Outgoing::fail);
    others
}
