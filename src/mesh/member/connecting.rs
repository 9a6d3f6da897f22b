//! How a member gets a connection: the election, and the registration with the leader it found.

use crate::disk::FileId;
use crate::mesh::broker::Leadership;
use crate::mesh::election::{self, ElectionError, Seat, Wants};
use crate::mesh::envelope::{Envelope, MAX_FRAME, RegisterAck, Roster, register, text_of};
use crate::mesh::member::resending::Resends;
use crate::mesh::member::seen::Seen;
use crate::mesh::member::session::Session;
use crate::mesh::member::{Options, join};
use crate::mesh::watch::Watch;
use crate::mesh::{REGISTER_WAIT, Socket};
use crate::protocol::{Frame, Framer};
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout_at};

/// A leader that does not answer a registration for this long is stopped; one of ours is replaced.
const FROZEN: Duration = Duration::from_secs(1);
/// How often a registration is begun anew when the leader closes the connection: it may be on its way out.
const TRIES: u32 = 10;
/// Between two registrations.
const PAUSE: Duration = Duration::from_millis(20);
/// Room for the name that the leader writes into a line, in bytes.
const LINE: usize = MAX_FRAME + 64 * 1024;

/// Why a process could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Election(#[from] ElectionError),
    #[error("the agent that leads the mesh at {} ({process}) does not answer: end it, or let it go on", path.display())]
    Frozen { path: PathBuf, process: String },
    #[error("the agent that leads the mesh at {} closes the connection: it may have as many members as it can take", .0.display())]
    Closed(PathBuf),
    #[error("the agent that leads the mesh at {} belongs to another user", .0.display())]
    Foreign(PathBuf),
}

/// A member that has registered, and its leadership if this process leads.
pub(super) struct Seated {
    pub(super) session: Session,
    pub(super) leadership: Option<Led>,
}

/// What this process leads with: its leader task, and the socket it made.
pub(super) struct Led {
    pub(super) task: Leadership,
    pub(super) socket: FileId,
}

/// What came of a registration.
enum Answer {
    /// The framer holds the lines that came together with the acknowledgement.
    Registered {
        name: String,
        ours: bool,
        framer: Framer,
    },
    Closed,
    Silent,
}

/// Joins; `frozen` is the socket of a leader that stopped answering, to be replaced if it is ours.
pub(super) async fn connect(
    options: &Options,
    mut frozen: Option<FileId>,
) -> Result<Seated, JoinError> {
    let path = &options.socket.path;
    let begun = Instant::now();
    let mut closed = 0;
    loop {
        let seat = take_seat(options, frozen.take()).await?;
        let (mut stream, socket, leadership) = sit(options, seat).await?;
        let process = led_by(&stream);
        match registered(&mut stream, options).await {
            Answer::Registered { name, ours, framer } => {
                let watch = Watch::beside(path);
                let session = Session {
                    stream,
                    framer,
                    out: Vec::new(),
                    name,
                    ours,
                    socket,
                    watch,
                    pending: HashMap::new(),
                    place: 0,
                    resends: Resends::of(Vec::new()),
                    lists: HashMap::new(),
                    parked: VecDeque::new(),
                    seen: options.confirms.then(Seen::default),
                    farewell: None,
                    has_left: false,
                    alive: true,
                    silent: 0,
                };
                return Ok(Seated { session, leadership });
            }
            Answer::Closed if closed < TRIES => {
                closed += 1;
                end(path, leadership).await;
                sleep(PAUSE).await;
            }
            Answer::Closed => return Err(JoinError::Closed(path.clone())),
            Answer::Silent if begun.elapsed() < REGISTER_WAIT => frozen = Some(socket),
            Answer::Silent => return Err(JoinError::Frozen { path: path.clone(), process }),
        }
    }
}

/// Ends a leadership: the socket goes, then the connections.
pub(super) async fn end(path: &Path, led: Option<Led>) {
    if let Some(led) = led {
        election::remove_own(path, led.socket);
        led.task.end().await;
    }
}

async fn take_seat(options: &Options, frozen: Option<FileId>) -> Result<Seat, JoinError> {
    let path = &options.socket.path;
    if let Some(frozen) = frozen.filter(|_| options.leads)
        && let Some(seat) = election::replace(path, frozen).await?
    {
        return Ok(seat);
    }
    let wants = if options.leads { Wants::LeadOrFollow } else { Wants::Follow };
    Ok(election::take_seat(path, wants).await?)
}

async fn sit(
    options: &Options,
    seat: Seat,
) -> Result<(UnixStream, FileId, Option<Led>), JoinError> {
    let path = &options.socket.path;
    match seat {
        Seat::Leads(listener, socket) => {
            let task = Leadership::start(listener, &options.socket);
            let stream = task.connect().await;
            let stream =
                stream.map_err(|source| ElectionError::Unusable { path: path.clone(), source })?;
            Ok((stream, socket, Some(Led { task, socket })))
        }
        Seat::Follows(stream, socket) => {
            let own = rustix::process::geteuid().as_raw();
            if stream.peer_cred().map_or(true, |leader| leader.uid() != own) {
                return Err(JoinError::Foreign(path.clone()));
            }
            Ok((stream, socket, None))
        }
    }
}

