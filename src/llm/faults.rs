//! A provider that misbehaves on purpose, on all four wires, and what becomes of its answers.

use crate::config::Env;
use crate::config::key_command::PrintedKeys;
use crate::config::keys::Secret;
use crate::config::models::{KeySource, Model, Reasoning, Wire};
use crate::llm::bench::{DOT, blocks, call, cut_blocks, model, plain, request, rich_result};
use crate::llm::{Delta, Failure, Http, Key, Provider, Request, Stop, Timeouts};
use crate::protocol::{Item, Role};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini];

/// What the fake does next with an answer.
#[derive(Clone)]
enum Step {
    Send(Vec<u8>),
    /// Sends this again and again.
    Repeat(&'static str),
    /// Sends nothing more and keeps the connection.
    Stall,
    /// Resets the connection.
    Break,
}

/// What the fake answers to one request.
struct Reply {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    steps: Vec<Step>,
}

/// What the fake was sent.
struct Asked {
    path: String,
    headers: HeaderMap,
    body: Value,
}

#[derive(Clone, Default)]
struct Fake {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Reply {
    fn stream(steps: Vec<Step>) -> Self {
        Self { status: 200, headers: vec![("content-type", "text/event-stream")], steps }
    }

    fn bytes(bytes: &[u8]) -> Self {
        Self::stream(vec![Step::Send(bytes.to_vec())])
    }

    fn status(status: u16, body: &str) -> Self {
        let headers = vec![("content-type", "application/json")];
        Self { status, headers, steps: vec![Step::Send(body.into())] }
    }
}

impl Fake {
    /// Starts a fake that gives these answers in turn; returns it with its base URL.
    async fn start(replies: Vec<Reply>) -> (Self, String) {
        let fake = Self { replies: Arc::new(Mutex::new(replies.into())), ..Self::default() };
        let app = Router::new().fallback(answer).with_state(fake.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (fake, format!("http://{address}/v1"))
    }

    fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.path.clone()).collect()
    }
}

async fn answer(State(fake): State<Fake>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap();
    fake.asked.lock().unwrap().push(Asked { path: uri.to_string(), headers, body });
    let reply = fake.replies.lock().unwrap().pop_front();
    let reply = reply.unwrap_or_else(|| Reply::status(418, "nothing more was expected"));
    let steps = reply.steps.into_iter().flat_map(|step| {
        let times = if matches!(step, Step::Repeat(_)) { usize::MAX } else { 1 };
        std::iter::repeat_n(step, times)
    });
    let steps = stream::iter(steps).then(|step| async move {
        match step {
            Step::Send(bytes) => Ok(Bytes::from(bytes)),
            Step::Repeat(text) => {
                // The body is read before the next piece of it comes.
                tokio::task::yield_now().await;
                Ok(Bytes::from_static(text.as_bytes()))
            }
            Step::Stall => std::future::pending().await,
            Step::Break => {
                // What was sent before leaves the server while its body is not ready.
                tokio::task::yield_now().await;
                Err(std::io::Error::other("broken on purpose"))
            }
        }
    });
    let mut response = Response::builder().status(StatusCode::from_u16(reply.status).unwrap());
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(steps)).unwrap()
}

const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    first_event: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    piece: Duration::from_secs(20),
};
const HASTY: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    first_event: Duration::from_millis(300),
    idle: Duration::from_millis(300),
    piece: Duration::from_millis(300),
};

fn provider(wire: Wire, base_url: &str, timeouts: Timeouts) -> Provider {
    let model = Model { base_url: base_url.into(), ..model(wire) };
    Provider::new(&model, None, timeouts, Http::new(&timeouts))
}

fn question() -> Arc<Request> {
    Arc::new(request(vec![plain(Item::message(Role::User, "q"))]))
}

/// Asks once and collects all that comes.
async fn send(provider: &Provider) -> Result<Vec<Result<Delta, Failure>>, Failure> {
    Ok(provider.open(&question()).await?.collect().await)
}

/// What comes of one answer by the fake.
async fn hear(wire: Wire, reply: Reply, timeouts: Timeouts) -> Vec<Result<Delta, Failure>> {
    let (_fake, url) = Fake::start(vec![reply]).await;
    send(&provider(wire, &url, timeouts)).await.unwrap()
}

/// The failure of a request that is refused.
async fn refusal(wire: Wire, reply: Reply) -> Failure {
    let (_fake, url) = Fake::start(vec![reply]).await;
    send(&provider(wire, &url, PATIENT)).await.unwrap_err()
}

#[tokio::test]
async fn a_body_that_waits_for_the_disk_holds_up_no_async_thread() {
    for wire in WIRES {
        let (fake, url) = Fake::start(vec![Reply::bytes(&whole(wire))]).await;
        let (dir, result) = rich_result("c1");
        let picture = dir.path().join("b1");
        std::fs::remove_file(&picture).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &picture, 0o600.into()).unwrap();
        // The picture comes once the async thread went on; at last it comes in any case, so that the test ends.
        let (went_on, waits) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            let in_time = waits.recv_timeout(PATIENT.first_event / 2).is_ok();
            std::fs::write(&picture, BASE64_STANDARD.decode(DOT).unwrap()).unwrap();
            in_time
        });
        let mut asked = request(vec![plain(call("c1", "Read", "{}")), plain(result)]);
        asked.blobs = dir.path().into();
        let (provider, asked) = (provider(wire, &url, PATIENT), Arc::new(asked));
        let goes_on = async {
            tokio::task::yield_now().await;
            went_on.send(()).unwrap();
        };
        let (opened, ()) = tokio::join!(provider.open(&asked), goes_on);
        assert!(writer.join().unwrap(), "{wire:?}");
        assert!(opened.is_ok());
        let body = fake.asked.lock().unwrap()[0].body.to_string();
        assert!(body.contains(DOT), "{wire:?}: {body}");
    }
}

