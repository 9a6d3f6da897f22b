//! A session of 120 calls against a provider that keeps a prompt cache by prefix, as Anthropic's does: what is read from
//! the cache, what it costs, and what of the outputs the model still sees.

use crate::bench::Bench;
use crate::dice::Dice;
use crate::walks::provider::body;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const CALLS: usize = 120;
/// How many blocks before a marker the provider looks for what it has cached.
const LOOKS_BACK: usize = 20;

/// A session as the provider saw it.
#[derive(Debug, Default)]
struct Session {
    /// The hashes of the prefixes that are cached.
    cached: HashSet<u64>,
    former: Vec<String>,
    requests: usize,
    breaks: usize,
    /// Bytes in all requests, and those of them that were read from the cache or written to it.
    sent: usize,
    read: usize,
    written: usize,
    /// The outputs in the last request that still hold their text.
    visible: usize,
}

impl Session {
    /// Takes a request; the number of requests so far.
    fn take(&mut self, request: &Value) -> usize {
        let blocks = blocks(request);
        let mut hasher = DefaultHasher::new();
        let mut size = 0;
        let prefixes: Vec<(u64, usize)> = blocks
            .iter()
            .map(|(text, _)| {
                text.hash(&mut hasher);
                size += text.len();
                (hasher.finish(), size)
            })
            .collect();
        let marked = blocks.iter().enumerate().filter(|(_, (_, marked))| *marked);
        let marked: Vec<usize> = marked.map(|(place, _)| place).collect();
        let hit = |marker: &usize| {
            let near = marker.saturating_sub(LOOKS_BACK - 1)..=*marker;
            near.rev().find(|place| self.cached.contains(&prefixes[*place].0))
        };
        let read = marked.iter().filter_map(hit).max().map_or(0, |place| prefixes[place].1);
        let last = marked.last().map_or(0, |place| prefixes[*place].1);
        self.cached.extend(marked.iter().map(|place| prefixes[*place].0));
        self.read += read;
        self.written += last.saturating_sub(read);
        self.sent += size;
        let texts: Vec<String> = blocks.into_iter().map(|(text, _)| text).collect();
        if !texts.starts_with(&self.former) {
            self.breaks += 1;
        }
        let shown = |text: &&String| text.contains("tool_result") && text.contains("line of file");
        self.visible = texts.iter().filter(shown).count();
        self.former = texts;
        self.requests += 1;
        self.requests
    }

    /// The share that was read from the cache, in per cent.
    fn share(&self) -> usize {
        self.read * 100 / self.sent
    }

    /// Thousand tokens at the price of fresh input: a token that is written costs 1.25, one that is read 0.1.
    fn cost(&self) -> usize {
        let fresh = self.sent - self.read - self.written;
        (self.written * 125 + self.read * 10 + fresh * 100) / 100 / 4 / 1000
    }
}

/// The parts of a request in the order in which they are cached, and whether a marker ends each.
fn blocks(request: &Value) -> Vec<(String, bool)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let beginning = list(&request["tools"]).into_iter().chain(list(&request["system"]));
    let messages = list(&request["messages"]).into_iter();
    let messages = messages.flat_map(|message| {
        let role = message["role"].clone();
        list(&message["content"]).into_iter().map(move |mut block| {
            block["role"] = role.clone();
            block
        })
    });
    let part = |mut block: Value| {
        let marker = block.as_object_mut().and_then(|block| block.remove("cache_control"));
        (block.to_string(), marker.is_some())
    };
    beginning.chain(messages).map(part).collect()
}

/// Serves the session; the address.
fn provider(bench: &Bench, session: Arc<Mutex<Session>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let dir = bench.ws();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut reader = BufReader::new(connection);
            let request = body(&mut reader).expect("a request");
            let so_far = session.lock().expect("no thread panics with it").take(&request);
            let file = dir.join(format!("f{:03}.rs", so_far - 1));
            let call = (so_far <= CALLS).then(|| match so_far % 3 {
                0 => ("Bash", json!({"command": format!("cat {}", file.display())})),
                _ => ("Read", json!({"file_path": file})),
            });
            // The other side may be gone.
            let _ = answer(reader.into_inner(), so_far, call);
        }
    });
    url
}

fn answer(
    mut connection: TcpStream,
    number: usize,
    call: Option<(&str, Value)>,
) -> std::io::Result<()> {
    let reason = if call.is_some() { "tool_use" } else { "end_turn" };
    let text = format!("Step {number}: the next file, because the former one referred to it.");
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {"output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    if let Some((name, input)) = call {
        let id = format!("toolu_{number}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        events.extend([
            json!({"type": "content_block_start", "index": 1, "content_block": block}),
            json!({"type": "content_block_delta", "index": 1, "delta": delta}),
            json!({"type": "content_block_stop", "index": 1}),
        ]);
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    events.push(json!({"type": "message_stop"}));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    connection.write_all(events.as_bytes())
}

/// Plays the session with a model of this window.
fn session(window: u32) -> Session {
    let bench = Bench::new();
    let mut dice = Dice::new(7);
    for number in 0..CALLS {
        let lines = 40 + dice.below(70);
        let line = |line| format!("    let value_{line} = line of file {number:03} ({line});\n");
        let text: String = (0..lines).map(line).collect();
        std::fs::write(bench.ws().join(format!("f{number:03}.rs")), text).expect("a writable file");
    }
    let seen = Arc::new(Mutex::new(Session::default()));
    let url = provider(&bench, seen.clone());
    bench.settings(&format!(
        "model = 'fake/m'\n[provider.fake]\nwire = 'anthropic'\nkey_env = []\nbase_url = '{url}'\n\
         [models.'fake/m']\nwindow = {window}\nmax_output = 4096\n[limits]\nmax_turns = 200\n"
    ));
    let done = bench.yoi(&["--no-ui", "--yes", "-p", "read all files"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    drop(bench);
    let seen = seen.lock().expect("no thread panics with it");
    assert_eq!(seen.requests, CALLS + 1, "one request for each call, and the last");
    Session { cached: HashSet::new(), former: Vec::new(), ..*seen }
}

#[test]
fn a_session_of_120_calls_is_read_from_the_cache_and_keeps_its_outputs() {
    let whole = session(200_000);
    println!(
        "window 200,000: {} % read, {} thousand units: {whole:?}",
        whole.share(),
        whole.cost()
    );
    assert_eq!((whole.breaks, whole.visible), (0, CALLS));
    assert!(whole.share() >= 97, "{} %", whole.share());
    assert!(whole.cost() <= 1050, "{} thousand units", whole.cost());
    let small = session(100_000);
    println!(
        "window 100,000: {} % read, {} thousand units: {small:?}",
        small.share(),
        small.cost()
    );
    assert!(small.breaks <= 4, "{small:?}");
    assert!(small.visible >= 35, "{small:?}");
    assert!(small.share() >= 93, "{} %: {small:?}", small.share());
}
