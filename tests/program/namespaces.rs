//! Three machines and their server, each in a network namespace of its own, joined by a bridge. Hosts and the server are
//! killed with SIGKILL, hosts are frozen, the line to a machine is cut, and the disk of the server becomes full. Whatever
//! happens, each message that was acknowledged is in the history of its Pod, once and in order, and none is there that
//! was refused.
//!
//! `YOI_KILLS` is how many such events there are at least, and `YOI_MESSAGES` how many messages are acknowledged
//! meanwhile. An ordinary user makes the namespaces below one of its own, where the system allows that.

use crate::bench::{Bench, Host, eventually};
use crate::machines::{Server, history, machine_in};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tokio::runtime::Runtime;
use yoi::client::{Client, Events};
use yoi::protocol::method::Addressees;
use yoi::protocol::{Event, Method, PodName, Refusal};

/// A Pod that joins, is woken by its peers only, and takes any number of messages.
const SETTINGS: &str = "[mesh]\njoin = true\nwake = []\nper_minute = 1000000\nwaiting = 100000\n\
    [limits]\nmailbox = 200000\n";
const SERVER: &str = "10.231.0.1";
const MACHINES: [(&str, &str); 3] = [("casa", "alice"), ("trab", "bob"), ("docs", "carol")];
/// Of so many messages one is waited for until its addressee has it.
const WAITED_FOR: u64 = 16;
/// Events of a round.
const EVENTS: u64 = 7;
/// Set in the process that runs a test as root of namespaces of its own.
const INSIDE: &str = "YOI_IN_NAMESPACES";

/// Namespaces that end with their test.
struct Network {
    tag: String,
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in ["server"].into_iter().chain(MACHINES.map(|(machine, _)| machine)) {
            ip(&["netns", "del", &self.space(space)]);
        }
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|done| done.status.success())
}

/// Runs a test of this file as root of namespaces of its own, in which it must pass; `false`: there can be none.
fn run_inside(test: &str) -> bool {
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c"]);
        command.args(["mount -t tmpfs tmpfs /run && exec \"$@\"", "sh"]).args(words);
        command.env(INSIDE, "1").status()
    };
    if !inside(&["ip", "netns", "add", "probe"]).is_ok_and(|status| status.success()) {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path that is text");
    let name = format!("namespaces::{test}");
    let status = inside(&[program, "--exact", &name, "--nocapture"]).expect("it ran before");
    assert!(status.success(), "{test} in namespaces of its own: {status}");
    true
}

impl Network {
    /// `None`: this user cannot make namespaces. Then the test was run below one of its own, or it is said that none can be
    /// made here.
    fn new(test: &str) -> Option<Self> {
        let network = Self { tag: format!("yoi-{}", std::process::id()) };
        if network.is_made() {
            return Some(network);
        }
        if std::env::var_os(INSIDE).is_some() || !run_inside(test) {
            eprintln!(
                "skipped: no network namespaces can be made here (needs iproute2, and root or user namespaces)"
            );
        }
        None
    }

    fn is_made(&self) -> bool {
        let server = self.space("server");
        let in_server = |args: &[&str]| ip(&[&["-n", &server], args].concat());
        let mut made = ip(&["netns", "add", &server])
            && ip(&["netns", "exec", &server, "true"])
            && in_server(&["link", "set", "lo", "up"])
            && in_server(&["link", "add", "bridge", "type", "bridge"])
            && in_server(&["addr", "add", &format!("{SERVER}/24"), "dev", "bridge"])
            && in_server(&["link", "set", "bridge", "up"]);
        for (at, (machine, _)) in MACHINES.iter().enumerate() {
            let (space, address) = (self.space(machine), format!("10.231.0.{}/24", at + 2));
            made = made
                && ip(&["netns", "add", &space])
                && in_server(&[
                    "link", "add", machine, "type", "veth", "peer", "name", "line", "netns", &space,
                ])
                && in_server(&["link", "set", machine, "master", "bridge", "up"])
                && ip(&["-n", &space, "link", "set", "lo", "up"])
                && ip(&["-n", &space, "addr", "add", &address, "dev", "line"])
                && ip(&["-n", &space, "link", "set", "line", "up"]);
        }
        made
    }

