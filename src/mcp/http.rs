//! Requests to a server over HTTP. Each event of a stream is checked as text before the library decodes it, so no
//! event costs more memory than its bytes.

use crate::mcp::gate::Gate;
use crate::mcp::incoming::{Named, too_long, unread};
use crate::protocol::ValueCount;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of an answer in one body. The library reads it whole, and its values cannot be counted before that.
pub const MAX_BODY: usize = 2 * 1024 * 1024;
/// Bytes of an event of a stream.
pub const MAX_EVENT: usize = 8 * 1024 * 1024;
/// Bytes of an event that answers no request of ours.
const MAX_UNASKED: usize = 64 * 1024;
/// The least delay, in milliseconds, before an ended stream is requested again, even if the server
/// wants a shorter one. Otherwise the server's `retry:` counts, and without one the delay of the library.
const LEAST_RETRY: u64 = 100;

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client whose streams hold only what may be read.
#[derive(Clone, Debug)]
pub struct Bounded {
    pub client: reqwest::Client,
    pub gate: Gate,
}

impl Bounded {
    /// The text of an event that may be decoded; `None` if the event is skipped.
    fn event(&self, text: String) -> Option<String> {
        if text.len() <= MAX_UNASKED {
            return Some(text);
        }
        let Named { id } = serde_json::from_str(&text).ok()?;
        if !self.gate.awaits(&id) {
            return None;
        }
        if !ValueCount::is_too_many(&text) {
            return Some(text);
        }
        unread(&text).and_then(|failure| serde_json::to_string(&failure).ok())
    }

    fn events(&self, events: Events) -> Events {
        let this = self.clone();
        let bounded = move |event: Result<Sse, SseError>| {
            event.map(|mut event| {
                event.data = event.data.and_then(|text| this.event(text));
                event.retry = event.retry.map(|pause| pause.max(LEAST_RETRY));
                event
            })
        };
        events.map(bounded).boxed()
    }

    /// The response to a message, which has this id if it is a request. What is too long becomes the failure of the
    /// request.
    fn response(
        &self,
        id: Option<RequestId>,
        response: Result<StreamableHttpPostResponse, Failure>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        match (response, id) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), id) => {
                let events = self.events(events);
                let events = events.map(move |event| within_limit(event, id.as_ref())).boxed();
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(id)) => {
                Ok(StreamableHttpPostResponse::Json(too_long(id, max_size), None))
            }
            (other, _) => other.map_err(without_address),
        }
    }
}

/// The failure without the address, in which keys of a person may stand.
fn without_address(failure: Failure) -> Failure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

/// The id of a request.
fn id_of(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Error(_)
        | JsonRpcMessage::Notification(_) => None,
    }
}

/// How the library says that an event is too long; its error has no public type.
const EVENT_TOO_LARGE: &str = "SSE event exceeded the maximum size";

/// An event of the stream that answers a request. One that is too long becomes the failure of the request.
fn within_limit(event: Result<Sse, SseError>, id: Option<&RequestId>) -> Result<Sse, SseError> {
    let error = match event {
        Ok(event) => return Ok(event),
        Err(error) => error,
    };
    let is_too_long = error.to_string().contains(EVENT_TOO_LARGE);
    let failure = id.filter(|_| is_too_long).map(|id| too_long(id.clone(), MAX_EVENT));
    match failure.and_then(|failure| serde_json::to_string(&failure).ok()) {
        Some(failure) => Ok(Sse::default().data(failure)),
        None => Err(error),
    }
}

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let id = id_of(&message);
        let response = self.client.post_message(uri, message, session, token, headers).await;
        self.response(id, response)
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let id = id_of(&message);
        let response = self
            .client
            .post_message_with_response_limits(uri, message, session, token, headers, limits);
        self.response(id, response.await)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let deleted = self.client.delete_session(uri, session, token, headers).await;
        deleted.map_err(without_address)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let events = self.client.get_stream(uri, session, last_event, token, headers).await;
        events.map(|events| self.events(events)).map_err(without_address)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Failure> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most);
        events.await.map(|events| self.events(events)).map_err(without_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::gate::Why;
    use crate::protocol::MAX_VALUES;
    use serde_json::{Value, json};

    fn bounded(gate: Gate) -> Bounded {
        let http = crate::llm::Http::new(&crate::llm::Timeouts::default());
        Bounded { client: http.client_for("http://127.0.0.1/").unwrap(), gate }
    }

    async fn read(bounded: &Bounded, events: impl IntoIterator<Item = Sse>) -> Vec<Sse> {
        let events: Vec<_> = events.into_iter().map(Ok).collect();
        let events = bounded.events(futures_util::stream::iter(events).boxed());
        events.map(Result::unwrap).collect().await
    }

    #[tokio::test]
    async fn no_server_is_asked_again_and_again_without_a_pause() {
        let bounded = bounded(Gate::new(Why::default()));
        let retries = [0, 1, LEAST_RETRY * 2].map(|pause| Sse::default().retry(pause));
        let read = read(&bounded, retries.into_iter().chain([Sse::default()])).await;
        let pauses: Vec<Option<u64>> = read.into_iter().map(|event| event.retry).collect();
        let least = Some(LEAST_RETRY);
        assert_eq!(pauses, [least, least, Some(LEAST_RETRY * 2), None]);
    }

    #[tokio::test]
    async fn events_of_many_values_and_long_ones_without_a_request_are_not_read() {
        let gate = Gate::new(Why::default());
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        gate.sent(&serde_json::from_value(ping).unwrap());
        let bounded = bounded(gate);
        let (long, many) = ("x".repeat(MAX_UNASKED), "{\"\":0},".repeat(MAX_VALUES));
        let answer = |id: u8, value: &str| format!(r#"{{"id":{id},"result":{value}}}"#);
        let texts = [
            answer(2, "{}"),
            answer(1, &format!("\"{long}\"")),
            answer(1, &format!("[{many}0]")),
            answer(2, &format!("\"{long}\"")),
            format!(r#"{{"method":"x","params":"{long}"}}"#),
        ];
        let read = read(&bounded, texts.clone().map(|text| Sse::default().data(text))).await;
        let read: Vec<Option<String>> = read.into_iter().map(|event| event.data).collect();
        assert_eq!(read[..2], texts[..2].iter().cloned().map(Some).collect::<Vec<_>>());
        let failure: Value = serde_json::from_str(read[2].as_ref().unwrap()).unwrap();
        assert_eq!((&failure["id"], failure["error"].is_object()), (&json!(1), true));
        assert_eq!(read[3..], [None, None]);
    }
}
