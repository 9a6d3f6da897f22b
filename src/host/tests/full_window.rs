//! Messages when the context window of the model is full.

use crate::host::tests::{Bench, run_end};
use crate::protocol::{Event, Method, PodName, RunResult, State};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

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
/// The bytes of the prompt, a summary, a message and its answer.
const LEAST: usize = 20_000;
/// The bytes of a call whose output left the context.
const CALL: usize = 400;
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
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

    /// The end of a run, or `None` where a compaction begins before it.
    async fn compaction_or_end(&mut self) -> Option<RunResult> {
        match self.next(|event| run_end(event) || matches!(event, Event::CompactStart)).await {
            Event::RunEnd { result, .. } => Some(result),
            _ => None,
        }
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

/// What a summary meets in a random history.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Summary {
    Good,
    Fails,
    IsCut,
    IsEmpty,
    IsDeclined,
    Hangs,
}

impl Summary {
    const ALL: [Self; 6] =
        [Self::Good, Self::Fails, Self::IsCut, Self::IsEmpty, Self::IsDeclined, Self::Hangs];

    /// The reply of a script to a request for a summary.
    fn in_script(self) -> String {
        let step = match self {
            Self::Good => return String::new(),
            Self::Fails => "fault = { error = 'no summary', retryable = true }",
            Self::IsCut => "text = 'The person wants'\nstop = 'max_tokens'",
            Self::IsEmpty => "text = ' '",
            Self::IsDeclined => "fault = { refuse = 'I do not summarise.' }",
            Self::Hangs => "fault = { hang = 0 }",
        };
        let prompt = include_str!("../../../prompts/compaction.md");
        let first: String = prompt.chars().take(20).collect();
        format!("[[when]]\nsays = '{first}*'\n[[when.step]]\n{step}\n")
    }
}

