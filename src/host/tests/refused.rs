//! A provider that refuses a history because of one result: the error names it, and the run goes on without it.

use crate::host::tests::{Bench, run_end, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodName, RunResult, State};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Nothing but the call has this name, and nothing but the result has this text.
const FILE: &str = "poison.txt";
const TEXT: &str = "TOXIC";

const WIRES: [&str; 4] = ["anthropic", "responses", "chat", "gemini"];

fn list(wire: &str) -> &'static str {
    match wire {
        "responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    }
}

/// The words in which a provider of this wire refuses the element at this place.
fn refusal(wire: &str, at: usize, element: &Value) -> String {
    match wire {
        "anthropic" => format!("messages.{at}.content.0.tool_result.content: bad text"),
        "responses" => format!("Invalid 'input[{at}].output': bad text"),
        "chat" => {
            format!("Bad text for tool_call_id {}", element["tool_call_id"].as_str().unwrap())
        }
        _ => format!("Invalid value at 'contents[{at}].parts[0].function_response': bad text"),
    }
}

/// The events of a reply that reads the file, or says that it is done.
fn reply(wire: &str, calls: bool) -> Vec<Value> {
    let input = json!({"file_path": FILE});
    let arguments = input.to_string();
    match (wire, calls) {
        ("anthropic", _) => {
            let (block, delta, stop) = if calls {
                (
                    json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}),
                    json!({"type": "input_json_delta", "partial_json": arguments}),
                    "tool_use",
                )
            } else {
                (
                    json!({"type": "text", "text": ""}),
                    json!({"type": "text_delta", "text": "done"}),
                    "end_turn",
                )
            };
            vec![
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": block}),
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}}),
                json!({"type": "message_stop"}),
            ]
        }
        ("responses", _) => {
            let item = if calls {
                json!({"type": "function_call", "id": "f", "call_id": "call_1", "name": "Read", "arguments": arguments})
            } else {
                json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]})
            };
            let response = json!({"status": "completed", "output": [item]});
            vec![
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                json!({"type": "response.completed", "response": response}),
            ]
        }
        ("chat", _) => {
            let (delta, stop) = if calls {
                let function = json!({"name": "Read", "arguments": arguments});
                let call =
                    json!({"index": 0, "id": "call_1", "type": "function", "function": function});
                (json!({"tool_calls": [call]}), "tool_calls")
            } else {
                (json!({"content": "done"}), "stop")
            };
            vec![
                json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}),
            ]
        }
        _ => {
            let part = if calls {
                json!({"functionCall": {"name": "Read", "args": input}})
            } else {
                json!({"text": "done"})
            };
            let content = json!({"role": "model", "parts": [part]});
            vec![json!({"candidates": [{"content": content, "finishReason": "STOP"}]})]
        }
    }
}

/// A provider that refuses a request with the text. The channel receives the body of each request.
async fn provider(wire: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let (sent, bodies) = mpsc::unbounded_channel();
    let answer = move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap();
        let elements = request[list(wire)].as_array().unwrap();
        let refused = elements.iter().position(|element| element.to_string().contains(TEXT));
        let response: Response = match refused {
            Some(at) => {
                let message = refusal(wire, at, &elements[at]);
                let error = json!({"error": {"type": "invalid_request_error", "message": message}});
                (StatusCode::BAD_REQUEST, error.to_string()).into_response()
            }
            None => {
                let events = reply(wire, !body.contains(FILE));
                let line = |event: &Value| match event["type"].as_str() {
                    Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
                    None => format!("data: {event}\n\n"),
                };
                let mut text: String = events.iter().map(line).collect();
                if wire == "chat" {
                    text.push_str("data: [DONE]\n\n");
                }
                ([("content-type", "text/event-stream")], text).into_response()
            }
        };
        sent.send(body).unwrap();
        std::future::ready(response)
    };
    (serve(Router::new().fallback(answer)).await, bodies)
}

async fn bench_with(wire: &str, url: &str) -> (Bench, PodName) {
    let settings = format!(
        "provider.fake.wire = '{wire}'\nprovider.fake.key_env = []\nmodel = 'fake/m'\nprovider.fake.base_url = '{url}'\n"
    );
    let bench = Bench::with_settings(&settings).await;
    let new = NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    let created = bench.client.call(None, Method::New(new)).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    std::fs::write(bench.root.join("w").join(FILE), format!("{TEXT}{}", "x".repeat(3000))).unwrap();
    (bench, info.name)
}

fn elements(wire: &str, body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body[list(wire)].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_result_that_a_provider_refuses_is_named_and_the_run_goes_on_without_it() {
    for wire in WIRES {
        let (url, mut bodies) = provider(wire).await;
        let (mut bench, pod) = bench_with(wire, &url).await;
        bench.call(&pod, Method::say("go")).await.unwrap();
        let end = bench.next(run_end).await;
        assert!(matches!(end, Event::RunEnd { result: RunResult::Failed, .. }), "{wire}: {end:?}");
        let why = bench.is(&pod, State::Failed).await.why.unwrap();
        let (_, means) = why.split_once("; it means ").unwrap_or_else(|| panic!("{wire}: {why}"));
        assert!(means.starts_with("the result of Read (3 KiB): :resume --without="), "{why}");
        assert!(means.ends_with(":rewind 1 goes back to before message 1"), "{why}");
        let result = means.split("--without=").nth(1).unwrap().split(' ').next().unwrap();

        let unknown = Method::LeaveOut { result: "nothing".into() };
        let refused = bench.call(&pod, unknown).await.unwrap_err();
        assert!(refused.message.contains("ends with `nothing`"), "{refused}");
        assert_eq!(bench.info(&pod).await.why.unwrap(), why, "the run is as it was");

        bench.call(&pod, Method::LeaveOut { result: result.into() }).await.unwrap();
        let end = bench.next(run_end).await;
        assert!(
            matches!(end, Event::RunEnd { result: RunResult::Finished, .. }),
            "{wire}: {end:?}"
        );
        bench.call(&pod, Method::say("more")).await.unwrap();
        bench.next(run_end).await;
        let mut sent = Vec::new();
        while let Ok(body) = bodies.try_recv() {
            sent.push(body);
        }
        let [_, refused, without, later] = &sent[..] else { panic!("{wire}: {}", sent.len()) };
        let same = refused.bytes().zip(without.bytes()).take_while(|(a, b)| a == b).count();
        assert!(refused.find(FILE).unwrap() < same, "{wire}: the call and all before it stay");
        let (without, later) = (elements(wire, without), elements(wire, later));
        let at = without.iter().position(|element| element.to_string().contains("a person left"));
        let at = at.unwrap_or_else(|| panic!("{wire}: nothing stands in the place of the result"));
        assert_eq!(without[..at], later[..at], "{wire}");
    }
}

#[tokio::test]
async fn a_pod_that_was_stopped_since_goes_on_without_a_refused_result() {
    let (url, _bodies) = provider("chat").await;
    let (mut bench, pod) = bench_with("chat", &url).await;
    bench.call(&pod, Method::say("go")).await.unwrap();
    bench.next(run_end).await;
    let why = bench.is(&pod, State::Failed).await.why.unwrap();
    let result = why.split("--without=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
    bench.call(&pod, stop).await.unwrap();
    bench.is(&pod, State::Stopped).await;
    bench.call(&pod, Method::LeaveOut { result }).await.unwrap();
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Finished, .. }), "{end:?}");
}
