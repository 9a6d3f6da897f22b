//! Hosts of several machines, over a real nats-server where there is one.

use crate::host::tests::Bench;
use crate::host::tests::mesh::{Agent, send, sent};
use crate::host::tests::pods::{family, name};
use crate::mesh::machines::tests::TestServer;
use crate::mesh::machines::{
    Arrived, Credentials, Fate, Incoming, Link, MachineName, Message, Outcome, Peering, Presence,
    connect,
};
use crate::mesh::{Id, Options, Received, Sent, Socket, Status};
use crate::protocol::mesh::{MachineMessage, MachineView, MeshAgent, MeshView, MessageState};
use crate::protocol::method::{Addressees, NewPod};
use crate::protocol::{
    ApprovalRequest, Event, Fact, Method, PodInfo, Refusal, State, SystemItem, Verdict,
};
use crate::store::{MachinePeer, Wanted};
use crate::trace::tests::capture;
use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::time::Duration;

const NO_AGENT: &str = "no agent of this name takes messages of other machines";
/// How long a test waits before it says that something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Bench {
    /// A host with one Pod on the mesh, as the machine that the credentials name.
    async fn machine(pod: &str, credentials: &Credentials) -> Self {
        Self::machine_with("", pod, credentials).await
    }

    /// The same with these settings of the mesh.
    async fn machine_with(settings: &str, pod: &str, credentials: &Credentials) -> Self {
        let mut bench = family(&[(pod, None, Wanted::Live)], &[]).await;
        let config = bench.root.join("home/config/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(config, format!("[mesh]\n{settings}\n")).unwrap();
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

    /// Changes the database of this host behind its back.
    fn changes_database(&self, sql: &str) {
        let path = self.host.shared.dirs.data.join("yoi.db");
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    async fn sees(&self, machine: &str) {
        self.until_machine(|view| view.machines.iter().any(|name| name == machine)).await;
    }

    /// Sends a message in the name of a Pod: its id, what became of it, and why.
    async fn sends(&self, pod: &str, to: &str, body: &str) -> (String, String, Option<String>) {
        sent(self.call(&name(pod), send(to, body, None)).await.unwrap())
    }

    /// Has a Pod ask an agent of another machine: what became of it, or why not.
    async fn peers(&self, pod: &str, agent: &str) -> Result<String, String> {
        match self.call(&name(pod), Method::Peer { name: agent.into() }).await {
            Ok(Event::MeshSent { status, .. }) => Ok(status),
            Ok(Event::Mesh(_)) => Ok("peers".into()),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.message),
        }
    }

    /// What is listed of an agent that is a peer of a Pod.
    async fn peer_of(&self, pod: &str, agent: &str) -> Option<MeshAgent> {
        let view = self.call(&name(pod), Method::MeshAgents).await.unwrap();
        let Event::Mesh(MeshView { agents, .. }) = view else { panic!("the reply is the mesh") };
        agents.into_iter().find(|found| found.name == agent && !found.peers.is_empty())
    }

    /// Waits until what is stored about pairs of peers fits.
    async fn until_pairs(&self, fits: impl Fn(&[MachinePeer]) -> bool) {
        let fitting = async {
            while !fits(&self.host.shared.store.machine_peers().await.unwrap()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, fitting).await.expect("they fit in time");
    }

    async fn until_peers(&self, pod: &str, agent: &str) {
        let peers = async {
            while self.peer_of(pod, agent).await.is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, peers).await.expect("they become peers");
    }

    /// Waits for the request of an agent.
    async fn request_of(&self, agent: &str) -> ApprovalRequest {
        let is_its = |request: &ApprovalRequest| request.agent.as_deref() == Some(agent);
        let mut all = self.host.shared.approvals.subscribe();
        let waits = all.wait_for(|all| all.iter().any(is_its));
        let all = tokio::time::timeout(PATIENCE, waits).await.expect("a request").unwrap();
        all.iter().find(|request| is_its(request)).unwrap().clone()
    }

    async fn decides(&self, request: &ApprovalRequest, verdict: Verdict) {
        self.call_host(Method::Decide { approval: request.id.clone(), verdict }).await.unwrap();
    }

    async fn call_host(&self, method: Method) -> Result<Event, Refusal> {
        self.client.call(None, method).await
    }

    /// The text of the next alert, once something else is done.
    async fn next_after(&mut self, done: impl Future<Output = ()>) -> String {
        done.await;
        let alert = self.next(|event| matches!(event, Event::Alert(_))).await;
        let Event::Alert(alert) = alert else { panic!("an alert") };
        alert.message
    }

    /// Ends the host; its directory.
    async fn leaves(self) -> tempfile::TempDir {
        self.host.end().await;
        self._root
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

fn machine(text: &str) -> MachineName {
    MachineName::parse(text).unwrap()
}

/// The reason of the next outcome that denies something.
async fn outcome(link: &Link, incoming: &mut Incoming) -> Option<String> {
    next_outcome(link, incoming).await.reason
}

async fn next_outcome(link: &Link, incoming: &mut Incoming) -> Outcome {
    loop {
        let arrived = tokio::time::timeout(PATIENCE, incoming.next()).await.expect("in time");
        if let Arrived::Outcome { outcome, receipt, .. } = arrived.unwrap() {
            link.acknowledge(receipt).await;
            return outcome;
        }
    }
}

impl Agent {
    /// The next message to this agent: its sender, what it answers, and its body.
    async fn hears(&mut self) -> (String, Option<Id>, String) {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.inbox.next()).await.expect("in time");
            if let Received::Message(message) = next.unwrap() {
                return (message.from, message.re, message.body.get().to_owned());
            }
        }
    }

    /// Writes to an agent of another machine, once there is a gateway: what became of that.
    async fn reaches(&self, to: &str) -> Sent {
        let says = async {
            loop {
                let sent = self.say(to, "hi").await;
                let reason = sent.reason.as_deref().unwrap_or_default();
                if !reason.contains("while a Pod of this one") {
                    return sent;
                }
            }
        };
        tokio::time::timeout(PATIENCE, says).await.expect("it reaches it in time")
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
    // It is one machine, so its clocks agree but for the time that a message takes.
    let view = here.until_machine(|view| view.clock_ms.is_some()).await;
    assert!(view.clock_ms.is_some_and(|ahead| ahead.abs() < 3_000), "{view:?}");
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
    // It was given to the model of its Pod, which its sender learns.
    let is_read =
        |message: &MachineMessage| message.id == id && message.state == MessageState::Read;
    let view = here.until_machine(|view| view.messages.iter().any(is_read)).await;
    assert_eq!((view.messages.len(), view.messages[0].to.as_str()), (1, "trab:bob"));
    let shown = here.next(|event| matches!(event, Event::Machine { machine: Some(view) } if view.messages.iter().any(is_read)));
    tokio::time::timeout(PATIENCE, shown).await.expect("screens are shown it");
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
    // A broadcast stays on its machine.
    let broadcast =
        Method::MeshSend { to: Addressees::One("broadcast".into()), body: json!("hi"), re: None };
    assert_eq!(sent(here.call(&name("alice"), broadcast).await.unwrap()).1, "sent");
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
async fn what_a_lost_connection_mixes_up_arrives_once_and_in_order() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (link, _incoming) = connect(&casa).await.unwrap();
    let (of_trab, mut incoming) = connect(&trab).await.unwrap();
    let send = async |number: u32| {
        let body = to_raw_value(&number.to_string()).unwrap();
        let (from, to, id) = ("alice".into(), "bob".into(), Id::new().to_string());
        let message = Message { from, to, id, re: None, body, peering: None };
        link.send(&machine("trab"), &message).await.unwrap();
    };
    for number in 0..10 {
        send(number).await;
    }
    // Handed over and not acknowledged: the server repeats these after it has gone on with the others.
    for _ in 0..10 {
        let arrived = tokio::time::timeout(PATIENCE, incoming.next()).await.expect("in time");
        assert!(matches!(arrived, Some(Arrived::Message { .. })));
    }
    drop((of_trab, incoming));
    for number in 10..20 {
        send(number).await;
    }
    let mut there = Bench::machine("bob", &trab).await;
    let read = there.reads_when("bob", 20).await;
    let said = |message: &String| message.lines().nth(1).unwrap().to_owned();
    let expected: Vec<String> = (0..20).map(|number| format!("> {number}")).collect();
    assert_eq!(read.iter().map(said).collect::<Vec<_>>(), expected);
    // The next start knows where it was.
    let taken = async {
        while there.host.shared.store.taken_of_stream().await.unwrap() < 20 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, taken).await.expect("it is noted");
}

/// A message that another machine sends with a client of its own.
fn from_alice(text: &str) -> Message {
    let body = to_raw_value(text).unwrap();
    let (from, to, id) = ("alice".into(), "bob".into(), Id::new().to_string());
    Message { from, to, id, re: None, body, peering: None }
}

/// Has a host fail to store messages, and the connection lost meanwhile: the server has kept what was not stored, and that
/// comes first, although the server hands over a later message before.
async fn messages_are_kept_while_a_host_cannot_store_them(breaks: &str, mends: &str) {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let (captured, _guard) = capture();
    let mut there = Bench::machine_with("per_minute = 4", "bob", &trab).await;
    let (link, mut incoming) = connect(&casa).await.unwrap();
    let trab = machine("trab");
    link.send(&trab, &from_alice("0")).await.unwrap();
    assert_eq!(outcome(&link, &mut incoming).await, None);
    there.changes_database(breaks);
    link.send(&trab, &from_alice("1")).await.unwrap();
    link.send(&trab, &from_alice("2")).await.unwrap();
    let fails = async {
        let says = |line: &String| line.contains("a message of the machine casa cannot be stored");
        while !captured.lines().iter().any(says) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, fails).await.expect("it fails");
    server.end();
    there.until_machine(|view| view.why.is_some()).await;
    there.changes_database(mends);
    server.start_again();
    let (link, mut incoming) = connect(&casa).await.unwrap();
    link.send(&trab, &from_alice("3")).await.unwrap();
    let read = there.reads_when("bob", 4).await;
    let said = |message: &String| message.lines().nth(1).unwrap().to_owned();
    assert_eq!(read.iter().map(said).collect::<Vec<_>>(), ["> 0", "> 1", "> 2", "> 3"]);
    // A message that was not stored used up none of those that its sender may send.
    link.send(&trab, &from_alice("4")).await.unwrap();
    let refused = loop {
        if let Some(reason) = outcome(&link, &mut incoming).await {
            break reason;
        }
    };
    assert_eq!(refused, "pod `bob` takes 4 messages of one agent in a minute");
}

#[tokio::test]
async fn messages_are_kept_while_it_cannot_be_read_which_pods_take_part() {
    let [breaks, mends] = [("mesh_choices", "away"), ("away", "mesh_choices")]
        .map(|(from, to)| format!("ALTER TABLE {from} RENAME TO {to}"));
    messages_are_kept_while_a_host_cannot_store_them(&breaks, &mends).await;
}

#[tokio::test]
async fn messages_are_kept_while_it_cannot_be_read_which_agents_are_peers() {
    let [breaks, mends] = [("machine_peers", "away"), ("away", "machine_peers")]
        .map(|(from, to)| format!("ALTER TABLE {from} RENAME TO {to}"));
    messages_are_kept_while_a_host_cannot_store_them(&breaks, &mends).await;
}

#[tokio::test]
async fn messages_are_kept_while_the_mailbox_cannot_be_written() {
    let breaks = "CREATE TRIGGER broken BEFORE INSERT ON mail
        BEGIN SELECT RAISE(ABORT, 'broken'); END";
    messages_are_kept_while_a_host_cannot_store_them(breaks, "DROP TRIGGER broken").await;
}

#[tokio::test]
async fn a_message_that_came_before_uses_up_none_of_those_that_its_sender_may_send() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let _there = Bench::machine_with("per_minute = 2", "bob", &trab).await;
    let (link, mut incoming) = connect(&casa).await.unwrap();
    let once = from_alice("once");
    let mut reasons = Vec::new();
    for message in [&once, &once, &once, &from_alice("second"), &from_alice("third")] {
        link.send(&machine("trab"), message).await.unwrap();
        reasons.push(outcome(&link, &mut incoming).await);
    }
    let over_rate = "pod `bob` takes 2 messages of one agent in a minute";
    assert_eq!(reasons, [None, None, None, None, Some(over_rate.to_owned())]);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_with_the_sizes_and_kept_nowhere() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine_with("message_kib = 1024", "alice", &casa).await;
    let there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    // Beyond what the server takes: it gets nothing of it.
    let (_, status, reason) = here.sends("alice", "trab:bob", &"x".repeat(200 << 10)).await;
    let reason = reason.unwrap();
    let size = reason.strip_prefix("the message has ").and_then(|rest| {
        rest.strip_suffix(" bytes, and the server takes at most 131072")?.parse::<usize>().ok()
    });
    assert!(status == "refused" && size.is_some_and(|size| size > 200 << 10), "{reason}");
    let view = here.host.shared.mesh.machines.view().unwrap();
    assert_eq!(view.messages, []);
    // Beyond what the other Pod takes.
    let (_, status, reason) = here.sends("alice", "trab:bob", &"x".repeat(100 << 10)).await;
    let expected = "the body of a message to pod `bob` has at most 64 KiB";
    assert_eq!((status.as_str(), reason.as_deref()), ("denied", Some(expected)));
    assert_eq!(there.host.shared.store.messages(&name("bob")).await.unwrap(), []);
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
    let waiting = here.host.shared.store.messages(&name("alice")).await.unwrap();
    let noted = format!("{:?}{waiting:?}", here.transcript(&name("alice")).await);
    assert!(noted.contains(&"x".repeat(150)) && !noted.contains(&"x".repeat(300)), "{noted}");
    there.call(&name("bob"), Method::MeshLeave).await.unwrap();
    let (_, status, _) = here.sends("alice", "trab:bob", "hi").await;
    assert_eq!(status, "denied");
    let agent = here.agent("trab:bob").await;
    let sent = agent.say("alice", "I am bob").await;
    assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("looks like"));
}

#[tokio::test]
async fn pods_of_two_machines_become_peers_when_a_person_of_each_wants_it() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let mut here = Bench::machine("alice", &casa).await;
    let mut there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    assert_eq!(here.peers("alice", "trab:ghost").await, Err(NO_AGENT.to_owned()));
    assert_eq!(here.peers("alice", "trab:bob").await, Ok("received".into()));
    let request = there.request().await;
    assert_eq!((request.pod.as_str(), request.agent.as_deref()), ("bob", Some("casa:alice")));
    assert!(request.asker() == "the agent \"casa:alice\"" && request.is_once_only());
    // Asking again changes nothing, and the request outlives the host.
    assert_eq!(here.peers("alice", "trab:bob").await, Ok("received".into()));
    let mut there = there.restarted().await;
    let waits = there.request_of("casa:alice").await;
    assert_eq!(waits, request);
    let no = Verdict::Deny { reason: "not\u{1b}[2J now".into() };
    let denied = here.next_after(there.decides(&request, no)).await;
    assert_eq!(denied, "\"trab:bob\" does not become a peer: not\\x1b[2J now");
    let late = there.call_host(Method::Decide { approval: request.id, verdict: Verdict::Once });
    assert!(late.await.unwrap_err().message.contains("decided or withdrawn"));
    assert_eq!(here.sends("alice", "trab:bob", "a stranger").await.1, "received");
    assert!(there.reads_when("bob", 1).await.len() == 1, "a stranger wakes nobody");

    // A person who denied it is not asked again at once, and can still ask.
    let paused = "a person there denied such a request; the next one can be made in 10 min";
    assert_eq!(here.peers("alice", "trab:bob").await, Err(paused.to_owned()));
    assert_eq!(there.host.shared.approvals(), []);
    there.until_pairs(<[MachinePeer]>::is_empty).await;
    assert_eq!(there.peers("bob", "casa:alice").await, Ok("received".into()));
    let request = here.request_of("trab:bob").await;
    here.decides(&request, Verdict::Once).await;
    here.until_peers("alice", "trab:bob").await;
    there.until_peers("bob", "casa:alice").await;
    let woken = there.host.shared.pod(&name("bob")).unwrap().info.clone();
    let before = woken.borrow().last_result.clone();
    assert_eq!(here.sends("alice", "trab:bob", "wake").await.1, "received");
    let ran = |info: &PodInfo| info.last_result != before && info.state == State::Idle;
    let mut woken = woken.clone();
    let runs = tokio::time::timeout(PATIENCE, woken.wait_for(ran));
    assert!(runs.await.is_ok_and(|ran| ran.is_ok()), "a message of a peer wakes");
    // Known while its machine is away, and ended without a server: the other side learns of it later.
    let there = there.leaves().await;
    here.until_machine(|view| view.machines.is_empty()).await;
    let agent = here.peer_of("alice", "trab:bob").await.expect("it is listed");
    assert!(!agent.reachable && agent.peers == [name("alice")], "{agent:?}");
    server.end();
    here.until_machine(|view| view.why.is_some()).await;
    here.call(&name("alice"), Method::Unpeer { name: "trab:bob".into() }).await.unwrap();
    assert_eq!(here.peer_of("alice", "trab:bob").await, None);
    let again = here.call(&name("alice"), Method::Unpeer { name: "trab:bob".into() }).await;
    assert_eq!(again.unwrap_err().message, "alice and trab:bob are no peers");
    server.start_again();
    let mut there = Bench::at(there).await;
    let ended = there.next(|event| matches!(event, Event::Alert(_))).await;
    let Event::Alert(ended) = ended else { panic!("an alert") };
    assert_eq!(ended.message, "\"casa:alice\" is no peer any more");
}

