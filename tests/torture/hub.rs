//! A connection to the host socket that writes down everything it is told.

use crate::ledger::Acknowledged;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};

/// The longest anything may take; only a program that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The connection; it ends when the host does.
#[derive(Clone)]
pub struct Hub {
    orders: mpsc::UnboundedSender<Vec<u8>>,
    received: Arc<Mutex<Received>>,
    acknowledged: Arc<Mutex<Acknowledged>>,
}

#[derive(Default)]
struct Received {
    count: u64,
    /// The order of each reply that is waited for, for the ledger of acknowledgements.
    waiting: HashMap<String, (Option<Note>, oneshot::Sender<Value>)>,
    listeners: Vec<(String, mpsc::UnboundedSender<Value>)>,
    pods: HashMap<String, Value>,
    /// What waits for a person, by its id.
    questions: HashMap<String, Value>,
    /// Who was peers when this connection began to watch.
    peers: BTreeSet<(String, String)>,
    closed: bool,
}

/// What an order is about, if its acknowledgement counts.
#[derive(Clone, Debug)]
pub struct Note {
    pub pod: String,
    pub id: String,
}

/// The events of one Pod, from a moment on; `None` when the host ended.
pub struct Events(mpsc::UnboundedReceiver<Value>);

impl Events {
    pub async fn next(&mut self) -> Option<Value> {
        within("an event", self.0.recv()).await
    }

    /// The next event of that kind.
    pub async fn until(&mut self, kind: &str) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if event["event"] == kind {
                return Some(event);
            }
        }
    }
}

/// Waits, but not for ever.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("{what} did not come in {PATIENCE:?}"))
}

impl Hub {
    /// Connects and watches; `None` when the host ends meanwhile.
    pub async fn open(socket: &Path, acknowledged: Arc<Mutex<Acknowledged>>) -> Option<Self> {
        let stream = UnixStream::connect(socket).await.ok()?;
        let (reader, mut writer) = stream.into_split();
        let (orders, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let received = Arc::new(Mutex::new(Received::default()));
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if writer.write_all(&line).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(listen(reader, received.clone(), acknowledged.clone()));
        let hub = Self { orders, received, acknowledged };
        hub.send(&json!({"hello": {"protocol": yoi::protocol::PROTOCOL, "version": "test"}}));
        let mut family = hub.events("*");
        hub.call(None, "watch", Value::Null).await?;
        family.until("family").await?;
        Some(hub)
    }

    fn send(&self, line: &Value) {
        // A connection that ended is noticed by who reads.
        let _ = self.orders.send(format!("{line}\n").into_bytes());
    }

    /// Gives an order and waits for its reply; `None` when the host ended first.
    pub async fn call(&self, pod: Option<&str>, method: &str, params: Value) -> Option<Value> {
        self.order(pod, method, params, None).await
    }

    /// As [`Hub::call`], for an order whose acknowledgement is written down under an id.
    pub async fn note(&self, pod: &str, method: &str, params: Value, id: &str) -> Option<Value> {
        let note = Note { pod: pod.to_owned(), id: id.to_owned() };
        self.order(Some(pod), method, params, Some(note)).await
    }

    /// A message of a person; its text begins with what is to be done.
    pub async fn say(&self, pod: &str, text: &str, queue: bool) -> Option<Value> {
        let id = text.split(' ').nth(1).expect("a message names itself");
        let input = json!([{"kind": "text", "content": text}]);
        self.note(pod, "run", json!({"input": input, "queue": queue}), id).await
    }

    /// Background news.
    pub async fn notify(&self, pod: &str, id: &str) -> Option<Value> {
        self.note(pod, "notify", json!({"message": format!("news {id} .")}), id).await
    }

    pub async fn order(
        &self,
        pod: Option<&str>,
        method: &str,
        params: Value,
        note: Option<Note>,
    ) -> Option<Value> {
        let (answer, reply) = oneshot::channel();
        let line = {
            let mut received = self.received.lock().expect("no test panics with it");
            if received.closed {
                return None;
            }
            received.count += 1;
            let id = received.count.to_string();
            received.waiting.insert(id.clone(), (note, answer));
            let mut line = json!({"id": id, "method": method});
            if let Some(pod) = pod {
                line["pod"] = json!(pod);
            }
            if !params.is_null() {
                line["params"] = params;
            }
            line
        };
        self.send(&line);
        within(&format!("a reply to {line}"), reply).await.ok()
    }

    /// The events of a Pod from now on, or with `*` of all of them.
    pub fn events(&self, pod: &str) -> Events {
        let (tell, events) = mpsc::unbounded_channel();
        let mut received = self.received.lock().expect("no test panics with it");
        if !received.closed {
            received.listeners.push((pod.to_owned(), tell));
        }
        Events(events)
    }

    /// What was last told of a Pod.
    pub fn info(&self, pod: &str) -> Option<Value> {
        self.received.lock().expect("no test panics with it").pods.get(pod).cloned()
    }

    /// What a Pod waits to be answered.
    pub fn question(&self, pod: &str) -> Option<Value> {
        let received = self.received.lock().expect("no test panics with it");
        received.questions.values().find(|approval| approval["pod"] == pod).cloned()
    }

    /// Who was peers at the start of this connection, each pair in the order of its names.
    pub fn peers(&self) -> BTreeSet<(String, String)> {
        self.received.lock().expect("no test panics with it").peers.clone()
    }

    /// Changes the ledger of what was told.
    pub fn write_down<T>(&self, change: impl FnOnce(&mut Acknowledged) -> T) -> T {
        change(&mut self.acknowledged.lock().expect("no test panics with it"))
    }

    pub fn pods(&self) -> Vec<Value> {
        self.received.lock().expect("no test panics with it").pods.values().cloned().collect()
    }

    /// Waits until what is known of a Pod fits; `None` when the host ended first.
    pub async fn is(&self, pod: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut changes = self.events(pod);
        loop {
            if let Some(info) = self.info(pod).filter(|info| fits(info)) {
                return Some(info);
            }
            loop {
                let event = changes.next().await?;
                if event["event"] == "pod_changed" || event["event"] == "family" {
                    break;
                }
            }
        }
    }

    /// Waits until the host closed the connection and everything it told was written down.
    pub async fn until_closed(&self) {
        let mut events = self.events("");
        while events.next().await.is_some() {}
    }
}

async fn listen(
    reader: OwnedReadHalf,
    received: Arc<Mutex<Received>>,
    acknowledged: Arc<Mutex<Acknowledged>>,
) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line).await, Ok(n) if n > 0) {
        // A line that the kill cut says nothing.
        let Ok(event) = serde_json::from_slice::<Value>(&line) else { break };
        line.clear();
        acknowledged.lock().expect("no test panics with it").note(&event);
        received.lock().expect("no test panics with it").hear(event, &acknowledged);
    }
    let mut received = received.lock().expect("no test panics with it");
    received.closed = true;
    received.waiting.clear();
    received.listeners.clear();
}

