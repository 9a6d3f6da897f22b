//! Machines and their server: a real nats-server on the loopback, where there is one.

mod attacks;

use crate::mesh::Id;
use crate::mesh::machines::server::ServerDir;
use crate::mesh::machines::subject::IN_FLIGHT;
use crate::mesh::machines::{
    Arrived, Credentials, Fate, Incoming, Link, LinkError, MachineName, Message, NotStored,
    Outcome, Presence, admitted, connect,
};
use futures_util::future::join_all;
use serde_json::value::to_raw_value;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a test waits before it says that the server hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub(crate) struct TestServer {
    process: Child,
    pub(crate) dir: ServerDir,
    _temp: Option<tempfile::TempDir>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.end();
    }
}

impl TestServer {
    /// A new server; `None`: the program is not installed, which is said.
    pub(crate) fn start() -> Option<Self> {
        let temp = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = ServerDir::init(temp.path(), Some(&format!("127.0.0.1:{port}"))).unwrap();
        let process = run(&dir)?;
        Some(Self { process, dir, _temp: Some(temp) })
    }

    pub(crate) async fn admit(&mut self, machine: &str) -> Credentials {
        self.dir.add(name(machine)).await.unwrap()
    }

    pub(crate) fn end(&mut self) {
        // SIGKILL; it may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub(crate) fn start_again(&mut self) {
        self.process = run(&self.dir).unwrap();
    }
}

/// Starts the server of a directory, and waits until it is ready.
fn run(dir: &ServerDir) -> Option<Child> {
    // Debian's package puts it where not every user has a path to.
    let programs = [PathBuf::from("nats-server"), PathBuf::from("/usr/sbin/nats-server")];
    let start = |program: &PathBuf| {
        let mut command = Command::new(program);
        command.arg("-c").arg(dir.configuration());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()
    };
    let Some(mut process) = programs.iter().find_map(start) else {
        eprintln!("skipped: nats-server is not installed (Debian: apt-get install nats-server)");
        return None;
    };
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let ready = lines.find(|line| line.as_ref().unwrap().contains("Server is ready"));
    assert!(ready.is_some(), "the server did not start: {}", dir.configuration().display());
    // It must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some(process)
}

pub(crate) fn name(text: &str) -> MachineName {
    MachineName::parse(text).unwrap()
}

fn message(text: &str) -> Message {
    let body = to_raw_value(text).unwrap();
    let id = Id::new().to_string();
    Message { from: "alice".into(), to: "bob".into(), id, re: None, body, peering: None }
}

/// What arrives next.
async fn next(incoming: &mut Incoming) -> Arrived {
    let next = tokio::time::timeout(PATIENCE, incoming.next()).await.expect("something arrives");
    next.expect("the connection holds")
}

/// Takes and acknowledges the next message.
async fn take(link: &Link, incoming: &mut Incoming) -> (String, String) {
    loop {
        if let Arrived::Message { from, message, receipt } = next(incoming).await {
            link.acknowledge(receipt).await;
            return (from.to_string(), message.body.get().to_owned());
        }
    }
}

#[tokio::test]
async fn messages_wait_for_a_machine_that_is_away_and_for_a_server_that_was_killed() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (sender, _incoming) = connect(&casa).await.unwrap();
    for number in 0..20 {
        sender.send(&name("trab"), &message(&number.to_string())).await.unwrap();
    }
    assert_eq!(
        sender.send(&name("docs"), &message("x")).await,
        Err(NotStored::NoSuchMachine(name("docs")))
    );
    let large = message(&"x".repeat(1 << 20));
    let refused = sender.send(&name("trab"), &large).await.unwrap_err().to_string();
    assert!(refused.ends_with("and the server takes at most 131072"), "{refused}");
    server.end();
    server.start_again();
    let (link, mut incoming) = connect(&trab).await.unwrap();
    for number in 0..10 {
        let expected = ("casa".to_owned(), format!("\"{number}\""));
        assert_eq!(take(&link, &mut incoming).await, expected);
    }
    // One that was handed over and not acknowledged comes first on the next connection.
    let Arrived::Message { message, .. } = next(&mut incoming).await else { panic!("a message") };
    assert_eq!(message.body.get(), "\"10\"");
    // The server has the acknowledgements before the connection ends.
    link.leave().await;
    drop((link, incoming));
    let (link, mut incoming) = connect(&trab).await.unwrap();
    for number in 10..20 {
        let expected = ("casa".to_owned(), format!("\"{number}\""));
        assert_eq!(take(&link, &mut incoming).await, expected);
    }
}