#[tokio::test]
async fn two_that_want_each_other_are_peers_and_a_deleted_pod_is_none() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let mut there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    there.sees("casa").await;
    here.peers("alice", "trab:bob").await.unwrap();
    there.request().await;
    assert_eq!(there.peers("bob", "casa:alice").await, Ok("peers".into()));
    assert_eq!(there.host.shared.approvals(), [], "the request is decided by that");
    here.until_peers("alice", "trab:bob").await;
    here.call(&name("alice"), Method::StopPods { tree: false, unless_busy: false, silent: false })
        .await
        .unwrap();
    here.call(&name("alice"), Method::Remove).await.unwrap();
    let ended = there.next(|event| matches!(event, Event::Alert(_))).await;
    assert!(matches!(&ended, Event::Alert(ended) if ended.message.contains("no peer any more")));
    assert_eq!(there.peer_of("bob", "casa:alice").await.map(|agent| agent.peers), None);
}

#[tokio::test]
async fn an_agreement_that_comes_too_late_makes_peers_of_neither() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    here.peers("alice", "trab:bob").await.unwrap();
    let request = there.request_of("casa:alice").await;
    here.call(&name("alice"), Method::MeshLeave).await.unwrap();
    there.decides(&request, Verdict::Once).await;
    for bench in [&here, &there] {
        bench.until_pairs(|pairs| pairs.iter().all(|pair| pair.state().is_none())).await;
    }
}

