//! A person who has no screen open.

use crate::host::absent_person::{AWAY, BETWEEN, Matters};
use crate::host::tests::patience::Clock;
use crate::host::tests::{Bench, serve};
use crate::protocol::{Event, Matter, Method, PodInfo, PodName, State, TriedWay};
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// A model that refuses each message for this reason.
const REFUSES: &str = "[[when]]\nany = true\n[[when.step]]\ntext = 'x'\nfault = { status = 400 }\n";
/// The timer rounds the end of a pause up to the next millisecond.
const ROUNDING: Duration = Duration::from_millis(1);
/// A model that answers.
const ANSWERS: &str = "[[when]]\nany = true\n[[when.step]]\ntext = 'done'\n";

/// Sends a message to a new Pod whose model is this script.
async fn says(bench: &Bench, script: &str) -> PodName {
    let file = bench.root.join(format!("{}.toml", script.len()));
    std::fs::write(&file, script).unwrap();
    let pod = bench.new_pod(Some(&file)).await.name;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    pod
}

/// What the command of the settings was given: it writes each call to a pipe.
async fn command_call(pipe: &Path) -> serde_json::Value {
    let pipe = pipe.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(pipe));
    serde_json::from_str(&read.await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn an_absent_person_is_called_by_command_and_address() {
    let (sent, mut posts) = mpsc::channel(8);
    let take = move |headers: HeaderMap, body: String| async move {
        let title = headers["title"].to_str().unwrap_or_default().to_owned();
        sent.send(format!("{title}: {body}")).await.unwrap();
    };
    let url = serve(Router::new().route("/v1/topic", post(take))).await;
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let settings = format!(
        "[notify]\ncommand = ['sh', '-c', 'cat > {}']\nurl = '{url}/topic'\n",
        pipe.display()
    );
    let mut bench = Bench::with_settings(&settings).await;
    let _clock = Clock::stopped();
    let failed = says(&bench, REFUSES).await;
    bench.is(&failed, State::Failed).await;
    let finished = says(&bench, ANSWERS).await;
    bench.until(finished.as_str(), |info| info.last_result.is_some()).await;
    tokio::time::advance(AWAY + ROUNDING).await;
    let call = command_call(&pipe).await;
    let sentence = format!("{failed} failed · {finished} is done");
    let wanted = serde_json::json!({
        "text": sentence, "needs": [], "failed": [failed], "finished": [finished],
    });
    assert_eq!(call, wanted);
    assert_eq!(posts.recv().await.unwrap(), format!("yoi: {sentence}"));
    // The reasons are part of it where the settings want them.
    std::fs::write(bench.root.join("home/config/config.toml"), settings + "text = true\n").unwrap();
    let first = bench.info(&failed).await.last_result.unwrap().entry;
    bench.call(&failed, Method::say("again")).await.unwrap();
    let again = |info: &PodInfo| info.last_result.as_ref().is_some_and(|run| run.entry != first);
    bench.until(failed.as_str(), |info| again(info) && info.state == State::Failed).await;
    tokio::time::advance(BETWEEN + ROUNDING).await;
    let call = command_call(&pipe).await;
    assert_eq!(
        (&call["failed"], &call["finished"]),
        (&serde_json::json!([failed]), &serde_json::json!([]))
    );
    let reason = call["reasons"][failed.as_str()].as_str().unwrap();
    assert!(reason.contains("400"), "{call}");
    assert!(posts.recv().await.unwrap().contains(reason));
}

#[tokio::test]
async fn a_person_with_a_screen_is_not_called() {
    let mut bench = Bench::with_settings("[notify]\ncommand = ['/bin/false']\n").await;
    let (screen, events) = bench.host.client().await.unwrap();
    screen.call(None, Method::Show { pods: Vec::new(), follows: None }).await.unwrap();
    let mut matters = bench.host.shared.matters.subscribe();
    let failed = says(&bench, REFUSES).await;
    bench.is(&failed, State::Failed).await;
    assert!(matters.wait_for(|matters| matters.is_empty()).await.is_ok());
    drop((screen, events));
    let mut attached = bench.host.shared.attached.subscribe();
    attached.wait_for(|attached| attached.screens == 0).await.unwrap();
    bench.call(&failed, Method::say("again")).await.unwrap();
    let is_noted = |matters: &Matters| matters.get(&failed) == Some(&Matter::Failed);
    assert!(matters.wait_for(is_noted).await.is_ok());
}

#[tokio::test]
async fn a_command_that_cannot_be_run_is_a_notice() {
    let mut bench = Bench::with_settings("[notify]\ncommand = ['/no/such/program']\n").await;
    let mut notices = bench.host.shared.notices.subscribe();
    let _clock = Clock::stopped();
    let failed = says(&bench, REFUSES).await;
    bench.is(&failed, State::Failed).await;
    tokio::time::advance(AWAY + ROUNDING).await;
    let said = notices.wait_for(|notices| !notices.is_empty()).await.unwrap();
    assert!(
        said[0].starts_with("[notify] command did not reach you: /no/such/program"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_test_calls_by_each_way_at_once_and_says_what_went_wrong() {
    let take = |body: String| async move { assert_eq!(body, "yoi calls you: this is a test") };
    let url = serve(Router::new().route("/v1/topic", post(take))).await;
    let settings = format!("[notify]\ncommand = ['false']\nurl = '{url}/topic'\n");
    let bench = Bench::with_settings(&settings).await;
    let ways = |event| match event {
        Event::NotifyTried { ways } => ways,
        other => panic!("{other:?}"),
    };
    let tried = ways(bench.client.call(None, Method::TryNotify).await.unwrap());
    let way = |name: &str, failure: Option<&str>| TriedWay {
        name: name.into(),
        is_set: true,
        failure: failure.map(str::to_owned),
    };
    assert_eq!(tried, [way("command", Some("false: exit status: 1")), way("url", None)]);
    let bare = Bench::with_settings("").await;
    let tried = ways(bare.client.call(None, Method::TryNotify).await.unwrap());
    assert!(tried.iter().all(|way| !way.is_set && way.failure.is_none()), "{tried:?}");
}
