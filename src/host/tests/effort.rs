//! What each request says of its model: the effort, and the limit of a reply.

use crate::host::tests::{Bench, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Effort, Event, Method, PodName, RunResult};
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The bodies of the requests that came to a provider.
type Bodies = watch::Sender<Vec<Value>>;

/// More than the answers of a test.
const PERMITS: usize = 100;

/// A provider whose first answer to a message calls a tool, and whose second one ends the run. Each answer
/// takes a permit.
async fn provider() -> (String, Bodies, Arc<Semaphore>) {
    let (bodies, permits) = (Bodies::default(), Arc::new(Semaphore::new(PERMITS)));
    let (came, answers) = (bodies.clone(), permits.clone());
    let answer = post(async move |body: String| {
        let body: Value = serde_json::from_str(&body).unwrap();
        let is_result = body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
        came.send_modify(|bodies| bodies.push(body));
        answers.acquire().await.unwrap().forget();
        let function = json!({"name": "Read", "arguments": r#"{"file_path":"x"}"#});
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
        let (delta, reason) = match is_result {
            true => (json!({"content": "done"}), "stop"),
            false => (json!({"tool_calls": [call]}), "tool_calls"),
        };
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
        ([("content-type", "text/event-stream")], text).into_response()
    });
    let url = serve(Router::new().route("/v1/chat/completions", answer)).await;
    (url, bodies, permits)
}

impl Bench {
    async fn hello_is_answered(&mut self, pod: &PodName) {
        self.call(pod, Method::say("hello")).await.unwrap();
        assert_eq!(self.end().await, RunResult::Finished);
    }
}

/// The value of a field in each body since the last look.
fn taken(bodies: &Bodies, field: &str) -> Vec<Value> {
    bodies.send_replace(Vec::new()).iter().map(|body| body[field].clone()).collect()
}

fn settings(url: &str) -> String {
    format!(
        "[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\nreasoning = 'effort'\n\
         [models.'fake/small']\nmax_output = 1000\n[models.'fake/large']\nmax_output = 9000\n\
         [profile.deep]\neffort = 'max'\n"
    )
}

async fn pod(bench: &Bench, new: NewPod) -> PodName {
    let (cwd, model) = (bench.root.join("w"), Some("fake/small".to_owned()));
    let new = Method::New(NewPod { cwd, model, ..new });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    info.name.clone()
}

#[tokio::test]
async fn the_limit_of_a_reply_is_that_of_the_model_that_is_asked() {
    let (url, bodies, _) = provider().await;
    let mut bench = Bench::with_settings(&settings(&url)).await;
    let pod = pod(&bench, NewPod::default()).await;
    bench.hello_is_answered(&pod).await;
    assert_eq!(taken(&bodies, "max_tokens"), [1000, 1000]);
    bench.call(&pod, Method::SetModel { model: "fake/large".into() }).await.unwrap();
    bench.hello_is_answered(&pod).await;
    assert_eq!(taken(&bodies, "max_tokens"), [9000, 9000]);
}

#[tokio::test]
async fn the_effort_of_the_settings_and_of_a_pod_count_from_the_next_request_on_also_in_a_run() {
    let (url, bodies, permits) = provider().await;
    let mut bench = Bench::with_settings(&settings(&url)).await;
    let of_profile = NewPod { profile: Some("deep".into()), ..NewPod::default() };
    let deep = pod(&bench, of_profile).await;
    let plain = pod(&bench, NewPod::default()).await;
    bench.hello_is_answered(&deep).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), ["xhigh", "xhigh"]);
    bench.hello_is_answered(&plain).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), [Value::Null, Value::Null]);
    bench.write_settings(&format!("effort = 'low'\n{}", settings(&url)));
    bench.hello_is_answered(&plain).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), ["low", "low"]);
    assert_eq!(bench.info(&plain).await.effort, Some(Effort::Low));
    bench.call(&plain, Method::SetEffort { effort: Some(Effort::Off) }).await.unwrap();
    let mut bench = bench.restarted().await;
    bench.client.call(None, Method::Restore { name: plain.to_string() }).await.unwrap();
    bench.hello_is_answered(&plain).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), ["none", "none"]);
    permits.forget_permits(PERMITS);
    bench.call(&plain, Method::say("hello")).await.unwrap();
    bodies.subscribe().wait_for(|bodies| bodies.len() == 1).await.unwrap();
    bench.call(&plain, Method::SetEffort { effort: None }).await.unwrap();
    assert_eq!(bench.info(&plain).await.effort, Some(Effort::Low));
    permits.add_permits(PERMITS);
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(taken(&bodies, "reasoning_effort"), ["none", "low"]);
}

#[tokio::test]
async fn the_effort_that_is_chosen_while_a_run_waits_for_its_provider_is_that_of_the_next_request()
{
    let bodies = Bodies::default();
    let came = bodies.clone();
    let answer = post(async move |body: String| {
        let is_first = came.borrow().is_empty();
        came.send_modify(|bodies| bodies.push(serde_json::from_str(&body).unwrap()));
        if is_first {
            return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")]).into_response();
        }
        let choice = json!({"index": 0, "delta": {"content": "done"}, "finish_reason": "stop"});
        let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
        ([("content-type", "text/event-stream")], text).into_response()
    });
    let url = serve(Router::new().route("/v1/chat/completions", answer)).await;
    let mut bench =
        Bench::with_settings(&format!("{}[retry]\nminutes = 90\n", settings(&url))).await;
    let pod = pod(&bench, NewPod::default()).await;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
    bench.call(&pod, Method::SetEffort { effort: Some(Effort::High) }).await.unwrap();
    bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(taken(&bodies, "reasoning_effort"), [Value::Null, "high".into()]);
}

#[tokio::test]
async fn an_effort_that_no_request_carries_is_said_with_what_changes_that() {
    let (url, bodies, _) = provider().await;
    let plain = "[models.'fake/plain']\nreasoning = 'none'\n";
    let mut bench = Bench::with_settings(&format!("{}{plain}", settings(&url))).await;
    let pod = pod(&bench, NewPod::default()).await;
    let uses = |model: &str| Method::SetModel { model: format!("fake/{model}") };
    bench.call(&pod, uses("plain")).await.unwrap();
    assert_eq!(bench.info(&pod).await.effort_unsent, None, "no effort is chosen");
    bench.call(&pod, Method::SetEffort { effort: Some(Effort::High) }).await.unwrap();
    let why = bench.info(&pod).await.effort_unsent.unwrap();
    assert!(why.contains("[models.\"fake/plain\"] of config.toml"), "{why}");
    bench.hello_is_answered(&pod).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), [Value::Null, Value::Null]);
    bench.write_settings(&format!("{}{}", settings(&url), plain.replace("none", "effort")));
    bench.hello_is_answered(&pod).await;
    assert_eq!(taken(&bodies, "reasoning_effort"), ["high", "high"]);
    assert_eq!(bench.info(&pod).await.effort_unsent, None);
}