impl Received {
    fn hear(&mut self, event: Value, acknowledged: &Mutex<Acknowledged>) {
        if let Some(re) = event["re"].as_str() {
            if let Some((note, answer)) = self.waiting.remove(re) {
                if let Some(note) = note
                    && matches!(event["event"].as_str(), Some("accepted" | "spawned"))
                {
                    acknowledged
                        .lock()
                        .expect("no test panics with it")
                        .accepted(&note, &event["data"]);
                }
                // Who asked may have given up.
                let _ = answer.send(event);
            }
            return;
        }
        match event["event"].as_str() {
            Some("family") => {
                let pods = event["data"]["pods"].as_array().cloned().unwrap_or_default();
                self.pods = pods.into_iter().map(|info| (name(&info), info)).collect();
                let approvals = event["data"]["asks"].as_array().cloned().unwrap_or_default();
                let peers = event["data"]["peers"].as_array().cloned().unwrap_or_default();
                self.peers = peers.iter().map(|edge| (text(edge, "a"), text(edge, "b"))).collect();
                self.questions =
                    approvals.into_iter().map(|approval| (id(&approval), approval)).collect();
                self.listeners.retain(|(_, tell)| tell.send(event.clone()).is_ok());
            }
            Some("asked") => {
                let approval = event["data"]["ask"].clone();
                self.questions.insert(id(&approval), approval);
            }
            Some("answered") => {
                let approval = event["data"]["ask"].as_str().unwrap_or_default();
                self.questions.remove(approval);
            }
            Some("pod_removed") => {
                self.pods.remove(event["data"]["name"].as_str().unwrap_or_default());
            }
            Some("pod_changed") => {
                let info = event["data"]["info"].clone();
                let pod = name(&info);
                self.pods.insert(pod.clone(), info);
                self.tell(&pod, &event);
            }
            _ => {
                let pod = event["pod"].as_str().unwrap_or_default().to_owned();
                self.tell(&pod, &event);
            }
        }
    }

    fn tell(&mut self, pod: &str, event: &Value) {
        self.listeners
            .retain(|(of, tell)| (of != pod && of != "*") || tell.send(event.clone()).is_ok());
    }
}

fn name(info: &Value) -> String {
    text(info, "name")
}

fn id(approval: &Value) -> String {
    text(approval, "id")
}

fn text(of: &Value, key: &str) -> String {
    of[key].as_str().unwrap_or_default().to_owned()
}
