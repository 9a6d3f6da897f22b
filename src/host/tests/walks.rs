//! Random walks of verbs over one Pod: messages, tools, rewinds, undos, forks, compactions, pauses,
//! cancels and hosts that vanish. After each step the transcript, the next model request, the list
//! of what can be gone back to and the files of the log agree with a small model, which knows
//! nothing of segments and places: it keeps whole histories.

use crate::client::{Client, Events};
use crate::host::Host;
use crate::host::tests::start;
use crate::protocol::entry::{COMPACTED, Entry, Fact};
use crate::protocol::event::Line;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Item, Method, PodInfo, PodName, State, flatten};
use crate::session::{Files, backwards, replay};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;

/// No step takes longer.
const PATIENCE: Duration = Duration::from_secs(30);
const STEPS: usize = 16;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// A stream of numbers that a seed decides (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// A history as a person and a model know it.
#[derive(Clone, Default)]
struct History {
    /// The words of the transcript.
    shown: Vec<String>,
    /// The words of the next model request, but for the new message.
    context: Vec<String>,
    /// Each message, and the history before it.
    messages: Vec<(String, Rc<History>)>,
    /// What each rewind that can be undone replaced, the newest last.
    undo: Vec<Rc<History>>,
    redo: Vec<Rc<History>>,
    paused: bool,
}

impl History {
    fn message(&mut self, text: &str) {
        let before = Rc::new(self.clone());
        self.messages.push((text.into(), before));
        self.says(text);
        self.paused = false;
    }

    fn says(&mut self, text: &str) {
        self.shown.push(text.into());
        self.context.push(text.into());
    }

    /// Goes back to before a message, as the list counts them: 0 is the newest.
    fn rewound(&self, at: usize) -> Self {
        let (_, before) = &self.messages[self.messages.len() - 1 - at];
        let mut now = (**before).clone();
        now.undo.push(Rc::new(self.clone()));
        now.paused = false;
        now
    }

    fn undone(&self) -> Self {
        let mut now = self.undo.last().map_or_else(Self::default, |last| (**last).clone());
        now.redo.push(Rc::new(self.clone()));
        now
    }

    fn redone(&self) -> Self {
        let mut now = self.redo.last().map_or_else(Self::default, |last| (**last).clone());
        now.undo.push(Rc::new(self.clone()));
        now
    }
}

/// The words of an entry that a person reads.
fn words(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::UserInput { segments, .. } => Some(flatten(segments)),
        Fact::AssistantItem { item, .. } => of_item(item),
        Fact::ToolResult { .. } => Some("result".into()),
        Fact::SegmentStart { compacted_from: Some(_), .. } => Some("compacted".into()),
        _ => None,
    }
}

fn of_item(item: &Item) -> Option<String> {
    match item {
        Item::ToolCall { .. } => Some("call".into()),
        Item::ToolResult { .. } => Some("result".into()),
        item => of_text(&item.text()?),
    }
}

/// The words of a text, but for what the runtime adds.
fn of_text(text: &str) -> Option<String> {
    let text = text.strip_prefix(COMPACTED).unwrap_or(text).trim();
    (!text.is_empty() && !text.starts_with("[The ")).then(|| text.to_owned())
}

/// A provider of one model. It writes down each request and answers by the last message: `tool …`
/// calls a tool first; `stall …` and `half …` do not end when they come for the first time.
fn provider(dir: PathBuf, requests: mpsc::Sender<Vec<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
        for connection in listener.incoming() {
            let (dir, requests, seen) = (dir.clone(), requests.clone(), seen.clone());
            // A host that vanished reads no answer.
            std::thread::spawn(move || drop(answer(connection.unwrap(), &dir, &requests, &seen)));
        }
    });
    url
}

