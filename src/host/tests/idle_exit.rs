//! The end of a host that `yoi -p` or another brief client started.

use crate::client::{Client, ConnectError, Events, find};
use crate::host::idle_exit::end_with_last_client;
use crate::host::tests::start_as;
use crate::host::{Ending, Host, IdleExit};
use crate::protocol::{ClientKind, Method};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixStream;

const PATIENCE: Duration = Duration::from_secs(60);

type Connected = (Client, Events);

/// A host, and the brief client that started it.
async fn started() -> (TempDir, Host, Connected) {
    let root = tempfile::tempdir().unwrap();
    let host = start_as(root.path(), IdleExit::WithLastClient).await.unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    host.serve_starter(theirs);
    let first = Client::over_socket_of(std::process::id(), ours, ClientKind::Brief).await.unwrap();
    (root, host, first)
}

async fn ends(host: &Host) {
    let ended = tokio::time::timeout(PATIENCE, host.ended()).await;
    assert_eq!(ended.expect("it ends"), Ending::Asked);
}

#[tokio::test]
async fn a_host_ends_with_the_last_of_its_brief_clients_and_takes_no_more() {
    let (_root, host, first) = started().await;
    let second = find::connect(&host.shared.dirs.data).await.unwrap().expect("a host");
    drop(first);
    second.0.call(None, Method::HostStatus).await.unwrap();
    assert_eq!(*host.shared.ending.borrow(), None);
    drop(second);
    ends(&host).await;
    assert!(matches!(host.client().await, Err(ConnectError::Closed)));
    host.end().await;
}

#[tokio::test]
async fn a_lasting_client_keeps_a_host_that_a_brief_one_started() {
    let (_root, host, first) = started().await;
    let dashboard = host.client().await.unwrap();
    drop((first, dashboard));
    let shared = host.shared.clone();
    let decided = tokio::time::timeout(PATIENCE, end_with_last_client(shared)).await;
    decided.expect("the host was kept or has ended");
    assert_eq!(*host.shared.ending.borrow(), None);
    host.end().await;
}
