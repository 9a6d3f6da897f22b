//! Long-running servers: confined like a command, and connected to the host by three pipes.

use crate::sandbox::command::{
    Command, Ended, Outcome, Phase, Sandbox, SandboxError, watch_to_end,
};
use crate::sandbox::process::messages::{Order, Streams, new_mark};
use crate::sandbox::process::pipes::Pipes;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
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
        let order = Order { streams: Streams::Pipes, ..command.order(self.nofile, new_mark()) };
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
    Ok((server, Pipes::of([their_input, their_output, their_errors])))
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