fn answer(
    connection: TcpStream,
    dir: &Path,
    requests: &mpsc::Sender<Vec<String>>,
    seen: &std::sync::Mutex<BTreeSet<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap();
    let read = read(&request);
    let compacts = request["tools"].as_array().is_none_or(Vec::is_empty);
    let last = read.last().cloned().unwrap_or_default();
    let said = read.iter().rev().find(|words| is_message(words)).cloned().unwrap_or_default();
    let first = seen.lock().unwrap().insert(said.clone());
    let compaction = read.len();
    // The test that read the requests may have ended.
    let _ = requests.blocking_send(read);
    let (delta, ends) = if compacts {
        (json!({"content": format!("summary of {compaction}")}), true)
    } else if last.starts_with("tool ") {
        let path = dir.join(format!("{}.txt", last.replace(' ', "-")));
        let arguments = json!({"file_path": path, "content": last}).to_string();
        let function = json!({"name": "Write", "arguments": arguments});
        (
            json!({"tool_calls": [{"index": 0, "id": last, "type": "function", "function": function}]}),
            true,
        )
    } else if last.starts_with("half ") && first {
        (json!({"content": format!("begun {last}")}), false)
    } else if last.starts_with("stall ") && first {
        (json!({}), false)
    } else {
        (json!({"content": format!("re {said}")}), true)
    };
    let mut connection = reader.into_inner();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    let event = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    connection.write_all(event(delta.clone(), Value::Null).as_bytes())?;
    if ends {
        let reason = if delta["tool_calls"].is_null() { "stop" } else { "tool_calls" };
        connection.write_all(event(json!({}), reason.into()).as_bytes())?;
        return connection.write_all(b"data: [DONE]\n\n");
    }
    // Until the other side has had enough.
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).map(drop)
}

fn is_message(words: &str) -> bool {
    ["say ", "tool ", "half ", "stall "].iter().any(|kind| words.starts_with(kind))
}

/// The words of the messages of a request, but for the system prompt and the request for a summary.
fn read(request: &Value) -> Vec<String> {
    const SUMMARY: &str = include_str!("../../../prompts/compaction.md");
    let mut words = Vec::new();
    for message in request["messages"].as_array().unwrap().iter().skip(1) {
        let parts = match &message["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            content => content.as_str().into_iter().collect::<Vec<_>>(),
        };
        if message["role"] == "tool" {
            words.push("result".into());
        } else {
            // Texts that follow each other are parted by an empty line.
            let texts = parts.iter().flat_map(|text| {
                let text = text.split(SUMMARY.trim()).next().unwrap_or_default();
                text.split("\n\n").filter_map(of_text)
            });
            words.extend(texts);
        }
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        words.extend((0..calls).map(|_| "call".to_owned()));
    }
    words
}

/// What a step did, and the model after it.
enum Step {
    Done(String, History),
    /// The host is to vanish now.
    Vanish(History),
}

/// One host's life over the files below `root`.
struct Life<'a> {
    host: Host,
    client: Client,
    events: Events,
    requests: &'a mut mpsc::Receiver<Vec<String>>,
    pod: PodName,
}

impl<'a> Life<'a> {
    async fn begin(
        root: &Path,
        pod: &PodName,
        requests: &'a mut mpsc::Receiver<Vec<String>>,
    ) -> Self {
        let host = start(root).await;
        let (client, events) = host.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        Self { host, client, events, requests, pod: pod.clone() }
    }

    async fn call(&self, method: Method) -> Event {
        let call = self.client.call(Some(&self.pod), method.clone());
        let reply = tokio::time::timeout(PATIENCE, call).await.expect("a reply in time");
        reply.unwrap_or_else(|refusal| panic!("{method:?}: {refusal}"))
    }

    fn info(&self) -> PodInfo {
        let family = self.host.shared.family();
        family.into_iter().find(|info| info.name == self.pod).unwrap()
    }

    async fn until(&mut self, state: State) {
        while self.info().state != state {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
            let info = self.info();
            event.unwrap_or_else(|_| panic!("not {state:?}: {info:?}")).expect("a host");
        }
    }

