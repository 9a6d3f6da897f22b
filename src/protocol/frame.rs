//! The framing of requests, events and replies as lines, and their addresses.

use crate::protocol::Refusal;
use crate::protocol::event::Event;
use crate::protocol::framer::{Frame, Framer};
use crate::protocol::json_values::{MAX_VALUES, ValueCount};
use crate::protocol::method::Method;
use crate::protocol::name::PodName;
use serde::{Deserialize, Serialize};

/// The longest line we read, in bytes.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// Requests in flight on one connection, until their replies are written; at this number the host
/// stops reading. Enough for a screen that opens every Pod of a family at once, few enough that a
/// client which never reads its replies costs little.
pub const IN_FLIGHT: usize = 64;
/// The longest request id, in bytes.
pub const MAX_ID: usize = 64;

/// A line from a client: a request with its address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incoming {
    /// A request with an id gets exactly one line that carries the id as `re`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The addressed Pod, on the host socket; `None` is the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodName>,
    #[serde(flatten)]
    pub method: Method,
}

/// The id of a line that wants a reply.
#[derive(Deserialize)]
struct Asker {
    #[serde(default)]
    id: Option<String>,
}

/// Why a line is not a valid request, and its id for the refusal, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid method: {message}")]
pub struct Malformed {
    pub id: Option<String>,
    pub message: String,
}

impl Incoming {
    /// Reads one line, without its newline.
    pub fn decode(line: &[u8]) -> Result<Self, Malformed> {
        // The id is parsed separately, so that an otherwise invalid line still gets its refusal.
        let id = serde_json::from_slice(line).ok().and_then(|Asker { id }| id);
        if id.as_ref().is_some_and(|id| id.len() > MAX_ID) {
            let message = format!("the request id is longer than {MAX_ID} bytes");
            return Err(Malformed { id: None, message });
        }
        if ValueCount::is_too_many(line) {
            let message = format!("the line has more than {MAX_VALUES} JSON values");
            return Err(Malformed { id, message });
        }
        serde_json::from_slice(line)
            .map_err(|error: serde_json::Error| Malformed { id, message: error.to_string() })
    }

    /// One line, with its newline.
    ///
    /// # Errors
    /// A path in it is not UTF-8: the lines are JSON, which has no way to write it.
    pub fn encode(&self) -> Result<Vec<u8>, Refusal> {
        line(self).map_err(|_| {
            let text = "a path in this request is not valid UTF-8: rename that file or directory";
            Refusal::invalid(text)
        })
    }
}

/// A line to a client: an event, or the reply to a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Outgoing {
    /// The id of the request this answers.
    #[serde(default)]
    pub re: Option<String>,
    #[serde(default)]
    pub pod: Option<PodName>,
    /// Counts a Pod's events without gaps, on the host socket.
    #[serde(default)]
    pub seq: Option<u64>,
    #[serde(flatten)]
    pub event: Event,
}

/// A line with an event of a newer version.
#[derive(Deserialize)]
struct UnknownEventLine {
    #[serde(default)]
    re: Option<String>,
    #[serde(default)]
    pod: Option<PodName>,
    #[serde(default)]
    seq: Option<u64>,
    #[serde(flatten)]
    event: serde_json::Value,
}

impl Outgoing {
    /// Reads one line, without its newline.
    ///
    /// # Errors
    /// The line is not a JSON object, or its `re`, `pod` or `seq` is invalid.
    pub fn decode(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line).or_else(|_| {
            let UnknownEventLine { re, pod, seq, event } = serde_json::from_slice(line)?;
            Ok(Self { re, pod, seq, event: Event::Unknown(event) })
        })
    }

    /// One line, with its newline.
    pub fn encode(&self) -> Vec<u8> {
        encode_event(self.re.as_deref(), self.pod.as_ref(), self.seq, &self.event)
    }
}

/// One line of an event that is only borrowed, with its newline.
pub fn encode_event(
    re: Option<&str>,
    pod: Option<&PodName>,
    seq: Option<u64>,
    event: &Event,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Wire<'a, E> {
        #[serde(skip_serializing_if = "Option::is_none")]
        re: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pod: Option<&'a PodName>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        #[serde(flatten)]
        event: E,
    }
    let line = match event {
        Event::Unknown(event) => line(&Wire { re, pod, seq, event }),
        event => line(&Wire { re, pod, seq, event }),
    };
    // A host refuses paths that are not UTF-8.
    line.expect("the paths and keys of events are text")
}

/// The first line on the host socket, in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub hello: HelloBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloBody {
    pub protocol: u32,
    pub version: String,
    /// Whether this client needs the host for its own work only.
    #[serde(default, skip_serializing_if = "crate::protocol::family::is_false")]
    pub brief: bool,
}

/// How long a client needs its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// For its own work only, as `yoi -p` and `yoi ls` do: a host that has had no other clients ends when the last one has
    /// left and no Pod works.
    Brief,
    /// After it leaves, the host stays for as long as the settings say.
    Lasting,
}

impl Hello {
    /// The greeting of this build.
    pub fn ours(kind: ClientKind) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let brief = kind == ClientKind::Brief;
        Self { hello: HelloBody { protocol: crate::protocol::PROTOCOL, version, brief } }
    }

    /// The greeting of a host, and of a lasting client, as a line with its newline.
    pub fn line() -> Vec<u8> {
        Self::ours(ClientKind::Lasting).encode()
    }

    /// One line, with its newline.
    pub fn encode(&self) -> Vec<u8> {
        line(self).expect("a greeting has nothing that JSON cannot hold")
    }
}

fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Splits a byte stream into lines. Received bytes are buffered, so dropping a pending read loses
/// nothing, and too long a line is skipped without being stored.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    framer: Framer,
}

impl<R: tokio::io::AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader, framer: Framer::new(limit) }
    }

    /// The next frame; `None` at the end of the stream (an unfinished last line is dropped).
    /// Cancel-safe.
    pub async fn next(&mut self) -> std::io::Result<Option<Frame>> {
        use tokio::io::AsyncReadExt as _;
        loop {
            if let Some(frame) = self.framer.line() {
                return Ok(Some(frame));
            }
            if self.reader.read_buf(self.framer.room(8 * 1024)).await? == 0 {
                return Ok(None);
            }
        }
    }
}