/// A whole answer on a wire: the text "Grüße 👋", then a call.
fn whole(wire: Wire) -> Vec<u8> {
    events(wire).concat().into_bytes()
}

fn events(wire: Wire) -> Vec<String> {
    let arguments = "{\"path\":\"ä\"}";
    let events = match wire {
        Wire::Anthropic => vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße 👋"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "Read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ],
        Wire::Responses => {
            let text = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Grüße 👋"}]});
            let call = json!({"type": "function_call", "id": "f", "call_id": "c1", "name": "Read", "arguments": arguments});
            vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "content": []}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Grüße 👋"}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": text}),
                json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "f", "call_id": "c1", "name": "Read"}}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": arguments}),
                json!({"type": "response.output_item.done", "output_index": 1, "item": call}),
                json!({"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": 1, "output_tokens": 2}}}),
            ]
        }
        Wire::Chat => vec![
            json!({"choices": [{"delta": {"role": "assistant", "content": "Grüße 👋"}, "finish_reason": null}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "Read", "arguments": arguments}}]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        ],
        Wire::Gemini => vec![
            json!({"candidates": [{"content": {"parts": [{"text": "Grüße 👋"}]}}]}),
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"id": "c1", "name": "Read", "args": {"path": "ä"}}}]}}]}),
            json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}),
        ],
        Wire::Rehearsal => unreachable!("a script has no events"),
    };
    let mut lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if wire == Wire::Chat {
        lines.push("data: [DONE]\n\n".into());
    }
    lines
}

fn items(received: &[Result<Delta, Failure>]) -> Vec<Item> {
    let deltas: Vec<Delta> = named(received).into_iter().filter_map(Result::ok).collect();
    blocks(&deltas).into_iter().map(|(item, _)| item).collect()
}

/// The same with the id of the wire for its call in the place of ours, which differs in each answer.
fn named(received: &[Result<Delta, Failure>]) -> Vec<Result<Delta, Failure>> {
    let mut received = received.to_vec();
    for delta in &mut received {
        if let Ok(
            Delta::ToolCallStart { id, .. }
            | Delta::ToolCallArgs { id, .. }
            | Delta::Block { item: Item::ToolCall { call_id: id, .. }, .. },
        ) = delta
        {
            "c1".clone_into(id);
        }
    }
    received
}

fn expected() -> Vec<Item> {
    let arguments = "{\"path\":\"ä\"}".into();
    let call = Item::ToolCall { call_id: "c1".into(), name: "Read".into(), arguments };
    vec![Item::message(Role::Assistant, "Grüße 👋"), call]
}

