//! How long a run waits for its provider, with and without a screen.

use crate::host::tests::{Bench, run_end};
use crate::protocol::{Event, Method, PodInfo, PodName, State};
use std::time::Duration;
use tokio::time::Instant;

/// The longest pause between two requests.
const PAUSE: Duration = Duration::from_secs(20);
const MINUTE: Duration = Duration::from_secs(60);

fn script(fault: &str) -> String {
    format!("[[when]]\nany = true\n[[when.step]]\ntext = 'served'\nfault = {{ {fault} }}\n")
}

/// Time that passes only where a test says so: work on another thread keeps a paused clock where it is.
struct Clock(#[allow(dead_code, reason = "its end is the signal")] std::sync::mpsc::Sender<()>);

impl Clock {
    fn stopped() -> Self {
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
        let shows = Method::Show { pods: vec![pod.clone()] };
        client.call(None, shows).await.unwrap();
        (client, events)
    }

    /// Lets the pauses of a run pass until this is over, or the run is.
    async fn passes(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time {
            let next = |event: &Event| run_end(event) || matches!(event, Event::LlmRetry { .. });
            if run_end(&self.next(next).await) {
                return true;
            }
            tokio::time::advance(PAUSE).await;
        }
        false
    }
}

#[tokio::test]
async fn a_run_waits_without_end_while_a_screen_shows_its_pod_and_ten_minutes_once_it_left() {
    for fault in ["status = 429, times = 999", "status = 500, times = 999"] {
        let mut bench = Bench::new().await;
        let pod = bench.pod_that_meets(fault).await;
        let screen = bench.screen(&pod).await;
        let _clock = Clock::stopped();
        bench.call(&pod, Method::say("hello")).await.unwrap();
        assert!(!bench.passes(60 * MINUTE).await, "{fault}");
        bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
        let info = bench.info(&pod).await;
        assert_eq!((info.state, says_its_end(&info)), (State::Running, false));
        drop(screen);
        bench.until(pod.as_str(), says_its_end).await;
        let left = Instant::now();
        assert!(bench.passes(12 * MINUTE).await, "{fault}");
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
    let _clock = Clock::stopped();
    let begun = Instant::now();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.until(pod.as_str(), says_its_end).await;
    assert!(bench.passes(12 * MINUTE).await);
    assert!(begun.elapsed() > 9 * MINUTE, "{:?}", begun.elapsed());
    bench.is(&pod, State::Failed).await;
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
    let _clock = Clock::stopped();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert!(bench.passes(12 * MINUTE).await);
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "from the next");
}
