//! The host as its clients see it, in this process.

use crate::client::{Client, Events};
use crate::config::dirs::{Dirs, Env};
use crate::host::{Host, HostError, IdleExit, Options};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodInfo, PodName, Refusal, RunResult, State};
use std::path::Path;

mod absent;
mod approvals;
mod call_ids;
mod clients;
mod compaction;
mod connections;
mod cost;
mod ephemeral;
mod effort;
mod endless;
mod damage;
mod sockets;
mod fallbacks;
mod faults;
mod full_window;
mod pods;
mod family;
mod histories;
mod idle_exit;
mod instructions;
mod kept;
mod late;
mod lent_meanwhile;
mod machines;
mod mesh;
mod models;
mod odd_replies;
mod one_writer;
mod ownership;
mod patience;
mod reader;
mod records;
mod refused;
mod relocated;
mod settings;
mod tools;
mod trust;
mod turn;
mod unfinished;
mod work;

struct Bench {
    host: Host,
    client: Client,
    events: Events,
    _root: tempfile::TempDir,
    root: std::path::PathBuf,
}

impl Bench {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self::at(root).await
    }

    /// A bench whose user has this `config.toml`.
    async fn with_settings(settings: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join("home/config");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), settings).unwrap();
        Self::at(root).await
    }

    async fn at(dir: tempfile::TempDir) -> Self {
        let root = dir.path().canonicalize().unwrap();
        let host = start(&root).await;
        let (client, events) = host.client().await.unwrap();
        std::fs::create_dir_all(root.join("w")).unwrap();
        let mut bench = Self { host, client, events, _root: dir, root };
        bench.client.call(None, Method::Watch).await.unwrap();
        let family = bench.next(|e| matches!(e, Event::Family { .. })).await;
        assert!(matches!(family, Event::Family { .. }));
        bench
    }

    /// Ends the host as a signal would and starts another one over the same files.
    async fn restarted(self) -> Self {
        self.host.end().await;
        Self::at(self._root).await
    }

    async fn new_pod(&self, model: Option<&Path>) -> PodInfo {
        let new = NewPod {
            cwd: self.root.join("w"),
            model: model.map(|path| format!("rehearsal:{}", path.display())),
            ..NewPod::default()
        };
        match self.client.call(None, Method::New(new)).await.unwrap() {
            Event::Created { info } => *info,
            other => panic!("{other:?}"),
        }
    }

    async fn call(&self, pod: &PodName, method: Method) -> Result<Event, Refusal> {
        self.client.call(Some(pod), method).await
    }

    /// The next event that fits; what comes before it is passed over.
    async fn next(&mut self, fits: impl Fn(&Event) -> bool) -> Event {
        loop {
            let line = self.events.recv().await.expect("the host is there");
            if fits(&line.event) {
                return line.event;
            }
        }
    }

    async fn info(&self, pod: &PodName) -> PodInfo {
        let family = self.host.shared.family();
        family.into_iter().find(|info| info.name == *pod).unwrap()
    }

    /// Every entry of the transcript, as its kinds.
    async fn transcript(&self, pod: &PodName) -> Vec<String> {
        let page = self.call(pod, Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Ok(Event::Page { entries, .. }) = page else { panic!("{page:?}") };
        entries
            .into_iter()
            .map(|line| {
                let value = serde_json::to_value(line).unwrap();
                value["kind"].as_str().unwrap_or("?").to_owned()
            })
            .collect()
    }
}

/// The base URL of a fake provider that listens on this machine.
async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

pub async fn start(root: &Path) -> Host {
    try_start(root).await.unwrap()
}

async fn try_start(root: &Path) -> Result<Host, HostError> {
    start_as(root, IdleExit::Never).await
}

async fn start_as(root: &Path, idle_exit: IdleExit) -> Result<Host, HostError> {
    Host::start(options(root, idle_exit)).await
}

fn options(root: &Path, idle_exit: IdleExit) -> Options {
    let home = root.join("home").display().to_string();
    let env = Env::from([("YOI_HOME".to_owned(), home.clone()), ("HOME".to_owned(), home)]);
    Options {
        dirs: Dirs::find(&env, None).unwrap(),
        env,
        helper: crate::sandbox::OWN_PROGRAM.into(),
        old_nofile: None,
        idle_exit,
    }
}

fn run_end(event: &Event) -> bool {
    matches!(event, Event::RunEnd { .. })
}

