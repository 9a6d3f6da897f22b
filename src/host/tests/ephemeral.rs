//! Ephemeral Pods: deleted when they have rested for a day, kept when a person uses them.

use crate::host::tests::Bench;
use crate::host::tests::family::name;
use crate::host::tests::pods::sql;
use crate::host::verb::{Cx, remove};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodName, Segment, State};
use std::path::Path;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Makes every entry of every log older by this many milliseconds.
fn age_logs(root: &Path, by: u64) {
    for session in std::fs::read_dir(root.join("home/data/sessions")).unwrap().flatten() {
        for log in std::fs::read_dir(session.path()).unwrap().flatten() {
            if log.path().extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            let mut aged = String::new();
            for line in std::fs::read_to_string(log.path()).unwrap().lines() {
                let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
                let ts = entry["ts"].as_u64().unwrap();
                entry["ts"] = (ts - by).into();
                aged += &format!("{entry}\n");
            }
            std::fs::write(log.path(), aged).unwrap();
        }
    }
}

impl Bench {
    /// An ephemeral Pod with a child, the first message of the Pod done.
    async fn ephemeral_family() -> Self {
        let mut bench = Self::family().await;
        bench.stop("p", false).await.unwrap();
        bench.ephemeral("e").await;
        bench.call(&name("e"), Method::say("one")).await.unwrap();
        bench.next(|e| matches!(e, Event::RunEnd { .. })).await;
        bench.is(&name("e"), State::Idle).await;
        bench.spawn("e", "kid", "a").await.unwrap();
        bench.is(&name("kid"), State::Idle).await;
        bench
    }

    pub async fn ephemeral(&self, pod: &str) {
        let model = format!("rehearsal:{}", self.root.join("script.toml").display());
        let new = NewPod {
            name: Some(name(pod)),
            cwd: self.root.join("w"),
            model: Some(model),
            ephemeral: true,
            ..NewPod::default()
        };
        self.client.call(None, Method::New(new)).await.unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.host.shared.family().iter().map(|info| info.name.to_string()).collect()
    }

    fn which_are_ephemeral(&self) -> Vec<String> {
        let family = self.host.shared.family();
        family.iter().filter(|info| info.ephemeral).map(|info| info.name.to_string()).collect()
    }

    /// The same host, started again with every stopped Pod stopped so much earlier.
    async fn later(self, by: u64) -> Self {
        self.host.end().await;
        sql(&self.root, &format!("UPDATE pods SET since = since - {by} WHERE wanted = 'stopped'"));
        Self::at(self._root).await
    }

    async fn until_deleted(&mut self, pod: &str) {
        while self.host.shared.pod(&name(pod)).is_some() {
            self.next(|event| matches!(event, Event::PodRemoved { .. })).await;
        }
    }

    fn sessions(&self) -> usize {
        std::fs::read_dir(self.root.join("home/data/sessions")).unwrap().count()
    }
}

#[tokio::test]
async fn an_ephemeral_pod_is_deleted_with_its_children_after_a_day_and_no_other_is() {
    let bench = Bench::ephemeral_family().await;
    bench.stop("e", true).await.unwrap();
    let mut bench = bench.later(DAY - 60_000).await;
    assert_eq!(bench.names(), ["p", "e", "kid"]);
    bench = bench.later(60_000).await;
    bench.until_deleted("e").await;
    assert_eq!(bench.names(), ["p"]);
    let bench = bench.restarted().await;
    assert_eq!((bench.names(), bench.sessions()), (vec!["p".to_owned()], 0));
}

#[tokio::test]
async fn an_ephemeral_pod_is_deleted_in_the_moment_it_is_due_while_the_host_lives() {
    let bench = Bench::family().await;
    bench.ephemeral("e").await;
    bench.stop("e", false).await.unwrap();
    let mut bench = bench.later(DAY - 1500).await;
    bench.until_deleted("e").await;
    assert_eq!(bench.names(), ["p"]);
}

#[tokio::test]
async fn an_ephemeral_pod_that_was_left_live_is_stopped_and_deleted_after_a_day_of_rest() {
    let bench = Bench::ephemeral_family().await;
    bench.host.end().await;
    let past = format!(
        "UPDATE pods SET since = since - {DAY}, last_run = json_set(last_run, '$.at', 5)
         WHERE key IN ('e', 'kid')"
    );
    sql(&bench.root, &past);
    age_logs(&bench.root, DAY);
    let bench = Bench::at(bench._root).await;
    for pod in ["e", "kid"] {
        assert_eq!(bench.info(&name(pod)).await.state, State::Stopped, "{pod}");
    }
    let mut bench = bench.later(DAY).await;
    bench.until_deleted("e").await;
    assert_eq!(bench.names(), ["p"]);
}

