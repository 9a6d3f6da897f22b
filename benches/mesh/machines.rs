//! Two machines with a host each over a real nats-server: messages each second, the time to the outcome of a message, also
//! where a line delays everything, and the memory of a host whose addressee is away.

use crate::{Leader, POD_PAIRS, program, row};
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use yoi::client::{Client, Events, find};
use yoi::protocol::method::Addressees;
use yoi::protocol::{Event, Method, PodName};

/// How long a line delays each direction.
const DELAY: Duration = Duration::from_millis(100);
/// The longest that a machine may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Messages to a machine that is away.
const AWAY: usize = 10_000;
/// Bytes of a body.
const BODY: usize = 200;

/// Messages from Pods of one machine to as many Pods of the other.
struct Load {
    name: &'static str,
    pairs: usize,
    /// Messages of one sender whose outcome is not known.
    window: usize,
    /// Messages of one sender.
    messages: usize,
    /// Whether the outcome is waited for, and not only until the server holds the message.
    waits: bool,
}

const fn load(
    name: &'static str,
    pairs: usize,
    window: usize,
    messages: usize,
    waits: bool,
) -> Load {
    Load { name, pairs, window, messages, waits }
}

/// Prints the tables; `nats-server` has to be installed.
pub fn measure() {
    let Some(server) = Server::start() else { return };
    let (casa, trab) = (server.machine("casa", server.port), server.machine("trab", server.port));
    println!(
        "\n| to a Pod of another machine | messages/s | outcome p50 | outcome p99 | CPU/message of the sending host |"
    );
    println!("|---|---|---|---|---|");
    let runtime = Runtime::new().expect("a runtime");
    for load in [
        load("one pair, one in flight, until it is received", 1, 1, 1_000, true),
        load("one pair, 64 in flight, until it is received", 1, 64, 10_000, true),
        load("ten pairs, 16 in flight, until it is received", POD_PAIRS, 16, 1_000, true),
        load("one pair, one in flight, until the server holds it", 1, 1, 1_000, false),
        load("one pair, 64 in flight, until the server holds it", 1, 64, 10_000, false),
    ] {
        println!("{}", load.measure(&runtime, &casa, "trab"));
    }
    drop(trab);
    println!("{}", away(&runtime, &server, &casa));
    let line = Line::to(server.port);
    let _far = server.machine("far", line.port);
    println!("\n| the same, {} ms each way | | | | |\n|---|---|---|---|---|", DELAY.as_millis());
    for load in [
        load("one pair, one in flight, until it is received", 1, 1, 30, true),
        load("one pair, 64 in flight, until it is received", 1, 64, 1_000, true),
        load("ten pairs, 16 in flight, until it is received", POD_PAIRS, 16, 100, true),
    ] {
        println!("{}", load.measure(&runtime, &casa, "far"));
    }
}

/// A server in a directory of its own.
struct Server {
    home: tempfile::TempDir,
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// `None`: the program is not installed, which is said.
    fn start() -> Option<Self> {
        let home = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        printed(home.path(), &["mesh", "init", "--address", &format!("127.0.0.1:{port}")]);
        let configuration = home.path().join("data/mesh-server/nats-server.conf");
        // Debian's package puts it where not every user has a path to.
        let started = ["nats-server", "/usr/sbin/nats-server"].into_iter().find_map(|program| {
            let mut command = Command::new(program);
            command.arg("-c").arg(&configuration).stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::piped()).spawn().ok()
        });
        let Some(mut process) = started else {
            println!(
                "\nskipped: nats-server is not installed (Debian: apt-get install nats-server)"
            );
            return None;
        };
        let mut lines = BufReader::new(process.stderr.take().expect("its log")).lines();
        let is_ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("is ready"));
        assert!(is_ready, "the server starts");
        // It must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { home, process, port })
    }

    /// A host under the name of a machine, which reaches the server on this port.
    fn machine(&self, name: &str, port: u16) -> Leader {
        let line = printed(self.home.path(), &["mesh", "init", "--add", name]);
        let own = format!(":{}/", self.port);
        assert!(line.contains(&own), "{line}");
        let line = line.trim().replace(&own, &format!(":{port}/"));
        let host = Leader::with_pods(POD_PAIRS);
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        printed(host.home(), &words);
        host
    }
}

/// What the program prints in a home of its own.
fn printed(home: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program());
    command.args(args).env("YOI_HOME", home).env("HOME", home).stdin(Stdio::null());
    let done = command.output().expect("the program starts");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// A line to a port of this machine that delays every byte.
struct Line {
    port: u16,
}