fn end() -> Option<Result<Delta, Failure>> {
    Some(Ok(Delta::End(Stop::ToolUse)))
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_the_same_answer() {
    for wire in WIRES {
        let bytes = whole(wire);
        let steps = bytes.iter().map(|byte| Step::Send(vec![*byte])).collect();
        let in_bytes = hear(wire, Reply::stream(steps), PATIENT).await;
        assert_eq!(items(&in_bytes), expected(), "{wire:?}");
        assert_eq!(in_bytes.last().cloned(), end(), "{wire:?}");
        let at_once = hear(wire, Reply::bytes(&bytes), PATIENT).await;
        assert_eq!(named(&in_bytes), named(&at_once), "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_is_cut_and_never_taken_for_complete() {
    for wire in WIRES {
        let bytes = whole(wire);
        let lengths: Vec<usize> = (0..bytes.len()).step_by(5).collect();
        let replies = lengths.iter().map(|length| Reply::bytes(&bytes[..*length])).collect();
        let (_fake, url) = Fake::start(replies).await;
        let provider = provider(wire, &url, PATIENT);
        let mut cuts = 0;
        for length in lengths {
            let received = send(&provider).await.unwrap();
            if received.iter().any(|delta| matches!(delta, Ok(Delta::Unended(_)))) {
                cuts += 1;
                continue;
            }
            match received.last().unwrap() {
                Ok(Delta::End(_)) => assert_eq!(items(&received), expected(), "{wire:?} {length}"),
                Err(Failure::Cut(_)) => cuts += 1,
                other => panic!("{wire:?} after {length} bytes: {other:?}"),
            }
        }
        assert!(cuts > 20, "{wire:?}: {cuts}");
    }
}

#[tokio::test]
async fn an_answer_without_a_reason_for_its_end_is_marked_and_then_completed() {
    for (wire, sent) in
        [(Wire::Anthropic, 6), (Wire::Responses, 5), (Wire::Chat, 2), (Wire::Gemini, 2)]
    {
        let begun = events(wire)[..sent].concat();
        let received = hear(wire, Reply::bytes(begun.as_bytes()), PATIENT).await;
        assert_eq!(items(&received), expected(), "{wire:?}");
        let deltas: Vec<Delta> = received.into_iter().map(Result::unwrap).collect();
        assert_eq!(cut_blocks(&deltas), [false, false], "{wire:?}");
        assert_eq!(deltas.last(), Some(&Delta::End(Stop::Unnamed)), "{wire:?}");
        let marks = |delta: &&Delta| matches!(delta, Delta::Unended(why) if why.retryable());
        assert_eq!(deltas.iter().filter(marks).count(), 1, "{wire:?}: {deltas:?}");
    }
    let text_at_once = events(Wire::Responses).remove(2);
    let received = hear(Wire::Responses, Reply::bytes(text_at_once.as_bytes()), PATIENT).await;
    assert_eq!(received.last(), Some(&Ok(Delta::End(Stop::Unnamed))), "{received:?}");
}

#[tokio::test]
async fn a_whole_message_in_one_piece_needs_no_reason_for_its_end() {
    let message = json!({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]});
    let received = hear(Wire::Chat, Reply::bytes(message.to_string().as_bytes()), PATIENT).await;
    assert_eq!(items(&received), [Item::message(Role::Assistant, "Yes.")]);
    assert_eq!(received.last(), Some(&Ok(Delta::End(Stop::EndTurn))));
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_cut_that_keeps_what_came() {
    for wire in WIRES {
        let first: String = events(wire)[..3].concat();
        let steps = vec![Step::Send(first.into_bytes()), Step::Break];
        let received = hear(wire, Reply::stream(steps), PATIENT).await;
        assert!(received.contains(&Ok(Delta::Text("Grüße 👋".into()))), "{wire:?}");
        let complete = matches!(wire, Wire::Chat | Wire::Gemini);
        match received.last().unwrap() {
            Ok(Delta::End(Stop::ToolUse)) if complete => {}
            Err(Failure::Cut(said)) if !complete => {
                assert!(said.starts_with("prov at 127.0.0.1:"), "{said}");
            }
            other => panic!("{wire:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_silent_provider_ends_with_a_timeout_before_and_within_its_answer() {
    for wire in WIRES {
        let before = hear(wire, Reply::stream(vec![Step::Stall]), HASTY).await;
        // Three times the time of the settings, because the server is on this machine.
        let said = "sent nothing for 0.9 s";
        assert!(matches!(&before[..], [Err(Failure::Timeout(text))] if text.ends_with(said)));
        let first: String = events(wire)[..2].concat();
        let steps = vec![Step::Send(first.into_bytes()), Step::Stall];
        let within = hear(wire, Reply::stream(steps), HASTY).await;
        assert!(matches!(within.last(), Some(Err(Failure::Timeout(_)))), "{wire:?}: {within:?}");
    }
}

/// What each wire sends to keep a connection open, and a comment of the stream.
fn keep_alives(wire: Wire) -> [&'static str; 2] {
    let own = match wire {
        Wire::Anthropic => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        Wire::Responses => "event: keepalive\ndata: {\"type\": \"keepalive\"}\n\n",
        Wire::Chat => "data: {\"choices\": [{\"index\": 0, \"delta\": {}}]}\n\n",
        Wire::Gemini | Wire::Rehearsal => "data: {\"candidates\": []}\n\n",
    };
    [own, ": keep-alive\n\n"]
}

#[tokio::test]
async fn a_stream_of_keep_alives_alone_breaks_off_and_an_answer_between_them_does_not() {
    let times = Timeouts { piece: HASTY.piece, idle: HASTY.idle, ..PATIENT };
    for wire in WIRES {
        let first: String = events(wire)[..2].concat();
        for ping in keep_alives(wire) {
            let steps = vec![Step::Send(first.clone().into_bytes()), Step::Repeat(ping)];
            let received = hear(wire, Reply::stream(steps), times).await;
            let Some(Err(failure @ Failure::Timeout(said))) = received.last() else {
                panic!("{wire:?}: {received:?}")
            };
            assert!(said.ends_with("sent no answer for 0.3 s") && failure.retryable(), "{said}");
            let between = events(wire).join(ping);
            let received = hear(wire, Reply::bytes(between.as_bytes()), times).await;
            assert_eq!(received.last().cloned(), end(), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_does_not_wait_for_the_connection_to_close() {
    for wire in WIRES {
        let steps = vec![Step::Send(whole(wire)), Step::Stall];
        let received = hear(wire, Reply::stream(steps), HASTY).await;
        assert_eq!(received.last().cloned(), end(), "{wire:?}");
    }
}

#[tokio::test]
async fn a_provider_that_takes_the_connection_and_says_nothing_is_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let failure = send(&provider(Wire::Chat, &url, HASTY)).await.unwrap_err();
    assert!(matches!(failure, Failure::Timeout(_)), "{failure:?}");
}

#[tokio::test]
async fn a_dead_provider_is_named_with_its_host_and_the_way_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/v1");
    let failure = send(&provider(Wire::Anthropic, &url, PATIENT)).await.unwrap_err();
    let said =
        format!("prov at {address} refused the connection: check that it runs and its base URL");
    assert_eq!(failure, Failure::Connect(said));
}

#[tokio::test]
async fn a_damaged_event_is_passed_over_unless_a_call_may_have_lost_a_part() {
    for wire in WIRES {
        let all = events(wire);
        for odd in ["data: {\"type\": \n\n", "data: hello\n\n", "data:\n\n", "d@ta: {}\n\n"] {
            let first = [odd, &all.concat()].concat();
            let received = hear(wire, Reply::bytes(first.as_bytes()), PATIENT).await;
            assert_eq!(
                (items(&received), received.last().cloned()),
                (expected(), end()),
                "{wire:?} {odd}"
            );
        }
        let within = match wire {
            Wire::Anthropic | Wire::Responses => 5,
            _ => 2,
        };
        let garbled =
            [&all[..within].concat(), "data: {\"type\": \n\n", &all[within..].concat()].concat();
        let received = hear(wire, Reply::bytes(garbled.as_bytes()), PATIENT).await;
        let Some(Err(Failure::Cut(said))) = received.last() else {
            panic!("{wire:?}: {received:?}")
        };
        assert!(said.contains("not JSON"), "{said}");
    }
}

#[tokio::test]
async fn missing_blank_lines_between_events_lose_none_of_them() {
    for wire in WIRES {
        let text = String::from_utf8(whole(wire)).unwrap().replace("\n\n", "\n");
        let received = hear(wire, Reply::bytes(text.as_bytes()), PATIENT).await;
        assert_eq!((items(&received), received.last().cloned()), (expected(), end()), "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_is_read_by_its_bytes_whatever_its_label_says() {
    for wire in WIRES {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&whole(wire)).unwrap();
        let gzip = gzip.finish().unwrap();
        for (kind, body) in [
            ("application/json", whole(wire)),
            ("text/html", whole(wire)),
            ("", whole(wire)),
            ("text/event-stream", gzip),
        ] {
            let mut reply = Reply::bytes(&body);
            reply.headers = vec![("content-type", kind)];
            let received = hear(wire, reply, PATIENT).await;
            assert_eq!(
                (items(&received), received.last().cloned()),
                (expected(), end()),
                "{wire:?} {kind}"
            );
        }
        let rows: String =
            events(wire).iter().map(|event| event.trim().replace("data: ", "") + "\n").collect();
        let rows = rows.replace("[DONE]", "");
        let received = hear(wire, Reply::status(200, &rows), PATIENT).await;
        assert_eq!((items(&received), received.last().cloned()), (expected(), end()), "{wire:?}");
        let cut = hear(wire, Reply::status(200, &rows[..rows.len() / 2]), PATIENT).await;
        assert!(matches!(cut.last(), Some(Err(Failure::Cut(_)))), "{wire:?}: {cut:?}");
    }
}

#[tokio::test]
async fn the_words_of_a_compressed_error_are_read() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(br#"{"error":{"message":"max_tokens is too large"}}"#).unwrap();
    let (status, headers) = (400, vec![("content-encoding", "gzip")]);
    let reply = Reply { status, headers, steps: vec![Step::Send(gzip.finish().unwrap())] };
    let failed = refusal(Wire::Chat, reply).await.to_string();
    assert!(failed.ends_with("(400): max_tokens is too large"), "{failed}");
    for form in ["br", "zstd"] {
        let mut reply = Reply::bytes(&[0x1b, 0x03]);
        reply.headers.push(("content-encoding", form));
        let failed = refusal(Wire::Chat, reply).await;
        assert!(!failed.retryable() && failed.to_string().contains(form), "{failed}");
    }
}

#[tokio::test]
async fn an_error_behind_the_end_of_an_answer_does_not_take_it_back() {
    for wire in [Wire::Anthropic, Wire::Chat, Wire::Gemini] {
        let mut all = events(wire);
        all.truncate(
            all.len() - usize::from(wire == Wire::Anthropic) - 2 * usize::from(wire == Wire::Chat),
        );
        all.push("data: {\"error\": {\"message\": \"late\"}}\n\n".into());
        let received = hear(wire, Reply::bytes(all.concat().as_bytes()), PATIENT).await;
        assert_eq!((items(&received), received.last().cloned()), (expected(), end()), "{wire:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_text_do_not_end_an_answer() {
    for wire in WIRES {
        let mut bytes = whole(wire);
        let wave = bytes.windows(4).position(|four| four == "👋".as_bytes()).unwrap();
        bytes[wave] = 0xFF;
        let received = hear(wire, Reply::bytes(&bytes), PATIENT).await;
        let shown = received.iter().any(|delta| match delta {
            Ok(Delta::Text(text)) => text.contains('\u{FFFD}'),
            _ => false,
        });
        assert!(shown, "{wire:?}");
        assert_eq!(received.last().cloned(), end(), "{wire:?}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused_and_not_asked_for_again() {
    let steps = std::iter::repeat_n(Step::Send(vec![b'x'; 1 << 20]), 70).collect();
    let received = hear(Wire::Chat, Reply::stream(steps), PATIENT).await;
    let [Err(failure)] = &received[..] else { panic!("{received:?}") };
    let said = failure.to_string();
    assert!(said.contains("one event is longer than 64 MiB"), "{said}");
    assert!(!failure.retryable());
}

#[tokio::test]
async fn a_reported_error_keeps_what_came_before_it() {
    for wire in WIRES {
        let error = match wire {
            Wire::Anthropic => {
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
            }
            Wire::Responses => json!({"type": "error", "code": "server_error", "message": "busy"}),
            _ => json!({"error": {"code": 503, "message": "busy"}}),
        };
        let stream = format!("{}data: {error}\n\n", events(wire)[..2].concat());
        let received = hear(wire, Reply::bytes(stream.as_bytes()), PATIENT).await;
        assert!(received.len() > 1, "{wire:?}");
        let Some(Err(Failure::Provider { message, retryable: true, .. })) = received.last() else {
            panic!("{wire:?}: {received:?}")
        };
        assert!(message.contains("reported an error: busy ("), "{message}");
    }
}

#[tokio::test]
async fn a_status_is_a_failure_with_the_time_to_wait() {
    for wire in WIRES {
        let failed = refusal(wire, Reply::status(500, r#"{"error":{"message":"oops"}}"#)).await;
        let Failure::Status { status: 500, retry_after: None, message, .. } = failed else {
            panic!("{failed:?}")
        };
        assert!(message.ends_with("failed (500): oops"), "{message}");
        let mut busy = Reply::status(429, "{}");
        busy.headers.push(("retry-after", "2"));
        let failed = refusal(wire, busy).await;
        assert!(failed.retryable());
        assert_eq!(failed.retry_after(), Some(Duration::from_secs(2)));
    }
}

#[tokio::test]
async fn a_page_or_another_object_instead_of_an_answer_is_a_failure() {
    let mut page = Reply::bytes(b"<html>welcome</html>");
    page.headers = vec![("content-type", "text/html; charset=utf-8")];
    let of_ollama = "{\"message\": {\"content\": \"Hi\"}}\n{\"message\": {}, \"done\": true}\n";
    let packed = Reply::bytes(&[0, 0, 0, 0xb0, 0xde, 0x97, b'{', b'"']);
    let rows = Reply::status(200, of_ollama);
    let words = Reply::bytes(b"upstream connect error");
    for reply in [page, Reply::status(200, "{\"choices\": []}"), packed, rows, words] {
        let received = hear(Wire::Chat, reply, PATIENT).await;
        let [.., Err(Failure::Provider { message, retryable: false, .. })] = &received[..] else {
            panic!("{received:?}")
        };
        assert!(message.contains("check its base URL"), "{message}");
    }
}

#[tokio::test]
async fn each_wire_has_its_address_and_its_place_for_the_key() {
    let cases = [
        (Wire::Anthropic, "/v1/messages", "x-api-key", "sk-1"),
        (Wire::Responses, "/v1/responses", "authorization", "Bearer sk-1"),
        (Wire::Chat, "/v1/chat/completions", "authorization", "Bearer sk-1"),
        (Wire::Gemini, "/v1/models/m1:streamGenerateContent?alt=sse", "x-goog-api-key", "sk-1"),
    ];
    for (wire, path, header, value) in cases {
        let (fake, url) = Fake::start(vec![Reply::bytes(&whole(wire))]).await;
        let key = KeySource::Env("KEY".into());
        let model = Model { base_url: url, key, ..model(wire) };
        let secret = Some(Secret::new("sk-1"));
        let provider = Provider::new(&model, secret, PATIENT, Http::new(&PATIENT));
        send(&provider).await.unwrap();
        assert!(!format!("{provider:?}").contains("sk-1"));
        let asked = fake.asked.lock().unwrap();
        assert_eq!(
            (asked[0].path.as_str(), &asked[0].headers[header]),
            (path, &value.parse().unwrap())
        );
        let keys =
            asked[0].headers.values().filter(|value| value.to_str().unwrap().contains("sk-1"));
        assert_eq!(keys.count(), 1);
    }
}

#[tokio::test]
async fn a_missing_key_is_said_and_nothing_is_sent() {
    let (fake, url) = Fake::start(vec![]).await;
    let key = KeySource::Env("PROV_API_KEY".into());
    let model = Model { base_url: url, key, ..model(Wire::Anthropic) };
    let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
    let failure = send(&provider).await.unwrap_err();
    let said = "no key for prov: start yoi where PROV_API_KEY is set, or :connect prov";
    assert_eq!(failure, Failure::Unusable(said.into()));
    assert!(fake.paths().is_empty());
}

#[tokio::test]
async fn a_printed_key_is_sent_and_printed_anew_for_the_run_after_a_refusal() {
    let good = || Reply::bytes(&whole(Wire::Anthropic));
    let (fake, base_url) = Fake::start(vec![good(), Reply::status(401, "{}"), good()]).await;
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs").display().to_string();
    let script = format!("echo run >> '{runs}'; echo sk-$(wc -l < '{runs}' | tr -d ' ')");
    let (argv, env) = (["sh", "-c", &script].map(str::to_owned), std::env::vars().collect::<Env>());
    let model =
        Model { base_url, key: KeySource::Command("prov".into()), ..model(Wire::Anthropic) };
    let printed = PrintedKeys::default();
    for is_answered in [true, false, true] {
        let key = Key::Printed(printed.command("prov", &argv, env.clone()));
        let provider = Provider::new(&model, key, PATIENT, Http::new(&PATIENT));
        assert_eq!(send(&provider).await.is_ok(), is_answered);
        assert!(!format!("{provider:?}").contains("sk-"));
    }
    let asked = fake.asked.lock().unwrap();
    let keys: Vec<&str> =
        asked.iter().map(|asked| asked.headers["x-api-key"].to_str().unwrap()).collect();
    assert_eq!(keys, ["sk-1", "sk-1", "sk-2"]);
}

#[tokio::test]
async fn a_key_does_not_follow_a_redirect() {
    let (other, target) = Fake::start(vec![]).await;
    let mut reply = Reply::status(307, "");
    reply.headers.push(("location", Box::leak(target.into_boxed_str())));
    let failure = refusal(Wire::Chat, reply).await;
    assert!(matches!(failure, Failure::Status { status: 307, .. }), "{failure:?}");
    assert!(other.paths().is_empty());
}

#[tokio::test]
async fn a_server_without_the_responses_wire_is_spoken_to_in_chat_and_that_is_remembered() {
    let chat = || Reply::bytes(&whole(Wire::Chat));
    let (fake, url) = Fake::start(vec![Reply::status(404, "{}"), chat(), chat()]).await;
    let provider = provider(Wire::Responses, &url, PATIENT);
    assert_eq!(provider.origin().wire, "openai_responses");
    assert_eq!(items(&send(&provider).await.unwrap()), expected());
    assert_eq!(provider.origin().wire, "openai_chat");
    assert_eq!(items(&send(&provider.clone()).await.unwrap()), expected());
    let chat = "/v1/chat/completions";
    assert_eq!(fake.paths(), ["/v1/responses", chat, chat]);
}

#[tokio::test]
async fn a_request_that_no_change_made_acceptable_fails_as_it_was_refused_at_first() {
    let said = |words: &str| json!({"error": {"message": words}}).to_string();
    let refused = async |last: Reply| {
        let (fake, url) = Fake::start(vec![Reply::status(404, &said("no such path")), last]).await;
        let failure = send(&provider(Wire::Responses, &url, PATIENT)).await.unwrap_err();
        assert_eq!(fake.paths(), ["/v1/responses", "/v1/chat/completions"]);
        (failure.retryable(), failure.to_string())
    };
    let (_, same) = refused(Reply::status(404, &said("no such path"))).await;
    assert!(
        same.ends_with("/v1/responses has no such model or address (404): no such path"),
        "{same}"
    );
    let (_, other) = refused(Reply::status(400, &said("no model m1"))).await;
    let end = "(404): no such path; the changed request was refused, too: no model m1";
    assert!(other.contains("/v1/responses has") && other.ends_with(end), "{other}");
    let (is_retryable, busy) = refused(Reply::status(503, &said("busy"))).await;
    assert!(is_retryable && busy.ends_with("failed (503): busy"), "{busy}");
}

#[tokio::test]
async fn the_providers_own_address_is_not_second_guessed() {
    let (fake, base_url) = Fake::start(vec![Reply::status(404, "{}")]).await;
    let model = Model { base_url, own_url: true, ..model(Wire::Responses) };
    let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
    assert!(matches!(send(&provider).await, Err(Failure::Status { status: 404, .. })));
    assert_eq!(fake.paths().len(), 1);
}

#[tokio::test]
async fn an_address_that_is_not_there_below_a_base_url_without_a_version_names_that() {
    for (tail, hints) in [("", false), ("/openai", true)] {
        let (_fake, url) = Fake::start(vec![Reply::status(404, "{}")]).await;
        let model = Model { base_url: url + tail, ..model(Wire::Chat) };
        let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
        let Err(Failure::Status { message, .. }) = send(&provider).await else { panic!() };
        assert_eq!(message.contains("a version such as /v1"), hints, "{message}");
    }
}

#[tokio::test]
async fn an_account_without_summaries_gets_requests_without_them_from_then_on() {
    let refused = r#"{"error":{"message":"verify to generate reasoning summaries"}}"#;
    let good = || Reply::bytes(&whole(Wire::Responses));
    let (fake, base_url) = Fake::start(vec![Reply::status(400, refused), good(), good()]).await;
    let model = Model { base_url, reasoning: Reasoning::Effort, ..model(Wire::Responses) };
    let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
    send(&provider).await.unwrap();
    send(&provider).await.unwrap();
    let asked = fake.asked.lock().unwrap();
    let summaries: Vec<bool> =
        asked.iter().map(|asked| asked.body["reasoning"].get("summary").is_some()).collect();
    assert_eq!(summaries, [true, false, false]);
}

/// A refusal of a field on each wire, and the place of that field.
const REFUSED: [(Wire, &str, &str); 4] = [
    (Wire::Anthropic, "output_config: Extra inputs are not permitted", "/output_config"),
    (Wire::Responses, "Unknown parameter: 'prompt_cache_key'", "/prompt_cache_key"),
    (Wire::Chat, "Unrecognized request argument supplied: stream_options", "/stream_options"),
    (Wire::Gemini, "Thinking is not supported by this model", "/generationConfig/thinkingConfig"),
];

fn no(words: &str) -> Reply {
    Reply::status(400, &json!({"error": {"message": words}}).to_string())
}

/// Asks a fake with these answers twice, with an effort: what came, what was learned, and whether each body that it was
/// sent has this field.
async fn twice(
    wire: Wire,
    replies: Vec<Reply>,
    path: &str,
) -> (Vec<Result<Vec<Result<Delta, Failure>>, Failure>>, Provider, Vec<bool>) {
    let (fake, base_url) = Fake::start(replies).await;
    let model = Model { base_url, reasoning: Reasoning::Effort, own_url: true, ..model(wire) };
    let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
    let mut asked = request(vec![plain(Item::message(Role::User, "q"))]);
    asked.config.reasoning = Some(json!("low"));
    let asked = Arc::new(asked);
    let mut came = Vec::new();
    for _ in 0..2 {
        came.push(match provider.open(&asked).await {
            Ok(deltas) => Ok(deltas.collect().await),
            Err(failure) => Err(failure),
        });
    }
    let bodies = fake.asked.lock().unwrap();
    let has = bodies.iter().map(|asked| asked.body.pointer(path).is_some()).collect();
    drop(bodies);
    (came, provider, has)
}

#[tokio::test]
async fn what_a_provider_refuses_is_left_out_at_once_and_from_then_on_and_said_once() {
    for (wire, words, path) in REFUSED {
        let good = || Reply::bytes(&whole(wire));
        let (came, provider, has) = twice(wire, vec![no(words), good(), good()], path).await;
        assert_eq!(has, [true, false, false], "{wire:?}");
        let new = |came: &Result<Vec<Result<Delta, Failure>>, Failure>| {
            let came = came.as_ref().unwrap_or_else(|failure| panic!("{wire:?}: {failure}"));
            assert_eq!(items(came), expected(), "{wire:?}");
            came.iter().filter(|delta| matches!(delta, Ok(Delta::Learned(_)))).count()
        };
        assert_eq!(came.iter().map(new).collect::<Vec<_>>(), [1, 0], "{wire:?}");
        let [learned] = &provider.learned()[..] else { panic!("{wire:?}") };
        assert!(learned.sentence().contains(words), "{}", learned.sentence());
        // Another provider of the same model knows it, as one after a restart does.
        let stored = vec![serde_json::from_value(json!(learned)).unwrap()];
        let known = crate::llm::provider::Providers::that_know(stored);
        let of = |name: &str| {
            let base_url = learned.base_url.clone();
            let model = Model { base_url, model: name.into(), ..model(wire) };
            known.get(&model, None::<Secret>.into(), PATIENT, &Http::new(&PATIENT)).learned().len()
        };
        assert_eq!((of("m1"), of("m2")), (1, 0), "{wire:?}");
    }
}

#[tokio::test]
async fn the_second_refusal_of_the_same_thing_and_one_of_an_unknown_thing_end_the_request() {
    for (wire, words, path) in REFUSED {
        let replies = (0..4).map(|_| no(words)).collect();
        let (came, provider, has) = twice(wire, replies, path).await;
        assert_eq!(has, [true, false, true, false], "{wire:?}: one request more, and no third");
        let says = |failure: &Failure| failure.to_string().contains(words);
        assert!(came.iter().all(|came| came.as_ref().is_err_and(says)), "{wire:?}: {came:?}");
        assert!(provider.learned().is_empty(), "{wire:?}: it helped nothing");
        let other = || no("Unknown parameter: 'colour'.");
        let (came, _, has) = twice(wire, vec![other(), other()], path).await;
        assert_eq!((has.len(), came.iter().filter(|came| came.is_err()).count()), (2, 2));
    }
}

/// A refusal inside an answer that has begun with a success.
fn no_in_stream(words: &str) -> Reply {
    let error = json!({"error": {"message": words, "code": 400, "type": "invalid_request_error"}});
    Reply::bytes(format!("data: {error}\n\n").as_bytes())
}

/// The limit of output tokens in each body that a fake was sent.
fn limits(fake: &Fake) -> Vec<Option<u64>> {
    let asked = fake.asked.lock().unwrap();
    let places = [
        "/max_tokens",
        "/max_completion_tokens",
        "/max_output_tokens",
        "/generationConfig/maxOutputTokens",
    ];
    let limit = |asked: &Asked| places.iter().find_map(|place| asked.body.pointer(place)?.as_u64());
    asked.iter().map(limit).collect()
}

#[tokio::test]
async fn a_reply_that_does_not_fit_beside_its_prompt_is_asked_for_once_more_and_smaller() {
    const WORDS: &str = "This model's maximum context length is 8192 tokens. However, you requested 7396 tokens (3300 in \
                         the messages, 4096 in the completion)";
    let words = WORDS.replace("8192", "6000");
    for wire in WIRES {
        for refused in [no(&words), no_in_stream(&words)] {
            let good = || Reply::bytes(&whole(wire));
            let (fake, base_url) = Fake::start(vec![refused, good(), good()]).await;
            let model = Model { base_url, window: 0, ..model(wire) };
            let provider = Provider::new(&model, None, PATIENT, Http::new(&PATIENT));
            let mut asked = request(vec![plain(Item::message(Role::User, "q"))]);
            (asked.config.max_tokens, asked.tokens) = (Some(4096), 3500);
            let asked = Arc::new(asked);
            for _ in 0..2 {
                let came: Vec<_> = provider.open(&asked).await.unwrap().collect().await;
                assert_eq!(items(&came), expected(), "{wire:?}");
            }
            // The second request knows the window, and the size of its prompt by an estimate.
            assert_eq!(limits(&fake), [Some(4096), Some(2700), Some(2500)], "{wire:?}");
            let [learned] = &provider.learned()[..] else { panic!("{wire:?}") };
            assert!(learned.sentence().contains("at most 6000 tokens together"), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_too_long_after_one_request() {
    for wire in WIRES {
        for words in
            ["prompt is too long: 208310 tokens > 200000 maximum", "Prompt exceeds max length"]
        {
            let (fake, base_url) = Fake::start(vec![no(words), no_in_stream(words)]).await;
            let provider = provider(wire, &base_url, PATIENT);
            assert!(matches!(send(&provider).await, Err(Failure::TooLong { .. })), "{wire:?}");
            let came = send(&provider).await.unwrap();
            assert!(matches!(came[..], [Err(Failure::TooLong { .. })]), "{wire:?}: {came:?}");
            assert_eq!(fake.paths().len(), 2, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn what_a_provider_refuses_inside_its_answer_is_left_out_as_behind_a_status() {
    let words = "stream_options is not supported";
    let good = || Reply::bytes(&whole(Wire::Chat));
    let replies = vec![no_in_stream(words), good(), good()];
    let (came, provider, has) = twice(Wire::Chat, replies, "/stream_options").await;
    assert_eq!(has, [true, false, false]);
    assert!(came.iter().all(|came| came.as_ref().is_ok_and(|came| items(came) == expected())));
    assert_eq!(provider.learned().len(), 1);
    let replies = vec![no_in_stream(words), no_in_stream(words)];
    let (came, ..) = twice(Wire::Chat, replies, "/stream_options").await;
    let Ok(came) = &came[0] else { panic!("{came:?}") };
    assert!(matches!(&came[..], [Err(failure)] if failure.to_string().contains(words)), "{came:?}");
}

#[tokio::test]
async fn a_filter_is_known_behind_a_status_and_inside_an_answer() {
    for (status, body) in [
        (400, r#"{"error":{"message":"no","code":"content_filter"}}"#),
        (403, r#"{"error":{"message":"Your input was flagged for violence","code":403}}"#),
    ] {
        for wire in WIRES {
            let said = refusal(wire, Reply::status(status, body)).await;
            assert!(matches!(said, Failure::Filtered { .. }), "{wire:?}: {said:?}");
            assert!(!said.to_string().contains("key"), "{said}");
            let event = Reply::bytes(format!("data: {body}\n\n").as_bytes());
            let came = hear(wire, event, PATIENT).await;
            assert!(matches!(came[..], [Err(Failure::Filtered { .. })]), "{wire:?}: {came:?}");
        }
    }
}

#[tokio::test]
async fn a_call_that_its_server_could_not_read_is_sampled_again() {
    let body = r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=Bash>"}}"#;
    let said = refusal(Wire::Chat, Reply::status(400, body)).await;
    assert!(said.retryable() && said.to_string().contains("<function=Bash>"), "{said:?}");
    let event = Reply::bytes(format!("data: {body}\n\n").as_bytes());
    let came = hear(Wire::Chat, event, PATIENT).await;
    let [Err(said)] = &came[..] else { panic!("{came:?}") };
    assert!(said.retryable(), "{said:?}");
}

#[tokio::test]
async fn an_error_with_the_status_of_a_success_keeps_its_words() {
    for (body, words) in [
        (
            r#"{"id":"","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            "insufficient balance",
        ),
        (r#"{"code":1113,"msg":"Insufficient balance","success":false}"#, "Insufficient balance"),
    ] {
        let came = hear(Wire::Chat, Reply::status(200, body), PATIENT).await;
        let [Err(said)] = &came[..] else { panic!("{came:?}") };
        assert!(said.to_string().contains(words) && !said.retryable(), "{said:?}");
    }
}

#[tokio::test]
async fn the_wait_that_the_words_of_an_error_name_is_kept() {
    let words = "Rate limit reached. Please try again in 4.5s.";
    let body = json!({"error": {"message": words, "code": "rate_limit_exceeded"}}).to_string();
    let expected = Some(Duration::from_millis(4500));
    assert_eq!(refusal(Wire::Chat, Reply::status(429, &body)).await.retry_after(), expected);
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": words}}});
    let event = Reply::bytes(format!("data: {failed}\n\n").as_bytes());
    let came = hear(Wire::Responses, event, PATIENT).await;
    let [Err(said)] = &came[..] else { panic!("{came:?}") };
    assert_eq!((said.retry_after(), said.retryable()), (expected, true));
}

#[tokio::test]
async fn a_redirect_to_another_path_of_the_same_server_is_followed_with_the_request() {
    let mut moved = Reply::status(307, "");
    moved.headers.push(("location", "/v1/chat/completions/"));
    let (fake, url) = Fake::start(vec![moved, Reply::bytes(&whole(Wire::Chat))]).await;
    let came = send(&provider(Wire::Chat, &url, PATIENT)).await.unwrap();
    assert_eq!(items(&came), expected());
    assert_eq!(fake.paths(), ["/v1/chat/completions", "/v1/chat/completions/"]);
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].body, asked[1].body);
}