    fn space(&self, machine: &str) -> String {
        format!("{}-{machine}", self.tag)
    }

    fn bench(&self, machine: &str) -> Bench {
        let mut bench = Bench::new();
        bench.space = Some(self.space(machine));
        bench
    }

    /// Cuts the line to a machine, or mends it.
    fn line(&self, machine: &str, up: bool) {
        let state = if up { "up" } else { "down" };
        assert!(
            ip(&["-n", &self.space(machine), "link", "set", "line", state]),
            "{machine} {state}"
        );
    }

    /// Sends a signal to every process of a machine.
    fn signal(&self, machine: &str, name: &str) {
        let pids = Command::new("ip").args(["netns", "pids", &self.space(machine)]).output();
        let pids = String::from_utf8(pids.expect("ip").stdout).expect("numbers");
        assert!(!pids.trim().is_empty(), "{machine} runs something");
        for pid in pids.split_whitespace() {
            // A process may have ended by itself.
            let _ = Command::new("kill").args([&format!("-{name}"), pid]).output();
        }
    }
}

/// A machine with its Pod.
struct Machine {
    name: &'static str,
    pod: &'static str,
    bench: Bench,
    host: Mutex<Option<Host>>,
}

impl Machine {
    fn address(&self) -> String {
        format!("{}:{}", self.name, self.pod)
    }

    fn kill(&self) {
        let mut host = self.host.lock().expect("no test panicked");
        // Dropping it kills it.
        *host = None;
        *host = Some(self.bench.serve());
    }

    fn client(&self, runtime: &Runtime) -> (Client, Events) {
        let mut found = None;
        eventually("the host answers", || {
            found = runtime.block_on(yoi::client::find::connect(&self.bench.data())).ok().flatten();
            found.is_some()
        });
        found.expect("it was found")
    }

    fn call(&self, runtime: &Runtime, method: Method) -> Result<Event, Refusal> {
        let (client, _events) = self.client(runtime);
        let pod = PodName::parse(self.pod).expect("a name");
        runtime.block_on(client.call(Some(&pod), method))
    }

    /// Sends one message: its id, and what became of it.
    fn send(
        &self,
        runtime: &Runtime,
        to: &str,
        text: &str,
        re: Option<String>,
    ) -> (String, String) {
        let (to, body) = (Addressees::One(to.into()), json!(text));
        match self.call(runtime, Method::MeshSend { to, body, re }) {
            Ok(Event::MeshSent { id, status, .. }) => (id, status),
            other => panic!("{other:?}"),
        }
    }

    /// The recorded sender of the message with this text.
    fn origin(&self, text: &str) -> Option<Value> {
        let entries = self.bench.log(self.pod).into_iter();
        let mut items = entries.map(|entry| entry["item"].clone());
        items.find(|item| item["message"] == text).map(|item| item["from"]["agent"].clone())
    }