#[tokio::test]
async fn a_machine_has_few_requests_waiting_and_is_blocked_as_a_whole() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let there = Bench::machine("bob", &trab).await;
    // No host: it names its agents as it likes.
    let (link, mut incoming) = connect(&casa).await.unwrap();
    let wants_peer = |agent: String| Message {
        from: agent,
        to: "bob".into(),
        id: Id::new().to_string(),
        re: None,
        body: to_raw_value("hi").unwrap(),
        peering: Some(Peering { generation: 1, wants: true }),
    };
    let mut refused = Vec::new();
    for number in 0..6 {
        link.send(&machine("trab"), &wants_peer(format!("a{number}"))).await.unwrap();
        refused.extend(outcome(&link, &mut incoming).await);
    }
    assert_eq!(refused, ["too many requests to become peers wait there already"; 2]);
    assert_eq!(there.host.shared.approvals().len(), 4);
    let block = |end| Method::MeshBlock { name: "casa:".into(), end };
    there.call_host(block(false)).await.unwrap();
    assert_eq!(there.host.shared.approvals(), [], "requests of a blocked machine are denied");
    link.send(&machine("trab"), &wants_peer("a9".into())).await.unwrap();
    let blocked = outcome(&link, &mut incoming).await.unwrap();
    assert_eq!(blocked, "the person of pod `bob` has blocked `casa:a9`");
    let one = Method::MeshBlock { name: "casa:a9".into(), end: true };
    let why = there.call_host(one).await.unwrap_err().message;
    assert_eq!(why, "the whole machine `casa` is blocked: :block casa: --end");
    // An agent of this machine with the same name is another one.
    let agent = there.agent("casa").await;
    assert_eq!(agent.say("bob", "hi").await.status, Status::Received);
    there.call_host(block(true)).await.unwrap();
}

