//! Tools that come and go while the host runs, seen by a provider that notes what it is offered.

use crate::host::tests::{Bench, serve};
use crate::llm::ToolSpec;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodInfo, RunResult};
use crate::tools::{Context, ExternalTool, Lane, Output};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A provider on the chat wire: it calls `weather` for every message, and says what came of it.
#[derive(Clone, Default)]
struct Provider {
    /// The tools of each request.
    offered: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Provider {
    async fn start() -> (Self, String) {
        let provider = Self::default();
        let url = serve(Router::new().fallback(answer).with_state(provider.clone())).await;
        (provider, url)
    }

    /// Whether each request since the last look offered `weather`.
    fn offered_weather(&self) -> Vec<bool> {
        let offered = std::mem::take(&mut *self.offered.lock().unwrap());
        offered.iter().map(|names| names.iter().any(|name| name == "weather")).collect()
    }
}

async fn answer(State(provider): State<Provider>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let tools = request["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    provider.offered.lock().unwrap().push(names.collect());
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let (delta, reason) = if last["role"] == "tool" {
        (json!({ "content": last["content"] }), "stop")
    } else {
        let function = json!({"name": "weather", "arguments": r#"{"city":"Kyoto"}"#});
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
        (json!({ "tool_calls": [call] }), "tool_calls")
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"object": "chat.completion.chunk", "choices": [choice]}))
    };
    let text = chunk(delta, Value::Null) + &chunk(json!({}), reason.into()) + "data: [DONE]\n\n";
    ([("content-type", "text/event-stream")], text).into_response()
}

struct Weather;

impl ExternalTool for Weather {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        ToolSpec { name: "weather".into(), description: "The weather of a city.".into(), schema }
    }

    fn lane(&self) -> Lane {
        Lane::Look
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a Context,
        _: &'a CancellationToken,
        _: &'a mut (dyn FnMut(String) + Send),
    ) -> BoxFuture<'a, Result<Output, String>> {
        Box::pin(async move {
            let asked: Value = serde_json::from_str(arguments).map_err(|e| e.to_string())?;
            let summary = format!("rain in {}", asked["city"].as_str().unwrap_or("?"));
            Ok(Output { summary, ..Output::default() })
        })
    }
}

impl Bench {
    async fn with_provider() -> (Self, Provider, PodInfo) {
        let (provider, base_url) = Provider::start().await;
        let settings =
            format!("[provider.fake]\nwire = \"chat\"\nbase_url = {base_url:?}\nkey_env = []\n");
        let bench = Self::with_settings(&settings).await;
        let (cwd, model) = (bench.root.join("w"), Some("fake/m".to_owned()));
        let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
        let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
        (bench, provider, *info)
    }

    /// What the Pod says at the end of a run.
    async fn wants_weather(&mut self, pod: &PodInfo) -> String {
        self.call(&pod.name, Method::say("how is the weather?")).await.unwrap();
        let said = self.next(|e| matches!(e, Event::TextDone { .. })).await;
        assert_eq!(self.end().await, RunResult::Finished);
        let Event::TextDone { text } = said else { unreachable!() };
        text
    }

    async fn greeted_with_weather(&self, pod: &PodInfo) -> bool {
        let handle = self.host.shared.pod(&pod.name).unwrap();
        let greeting = handle.subscribe().await.unwrap().greeting;
        greeting.tools.iter().any(|name| name == "weather")
    }
}

#[tokio::test]
async fn a_tool_that_comes_at_run_time_is_offered_and_called_and_goes_again() {
    let (mut bench, provider, pod) = Bench::with_provider().await;
    let tools = bench.host.shared.tools.clone();
    let said = bench.wants_weather(&pod).await;
    assert!(said.starts_with("error: Tool 'weather' not found; "), "{said}");
    assert_eq!(provider.offered_weather(), [false, false]);

    tools.send_modify(|set| *set = set.with(Arc::new(Weather)).unwrap());
    assert!(bench.greeted_with_weather(&pod).await);
    assert_eq!(bench.wants_weather(&pod).await, "rain in Kyoto");
    assert_eq!(provider.offered_weather(), [true, true]);

    tools.send_modify(|set| *set = set.without("weather"));
    assert!(!bench.greeted_with_weather(&pod).await);
    let said = bench.wants_weather(&pod).await;
    assert!(said.starts_with("error: Tool 'weather' not found; "), "{said}");
    assert_eq!(provider.offered_weather(), [false, false]);
}