#[tokio::test]
async fn without_a_model_a_message_is_answered_with_what_is_missing() {
    let mut bench = Bench::new().await;
    let pod = bench.new_pod(None).await;
    assert_eq!(pod.name.as_str(), "w");
    assert_eq!(pod.state, State::Idle);
    let accepted = bench.call(&pod.name, Method::say("hello")).await.unwrap();
    assert!(matches!(accepted, Event::Accepted { entry: Some(_), .. }), "{accepted:?}");
    let Event::TextDone { text } = bench.next(|e| matches!(e, Event::TextDone { .. })).await else {
        unreachable!()
    };
    assert!(text.contains("ANTHROPIC_API_KEY") && text.contains(":tour"), "{text}");
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Finished, .. }), "{end:?}");
    let kinds = bench.transcript(&pod.name).await;
    let expected = [
        "segment_start",
        "extension",
        "invoke",
        "user_input",
        "assistant_item",
        "turn_end",
        "run_completed",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_pod_is_there_again_after_the_host_ended() {
    let mut bench = Bench::new().await;
    let pod = bench.new_pod(None).await;
    bench.call(&pod.name, Method::say("hello")).await.unwrap();
    bench.next(run_end).await;
    let before = bench.transcript(&pod.name).await;
    let bench = bench.restarted().await;
    assert_eq!(bench.info(&pod.name).await.state, State::Idle);
    assert_eq!(bench.transcript(&pod.name).await, before);
}

#[tokio::test]
async fn a_stopped_pod_is_restored_and_a_live_one_is_not_started_twice() {
    let bench = Bench::new().await;
    let pod = bench.new_pod(None).await;
    bench.call(&pod.name, Method::Stop).await.unwrap();
    assert_eq!(bench.info(&pod.name).await.state, State::Stopped);
    let refusal = bench.call(&pod.name, Method::say("x")).await.unwrap_err();
    assert!(refusal.message.contains(":restore w"), "{refusal}");
    let restore = || Method::Restore { name: "w".into() };
    let Event::PodRestored { result } = bench.client.call(None, restore()).await.unwrap() else {
        panic!()
    };
    assert_eq!(result["action"], "restored");
    let Event::PodRestored { result } = bench.client.call(None, restore()).await.unwrap() else {
        panic!()
    };
    assert_eq!(result["action"], "already_live");
    let missing = bench.client.call(None, Method::Restore { name: "ghost".into() }).await;
    assert_eq!(missing.unwrap_err().message, "pod state missing for `ghost`");
}

#[tokio::test]
async fn a_second_pod_in_a_workspace_reads_until_its_turn() {
    let bench = Bench::new().await;
    let first = bench.new_pod(None).await;
    let second = bench.new_pod(None).await;
    assert_eq!(second.name.as_str(), "w-2");
    let reads = |note: &&String| note.starts_with("read-only");
    assert_eq!(second.notes.iter().find(reads), None, "it writes when its turn comes");
    assert!(second.scope.iter().all(|r| r.permission == crate::scope::Permission::Read));
    assert!(first.scope.iter().any(|r| r.permission == crate::scope::Permission::Write));
}

#[tokio::test]
async fn only_a_stopped_pod_is_deleted_and_nothing_of_it_remains() {
    let bench = Bench::new().await;
    let pod = bench.new_pod(None).await;
    assert!(bench.call(&pod.name, Method::Remove).await.is_err());
    bench.call(&pod.name, Method::Stop).await.unwrap();
    bench.call(&pod.name, Method::Remove).await.unwrap();
    let gone = bench.call(&pod.name, Method::say("x")).await.unwrap_err();
    assert_eq!(gone.message, "no pod named `w`");
    assert_eq!(bench.new_pod(None).await.name.as_str(), "w");
}

const SCRIPT: &str = r#"
[[when]]
says = "hang"
[[when.step]]
text = "This answer stops in the middle and then goes on."
chunk = 4
fault = { hang = 12, times = 1 }

[[when]]
says = "wait"
[[when.step]]
text = "Never said."
fault = { hang = 0, times = 9 }

[[when]]
says = "stuck"
[[when.step]]
text = "Half an answer."
fault = { hang = 6, times = 9 }

[[when]]
says = "late"
[[when.step]]
text = "Here I am."
fault = { hang = 0, times = 1 }

[[when]]
says = "read *"
[[when.step]]
text = "I look."
call = [{ name = "Read", args = { file_path = "{cwd}/{1}" } }, { name = "Glob", args = { pattern = "*" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "break"
[[when.step]]
text = "This answer is cut off once and then it is whole."
fault = { cut = 20, times = 1 }

[[when]]
says = "fail"
[[when.step]]
fault = { status = 400 }

[[when]]
note = "*news*"
text = "Heard the news."

[[when]]
any = true
text = "You said {1}."
"#;

impl Bench {
    async fn scripted() -> (Self, PodName) {
        let bench = Self::new().await;
        let script = bench.root.join("script.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        std::fs::write(bench.root.join("w/note.txt"), "hello file\n").unwrap();
        let pod = bench.new_pod(Some(&script)).await;
        (bench, pod.name)
    }

    /// Waits until this much text has streamed.
    async fn streamed(&mut self, text: &str) {
        let mut all = String::new();
        while all != text {
            let Event::TextDelta { text } =
                self.next(|e| matches!(e, Event::TextDelta { .. })).await
            else {
                unreachable!()
            };
            all.push_str(&text);
        }
    }

    async fn end(&mut self) -> RunResult {
        let Event::RunEnd { result, .. } = self.next(run_end).await else { unreachable!() };
        result
    }

    async fn is(&mut self, pod: &PodName, state: State) -> PodInfo {
        loop {
            let info = self.info(pod).await;
            if info.state == state {
                return info;
            }
            self.next(|e| matches!(e, Event::PodChanged { .. })).await;
        }
    }

    /// The texts of the model in the transcript so far.
    async fn said(&self, pod: &PodName) -> Vec<String> {
        let page = self.call(pod, Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Ok(Event::Page { entries, .. }) = page else { panic!("{page:?}") };
        let mut said = Vec::new();
        for line in entries {
            let value = serde_json::to_value(line).unwrap();
            if value["kind"] == "assistant_item" {
                said.extend(value["item"]["content"][0]["text"].as_str().map(str::to_owned));
            }
        }
        said
    }
}

#[tokio::test]
async fn tools_are_called_and_their_results_read() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("read note.txt")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await;
    assert_eq!(said[0], "I look.");
    assert!(said[1].starts_with("It says: "), "{said:?}");
    let kinds = bench.transcript(&pod).await;
    assert_eq!(kinds.iter().filter(|k| *k == "tool_result").count(), 2, "{kinds:?}");
}

#[tokio::test]
async fn a_paused_run_keeps_its_text_and_goes_on_from_there() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.streamed("This answer ").await;
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    bench.is(&pod, State::Paused).await;
    assert_eq!(bench.said(&pod).await, ["This answer "]);
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await.concat();
    assert_eq!(said, "This answer stops in the middle and then goes on.");
}

#[tokio::test]
async fn a_cancelled_run_is_over_and_a_run_without_a_result_is_rolled_back() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.streamed("This answer ").await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Cancelled);
    bench.is(&pod, State::Idle).await;
    let before = bench.transcript(&pod).await;
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    assert_eq!(bench.end().await, RunResult::RolledBack);
    bench.is(&pod, State::Idle).await;
    let after: Vec<String> = bench.transcript(&pod).await;
    let visible =
        |kinds: &[String]| kinds.iter().filter(|k| *k == "user_input" || *k == "invoke").count();
    assert_eq!(visible(&after), visible(&before), "{after:?}");
}

#[tokio::test]
async fn a_busy_pod_refuses_a_message_or_queues_it_and_runs_it_afterwards() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.streamed("This answer ").await;
    let refusal = bench.call(&pod, Method::say("second")).await.unwrap_err();
    assert_eq!(refusal.message, "Pod is already executing a turn");
    let Method::Send { input, .. } = Method::say("second") else { unreachable!() };
    let queued = Method::Send { input, queue: true };
    let Event::Accepted { queued: Some(_), .. } = bench.call(&pod, queued).await.unwrap() else {
        panic!()
    };
    assert_eq!(bench.info(&pod).await.queue.len(), 1);
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    let mut bench = bench.restarted().await;
    let info = bench.is(&pod, State::Paused).await;
    assert!(info.why.unwrap().starts_with("paused "));
    assert_eq!(info.queue.len(), 1, "the queue survives the host");
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await.last().unwrap(), "You said second.");
    assert!(bench.info(&pod).await.queue.is_empty());
}

