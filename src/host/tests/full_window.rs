//! Messages when the context window of the model is full.

use crate::host::tests::{Bench, run_end};
use crate::protocol::{Event, Method, PodName, RunResult, State};

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

/// Reads of files of random sizes, so many in a reply and so many replies for a message, as a script of a model that
/// refuses long requests. The least that it reads holds the prompt, the tools and a summary.
fn reads(dice: &mut Dice, root: &std::path::Path) -> String {
    for file in 0..8 {
        let bytes = [300, 3_000, 20_000, 60_000][dice.below(4)] + dice.below(500);
        let line = format!("{file} {}\n", "word ".repeat(12));
        let text = line.repeat(bytes.div_ceil(line.len()));
        std::fs::write(root.join(format!("w/f{file}")), text).unwrap();
    }
    let mut script = format!("reads = {}\n", 20_000 + dice.below(80_000));
    for kind in 0..4 {
        script += &format!("[[when]]\nsays = 'read {kind}*'\n");
        for _ in 0..1 + dice.below(2) {
            let count = 1 + dice.below(5);
            let call = |_| {
                let file = dice.below(8);
                format!("{{ name = 'Read', args = {{ file_path = '{{cwd}}/f{file}' }} }}")
            };
            let calls: Vec<String> = (0..count).map(call).collect();
            script += &format!("[[when.step]]\ncall = [{}]\n", calls.join(", "));
        }
        script += "[[when.step]]\ntext = 'done {input}'\n";
    }
    script
}

/// Random numbers by a seed.
struct Dice(usize);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test]
async fn no_history_traps_a_pod_whose_provider_refuses_long_requests() {
    // Further histories: YOI_HISTORIES=1000.
    let count = std::env::var("YOI_HISTORIES").ok().and_then(|count| count.parse().ok());
    for seed in 0..count.unwrap_or(8) {
        let mut dice = Dice(seed);
        let mut bench = Bench::new().await;
        let script = bench.root.join("script.toml");
        std::fs::write(&script, reads(&mut dice, &bench.root)).unwrap();
        let pod = bench.new_pod(Some(&script)).await.name;
        for message in 0..6 {
            let text = format!("read {} of {message}", dice.below(4));
            bench.call(&pod, Method::say(&text)).await.unwrap();
            assert_eq!(bench.end().await, RunResult::Finished, "seed {seed}");
            let info = bench.is(&pod, State::Idle).await;
            let said = bench.said(&pod).await.pop();
            assert_eq!(said, Some(format!("done {text}")), "seed {seed}: {info:?}");
        }
        let rows = bench.host.shared.pod(&pod).unwrap();
        assert_eq!(rows.info.borrow().state, State::Idle, "seed {seed}");
    }
}