#[tokio::test]
async fn a_machine_and_an_agent_of_its_name_are_blocked_apart() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let mut there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    there.sees("casa").await;
    let block = Method::MeshBlock { name: "casa".into(), end: false };
    let why = there.call_host(block.clone()).await.unwrap_err().message;
    assert_eq!(why, "`casa` is a machine: `:block casa:` blocks all of its agents");
    let agent = there.agent("casa").await;
    let lists = |event: &Event| matches!(event, Event::MeshRoster { agents } if agents.iter().any(|agent| agent.name == "casa"));
    there.next(lists).await;
    there.call_host(block).await.unwrap();
    assert_eq!(agent.say("bob", "hi").await.status, Status::Denied);
    assert_eq!(here.sends("alice", "trab:bob", "hi").await.1, "received");
    here.peers("alice", "trab:bob").await.unwrap();
    there.request_of("casa:alice").await;
    let block = |name: &str, end| Method::MeshBlock { name: name.into(), end };
    there.call_host(block("casa:Alice", false)).await.unwrap();
    assert_eq!(there.host.shared.approvals(), [], "the request of a blocked agent is denied");
    assert_eq!(
        here.sends("alice", "trab:bob", "hi").await.1,
        "denied",
        "case makes no other agent"
    );
    there.call_host(block("casa:ALICE", true)).await.unwrap();
    assert_eq!(here.sends("alice", "trab:bob", "hi").await.1, "received");
    for (name, why) in [("Casa:", "a machine has a name of"), ("trab:", "`trab` is this machine")] {
        let refused = there.call_host(block(name, false)).await.unwrap_err().message;
        assert!(refused.starts_with(why), "{refused}");
    }
    here.until_pairs(|pairs| pairs.iter().all(|pair| pair.state().is_none())).await;
}