    /// Waits until the model streams this text; events of earlier runs may still be unread.
    async fn until_text(&mut self, wanted: &str) {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
            match event.expect("a text").expect("a host").event {
                Event::TextDelta { text } if text == wanted => return,
                _ => {}
            }
        }
    }

    /// The words of the next model request.
    async fn request(&mut self) -> Vec<String> {
        let request = tokio::time::timeout(PATIENCE, self.requests.recv()).await;
        request.expect("a request in time").expect("a provider")
    }

    /// The words of the transcript, read in pages of some size.
    async fn shown(&self, pod: &PodName, max_bytes: u64) -> Vec<String> {
        let (mut shown, mut before) = (Vec::new(), None);
        loop {
            let page = self.client.call(Some(pod), Method::Page { before, max_bytes }).await;
            let Ok(Event::Page { entries, before: next, .. }) = page else { panic!("{page:?}") };
            let words = entries.iter().filter_map(|line| match line {
                Line::Whole(entry) | Line::Cut { entry, .. } => words(entry),
                Line::Damaged { damaged, .. } => panic!("{damaged}"),
            });
            shown.splice(0..0, words);
            before = next;
            if before.is_none() {
                return shown;
            }
        }
    }

    async fn targets(&self) -> Event {
        self.call(Method::ListRewindTargets).await
    }

    /// Compares what the host says with the model.
    async fn check(&self, model: &History, dice: &mut Dice) -> Result<(), String> {
        let is = |what: &str, found: Vec<String>, expected: &[String]| {
            if found == expected {
                return Ok(());
            }
            Err(format!("{what}: {found:?}\n  expected: {expected:?}"))
        };
        let size = [1, 700, 1 << 20][dice.below(3)];
        is("transcript", self.shown(&self.pod, size).await, &model.shown)?;
        let state = if model.paused { State::Paused } else { State::Idle };
        if self.info().state != state {
            return Err(format!("state: {:?}, expected {state:?}", self.info()));
        }
        let Event::RewindTargets { targets, undo, redo, .. } = self.targets().await else {
            return Err("no targets".into());
        };
        let listed: Vec<String> = targets.iter().map(|target| target.preview.clone()).collect();
        let messages: Vec<String> = model.messages.iter().rev().map(|(m, _)| m.clone()).collect();
        is("targets", listed, &messages)?;
        for (at, target) in targets.iter().enumerate() {
            let drops = target.drops.as_ref().map(|drops| drops.messages);
            if (drops, target.turn_index) != (Some(at + 1), targets.len() - at) {
                return Err(format!("{target:?} at {at}"));
            }
        }
        let offered = (undo.is_some(), redo.is_some());
        if offered != (!model.undo.is_empty(), !model.redo.is_empty()) {
            return Err(format!("undo and redo: {offered:?}"));
        }
        self.check_files(model)
    }

    /// The files of the log, read without the host.
    fn check_files(&self, model: &History) -> Result<(), String> {
        let row = self.host.shared.pod(&self.pod).unwrap();
        let files = Files::new(&self.host.shared.dirs.data, row.session);
        let Some(segment) = self.info().segment else { return Ok(()) };
        let folded = replay(&files, segment, None).map_err(|error| error.to_string())?;
        let history: Vec<String> =
            folded.history.iter().filter_map(|kept| of_item(&kept.item)).collect();
        if history != model.context {
            return Err(format!("fold: {history:?}\n  expected: {:?}", model.context));
        }
        let mut shown: Vec<String> = backwards(&files, segment, None)
            .filter_map(|recent| words(&recent.unwrap().entry))
            .collect();
        shown.reverse();
        if shown != model.shown {
            return Err(format!("files: {shown:?}\n  expected: {:?}", model.shown));
        }
        if !folded.damaged.is_empty() {
            return Err(format!("damaged: {:?}", folded.damaged));
        }
        Ok(())
    }

    /// One random step.
    async fn step(&mut self, model: &History, n: usize, dice: &mut Dice) -> Result<Step, String> {
        let mut now = model.clone();
        let what = match dice.below(16) {
            0..=3 => self.message(&format!("say {n}"), &mut now).await?,
            4 | 5 => self.message(&format!("tool {n}"), &mut now).await?,
            6 => {
                self.send(&format!("half {n}"), &mut now).await?;
                self.until_text(&format!("begun half {n}")).await;
                self.call(Method::Pause).await;
                now.says(&format!("begun half {n}"));
                now.paused = true;
                "pause in a text".into()
            }
            7 => {
                self.send(&format!("stall {n}"), &mut now).await?;
                self.call(Method::Cancel).await;
                now = model.clone();
                now.paused = false;
                "cancel before a text".into()
            }
            8 if dice.below(2) == 0 => {
                self.send(&format!("stall {n}"), &mut now).await?;
                now.paused = true;
                return Ok(Step::Vanish(now));
            }
            8 => return Ok(Step::Vanish(now)),
            9 if model.paused => self.resume(&mut now).await?,
            10 if !model.paused && !model.context.is_empty() => self.compact(&mut now).await?,
            11 => self.fork(n, model, dice).await?,
            12 | 13 if !model.messages.is_empty() => {
                let at = dice.below(model.messages.len());
                now = model.rewound(at);
                self.rewind(at).await
            }
            14 if !model.undo.is_empty() => {
                now = model.undone();
                self.undo("undo").await
            }
            15 if !model.redo.is_empty() => {
                now = model.redone();
                self.undo("redo").await
            }
            _ => self.message(&format!("say {n}"), &mut now).await?,
        };
        Ok(Step::Done(what, now))
    }

    /// Sends a message and compares the model request.
    async fn send(&mut self, text: &str, now: &mut History) -> Result<(), String> {
        now.message(text);
        self.call(Method::say(text)).await;
        self.requested(now).await
    }

    async fn requested(&mut self, now: &History) -> Result<(), String> {
        let request = self.request().await;
        if request == now.context {
            return Ok(());
        }
        Err(format!("request: {request:?}\n  expected: {:?}", now.context))
    }

    async fn message(&mut self, text: &str, now: &mut History) -> Result<String, String> {
        self.send(text, now).await?;
        if text.starts_with("tool ") {
            now.says("call");
            now.says("result");
            self.requested(now).await?;
        }
        now.says(&format!("re {text}"));
        self.until(State::Idle).await;
        Ok(text.to_owned())
    }
}