    /// A person writes to the Pod, so that it reads what waits: two that only answer each other are slowed down.
    fn read(&self) {
        let done = self.bench.yoi(&["send", self.pod, "read"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

/// A Pod that sends numbers to another one, and what became of each.
#[derive(Default)]
struct Sender {
    held: Mutex<Vec<u64>>,
    refused: Mutex<BTreeSet<u64>>,
    received: AtomicU64,
    /// Messages of which it is not known at once that the server holds them.
    late: AtomicU64,
}

impl Sender {
    fn run(&self, runtime: &Runtime, from: &Machine, to: &str, stop: &AtomicBool) {
        let pod = PodName::parse(from.pod).expect("a name");
        let mut connection = from.client(runtime);
        let mut number = 0;
        while !stop.load(Ordering::SeqCst) {
            number += 1;
            // What goes to several is not waited for.
            let to = match number % WAITED_FOR {
                0 => Addressees::One(to.into()),
                _ => Addressees::Many(vec![to.into()]),
            };
            let method = Method::MeshSend { to, body: json!(number.to_string()), re: None };
            match runtime.block_on(connection.0.call(Some(&pod), method)) {
                Ok(Event::MeshSent { status, reason, .. }) => self.note(number, &status, reason),
                // The host was killed, or has not taken its seat yet.
                Ok(_) | Err(_) => {
                    connection = from.client(runtime);
                    self.late.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }

    fn note(&self, number: u64, status: &str, reason: Option<String>) {
        match status {
            "received" => drop(self.received.fetch_add(1, Ordering::SeqCst)),
            "sent" if reason.is_none() => {}
            _ => drop(self.late.fetch_add(1, Ordering::SeqCst)),
        }
        match status {
            "received" | "queued" => self.held.lock().expect("no panic").push(number),
            "sent" if reason.is_none() => self.held.lock().expect("no panic").push(number),
            "denied" | "refused" => drop(self.refused.lock().expect("no panic").insert(number)),
            // Nothing is known of it.
            _ => {}
        }
    }

    fn held(&self) -> u64 {
        self.held.lock().expect("no panic").len() as u64
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    fn late(&self) -> u64 {
        self.late.load(Ordering::SeqCst)
    }

    /// Checks the history of the addressee; the numbers that are missing yet.
    fn missing(&self, arrived: &[u64]) -> Vec<u64> {
        let held = self.held.lock().expect("no panic").clone();
        let refused = self.refused.lock().expect("no panic").clone();
        let all: BTreeSet<u64> = arrived.iter().copied().collect();
        assert_eq!(all.len(), arrived.len(), "a message is there twice");
        let invented: Vec<&u64> = all.intersection(&refused).collect();
        assert!(invented.is_empty(), "refused, and in the history: {invented:?}");
        let known: BTreeSet<u64> = held.iter().copied().collect();
        let order: Vec<u64> = arrived.iter().copied().filter(|n| known.contains(n)).collect();
        assert!(order.is_sorted(), "out of order: {order:?}");
        held.into_iter().filter(|number| !all.contains(number)).collect()
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// Becoming peers: the one asks, and a person of the other allows it in the inbox.
fn become_peers(runtime: &Runtime, one: &Machine, other: &Machine) {
    let asked = one.call(runtime, Method::Peer { name: other.address() });
    assert!(
        matches!(&asked, Ok(Event::MeshSent { status, .. }) if status == "received"),
        "{asked:?}"
    );
    let listed = other.bench.yoi(&["inbox"]);
    let request = format!("the agent \"{}\" asks: Peer {}", one.address(), other.pod);
    let line = listed.out.lines().find(|line| line.contains(&request));
    let id = line.and_then(|line| line.strip_prefix('[')?.split(']').next());
    let id = id.unwrap_or_else(|| panic!("{listed:?}"));
    assert_eq!(other.bench.yoi(&["allow", id]).code, Some(0));
    let is_peer = || match one.call(runtime, Method::MeshAgents) {
        Ok(Event::Mesh(view)) => {
            view.agents.iter().any(|agent| agent.name == other.address() && !agent.peers.is_empty())
        }
        other => panic!("{other:?}"),
    };
    eventually("they are peers", is_peer);
}

/// A machine whose processes are stopped, until this is dropped.
struct Frozen<'a>(&'a Network, &'static str);

impl<'a> Frozen<'a> {
    fn of(network: &'a Network, machine: &'static str) -> Self {
        network.signal(machine, "STOP");
        Self(network, machine)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.signal(self.1, "CONT");
    }
}

/// One round of events: of the machines one is killed, one is frozen and one is cut off, each is killed while it comes
/// back, and so is the server.
fn strike(
    round: u64,
    network: &Network,
    server: &mut Server<'_>,
    machines: &[Machine; 3],
    senders: &[Sender; 3],
) {
    let at = |offset: u64| usize::try_from((round + offset) % 3).expect("small");
    let [killed, frozen, cut] = [at(0), at(1), at(2)];
    let stopped = Frozen::of(network, machines[frozen].name);
    network.line(machines[cut].name, false);
    machines[killed].kill();
    server.kill();
    server.start_again();
    machines[killed].kill();
    if round % 4 == 3 {
        let before = senders[cut].late();
        eventually("a message over a cut line is late", || senders[cut].late() > before);
    }
    drop(stopped);
    network.line(machines[cut].name, true);
    machines[frozen].kill();
    machines[cut].kill();
}

#[test]
fn three_machines_lose_and_repeat_nothing_whatever_happens_to_one_of_them() {
    let test = "three_machines_lose_and_repeat_nothing_whatever_happens_to_one_of_them";
    let Some(network) = Network::new(test) else { return };
    let home = network.bench("server");
    let Some(mut server) = Server::start_at(&home, SERVER) else { return };
    let runtime = Runtime::new().expect("a runtime");
    let machines = MACHINES.map(|(name, pod)| {
        let (bench, host) = machine_in(network.bench(name), SETTINGS, &server, name, pod);
        Machine { name, pod, bench, host: Mutex::new(Some(host)) }
    });
    let [casa, trab, docs] = &machines;
    let seen = |machine: &Machine| -> BTreeSet<String> {
        machine.bench.yoi(&["mesh", "ls"]).out.lines().map(str::to_owned).collect()
    };
    let all = |machine: &Machine| -> BTreeSet<String> {
        let name = |other: &Machine| match other.name == machine.name {
            true => other.pod.to_owned(),
            false => other.address(),
        };
        machines.iter().map(name).collect()
    };
    eventually("each machine sees the others", || {
        machines.iter().all(|machine| seen(machine) == all(machine))
    });
    let (id, status) = casa.send(&runtime, "trab:bob", "are you there?", None);
    assert_eq!(status, "received");
    assert_eq!(trab.send(&runtime, "casa:alice", "I am", Some(id.clone())).1, "received");
    casa.read();
    eventually("the answer names the message", || {
        casa.origin("I am").is_some_and(|origin| origin["re"] == id.as_str())
    });
    assert_eq!(docs.bench.yoi(&["block", "casa:"]).code, Some(0));
    assert_eq!(casa.send(&runtime, "docs:carol", "blocked", None).1, "denied");
    assert_eq!(docs.bench.yoi(&["block", "casa:", "--end"]).code, Some(0));
    let ring = [(casa, trab), (trab, docs), (docs, casa)];
    ring.iter().for_each(|(one, other)| become_peers(&runtime, one, other));

    let (kills, messages) = (setting("YOI_KILLS", 50), setting("YOI_MESSAGES", 0));
    let rounds = kills.div_ceil(EVENTS);
    let senders: [Sender; 3] = Default::default();
    let stop = AtomicBool::new(false);
    let go_on = || {
        machines.iter().map(|machine| &machine.bench).chain([&home]).for_each(Bench::goes_on);
    };
    let all_get_through = || {
        let before: Vec<u64> = senders.iter().map(Sender::received).collect();
        eventually("each gets a message through", || {
            senders.iter().zip(&before).all(|(sender, n)| sender.received() > *n)
        });
    };
    thread::scope(|scope| {
        // Dropped when something panics, too: the senders end, and so does the scope.
        let ends = Ends(&stop);
        for (sender, (from, to)) in senders.iter().zip(ring) {
            let (runtime, stop) = (&runtime, &stop);
            scope.spawn(move || sender.run(runtime, from, &to.address(), stop));
        }
        all_get_through();
        for round in 0..rounds {
            strike(round, &network, &mut server, &machines, &senders);
            all_get_through();
            let share = messages * (round + 1) / rounds;
            while senders.iter().map(Sender::held).sum::<u64>() < share {
                all_get_through();
                machines.iter().for_each(Machine::read);
                go_on();
            }
            machines.iter().for_each(Machine::read);
            go_on();
        }
        drop(ends);
    });
    for (sender, (from, to)) in senders.iter().zip(ring) {
        let missing = || sender.missing(&history(&to.bench, to.pod, &from.address()));
        let mut left = Vec::new();
        eventually("what was acknowledged arrives", || {
            go_on();
            to.read();
            left = missing();
            left.is_empty()
        });
        let count = sender.held.lock().expect("no panic").len();
        eprintln!("{} to {}: {count} acknowledged, {} late", from.name, to.name, sender.late());
    }
}

/// Ends the senders.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A file system in memory that is taken away with its test.
struct Disk(PathBuf);

impl Disk {
    fn at(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).expect("a writable directory");
        let disk = Self(path);
        disk.mount(&["-t", "tmpfs", "-o", "size=8g", "tmpfs"]);
        disk
    }

    fn resize(&self, size: &str) {
        self.mount(&["-o", &format!("remount,size={size}")]);
    }

    fn mount(&self, args: &[&str]) {
        let done = Command::new("mount").args(args).arg(&self.0).output().expect("mount");
        assert!(done.status.success(), "{done:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still uses it ends with the test.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn a_server_whose_disk_is_full_loses_nothing_and_a_person_reads_why_it_takes_no_more() {
    let test = "a_server_whose_disk_is_full_loses_nothing_and_a_person_reads_why_it_takes_no_more";
    let Some(network) = Network::new(test) else { return };
    let home = network.bench("server");
    let disk = Disk::at(home.path("server/store"));
    let Some(mut server) = Server::start_at(&home, SERVER) else { return };
    let runtime = Runtime::new().expect("a runtime");
    let [casa, trab] = [MACHINES[0], MACHINES[1]].map(|(name, pod)| {
        let (bench, host) = machine_in(network.bench(name), SETTINGS, &server, name, pod);
        Machine { name, pod, bench, host: Mutex::new(Some(host)) }
    });
    eventually("they see each other", || casa.bench.yoi(&["mesh", "ls"]).out.contains("trab:bob"));
    *trab.host.lock().expect("no test panicked") = None;
    disk.resize("2m");
    let (client, _events) = casa.client(&runtime);
    let pod = PodName::parse(casa.pod).expect("a name");
    // A number with some bytes behind it that fill the disk.
    let send = |number: u64, filling: usize| {
        let body = json!(format!("{number}{}", " ".repeat(filling)));
        // What goes to several is not waited for.
        let to = Addressees::Many(vec!["trab:bob".into()]);
        let method = Method::MeshSend { to, body, re: None };
        match runtime.block_on(client.call(Some(&pod), method)) {
            Ok(Event::MeshSent { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let (mut held, mut number) = (Vec::new(), 0);
    let why = loop {
        number += 1;
        match send(number, 60_000) {
            None => held.push(number),
            Some(why) => break why,
        }
    };
    assert!(held.len() > 5 && why.contains("its disk may be full"), "{} held: {why}", held.len());
    disk.resize("8g");
    // As the sentence says: this server takes nothing more, even with room, until it is started again.
    server.kill();
    server.start_again();
    eventually("it is taken again", || {
        number += 1;
        let is_held = send(number, 0).is_none();
        if is_held {
            held.push(number);
        }
        is_held
    });
    *trab.host.lock().expect("no test panicked") = Some(trab.bench.serve());
    let mut arrived = Vec::new();
    eventually("what was acknowledged arrives", || {
        trab.read();
        arrived = history(&trab.bench, trab.pod, &casa.address());
        arrived.last() >= held.last()
    });
    let known: BTreeSet<u64> = held.iter().copied().collect();
    arrived.retain(|number| known.contains(number));
    assert_eq!(arrived, held, "once and in order");
}
