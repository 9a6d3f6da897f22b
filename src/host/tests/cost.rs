//! The cost of a Pod beside what its provider reported.

use crate::host::tests::{Bench, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Effort, Event, Method, RunResult};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What a provider reported so far.
#[derive(Default)]
struct Reported {
    requests: u64,
    dollars: f64,
    /// Model and thinking of each request that it answered whole.
    asked: Vec<(String, bool)>,
}

/// Dollars for a million tokens of input, output, read from the cache and written to it.
type Rates = [u32; 4];

fn rates(model: &str) -> Rates {
    if model == "dear" { [30, 150, 3, 40] } else { [3, 15, 1, 4] }
}

/// A provider that keeps a cache, is overloaded at times and breaks replies off. A tool is called in nine of ten
/// replies.
fn answer(reported: &Mutex<Reported>, body: &str) -> Response {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut reported = reported.lock().unwrap();
    reported.requests += 1;
    let n = reported.requests;
    if n % 97 == 5 {
        return (StatusCode::TOO_MANY_REQUESTS, "busy").into_response();
    }
    let model = body["model"].as_str().unwrap();
    let (input, read, write, output) = (n % 7 * 100, n * 1000, n % 11 * 10, 1 + n % 5 * 7);
    let is_broken = n % 89 == 31;
    let sum = |output: u64| {
        let tokens = [input, output, read, write].map(|tokens| u32::try_from(tokens).unwrap());
        let each =
            tokens.into_iter().zip(rates(model)).map(|(n, rate)| f64::from(n) * f64::from(rate));
        each.sum::<f64>() / 1e6
    };
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": input,
        "cache_read_input_tokens": read, "cache_creation_input_tokens": write, "output_tokens": 1}}});
    let mut events = vec![start];
    let (block, delta, reason) = match n.is_multiple_of(10) {
        true => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": "done"}),
            "end_turn",
        ),
        false => (
            json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "TaskList", "input": {}}),
            json!({"type": "input_json_delta", "partial_json": "{}"}),
            "tool_use",
        ),
    };
    events.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    if is_broken {
        reported.dollars += sum(1);
    } else {
        events.push(json!({"type": "content_block_stop", "index": 0}));
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output}}));
        events.push(json!({"type": "message_stop"}));
        reported.dollars += sum(output);
        let thinks = body["output_config"]["effort"] == "low";
        reported.asked.push((model.to_owned(), thinks));
    }
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

#[tokio::test]
async fn the_cost_of_a_pod_is_what_its_provider_reported_whatever_failed_and_changed() {
    let reported = Arc::new(Mutex::new(Reported::default()));
    let shared = reported.clone();
    let answers = post(move |body: String| std::future::ready(answer(&shared, &body)));
    let url = serve(Router::new().route("/v1/messages", answers)).await;
    let model = |name: &str| {
        let [input, output, read, write] = rates(name);
        format!(
            "[models.'fake/{name}']\nwindow = 10_000_000_000\nprice = {{ input = {input}, output = {output}, \
             cache_read = {read}, cache_write = {write} }}\n"
        )
    };
    let settings = format!(
        "[provider.fake]\nwire = 'anthropic'\nbase_url = '{url}'\nkey_env = []\nreasoning = 'effort'\n{}{}",
        model("cheap"),
        model("dear")
    );
    let mut bench = Bench::with_settings(&settings).await;
    let (cwd, cheap) = (bench.root.join("w"), Some("fake/cheap".to_owned()));
    let new = Method::New(NewPod { cwd, model: cheap, ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    let pod = info.name.clone();
    let wanted = std::env::var("YOI_REQUESTS").map_or(100, |count| count.parse().unwrap());
    let mut turns = 0;
    while reported.lock().unwrap().requests < wanted {
        let (name, effort) =
            if turns % 3 == 0 { ("dear", Effort::Low) } else { ("cheap", Effort::Off) };
        bench.call(&pod, Method::SetModel { model: format!("fake/{name}") }).await.unwrap();
        bench.call(&pod, Method::SetEffort { effort: Some(effort) }).await.unwrap();
        let before = reported.lock().unwrap().asked.len();
        bench.call(&pod, Method::say("go")).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        let asked = reported.lock().unwrap().asked.split_off(before);
        assert!(
            asked.iter().all(|asked| *asked == (name.to_owned(), effort == Effort::Low)),
            "{asked:?}"
        );
        turns += 1;
    }
    let cost = bench.is(&pod, crate::protocol::State::Idle).await.cost.unwrap();
    let reported = reported.lock().unwrap();
    let apart = (cost - reported.dollars).abs() / reported.dollars;
    assert!(apart < 1e-9, "{cost} of {} after {} requests", reported.dollars, reported.requests);
}

/// A reply to a request whose input a server counted several times, as it does for its own tools.
fn summed(requests: &Mutex<u32>) -> Response {
    *requests.lock().unwrap() += 1;
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1_000_000}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

#[tokio::test]
async fn input_that_no_window_holds_is_paid_and_does_not_fill_the_context() {
    let requests = Arc::new(Mutex::new(0));
    let shared = requests.clone();
    let answers = post(move || std::future::ready(summed(&shared)));
    let url = serve(Router::new().route("/v1/messages", answers)).await;
    let settings = format!(
        "[provider.fake]\nwire = 'anthropic'\nbase_url = '{url}'\nkey_env = []\n[models.'fake/one']\n\
         window = 200_000\nprice = {{ input = 3, output = 15, cache_read = 1, cache_write = 4 }}\n"
    );
    let mut bench = Bench::with_settings(&settings).await;
    let (cwd, model) = (bench.root.join("w"), Some("fake/one".to_owned()));
    let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    for _ in 0..2 {
        bench.call(&info.name, Method::say("go")).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
    }
    let after = bench.is(&info.name, crate::protocol::State::Idle).await;
    assert_eq!((*requests.lock().unwrap(), after.cost), (2, Some(6.0)));
    assert!(after.context_tokens < 200_000, "{}", after.context_tokens);
}

#[tokio::test]
async fn the_next_host_knows_what_live_and_stopped_pods_have_cost() {
    let requests = Arc::new(Mutex::new(0));
    let shared = requests.clone();
    let answers = post(move || std::future::ready(summed(&shared)));
    let url = serve(Router::new().route("/v1/messages", answers)).await;
    let settings = format!(
        "[provider.fake]\nwire = 'anthropic'\nbase_url = '{url}'\nkey_env = []\n[models.'fake/one']\n\
         window = 200_000\nprice = {{ input = 3, output = 15, cache_read = 1, cache_write = 4 }}\n"
    );
    let mut bench = Bench::with_settings(&settings).await;
    let mut pods = Vec::new();
    for _ in 0..2 {
        let (cwd, model) = (bench.root.join("w"), Some("fake/one".to_owned()));
        let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
        let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
        bench.call(&info.name, Method::say("go")).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        pods.push(info.name.clone());
    }
    let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
    bench.call(&pods[1], stop).await.unwrap();
    let bench = bench.damaged_while_away(|_| {}).await;
    for pod in pods {
        let cost = bench.info(&pod).await.cost;
        assert_eq!(cost, Some(3.0), "{pod}");
    }
}
