//! An MCP client of `yoi mcp` that gets messages while its server is killed again and again, and a record of the
//! messages that it was given.

use crate::bench::{Bench, PATIENCE, eventually};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the client on the mesh.
pub const NAME: &str = "client";
/// How long an idle client waits before it asks again.
const PAUSE: Duration = Duration::from_millis(5);

/// A client whose server is started anew whenever it ends.
pub struct Client {
    server: Arc<Mutex<Option<Child>>>,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Given>,
}

/// The messages that the client was given.
#[derive(Default)]
pub struct Given {
    /// Messages in the order in which they came first.
    pub order: Vec<String>,
    /// How often a message came again.
    pub repeats: usize,
    /// How many servers gave messages.
    pub lives: usize,
    /// The body of each message by its id.
    bodies: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// The ids of the last batch.
    batch: Vec<String>,
}

impl Client {
    pub fn start(bench: &Bench) -> Self {
        let (server, ended) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let command = bench.command(&["mcp", "--name", NAME]);
        let (own, ending) = (Arc::clone(&server), Arc::clone(&ended));
        let thread = std::thread::spawn(move || live(command, &own, &ending));
        Self { server, ended, thread }
    }

    /// Kills the server that runs, or the next one.
    pub fn kill(&self) {
        let kill = || lock(&self.server).as_mut().is_some_and(|child| child.kill().is_ok());
        eventually("a server of the client runs", kill);
    }

    /// Ends when no message waits for the client any more.
    pub fn end(self) -> Given {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.join().expect("the client keeps its promises")
    }
}

fn lock(server: &Mutex<Option<Child>>) -> MutexGuard<'_, Option<Child>> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one server after the other.
fn live(mut command: Command, server: &Mutex<Option<Child>>, ended: &AtomicBool) -> Given {
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut given = Given::default();
    loop {
        let mut child = command.spawn().expect("the program starts");
        let mut connection = Connection::new(&mut child);
        lock(server).replace(child);
        let is_empty = connection.serve(&mut given, ended).is_some();
        if let Some(mut child) = lock(server).take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        if is_empty {
            return given;
        }
    }
}

/// The pipes of one server.
struct Connection {
    input: ChildStdin,
    lines: Receiver<Value>,
    next_id: u64,
}

impl Connection {
    fn new(child: &mut Child) -> Self {
        let input = child.stdin.take().expect("a pipe");
        let lines = lines_of(child.stdout.take().expect("a pipe"));
        Self { input, lines, next_id: 0 }
    }

    /// Gets messages; `None` when the server is gone before the end.
    fn serve(&mut self, given: &mut Given, ended: &AtomicBool) -> Option<()> {
        let me = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me });
        self.request("initialize", &params)?;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        self.request("resources/subscribe", &json!({ "uri": "yoi://messages" }))?;
        given.begins();
        loop {
            // Read first: a message that came before is in the next batch.
            let is_over = ended.load(Ordering::SeqCst);
            let params = json!({ "name": "get_messages", "arguments": {} });
            let result = self.request("tools/call", &params)?;
            if result["isError"] == true {
                continue;
            }
            let messages = result["structuredContent"]["messages"].as_array().expect("messages");
            given.take(messages);
            if messages.is_empty() {
                if is_over {
                    return Some(());
                }
                // Whether the server says that one came or not, the client asks again.
                let _ = self.lines.recv_timeout(PAUSE);
            }
        }
    }

    fn write(&mut self, message: &Value) -> Option<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).ok()
    }

    /// The result of a request.
    fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(error) => panic!("the server does not answer {method}: {error}"),
            };
            if line["id"] == id {
                assert!(line["error"].is_null(), "{line}");
                return Some(line["result"].clone());
            }
        }
    }
}

/// Every line of a server until it ends; an unfinished last line is dropped.
fn lines_of(output: ChildStdout) -> Receiver<Value> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        let read = BufReader::new(output).lines().map_while(Result::ok);
        for line in read.map_while(|line| serde_json::from_str(&line).ok()) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Given {
    /// A new server gives the last batch again, unless it knows that it was taken.
    fn begins(&mut self) {
        self.batch.clear();
        self.lives += 1;
    }

    /// A batch that came in answer to a request, which was written after the batch before was read.
    fn take(&mut self, messages: &[Value]) {
        self.taken.extend(std::mem::take(&mut self.batch));
        for message in messages {
            let text = |key: &str| message[key].as_str().expect("a text").to_owned();
            let (id, body) = (text("id"), text("body"));
            assert!(!self.taken.contains(&id), "{body} was taken and came again");
            match self.bodies.get(&id) {
                Some(known) => {
                    assert_eq!(*known, body, "another message with the same id");
                    assert_eq!(message["again"], true, "{body} came again and does not say so");
                    self.repeats += 1;
                }
                None => {
                    self.order.push(body.clone());
                    self.bodies.insert(id.clone(), body);
                }
            }
            self.batch.push(id);
        }
    }
}