impl Life<'_> {
    async fn resume(&mut self, now: &mut History) -> Result<String, String> {
        self.call(Method::Resume).await;
        self.requested(now).await?;
        let message = now.context.iter().rev().find(|words| is_message(words)).cloned();
        now.says(&format!("re {}", message.unwrap_or_default()));
        now.paused = false;
        self.until(State::Idle).await;
        Ok("resume".into())
    }

    async fn compact(&mut self, now: &mut History) -> Result<String, String> {
        self.call(Method::Compact).await;
        self.requested(now).await?;
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
            match event.expect("an end in time").expect("a host").event {
                Event::CompactDone { .. } => break,
                Event::CompactFailed { error } => return Err(error),
                _ => {}
            }
        }
        self.until(State::Idle).await;
        now.shown.push("compacted".into());
        now.context = vec![format!("summary of {}", now.context.len())];
        Ok("compact".into())
    }

    async fn rewind(&self, at: usize) -> String {
        let Event::RewindTargets { targets, head_entries, .. } = self.targets().await else {
            panic!("no targets")
        };
        let (target, expected_head_entries) = (targets[at].id, head_entries);
        let rewound = self.call(Method::Rewind { target, expected_head_entries }).await;
        let Event::RewindApplied { input, .. } = rewound else { panic!("{rewound:?}") };
        assert_eq!(flatten(&input), targets[at].preview);
        format!("rewind to before {}", targets[at].preview)
    }

    async fn undo(&self, what: &str) -> String {
        let Event::RewindTargets { head_entries, undo, redo, .. } = self.targets().await else {
            panic!("no targets")
        };
        let of = if what == "undo" { undo } else { redo }.expect("one that can be taken back");
        let expected_head_entries = head_entries;
        self.call(Method::UndoRewind { entry: of.entry, expected_head_entries }).await;
        what.into()
    }

    /// Forks at a random place and compares; at the end the walk may go on with the fork.
    async fn fork(&mut self, n: usize, model: &History, dice: &mut Dice) -> Result<String, String> {
        if self.info().segment.is_none() {
            return Ok("no fork of nothing".into());
        }
        let page = self.call(Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Event::Page { entries, .. } = page else { panic!("{page:?}") };
        let entries = entries.into_iter().filter_map(|line| match line {
            Line::Whole(entry) => words(&entry).map(|_| entry.id),
            Line::Cut { .. } | Line::Damaged { .. } => None,
        });
        let entries: Vec<_> = entries.collect();
        let at = dice.below(entries.len() + 1);
        let name = PodName::parse(&format!("f{n}")).unwrap();
        let (id, expected) = match entries.get(at) {
            Some(id) => (*id, &model.shown[..=at]),
            None => (None, &model.shown[..]),
        };
        self.call(Method::Fork { name: Some(name.clone()), at: id }).await;
        let shown = self.shown(&name, 1 << 20).await;
        if shown != expected {
            return Err(format!("fork: {shown:?}\n  expected: {expected:?}"));
        }
        let other = match id {
            None => std::mem::replace(&mut self.pod, name.clone()),
            Some(_) => name.clone(),
        };
        self.client.call(Some(&other), Method::StopPods { tree: false }).await.unwrap();
        self.client.call(Some(&other), Method::Remove).await.unwrap();
        Ok(format!("fork at {at} of {}", entries.len()))
    }
}

