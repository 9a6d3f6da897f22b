//! The standard streams of a server as a transport: lines of JSON, bounded.

use crate::mcp::gate::{Admit, Gate};
use crate::mcp::incoming;
use bytes::{Buf as _, BytesMut};
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

/// Bytes of a line.
const MAX_LINE: usize = 8 * 1024 * 1024;
/// Lines above this are parsed beside the other work of the host.
const LONG_LINE: usize = 256 * 1024;
/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// How long a server may let its input stand full.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transport over the streams of a server.
pub struct Pipes {
    /// `None` after the input was closed.
    input: Arc<Mutex<Option<Sender>>>,
    output: Receiver,
    buffer: BytesMut,
    /// How much of the buffer holds no line end.
    searched: usize,
    parsing: Option<JoinHandle<Parsed>>,
    gate: Gate,
}

struct Parsed {
    message: Option<ServerJsonRpcMessage>,
    bytes: usize,
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
            buffer: BytesMut::new(),
            searched: 0,
            parsing: None,
            gate,
        }
    }

    /// The next line in the buffer, without its end.
    fn line(&mut self) -> Option<BytesMut> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at);
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    /// What a message comes to; `Err` ends the connection.
    fn admitted(&self, parsed: Parsed) -> Result<Option<ServerJsonRpcMessage>, ()> {
        let Parsed { message, bytes } = parsed;
        let admit = match &message {
            Some(message) => self.gate.admit(message, bytes),
            // Many servers print to their output what is meant for a person.
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
        if self.buffer.len() > MAX_LINE {
            self.gate.why().set("it sent a line of more than 8 MiB");
            return false;
        }
        self.buffer.reserve(CHUNK);
        match self.output.read_buf(&mut self.buffer).await {
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
        async move {
            let mut line = serde_json::to_vec(&item).map_err(io::Error::other)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let pipe = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            match tokio::time::timeout(PATIENCE, pipe.write_all(&line)).await {
                Ok(written) => written,
                Err(_) => {
                    // Half a line may be written: nothing can follow it.
                    *input = None;
                    why.set("it does not read its input");
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        }
    }

    /// Safe to cancel: what was read and not handed out stays.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let parsed = match &mut self.parsing {
                Some(parsing) => {
                    let parsed = parsing.await.ok();
                    self.parsing = None;
                    parsed
                }
                None => match self.line() {
                    Some(line) if line.len() > LONG_LINE => {
                        let parse = move || Parsed::of(&line);
                        self.parsing = Some(tokio::task::spawn_blocking(parse));
                        continue;
                    }
                    Some(line) if line.trim_ascii().is_empty() => continue,
                    Some(line) => Some(Parsed::of(&line)),
                    None => {
                        if !self.read().await {
                            return None;
                        }
                        continue;
                    }
                },
            };
            if let Some(message) = self.admitted(parsed?).ok()? {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // One that still writes gives up when the process has ended.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        Ok(())
    }
}
