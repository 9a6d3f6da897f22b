//! A provider that gives several calls of one reply the same id.

use crate::host::tests::{Bench, run_end};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Item, Method, RunResult};
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Replies first with three calls that share an id, the third identical to the first, and then with
/// a text. The channel receives the input of each request.
async fn provider() -> (String, mpsc::UnboundedReceiver<Vec<Value>>) {
    let (sent, inputs) = mpsc::unbounded_channel();
    let answer = move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap();
        let input = request["input"].as_array().unwrap().clone();
        let response = reply(&input);
        sent.send(input).unwrap();
        std::future::ready(response)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{address}/v1"), inputs)
}

fn reply(input: &[Value]) -> Response {
    let write = |item: &str, path: &str| {
        let arguments = json!({"file_path": path, "content": "x"}).to_string();
        json!({"type": "function_call", "id": item, "call_id": "c", "name": "Write", "arguments": arguments})
    };
    let text = json!(input).to_string();
    let dir = text.split("dir=").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let (a, b) = (format!("{dir}/a"), format!("{dir}/b"));
    let output = match input.iter().any(|item| item["type"] == "function_call_output") {
        false => vec![write("f1", &a), write("f2", &b), write("f3", &a)],
        true => vec![json!({"type": "message", "id": "m", "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}]})],
    };
    let mut events: Vec<Value> = Vec::new();
    for (place, item) in output.iter().enumerate() {
        let kind = "response.output_item.done";
        events.push(json!({"type": kind, "output_index": place, "item": item}));
    }
    let response = json!({"status": "completed", "output": output});
    events.push(json!({"type": "response.completed", "response": response}));
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

#[tokio::test]
async fn calls_of_one_reply_that_share_an_id_get_their_own_and_a_repeated_one_runs_once() {
    let (url, mut inputs) = provider().await;
    let settings = format!(
        "provider.fake.wire = 'responses'\nprovider.fake.key_env = []\nmodel = 'fake/m'\nprovider.fake.base_url = '{url}'\n"
    );
    let mut bench = Bench::with_settings(&settings).await;
    let new = NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    let created = bench.client.call(None, Method::New(new)).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    let dir = bench.root.join("w");
    bench.call(&info.name, Method::say(format!("dir={}", dir.display()))).await.unwrap();
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Finished, .. }), "{end:?}");
    assert!(dir.join("a").exists() && dir.join("b").exists());
    let facts = bench.facts(&info.name).await;
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
