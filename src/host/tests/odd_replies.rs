//! Servers whose replies are not as their API documents them.

use crate::host::tests::{Bench, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Item, Method, RunResult};
use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The end of a reply with its reason.
const STOP: &str = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n";

/// The facts of a run against a server that answers each body so, and the number of its requests.
async fn run(
    answer: impl Fn(&Value) -> String + Clone + Send + Sync + 'static,
) -> (Vec<Fact>, usize) {
    run_of("m", answer).await
}

/// The same of a model of this name.
async fn run_of(
    model: &str,
    answer: impl Fn(&Value) -> String + Clone + Send + Sync + 'static,
) -> (Vec<Fact>, usize) {
    let requests = Arc::new(Mutex::new(0));
    let shared = requests.clone();
    let answers = post(move |body: String| {
        *shared.lock().unwrap() += 1;
        let text = answer(&serde_json::from_str(&body).unwrap());
        std::future::ready(([("content-type", "text/event-stream")], text).into_response())
    });
    let url = serve(Router::new().route("/v1/chat/completions", answers)).await;
    let settings = format!(
        "model = 'fake/{model}'\n[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\n"
    );
    let mut bench = Bench::with_settings(&settings).await;
    let new = Method::New(NewPod { cwd: bench.root.join("w"), ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    bench.call(&info.name, Method::say("go")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let count = *requests.lock().unwrap();
    (bench.facts(&info.name).await, count)
}

fn event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}))
}

fn words(words: &str) -> String {
    event(&json!({"content": words}))
}

/// A reply that calls with these arguments until a result is there, and then words, each without a reason for its end.
fn unended(body: &Value, arguments: &str) -> String {
    let messages = body["messages"].as_array().unwrap();
    if messages.iter().any(|message| message["role"] == "tool") {
        return words("There are ") + &words("no tasks.");
    }
    let (begun, rest) = arguments.split_at(1);
    let call = |function: Value| {
        event(&json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]}))
    };
    words("I look.")
        + &call(json!({"name": "TaskList", "arguments": begun}))
        + &call(json!({"arguments": rest}))
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

/// How many notes about the end of a reply have this reason.
fn ends(facts: &[Fact], reason: &str) -> usize {
    let is_it = |fact: &&Fact| matches!(fact, Fact::Extension { payload, .. } if payload["reason"] == reason);
    facts.iter().filter(is_it).count()
}

#[tokio::test]
async fn a_reply_without_a_reason_is_complete_where_a_second_one_has_none_either() {
    let (facts, requests) = run(|body| unended(body, "{}")).await;
    assert_eq!(texts(&facts), ["I look.", "There are no tasks."], "{facts:?}");
    let results = results(&facts);
    assert!(matches!(&results[..], [(_, false)]), "the call runs once: {results:?}");
    // Two for the first reply; from then on the server is known.
    assert_eq!((requests, ends(&facts, "unnamed")), (3, 2));
}

#[tokio::test]
async fn a_call_that_such_a_reply_cuts_is_answered_and_not_run() {
    let (facts, _) = run(|body| unended(body, "{\"limit\": ")).await;
    let results = results(&facts);
    let [(why, true)] = &results[..] else { panic!("{results:?}") };
    assert!(why.contains("not run: the end of the reply cut the arguments"), "{why}");
    assert_eq!(texts(&facts), ["I look.", "There are no tasks."]);
}

#[tokio::test]
async fn a_damaged_part_of_a_reply_is_missing_and_the_log_says_so() {
    let damaged = words("two ").replace("\"}", "");
    let reply = words("One ") + &damaged + &words("three.") + STOP;
    let (facts, requests) = run(move |_| reply.clone()).await;
    assert_eq!(texts(&facts), ["One three."]);
    assert_eq!((requests, ends(&facts, "garbled")), (1, 1), "{facts:?}");
}

#[tokio::test]
async fn an_empty_reply_is_asked_for_once_more_and_then_noted() {
    let (facts, requests) = run(|_| STOP.to_owned()).await;
    let empty = facts.iter().filter(|fact| fact.is_empty_answer()).count();
    assert_eq!((requests, empty, texts(&facts).len()), (2, 1, 0), "{facts:?}");
}

#[tokio::test]
async fn the_second_reply_without_a_reason_is_no_second_answer() {
    let count = Arc::new(Mutex::new(0));
    let (facts, requests) = run(move |_| {
        *count.lock().unwrap() += 1;
        words(&format!("Answer {}.", count.lock().unwrap()))
    })
    .await;
    assert_eq!((requests, texts(&facts)), (2, vec!["Answer 1.".to_owned()]), "{facts:?}");
}

#[tokio::test]
async fn a_second_reply_with_a_reason_shows_that_the_first_one_was_cut() {
    let replies = [words("One "), words("One two.") + STOP, words("two.") + STOP];
    let count = Arc::new(Mutex::new(0));
    let (facts, requests) = run(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        replies[*count - 1].clone()
    })
    .await;
    assert_eq!((requests, texts(&facts)), (3, vec!["One ".to_owned(), "two.".to_owned()]));
    assert_eq!(ends(&facts, "unnamed"), 0, "{facts:?}");
}

#[tokio::test]
async fn a_model_may_have_a_name_of_thousands_of_characters() {
    let name = "x".repeat(5_000);
    let asked = name.clone();
    let (facts, requests) =
        run_of(&name, move |body| words(&(body["model"] == asked).to_string()) + STOP).await;
    assert_eq!((requests, texts(&facts)), (1, vec!["true".to_owned()]));
}