#[tokio::test]
async fn a_host_that_knows_no_peers_reads_a_sentence_where_a_request_is_withdrawn() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let there = Bench::machine("bob", &trab).await;
    let (link, mut incoming) = connect(&casa).await.unwrap();
    assert_eq!(there.peers("bob", "casa:x").await, Ok("queued".into()));
    there.call(&name("bob"), Method::Unpeer { name: "casa:x".into() }).await.unwrap();
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        if let Arrived::Message { message, receipt, .. } = incoming.next().await.unwrap() {
            bodies.push(message.body.get().to_owned());
            link.acknowledge(receipt).await;
        }
    }
    assert_eq!(
        bodies,
        [
            "\"wants to be a peer, which needs a newer yoi on your machine\"",
            "\"is no peer of yours, and asks no more to become one\"",
        ]
    );
}

#[tokio::test]
async fn a_machine_whose_peers_cannot_be_stored_connects_as_soon_as_they_can() {
    let Some(mut server) = TestServer::start() else { return };
    let casa = server.admit("casa").await;
    let mut bench = family(&[("alice", None, Wanted::Live)], &[]).await;
    bench.joins("alice").await;
    let db = rusqlite::Connection::open(bench.host.shared.dirs.data.join("yoi.db")).unwrap();
    db.execute_batch("ALTER TABLE machine_network RENAME TO elsewhere").unwrap();
    casa.write(&bench.host.shared.dirs.state).unwrap();
    let view = bench.until_machine(|view| view.why.is_some()).await;
    assert!(view.why.unwrap().contains("machine_network"), "it says why");
    db.execute_batch("ALTER TABLE elsewhere RENAME TO machine_network").unwrap();
    bench.until_machine(|view| view.connected).await;
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

#[tokio::test]
async fn agents_that_are_no_pods_write_to_pods_of_other_machines_and_are_answered() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine_with("per_minute = 6", "alice", &casa).await;
    let mut there = Bench::machine("bob", &trab).await;
    here.sees("trab").await;
    there.sees("casa").await;
    let (mut agent, mut second) = (here.agent("pi-1").await, here.agent("pi-2").await);
    let question = agent.reaches("trab:bob").await;
    assert_eq!((question.status, question.reason), (Status::Received, None));
    assert!(agent.member.peers().await.unwrap().contains(&"trab:bob".to_owned()));
    let Event::Mesh(view) = here.call(&name("alice"), Method::MeshAgents).await.unwrap() else {
        panic!("the reply is the mesh")
    };
    let names: Vec<&str> = view.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["pi-1", "pi-2", "trab:bob"], "each is listed once");
    let read = there.reads_when("bob", 1).await;
    let head = format!("[agent-network] message from \"casa:pi-1\" (id={})\n> hi\n", question.id);
    assert!(read.len() == 1 && read[0].starts_with(&head), "{read:?}");
    let answer = send("casa:pi-1", "hello", Some(question.id.to_string()));
    let (_, status, reason) = sent(there.call(&name("bob"), answer).await.unwrap());
    assert_eq!((status.as_str(), reason), ("received", None));
    assert_eq!(agent.hears().await, ("trab:bob".into(), Some(question.id), "\"hello\"".into()));
    // An agent that did not write to this Pod hears nothing of it, and neither does a name that no agent has.
    for to in ["casa:pi-2", "casa:ghost"] {
        let (_, status, reason) = there.sends("bob", to, "hi").await;
        assert_eq!((status.as_str(), reason.as_deref()), ("denied", Some(NO_AGENT)), "{to}");
    }
    // One message to two agents has one id, and each of them gets it.
    assert_eq!(second.say("trab:BOB", "hi").await.status, Status::Received);
    let both = Addressees::Many(vec!["casa:pi-1".into(), "casa:pi-2".into()]);
    let both = Method::MeshSend { to: both, body: json!("all"), re: None };
    let (id, status, _) = sent(there.call(&name("bob"), both).await.unwrap());
    assert_eq!(status, "sent");
    assert_eq!(agent.hears().await, ("trab:bob".into(), None, "\"all\"".into()));
    assert_eq!(second.hears().await, ("trab:bob".into(), None, "\"all\"".into()));
    let received =
        |message: &&MachineMessage| message.id == id && message.state == MessageState::Received;
    there.until_machine(|view| view.messages.iter().filter(received).count() == 2).await;
    // Nor does it hear one that the person of its machine blocked.
    let block = |end| Method::MeshBlock { name: "trab:bob".into(), end };
    here.call_host(block(false)).await.unwrap();
    let (_, status, reason) = there.sends("bob", "casa:pi-1", "hi").await;
    assert!(status == "denied" && reason.unwrap().contains("has blocked `trab:bob`"));
    here.call_host(block(true)).await.unwrap();
    // An agent that left has no mailbox.
    second.member.leave().await;
    let (_, status, reason) = there.sends("bob", "casa:pi-2", "hi").await;
    assert_eq!(
        (status.as_str(), reason.as_deref()),
        ("denied", Some("no agent of this name is here"))
    );
    // An agent that has the name of a Pod which is not on the mesh gets nothing in its place.
    let new = NewPod { name: Some(name("carol")), cwd: here.root.join("w"), ..NewPod::default() };
    here.call_host(Method::New(new)).await.unwrap();
    let mut namesake = here.agent("carol").await;
    let sent = namesake.say("trab:bob", "I am carol").await;
    assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("is the name of a Pod"));
    let (_, status, reason) = there.sends("bob", "casa:carol", "hi").await;
    assert_eq!((status.as_str(), reason.as_deref()), ("denied", Some(NO_AGENT)));
    while let Some(received) = namesake.inbox.try_next() {
        assert!(!matches!(received, Received::Message(_)), "{received:?}");
    }
    let sent = agent.say("casa:alice", "hi").await;
    assert!(sent.reason.unwrap().contains("is on this machine: write to \"alice\""));
    let there = there.leaves().await;
    here.until_machine(|view| view.machines.is_empty()).await;
    server.end();
    here.until_machine(|view| view.why.is_some()).await;
    let sent = agent.say("trab:bob", "now").await;
    assert!(
        sent.status == Status::Denied && sent.reason.unwrap().contains("no other machine can be")
    );
    // What waited for an agent while the line was lost comes to it afterwards.
    server.start_again();
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let body = to_raw_value("after").unwrap();
    let (from, to, id) = ("bob".into(), "pi-1".into(), Id::new().to_string());
    let message = Message { from, to, id, re: None, body, peering: None };
    link.send(&machine("casa"), &message).await.unwrap();
    assert_eq!(agent.hears().await.2, "\"after\"");
    // A server that was killed may hand over again what was acknowledged just before, and so may one whose acknowledgement
    // is late; nothing is known of that.
    let said = loop {
        let said = next_outcome(&link, &mut incoming).await;
        if said.id == message.id && said.fate != Fate::Unknown {
            break said;
        }
    };
    assert_eq!((said.fate, said.reason), (Fate::Received, None));
    drop((link, incoming));
    // What is held for a machine that is away is queued.
    let queued = agent.say("trab:bob", "later").await;
    let away = "trab is away; the server holds the message for it";
    assert_eq!((queued.status, queued.reason.as_deref()), (Status::Queued, Some(away)));
    server.end();
    server.start_again();
    let mut there = Bench::at(there).await;
    let read = there.reads_when("bob", 2).await;
    assert!(read.iter().any(|message| message.contains(&queued.id.to_string())), "{read:?}");
    here.sees("trab").await;
    let over_rate = loop {
        let sent = agent.say("trab:bob", "more").await;
        if sent.status != Status::Received {
            break sent;
        }
    };
    let reason = "at most 6 messages of one agent to other machines are passed on in a minute";
    assert_eq!((over_rate.status, over_rate.reason.as_deref()), (Status::Denied, Some(reason)));
}

