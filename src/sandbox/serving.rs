//! Long-running servers: confined like a command, and connected to the host by three pipes.

use crate::sandbox::order::{Order, Streams, new_mark};
use crate::sandbox::{Command, Ended, Outcome, Phase, Sandbox, SandboxError, watch_to_end};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

/// A running server: the other ends of its standard streams.
#[derive(Debug)]
pub struct Server {
    /// Its standard input.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// Its standard error.
    pub errors: Receiver,
}

/// Resolves when all processes of the server have ended.
pub type Served = futures_util::future::BoxFuture<'static, Result<Ended, SandboxError>>;

/// The ends of the pipes that the server gets.
pub struct Pipes([OwnedFd; 3]);

impl Sandbox {
    /// Starts a server confined like `command`. It ends with all its processes when `end` fires,
    /// when the returned future is dropped, or when its time is over. The future must be polled.
    pub fn serve(
        &self,
        command: &Command,
        end: CancellationToken,
    ) -> Result<(Server, Served), SandboxError> {
        let started = self.start_server().map_err(|error| self.not_started(&error))?;
        let Started { child, server, socket } = started;
        let order =
            Order { streams: Streams::Pipes, ..Order::of(command, self.nofile, new_mark()) };
        let limit = command.timeout;
        let served = async move {
            // The pipes stay in the socket until the last stage receives them.
            let _socket = socket;
            watch_to_end(child, &order, &mut Phase::Runs, limit, &end, |_| {}).await
        };
        Ok((server, Box::pin(served)))
    }

    fn start_server(&self) -> io::Result<Started> {
        let (ours, theirs) = UnixStream::pair()?;
        let (server, pipes) = pipes()?;
        pipes.send(&ours)?;
        let child = self.helper().stderr(OwnedFd::from(theirs)).spawn()?;
        Ok(Started { child, server, socket: ours })
    }
}

struct Started {
    child: Child,
    server: Server,
    socket: UnixStream,
}

fn pipes() -> io::Result<(Server, Pipes)> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let ((their_input, input), (output, their_output), (errors, their_errors)) =
        (pipe()?, pipe()?, pipe()?);
    let server = Server {
        input: Sender::from_owned_fd(input)?,
        output: Receiver::from_owned_fd(output)?,
        errors: Receiver::from_owned_fd(errors)?,
    };
    Ok((server, Pipes([their_input, their_output, their_errors])))
}

impl Pipes {
    fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let fds = self.0.each_ref().map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        sendmsg(socket, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
        Ok(())
    }

    /// Makes them the standard streams of this process.
    pub fn put_in_place(self) -> io::Result<()> {
        let [input, output, errors] = self.0;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(errors)?;
        Ok(())
    }
}

/// The pipes that the host sent to this stage, through the socket that is its standard error.
pub fn received() -> Result<Pipes, String> {
    let missing = |what: &str| format!("the pipes of the server did not arrive: {what}");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(io::stderr(), &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
        .map_err(|error| missing(&error.to_string()))?;
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    fds.try_into().map(Pipes).map_err(|fds: Vec<OwnedFd>| missing(&format!("{} came", fds.len())))
}

/// Why a server ended, as a sentence without a subject.
pub fn ending(ended: &Result<Ended, SandboxError>) -> String {
    match ended {
        Err(error) => error.to_string(),
        Ok(ended) => match (ended.outcome, &ended.limit) {
            (Outcome::AtLimit, Some(met)) => format!("it met a limit: {}", met.sentence),
            (outcome, Some(met)) => {
                format!("{}; it met a limit: {}", word(outcome), met.sentence)
            }
            (outcome, None) => word(outcome),
        },
    }
}

fn word(outcome: Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("it ended with exit code {code}"),
        Outcome::Signalled(signal) => format!("it was ended by signal {signal}"),
        Outcome::TimedOut => "it met its time limit".into(),
        Outcome::Cancelled => "it was ended".into(),
        Outcome::AtLimit => "it met a limit".into(),
    }
}
