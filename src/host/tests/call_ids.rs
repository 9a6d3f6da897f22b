//! A provider that gives several calls of one reply the same id, or calls a tool by a name without end.

use crate::host::tests::{Bench, run_end, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Item, Method, PodName, RunResult};
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Replies with the events that `reply` makes of the input of a request. The channel receives each input.
async fn provider(
    reply: impl Fn(&[Value]) -> Vec<Value> + Clone + Send + Sync + 'static,
) -> (String, mpsc::UnboundedReceiver<Vec<Value>>) {
    let (sent, inputs) = mpsc::unbounded_channel();
    let answer = move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap();
        let input = request["input"].as_array().unwrap().clone();
        let events = reply(&input);
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let response: Response = ([("content-type", "text/event-stream")], text).into_response();
        sent.send(input).unwrap();
        std::future::ready(response)
    };
    (serve(Router::new().fallback(answer)).await, inputs)
}

/// The events of a reply that consists of these items.
fn complete(output: &[Value]) -> Vec<Value> {
    let item = |(place, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": place, "item": item});
    let mut events: Vec<Value> = output.iter().enumerate().map(item).collect();
    let response = json!({"status": "completed", "output": output});
    events.push(json!({"type": "response.completed", "response": response}));
    events
}

fn has_results(input: &[Value]) -> bool {
    input.iter().any(|item| item["type"] == "function_call_output")
}

fn text(text: &str) -> Value {
    json!({"type": "message", "id": "m", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

/// Three calls that share an id, the third identical to the first, and then a text.
fn shared_ids(input: &[Value]) -> Vec<Value> {
    let write = |item: &str, path: &str| {
        let arguments = json!({"file_path": path, "content": "x"}).to_string();
        json!({"type": "function_call", "id": item, "call_id": "c", "name": "Write", "arguments": arguments})
    };
    let sent = json!(input).to_string();
    let dir = sent.split("dir=").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let (a, b) = (format!("{dir}/a"), format!("{dir}/b"));
    match has_results(input) {
        false => complete(&[write("f1", &a), write("f2", &b), write("f3", &a)]),
        true => complete(&[text("done")]),
    }
}

/// A Pod whose model is that provider.
async fn bench_with(url: &str) -> (Bench, PodName) {
    let settings = format!(
        "provider.fake.wire = 'responses'\nprovider.fake.key_env = []\nmodel = 'fake/m'\nprovider.fake.base_url = '{url}'\n"
    );
    let bench = Bench::with_settings(&settings).await;
    let new = NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    let created = bench.client.call(None, Method::New(new)).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    (bench, info.name)
}

#[tokio::test]
async fn calls_of_one_reply_that_share_an_id_get_their_own_and_a_repeated_one_runs_once() {
    let (url, mut inputs) = provider(shared_ids).await;
    let (mut bench, pod) = bench_with(&url).await;
    let dir = bench.root.join("w");
    bench.call(&pod, Method::say(format!("dir={}", dir.display()))).await.unwrap();
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Finished, .. }), "{end:?}");
    assert!(dir.join("a").exists() && dir.join("b").exists());
    let facts = bench.facts(&pod).await;
    let result = |fact: &Fact| match fact {
        Fact::ToolResult { item: Item::ToolResult { call_id, summary, .. }, .. } => {
            Some((call_id.clone(), summary.clone()))
        }
        _ => None,
    };
    let results: Vec<(String, String)> = facts.iter().filter_map(result).collect();
    let ids: BTreeSet<&String> = results.iter().map(|(id, _)| id).collect();
    assert_eq!((results.len(), ids.len()), (2, 2), "{results:?}");
    assert!(results.iter().all(|(_, summary)| summary.starts_with("Created")), "{results:?}");
    let _first = inputs.recv().await.unwrap();
    let input = inputs.recv().await.unwrap();
    let ids = |kind: &str| -> Vec<String> {
        let items = input.iter().filter(|item| item["type"] == kind);
        items.map(|item| item["call_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("function_call"), ids("function_call_output"));
    assert_eq!(ids("function_call").len(), 2);
}

#[tokio::test]
async fn a_tool_name_without_end_is_refused_and_is_not_sent_or_kept() {
    const LONG: usize = 1 << 20;
    let call = |input: &[Value]| {
        let (id, name) = ("i".repeat(LONG), "N".repeat(LONG));
        let call = json!({"type": "function_call", "id": "f", "call_id": id, "name": name, "arguments": "{}"});
        if has_results(input) {
            return complete(&[text("done")]);
        }
        let mut events = vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": call.clone()}),
        ];
        events.extend(complete(&[call]));
        events
    };
    let (url, mut inputs) = provider(call).await;
    let (mut bench, pod) = bench_with(&url).await;
    bench.call(&pod, Method::say("go")).await.unwrap();
    let starts = |event: &Event| matches!(event, Event::ToolCallStart { .. });
    let Event::ToolCallStart { id, name } = bench.next(starts).await else { panic!() };
    assert!(id.len() <= 128 && name.len() <= 128, "{} {}", id.len(), name.len());
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Finished, .. }), "{end:?}");
    let facts = bench.facts(&pod).await;
    assert!(json!(facts).to_string().len() < 64 * 1024, "the log is small");
    let refused = |fact: &Fact| {
        matches!(fact, Fact::ToolResult { item: Item::ToolResult { call_id, is_error: true, summary, .. }, .. }
            if *call_id == id && summary.contains(&name))
    };
    assert!(facts.iter().any(refused), "{facts:?}");
    let _first = inputs.recv().await.unwrap();
    let second = inputs.recv().await.unwrap();
    assert!(json!(second).to_string().len() < 64 * 1024, "the next request is small");
}
