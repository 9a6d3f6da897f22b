//! The model that takes the place of one that is away.

use crate::host::tests::{Bench, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodName, RunResult, State};
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use std::fs;

const AWAY: &str =
    "[[when]]\nany = true\n[[when.step]]\ntext = 'never'\nfault = { status = 529, times = 99 }\n";

/// A Pod whose model is away, with the replies of two models behind it in the list.
async fn pod(bench: &Bench, spec: &str) -> PodName {
    for (name, text) in [("away", AWAY), ("next", "[[when]]\nany = true\ntext = 'from the next'\n")]
    {
        fs::write(bench.root.join(format!("{name}.toml")), text).unwrap();
    }
    let root = bench.root.display();
    bench.write_settings(&format!(
        "model = ['rehearsal:{root}/away.toml', 'rehearsal:{root}/away.toml2', 'rehearsal:{root}/next.toml']\n\
         [retry]\nminutes = 0\n[profile.other]\nmodel = 'rehearsal:{root}/next.toml'\n"
    ));
    fs::write(bench.root.join("away.toml2"), AWAY).unwrap();
    let model = (!spec.is_empty()).then(|| spec.replace("ROOT", &root.to_string()));
    let new = Method::New(NewPod { cwd: bench.root.join("w"), model, ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    info.name.clone()
}

#[tokio::test]
async fn a_run_goes_on_with_the_next_model_while_its_own_is_away_and_the_next_run_tries_its_own() {
    let mut bench = Bench::new().await;
    let pod = pod(&bench, "").await;
    for _ in 0..2 {
        bench.call(&pod, Method::say("hello")).await.unwrap();
        let said = bench.next(|event| matches!(event, Event::Alert(_))).await;
        let Event::Alert(alert) = said else { unreachable!() };
        assert!(alert.message.starts_with("the run goes on with rehearsal:"), "{}", alert.message);
        assert!(alert.message.contains("529"), "{}", alert.message);
        assert_eq!(bench.end().await, RunResult::Finished);
        let info = bench.is(&pod, State::Idle).await;
        assert!(info.model.ends_with("next.toml"), "{}", info.model);
        assert!(info.model_why.ends_with("is away"), "{}", info.model_why);
        assert_eq!(bench.said(&pod).await.pop().unwrap(), "from the next");
    }
    let entries = bench.transcript(&pod).await;
    let extensions = entries.iter().filter(|kind| *kind == "extension").count();
    assert!(extensions >= 4, "two in each run: {entries:?}");
    fs::write(bench.root.join("away.toml"), "[[when]]\nany = true\ntext = 'back'\n").unwrap();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let info = bench.is(&pod, State::Idle).await;
    assert!(info.model.ends_with("away.toml"), "{}", info.model);
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "back");
}

#[tokio::test]
async fn a_model_that_no_list_begins_with_has_no_other_in_its_place() {
    let mut bench = Bench::new().await;
    let pod = pod(&bench, "rehearsal:ROOT/away.toml2").await;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.is(&pod, State::Failed).await;
}

/// A provider whose models say their names, but for `broken`.
async fn provider() -> String {
    let answer = post(async |body: String| {
        let body: Value = serde_json::from_str(&body).unwrap();
        let model = body["model"].as_str().unwrap();
        if model == "broken" {
            return (StatusCode::BAD_REQUEST, "no").into_response();
        }
        let delta = json!({"content": format!("by {model}")});
        let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
        let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
        ([("content-type", "text/event-stream")], text).into_response()
    });
    serve(Router::new().route("/v1/chat/completions", answer)).await
}

#[tokio::test]
async fn the_model_of_the_settings_summarises_and_the_pods_own_where_that_fails() {
    let url = provider().await;
    let mut bench = Bench::new().await;
    let settings = |named: &str| {
        format!(
            "[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\n[compaction]\nmodel = 'fake/{named}'\n"
        )
    };
    bench.write_settings(&settings("cheap"));
    let (cwd, model) = (bench.root.join("w"), Some("fake/own".to_owned()));
    let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
    let Ok(Event::Created { info }) = bench.client.call(None, new).await else { panic!() };
    let pod = info.name.clone();
    for (named, summary) in [("cheap", "by cheap"), ("broken", "by own")] {
        bench.write_settings(&settings(named));
        bench.call(&pod, Method::say("hello")).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        bench.is(&pod, State::Idle).await;
        assert_eq!(bench.said(&pod).await.pop().unwrap(), "by own");
        bench.call(&pod, Method::Compact).await.unwrap();
        bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
        bench.is(&pod, State::Idle).await;
        let page = bench.call(&pod, Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let page = serde_json::to_string(&page.unwrap()).unwrap();
        let newest = page.rsplit("segment_start").next().unwrap_or_default();
        assert!(newest.contains(&format!("unchanged.]\\n\\n{summary}")), "{newest}");
    }
}
