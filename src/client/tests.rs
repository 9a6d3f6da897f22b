//! The handle to a host, against a host that is written here line by line.

use crate::client::connection::{NO_REPLY, SIGN_OF_LIFE, SILENCE};
use crate::client::{Client, ConnectError, Events, HELLO};
use crate::protocol::frame::{Hello, Lines};
use crate::protocol::{ClientKind, Event, Frame, Incoming, MAX_LINE, Method, Outgoing, Refusal};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::time::Instant;

/// The number of the process that the client believes it talks to.
const PID: u32 = 4711;

/// A host that does what the test says.
struct Scripted {
    lines: Lines<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Scripted {
    /// A host that has said hello, and its client. A pipe holds `pipe` bytes each way.
    async fn greeted(pipe: usize) -> (Self, Client, Events) {
        let (ours, theirs) = duplex(pipe);
        let (reader, mut writer) = split(theirs);
        let mut lines = Lines::new(reader, MAX_LINE);
        let host = async {
            writer.write_all(&Hello::line()).await.expect("the client is there");
            assert!(matches!(lines.next().await, Ok(Some(Frame::Line(_)))), "the client's hello");
        };
        let (client, ()) =
            tokio::join!(Client::over_socket_of(PID, ours, ClientKind::Lasting), host);
        let (client, events) = client.expect("a connection");
        (Self { lines, writer }, client, events)
    }

    async fn request(&mut self) -> Incoming {
        let Ok(Some(Frame::Line(line))) = self.lines.next().await else { panic!("no request") };
        Incoming::decode(&line).expect("a request")
    }

    async fn reply(&mut self, re: Option<String>, event: Event) {
        let line = Outgoing { re, pod: None, seq: None, event }.encode();
        self.writer.write_all(&line).await.expect("the client is there");
    }
}

/// A Pod that is in this state now.
fn changed(state: &str) -> Event {
    let info = serde_json::json!({
        "name": "w", "state": state, "since": 0, "seq": 0, "cwd": "/w", "workspace": "/w",
        "model": "", "model_why": "", "model_chosen": false, "context_tokens": 0,
        "context_window": 0, "scope": [],
    });
    Event::PodChanged { info: serde_json::from_value(info).expect("a pod") }
}

fn call(client: &Client, method: Method) -> tokio::task::JoinHandle<Result<Event, Refusal>> {
    let client = client.clone();
    tokio::spawn(async move { client.call(None, method).await })
}

#[tokio::test(start_paused = true)]
async fn a_host_that_says_no_hello_is_given_up_and_its_process_named() {
    let (ours, _silent) = duplex(1024);
    let begun = Instant::now();
    let error = Client::over_socket_of(PID, ours, ClientKind::Lasting).await.expect_err("no hello");
    assert_eq!(begun.elapsed(), HELLO);
    assert!(matches!(error, ConnectError::Silent(Some(PID))), "{error:?}");
    assert!(error.to_string().contains("process 4711"), "{error}");
    assert!(error.to_string().contains("kill -CONT 4711"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_host_that_falls_silent_are_refused_and_its_process_named() {
    let (mut host, client, mut events) = Scripted::greeted(1024).await;
    let begun = Instant::now();
    let (one, two) = (call(&client, Method::ListPods), call(&client, Method::HostStatus));
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push((host.request().await.method, begun.elapsed()));
    }
    assert_eq!(asked[2], (Method::HostStatus, NO_REPLY), "{asked:?}");
    for call in [one, two] {
        let refusal = call.await.expect("no panic").expect_err("no reply");
        assert!(refusal.message.contains("process 4711"), "{refusal}");
    }
    assert_eq!(begun.elapsed(), NO_REPLY + SIGN_OF_LIFE);
    assert!(begun.elapsed() <= Duration::from_secs(5));
    assert!(events.recv().await.is_none(), "the connection is over");
    let later = client.call(None, Method::ListPods).await.expect_err("no connection");
    assert!(later.message.contains("process 4711"), "{later}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_falls_silent_while_a_pod_runs_is_given_up_without_a_call() {
    let (mut host, client, mut events) = Scripted::greeted(4096).await;
    host.reply(None, changed("running")).await;
    events.recv().await.expect("the event");
    let begun = Instant::now();
    // A long call of a tool: the host lives, and says nothing by itself.
    for n in 1..=20 {
        let probe = host.request().await;
        assert_eq!((probe.method, begun.elapsed()), (Method::HostStatus, n * SILENCE));
        host.reply(probe.id, Event::done()).await;
    }
    let silent_since = Instant::now();
    assert!(events.recv().await.is_none(), "the connection is over");
    assert_eq!(silent_since.elapsed(), SILENCE + SIGN_OF_LIFE);
    let why = client.why_ended().message;
    assert!(why.contains("process 4711") && why.contains("kill -CONT"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_run_and_without_a_call_is_left_alone() {
    let (mut host, client, mut events) = Scripted::greeted(4096).await;
    for state in ["running", "idle"] {
        host.reply(None, changed(state)).await;
        events.recv().await.expect("the event");
    }
    let quiet = tokio::time::timeout(100 * SILENCE, host.request()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_reads_nothing_does_not_hang_its_client() {
    let (_host, client, _events) = Scripted::greeted(128).await;
    let refusal = client.call(None, Method::say("x".repeat(1 << 20))).await;
    let refusal = refusal.expect_err("no reply");
    assert!(refusal.message.contains("process 4711"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn a_request_may_take_as_long_as_it_takes_while_the_host_lives() {
    let (mut host, client, _events) = Scripted::greeted(1024).await;
    let slow = call(&client, Method::ListPods);
    let id = host.request().await.id;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(600) {
        let question = host.request().await;
        assert_eq!(question.method, Method::HostStatus);
        host.reply(question.id, Event::done()).await;
    }
    host.reply(id, Event::done()).await;
    assert_eq!(slow.await.expect("no panic"), Ok(Event::done()));
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_reply_due_is_left_alone() {
    let (mut host, client, _events) = Scripted::greeted(1024).await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    let reply = call(&client, Method::ListPods);
    let request = host.request().await;
    assert_eq!(request.method, Method::ListPods, "no question came before it");
    host.reply(request.id, Event::done()).await;
    assert_eq!(reply.await.expect("no panic"), Ok(Event::done()));
}

/// Both sides write more than the pipe holds before they read.
#[tokio::test]
async fn a_long_request_and_a_long_reply_pass_each_other() {
    let (mut host, client, _events) = Scripted::greeted(64 * 1024).await;
    let page = call(&client, Method::ListPods);
    let id = host.request().await.id;
    let long = call(&client, Method::say("x".repeat(1_500_000)));
    tokio::task::yield_now().await;
    let reply = Event::TextDone { text: "y".repeat(1 << 20) };
    host.reply(id, reply.clone()).await;
    assert_eq!(page.await.expect("no panic"), Ok(reply));
    let request = host.request().await;
    host.reply(request.id, Event::done()).await;
    assert_eq!(long.await.expect("no panic"), Ok(Event::done()));
}

#[tokio::test]
async fn a_request_is_sent_although_its_caller_gave_up() {
    let (mut host, client, _events) = Scripted::greeted(1024).await;
    drop(futures_util::poll!(std::pin::pin!(client.call(None, Method::ListPods))));
    let request = host.request().await;
    assert_eq!(request.method, Method::ListPods);
    host.reply(request.id, Event::done()).await;
    let next = call(&client, Method::HostStatus);
    let request = host.request().await;
    host.reply(request.id, Event::done()).await;
    assert_eq!(next.await.expect("no panic"), Ok(Event::done()));
}
