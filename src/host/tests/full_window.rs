//! Messages when the context window of the model is full.

use crate::host::tests::{Bench, run_end};
use crate::protocol::{Event, Method, PodName, State};

const SCRIPT: &str = r#"
[[when]]
says = "hang"
[[when.step]]
text = "Half an answer."
fault = { hang = 6, times = 9 }

[[when]]
any = true
text = "You said {1}"
"#;
/// The window of a script, in tokens of four bytes.
const WINDOW: usize = 200_000;

impl Bench {
    async fn small_window() -> (Self, PodName) {
        let bench =
            Self::with_settings("[compaction]\nthreshold_ratio = 0.01\nkeep_tokens = 100\n").await;
        let script = bench.root.join("echo.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        let pod = bench.new_pod(Some(&script)).await;
        (bench, pod.name)
    }

    async fn answered(&mut self, pod: &PodName, text: &str) -> String {
        self.call(pod, Method::say(text)).await.unwrap();
        self.next(run_end).await;
        self.is(pod, State::Idle).await;
        self.said(pod).await.pop().unwrap()
    }
}

#[tokio::test]
async fn a_message_that_fills_the_window_is_answered_after_the_compaction_that_it_causes() {
    let (mut bench, pod) = Bench::small_window().await;
    bench.answered(&pod, "one").await;
    let large = format!("{} What is 2+2?", "word ".repeat(3_000));
    bench.call(&pod, Method::say(&large)).await.unwrap();
    bench.next(|e| matches!(e, Event::CompactDone { .. })).await;
    bench.next(run_end).await;
    bench.is(&pod, State::Idle).await;
    assert!(bench.said(&pod).await.pop().unwrap().ends_with("What is 2+2?"));
}

#[tokio::test]
async fn a_first_message_that_fills_the_window_is_answered_without_a_compaction() {
    let (mut bench, pod) = Bench::small_window().await;
    let large = format!("{} What is 2+2?", "word ".repeat(3_000));
    assert!(bench.answered(&pod, &large).await.ends_with("What is 2+2?"));
    let session = bench.host.shared.pod(&pod).unwrap().session;
    let files = crate::session::Files::new(&bench.host.shared.dirs.data, session);
    assert_eq!(files.segments().len(), 1, "a compaction begins another one");
}

#[tokio::test]
async fn a_message_larger_than_the_window_is_refused_before_it_is_recorded() {
    let (mut bench, pod) = Bench::small_window().await;
    let large = "x".repeat(4 * WINDOW + 1);
    let before = bench.transcript(&pod).await;
    let refused = bench.call(&pod, Method::say(&large)).await.unwrap_err();
    for part in ["about 200001 tokens", "reads 200000 at most", "shorten it"] {
        assert!(refused.message.contains(part), "{refused}");
    }
    assert_eq!(bench.transcript(&pod).await, before);
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.is(&pod, State::Running).await;
    let queued = |text: &str| {
        let input = vec![crate::protocol::Segment::Text { content: text.to_owned() }];
        [Method::Send { input: input.clone(), queue: true }, Method::Steer { id: None, input }]
    };
    for method in queued(&large) {
        let refused = bench.call(&pod, method).await.unwrap_err();
        assert!(refused.message.contains("shorten it"), "{refused}");
    }
    assert!(bench.info(&pod).await.queue.is_empty());
    let [fits, _] = queued(&large[1..]);
    bench.call(&pod, fits).await.unwrap();
    assert_eq!(bench.info(&pod).await.queue.len(), 1);
}
