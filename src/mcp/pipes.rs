//! The standard streams of a server as a transport: lines of JSON, bounded.

use crate::mcp::gate::{Admit, Gate};
use crate::mcp::incoming::{self, IdFinder};
use crate::protocol::framer::Skipped;
use crate::protocol::{Frame, Framer};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes of a line that is read, and of a longer one, which is passed over.
const MAX_LINE: usize = 8 * 1024 * 1024;
const MAX_PASSED: usize = 64 * 1024 * 1024;
/// Longer lines are parsed on a blocking thread.
const LONG_LINE: usize = 256 * 1024;
/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// How long a server may leave its input unread.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transport over the streams of a server.
pub struct Pipes {
    /// `None` after the input was closed.
    input: Arc<Mutex<Option<Sender>>>,
    output: Receiver,
    framer: Framer<PassedLine>,
    parsing: Option<JoinHandle<Parsed>>,
    gate: Gate,
    /// Cancelled when the server does not read its input any more.
    stuck: CancellationToken,
}

struct Parsed {
    message: Option<ServerJsonRpcMessage>,
    bytes: usize,
}

/// A line that is too long to be read: it fails the request that it answers.
#[derive(Default)]
struct PassedLine {
    bytes: usize,
    /// Its first byte that is no white space.
    first: Option<u8>,
    id: IdFinder,
}

impl Skipped for PassedLine {
    fn skip(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.first = self.first.or(piece.trim_ascii_start().first().copied());
        self.id.read(piece);
    }
}

impl PassedLine {
    /// Why it ends the connection. Only an object may answer a request; the other lines are a flood.
    fn fault(&self) -> Option<&'static str> {
        match self.first {
            Some(b'{') if self.bytes > MAX_PASSED => Some("it sent a line of more than 64 MiB"),
            Some(b'{') => None,
            _ => Some("it sent a line of more than 8 MiB"),
        }
    }

    fn parsed(self) -> Parsed {
        let message = self.id.id().map(|id| incoming::too_long(id, MAX_LINE));
        Parsed { message, bytes: self.bytes }
    }
}

impl Parsed {
    fn of(line: &[u8]) -> Self {
        Self { message: incoming::read(line), bytes: line.len() }
    }
}

impl Pipes {
    pub fn new(input: Sender, output: Receiver, gate: Gate) -> Self {
        Self {
            input: Arc::new(Mutex::new(Some(input))),
            output,
            framer: Framer::new(MAX_LINE),
            parsing: None,
            gate,
            stuck: CancellationToken::new(),
        }
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Admits, drops or refuses a message; `Err` ends the connection.
    fn admitted(&self, parsed: Parsed) -> Result<Option<ServerJsonRpcMessage>, ()> {
        let Parsed { message, bytes } = parsed;
        let admit = match &message {
            Some(message) => self.gate.admit(message, bytes),
            // Many servers print messages for a person to their output.
            None => match self.gate.unasked(bytes) {
                Admit::Pass => Admit::Drop,
                admit => admit,
            },
        };
        match admit {
            Admit::Pass => Ok(message),
            Admit::Drop => Ok(None),
            Admit::End => Err(()),
        }
    }

    /// Reads more; `false` at the end.
    async fn read(&mut self) -> bool {
        if let Some(fault) = self.framer.skipped().and_then(PassedLine::fault) {
            self.gate.why().set(fault);
            return false;
        }
        let read = tokio::select! {
            biased;
            () = self.stuck.cancelled() => return false,
            read = self.output.read_buf(self.framer.room(CHUNK)) => read,
        };
        match read {
            Ok(0) => {
                self.gate.why().set("it closed its output");
                false
            }
            Ok(_) => true,
            Err(error) => {
                self.gate.why().set(format!("its output cannot be read: {error}"));
                false
            }
        }
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.gate.sent(&item);
        let (input, why) = (self.input.clone(), self.gate.why().clone());
        let stuck = self.stuck.clone();
        async move {
            let mut line = serde_json::to_vec(&item).map_err(io::Error::other)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let pipe = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            match tokio::time::timeout(PATIENCE, pipe.write_all(&line)).await {
                Ok(written) => written,
                Err(_) => {
                    // A part of the line may be written, so no other line can follow.
                    *input = None;
                    why.set("it does not read its input");
                    stuck.cancel();
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        }
    }

    /// Cancel-safe: bytes that were read and not returned stay buffered.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let parsed = match &mut self.parsing {
                Some(parsing) => {
                    let parsed = parsing.await.ok();
                    self.parsing = None;
                    parsed
                }
                None => match self.framer.line() {
                    Some(Frame::Line(line)) if line.len() > LONG_LINE => {
                        let parse = move || Parsed::of(&line);
                        self.parsing = Some(tokio::task::spawn_blocking(parse));
                        continue;
                    }
                    Some(Frame::Line(line)) => Some(Parsed::of(&line)),
                    Some(Frame::TooLong(passed)) => {
                        if let Some(fault) = passed.fault() {
                            self.gate.why().set(fault);
                            return None;
                        }
                        Some(passed.parsed())
                    }
                    None if self.read().await => continue,
                    None => return None,
                },
            };
            if let Some(message) = self.admitted(parsed?).ok()? {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A task that still writes fails when the process has ended.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::gate::Why;
    use serde_json::json;
    use tokio::net::unix::pipe::pipe;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_its_input_loses_its_connection_with_the_reason() {
        let (input, _unread) = pipe().unwrap();
        let (_silent, output) = pipe().unwrap();
        let why = Why::default();
        let mut pipes = Pipes::new(input, output, Gate::new(why.clone()));
        let params = json!({"name": "t", "arguments": {"text": "x".repeat(1 << 20)}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let sent = pipes.send(serde_json::from_value(call).unwrap());
        let both = async { tokio::join!(sent, pipes.receive()) };
        let (sent, received) = tokio::time::timeout(2 * PATIENCE, both).await.expect("an end");
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(received.is_none(), "{received:?}");
        assert_eq!(why.get().as_deref(), Some("it does not read its input"));
    }
}
