//! Compactions: the request for a summary, and what survives.

use crate::host::tests::{Bench, run_end, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, GoesOnBy, Method, PodInfo, PodName, RunResult, State, Verdict};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The reply to one request for a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Summary {
    Text,
    Overloaded,
    Cut,
    Empty,
    Declined,
}

impl Summary {
    fn reply(self) -> Response {
        let (text, reason) = match self {
            Self::Text => ("what was said", "end_turn"),
            Self::Overloaded => return (StatusCode::TOO_MANY_REQUESTS, "busy").into_response(),
            Self::Cut => ("what was", "max_tokens"),
            Self::Empty => (" ", "end_turn"),
            Self::Declined => ("no", "refusal"),
        };
        reply(text, reason)
    }
}

fn reply(text: &str, reason: &str) -> Response {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

/// A Pod that has said one thing, and the bodies of its requests. These are the replies to requests for summaries,
/// one after the other.
async fn pod(bench: &mut Bench, summaries: &[Summary]) -> (PodName, Arc<Mutex<Vec<Value>>>) {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let rest = Arc::new(Mutex::new(summaries.to_vec()));
    let seen = bodies.clone();
    let answer = post(async move |body: String| {
        let value: Value = serde_json::from_str(&body).unwrap();
        let prompt: &str = include_str!("../../../prompts/compaction.md");
        let newest = value["messages"].as_array().unwrap().last().unwrap().to_string();
        let is_summary = newest.contains(prompt.lines().next().unwrap());
        seen.lock().unwrap().push(value);
        if is_summary { rest.lock().unwrap().remove(0).reply() } else { reply("hi", "end_turn") }
    });
    let url = serve(Router::new().route("/v1/messages", answer)).await;
    bench.write_settings(&format!(
        "[provider.fake]\nwire = 'anthropic'\nbase_url = '{}'\nkey_env = []\n",
        url.trim_end_matches("/v1")
    ));
    let (cwd, model) = (bench.root.join("w"), Some("fake/own".to_owned()));
    let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    bench.call(&info.name, Method::say("hello")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    bench.is(&info.name, State::Idle).await;
    (info.name.clone(), bodies)
}

/// A body without the marks of its cache, which move.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let rest = map.iter().filter(|(key, _)| *key != "cache_control");
            rest.map(|(key, value)| (key.clone(), unmarked(value))).collect()
        }
        Value::Array(all) => all.iter().map(unmarked).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn the_request_for_a_summary_is_the_next_request_with_one_message_more() {
    let mut bench = Bench::new().await;
    let (pod, bodies) = pod(&mut bench, &[Summary::Overloaded, Summary::Text]).await;
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    let bodies: Vec<Value> = bodies.lock().unwrap().iter().map(unmarked).collect();
    let [first, refused, summary] = &bodies[..] else { panic!("{}", bodies.len()) };
    assert_eq!(refused, summary, "an overload is waited out");
    for part in ["system", "tools", "model", "max_tokens", "tool_choice"] {
        assert_eq!(first[part], summary[part], "{part}");
    }
    assert!(first["tools"].as_array().unwrap().len() > 5);
    let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
    let (before, after) = (messages(first), messages(summary));
    assert_eq!(after[..before.len()], before, "the former request is its beginning");
    assert_eq!(after.len(), before.len() + 2, "the reply and the request for a summary");
}

#[tokio::test]
async fn a_summary_that_is_cut_empty_or_declined_is_made_once_more_and_then_not_taken() {
    for (bad, words) in [
        (Summary::Cut, "the summary was cut"),
        (Summary::Empty, "the model gave no summary"),
        (Summary::Declined, "the model declined"),
    ] {
        let mut bench = Bench::new().await;
        let (pod, bodies) = pod(&mut bench, &[bad, bad, bad, Summary::Text]).await;
        bench.call(&pod, Method::Compact).await.unwrap();
        let failed = bench.next(|event| matches!(event, Event::CompactFailed { .. })).await;
        let Event::CompactFailed { error } = failed else { unreachable!() };
        assert!(error.contains(words), "{bad:?}: {error}");
        assert_eq!(bodies.lock().unwrap().len(), 3, "{bad:?}");
        let is_failed = |info: &PodInfo| info.goes_on_by == Some(GoesOnBy::Compact);
        bench.until(pod.as_str(), is_failed).await;
        bench.call(&pod, Method::Compact).await.unwrap();
        bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
        assert_eq!(bodies.lock().unwrap().len(), 5, "{bad:?}: the second time the summary is good");
    }
}

const FAMILY: &str = r#"
[[when]]
says = "begin *"
[[when.step]]
call = [
  { name = "TaskCreate", args = { subject = "paint the fence", description = "in green" } },
  { name = "Read", args = { file_path = "{cwd}/notes.txt" } },
  { name = "SpawnPod", args = { name = "kid", task = "dig", scope = [{ target = "{cwd}/a", permission = "write" }] } },
  { name = "Write", args = { file_path = "{cwd}/b.txt", content = "x" } },
]
[[when.step]]
text = "begun"

[[when]]
says = "dig"
text = "dug the hole"

[[when]]
note = "*[Notification]*"
text = "noted"

[[when]]
any = true
text = "yes"
"#;

#[tokio::test]
async fn a_compaction_keeps_all_that_the_docs_list() {
    let mut bench = Bench::with_settings(
        "[compaction]\nkeep_tokens = 0\n[[permissions.rule]]\ntool = 'Write'\naction = 'ask'\n",
    )
    .await;
    std::fs::create_dir_all(bench.root.join("w/a")).unwrap();
    std::fs::write(bench.root.join("w/notes.txt"), "n").unwrap();
    let script = bench.root.join("script.toml");
    std::fs::write(&script, FAMILY).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    bench.call(&pod, Method::say("begin the work, never on Sundays")).await.unwrap();
    let asked = bench.next(|event| matches!(event, Event::ApprovalRequested { .. })).await;
    let Event::ApprovalRequested { approval } = asked else { unreachable!() };
    let (approval, verdict) = (approval.id, Verdict::Pod { rule: None });
    bench.client.call(None, Method::Decide { approval, verdict }).await.unwrap();
    while !bench.said(&pod).await.contains(&"noted".to_owned()) {
        bench.next(run_end).await;
    }
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::say("newest word")).await.unwrap();
    while bench.said(&pod).await.pop().as_deref() != Some("yes") {
        bench.next(run_end).await;
    }
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    let page = bench.call(&pod, Method::Page { before: None, max_bytes: 1 << 20 }).await.unwrap();
    let page = serde_json::to_string(&page).unwrap();
    let newest = page.rsplit("segment_start").next().unwrap();
    for kept in [
        "never on Sundays",
        "newest word",
        "notes.txt",
        "paint the fence",
        "kid",
        "scope_delegated",
        "- Write:",
    ] {
        assert!(newest.contains(kept), "{kept} is lost: {newest}");
    }
}

#[tokio::test]
async fn how_full_the_window_is_stays_known_when_a_pod_comes_back_after_a_compaction() {
    let mut bench = Bench::new().await;
    let (pod, _) = pod(&mut bench, &[Summary::Text]).await;
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    let before = bench.is(&pod, State::Idle).await.context_tokens;
    bench.call(&pod, Method::Stop).await.unwrap();
    bench.is(&pod, State::Stopped).await;
    let restore = Method::Restore { name: pod.to_string() };
    bench.client.call(None, restore).await.unwrap();
    assert_eq!(bench.info(&pod).await.context_tokens, before);
    let bench = bench.restarted().await;
    let after = bench.info(&pod).await.context_tokens;
    assert!(0 < after && after <= before, "{after} of {before}: the tools are in no log");
}
