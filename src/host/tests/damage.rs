//! Damage of the store: what was not damaged is there, and what is lost is said on every screen.

use crate::host::tests::family::name;
use crate::host::tests::{Bench, run_end};
use crate::protocol::{Event, Method, State};
use std::fs;
use std::path::{Path, PathBuf};

impl Bench {
    fn store_file(&self, name: &str) -> PathBuf {
        self.host.shared.dirs.data.join(name)
    }

    /// What a screen that connects now has to show of the host.
    async fn host_notices(&self) -> Vec<String> {
        let (client, mut events) = self.host.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        match events.recv().await.unwrap().event {
            Event::HostNotices { notices } => notices,
            Event::Family { .. } => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    async fn states(&self) -> Vec<(String, State)> {
        let family = self.host.shared.family().into_iter();
        family.map(|info| (info.name.to_string(), info.state)).collect()
    }

    /// A host over a copy of the files, as a host that is killed now leaves them, with `change` made
    /// to the copy.
    async fn killed_and(&self, change: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&self.root, dir.path());
        let root = dir.path().canonicalize().unwrap();
        change(&root.join("home/data"));
        Self::at(dir).await
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn what_the_rebuild_of_a_damaged_database_lost_is_said_until_its_report_is_deleted() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let rubbish = "this is no database ".repeat(500);
    let database = bench.store_file("yoi.db");
    let bench = bench.damaged_while_away(|_| fs::write(&database, &rubbish).unwrap()).await;
    assert_eq!(bench.states().await, [("w".into(), State::Stopped)]);
    assert_eq!(bench.said(&pod).await, ["You said one."]);
    let notices = bench.host_notices().await;
    let aside = bench.store_file("yoi.db.damaged");
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    for part in [&aside.display().to_string(), "1 pod was rebuilt", "peers", "queued messages"] {
        assert!(notice.contains(part), "{notice}");
    }
    assert_eq!(fs::read_to_string(aside).unwrap(), rubbish);
    let bench = bench.restarted().await;
    assert_eq!(bench.host_notices().await, notices, "the next host says it again");
    fs::remove_file(bench.store_file("yoi.db.damaged.report.txt")).unwrap();
    assert_eq!(bench.restarted().await.host_notices().await, [""; 0]);
}

#[tokio::test]
async fn the_log_of_a_database_that_is_gone_is_kept_and_named() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let log = fs::read(bench.store_file("yoi.db-wal")).unwrap();
    let next = bench.killed_and(|data| fs::remove_file(data.join("yoi.db")).unwrap()).await;
    let kept = next.store_file("yoi.db-wal.orphaned");
    assert!(fs::read(&kept).unwrap().starts_with(&log[..32]), "the log is kept");
    let notices = next.host_notices().await;
    assert!(notices[0].contains(&kept.display().to_string()), "{notices:?}");
    assert_eq!(next.said(&pod).await, ["You said one."]);
}

#[tokio::test]
async fn a_damaged_write_ahead_log_is_said_and_the_pods_that_it_knew_are_rebuilt() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let next = bench.killed_and(|data| flip(&data.join("yoi.db-wal"), 32 + 24 + 5)).await;
    let notices = next.host_notices().await;
    let kept = next.store_file("yoi.db-wal.damaged");
    assert!(notices[0].contains(&kept.display().to_string()), "{notices:?}");
    assert_eq!(next.said(&pod).await, ["You said one."]);
}

#[tokio::test]
async fn a_pod_whose_record_is_damaged_is_listed_says_why_and_can_be_deleted() {
    let bench = Bench::family().await;
    bench.root_pod("q", "other").await;
    let bench = bench
        .damaged_while_away(|root| {
            let db = rusqlite::Connection::open(root.join("home/data/yoi.db")).unwrap();
            db.execute_batch("UPDATE pods SET scope = '{' WHERE key = 'q'").unwrap();
        })
        .await;
    let damaged = bench.info(&name("q")).await;
    assert_eq!(damaged.state, State::Damaged);
    assert_eq!(damaged.workspace, bench.root.join("other"));
    let why = damaged.why.unwrap();
    assert!(why.contains("scope") && why.contains(":rm q"), "{why}");
    for method in [Method::say("x"), Method::StopPods { tree: false }] {
        let refused = bench.call(&name("q"), method).await.unwrap_err();
        assert!(refused.message.contains("record of pod `q` is damaged"), "{refused}");
    }
    bench.call(&name("q"), Method::Remove).await.unwrap();
    assert_eq!(bench.states().await, [("p".into(), State::Idle)]);
}

#[tokio::test]
async fn a_circle_of_parents_in_the_database_is_cut_and_said_and_every_walk_ends() {
    let mut bench = Bench::family().await;
    for (pod, dir) in [("a", "a"), ("b", "b")] {
        bench.spawn("p", pod, dir).await.unwrap();
        bench.is(&name(pod), State::Idle).await;
    }
    let bench = bench
        .damaged_while_away(|root| {
            let db = rusqlite::Connection::open(root.join("home/data/yoi.db")).unwrap();
            db.execute_batch(
                "UPDATE pods SET parent = 'b' WHERE key = 'a';
                 UPDATE pods SET parent = 'a' WHERE key = 'b';
                 UPDATE pods SET parent = 'p' WHERE key = 'p';",
            )
            .unwrap();
        })
        .await;
    let parents = bench.host.shared.family().into_iter();
    let parents: Vec<_> = parents.map(|info| info.parent.map(|name| name.to_string())).collect();
    assert_eq!(parents, [None, None, Some("a".into())], "the oldest of a circle has none");
    let notices = bench.host_notices().await;
    assert!(notices.iter().any(|notice| notice.contains("`a` below itself")), "{notices:?}");
    for tree in [true, false] {
        bench.call(&name("b"), Method::StopPods { tree }).await.unwrap();
        bench.call(&name("a"), Method::StopPods { tree }).await.unwrap();
        let restore = Method::RestorePods { tree, plan: false };
        bench.call(&name("a"), restore.clone()).await.unwrap();
        bench.call(&name("b"), restore).await.unwrap();
    }
    bench.client.call(None, Method::ListPods).await.unwrap();
    let bench = bench.restarted().await;
    assert_eq!(bench.host_notices().await, [""; 0], "the database is whole again");
}

#[tokio::test]
async fn a_failed_pod_can_be_restored_wherever_that_is_said() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.is(&name("kid"), State::Idle).await;
    let panic = crate::host::pod::PodRequest::Panic;
    bench.host.shared.pod(&name("kid")).unwrap().requests.send(panic).await.unwrap();
    bench.is(&name("kid"), State::Failed).await;
    let listed = bench.client.call(None, Method::ListPods).await.unwrap();
    let Event::PodsListed { pods } = listed else { panic!("{listed:?}") };
    let kid = pods.iter().find(|pod| pod["pod_name"] == "kid").unwrap();
    assert_eq!(kid["restore"]["possible"], true, "{kid}");
    let refused = bench.call(&name("kid"), Method::say("x")).await.unwrap_err();
    assert!(refused.message.contains(":restore kid"), "{refused}");
    let restore = Method::RestorePods { tree: true, plan: false };
    let reply = bench.call(&name("p"), restore).await.unwrap();
    assert!(matches!(reply, Event::Plan { done: true, .. }), "{reply:?}");
    bench.is(&name("kid"), State::Idle).await;
}
