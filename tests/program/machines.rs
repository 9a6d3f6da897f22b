//! Two machines, each with a home and a host of its own, over a real nats-server where there is one. Hosts and the
//! server are killed with SIGKILL: what was acknowledged is in the history of the other Pod, once and in order.
//!
//! `YOI_KILLS` is how many kills there are.

use crate::bench::{Bench, Done, Host, eventually};
use crate::mcp_server;
use crate::mesh::{python, socket};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use yoi::client::{Client, Events, find};
use yoi::protocol::method::Addressees;
use yoi::protocol::{Event, Method, PodName};

/// A Pod that joins, reads each message at once, and takes any number of them.
const SETTINGS: &str = "[mesh]\njoin = true\nwake = ['strangers']\nper_minute = 1000000\nwaiting = 100000\n\
    [limits]\nmailbox = 200000\n";
const SCRIPT: &str = "[[when]]\nany = true\ntext = \"ok\"\n";

/// A server, as the documentation has a person start it.
pub struct Server<'b> {
    bench: &'b Bench,
    process: Child,
}

/// The program, where it is installed. Debian's package puts it where not every user has a path to.
fn installed() -> Option<&'static str> {
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let found = ["nats-server", "/usr/sbin/nats-server"].into_iter().find(is_there);
    if found.is_none() {
        eprintln!("skipped: nats-server is not installed (Debian: apt-get install nats-server)");
    }
    found
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<'b> Server<'b> {
    /// `None`: the program is not installed, which is said.
    pub fn start(bench: &'b Bench) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a free port").port();
        Self::start_at(bench, &format!("127.0.0.1:{port}"))
    }

    /// The same, at this address.
    pub fn start_at(bench: &'b Bench, address: &str) -> Option<Self> {
        let program = installed()?;
        let dir = bench.path("server").display().to_string();
        let done = bench.yoi(&["mesh", "init", &dir, "--address", address]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let early = bench.yoi(&["mesh", "init", &dir, "--add", "casa"]);
        assert!(early.code == Some(1) && early.last_words().contains("does not run"), "{early:?}");
        Some(Self { bench, process: run(bench, program) })
    }

    pub fn dir(&self) -> String {
        self.bench.path("server").display().to_string()
    }

    /// The line that connects a machine.
    pub fn admit(&self, machine: &str) -> String {
        let done = self.bench.yoi(&["mesh", "init", &self.dir(), "--add", machine]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out.trim().to_owned()
    }

    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn start_again(&mut self) {
        self.process = run(self.bench, installed().expect("it ran before"));
    }
}

/// Runs the server, and waits until it is ready.
fn run(bench: &Bench, program: &str) -> Child {
    let mut command = bench.program(program);
    command.arg("-c").arg(bench.path("server/nats-server.conf")).stdout(Stdio::null());
    let mut process = command.spawn().expect("a server");
    let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
    let mut said = Vec::new();
    let is_ready = lines.by_ref().map_while(Result::ok).any(|line| {
        said.push(line);
        said.last().is_some_and(|line| line.contains("Server is ready"))
    });
    assert!(is_ready, "the server did not start: {said:#?}");
    // It must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    process
}

/// A machine with one Pod, and its host.
fn machine(server: &Server<'_>, machine: &str, pod: &str) -> (Bench, Host) {
    machine_in(Bench::new(), SETTINGS, server, machine, pod)
}

/// The same, in this place and with these settings.
pub fn machine_in(
    bench: Bench,
    settings: &str,
    server: &Server<'_>,
    machine: &str,
    pod: &str,
) -> (Bench, Host) {
    bench.play(SCRIPT);
    let (servers, model) = (bench.without_local_models(), bench.model());
    bench.settings(&format!("model = \"{model}\"\n{servers}\n{settings}"));
    let line = server.admit(machine);
    let joined = bench.finish(bench.shell(&line).spawn().expect("a shell"));
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let host = bench.serve();
    let made = bench.yoi(&["new", pod]);
    assert_eq!(made.code, Some(0), "{made:?}");
    (bench, host)
}

/// The numbers that an agent sent, in the order of the Pod's history.
pub fn history(bench: &Bench, pod: &str, agent: &str) -> Vec<u64> {
    let log = bench.log(pod);
    let of_agents = log.iter().filter(|entry| entry["item"]["from"]["agent"]["name"] == agent);
    let texts = of_agents.filter_map(|entry| entry["item"]["message"].as_str());
    texts.filter_map(|text| text.trim_end().parse().ok()).collect()
}

pub async fn connected(bench: &Bench) -> (Client, Events) {
    find::connect(&bench.data()).await.expect("a host that answers").expect("a host")
}

/// Sends a message that is not waited for; whether the server holds it.
async fn is_held(client: &Client, number: u64) -> bool {
    let to = Addressees::Many(vec!["trab:bob".into()]);
    let method = Method::MeshSend { to, body: json!(number.to_string()), re: None };
    let alice = PodName::parse("alice").expect("a name");
    let sent = client.call(Some(&alice), method).await;
    matches!(sent, Ok(Event::MeshSent { reason: None, .. }))
}

/// Sends numbers until it shall stop: the last number, and those that the server holds.
async fn send(client: &Client, stop: &AtomicBool, held: &AtomicU64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        if is_held(client, number).await {
            numbers.push(number);
            held.fetch_add(1, Ordering::SeqCst);
        }
    }
    numbers
}

#[test]
fn two_machines_lose_and_repeat_nothing_while_hosts_and_their_server_are_killed() {
    let home = Bench::new();
    let Some(mut server) = Server::start(&home) else { return };
    let (casa, _host) = machine(&server, "casa", "alice");
    let (trab, mut other) = machine(&server, "trab", "bob");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (client, _events) = runtime.block_on(connected(&casa));
    eventually("casa is connected", || runtime.block_on(is_held(&client, 0)));
    eventually("the first message arrives", || !history(&trab, "bob", "casa:alice").is_empty());
    let first = history(&trab, "bob", "casa:alice");
    let (stop, held) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let sending = {
        let (client, stop, held) = (client.clone(), stop.clone(), held.clone());
        runtime.spawn(async move { send(&client, &stop, &held).await })
    };
    let kills = std::env::var("YOI_KILLS").map_or(5, |text| text.parse().expect("a number"));
    for kill in 0..kills {
        let before = held.load(Ordering::SeqCst);
        eventually("more is sent", || held.load(Ordering::SeqCst) > before + 20);
        if kill % 3 == 2 {
            server.kill();
            server.start_again();
        } else {
            other.child.kill().expect("a running host");
            other.child.wait().expect("a child");
            other = trab.serve();
        }
    }
    stop.store(true, Ordering::SeqCst);
    let sent = runtime.block_on(sending).expect("the sender ends");
    let last = *sent.last().expect("a message");
    eventually("the last message arrives", || {
        // Pods that only write to each other are slowed down until a person writes.
        assert_eq!(trab.yoi(&["send", "bob", "read"]).code, Some(0));
        history(&trab, "bob", "casa:alice").last().is_some_and(|number| *number >= last)
    });
    let arrived = history(&trab, "bob", "casa:alice").split_off(first.len());
    let mut sorted = arrived.clone();
    sorted.dedup();
    assert!(
        sorted.is_sorted() && sorted.len() == arrived.len(),
        "out of order or twice: {arrived:?}"
    );
    let lost: Vec<&u64> = sent.iter().filter(|number| !arrived.contains(number)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[test]
fn agents_that_are_no_pods_reach_a_pod_of_another_machine_and_get_its_answer() {
    let home = Bench::new();
    let Some(server) = Server::start(&home) else { return };
    let (casa, _host) = machine(&server, "casa", "alice");
    let (trab, _other) = machine(&server, "trab", "bob");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (client, _events) = runtime.block_on(connected(&trab));
    let bob = PodName::parse("bob").expect("a name");
    // Has the Pod answer the question of an agent.
    let answers = |agent: &str| {
        let is_question = |item: &Value| item["from"]["agent"]["name"] == agent;
        let mut question = None;
        eventually("the question is read", || {
            question = trab.log("bob").iter().map(|entry| entry["item"].clone()).find(is_question);
            question.is_some()
        });
        let id = question.expect("it was found")["from"]["agent"]["id"].clone();
        let (to, body) = (Addressees::One(agent.into()), json!("I am"));
        let answer = Method::MeshSend { to, body, re: id.as_str().map(str::to_owned) };
        let sent = runtime.block_on(client.call(Some(&bob), answer));
        assert!(
            matches!(&sent, Ok(Event::MeshSent { status, .. }) if status == "received"),
            "{sent:?}"
        );
    };
    let mut foreign = python("reaches.py");
    foreign.arg(socket(&casa)).args(["pi-1", "trab:bob"]);
    let foreign = foreign.stdout(Stdio::piped()).spawn().expect("python3");
    answers("casa:pi-1");
    let said = casa.finish(foreign).events();
    let ack = json!({"type": "ack", "status": "received", "target": "trab:bob"});
    assert_eq!(said, [ack, json!(["I am", true])]);
    let mut session = mcp_server::python(&casa, "session.py");
    let session = session.arg("other_machine").stderr(Stdio::piped()).spawn().expect("python3");
    answers("casa:claude");
    let done = casa.finish(session);
    assert_eq!(done.code, Some(0), "{done:?}");
    // A shell is one, too.
    let shell = casa.yoi(&["mesh", "send", "trab:bob", "from a shell"]);
    assert!(shell.code == Some(0) && shell.out.starts_with("received "), "{shell:?}");
    let listed = casa.yoi(&["mesh", "ls"]);
    assert_eq!(listed.out, "alice\ntrab:bob\n", "{listed:?}");
}

#[test]
fn a_person_sends_to_a_pod_of_another_machine_that_is_away_and_back() {
    let home = Bench::new();
    let Some(server) = Server::start(&home) else { return };
    let (casa, _host) = machine(&server, "casa", "alice");
    let (trab, host) = machine(&server, "trab", "bob");
    let send = |text: &str| casa.yoi(&["send", "trab:bob", text, "--pod", "alice"]);
    eventually("both are connected", || send("hello").err.contains("has the message (received)"));
    drop(host);
    eventually("it is known to be away", || send("1").err.contains("queued for trab:bob"));
    let _host = trab.serve();
    let has_it = |entry: &Value| entry["item"]["message"] == "1";
    eventually("it is read", || trab.log("bob").iter().any(has_it));
    // The newest comes first.
    let is_read = |listed: &Done| {
        let newest = listed.out.lines().find(|row| row.starts_with("alice to trab:bob"));
        newest.is_some_and(|row| row.ends_with(", read"))
    };
    eventually("it is known to be read", || is_read(&casa.yoi(&["-c", ":mesh"])));
    let listed = casa.yoi(&["-c", ":mesh"]);
    assert!(listed.out.contains("casa  on 127.0.0.1:"), "{listed:?}");
    // Each change is in the audit, and on the other machine that it was taken.
    let newest = listed.out.lines().find(|row| row.starts_with("alice to trab:bob"));
    let id = newest.and_then(|row| row.rsplit(' ').nth(1)?.strip_suffix(',')).expect("an id");
    let audited = |bench: &Bench, pair: &str| -> Vec<String> {
        let audit = bench.yoi(&["mesh", "audit"]);
        let rows = audit.out.lines().filter(|row| row.contains(id));
        let rest = rows.filter_map(|row| row.split_once(pair)?.1.split(' ').next());
        rest.map(str::to_owned).collect()
    };
    let mut words = Vec::new();
    eventually("the audit says so", || {
        words = audited(&casa, " alice -> trab:bob: ");
        words.last().is_some_and(|word| word == "read")
    });
    assert_eq!(words, ["queued", "received", "read"]);
    assert_eq!(audited(&trab, " casa:alice -> bob: "), ["received"]);
    let listed = casa.yoi(&["mesh", "ls"]);
    assert_eq!(listed.out, "alice\ntrab:bob\n", "{listed:?}");
    let looks = casa.yoi(&["doctor"]).out;
    for says in ["admits casa; TLS", "takes messages of casa", "the clock of the server is 0."] {
        assert!(looks.contains(says), "{says}: {looks}");
    }
}