#[tokio::test]
async fn a_message_that_left_the_queue_is_not_shown_there_while_its_run_lasts() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("break")).await.unwrap();
    let Method::Send { input, .. } = Method::say("wait") else { unreachable!() };
    bench.call(&pod, Method::Send { input, queue: true }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    let info = bench.info(&pod).await;
    assert_eq!((info.state, info.queue), (State::Running, Vec::new()));
    bench.call(&pod, Method::Cancel).await.unwrap();
}

#[tokio::test]
async fn a_notification_wakes_an_idle_pod_and_reaches_a_running_one_before_its_run_ends() {
    let (mut bench, pod) = Bench::scripted().await;
    let notification = || Method::Notify { message: "some news".into() };
    bench.call(&pod, notification()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await, ["Heard the news."]);
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.streamed("This answer ").await;
    bench.call(&pod, notification()).await.unwrap();
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let kinds = bench.transcript(&pod).await;
    // Two notifications, and the note that tells the model to go on.
    assert_eq!(kinds.iter().filter(|k| *k == "system_item").count(), 3, "{kinds:?}");
}

#[tokio::test]
async fn a_message_that_cannot_be_read_starts_one_run_at_most() {
    let (mut bench, pod) = Bench::scripted().await;
    let store = bench.host.shared.store.clone();
    let damaged = crate::store::MailboxMessage {
        id: "1".into(),
        kind: crate::store::MailboxKind::PodEvent,
        payload: serde_json::json!({ "of": "a newer version" }),
        created: 1,
    };
    store.add_message(&pod, damaged).await.unwrap();
    let no_input = bench.call(&pod, Method::EditQueued { id: "1".into(), input: None }).await;
    assert!(no_input.is_err(), "only inputs are edited and dropped");
    bench.call(&pod, Method::Notify { message: "some news".into() }).await.unwrap();
    let passed_over = bench.next(|e| matches!(e, Event::Alert { .. })).await;
    assert!(format!("{passed_over:?}").contains("could not be read"), "{passed_over:?}");
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(store.messages(&pod).await.unwrap(), []);
}

