//! A path that never answers delays its caller only: on a FUSE mount that falls silent, and where
//! none can be made on the stand-in of `host::files`.

use super::silent_mount::{SilentMount, own_view};
use super::{LIMIT, Raw};
use crate::host::tests::Bench;
use crate::host::tests::family::{name, write};
use crate::protocol::method::NewPod;
use crate::protocol::{CompletionKind, Event, Method, PodName, Refusal, SpawnPod, State};
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use tokio::time::timeout;

/// `{1}` is the directory of the child.
const SCRIPT: &str = r#"
[[when]]
says = "spawn in *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "begin", scope = [
    { target = "{1}", permission = "write", recursive = true } ] } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "read *"
[[when.step]]
call = [{ name = "Read", args = { file_path = "{cwd}/{1}" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
any = true
text = "You said {1}."
"#;

/// A host with the Pods `p` and `q`, and `m` and the stopped `s` whose workspace falls silent.
struct Scene {
    /// The first field, so that it answers again before anything below it is closed or deleted.
    mount: Option<SilentMount>,
    bench: Bench,
    at: PathBuf,
    fuse: bool,
}

impl Scene {
    async fn new() -> Self {
        let fuse = own_view();
        let bench = Bench::new().await;
        std::fs::write(bench.root.join("script.toml"), SCRIPT).unwrap();
        for (pod, dir) in [("p", "w"), ("q", "q"), ("m", "mount"), ("s", "mount")] {
            bench.root_pod(pod, dir).await;
        }
        std::fs::create_dir(bench.root.join("q/child")).unwrap();
        bench.stop("s", false).await.unwrap();
        let at = bench.root.join("mount");
        let mount = SilentMount::over(&at, fuse, &bench.host.shared.files.replacement);
        Self { mount: Some(mount), bench, at, fuse }
    }

    fn below(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// A request of a person.
    async fn call(&self, pod: Option<&str>, method: Method) -> Result<Event, Refusal> {
        self.bench.client.call(pod.map(name).as_ref(), method).await
    }

    /// Why a request was refused.
    async fn refused(&self, pod: Option<&str>, method: Method) -> String {
        let reply = self.call(pod, method).await;
        reply.expect_err("a path that never answers").message
    }

    /// What the model of `p` reads about a child in this directory.
    async fn spawned_by_a_model(&self, dir: &Path) -> String {
        let mut pod = Raw::at_pod(&self.bench, &name("p")).await;
        pod.send(&super::run(&format!("spawn in {}", dir.display()))).await;
        while pod.line().await["event"] != "run_end" {}
        self.bench.said(&name("p")).await.pop().expect("an answer")
    }

    /// Everything that other Pods and their callers do meanwhile.
    async fn others_work(&self) {
        let bench = &self.bench;
        let child = SpawnPod {
            name: "other".into(),
            task: "begin".into(),
            scope: vec![write(bench.root.join("q/child"))],
            ..SpawnPod::default()
        };
        bench.spawn_with("q", child).await.unwrap();
        bench.stop("q", true).await.unwrap();
        self.call(Some("q"), Method::RestorePods { tree: true, plan: false }).await.unwrap();
        self.call(None, Method::Who { path: bench.root.join("q") }).await.unwrap();
        self.call(Some("q"), Method::ListPolicy).await.unwrap();
        self.call(Some("q"), files("x")).await.unwrap();
        let lend = Method::lend("p", write(bench.root.join("q/lent")));
        self.call(Some("q"), lend).await.unwrap();
        self.call(Some("q"), Method::reclaim(bench.root.join("q/lent"))).await.unwrap();
        self.new_pod("r").await.unwrap();
    }

    async fn new_pod(&self, dir: &str) -> Result<Event, Refusal> {
        let cwd = self.bench.root.join(dir);
        std::fs::create_dir_all(&cwd).unwrap();
        self.call(None, Method::New(NewPod { cwd, ..NewPod::default() })).await
    }

    /// Waits until a Pod is in a state.
    async fn is(&mut self, pod: &PodName, state: State) {
        timeout(LIMIT, self.bench.is(pod, state)).await.expect("the state changes");
    }
}

fn files(prefix: &str) -> Method {
    Method::ListCompletions { kind: CompletionKind::File, prefix: prefix.into() }
}

/// Carries `late` out, and everything that others do first.
async fn beside<T: std::fmt::Debug>(late: impl Future<Output = T>, others: impl Future) -> T {
    tokio::pin!(late);
    tokio::select! {
        biased;
        late = &mut late => panic!("the others waited for it: {late:?}"),
        _ = others => {}
    }
    late.await
}

#[tokio::test]
async fn each_request_with_a_silent_path_is_refused_after_the_deadline_and_delays_no_other() {
    let scene = Scene::new().await;
    let new = NewPod { cwd: scene.below("new"), ..NewPod::default() };
    let lend = Method::lend("q", write(scene.below("lend")));
    let child = scene.below("child");
    let late = async {
        tokio::join!(
            scene.refused(None, Method::New(new)),
            scene.spawned_by_a_model(&child),
            scene.refused(Some("m"), files("comp")),
            scene.refused(Some("p"), lend),
            scene.refused(Some("p"), Method::reclaim(scene.below("reclaim"))),
            scene.refused(None, Method::Who { path: scene.below("who") }),
            scene.refused(Some("m"), Method::ListPolicy),
            scene.refused(Some("s"), Method::RestorePods { tree: false, plan: false }),
        )
    };
    let (new, spawned, completed, lent, reclaimed, holders, settings, restored) =
        beside(late, scene.others_work()).await;
    let late = |name: &str| format!("{} did not answer within 5 s", scene.below(name).display());
    assert_eq!(new, late("new"));
    assert!(spawned.contains(&late("child")), "{spawned}");
    assert_eq!(lent, late("lend"));
    assert_eq!(reclaimed, late("reclaim"));
    assert_eq!(holders, late("who"));
    let workspace = format!("{} did not answer within 5 s", scene.at.display());
    assert_eq!([completed, settings], [workspace.clone(), workspace.clone()]);
    assert_eq!(restored, format!("pod `s` cannot be restored: {workspace}"));
}

#[tokio::test]
async fn more_silent_paths_than_threads_keep_no_other_path_from_being_looked_at() {
    let mut scene = Scene::new().await;
    let paths: Vec<PathBuf> = (0..24).map(|n| scene.below(&n.to_string())).collect();
    let asked = paths.iter().map(|path| scene.refused(None, Method::Who { path: path.clone() }));
    let refused = beside(join_all(asked), scene.others_work()).await;
    let silent = format!("not looked at, because {} does not answer", scene.at.display());
    let (late, rest): (Vec<_>, Vec<_>) =
        refused.iter().partition(|text| text.ends_with("did not answer within 5 s"));
    assert_eq!((late.len(), rest.len()), (8, 16), "{refused:?}");
    assert!(rest.iter().all(|text| text.ends_with(&silent)), "{rest:?}");
    scene.new_pod("later").await.expect("others are served afterwards, too");
    drop(scene.mount.take());
    let answered =
        async { while scene.call(None, Method::Who { path: scene.below("x") }).await.is_err() {} };
    timeout(LIMIT, answered).await.expect("the path is looked at when it answers again");
}

#[tokio::test]
async fn a_message_for_a_silent_workspace_is_refused_and_the_next_one_runs_when_it_answers() {
    let mut scene = Scene::new().await;
    let message = scene.refused(Some("m"), Method::say("hello"));
    let refused = beside(message, scene.others_work()).await;
    assert_eq!(refused, format!("{} did not answer within 5 s", scene.at.display()));
    assert_eq!(scene.bench.info(&name("m")).await.why, Some(refused));
    drop(scene.mount.take());
    let answered = async { while scene.call(Some("m"), Method::say("hello")).await.is_err() {} };
    timeout(LIMIT, answered).await.expect("the message is accepted when the path answers");
    scene.is(&name("m"), State::Idle).await;
    assert_eq!(scene.bench.said(&name("m")).await, ["You said hello."]);
}

/// The stand-in does not reach the files that a run opens.
#[tokio::test]
async fn a_silent_path_in_a_tool_call_is_an_error_of_that_call_and_delays_no_other_pod() {
    let mut scene = Scene::new().await;
    if !scene.fuse {
        return;
    }
    let inner = scene.bench.root.join("w/inner");
    std::fs::create_dir(&inner).unwrap();
    let mount = SilentMount::over(&inner, true, &scene.bench.host.shared.files.replacement);
    scene.call(Some("p"), Method::say("read inner/x")).await.unwrap();
    scene.bench.next(|e| matches!(e, Event::ToolCallDone { .. })).await;
    timeout(LIMIT, scene.others_work()).await.expect("the others work");
    scene.is(&name("p"), State::Idle).await;
    let said = scene.bench.said(&name("p")).await;
    let expected = "It says: not started: a path of it did not answer within 5 s";
    assert_eq!(said, [expected]);
    drop(mount);
}
