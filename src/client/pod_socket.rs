//! Talking to a Pod's own socket, also one of the predecessor: drain the alerts and the snapshot,
//! then send.

use crate::protocol::frame::Lines;
use crate::protocol::{
    Event, Frame, Greeting, Incoming, MAX_LINE, Method, Outgoing, PodStatus, Refusal, Segment,
};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long connecting, one read or one write may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a Pod's socket could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("cannot connect to {}: {cause}", path.display())]
    Unreachable { path: PathBuf, cause: io::Error },
    #[error("pod closed connection before Snapshot event")]
    NoSnapshot,
    #[error("pod closed connection before it answered")]
    Closed,
    #[error("the pod did not {0} within 5 s")]
    Timeout(&'static str),
    #[error("cannot talk to the pod: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A classic connection to a Pod, its snapshot already read.
#[derive(Debug)]
pub struct PodSocket {
    lines: Lines<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    /// The Pod that serves the socket.
    pub greeting: Greeting,
    pub status: PodStatus,
}

impl PodSocket {
    /// Connects and reads up to the snapshot. A Pod reads nothing before it has written that.
    pub async fn open(path: &Path) -> Result<Self, SocketError> {
        let unreachable = |cause| SocketError::Unreachable { path: path.into(), cause };
        let stream = in_time("take a connection", UnixStream::connect(path)).await?;
        let (reader, writer) = stream.map_err(unreachable)?.into_split();
        let mut lines = Lines::new(reader, MAX_LINE);
        loop {
            let Some(event) = next(&mut lines, "send its snapshot").await? else {
                return Err(SocketError::NoSnapshot);
            };
            if let Event::Snapshot { greeting, status, .. } = event {
                return Ok(Self { lines, writer, greeting: *greeting, status });
            }
        }
    }

    /// Sends a request and does not wait for a reply.
    pub async fn fire(&mut self, method: Method) -> Result<(), SocketError> {
        let line = Incoming { id: None, pod: None, method }.encode()?;
        Ok(in_time("read the order", self.writer.write_all(&line)).await??)
    }

    /// Starts a run, and returns once an event says that the Pod took this very input. A classic
    /// Pod has no request ids: an error that comes first is taken for the answer.
    pub async fn send(&mut self, input: Vec<Segment>) -> Result<(), SocketError> {
        self.fire(Method::Send { input: input.clone(), queue: false }).await?;
        loop {
            match next(&mut self.lines, "answer").await? {
                Some(Event::UserMessage { segments }) if segments == input => return Ok(()),
                Some(Event::Error { code, message }) => {
                    return Err(Refusal { code, message }.into());
                }
                Some(_) => {}
                None => return Err(SocketError::Closed),
            }
        }
    }
}

/// The next event that can be read; `None` when the Pod closed the connection.
async fn next(
    lines: &mut Lines<OwnedReadHalf>,
    what: &'static str,
) -> Result<Option<Event>, SocketError> {
    loop {
        match in_time(what, lines.next()).await?? {
            None => return Ok(None),
            Some(Frame::TooLong(_)) => {}
            Some(Frame::Line(line)) => {
                // What is no event is not for us.
                if let Ok(outgoing) = Outgoing::decode(&line) {
                    return Ok(Some(outgoing.event));
                }
            }
        }
    }
}

async fn in_time<T>(what: &'static str, future: impl Future<Output = T>) -> Result<T, SocketError> {
    tokio::time::timeout(PATIENCE, future).await.map_err(|_| SocketError::Timeout(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    use tokio::net::UnixListener;

    fn snapshot(filling: usize) -> String {
        let item = json!({"kind": "message", "role": "assistant",
            "content": [{"kind": "text", "text": "x".repeat(filling)}]});
        json!({"event": "snapshot", "data": {
            "entries": [{"ts": 1, "kind": "assistant_item", "item": item}],
            "greeting": {"pod_name": "kid", "cwd": "/w", "provider": "p", "model": "m",
                "scope_summary": "", "tools": []},
            "status": "idle"}})
        .to_string()
    }

    const ALERT: &str = r#"{"event":"alert","data":{"level":"warn","source":"pod","message":"m","timestamp_ms":1}}"#;

    /// A foreign Pod: says `first` at the connect and `then` after the first line it gets, which
    /// is the result.
    fn foreign(
        first: Vec<String>,
        then: Vec<String>,
    ) -> (tempfile::TempDir, PathBuf, tokio::task::JoinHandle<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        let pod = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (reader, mut writer) = stream.into_split();
            for line in first {
                writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
            let mut got = String::new();
            if !then.is_empty() {
                BufReader::new(reader).read_line(&mut got).await.unwrap();
            }
            for line in then {
                writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
            got
        });
        (dir, path, pod)
    }

    fn hi() -> Vec<Segment> {
        vec![Segment::Text { content: "hi".into() }]
    }

    #[tokio::test]
    async fn a_message_is_delivered_after_an_alert_and_a_large_snapshot() {
        let first = vec![ALERT.into(), snapshot(2 * 1024 * 1024)];
        let other = r#"{"event":"user_message","data":{"segments":[{"kind":"text","content":"of another"}]}}"#;
        let ours =
            r#"{"event":"user_message","data":{"segments":[{"kind":"text","content":"hi"}]}}"#;
        let (_dir, path, pod) = foreign(first, vec![other.into(), ours.into()]);
        let mut socket = PodSocket::open(&path).await.unwrap();
        assert_eq!(socket.greeting.pod_name, "kid");
        socket.send(hi()).await.unwrap();
        let expected = r#"{"method":"run","params":{"input":[{"kind":"text","content":"hi"}]}}"#;
        assert_eq!(pod.await.unwrap().trim_end(), expected);
    }

    #[tokio::test]
    async fn a_message_of_two_mebibytes_is_delivered_whole() {
        let content = "x".repeat(2 * 1024 * 1024);
        let input = vec![Segment::Text { content }];
        let taken = json!({"event": "user_message", "data": {"segments": input}}).to_string();
        let (_dir, path, pod) = foreign(vec![snapshot(1)], vec![taken]);
        let mut socket = PodSocket::open(&path).await.unwrap();
        socket.send(input.clone()).await.unwrap();
        let got = Incoming::decode(pod.await.unwrap().trim_end().as_bytes()).unwrap();
        assert_eq!(got.method, Method::Send { input, queue: false });
    }

    #[tokio::test]
    async fn a_peers_message_is_delivered_after_an_alert_and_a_large_snapshot() {
        let first = vec![ALERT.into(), snapshot(2 * 1024 * 1024)];
        let (_dir, path, pod) = foreign(first, vec![ALERT.into()]);
        let mut socket = PodSocket::open(&path).await.unwrap();
        let message = "[Peer message from `alice`]\nhello".to_owned();
        socket.fire(Method::Notify { message }).await.unwrap();
        let expected =
            r#"{"method":"notify","params":{"message":"[Peer message from `alice`]\nhello"}}"#;
        assert_eq!(pod.await.unwrap().trim_end(), expected);
    }

    #[tokio::test]
    async fn a_refusal_is_the_pods_own_sentence() {
        let refusal = r#"{"event":"error","data":{"code":"already_running","message":"Pod is already executing a turn"}}"#;
        let (_dir, path, _pod) = foreign(vec![snapshot(1)], vec![refusal.into()]);
        let mut socket = PodSocket::open(&path).await.unwrap();
        let refused = socket.send(hi()).await.unwrap_err();
        assert_eq!(refused.to_string(), "Pod is already executing a turn");
    }

    #[tokio::test]
    async fn a_pod_that_closes_before_its_snapshot_is_named_so() {
        let (_dir, path, _pod) = foreign(vec![ALERT.into()], vec![]);
        let failed = PodSocket::open(&path).await.unwrap_err();
        assert_eq!(failed.to_string(), "pod closed connection before Snapshot event");
    }

    #[tokio::test]
    async fn a_pod_that_closes_before_it_answers_is_named_so() {
        let (_dir, path, _pod) = foreign(vec![snapshot(1)], vec![ALERT.into()]);
        let mut socket = PodSocket::open(&path).await.unwrap();
        let failed = socket.send(hi()).await.unwrap_err();
        assert_eq!(failed.to_string(), "pod closed connection before it answered");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_says_nothing_is_not_waited_for_longer_than_5_s() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let _silent = UnixListener::bind(&path).unwrap();
        let failed = PodSocket::open(&path).await.unwrap_err();
        assert_eq!(failed.to_string(), "the pod did not send its snapshot within 5 s");
    }

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_named() {
        let failed = PodSocket::open(Path::new("/no/such/sock")).await.unwrap_err();
        assert!(failed.to_string().starts_with("cannot connect to /no/such/sock: "));
    }
}
