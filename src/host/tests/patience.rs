//! How long a run waits for its provider, with and without a screen.

use crate::host::tests::{Bench, run_end, serve};
use crate::protocol::{Event, Method, PodInfo, PodName, RunResult, Segment, State, flatten};
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::json;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Longer than the longest pause between two requests, which is 20 s: the timer rounds the end of a pause up to the next
/// millisecond, so that one of 19.9997 s is not over after 20 s of a clock that stands still.
const PAUSE: Duration = Duration::from_secs(21);
const MINUTE: Duration = Duration::from_secs(60);

fn script(fault: &str) -> String {
    format!("[[when]]\nany = true\n[[when.step]]\ntext = 'served'\nfault = {{ {fault} }}\n")
}

/// Time that passes only where a test says so: work on another thread keeps a paused clock where it is.
pub(super) struct Clock(
    #[allow(dead_code, reason = "its end is the signal")] std::sync::mpsc::Sender<()>,
);

impl Clock {
    pub(super) fn stopped() -> Self {
        let (end, ended) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || ended.recv());
        tokio::time::pause();
        Self(end)
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

/// Whether the row of a Pod says when its run gives its provider up.
fn says_its_end(info: &PodInfo) -> bool {
    info.activity.as_ref().is_some_and(|activity| activity.contains(", gives up "))
}

impl Bench {
    /// A Pod whose requests meet this fault.
    async fn pod_that_meets(&self, fault: &str) -> PodName {
        let file = self.root.join("script.toml");
        std::fs::write(&file, script(fault)).unwrap();
        self.new_pod(Some(&file)).await.name
    }

    /// A connection of a screen that shows this Pod, until it is dropped.
    async fn screen(&self, pod: &PodName) -> (crate::client::Client, crate::client::Events) {
        let (client, events) = self.host.client().await.unwrap();
        let shows = Method::Show { pods: vec![pod.clone()], follows: None };
        client.call(None, shows).await.unwrap();
        (client, events)
    }

    /// The pauses of runs from now on.
    async fn pauses(&self) -> Pauses {
        let (client, events) = self.host.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        Pauses { _client: client, events }
    }

    /// Lets these pauses of a run pass until this is over, or the run is.
    async fn passes(&mut self, pauses: &mut Pauses, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if pauses.next_or_end().await {
                return true;
            }
            tokio::time::advance(PAUSE).await;
            // The host ends a connection whose events are not read for a minute.
            while self.events.try_recv().is_ok() {}
        }
        false
    }
}

/// The pauses of runs, from a connection of their own: [`Bench::until`] passes over the events that it reads, and one
/// that nobody reads any more is a pause that never passes.
struct Pauses {
    _client: crate::client::Client,
    events: crate::client::Events,
}

impl Pauses {
    /// Waits for the beginning of the next pause, or for the end of the run; returns whether the run ended.
    async fn next_or_end(&mut self) -> bool {
        loop {
            let event = self.events.recv().await.expect("the host is there").event;
            if run_end(&event) {
                return true;
            }
            if matches!(event, Event::LlmRetry { .. }) {
                return false;
            }
        }
    }
}

#[tokio::test]
async fn a_run_waits_without_end_while_a_screen_shows_its_pod_and_ten_minutes_once_it_left() {
    for fault in ["status = 429, times = 999", "status = 500, times = 999"] {
        let mut bench = Bench::new().await;
        let pod = bench.pod_that_meets(fault).await;
        let screen = bench.screen(&pod).await;
        let mut pauses = bench.pauses().await;
        let _clock = Clock::stopped();
        bench.call(&pod, Method::say("hello")).await.unwrap();
        assert!(!bench.passes(&mut pauses, 60 * MINUTE).await, "{fault}");
        bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
        let info = bench.info(&pod).await;
        assert_eq!((info.state, says_its_end(&info)), (State::Running, false));
        drop(screen);
        bench.until(pod.as_str(), says_its_end).await;
        let left = Instant::now();
        assert!(bench.passes(&mut pauses, 12 * MINUTE).await, "{fault}");
        assert!(left.elapsed() > 9 * MINUTE, "{fault}: {:?}", left.elapsed());
        assert_eq!(bench.is(&pod, State::Failed).await.retry_at, None);
    }
}

