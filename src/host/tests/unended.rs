//! A server that ends its replies in order and never says that they are complete.

use crate::host::tests::{Bench, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Item, Method, RunResult};
use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What it answers to a conversation: a call in pieces until a result is there, and then words.
fn events(body: &Value, arguments: &str) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    let words = |words: &str| json!({"choices": [{"delta": {"content": words}}]});
    if messages.iter().any(|message| message["role"] == "tool") {
        return vec![words("There are "), words("no tasks.")];
    }
    let (begun, rest) = arguments.split_at(1);
    let call = |function: Value| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}]});
    vec![
        words("I look."),
        call(json!({"name": "TaskList", "arguments": begun})),
        call(json!({"arguments": rest})),
    ]
}

/// The facts of a run whose model calls with these arguments, and the number of its requests.
async fn run(arguments: &'static str) -> (Vec<Fact>, usize) {
    let requests = Arc::new(Mutex::new(0));
    let shared = requests.clone();
    let answers = post(move |body: String| {
        *shared.lock().unwrap() += 1;
        let events = events(&serde_json::from_str(&body).unwrap(), arguments);
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        std::future::ready(([("content-type", "text/event-stream")], text).into_response())
    });
    let url = serve(Router::new().route("/v1/chat/completions", answers)).await;
    let settings = format!(
        "model = 'fake/m'\n[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\n"
    );
    let mut bench = Bench::with_settings(&settings).await;
    let new = Method::New(NewPod { cwd: bench.root.join("w"), ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    bench.call(&info.name, Method::say("go")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let count = *requests.lock().unwrap();
    (bench.facts(&info.name).await, count)
}

fn texts(facts: &[Fact]) -> Vec<String> {
    let text = |fact: &Fact| match fact {
        Fact::AssistantItem { item: item @ Item::Message { .. }, .. } => item.text(),
        _ => None,
    };
    facts.iter().filter_map(text).collect()
}

fn results(facts: &[Fact]) -> Vec<(String, bool)> {
    let result = |fact: &Fact| match fact {
        Fact::ToolResult { item: Item::ToolResult { summary, is_error, .. }, .. } => {
            Some((summary.clone(), *is_error))
        }
        _ => None,
    };
    facts.iter().filter_map(result).collect()
}

fn unnamed_ends(facts: &[Fact]) -> usize {
    let is_unnamed = |fact: &&Fact| matches!(fact, Fact::Extension { payload, .. } if payload["reason"] == "unnamed");
    facts.iter().filter(is_unnamed).count()
}

#[tokio::test]
async fn the_second_reply_without_a_reason_is_taken_as_complete_and_its_text_is_kept_once() {
    let (facts, requests) = run("{}").await;
    assert_eq!(texts(&facts), ["I look.", "There are no tasks."], "{facts:?}");
    let results = results(&facts);
    assert!(matches!(&results[..], [(_, false)]), "the call runs once: {results:?}");
    // Two for the first reply; from then on the server is known.
    assert_eq!((requests, unnamed_ends(&facts)), (3, 2));
}

#[tokio::test]
async fn a_call_that_such_a_reply_cuts_is_answered_and_not_run() {
    let (facts, _) = run("{\"limit\": ").await;
    let results = results(&facts);
    let [(why, true)] = &results[..] else { panic!("{results:?}") };
    assert!(why.contains("not run: the end of the reply cut the arguments"), "{why}");
    assert_eq!(texts(&facts), ["I look.", "There are no tasks."]);
}