#[tokio::test]
async fn many_messages_are_on_their_way_before_the_first_one_is_acknowledged() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (sender, _incoming) = connect(&casa).await.unwrap();
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let messages: Vec<Message> = (0..2 * IN_FLIGHT).map(|at| message(&at.to_string())).collect();
    let trab = name("trab");
    let sent = join_all(messages.iter().map(|message| sender.send(&trab, message))).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    let mut receipts = VecDeque::new();
    for expected in &messages {
        if receipts.len() == IN_FLIGHT {
            assert!(incoming.try_next().is_none(), "no more without an acknowledgement");
            link.acknowledge(receipts.pop_front().unwrap()).await;
        }
        let Arrived::Message { message, receipt, .. } = next(&mut incoming).await else {
            panic!("a message")
        };
        assert_eq!(message.id, expected.id);
        receipts.push_back(receipt);
    }
    let places: Vec<u64> = receipts.iter().map(|receipt| receipt.place).collect();
    let last = 2 * IN_FLIGHT as u64;
    assert_eq!(places, (last - IN_FLIGHT as u64 + 1..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_sender_learns_what_became_of_a_message_also_later() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (sender, incoming) = connect(&casa).await.unwrap();
    let sent = message("hi");
    sender.send(&name("trab"), &sent).await.unwrap();
    drop((sender, incoming));
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let Arrived::Message { from, message, receipt } = next(&mut incoming).await else {
        panic!("a message")
    };
    let outcome = Outcome {
        id: message.id.clone(),
        to: message.from,
        from: message.to,
        fate: Fate::Denied,
        reason: Some("no".into()),
    };
    link.decided(&from, &outcome, receipt).await;
    let (_sender, mut incoming) = connect(&casa).await.unwrap();
    let Arrived::Outcome { from, outcome: learned, .. } = next(&mut incoming).await else {
        panic!("an outcome")
    };
    assert_eq!((from, learned), (name("trab"), outcome));
}

#[tokio::test]
async fn each_machine_learns_which_agents_the_others_have() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (link, mut own) = connect(&casa).await.unwrap();
    let (of_trab, mut incoming) = connect(&trab).await.unwrap();
    // The server answers when it knows the subscriptions that were made before.
    of_trab.send(&name("trab"), &message("to myself")).await.unwrap();
    assert!(matches!(next(&mut incoming).await, Arrived::Message { .. }));
    let presence = Presence { agents: vec!["alice".into()], solicits: true, ..Presence::default() };
    link.announce(presence.clone()).await;
    link.leave().await;
    for expected in [presence, Presence { leaves: true, ..Presence::default() }] {
        let Arrived::Presence { from, presence } = next(&mut incoming).await else {
            panic!("a presence")
        };
        let expected = Presence { connection: presence.connection.clone(), ..expected };
        assert_eq!((from, presence), (name("casa"), expected));
    }
    // What a machine says of itself does not come back to it.
    link.send(&name("casa"), &message("to myself")).await.unwrap();
    assert!(matches!(next(&mut own).await, Arrived::Message { .. }));
}

#[tokio::test]
async fn a_machine_learns_that_another_connection_has_its_name() {
    let Some(mut server) = TestServer::start() else { return };
    let casa = server.admit("casa").await;
    let (link, mut incoming) = connect(&casa).await.unwrap();
    let (twin, mut of_twin) = connect(&casa).await.unwrap();
    // The server answers when it knows the subscriptions that were made before.
    for link in [&link, &twin] {
        link.send(&name("casa"), &message("to myself")).await.unwrap();
    }
    link.announce(Presence::default()).await;
    twin.announce(Presence::default()).await;
    for incoming in [&mut incoming, &mut of_twin] {
        while !matches!(next(incoming).await, Arrived::SameName) {}
    }
}

#[tokio::test]
async fn the_others_learn_that_a_machine_was_removed() {
    let Some(mut server) = TestServer::start() else { return };
    server.admit("casa").await;
    let trab = server.admit("trab").await;
    let (link, mut incoming) = connect(&trab).await.unwrap();
    // As above.
    link.send(&name("trab"), &message("to myself")).await.unwrap();
    assert!(matches!(next(&mut incoming).await, Arrived::Message { .. }));
    server.dir.remove(&name("casa")).await.unwrap();
    let Arrived::Presence { from, presence } = next(&mut incoming).await else {
        panic!("a presence")
    };
    assert!(from == name("casa") && presence.leaves, "{from} {presence:?}");
}

#[tokio::test]
async fn a_key_that_is_wrong_replaced_or_removed_is_refused_with_a_sentence() {
    let Some(mut server) = TestServer::start() else { return };
    let old = server.admit("casa").await;
    let (_link, mut incoming) = connect(&old).await.unwrap();
    let new = server.admit("casa").await;
    assert!(incoming.next().await.is_none(), "the connection with the old key ends");
    let refused = Err(LinkError::Refused(old.server.clone()));
    assert_eq!(admitted(&old).await, refused);
    assert_eq!(admitted(&new).await, Ok(()));
    server.dir.remove(&name("casa")).await.unwrap();
    assert_eq!(admitted(&new).await, refused);
    let mut other = TestServer::start().unwrap();
    let stranger = other.admit("casa").await;
    let here = Credentials { server: old.server.clone(), ..stranger.clone() };
    assert_eq!(admitted(&here).await, Err(LinkError::OtherServer(old.server.clone())));
    other.end();
    let unreachable = admitted(&stranger).await.unwrap_err();
    assert!(matches!(unreachable, LinkError::Unreachable(..)), "{unreachable}");
}