#[tokio::test]
async fn a_run_without_a_screen_is_given_up_after_ten_minutes_and_a_client_that_watches_is_none() {
    let mut bench = Bench::new().await;
    let pod = bench.pod_that_meets("status = 429, times = 999").await;
    let other = bench.new_pod(None).await.name;
    let _screen = bench.screen(&other).await;
    let mut pauses = bench.pauses().await;
    let _clock = Clock::stopped();
    let begun = Instant::now();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.until(pod.as_str(), says_its_end).await;
    assert!(bench.passes(&mut pauses, 12 * MINUTE).await);
    assert!(begun.elapsed() > 9 * MINUTE, "{:?}", begun.elapsed());
    let why = bench.is(&pod, State::Failed).await.why.unwrap();
    let minutes = begun.elapsed().as_secs() / 60;
    let given_up = format!(
        "; given up after {minutes} min, because `[retry] minutes` is 10: a larger number waits longer, and :model takes \
         another model"
    );
    assert!(why.contains("429") && why.contains(&given_up), "{why}");
}

/// Faults for which a run waits, at the gate of its provider and beside it.
const WAITS: [&str; 2] =
    ["status = 429, retry_after = 3600, times = 99", "status = 500, times = 99"];

#[tokio::test]
async fn a_model_that_a_person_chooses_while_a_run_waits_for_its_provider_is_asked_at_once() {
    for fault in WAITS {
        let mut bench = Bench::with_settings(
            "[provider.locked]\nwire = 'chat'\nbase_url = 'https://locked.example'\nkey_env = ['NO_SUCH_KEY']\n",
        )
        .await;
        let pod = bench.pod_that_meets(fault).await;
        let next = bench.root.join("next.toml");
        std::fs::write(&next, "[[when]]\nany = true\ntext = 'from the next'\n").unwrap();
        let _screen = bench.screen(&pod).await;
        let _clock = Clock::stopped();
        bench.call(&pod, Method::say("hello")).await.unwrap();
        bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
        let locked = Method::SetModel { model: "locked/x".into() };
        let refused = bench.call(&pod, locked).await.unwrap_err().message;
        assert!(refused.ends_with("; the run goes on with its model"), "{refused}");
        let model = format!("rehearsal:{}", next.display());
        bench.call(&pod, Method::SetModel { model: model.clone() }).await.unwrap();
        bench.next(run_end).await;
        let info = bench.is(&pod, State::Idle).await;
        assert_eq!(info.model, model, "{fault}");
        assert_eq!(bench.said(&pod).await, ["from the next"], "{fault}");
    }
}

#[tokio::test]
async fn a_model_that_a_person_chooses_takes_the_place_of_one_that_is_silent_or_refuses_a_summary()
{
    let asked = watch::Sender::new(0);
    let came = asked.clone();
    let answer = post(async move |body: String| {
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let model = body["model"].as_str().unwrap().to_owned();
        came.send_modify(|requests| *requests += 1);
        match model.as_str() {
            "silent" => std::future::pending().await,
            "limited" => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")]).into_response(),
            _ => {
                let delta = json!({"content": format!("by {model}")});
                let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
                let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
                ([("content-type", "text/event-stream")], text).into_response()
            }
        }
    });
    let url = serve(Router::new().route("/v1/chat/completions", answer)).await;
    let mut bench = Bench::with_settings(&format!(
        "[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\n[retry]\nminutes = 90\n"
    ))
    .await;
    let uses = |model: &str| Method::SetModel { model: format!("fake/{model}") };
    let pod = bench.new_pod(None).await.name;
    bench.call(&pod, uses("silent")).await.unwrap();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    asked.subscribe().wait_for(|requests| *requests == 1).await.unwrap();
    bench.call(&pod, uses("first")).await.unwrap();
    bench.next(run_end).await;
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await, ["by first"]);
    bench.call(&pod, uses("limited")).await.unwrap();
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
    bench.call(&pod, uses("second")).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    assert_eq!(bench.is(&pod, State::Idle).await.model, "fake/second");
}

