//! The log of a Pod has one writer: its run, or between two runs its actor.

use crate::host::pod::Fact as PodFact;
use crate::host::tests::Bench;
use crate::protocol::entry::domain;
use crate::protocol::{Entry, Event, Fact, Method, PodName, Restoring, State};
use futures_util::future::join_all;

impl Bench {
    /// What the log says of runs that were cut off.
    async fn cut_off(&self, pod: &PodName) -> Vec<Fact> {
        let cut = |fact: &Fact| match fact {
            Fact::Extension { domain, .. } => domain == domain::CUT,
            fact => matches!(fact, Fact::RunErrored { .. }),
        };
        self.facts(pod).await.into_iter().filter(cut).collect()
    }

    async fn streams(&mut self, pod: &PodName) {
        self.call(pod, Method::say("stuck")).await.unwrap();
        self.next(|e| matches!(e, Event::TextDelta { .. })).await;
    }
}

#[tokio::test]
async fn a_run_that_began_before_its_pod_is_made_live_again_keeps_its_log() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.streams(&pod).await;
    bench.host.shared.pod(&pod).unwrap().live(Vec::new()).await.unwrap();
    assert_eq!(bench.info(&pod).await.state, State::Running);
    assert_eq!(bench.cut_off(&pod).await, []);
    bench.call(&pod, Method::Pause).await.unwrap();
    assert!(bench.is(&pod, State::Paused).await.why.unwrap().starts_with("paused "));
    assert_eq!(bench.cut_off(&pod).await, []);
}

#[tokio::test]
async fn restores_of_one_pod_at_once_bring_it_back_once() {
    let (bench, pod) = Bench::scripted().await;
    bench
        .call(&pod, Method::StopPods { tree: false, unless_busy: false, silent: false })
        .await
        .unwrap();
    let restore = || bench.call(&pod, Method::RestorePods { tree: false, plan: false });
    let mut brought_back = 0;
    for reply in join_all((0..8).map(|_| restore())).await {
        match reply {
            Ok(Event::Plan { steps, .. }) if steps[0].what == Restoring::AlreadyLive => {}
            Ok(Event::Plan { .. }) => brought_back += 1,
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => {
                assert!(refusal.message.contains("is being started"), "{refusal}");
            }
        }
    }
    assert_eq!(brought_back, 1);
}

#[tokio::test]
async fn the_log_says_of_an_aborted_run_that_it_was_aborted_and_not_that_the_host_ended() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.streams(&pod).await;
    bench.host.shared.pod(&pod).unwrap().tell(PodFact::Stopped).await;
    let last: Entry = bench.whole_entries(&pod).await.pop().unwrap();
    let Fact::RunErrored { interrupted: true, message, .. } = last.fact else { panic!("{last:?}") };
    assert!(message.contains("did not end in time when its pod was stopped"), "{message}");
    assert_eq!(bench.cut_off(&pod).await.len(), 1);
    let restored = bench.host.shared.pod(&pod).unwrap().live(Vec::new()).await;
    assert!(restored.is_ok(), "{restored:?}");
    assert!(bench.is(&pod, State::Paused).await.why.unwrap().contains("did not end in time"));
    assert_eq!(bench.cut_off(&pod).await.len(), 1);
}