impl Line {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("its address").port();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
                for stream in [&near, &far] {
                    stream.set_nodelay(true).expect("an open connection");
                }
                let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
                delayed(clone(&near), clone(&far));
                delayed(far, near);
            }
        });
        Self { port: own }
    }
}

/// Passes on what comes from one end to the other, after [`DELAY`].
fn delayed(mut from: TcpStream, mut to: TcpStream) {
    let (send, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if send.send((Instant::now() + DELAY, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (at, bytes) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end may be closed already.
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn connected(runtime: &Runtime, host: &Leader) -> (Client, Events) {
    let found = runtime.block_on(find::connect(&host.home().join("data")));
    found.expect("a host that answers").expect("a host")
}

/// Sends one message; its status, and why.
async fn send(
    client: &Client,
    pod: &PodName,
    to: &str,
    body: &str,
    waits: bool,
) -> (String, Option<String>) {
    // What goes to several is not waited for.
    let to = if waits { Addressees::One(to.into()) } else { Addressees::Many(vec![to.into()]) };
    let method = Method::MeshSend { to, body: json!(body), re: None };
    match client.call(Some(pod), method).await {
        Ok(Event::MeshSent { status, reason, .. }) => (status, reason),
        other => panic!("{other:?}"),
    }
}

fn pod(number: usize) -> PodName {
    PodName::parse(&format!("pod{number}")).expect("a name")
}

impl Load {
    fn measure(&self, runtime: &Runtime, host: &Leader, machine: &str) -> String {
        let clients: Vec<(Client, Events)> =
            (0..self.pairs).map(|_| connected(runtime, host)).collect();
        for (number, (client, _)) in clients.iter().enumerate() {
            let (from, to) = (pod(number), format!("{machine}:pod{number}"));
            let begun = Instant::now();
            let is_there = || {
                let sent = send(client, &from, &to, "hi", true);
                runtime.block_on(sent).0 == "received"
            };
            while !is_there() {
                assert!(begun.elapsed() < PATIENCE, "{to} takes messages");
            }
        }
        let body = "x".repeat(BODY);
        let (cpu, begun) = (host.cpu(), Instant::now());
        let of_pair = |number: usize| {
            let (client, body, waits) = (clients[number].0.clone(), body.clone(), self.waits);
            let to = format!("{machine}:pod{number}");
            let (window, messages) = (self.window, self.messages);
            async move {
                let pod = pod(number);
                let one = |_| async {
                    let begun = Instant::now();
                    let (status, reason) = send(&client, &pod, &to, &body, waits).await;
                    let is_held = if waits { status == "received" } else { reason.is_none() };
                    assert!(is_held, "{status}: {reason:?}");
                    begun.elapsed()
                };
                iter(0..messages).map(one).buffer_unordered(window).collect::<Vec<_>>().await
            }
        };
        let tasks: Vec<_> = (0..self.pairs).map(|number| runtime.spawn(of_pair(number))).collect();
        let times: Vec<Duration> =
            tasks.into_iter().flat_map(|task| runtime.block_on(task).expect("a sender")).collect();
        row(self.name, times, begun.elapsed(), host.cpu() - cpu)
    }
}

/// What becomes of the memory of a host while a machine is away, and how fast that machine takes what waited.
fn away(runtime: &Runtime, server: &Server, host: &Leader) -> String {
    let (client, _events) = connected(runtime, host);
    let body = "x".repeat(BODY);
    // It exists, and no host has its key.
    let line = printed(server.home.path(), &["mesh", "init", "--add", "away"]);
    let before = host.memory();
    let begun = Instant::now();
    let one = |number: usize| {
        let (client, body) = (&client, &body);
        async move {
            let (_, reason) = send(client, &pod(0), "away:pod0", body, false).await;
            assert!(reason.is_none(), "message {number} is held: {reason:?}");
        }
    };
    runtime.block_on(iter(0..AWAY).map(one).buffer_unordered(64).collect::<Vec<_>>());
    let (held, after) = (begun.elapsed(), host.memory());
    let back = Leader::with_pods(1);
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let begun = Instant::now();
    printed(back.home(), &words);
    while back.committed("pod0") < AWAY {
        assert!(begun.elapsed() < PATIENCE, "it takes what waited");
        std::thread::sleep(Duration::from_millis(10));
    }
    format!(
        "\n{AWAY} messages to a machine that is away: held in {:.1} s, taken in {:.1} s when it is back; memory of the \
         sending host {before} -> {after} -> {} MB",
        held.as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        host.memory()
    )
}