#[tokio::test]
async fn a_run_that_waits_for_its_provider_is_paused_with_its_message_and_goes_on() {
    for fault in ["status = 429, retry_after = 3600, times = 1", "status = 500, times = 1"] {
        let mut bench = Bench::new().await;
        let pod = bench.pod_that_meets(fault).await;
        let _screen = bench.screen(&pod).await;
        let _clock = Clock::stopped();
        bench.call(&pod, Method::say("hello")).await.unwrap();
        bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
        for text in ["second", "third"] {
            let input = vec![Segment::Text { content: text.into() }];
            bench.call(&pod, Method::Steer { id: None, input }).await.unwrap();
        }
        bench.call(&pod, Method::Pause).await.unwrap();
        let waits = |info: &PodInfo| info.queue.iter().all(|queued| !queued.enters);
        let is_paused = |info: &PodInfo| info.state == State::Paused && waits(info);
        bench.until(pod.as_str(), is_paused).await;
        let info = bench.info(&pod).await;
        let left: Vec<_> = info.queue.iter().map(|queued| flatten(&queued.input)).collect();
        assert_eq!(left, ["second", "third"], "{fault}: each waits by itself");
        for queued in info.queue {
            bench.call(&pod, Method::EditQueued { id: queued.id, input: None }).await.unwrap();
        }
        bench.call(&pod, Method::Resume).await.unwrap();
        bench
            .next(|event| matches!(event, Event::RunEnd { result: RunResult::Finished, .. }))
            .await;
        bench.is(&pod, State::Idle).await;
        assert_eq!(bench.said(&pod).await, ["served"], "{fault}");
    }
}

#[tokio::test]
async fn a_run_whose_screen_leaves_in_a_long_pause_tries_once_more_when_its_time_is_over() {
    let mut bench = Bench::new().await;
    let pod = bench.pod_that_meets("status = 429, retry_after = 3600, times = 1").await;
    let screen = bench.screen(&pod).await;
    let _clock = Clock::stopped();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
    tokio::time::advance(20 * MINUTE).await;
    drop(screen);
    bench.until(pod.as_str(), says_its_end).await;
    tokio::time::advance(9 * MINUTE).await;
    let screen = bench.screen(&pod).await;
    bench.until(pod.as_str(), |info| !says_its_end(info)).await;
    tokio::time::advance(9 * MINUTE).await;
    drop(screen);
    bench.until(pod.as_str(), says_its_end).await;
    assert_eq!(bench.info(&pod).await.state, State::Running);
    tokio::time::advance(11 * MINUTE).await;
    bench.next(run_end).await;
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "served");
}

#[tokio::test]
async fn a_model_that_another_one_replaces_is_waited_for_ten_minutes_also_under_a_screen() {
    let mut bench = Bench::new().await;
    let root = bench.root.display().to_string();
    for (name, text) in [
        ("away", script("status = 529, times = 999")),
        ("next", "[[when]]\nany = true\ntext = 'from the next'\n".into()),
    ] {
        std::fs::write(bench.root.join(format!("{name}.toml")), text).unwrap();
    }
    bench.write_settings(&format!(
        "model = ['rehearsal:{root}/away.toml', 'rehearsal:{root}/next.toml']\n"
    ));
    let pod = bench.new_pod(None).await.name;
    let _screen = bench.screen(&pod).await;
    let mut pauses = bench.pauses().await;
    let _clock = Clock::stopped();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert!(bench.passes(&mut pauses, 12 * MINUTE).await);
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "from the next");
}