#[tokio::test]
async fn a_broken_stream_is_gone_on_with() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("break")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmContinuation { .. })).await;
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await.concat();
    assert_eq!(said, "This answer is cut off once and then it is whole.");
}

#[tokio::test]
async fn a_provider_that_refuses_fails_the_run_and_the_next_message_works() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("fail")).await.unwrap();
    let error = bench.next(|e| matches!(e, Event::Error { .. })).await;
    let Event::Error { code, .. } = error else { unreachable!() };
    assert_eq!(code, crate::protocol::ErrorCode::ProviderError);
    assert_eq!(bench.end().await, RunResult::Failed);
    bench.is(&pod, State::Failed).await;
    bench.call(&pod, Method::say("again")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await, ["You said again."]);
}

#[tokio::test]
async fn a_compaction_hands_over_and_a_rewind_goes_back_behind_it() {
    let (mut bench, pod) = Bench::scripted().await;
    for text in ["one", "two"] {
        bench.call(&pod, Method::say(text)).await.unwrap();
        bench.end().await;
    }
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|e| matches!(e, Event::CompactDone { .. })).await;
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::say("three")).await.unwrap();
    bench.end().await;
    bench.is(&pod, State::Idle).await;
    let all = bench.said(&pod).await;
    assert_eq!(all.last().unwrap(), "You said three.");
    let listed = bench.call(&pod, Method::ListRewindTargets).await.unwrap();
    let Event::RewindTargets { head_entries, targets, .. } = listed else { panic!() };
    let previews: Vec<&str> = targets.iter().map(|t| t.preview.as_str()).collect();
    assert_eq!(previews, ["three", "two", "one"]);
    let stale = Method::Rewind { target: targets[1].id, expected_head_entries: 0 };
    assert!(bench.call(&pod, stale).await.unwrap_err().message.contains("head changed"));
    let back = Method::Rewind { target: targets[1].id, expected_head_entries: head_entries };
    let Event::RewindApplied { input, .. } = bench.call(&pod, back).await.unwrap() else {
        panic!()
    };
    assert_eq!(crate::protocol::flatten(&input), "two");
    assert_eq!(bench.said(&pod).await, ["You said one."]);
    bench.call(&pod, Method::say("four")).await.unwrap();
    bench.end().await;
    assert_eq!(bench.said(&pod).await, ["You said one.", "You said four."]);
}

#[tokio::test]
async fn a_missing_key_is_a_named_wait_and_the_queue_is_kept() {
    let mut bench = Bench::new().await;
    let mut new = NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    new.model = Some("anthropic/claude-x".into());
    bench.client.call(None, Method::New(new)).await.unwrap();
    let pod = PodName::parse("w").unwrap();
    let Method::Send { input, .. } = Method::say("x") else { unreachable!() };
    bench.call(&pod, Method::Send { input, queue: true }).await.unwrap();
    let info = bench.is(&pod, State::NeedsYou).await;
    assert!(info.why.as_ref().unwrap().contains("anthropic"), "{info:?}");
    assert_eq!(info.queue.len(), 1);
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let model = format!("rehearsal:{}", script.display());
    bench.call(&pod, Method::SetModel { model }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await, ["You said x."]);
}

#[tokio::test]
async fn a_steered_message_enters_the_running_turn() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("break")).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    let Method::Send { input, .. } = Method::say("and also this") else { unreachable!() };
    bench.call(&pod, Method::Steer { id: None, input }).await.unwrap();
    bench.next(|e| matches!(e, Event::UserMessage { .. })).await;
    bench.end().await;
    assert_eq!(bench.said(&pod).await.last().unwrap(), "You said and also this.");
    assert!(bench.info(&pod).await.queue.is_empty());
}
