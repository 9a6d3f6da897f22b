//! The host as its clients see it, in this process.

use crate::client::{Client, Events};
use crate::config::dirs::{Dirs, Env};
use crate::host::{Host, IdleExit, Options};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodInfo, PodName, Refusal, RunResult, State};
use std::path::Path;

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

async fn start(root: &Path) -> Host {
    let home = root.join("home").display().to_string();
    let env = Env::from([("YOI_HOME".to_owned(), home.clone()), ("HOME".to_owned(), home)]);
    let options = Options {
        dirs: Dirs::find(&env).unwrap(),
        env,
        helper: crate::sandbox::OWN_PROGRAM.into(),
        old_nofile: None,
        idle_exit: IdleExit::Never,
    };
    Host::start(options).await.unwrap().0
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
    assert_eq!(end, Event::RunEnd { result: RunResult::Finished });
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
async fn a_second_pod_in_a_taken_workspace_reads_and_says_who_holds_it() {
    let bench = Bench::new().await;
    let first = bench.new_pod(None).await;
    let second = bench.new_pod(None).await;
    assert_eq!(second.name.as_str(), "w-2");
    assert!(second.notes[0].starts_with("reads only: w holds write on"), "{:?}", second.notes);
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
