//! The leader of a mesh under load, with raw members: messages each second, the time to an acknowledgement, its
//! processor time for a message, its memory with a member that never reads. Messages to Pods are acknowledged when
//! they are committed to the mailbox, so they have rows of their own.
//!
//! `cargo bench --bench mesh` measures everything and prints tables; words after `--` choose: `agents pods machines`. `YOI`
//! may name another build of the program. The
//! leader is a process of its own, with its audit on; members are threads of this one. The sizes and patterns are those
//! with which the broker of remote-pi 0.4.2 was measured.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a table is what this program is for")]

#[path = "mesh/machines.rs"]
mod machines;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if is_wanted("agents") {
        agents();
    }
    if is_wanted("pods") {
        pods();
    }
    if is_wanted("machines") {
        machines::measure();
    }
}

/// The program under test.
fn program() -> String {
    std::env::var("YOI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_yoi").to_owned())
}

/// Messages between raw members.
fn agents() {
    let leader = Leader::start();
    println!("| pattern | messages/s | ack p50 | ack p99 | leader CPU/message |");
    println!("|---|---|---|---|---|");
    for load in [
        Load { name: "one pair, one in flight", pairs: 1, window: 1, body: 200, messages: 40_000 },
        Load { name: "one pair, 64 in flight", pairs: 1, window: 64, body: 200, messages: 400_000 },
        Load {
            name: "ten pairs, one in flight",
            pairs: 10,
            window: 1,
            body: 200,
            messages: 20_000,
        },
        Load {
            name: "ten pairs, 16 in flight",
            pairs: 10,
            window: 16,
            body: 200,
            messages: 50_000,
        },
        Load {
            name: "one pair, 64 KiB, 16 in flight",
            pairs: 1,
            window: 16,
            body: 65_536,
            messages: 5_000,
        },
    ] {
        println!("{}", load.measure(&leader));
    }
    println!("{}", never_reads(&leader));
}

/// Messages of raw members to Pods of one host.
fn pods() {
    let host = Leader::with_pods(POD_PAIRS);
    println!(
        "\n| committed to the mailbox of a Pod | messages/s | ack p50 | ack p99 | host CPU/message |"
    );
    println!("|---|---|---|---|---|");
    for load in [
        Load { name: "one pair, one in flight", pairs: 1, window: 1, body: 200, messages: 1_000 },
        Load { name: "one pair, 64 in flight", pairs: 1, window: 64, body: 200, messages: 5_000 },
        Load {
            name: "ten pairs, 16 in flight",
            pairs: POD_PAIRS,
            window: 16,
            body: 200,
            messages: 2_000,
        },
    ] {
        println!("{}", load.measure_pods(&host));
    }
}

/// Pods of the host that is measured.
const POD_PAIRS: usize = 10;
/// Every Pod joins and takes all messages of the load: no message wakes it, so all of them wait.
const POD_SETTINGS: &str = "[mesh]\njoin = true\nwaiting = 1000000\nper_minute = 1000000000\n[limits]\nmailbox = 1000000\n";

/// The program under test as the leader of a mesh of its own.
struct Leader {
    process: Child,
    socket: PathBuf,
    home: tempfile::TempDir,
}

impl Leader {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut process = Command::new(program())
            .args(["mesh", "tail", "--name", "leader"])
            .env("YOI_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut errors = BufReader::new(process.stderr.take().expect("its errors"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("the program says that it joined");
        assert!(line.contains("leads the mesh"), "{line}");
        // It says who joins and leaves; a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self { process, socket: home.path().join("run/.mesh/sock"), home }
    }