/// The process at the other end, in words.
fn led_by(stream: &UnixStream) -> String {
    let pid = stream.peer_cred().ok().and_then(|leader| leader.pid());
    pid.map_or("an unknown process".to_owned(), |pid| format!("process {pid}"))
}

async fn registered(stream: &mut UnixStream, options: &Options) -> Answer {
    let until = Instant::now() + FROZEN;
    let line = register(&options.name, options.confirms);
    let Ok(written) = timeout_at(until, stream.write_all(&line)).await else {
        return Answer::Silent;
    };
    if written.is_err() {
        return Answer::Closed;
    }
    let (mut framer, mut buffer) = (Framer::new(LINE), vec![0; 16 * 1024]);
    loop {
        let count = match timeout_at(until, stream.read(&mut buffer)).await {
            Err(_) => return Answer::Silent,
            Ok(Ok(0) | Err(_)) => return Answer::Closed,
            Ok(Ok(count)) => count,
        };
        framer.feed(&buffer[..count]);
        while let Some(frame) = framer.line() {
            match first_line(frame) {
                ControlFlow::Break(None) => return Answer::Closed,
                ControlFlow::Break(Some((name, ours))) => {
                    return Answer::Registered { name, ours, framer };
                }
                ControlFlow::Continue(()) => {}
            }
        }
    }
}

/// Takes a line before the registration was acknowledged: breaks with the name of the member, and whether the leader
/// is one of ours. What is no JSON is ignored; any other JSON is not the beginning of this wire.
fn first_line(frame: Frame) -> ControlFlow<Option<(String, bool)>> {
    let Frame::Line(line) = frame else { return ControlFlow::Break(None) };
    let text = text_of(&line);
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        return ControlFlow::Continue(());
    }
    match serde_json::from_str::<RegisterAck<'_>>(&text) {
        Ok(ack) if ack.kind == "register_ack" => {
            ControlFlow::Break(Some((ack.name_assigned.into_owned(), ack.yoi.is_some())))
        }
        _ => ControlFlow::Break(None),
    }
}

/// The names of all members, in the order in which they joined, without joining. A leader of 0.4.2 answers members
/// only: there it joins and leaves again.
pub async fn roster(socket: &Socket, name: &str) -> Result<Vec<String>, JoinError> {
    let Seat::Follows(mut stream, _) = election::take_seat(&socket.path, Wants::Follow).await?
    else {
        return Err(ElectionError::NoLeader(socket.path.clone()).into());
    };
    if let Some(names) = asked(&mut stream).await {
        return Ok(names);
    }
    drop(stream);
    let options =
        Options { socket: socket.clone(), name: name.to_owned(), leads: false, confirms: false };
    let (member, _) = join(options).await?;
    let process = "it took the registration".to_owned();
    let frozen = |_| JoinError::Frozen { path: socket.path.clone(), process };
    let names = member.peers().await.map_err(frozen);
    member.leave().await;
    names
}

/// Asks for the names without having registered.
async fn asked(stream: &mut UnixStream) -> Option<Vec<String>> {
    let until = Instant::now() + FROZEN;
    timeout_at(until, stream.write_all(b"{\"type\":\"list_peers\"}\n")).await.ok()?.ok()?;
    let (mut framer, mut buffer) = (Framer::<usize>::new(LINE), vec![0; 16 * 1024]);
    loop {
        let count = timeout_at(until, stream.read(&mut buffer)).await.ok()?.ok()?;
        if count == 0 {
            return None;
        }
        framer.feed(&buffer[..count]);
        while let Some(frame) = framer.line() {
            let Frame::Line(line) = frame else { return None };
            if let names @ Some(_) = listed(&text_of(&line)) {
                return names;
            }
        }
    }
}

fn listed(line: &str) -> Option<Vec<String>> {
    let envelope = Envelope::read(line)?;
    let roster: Roster<'_> = serde_json::from_str(envelope.body).ok()?;
    Some(roster.peers.into_iter().map(|name| name.0.into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_roster_behind_another_line_of_the_same_read_is_found() {
        let (mut own, mut leader) = UnixStream::pair().unwrap();
        let roster = br#"{"from":"leader","to":"x","id":"0198c0de-0000-7000-8000-000000000001","re":null,"body":{"type":"list_peers_reply","peers":["alice"]}}"#;
        leader.write_all(&[b"{}\n".as_slice(), roster, b"\n"].concat()).await.unwrap();
        assert_eq!(asked(&mut own).await, Some(vec!["alice".to_owned()]));
    }
}
