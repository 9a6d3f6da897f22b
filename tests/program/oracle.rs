//! A client of the host socket that remembers everything it was told, and the checks of what must
//! be true of it after the host was killed.

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What clients were told: the ground truth that a killed host is held to.
#[derive(Default)]
pub struct Told {
    /// Committed entries by Pod and id, as they were sent.
    pub entries: BTreeMap<(String, String), Value>,
    /// The acknowledgements of messages: the text, and the reply's data.
    pub accepted: BTreeMap<String, Value>,
}

/// A connection. It ends when the host does; what was told until then counts.
pub struct Screen {
    writer: Mutex<UnixStream>,
    heard: Arc<Heard>,
    reader: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Heard {
    inner: Mutex<Inner>,
    news: Condvar,
}

#[derive(Default)]
struct Inner {
    next: u64,
    replies: HashMap<String, Value>,
    closed: bool,
}

impl Screen {
    /// Connects, watches, and notes every committed entry in `told`.
    pub fn open(socket: &Path, told: Arc<Mutex<Told>>) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        let mut writer = stream.try_clone().ok()?;
        let hello = json!({"hello": {"protocol": 1, "version": "test"}});
        writeln!(writer, "{hello}").ok()?;
        let heard = Arc::new(Heard::default());
        let noting = heard.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { break };
                // A line that was cut by the kill says nothing.
                let Ok(line) = serde_json::from_str::<Value>(&line) else { break };
                note(&noting, &told, line);
            }
            noting.inner.lock().expect("no thread panics with it").closed = true;
            noting.news.notify_all();
        });
        let screen = Self { writer: Mutex::new(writer), heard, reader: Some(reader) };
        screen.ask(None, &json!({"method": "watch"}))?;
        Some(screen)
    }

    /// Gives an order and waits for its reply; `None` when the host ended first.
    pub fn ask(&self, pod: Option<&str>, order: &Value) -> Option<Value> {
        let id = {
            let mut inner = self.heard.inner.lock().expect("no thread panics with it");
            inner.next += 1;
            inner.next.to_string()
        };
        let mut line = order.clone();
        line["id"] = json!(id);
        if let Some(pod) = pod {
            line["pod"] = json!(pod);
        }
        writeln!(self.writer.lock().expect("no thread panics with it"), "{line}").ok()?;
        let mut inner = self.heard.inner.lock().expect("no thread panics with it");
        loop {
            if let Some(reply) = inner.replies.remove(&id) {
                return Some(reply);
            }
            if inner.closed {
                return None;
            }
            let wait = self.heard.news.wait_timeout(inner, Duration::from_secs(60));
            let (next, timeout) = wait.expect("no thread panics with it");
            assert!(!timeout.timed_out(), "no reply to {line}");
            inner = next;
        }
    }

    /// Waits until the host closed the connection and everything it told was noted.
    pub fn until_closed(mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reading thread");
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let writer = self.writer.lock().expect("no thread panics with it");
        // The host may have closed it already.
        let _ = writer.shutdown(std::net::Shutdown::Both);
    }
}

fn note(heard: &Heard, told: &Mutex<Told>, line: Value) {
    if let Some(re) = line["re"].as_str() {
        let mut inner = heard.inner.lock().expect("no thread panics with it");
        inner.replies.insert(re.to_owned(), line.clone());
        heard.news.notify_all();
    } else if line["event"] == "entry" {
        let entry = line["data"]["entry"].clone();
        let (Some(pod), Some(id)) = (line["pod"].as_str(), entry["id"].as_str()) else { return };
        let key = (pod.to_owned(), id.to_owned());
        told.lock().expect("no thread panics with it").entries.insert(key, entry);
    }
}

/// What is wrong with a Pod's log and queue, measured by what clients were told.
pub fn contradictions(pod: &str, log: &[Value], queue: &[String], told: &Told) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<&str, &Value> = BTreeMap::new();
    for entry in log {
        let Some(id) = entry["id"].as_str() else { continue };
        if seen.insert(id, entry).is_some() {
            wrong.push(format!("the entry {id} stands twice in the log"));
        }
    }
    for ((of, id), entry) in &told.entries {
        if of == pod && seen.get(id.as_str()) != Some(&entry) {
            wrong.push(format!("an entry that was told is lost or changed: {entry}"));
        }
    }
    let inputs = || log.iter().filter(|entry| entry["kind"] == "user_input");
    let mut texts = BTreeMap::new();
    for input in inputs() {
        *texts.entry(input["segments"][0]["content"].as_str().unwrap_or("")).or_insert(0) += 1;
    }
    for (text, count) in texts {
        if count > 1 {
            wrong.push(format!("the message `{text}` stands {count} times in the log"));
        }
    }
    for (text, data) in told.accepted.iter().filter(|(text, _)| text.contains(&format!("{pod}-"))) {
        let there = match (data["entry"].as_str(), data["queued"].as_str()) {
            (_, Some(row)) => {
                let taken = inputs().filter(|entry| entry["taken"] == row).count();
                // A row that the log holds is marked when the log is opened, at the first use.
                if taken > 0 { taken } else { queue.iter().filter(|id| *id == row).count() }
            }
            (Some(id), None) => usize::from(seen.contains_key(id)),
            (None, None) => 0,
        };
        if there != 1 {
            wrong.push(format!("`{text}` was acknowledged ({data}) and is there {there} times"));
        }
    }
    wrong
}

/// What is wrong with the side effects: a job is done at most once, and done when its result says
/// so.
pub fn repeated(ledger: &str, log: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for line in ledger.lines() {
        *done.entry(line).or_insert(0) += 1;
    }
    for (job, times) in &done {
        if *times > 1 {
            wrong.push(format!("the tool of job {job} ran {times} times"));
        }
    }
    let results = log.iter().filter(|entry| entry["kind"] == "tool_result");
    for result in results.filter(|entry| entry["item"]["is_error"] != true) {
        let id = result["item"]["call_id"].as_str().unwrap_or("");
        let job = id.strip_prefix("call-").unwrap_or(id);
        if !done.contains_key(job) {
            wrong.push(format!("job {job} has a result and no effect: {result}"));
        }
    }
    wrong
}
