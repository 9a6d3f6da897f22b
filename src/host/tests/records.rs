//! What is recorded of a Pod, and that it is recorded before it holds.

use crate::host::tests::{Bench, run_end};
use crate::protocol::entry::domain;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Fact, Method, PodName, State};
use std::path::Path;

const SCRIPT: &str = r#"
[[when]]
says = "stuck"
[[when.step]]
text = "Half an answer."
usage = { input = 70, output = 5 }
fault = { hang = 6, times = 9 }

[[when]]
any = true
[[when.step]]
text = "You said {1}."
usage = { input = 10, output = 5 }
"#;

impl Bench {
    async fn counting() -> (Self, PodName) {
        let bench = Self::new().await;
        let script = bench.root.join("counting.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        let pod = bench.new_pod(Some(&script)).await;
        (bench, pod.name)
    }

    /// The input tokens of every request that the whole session holds, compactions included.
    async fn used(&self, pod: &PodName) -> Vec<u64> {
        let files = crate::session::Files::new(
            &self.host.shared.dirs.data,
            self.host.shared.pod(pod).unwrap().session,
        );
        let mut used = Vec::new();
        for segment in files.segments().into_iter().rev() {
            let text = std::fs::read_to_string(files.segment(segment)).unwrap();
            for line in text.lines() {
                let entry: crate::protocol::Entry = serde_json::from_str(line).unwrap();
                if let Fact::LlmUsage { input_total_tokens, .. } = entry.fact {
                    used.push(input_total_tokens);
                }
            }
        }
        used
    }
}

#[tokio::test]
async fn a_compaction_records_what_its_request_used() {
    let (mut bench, pod) = Bench::counting().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.used(&pod).await, [10]);
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|e| matches!(e, Event::CompactDone { .. })).await;
    let used = bench.used(&pod).await;
    assert_eq!(used.len(), 2, "the compaction is a request of its own: {used:?}");
}

#[tokio::test]
async fn a_request_that_was_cancelled_records_what_it_used() {
    let (mut bench, pod) = Bench::counting().await;
    bench.call(&pod, Method::say("stuck")).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    bench.next(run_end).await;
    assert_eq!(bench.used(&pod).await, [70]);
}

#[tokio::test]
async fn a_model_that_the_store_refuses_changes_nothing() {
    let (mut bench, pod) = Bench::counting().await;
    let before = bench.info(&pod).await.model;
    let other = bench.root.join("other.toml");
    std::fs::write(&other, SCRIPT).unwrap();
    let file = bench.host.shared.dirs.data.join("yoi.db");
    let db = rusqlite::Connection::open(file).unwrap();
    db.execute_batch(
        "CREATE TRIGGER refuse BEFORE UPDATE OF config ON pods
         BEGIN SELECT RAISE(ABORT, 'no room'); END",
    )
    .unwrap();
    let model = format!("rehearsal:{}", other.display());
    let refused = bench.call(&pod, Method::SetModel { model }).await.unwrap_err();
    assert!(refused.message.contains("no room"), "{refused}");
    db.execute_batch("DROP TRIGGER refuse").unwrap();
    assert_eq!(bench.info(&pod).await.model, before);
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let facts = bench.facts(&pod).await;
    let identity = facts.iter().find_map(|fact| match fact {
        Fact::Extension { domain, payload } if domain == domain::POD => Some(payload.to_string()),
        _ => None,
    });
    let identity = identity.expect("every segment begins with a record of its Pod");
    assert!(identity.contains("counting.toml") && !identity.contains("other.toml"), "{identity}");
}

#[tokio::test]
async fn a_full_mailbox_refuses_with_the_limit_and_its_setting() {
    let bench = Bench::with_settings("limits.mailbox = 2").await;
    let model = Some("anthropic/claude-x".to_owned());
    let new = NewPod { cwd: bench.root.join("w"), model, ..NewPod::default() };
    let created = bench.client.call(None, Method::New(new)).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    let say = || {
        let Method::Send { input, .. } = Method::say("x") else { unreachable!() };
        bench.call(&info.name, Method::Send { input, queue: true })
    };
    say().await.unwrap();
    say().await.unwrap();
    let refused = say().await.unwrap_err();
    assert!(refused.message.contains("limits.mailbox is 2"), "{refused}");
    let queued = bench.info(&info.name).await.queue;
    assert_eq!(queued.len(), 2);
    bench
        .call(&info.name, Method::EditQueued { id: queued[0].id.clone(), input: None })
        .await
        .unwrap();
    say().await.unwrap();
}

#[tokio::test]
async fn the_directory_of_a_tour_goes_with_its_last_pod_and_no_other_directory_does() {
    let bench = Bench::new().await;
    let made = |prefix: &str, parent: &Path| {
        tempfile::Builder::new().prefix(prefix).tempdir_in(parent).unwrap().keep()
    };
    let temporary = std::env::temp_dir();
    let (tour, own) = (made("yoi-tour-", &temporary), made("yoi-own-", &temporary));
    let below = made("yoi-tour-", &own);
    let pod = async |cwd: &Path, model: &str| {
        let new = NewPod { cwd: cwd.into(), model: Some(model.into()), ..NewPod::default() };
        let created = bench.client.call(None, Method::New(new)).await.unwrap();
        let Event::Created { info } = created else { panic!("{created:?}") };
        info.name
    };
    let removed = async |pod: &PodName| {
        bench.stop(pod.as_str(), false).await.unwrap();
        bench.call(pod, Method::Remove).await.unwrap();
    };
    let played = "rehearsal:@tour";
    let (first, second) = (pod(&tour, played).await, pod(&tour, played).await);
    removed(&first).await;
    assert!(tour.is_dir(), "another Pod works there");
    removed(&second).await;
    assert!(!tour.exists());
    for directory in [&own, &below] {
        removed(&pod(directory, played).await).await;
        assert!(directory.is_dir(), "yoi did not make {}", directory.display());
    }
    std::fs::remove_dir_all(&own).unwrap();
}
