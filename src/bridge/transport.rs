//! Two streams as the transport of MCP: one message a line, of bounded length. It also knows which answer the client
//! had before it wrote a request, and so which batch of messages it took.

use crate::protocol::frame::Lines;
use crate::protocol::{Frame, MAX_VALUES, ValueCount};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// Requests that may be open. A client that writes more of them and reads no answers waits.
const MAX_OPEN: usize = 1024;
/// What may stand before the first message.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The streams of a client.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The transport.
pub struct Lined {
    lines: Lines<Input>,
    out: Arc<tokio::sync::Mutex<Output>>,
    /// Says a sentence to a person.
    note: fn(&str),
    traffic: Traffic,
    /// Whether a request came. Before one, the protocol expects nothing else.
    begun: bool,
}

impl Lined {
    pub fn new(input: Input, output: Output, note: fn(&str), traffic: Traffic) -> Self {
        let (lines, out) = (Lines::new(input, MAX_LINE), Arc::new(tokio::sync::Mutex::new(output)));
        Self { lines, out, note, traffic, begun: false }
    }

    /// The message of a line. A line that is none is answered where it names a request.
    fn message(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let error = match read(line) {
            Ok(message) => return self.expected(message),
            Err(error) => error,
        };
        tracing::warn!("a line of the MCP client is no message: {error}");
        if let Ok(Named { id }) = serde_json::from_slice(line) {
            let refusal = ErrorData::invalid_request(format!("this is no request: {error}"), None);
            // Reading has a task of its own, because the service drops a pending read when it has something to write.
            tokio::spawn(self.send(ServerJsonRpcMessage::error(refusal, Some(id))));
        }
        None
    }

    /// The message, unless it comes before the first request, where it would end the service.
    fn expected(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        self.traffic.came(&message);
        self.begun |= matches!(message, JsonRpcMessage::Request(_));
        Some(message).filter(|_| self.begun)
    }
}

/// Reads a message. A value takes much more memory than its text, so the values are counted first.
fn read(line: &[u8]) -> Result<ClientJsonRpcMessage, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    if ValueCount::is_too_many(text) {
        return Err(format!("it has more than {MAX_VALUES} JSON values"));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The id of a request whose rest cannot be read.
#[derive(Deserialize)]
struct Named {
    id: RequestId,
}

impl Transport<RoleServer> for Lined {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, traffic) = (self.out.clone(), self.traffic.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut out = out.lock().await;
            // A client may answer before this process knows that its line was written.
            traffic.goes(&message);
            out.write_all(&line).await?;
            out.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.traffic.has_room().await;
            match self.lines.next().await {
                Ok(Some(Frame::Line(line))) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Ok(Some(Frame::TooLong(bytes))) => {
                    (self.note)(&format!(
                        "a line of the client has more than {bytes} bytes: it is ignored"
                    ));
                }
                Ok(None) => return None,
                Err(error) => {
                    (self.note)(&format!("cannot read the standard input: {error}"));
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.lock().await.flush().await
    }
}

/// In which order requests came and answers went out. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traffic(Arc<Shared>);

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    /// Notes that a request is closed.
    closed: Notify,
}

#[derive(Default)]
struct Seen {
    /// Counts lines.
    now: u64,
    /// When each request came that was not answered yet.
    came: HashMap<RequestId, u64>,
    /// The request that got the last batch, and when its answer was being written. A client that cancelled the request
    /// ignores its answer.
    batch: Option<(RequestId, Option<u64>)>,
}

impl Traffic {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Each change is one assignment, so it is whole also after a panic.
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when a further request may be open.
    async fn has_room(&self) {
        while self.seen().came.len() >= MAX_OPEN {
            self.0.closed.notified().await;
        }
    }

    fn came(&self, message: &ClientJsonRpcMessage) {
        let mut seen = self.seen();
        seen.now += 1;
        let now = seen.now;
        match message {
            JsonRpcMessage::Request(request) => drop(seen.came.insert(request.id.clone(), now)),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    seen.came.remove(id);
                    seen.batch.take_if(|(batch, _)| batch == id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn goes(&self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(id) = id else { return };
        let mut seen = self.seen();
        seen.now += 1;
        let now = seen.now;
        seen.came.remove(id);
        self.0.closed.notify_one();
        if let Some((_, written)) = seen.batch.as_mut().filter(|(batch, _)| batch == id) {
            *written = Some(now);
        }
    }

    /// Whether a request shows that the client took the last batch: it came after the answer with the batch went
    /// out. The answer to this request has the next batch.
    pub fn confirms(&self, request: &RequestId) -> bool {
        let mut seen = self.seen();
        let came = seen.came.get(request).copied();
        let last = seen.batch.replace((request.clone(), None));
        matches!((last, came), (Some((_, Some(written))), Some(came)) if written < came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{EmptyResult, ServerResult};

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn request(number: i64) -> ClientJsonRpcMessage {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn cancelled(number: i64) -> ClientJsonRpcMessage {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn answer(number: i64) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), id(number))
    }

    #[test]
    fn a_line_of_too_many_values_is_not_read() {
        let ping = |values: usize| {
            let list = "0,".repeat(values);
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"a":[{list}0]}}}}}}"#
            );
            read(text.as_bytes())
        };
        assert!(ping(MAX_VALUES - 20).is_ok());
        assert_eq!(ping(MAX_VALUES).unwrap_err(), "it has more than 262144 JSON values");
    }

    #[tokio::test]
    async fn a_client_that_reads_no_answers_writes_so_many_requests_and_then_waits() {
        use futures_util::FutureExt as _;
        let traffic = Traffic::default();
        for number in 0..MAX_OPEN {
            traffic.has_room().now_or_never().expect("room");
            traffic.came(&request(i64::try_from(number).unwrap()));
        }
        let mut waiting = Box::pin(traffic.has_room());
        assert!(waiting.as_mut().now_or_never().is_none());
        traffic.goes(&answer(7));
        waiting.now_or_never().expect("room");
    }

    #[test]
    fn a_batch_is_taken_when_a_request_comes_after_its_answer() {
        let traffic = Traffic::default();
        traffic.came(&request(1));
        assert!(!traffic.confirms(&id(1)));
        traffic.goes(&answer(1));
        traffic.came(&request(2));
        assert!(traffic.confirms(&id(2)));
    }

    #[test]
    fn requests_that_are_written_together_confirm_nothing() {
        let traffic = Traffic::default();
        traffic.came(&request(1));
        traffic.came(&request(2));
        assert!(!traffic.confirms(&id(1)));
        traffic.goes(&answer(1));
        assert!(!traffic.confirms(&id(2)), "the client wrote it before it had the first answer");
        traffic.goes(&answer(2));
        traffic.came(&request(3));
        assert!(traffic.confirms(&id(3)));
    }

    #[test]
    fn a_batch_whose_request_was_cancelled_is_not_taken() {
        for late in [false, true] {
            let traffic = Traffic::default();
            traffic.came(&request(1));
            assert!(!traffic.confirms(&id(1)));
            if late {
                traffic.goes(&answer(1));
            }
            traffic.came(&cancelled(1));
            traffic.came(&request(2));
            assert!(!traffic.confirms(&id(2)));
        }
    }
}
