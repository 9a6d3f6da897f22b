//! A host whose lock, data directory or database is deleted, moved or replaced under it.

use crate::client::find;
use crate::host::tests::{Bench, start, try_start};
use crate::host::{Ending, HostError, HostLockError};
use crate::protocol::{Event, Method};
use std::fs;
use std::path::PathBuf;

impl Bench {
    fn data(&self) -> PathBuf {
        self.host.shared.dirs.data.clone()
    }

    /// Waits until the host ends by itself, and returns why; every screen was given the reason.
    async fn ends_and_says_why(&mut self) -> String {
        let notices = self.next(|event| matches!(event, Event::HostNotices { .. })).await;
        let Event::HostNotices { notices, .. } = notices else { unreachable!() };
        let Ending::Failed(why) = self.host.ended().await else { panic!("nobody asked for it") };
        assert!(notices.contains(&why), "{notices:?}");
        while self.events.recv().await.is_some() {}
        why
    }
}

#[tokio::test]
async fn a_host_whose_lock_file_is_deleted_lets_no_other_host_in_and_ends() {
    let mut bench = Bench::new().await;
    fs::remove_file(find::lock_file(&bench.data())).unwrap();
    let second = try_start(&bench.root).await.err();
    let refused = matches!(
        second,
        Some(HostError::HostLock(HostLockError::Taken { .. } | HostLockError::Ending { .. }))
    );
    assert!(refused, "{second:?}");
    let why = bench.ends_and_says_why().await;
    assert!(why.contains("host.lock") && why.contains("was deleted or moved"), "{why}");
    bench.host.end().await;
    start(&bench.root).await.end().await;
}

#[tokio::test]
async fn a_host_whose_data_directory_is_moved_ends_and_touches_nothing_of_the_next_host() {
    let mut bench = Bench::new().await;
    let (data, moved) = (bench.data(), bench.root.join("moved"));
    fs::rename(&data, &moved).unwrap();
    let next = start(&bench.root).await;
    let why = bench.ends_and_says_why().await;
    assert!(why.contains(&data.display().to_string()), "{why}");
    bench.host.end().await;
    assert!(moved.join("yoi.db").exists(), "what the first host wrote is there");
    let holder = find::holder(&data).expect("the next host holds its lock");
    assert!(holder.socket.exists(), "the next host has its socket");
    let (client, _events) = find::connect(&data).await.unwrap().expect("it can be reached");
    client.call(None, Method::HostStatus).await.unwrap();
    next.end().await;
}

#[tokio::test]
async fn a_host_whose_database_is_replaced_writes_to_neither_and_ends() {
    let (mut bench, pod) = Bench::scripted().await;
    let (database, kept) = (bench.data().join("yoi.db"), bench.data().join("kept.db"));
    fs::rename(&database, kept).unwrap();
    fs::write(&database, "another one").unwrap();
    let refused = bench.call(&pod, Method::SetModel { model: "anthropic/x".into() }).await;
    assert!(refused.is_err(), "{refused:?}");
    let why = bench.ends_and_says_why().await;
    assert!(why.contains("its database was replaced"), "{why}");
    assert_eq!(fs::read_to_string(&database).unwrap(), "another one");
    bench.host.end().await;
}

#[tokio::test]
async fn a_pod_that_stops_leaves_a_socket_alone_that_another_host_put_in_its_place() {
    let (bench, pod) = Bench::scripted().await;
    let socket = bench.host.shared.sockets().socket(pod.as_str());
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "another one").unwrap();
    bench
        .call(&pod, Method::StopPods { tree: false, unless_busy: false, silent: false })
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(&socket).unwrap(), "another one");
}