#[tokio::test]
async fn the_pods_of_a_program_that_is_gone_are_stopped_with_their_children() {
    let mut bench = Bench::family().await;
    bench.stop("p", false).await.unwrap();
    let (program, events) = bench.host.client().await.unwrap();
    let new = |pod: &str, ephemeral| NewPod {
        name: Some(name(pod)),
        cwd: bench.root.join("w"),
        model: Some(format!("rehearsal:{}", bench.root.join("script.toml").display())),
        ephemeral,
        ..NewPod::default()
    };
    for (pod, ephemeral) in [("e", true), ("used", true), ("ordinary", false)] {
        program.call(None, Method::New(new(pod, ephemeral))).await.unwrap();
    }
    bench.spawn("e", "kid", "a").await.unwrap();
    bench.call(&name("used"), Method::Open { env: Default::default() }).await.unwrap();
    drop((program, events));
    for pod in ["kid", "e"] {
        bench.is(&name(pod), State::Stopped).await;
    }
    for pod in ["used", "ordinary"] {
        assert_ne!(bench.info(&name(pod)).await.state, State::Stopped, "{pod}");
    }
    assert_eq!(bench.which_are_ephemeral(), ["e", "kid"]);
}

#[tokio::test]
async fn the_first_message_leaves_a_pod_ephemeral_and_a_later_use_keeps_its_whole_tree() {
    let script = |root: &Path| format!("rehearsal:{}", root.join("script.toml").display());
    type Use = fn(&str) -> Method;
    let uses: [(&str, Use); 4] = [
        ("e", |_| Method::Open { env: Default::default() }),
        ("kid", |_| Method::Open { env: Default::default() }),
        ("e", |_| Method::Send {
            input: vec![Segment::Text { content: "two".into() }],
            queue: true,
        }),
        ("kid", |model| Method::SetModel { model: model.into() }),
    ];
    for (pod, method) in uses {
        let bench = Bench::ephemeral_family().await;
        assert_eq!(bench.which_are_ephemeral(), ["e", "kid"]);
        let method = method(&script(&bench.root));
        bench.call(&name(pod), method.clone()).await.unwrap();
        // The rest of the tree is told behind the reply, and the store knows before it.
        let bench = bench.restarted().await;
        assert_eq!(bench.which_are_ephemeral(), Vec::<String>::new(), "{method:?}");
    }
}

#[tokio::test]
async fn a_restored_pod_is_an_ordinary_one() {
    let bench = Bench::ephemeral_family().await;
    bench.stop("e", true).await.unwrap();
    bench.client.call(None, Method::Restore { name: "e".into() }).await.unwrap();
    assert_eq!(bench.which_are_ephemeral(), Vec::<String>::new());
    let bench = bench.later(2 * DAY).await;
    assert_eq!(bench.names(), ["p", "e", "kid"]);
}

#[tokio::test]
async fn a_pod_that_is_used_while_it_is_being_deleted_by_age_is_kept() {
    let bench = Bench::family().await;
    bench.ephemeral("e").await;
    bench.stop("e", false).await.unwrap();
    let shared = bench.host.shared.clone();
    // The use is committed, and the deletion has not heard of it.
    let kept: Vec<PodName> = shared.store.keep_pods(&name("e")).await.unwrap();
    assert_eq!(kept, [name("e")]);
    let supervisor = bench.host.supervisor.clone();
    let cx = Cx { shared, by: None, to: Some(name("e")), supervisor, gone: Default::default() };
    let refused = remove::ephemeral(&cx).await.unwrap_err();
    assert!(refused.message.contains("used again"), "{refused}");
    assert_eq!(bench.restarted().await.names(), ["p", "e"]);
}

#[tokio::test]
async fn the_names_of_children_are_free_again_when_their_program_has_ended() {
    let bench = Bench::ephemeral_family().await;
    bench.ephemeral("other").await;
    let taken = bench.spawn("other", "kid", "b").await.unwrap_err();
    assert!(taken.message.contains("already registered"), "it is live: {taken}");
    bench.stop("kid", false).await.unwrap();
    let taken = bench.spawn("other", "kid", "b").await.unwrap_err();
    assert!(taken.message.contains("already registered"), "`e` may restore it: {taken}");
    bench.stop("e", true).await.unwrap();
    let session = bench.host.shared.pod(&name("kid")).unwrap().session;
    bench.spawn("other", "kid", "b").await.unwrap();
    assert_ne!(bench.host.shared.pod(&name("kid")).unwrap().session, session);
    assert_eq!(bench.names(), ["p", "e", "other", "kid"]);
}
