//! A host of an older program: what a screen and commands say of it, and how it is ended.

use crate::bench::Bench;
use crate::pty::Terminal;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use yoi::protocol::{Event, Incoming, Method, Outgoing, PodInfo, PodName, State};

/// The protocol that it speaks.
const OLD: u32 = yoi::protocol::PROTOCOL - 1;

/// A host that speaks the former protocol, as its lines were, until it is told to end.
struct OlderHost {
    /// Stands for its process.
    process: Child,
    ended: Arc<Mutex<bool>>,
}

impl OlderHost {
    fn start(bench: &Bench) -> Self {
        std::fs::create_dir_all(bench.data()).expect("a writable home");
        let process = Command::new("sleep").arg("600").spawn().expect("a process");
        let socket = bench.path("old.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let mut lock = File::create(bench.data().join("host.lock")).expect("a new file");
        lock.lock().expect("a file that nobody else locks");
        let holder = serde_json::json!({
            "pid": process.id(), "version": "0.0.9", "socket": socket
        });
        writeln!(lock, "{holder}").expect("a writable file");
        let ended = Arc::new(Mutex::new(false));
        let end = Arc::clone(&ended);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a client");
                if converse(&stream) {
                    *end.lock().expect("no thread panics with it") = true;
                    let _ = std::fs::remove_file(&socket);
                    // As a host does: the connection ends behind the lock.
                    return drop((lock, stream));
                }
            }
        });
        Self { process, ended }
    }

    fn has_ended(&self) -> bool {
        *self.ended.lock().expect("no thread panics with it")
    }
}

impl Drop for OlderHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers a client that speaks its protocol; returns whether that ended the host.
fn converse(mut stream: &UnixStream) -> bool {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let hello = format!("{{\"hello\":{{\"protocol\":{OLD},\"version\":\"0.0.9\"}}}}\n");
    stream.write_all(hello.as_bytes()).expect("a client that reads");
    let theirs: serde_json::Value =
        serde_json::from_str(&lines.next().expect("a line").expect("a text")).expect("a hello");
    if theirs["hello"]["protocol"] != OLD {
        return false;
    }
    for line in lines.map_while(Result::ok) {
        let Incoming { id, method, .. } = Incoming::decode(line.as_bytes()).expect("a request");
        let accepted = Event::done();
        let mut tell = |id: Option<String>, event: Event| {
            let line = Outgoing { re: id, pod: None, seq: None, event }.encode();
            // A client that knows enough has gone.
            let _ = stream.write_all(&line);
        };
        match method {
            Method::Watch => {
                tell(id, accepted);
                let pod = |name: &str, state| {
                    let name = PodName::parse(name).expect("a name");
                    PodInfo::bare(name, state, 1, "/w".into(), "/w".into())
                };
                let pods = vec![
                    pod("alice", State::Running),
                    pod("bob", State::Idle),
                    pod("carol", State::Running),
                ];
                let (peers, approvals, agents) = (Vec::new(), Vec::new(), Vec::new());
                tell(None, Event::Family { pods, peers, approvals, agents });
            }
            Method::Stop => {
                tell(id, accepted);
                return true;
            }
            other => panic!("a request that is not the same in every protocol: {other:?}"),
        }
    }
    false
}

#[test]
fn commands_name_an_older_host_and_its_runs_with_exit_5_and_host_stop_ends_it() {
    let bench = Bench::new();
    let older = OlderHost::start(&bench);
    for args in [&["ls"][..], &["-p", "hello"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(5), "{done:?}");
        let words = done.last_words();
        assert!(words.contains("is of an older yoi") && words.contains("version 0.0.9"), "{words}");
        let paused = "`yoi host stop` ends it and pauses the runs of alice and carol";
        assert!(words.contains(paused), "{words}");
    }
    assert!(!older.has_ended());
    let done = bench.yoi(&["host", "stop"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(older.has_ended());
    assert_eq!(bench.yoi(&["ls"]).code, Some(0));
}

#[test]
fn a_screen_offers_to_replace_an_older_host_names_its_runs_and_escape_leaves_it() {
    let bench = Bench::new();
    let older = OlderHost::start(&bench);
    let mut terminal = Terminal::open(&bench, &[]);
    terminal.waits_for("pauses the runs of alice and carol");
    terminal.waits_for("Enter stops it and starts a new one, Esc leaves");
    terminal.press("x");
    terminal.press("\x1b");
    assert_eq!(terminal.ends(), 5);
    assert!(terminal.is_cooked());
    assert!(!older.has_ended());

    let mut terminal = Terminal::open(&bench, &[]);
    terminal.waits_for("Esc leaves");
    terminal.press("\r");
    terminal.waits_for("what to work on");
    assert!(older.has_ended());
    assert_ne!(bench.host_pid(), Some(older.process.id()));
}
