//! A fault in the program: one Pod is failed with the reason, and nothing else is affected.

use crate::host::Ending;
use crate::host::pod::PodRequest;
use crate::host::supervisor::Step;
use crate::host::tests::{Bench, run_end};
use crate::llm::ToolSpec;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, GoesOnBy, Method, PodName, RunResult, State};
use crate::tools::{Context, ExternalTool, Lane, Output};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// A tool that can be described once.
#[derive(Default)]
struct Faulty(AtomicBool);

impl ExternalTool for Faulty {
    fn spec(&self) -> ToolSpec {
        assert!(!self.0.swap(true, Ordering::SeqCst), "the tool has no description");
        ToolSpec { name: "faulty".into(), description: String::new(), schema: Value::Null }
    }

    fn lane(&self) -> Lane {
        Lane::Look
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        _: &'a Context,
        _: &'a CancellationToken,
        _: &'a mut (dyn FnMut(String) + Send),
    ) -> BoxFuture<'a, Result<Output, String>> {
        Box::pin(async { Ok(Output::default()) })
    }
}

impl Bench {
    async fn other_pod(&self) -> PodName {
        std::fs::create_dir_all(self.root.join("other")).unwrap();
        let script = self.root.join("script.toml").display().to_string();
        let model = Some(format!("rehearsal:{script}"));
        let new = NewPod { cwd: self.root.join("other"), model, ..NewPod::default() };
        match self.client.call(None, Method::New(new)).await.unwrap() {
            Event::Created { info } => info.name,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_panic_in_a_run_fails_its_pod_with_the_reason_and_the_next_message_works() {
    let (mut bench, pod) = Bench::scripted().await;
    let other = bench.other_pod().await;
    let tools = bench.host.shared.tools.clone();
    tools.send_modify(|set| *set = set.with(Arc::new(Faulty::default())).unwrap());
    bench.call(&pod, Method::say("hello")).await.unwrap();
    let end = bench.next(run_end).await;
    let Event::RunEnd { result: RunResult::Failed, entry: Some(entry), .. } = end else {
        panic!("{end:?}")
    };
    let why = bench.is(&pod, State::Failed).await.why.unwrap();
    assert!(why.contains("the tool has no description"), "{why}");
    let last = bench.whole_entries(&pod).await.pop().unwrap();
    assert_eq!(last.id, Some(entry));
    let Fact::RunErrored { interrupted: false, message, .. } = last.fact else { panic!() };
    assert_eq!(message, why);
    tools.send_modify(|set| *set = set.without("faulty"));
    for pod in [&other, &pod] {
        bench.call(pod, Method::say("again")).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
    }
}

#[tokio::test]
async fn a_panic_in_an_actor_fails_its_pod_with_the_reason_until_it_is_restored() {
    let (mut bench, pod) = Bench::scripted().await;
    let other = bench.other_pod().await;
    bench.call(&pod, Method::say("stuck")).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    bench.host.shared.pod(&pod).unwrap().requests.send(PodRequest::Panic).await.unwrap();
    let end = bench.next(run_end).await;
    assert!(matches!(end, Event::RunEnd { result: RunResult::Failed, .. }), "{end:?}");
    let failed = bench.is(&pod, State::Failed).await;
    assert_eq!(failed.goes_on_by, Some(GoesOnBy::Restore));
    let why = failed.why.unwrap();
    assert!(why.contains("on purpose") && why.contains(":restore w"), "{why}");
    let refused = bench.call(&pod, Method::say("more")).await.unwrap_err();
    assert!(refused.message.contains("on purpose"), "{refused}");
    bench.call(&other, Method::say("hello")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);

    let restore = Method::Restore { name: pod.to_string() };
    bench.client.call(None, restore).await.unwrap();
    bench.is(&pod, State::Paused).await;
    let last = bench.whole_entries(&pod).await.pop().unwrap();
    let Fact::RunErrored { interrupted: true, message, .. } = last.fact else { panic!("{last:?}") };
    assert!(message.contains("on purpose"), "{message}");
    bench.call(&pod, Method::say("again")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
}

#[tokio::test]
async fn a_panic_of_the_supervisor_ends_the_host_with_the_reason_and_no_client_waits() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.host.supervisor.send(Step::panics()).await.unwrap();
    let waiting = bench
        .call(&pod, Method::StopPods { tree: false, unless_busy: false, silent: false })
        .await
        .unwrap_err();
    assert!(waiting.message.contains("ended") || waiting.message.contains("ending"), "{waiting}");
    let Ending::Failed(why) = bench.host.ended().await else { panic!("the host has failed") };
    assert!(why.ends_with("the family broke on purpose"), "{why}");
    while bench.events.recv().await.is_some() {}
    let (late, _events) = bench.host.client().await.unwrap();
    assert!(
        late.call(Some(&pod), Method::StopPods { tree: false, unless_busy: false, silent: false })
            .await
            .is_err()
    );
    bench.host.end().await;
}