/// Walks with hosts that vanish in between.
fn walk(seed: u64, done: &mut Vec<String>) -> Result<(), String> {
    let shm = Path::new("/dev/shm");
    let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (sender, mut requests) = mpsc::channel(64);
    let settings = format!(
        "provider.fake.wire = 'chat'\nprovider.fake.key_env = []\nmodel = 'fake/m'\n\
         compaction.keep_tokens = 0\nprovider.fake.base_url = '{}'\n",
        provider(root.join("w"), sender)
    );
    std::fs::create_dir_all(root.join("home/config")).unwrap();
    std::fs::create_dir_all(root.join("w")).unwrap();
    std::fs::write(root.join("home/config/config.toml"), settings).unwrap();
    let (mut dice, mut model, mut n) = (Dice(seed), History::default(), 0);
    let mut pod = PodName::parse("w").unwrap();
    while n < STEPS {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let walked = runtime.block_on(async {
            let mut life = Life::begin(&root, &pod, &mut requests).await;
            if n == 0 {
                let (name, cwd) = (Some(pod.clone()), root.join("w"));
                let new = NewPod { name, cwd, ..NewPod::default() };
                life.client.call(None, Method::New(new)).await.unwrap();
            }
            life.check(&model, &mut dice).await?;
            while n < STEPS {
                n += 1;
                match life.step(&model, n, &mut dice).await? {
                    Step::Done(what, now) => {
                        done.push(what);
                        model = now;
                    }
                    Step::Vanish(now) => {
                        done.push("the host vanishes".into());
                        model = now;
                        break;
                    }
                }
                life.check(&model, &mut dice).await?;
            }
            pod = life.pod.clone();
            Ok::<(), String>(())
        });
        // Without a word to any client: tasks end where they wait.
        runtime.shutdown_timeout(Duration::from_secs(5));
        walked?;
    }
    for tool in model.shown.iter().filter(|words| words.starts_with("tool ")) {
        let path = root.join("w").join(format!("{}.txt", tool.replace(' ', "-")));
        let content = std::fs::read_to_string(&path).map_err(|error| format!("{path:?}: {error}"));
        assert_eq!(content?, *tool, "what a tool wrote stays");
    }
    Ok(())
}

#[test]
fn after_any_walk_of_verbs_transcript_request_and_files_agree_with_whole_histories() {
    let first = number("YOI_SEED", 1);
    for seed in first..first + number("YOI_WALKS", 6) {
        let mut done = Vec::new();
        if let Err(broken) = walk(seed, &mut done) {
            panic!("seed {seed}: {broken}\n{}", done.join("\n"));
        }
    }
}
