//! A mesh in a directory of its own, and raw connections to it.

use crate::mesh::member::{Inbox, Message, Received};
use crate::mesh::{Id, Member, Options, Socket, To, join};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long a test waits before it says that the mesh hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Resolves like `future`; a test does not wait for ever.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

pub(super) struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("mesh/broker.sock")
    }

    pub(super) fn audit(&self) -> PathBuf {
        self.dir.path().join("mesh/audit.jsonl")
    }

    pub(super) fn socket(&self) -> Socket {
        Socket { path: self.path(), audit: self.audit(), admits: |_| true }
    }

    pub(super) fn options(&self, name: &str) -> Options {
        Options { socket: self.socket(), name: name.to_owned(), leads: true, confirms: false }
    }

    /// A member of ours; the first one leads.
    pub(super) async fn member(&self, name: &str) -> (Member, Inbox) {
        soon("joining", join(self.options(name))).await.expect("a mesh to join")
    }

    /// A connection that has not registered.
    pub(super) async fn connect(&self) -> Raw {
        Raw::over(UnixStream::connect(self.path()).await.expect("a leader listens"))
    }

    /// A connection that has registered.
    pub(super) async fn raw(&self, name: &str) -> Raw {
        let mut raw = self.connect().await;
        raw.write(&format!("{}\n", json!({"type": "register", "name": name}))).await;
        let ack = raw.next().await.expect("an acknowledgement");
        assert_eq!(ack["type"], "register_ack");
        raw.name = ack["name_assigned"].as_str().unwrap().to_owned();
        raw
    }
}

/// A connection that writes bytes and reads lines.
pub(super) struct Raw {
    pub(super) name: String,
    pub(super) reader: BufReader<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

impl Raw {
    pub(super) fn over(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { name: String::new(), reader: BufReader::new(reader), writer }
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.expect("an open connection");
    }

    /// Writes an envelope; its id.
    pub(super) async fn send(&mut self, to: impl Into<Value>, body: Value) -> String {
        let id = new_id();
        let line = json!({"from": "x", "to": to.into(), "id": id, "re": null, "body": body});
        self.write(&format!("{line}\n")).await;
        id
    }

    /// The next line; `None`: the leader closed the connection.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_str(&line).expect("one JSON value a line"))
    }

    /// The next line as it was written.
    pub(super) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = soon("a line", self.reader.read_line(&mut line)).await;
        (read.unwrap_or(0) > 0).then_some(line)
    }

    /// The next line that says nothing of members who come and go.
    pub(super) async fn message(&mut self) -> Value {
        loop {
            let line = self.next().await.expect("an open connection");
            let kind = line["body"]["type"].as_str().unwrap_or_default();
            if kind != "peer_joined" && kind != "peer_left" {
                return line;
            }
        }
    }

    /// Asks for the names of the members, and skips what comes before the answer.
    pub(super) async fn names(&mut self) -> Vec<String> {
        let id = self.send("broker", json!({"type": "list_peers"})).await;
        loop {
            let line = self.message().await;
            if line["re"] == id.as_str() {
                return serde_json::from_value(line["body"]["peers"].clone()).expect("names");
            }
        }
    }

    /// What came before the answer to a request that is sent now.
    pub(super) async fn so_far(&mut self) -> Vec<Value> {
        let id = self.send("broker", json!({"type": "list_peers"})).await;
        let mut lines = Vec::new();
        loop {
            let line = self.message().await;
            if line["re"] == id.as_str() {
                return lines;
            }
            lines.push(line);
        }
    }
}

pub(super) fn new_id() -> String {
    crate::mesh::id::Ids::new().next().to_string()
}

pub(super) fn id_of(text: &str) -> Id {
    Id::parse(text).expect("an id")
}

pub(super) fn raw_json(value: &Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// The next message of an inbox.
pub(super) async fn message(inbox: &mut Inbox) -> Message {
    loop {
        if let Received::Message(message) = soon("a message", inbox.next()).await.expect("a member")
        {
            return message;
        }
    }
}

/// Sends text to one member.
pub(super) async fn say(member: &Member, to: &str, text: &str) -> crate::mesh::Sent {
    member.send(To::One(to.to_owned()), &raw_json(&json!(text)), None).await
}