/// A member of this machine that says itself when it has taken a message.
async fn confirming(bench: &Bench, name: &str) -> Agent {
    let shared = &bench.host.shared;
    let settings = shared.settings.last().settings;
    let socket = Socket::find(&settings.mesh, &shared.dirs, &shared.env, |_| true).unwrap();
    let options = Options { socket, name: name.to_owned(), leads: true, confirms: true };
    let (member, inbox) = crate::mesh::join(options).await.unwrap();
    Agent { member, inbox }
}

/// A message of `bob` to an agent.
fn of_bob(to: &str) -> Message {
    Message { from: "bob".into(), to: to.into(), ..from_alice("hi") }
}

#[tokio::test]
async fn what_an_agent_was_given_when_its_host_ended_is_not_known_and_not_given_again() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let mut agent = confirming(&here, "pi-1").await;
    assert_eq!(agent.reaches("trab:bob").await.status, Status::Queued);
    link.send(&machine("casa"), &of_bob("pi-1")).await.unwrap();
    assert_eq!(agent.hears().await.0, "trab:bob");
    agent.member.leave().await;
    let here = here.restarted().await;
    here.until_machine(|view| view.connected).await;
    let mut agent = here.agent("pi-1").await;
    assert_eq!(agent.reaches("trab:bob").await.status, Status::Queued);
    let said = next_outcome(&link, &mut incoming).await;
    let why = "the connection was lost, or the host there ended, at that moment";
    assert_eq!((said.fate, said.reason.as_deref()), (Fate::Unknown, Some(why)));
    link.send(&machine("casa"), &Message { body: to_raw_value("2").unwrap(), ..of_bob("pi-1") })
        .await
        .unwrap();
    assert_eq!(agent.hears().await.2, "\"2\"", "the first one was not given again");
    assert_eq!(next_outcome(&link, &mut incoming).await.fate, Fate::Received);
}