    /// A host with so many Pods, `pod0` and on, each of which is a member of the mesh that the host leads.
    fn with_pods(count: usize) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| home.path().join(name);
        for dir in ["config", "ws"] {
            std::fs::create_dir(path(dir)).expect("a new directory");
        }
        std::fs::write(path("config/config.toml"), POD_SETTINGS).expect("a writable directory");
        let script = path("script.toml");
        std::fs::write(&script, "[[when]]\nany = true\ntext = \"done\"\n")
            .expect("a writable directory");
        let yoi = |args: &[String]| {
            let mut command = Command::new(program());
            command.args(args).env("YOI_HOME", home.path()).env("HOME", home.path());
            command.current_dir(path("ws")).stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        let serve = ["--no-ui", "--serve"].map(str::to_owned);
        let process = yoi(&serve).stderr(Stdio::null()).spawn().expect("the program starts");
        let (hosts, socket) = (path("run/.host/sock"), path("run/.mesh/sock"));
        let begun = Instant::now();
        let until = |what: &str, so: &dyn Fn() -> bool| {
            while !so() {
                assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        until("the host serves", &|| UnixStream::connect(&hosts).is_ok());
        let mut args = vec!["--model".to_owned(), format!("rehearsal:{}", script.display())];
        args.extend((0..count).flat_map(|pod| ["-c".to_owned(), format!("new pod{pod}")]));
        let made = yoi(&args).stderr(Stdio::null()).status().expect("the program starts");
        assert!(made.success(), "the Pods are made");
        let joined = || {
            let names = yoi(&["mesh".to_owned(), "ls".to_owned()]).stdout(Stdio::piped()).output();
            let names = names.expect("the program starts").stdout;
            String::from_utf8_lossy(&names).lines().filter(|name| name.starts_with("pod")).count()
        };
        until("the Pods join", &|| joined() == count);
        Self { process, socket, home }
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    /// How many messages were committed to the mailbox of a Pod.
    fn committed(&self, pod: &str) -> usize {
        let db = rusqlite::Connection::open(self.home().join("data/yoi.db")).expect("a database");
        let sql = "SELECT count(*) FROM mail WHERE pod = ?1";
        let count: u32 = db.query_row(sql, [pod], |row| row.get(0)).expect("a count");
        count as usize
    }

    /// Processor time of the leader so far.
    fn cpu(&self) -> Duration {
        let text = self.proc("stat");
        let behind_name = text.rsplit(')').next().unwrap_or_default();
        let ticks =
            behind_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// Memory of the leader, in MB.
    fn memory(&self) -> u64 {
        let text = self.proc("status");
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        kib.unwrap_or(0) / 1000
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.process.id());
        std::fs::read_to_string(path).expect("the leader runs")
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection that has registered.
fn joined(socket: &Path, name: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("the leader listens");
    writeln!(stream, "{{\"type\":\"register\",\"name\":\"{name}\"}}").expect("an open connection");
    let mut byte = [0];
    while byte[0] != b'\n' {
        stream.read_exact(&mut byte).expect("an acknowledgement");
    }
    stream
}

/// The line of a message; its id has the number in it.
fn line(to: &str, number: usize, body: &str) -> String {
    format!(
        "{{\"from\":\"x\",\"to\":\"{to}\",\"id\":\"00000000-0000-7000-8000-{number:012x}\",\"re\":null,\"body\":\"{body}\"}}\n"
    )
}

struct Load {
    name: &'static str,
    pairs: usize,
    /// Messages of one sender without an acknowledgement.
    window: usize,
    /// Bytes of a body.
    body: usize,
    /// Messages of one sender.
    messages: usize,
}

impl Load {
    fn measure(&self, leader: &Leader) -> String {
        let pairs: Vec<(UnixStream, UnixStream, String)> = (0..self.pairs)
            .map(|pair| {
                let name = format!("receiver{pair}");
                (
                    joined(&leader.socket, &format!("sender{pair}")),
                    joined(&leader.socket, &name),
                    name,
                )
            })
            .collect();
        pairs
            .iter()
            .for_each(|(sender, receiver, _)| [sender, receiver].into_iter().for_each(skip));
        let (cpu, begun) = (leader.cpu(), Instant::now());
        let times: Vec<Duration> = std::thread::scope(|scope| {
            let mut senders = Vec::new();
            for (sender, receiver, name) in &pairs {
                scope.spawn(|| self.receive(receiver));
                senders.push(scope.spawn(|| self.send(sender, name)));
            }
            senders.into_iter().flat_map(|sender| sender.join().expect("a sender")).collect()
        });
        row(self.name, times, begun.elapsed(), leader.cpu() - cpu)
    }

    /// The same with Pods as receivers.
    fn measure_pods(&self, host: &Leader) -> String {
        let senders: Vec<(UnixStream, String)> = (0..self.pairs)
            .map(|pair| {
                // Messages of a sender are known by their ids, so each load has senders of its own.
                let name = format!("{}-{}-{pair}", self.pairs, self.window);
                (joined(&host.socket, &name), format!("pod{pair}"))
            })
            .collect();
        senders.iter().for_each(|(sender, _)| skip(sender));
        let (cpu, begun) = (host.cpu(), Instant::now());
        let times: Vec<Duration> = std::thread::scope(|scope| {
            let send = |(sender, pod)| scope.spawn(move || self.send(sender, pod));
            let threads: Vec<_> = senders.iter().map(|(sender, pod)| send((sender, pod))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a sender")).collect()
        });
        row(self.name, times, begun.elapsed(), host.cpu() - cpu)
    }

    /// Sends all messages; the time to each acknowledgement. They come in the order of the messages.
    fn send(&self, mut stream: &UnixStream, to: &str) -> Vec<Duration> {
        let body = "x".repeat(self.body);
        let (mut sent, mut acknowledged) = (0, Vec::with_capacity(self.messages));
        let (mut begun, mut lines, mut buffer) =
            (VecDeque::new(), String::new(), vec![0; 64 * 1024]);
        while acknowledged.len() < self.messages {
            lines.clear();
            while sent - acknowledged.len() < self.window && sent < self.messages {
                let _ = write!(lines, "{}", line(to, sent, &body));
                begun.push_back(Instant::now());
                sent += 1;
            }
            stream.write_all(lines.as_bytes()).expect("an open connection");
            let acks = lines_in(stream, &mut buffer);
            assert!(memchr::memmem::find(&buffer, b"\"denied\"").is_none(), "no message is denied");
            let now = Instant::now();
            acknowledged.extend(begun.drain(..acks).map(|begun| now - begun));
        }
        acknowledged
    }

    fn receive(&self, stream: &UnixStream) {
        let (mut buffer, mut received) = (vec![0; 256 * 1024], 0);
        while received < self.messages {
            received += lines_in(stream, &mut buffer);
        }
    }
}

/// A row of a table.
fn row(name: &str, mut times: Vec<Duration>, took: Duration, cpu: Duration) -> String {
    times.sort_unstable();
    let count = times.len();
    format!(
        "| {name} | {:.0} | {:.0} us | {:.0} us | {:.1} us |",
        count as f64 / took.as_secs_f64(),
        times[count / 2].as_secs_f64() * 1e6,
        times[count * 99 / 100].as_secs_f64() * 1e6,
        cpu.as_secs_f64() * 1e6 / count as f64,
    )
}

/// How many lines end in what is read next.
fn lines_in(mut stream: &UnixStream, buffer: &mut [u8]) -> usize {
    let count = stream.read(buffer).expect("an open connection");
    assert!(count > 0, "the leader closed the connection");
    buffer[..count].iter().filter(|byte| **byte == b'\n').count()
}

/// Skips what was said about members: from now on every line is a message or an acknowledgement.
fn skip(mut stream: &UnixStream) {
    stream.write_all(LIST.as_bytes()).expect("an open connection");
    let mut lines = BufReader::with_capacity(1 << 20, stream);
    let mut text = String::new();
    while !text.contains("list_peers_reply") {
        text.clear();
        lines.read_line(&mut text).expect("an open connection");
    }
    assert!(lines.buffer().is_empty(), "nothing is sent yet");
}

/// A request for the names of the members.
const LIST: &str = "{\"from\":\"x\",\"to\":\"broker\",\"id\":\"00000000-0000-7000-8000-000000000000\",\"re\":null,\"body\":{\"type\":\"list_peers\"}}\n";

/// 200 MiB for a member that never reads: what the leader's memory becomes.
fn never_reads(leader: &Leader) -> String {
    let before = leader.memory();
    let _deaf = joined(&leader.socket, "deaf");
    let mut sender = joined(&leader.socket, "sender");
    let body = "x".repeat(64 * 1024);
    let mut reading = sender.try_clone().expect("a second handle");
    // Read all the time, so that answers stop no message.
    let reader = std::thread::spawn(move || {
        let mut denied = 0;
        let mut text = String::new();
        let mut lines = BufReader::new(&mut reading);
        while lines.read_line(&mut text).is_ok_and(|count| count > 0)
            && !text.contains("list_peers_reply")
        {
            denied += usize::from(text.contains("\"denied\""));
            text.clear();
        }
        denied
    });
    for number in 0..3200 {
        sender.write_all(line("deaf", number, &body).as_bytes()).expect("an open connection");
    }
    sender.write_all(LIST.as_bytes()).expect("an open connection");
    let denied = reader.join().expect("the reader");
    format!(
        "\na member that never reads: {denied} of 3200 messages of 64 KiB denied; memory {before} -> {} MB",
        leader.memory()
    )
}
