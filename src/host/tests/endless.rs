//! A provider whose answer does not end by itself.

use crate::host::tests::{Bench, run_end};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Item, Method, PodName, RunResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const MIB: usize = 1 << 20;
const SETTINGS: &str = "provider.fake.wire = 'chat'\nprovider.fake.key_env = []\n\
    model = 'fake/m'\nlimits.reply_mib = 2\nlimits.block_mib = 1\nlimits.argument_mib = 1\n";

/// A bench with a Pod whose model streams these deltas, again and again; the channel says that a
/// connection was closed before its answer ended.
async fn endless(deltas: Vec<Value>) -> (Bench, PodName, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (closed, closes) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            serve(connection, &deltas).await;
            closed.send(()).await.unwrap();
        }
    });
    let settings = format!("{SETTINGS}provider.fake.base_url = '{url}'\n");
    let bench = Bench::with_settings(&settings).await;
    let new = NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    let created = bench.client.call(None, Method::New(new)).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    (bench, info.name, closes)
}

/// Streams until the other side closes.
async fn serve(mut connection: TcpStream, deltas: &[Value]) {
    let mut request = [0; 1 << 16];
    let _ = connection.read(&mut request).await.unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    for delta in deltas.iter().cycle() {
        let event = json!({"choices": [{"index": 0, "delta": delta}]});
        let line = format!("data: {event}\n\n");
        if connection.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Bench {
    /// Sends a message; how its run failed, and what its log holds then.
    async fn failed(&mut self, pod: &PodName) -> (String, Vec<Fact>) {
        self.call(pod, Method::say("go")).await.unwrap();
        let Event::Error { message, .. } = self.next(|e| matches!(e, Event::Error { .. })).await
        else {
            unreachable!()
        };
        let end = self.next(run_end).await;
        assert!(matches!(end, Event::RunEnd { result: RunResult::Failed, .. }), "{end:?}");
        (message, self.facts(pod).await)
    }
}

#[tokio::test]
async fn a_model_without_end_is_stopped_by_a_named_limit_and_what_it_said_is_kept() {
    let text = "\"\n".repeat(2_000);
    let (mut bench, pod, mut closes) = endless(vec![json!({"content": text})]).await;
    for message in 1..=2 {
        let (why, facts) = bench.failed(&pod).await;
        assert!(why.contains("1 MiB (limits.block_mib in config.toml)"), "{why}");
        closes.recv().await.expect("the connection is closed");
        let kept: Vec<usize> = facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::AssistantItem { item, partial: true, .. } => Some(item.text()?.len()),
                _ => None,
            })
            .collect();
        assert_eq!(kept.len(), message, "{kept:?}");
        // Each character takes two bytes of the log.
        assert!(kept.iter().all(|kept| (MIB / 2 - 4_000..=MIB / 2).contains(kept)), "{kept:?}");
        let in_log = facts.iter().any(
            |fact| matches!(fact, Fact::RunErrored { message, .. } if message.contains("block_mib")),
        );
        assert!(in_log);
    }
}

#[tokio::test]
async fn arguments_without_end_are_stopped_by_a_named_limit_and_the_call_is_not_made() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "Write", "arguments": "{\"content\": \""}}]});
    let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": "x".repeat(4_000)}}]});
    let mut deltas = vec![call];
    deltas.extend(std::iter::repeat_n(more, 1_000));
    let (mut bench, pod, mut closes) = endless(deltas).await;
    let (why, facts) = bench.failed(&pod).await;
    assert!(why.contains("1 MiB (limits.argument_mib in config.toml)"), "{why}");
    closes.recv().await.expect("the connection is closed");
    let called = |fact: &Fact| {
        matches!(fact, Fact::AssistantItem { item: Item::ToolCall { .. }, .. })
            || matches!(fact, Fact::ToolResult { .. })
    };
    assert!(!facts.iter().any(called), "{facts:?}");
}

#[tokio::test]
async fn blocks_without_end_are_stopped_by_the_limit_of_the_reply_and_are_kept() {
    let thought = json!({"reasoning_content": "x".repeat(40_000)});
    let text = json!({"content": "y".repeat(40_000)});
    let (mut bench, pod, mut closes) = endless(vec![thought, text]).await;
    let (why, facts) = bench.failed(&pod).await;
    assert!(why.contains("2 MiB (limits.reply_mib in config.toml)"), "{why}");
    closes.recv().await.expect("the connection is closed");
    let said = |fact: &&Fact| matches!(fact, Fact::AssistantItem { partial: false, .. });
    assert!(facts.iter().filter(said).count() > 10, "a page of the newest entries");
}
