//! What a killed host began and did not finish, and what the next one makes of it.

use crate::host::tests::Bench;
use crate::host::tests::family::name;
use crate::protocol::{Event, Method, State};
use std::path::PathBuf;

impl Bench {
    fn session(&self, pod: &str) -> PathBuf {
        let session = self.host.shared.pod(&name(pod)).unwrap().session;
        self.root.join("home/data/sessions").join(session.to_string())
    }

    /// As a host leaves it that is killed before this Pod was finished.
    async fn unfinished(&self, pod: &str) {
        let session = self.host.shared.pod(&name(pod)).unwrap().session;
        self.host.shared.store.discard(session).await.unwrap();
    }

    async fn marks(&self) -> usize {
        self.host.shared.store.discards().await.unwrap().len()
    }
}

#[tokio::test]
async fn a_child_without_its_task_is_gone_after_a_start_with_everything_it_had() {
    let bench = Bench::family().await;
    bench.call(&name("p"), Method::SetModel { model: "anthropic/claude-x".into() }).await.unwrap();
    let info = bench.root_pod("kid", "w/a").await;
    let store = bench.host.shared.store.clone();
    let mut row = store.pod(&info.name).await.unwrap().unwrap();
    bench.stop("kid", false).await.unwrap();
    bench.call(&info.name, Method::Remove).await.unwrap();
    row.parent = Some(name("p"));
    store.create_pod(row.clone()).await.unwrap();
    store.discard(row.session).await.unwrap();
    let files = crate::session::Files::new(&bench.root.join("home/data"), row.session);
    std::fs::create_dir_all(files.dir()).unwrap();
    std::fs::create_dir_all(bench.root.join("home/run/kid")).unwrap();
    std::fs::write(bench.root.join("home/run/kid/sock"), "").unwrap();
    let bench = bench.restarted().await;
    assert!(bench.host.shared.pod(&name("kid")).is_none());
    assert_eq!(bench.host.shared.store.pod(&name("kid")).await.unwrap(), None);
    assert_eq!(bench.host.shared.store.leases().await.unwrap(), []);
    assert_eq!(bench.writers("a/x"), ["p"]);
    assert!(!files.dir().exists());
    assert!(!bench.root.join("home/run/kid").exists());
    assert_eq!(bench.marks().await, 0);
}

#[tokio::test]
async fn a_child_that_has_its_task_is_kept_although_its_host_did_not_live_to_say_so() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.is(&name("kid"), State::Idle).await;
    assert_eq!(bench.marks().await, 0, "who has its task is nobody's no more");
    bench.unfinished("kid").await;
    let mut bench = bench.restarted().await;
    bench.is(&name("kid"), State::Idle).await;
    assert_eq!(bench.said(&name("kid")).await, ["You said begin."]);
    assert_eq!(bench.marks().await, 0);
}

#[tokio::test]
async fn a_listed_fork_is_kept_also_without_a_message() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.end().await;
    bench.is(&name("p"), State::Idle).await;
    let fork = Method::Fork { name: Some(name("f")), at: None };
    let Event::Created { .. } = bench.call(&name("p"), fork).await.unwrap() else { panic!() };
    assert_eq!(bench.marks().await, 0);
    bench.unfinished("f").await;
    let mut bench = bench.restarted().await;
    bench.is(&name("f"), State::Idle).await;
    assert_eq!(bench.said(&name("f")).await, ["You said one."]);
}

#[tokio::test]
async fn a_fork_of_a_log_that_is_gone_is_refused_and_leaves_nothing() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.end().await;
    bench.is(&name("p"), State::Idle).await;
    std::fs::remove_dir_all(bench.session("p")).unwrap();
    bench.call(&name("p"), Method::Fork { name: None, at: None }).await.unwrap_err();
    assert_eq!(std::fs::read_dir(bench.root.join("home/data/sessions")).unwrap().count(), 0);
    assert_eq!(bench.marks().await, 0);
    assert_eq!(bench.host.shared.family().len(), 1);
}

#[tokio::test]
async fn a_discardable_session_is_deleted_at_the_next_start_and_no_other() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.end().await;
    let kept = bench.session("p");
    let files = crate::session::Files::new(
        &bench.root.join("home/data"),
        crate::protocol::SessionId::new(),
    );
    let session = files.dir().file_name().unwrap().to_str().unwrap().parse().unwrap();
    std::fs::create_dir_all(files.blobs()).unwrap();
    std::fs::write(files.dir().join("half.jsonl"), "{").unwrap();
    bench.host.shared.store.discard(session).await.unwrap();
    let bench = bench.restarted().await;
    assert!(!files.dir().exists());
    assert!(kept.exists());
    assert_eq!(bench.marks().await, 0);
}

#[tokio::test]
async fn files_that_cannot_be_deleted_are_said_and_tried_again_at_the_next_start() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.end().await;
    let (session, aside) = (bench.session("p"), bench.root.join("aside"));
    bench.stop("p", false).await.unwrap();
    // A file in the place of the directory is none that can be emptied.
    std::fs::rename(&session, &aside).unwrap();
    std::fs::write(&session, "").unwrap();
    let refusal = bench.call(&name("p"), Method::Remove).await.unwrap_err().message;
    assert!(refusal.starts_with("p is gone, but cannot delete "), "{refusal}");
    assert!(refusal.ends_with("; the next start tries again"), "{refusal}");
    assert!(bench.host.shared.pod(&name("p")).is_none());
    std::fs::remove_file(&session).unwrap();
    std::fs::rename(&aside, &session).unwrap();
    let bench = bench.restarted().await;
    assert!(!session.exists());
    assert_eq!(bench.marks().await, 0);
}
