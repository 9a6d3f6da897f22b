//! Paths and Pods that never answer, and messages for children that are still being made.

use crate::host::idle_exit::is_idle;
use crate::host::pod::{Fact, Handle, PodRequest};
use crate::host::tests::Bench;
use crate::host::tests::family::name;
use crate::protocol::method::NewPod;
use crate::protocol::{CompletionKind, Event, Method, PodName, RewindTargetId, Segment, SegmentId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How many messages are acknowledged while spawns fail and succeed; the whole thousand takes a
/// while.
fn messages() -> usize {
    std::env::var("YOI_RACES").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// The mount is a stand-in: work on paths below it blocks its thread until it is released.
#[tokio::test]
async fn a_path_that_never_answers_delays_its_caller_only() {
    let bench = Bench::family().await;
    let mount = bench.root.join("mount");
    std::fs::create_dir(&mount).unwrap();
    let files = &bench.host.shared.files;
    files.replacement.hang(&mount);
    let new = NewPod { cwd: mount.clone(), ..NewPod::default() };
    let who = Method::Who { path: mount.join("x") };
    let late = futures_util::future::join(
        bench.client.call(None, Method::New(new)),
        bench.client.call(None, who),
    );
    let others = async {
        bench.spawn("p", "kid", "a").await.unwrap();
        bench
            .call(&name("p"), Method::StopPods { tree: true, unless_busy: false, silent: false })
            .await
            .unwrap();
        let restore = Method::RestorePods { tree: true, plan: false };
        bench.call(&name("p"), restore).await.unwrap();
        bench.client.call(None, Method::Who { path: bench.root.join("w/a") }).await.unwrap();
    };
    tokio::pin!(late);
    tokio::select! {
        biased;
        late = &mut late => panic!("the others waited for it: {late:?}"),
        () = others => {}
    }
    let (new, who) = late.await;
    let expected = format!("{} did not answer within 5 s", mount.display());
    assert_eq!(new.unwrap_err().message, expected);
    let expected = format!("{}/x did not answer within 5 s", mount.display());
    assert_eq!(who.unwrap_err().message, expected);
    files.replacement.release();
}

fn message(text: &str) -> Method {
    let input = vec![Segment::Text { content: text.into() }];
    Method::Send { input, queue: true }
}

impl Bench {
    /// Whether a Pod's logs or its mailbox hold a text.
    async fn holds(&self, pod: &PodName, text: &str) -> bool {
        let Some(handle) = self.host.shared.pod(pod) else { return false };
        let files = crate::session::Files::new(&self.host.shared.dirs.data, handle.session);
        let logs = files.segments().into_iter().map(|segment| files.segment(segment));
        let logged =
            logs.into_iter().any(|log| std::fs::read_to_string(log).unwrap().contains(text));
        let messages = self.host.shared.store.messages(pod).await.unwrap();
        logged || messages.iter().any(|row| row.payload.to_string().contains(text))
    }
}

#[tokio::test]
async fn no_acknowledged_message_is_lost_to_a_spawn_that_fails() {
    let mut bench = Bench::family().await;
    // A client that watches nothing, so that no event waits for this test to read it.
    (bench.client, bench.events) = bench.host.client().await.unwrap();
    let cwd = bench.root.join("q");
    std::fs::create_dir(&cwd).unwrap();
    let model = Some("anthropic/claude-sonnet-4-5".to_owned());
    // The model of `q` has no key, so no child of it accepts its first message.
    let q = NewPod { name: Some(name("q")), cwd: cwd.clone(), model, ..NewPod::default() };
    bench.client.call(None, Method::New(q)).await.unwrap();
    let (mut acknowledged, mut round) = (0, 0);
    while acknowledged < messages() {
        round += 1;
        let child = name(&format!("kid-{round}"));
        let mut approvals = bench.spawn_request(child.as_str(), "a");
        let parent = if round % 2 == 0 { "q" } else { "p" };
        if parent == "q" {
            approvals.scope = vec![crate::host::tests::family::write(&cwd)];
        }
        let spawning = bench.spawn_with(parent, approvals);
        tokio::pin!(spawning);
        let (mut texts, mut spawned) = (Vec::new(), None);
        for n in 0.. {
            let text = format!("message {round}.{n} ends");
            let send = bench.client.call(Some(&child), message(&text));
            tokio::pin!(send);
            let reply = loop {
                tokio::select! {
                    biased;
                    reply = &mut send => break reply,
                    done = &mut spawning, if spawned.is_none() => spawned = Some(done),
                }
            };
            if matches!(reply, Ok(Event::Accepted { .. })) {
                texts.push(text);
            }
            if spawned.is_some() {
                break;
            }
        }
        let spawned = spawned.unwrap();
        assert_eq!(spawned.is_ok(), parent == "p", "{spawned:?}");
        for text in &texts {
            assert!(bench.holds(&child, text).await, "{child} lost {text:?}");
        }
        acknowledged += texts.len();
        if spawned.is_ok() {
            let last = format!("message {round}.last ends");
            bench.call(&child, message(&last)).await.unwrap();
            assert!(bench.holds(&child, &last).await, "{child} lost {last:?}");
            acknowledged += 1;
            bench
                .call(&child, Method::StopPods { tree: false, unless_busy: false, silent: false })
                .await
                .unwrap();
            bench.call(&child, Method::Remove).await.unwrap();
        } else {
            assert!(bench.host.shared.pod(&child).is_none());
        }
    }
}

impl Bench {
    /// The handle of a Pod whose actor reads none of its requests, and what waits for the actor.
    async fn stuck_pod(&self, room: usize) -> (Handle, mpsc::Receiver<PodRequest>) {
        let pod = self.new_pod(None).await;
        let (requests, inbox) = mpsc::channel(room);
        (Handle { requests, ..self.host.shared.pod(&pod.name).unwrap() }, inbox)
    }
}

#[tokio::test]
async fn a_request_to_a_pod_that_never_answers_ends_with_a_way_out() {
    let bench = Bench::new().await;
    let (pod, _inbox) = bench.stuck_pod(64).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let target = RewindTargetId { segment_id: SegmentId::new(), user_input_entry_index: 0 };
    let (sent, rewound, subscribed) =
        tokio::join!(pod.call(Method::say("hello")), pod.rewind(target, 0), pod.subscribe(),);
    assert_eq!(begun.elapsed().as_secs(), 60);
    for refused in [sent.unwrap_err(), rewound.unwrap_err(), subscribed.err().unwrap()] {
        assert!(refused.message.starts_with("pod `w` did not answer within 60 s"), "{refused}");
        assert!(refused.message.contains("`yoi host stop`"), "{refused}");
    }
}

#[tokio::test]
async fn a_request_that_finds_the_queue_of_its_pod_full_was_not_sent() {
    let bench = Bench::new().await;
    let (pod, mut inbox) = bench.stuck_pod(1).await;
    tokio::time::pause();
    pod.tell(Fact::SocketVanished).await;
    let refused = pod.call(Method::say("hello")).await.unwrap_err();
    assert!(refused.message.contains("took no request"), "{refused}");
    drop(pod);
    assert!(matches!(
        inbox.recv().await,
        Some(PodRequest::Fact { fact: Fact::SocketVanished, .. })
    ));
    assert!(inbox.recv().await.is_none(), "the refused request is not carried out later");
}

#[tokio::test]
async fn a_committed_fact_reaches_a_pod_whose_queue_is_full() {
    let bench = Bench::new().await;
    let (pod, mut inbox) = bench.stuck_pod(1).await;
    tokio::time::pause();
    pod.tell(Fact::SocketVanished).await;
    tokio::join!(pod.tell(Fact::Orphaned), pod.tell(Fact::Stopped));
    drop(pod);
    assert!(matches!(
        inbox.recv().await,
        Some(PodRequest::Fact { fact: Fact::SocketVanished, .. })
    ));
    assert!(matches!(inbox.recv().await, Some(PodRequest::Fact { fact: Fact::Orphaned, .. })));
    assert!(matches!(inbox.recv().await, Some(PodRequest::Fact { fact: Fact::Stopped, .. })));
}

#[tokio::test]
async fn a_child_serves_requests_while_its_parent_answers_nothing() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let parent = bench.host.shared.pod(&name("p")).unwrap();
    let (requests, mut inbox) = mpsc::channel(64);
    let deaf = Handle { requests, ..parent.clone() };
    bench.host.shared.members.send_modify(|members| {
        Arc::make_mut(&mut members.0).insert(parent.name.key(), deaf);
    });
    let kid = name("kid");
    bench.call(&kid, message("again")).await.unwrap();
    let event = loop {
        let request = inbox.recv().await.unwrap();
        if let PodRequest::Fact { fact: Fact::ChildEvent(_), .. } = &request {
            break request;
        }
    };
    let complete =
        Method::ListCompletions { kind: CompletionKind::Workflow, prefix: String::new() };
    let reply = tokio::time::timeout(Duration::from_secs(5), bench.call(&kid, complete)).await;
    reply.expect("the child waits for its parent").unwrap();
    drop(event);
}

#[tokio::test]
async fn a_host_is_not_idle_while_something_waits_for_a_pod() {
    let bench = Bench::new().await;
    let (pod, _inbox) = bench.stuck_pod(64).await;
    let shared = &bench.host.shared;
    shared.connections.send_modify(|connections| connections.open = 0);
    shared.members.send_modify(|members| {
        Arc::make_mut(&mut members.0).insert(pod.name.key(), pod.clone());
    });
    assert!(is_idle(shared));
    pod.post(Fact::SocketVanished).await;
    assert!(!is_idle(shared), "it may start a run");
}

#[tokio::test]
async fn a_pod_on_a_mount_that_never_answers_refuses_models_and_completions_by_its_path() {
    let bench = Bench::new().await;
    let pod = bench.new_pod(None).await;
    let files = &bench.host.shared.files;
    files.replacement.hang(&bench.root.join("w"));
    let complete = Method::ListCompletions { kind: CompletionKind::File, prefix: "src/m".into() };
    let model = Method::SetModel { model: "rehearsal:demo".into() };
    let (completed, chosen) =
        tokio::join!(bench.call(&pod.name, complete), bench.call(&pod.name, model));
    let dir = pod.cwd.display();
    let expected = format!("{dir}/src did not answer within 5 s");
    assert_eq!(completed.unwrap_err().message, expected);
    assert_eq!(chosen.unwrap_err().message, format!("{dir} did not answer within 5 s"));
    files.replacement.release();
    assert_eq!(bench.info(&pod.name).await.model, pod.model, "a refused model changes nothing");
}
