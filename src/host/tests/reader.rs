//! Reading a data directory without a host. The directories of these tests can be written, so that a write would be seen.

use crate::client::{Client, Events};
use crate::host::tests::damage::copy;
use crate::host::tests::family::name;
use crate::host::tests::{Bench, options};
use crate::host::{IdleExit, Reader};
use crate::protocol::event::Line;
use crate::protocol::{Entry, Event, Fact, Method, PodInfo, State};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A reader of a copy of a home, as a host that is killed now leaves it.
struct Read {
    reader: Reader,
    client: Client,
    events: Events,
    root: PathBuf,
    before: Vec<(PathBuf, Option<Vec<u8>>, SystemTime)>,
    _dir: tempfile::TempDir,
}

impl Read {
    async fn killed(bench: &Bench, change: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&bench.root, dir.path());
        let root = dir.path().canonicalize().unwrap();
        change(&root.join("home"));
        let before = everything(&root);
        let reader = Reader::open(options(&root, IdleExit::Never)).await.unwrap();
        let (client, events) = reader.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        Self { reader, client, events, root, before, _dir: dir }
    }

    /// The notices about the data directory, and the Pods.
    async fn family(&mut self) -> (Vec<String>, Vec<PodInfo>) {
        let mut all = Vec::new();
        loop {
            match self.events.recv().await.unwrap().event {
                Event::HostNotices { notices, .. } => all = notices,
                Event::Family { pods, .. } => return (all, pods),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn entries(&self, pod: &str) -> Vec<Entry> {
        let page = Method::Page { before: None, max_bytes: 1 << 20 };
        match self.client.call(Some(&name(pod)), page).await.unwrap() {
            Event::Page { entries, .. } => {
                entries.into_iter().filter_map(Line::into_entry).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Ends the reader. It left no copy of the database, and all of the home as it was.
    async fn end(self) {
        let copy = self.reader.copy.path().to_owned();
        drop(self.client);
        self.reader.end().await;
        assert!(!copy.exists());
        assert!(everything(&self.root) == self.before, "something in the home was changed");
    }
}

/// Every file and directory below this one, with its content and the time of its last change.
fn everything(dir: &Path) -> Vec<(PathBuf, Option<Vec<u8>>, SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        found.push((path.clone(), fs::read(&path).ok(), meta.modified().unwrap()));
        if meta.is_dir() {
            found.extend(everything(&path));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_reader_says_of_an_interrupted_run_what_the_next_host_says_and_changes_nothing() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.end().await;
    bench.call(&pod, Method::say("stuck")).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    // What the next host would remove: a socket, and a session that no Pod has.
    let left = crate::protocol::SessionId::new();
    bench.host.shared.store.discard(left).await.unwrap();
    let mut read = Read::killed(&bench, |home| {
        fs::create_dir_all(home.join("data/sessions").join(left.to_string())).unwrap();
        fs::create_dir_all(home.join("run/gone")).unwrap();
        fs::write(home.join("run/gone/sock"), "").unwrap();
    })
    .await;
    let (notices, pods) = read.family().await;
    assert_eq!(notices, [""; 0]);
    let next = bench.killed_and(|_| {}).await;
    let as_next = next.info(&pod).await;
    assert_eq!((pods[0].state, &pods[0].why), (State::Paused, &as_next.why));
    assert_eq!((pods.len(), &pods[0].name, pods[0].since), (1, &pod, as_next.since));
    let inputs = |entries: &[Entry]| {
        entries.iter().filter(|entry| matches!(entry.fact, Fact::UserInput { .. })).count()
    };
    assert_eq!(inputs(&read.entries("w").await), 2);
    read.end().await;
    bench.host.end().await;
}

#[tokio::test]
async fn a_reader_of_a_damaged_database_rebuilds_its_copy_and_says_so() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.end().await;
    let rubbish = "this is no database ".repeat(500);
    let mut read = Read::killed(&bench, |home| {
        fs::write(home.join("data/yoi.db"), rubbish).unwrap();
    })
    .await;
    let (notices, pods) = read.family().await;
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.starts_with("the database was damaged; 1 pod was rebuilt"), "{notice}");
    assert_eq!((pods.len(), &pods[0].name, pods[0].state), (1, &pod, State::Stopped));
    assert!(!read.entries("w").await.is_empty());
    read.end().await;
    bench.host.end().await;
}
