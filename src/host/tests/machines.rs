//! Hosts of several machines, over a real nats-server where there is one.

use crate::host::tests::Bench;
use crate::host::tests::mesh::{send, sent};
use crate::host::tests::pods::{family, name};
use crate::mesh::Status;
use crate::mesh::machines::Credentials;
use crate::mesh::machines::tests::TestServer;
use crate::protocol::mesh::{MachineView, MeshView};
use crate::protocol::method::Addressees;
use crate::protocol::{Event, Fact, Method, SystemItem};
use crate::store::Wanted;
use serde_json::json;
use std::time::Duration;

/// How long a test waits before it says that something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Bench {
    /// A host with one Pod on the mesh, as the machine that the credentials name.
    async fn machine(pod: &str, credentials: &Credentials) -> Self {
        let mut bench = family(&[(pod, None, Wanted::Live)], &[]).await;
        bench.joins(pod).await;
        credentials.write(&bench.host.shared.dirs.state).unwrap();
        bench.until_machine(|view| view.connected).await;
        bench
    }

    /// Waits until what this host says about other machines fits.
    async fn until_machine(&self, fits: impl Fn(&MachineView) -> bool) -> MachineView {
        let machines = &self.host.shared.mesh.machines;
        let until = machines.until(|view| view.as_ref().is_some_and(&fits));
        let view = tokio::time::timeout(PATIENCE, until).await.expect("it fits in time");
        view.expect("a machine")
    }

    async fn sees(&self, machine: &str) {
        self.until_machine(|view| view.machines.iter().any(|name| name == machine)).await;
    }

    /// Sends a message in the name of a Pod: its id, what became of it, and why.
    async fn sends(&self, pod: &str, to: &str, body: &str) -> (String, String, Option<String>) {
        sent(self.call(&name(pod), send(to, body, None)).await.unwrap())
    }

    /// Waits until so many messages of agents wait for a Pod, then has it read them.
    async fn reads_when(&mut self, pod: &str, count: usize) -> Vec<String> {
        let waits = async {
            while self.host.shared.store.agent_messages(&name(pod)).await.unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waits).await.expect("the messages arrive");
        self.turn(pod, "read").await;
        let mut read = self.read_of_agents(pod).await;
        // Not what a person sent in the name of the Pod.
        read.retain(|message| message.starts_with("[agent-network] message from "));
        read
    }
}

#[tokio::test]
async fn pods_of_two_machines_see_each_other_write_and_answer() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let mut here = Bench::machine("alice", &casa).await;
    let mut there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    there.sees("casa").await;
    let Event::Mesh(view) = here.call(&name("alice"), Method::MeshAgents).await.unwrap() else {
        panic!("the reply is the mesh")
    };
    let MeshView { agents, machine, .. } = view;
    assert_eq!(agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["trab:bob"]);
    assert_eq!(machine.map(|machine| machine.name).as_deref(), Some("casa"));
    let (id, status, reason) = here.sends("alice", "trab:bob", "hi\n[Notification]").await;
    assert_eq!((status.as_str(), reason), ("received", None));
    let read = there.reads_when("bob", 1).await;
    let head =
        format!("[agent-network] message from \"casa:alice\" (id={id})\n> hi\n> [Notification]\n");
    assert!(read.len() == 1 && read[0].starts_with(&head), "{read:?}");
    let answer = send("casa:alice", "hi yourself", Some(id.clone()));
    let (_, status, _) = sent(there.call(&name("bob"), answer).await.unwrap());
    assert_eq!(status, "received");
    let read = here.reads_when("alice", 1).await;
    assert!(read[0].contains(&format!("re={id}")), "{read:?}");
    // Its own machine's prefix is no way out of the rules of this host.
    let (_, status, reason) = here.sends("alice", "casa:alice", "hi").await;
    assert_eq!(
        (status.as_str(), reason.as_deref()),
        ("refused", Some("a message to oneself is not sent"))
    );
    for (to, why) in
        [("trab:ghost", "no agent of this name"), ("docs:x", "knows no machine `docs`")]
    {
        let (_, status, reason) = here.sends("alice", to, "hi").await;
        assert!(status == "denied" && reason.clone().unwrap().contains(why), "{to}: {reason:?}");
    }
    let several = Addressees::Many(vec!["trab:bob".into(), "trab:ghost".into()]);
    let several = Method::MeshSend { to: several, body: json!("all"), re: None };
    let (_, status, _) = sent(here.call(&name("alice"), several).await.unwrap());
    assert_eq!(status, "sent");
    assert_eq!(there.reads_when("bob", 1).await.len(), 2);
}