#[tokio::test]
async fn agents_that_take_nothing_and_invented_names_hold_up_no_other_message() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let mut agent = confirming(&here, "pi-1").await;
    assert_eq!(agent.reaches("trab:bob").await.status, Status::Queued);
    for number in 0..40 {
        let invented = Message { from: format!("x{number}"), ..of_bob("pi-1") };
        link.send(&machine("casa"), &invented).await.unwrap();
        assert_eq!(outcome(&link, &mut incoming).await.as_deref(), Some(NO_AGENT));
    }
    for _ in 0..40 {
        link.send(&machine("casa"), &of_bob("pi-1")).await.unwrap();
    }
    link.send(&machine("casa"), &of_bob("alice")).await.unwrap();
    let (mut busy, mut fates) = (0, Vec::new());
    while fates.len() < 3 {
        let said = next_outcome(&link, &mut incoming).await;
        match said.reason {
            Some(reason) if reason.starts_with("too many messages wait there") => busy += 1,
            _ => fates.push((said.from, said.fate)),
        }
    }
    // The message to the Pod is not behind those two for which the agent was waited for.
    let unknown = ("pi-1".to_owned(), Fate::Unknown);
    assert_eq!(fates, [("alice".to_owned(), Fate::Received), unknown.clone(), unknown]);
    assert_eq!(busy, 38);
    assert_eq!(agent.hears().await.0, "trab:bob");
}