/// A random history and its largest number of calls in a reply: calls of files of all sizes, among them images and one of
/// 2 MB, and of long texts of the model, as a script of a model that refuses long requests. The least that it reads
/// holds the prompt, the tools and a summary.
fn reads(dice: &mut Dice, root: &std::path::Path, reads: usize) -> (String, usize) {
    let mut most = 0;
    for file in 0..8 {
        let bytes = [300, 900, 3_000, 20_000, 60_000, 2_000_000][dice.below(6)] + dice.below(500);
        let line = format!("{file} {}\n", "word ".repeat(12));
        let text = line.repeat(bytes.div_ceil(line.len()));
        std::fs::write(root.join(format!("w/f{file}")), text).unwrap();
    }
    std::fs::write(root.join("w/f8.png"), BASE64_STANDARD.decode(PIXEL).unwrap()).unwrap();
    let mut script = format!("reads = {reads}\n");
    for kind in 0..4 {
        script += &format!("[[when]]\nsays = 'read {kind}*'\n");
        let count = if dice.below(40) == 0 { 400 } else { [1, 2, 3, 5, 8, 30][dice.below(6)] };
        most = most.max(count);
        let call = |_| {
            let file = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8.png"][dice.below(9)];
            format!("{{ name = 'Read', args = {{ file_path = '{{cwd}}/{file}' }} }}")
        };
        let calls: Vec<String> = (0..count).map(call).collect();
        script += &format!("[[when.step]]\ncall = [{}]\n", calls.join(", "));
        let words = [1, 1, 400, 2_000][dice.below(4)];
        script += &format!("[[when.step]]\nrepeat = {words}\ntext = 'done {{input}} '\n");
    }
    (script + "[[when]]\nsays = 'ping'\ntext = 'pong'\n", most)
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
    // Further histories: YOI_HISTORIES=1000; one of them: YOI_HISTORY=seed.
    let number = |name| std::env::var(name).ok().and_then(|count| count.parse().ok());
    let seeds = match number("YOI_HISTORY") {
        Some(seed) => seed..seed + 1,
        None => 0..number("YOI_HISTORIES").unwrap_or(8),
    };
    for seed in seeds {
        let mut dice = Dice(seed);
        let root = tempfile::tempdir().unwrap();
        let file = root.path().canonicalize().unwrap().join("script.toml");
        let window = [8_000, 20_000, 200_000][dice.below(3)];
        // A provider may read less than its model is known for.
        let limit = LEAST + dice.below(4 * window);
        let summary = Summary::ALL[dice.below(Summary::ALL.len())];
        let settings = format!(
            "limits.max_turns = 4\n[retry]\nminutes = 0\n[models.'rehearsal:{}']\nwindow = {window}\n",
            file.display()
        );
        std::fs::create_dir_all(root.path().join("home/config")).unwrap();
        std::fs::create_dir_all(root.path().join("w")).unwrap();
        std::fs::write(root.path().join("home/config/config.toml"), settings).unwrap();
        let (text, most_calls) = reads(&mut dice, root.path(), limit);
        let mut bench = Bench::at(root).await;
        let pod = bench.new_pod(Some(&file)).await.name;
        let case = format!("seed {seed}, window {window}, reads {limit}, summary {summary:?}");
        for message in 0..8 {
            let said = format!("read {} of {message}", dice.below(4));
            std::fs::write(&file, text.clone() + &summary.in_script()).unwrap();
            bench.call(&pod, Method::say(&said)).await.unwrap();
            let mut end = bench.compaction_or_end().await;
            if summary == Summary::Hangs && end.is_none() {
                // A person waits no longer for it.
                std::fs::write(&file, &text).unwrap();
                bench.call(&pod, Method::Pause).await.unwrap();
                let rolled_back = match bench.end().await {
                    RunResult::RolledBack => true,
                    RunResult::Paused => false,
                    other => panic!("{case}: {other:?}"),
                };
                let state = if rolled_back { State::Idle } else { State::Paused };
                bench.is(&pod, state).await;
                let again = if rolled_back { Method::say(&said) } else { Method::Resume };
                bench.call(&pod, again).await.unwrap();
            }
            while end.is_none() {
                end = bench.compaction_or_end().await;
            }
            // A script makes the same calls again where their results do not fit.
            let is_stopped = matches!(end, Some(RunResult::LimitReached | RunResult::Failed));
            if is_stopped && most_calls * CALL > limit - LEAST {
                break;
            }
            assert_eq!(end, Some(RunResult::Finished), "{case}");
            let info = bench.is(&pod, State::Idle).await;
            let answer = bench.said(&pod).await.pop().unwrap();
            assert!(answer.starts_with(&format!("done {said}")), "{case}: {answer} {info:?}");
        }
        std::fs::write(&file, &text).unwrap();
        bench.call(&pod, Method::say("ping")).await.unwrap();
        while bench.compaction_or_end().await.is_none() {}
        assert_eq!(bench.said(&pod).await.pop().unwrap(), "pong", "{case}");
    }
}

#[tokio::test]
async fn a_model_that_repeats_calls_whose_outputs_never_fit_is_stopped_after_few_requests() {
    let mut bench = Bench::new().await;
    let calls: String =
        (0..200).map(|_| "{ name = 'Read', args = { file_path = '{cwd}/small' } },").collect();
    std::fs::write(bench.root.join("w/small"), "a line\n").unwrap();
    let script = bench.root.join("script.toml");
    let text = format!(
        "reads = {LEAST}\n[[when]]\nany = true\n[[when.step]]\ncall = [{calls}]\n[[when.step]]\ntext = 'done'\n"
    );
    std::fs::write(&script, text).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    bench.call(&pod, Method::say("read")).await.unwrap();
    let mut compactions = 0;
    let end = loop {
        match bench.compaction_or_end().await {
            Some(end) => break end,
            None => compactions += 1,
        }
    };
    assert_eq!((compactions, end), (6, RunResult::Failed));
    let info = bench.is(&pod, State::Failed).await;
    assert!(format!("{info:?}").contains("did not make room"), "{info:?}");
}