#[tokio::test]
async fn what_was_sent_to_a_machine_that_is_away_arrives_once_and_in_order() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let mut here = Bench::machine("alice", &casa).await;
    let there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    there.host.end().await;
    let away = here.until_machine(|view| view.machines.is_empty()).await;
    assert!(away.connected);
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        let (id, status, reason) = here.sends("alice", "trab:bob", text).await;
        assert_eq!(status, "queued");
        assert_eq!(reason.as_deref(), Some("trab is away; the server holds the message for it"));
        ids.push(id);
    }
    here.sends("alice", "trab:ghost", "hi").await;
    server.end();
    here.until_machine(|view| view.why.is_some()).await;
    server.start_again();
    here.until_machine(|view| view.connected).await;
    let mut there = Bench::at(there._root).await;
    let read = there.reads_when("bob", 3).await;
    assert_eq!(read.len(), 3, "{read:?}");
    for (message, (id, text)) in read.iter().zip(ids.iter().zip(["one", "two", "three"])) {
        assert!(message.contains(id) && message.contains(&format!("\n> {text}\n")), "{message}");
    }
    // The sender learns late what became of each message, and so does its model.
    let refused = here.next(|event| matches!(event, Event::Alert(_))).await;
    let Event::Alert(refused) = refused else { panic!("an alert") };
    assert!(refused.message.contains("\"trab:ghost\" did not take the message"), "{refused:?}");
    here.turn("alice", "and?").await;
    let message = |fact| match fact {
        Fact::SystemItem { item: SystemItem::Notification { message, .. }, .. } => Some(message),
        _ => None,
    };
    let messages = here.facts(&name("alice")).await.into_iter().filter_map(message);
    let late: Vec<String> = messages.filter(|text| text.ends_with("which was queued")).collect();
    let received = |id: &String| {
        format!("[agent-network] \"trab:bob\" received the message {id}, which was queued")
    };
    assert_eq!(late, ids.iter().map(received).collect::<Vec<_>>());
    let mut there = there.restarted().await;
    there.until_machine(|view| view.connected).await;
    there.turn("bob", "again").await;
    assert_eq!(there.read_of_agents("bob").await.len(), 3, "each entered once");
}

#[tokio::test]
async fn agents_of_other_machines_have_the_limits_of_strangers_and_no_local_one_has_their_names() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    let long = "x".repeat(65 * 1024);
    let block = |end| Method::MeshBlock { name: "casa:alice".into(), end };
    there.client.call(None, block(false)).await.unwrap();
    let (_, status, reason) = here.sends("alice", "trab:bob", "hi").await;
    assert!(status == "denied" && reason.unwrap().contains("has blocked `casa:alice`"));
    there.client.call(None, block(true)).await.unwrap();
    let (_, status, reason) = here.sends("alice", "trab:bob", &long).await;
    assert!(status == "refused" && reason.unwrap().contains("at most 64 KiB"));
    there.call(&name("bob"), Method::MeshLeave).await.unwrap();
    let (_, status, _) = here.sends("alice", "trab:bob", "hi").await;
    assert_eq!(status, "denied");
    let agent = here.agent("trab:bob").await;
    let sent = agent.say("alice", "I am bob").await;
    assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("looks like"));
}

#[tokio::test]
async fn without_a_server_everything_local_works_and_the_reason_is_shown() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, old) = (server.admit("casa").await, server.admit("trab").await);
    server.admit("trab").await;
    let mut here = Bench::machine("alice", &casa).await;
    server.end();
    here.until_machine(|view| view.why.is_some()).await;
    let (_, status, reason) = here.sends("alice", "trab:bob", "hi").await;
    assert!(
        status == "refused" && reason.unwrap().starts_with("no other machine can be reached: ")
    );
    let agent = here.agent("pi-1").await;
    assert_eq!(agent.say("alice", "hi").await.status, Status::Received);
    server.start_again();
    here.until_machine(|view| view.connected).await;
    // A key that was replaced is named as the reason, and leaving is noticed, too.
    let state = here.host.shared.dirs.state.clone();
    old.write(&state).unwrap();
    let refused = here.until_machine(|view| view.name == "trab" && view.why.is_some()).await;
    assert!(refused.why.unwrap().contains("does not admit this machine"));
    Credentials::remove(&state).unwrap();
    let left = here.host.shared.mesh.machines.until(|view| view.is_none());
    tokio::time::timeout(PATIENCE, left).await.expect("it is noticed");
    here.turn("alice", "go on").await;
}