#[tokio::test]
async fn an_agent_has_few_messages_on_their_way_and_is_answered_by_few_pods() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, trab) = (server.admit("casa").await, server.admit("trab").await);
    let here = Bench::machine("alice", &casa).await;
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let agent = here.agent("pi-1").await;
    for number in 0..=32 {
        let sent = agent.reaches(&format!("trab:p{number}")).await;
        assert_eq!(sent.status, Status::Queued);
        // The server hands over only so many before the first is acknowledged.
        while let Some(arrived) = incoming.next().await {
            if let Arrived::Message { message, receipt, .. } = arrived {
                assert_eq!((message.from, message.to), ("pi-1".into(), format!("p{number}")));
                link.acknowledge(receipt).await;
                break;
            }
        }
    }
    for (from, why) in [("p0", Some(NO_AGENT)), ("p1", None), ("p32", None)] {
        let answer = Message { from: from.into(), ..of_bob("pi-1") };
        link.send(&machine("casa"), &answer).await.unwrap();
        assert_eq!(outcome(&link, &mut incoming).await.as_deref(), why, "{from}");
    }
    // Another machine names its Pods as it likes: what is no name of a Pod is not listed.
    let agents = ["bob", "b\u{202e}ob", "a b", "x:broker", "broker"].map(str::to_owned).into();
    link.announce(Presence { agents, ..Presence::default() }).await;
    let mut names = Vec::new();
    let listed = async {
        while !names.iter().any(|name| name == "trab:bob") {
            names = agent.member.peers().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("it is listed");
    assert_eq!(names, ["alice", "trab:bob"]);
    // It takes none of them, so each is waited for.
    let sent = join_all((0..9).map(|_| agent.say("trab:bob", "hi"))).await;
    let refused: Vec<&Sent> = sent.iter().filter(|sent| sent.status != Status::Queued).collect();
    assert!(refused.len() == 1 && refused[0].status == Status::Denied, "{sent:?}");
    let reason = "too many messages of agents are on their way; send it again later";
    assert_eq!(refused[0].reason.as_deref(), Some(reason));
}
