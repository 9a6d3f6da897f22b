//! A model server of our own, over the Messages wire. It writes every request down, and answers by
//! the last message that begins with `@`:
//!
//! `@talk id` says something. `@work id` thinks, says something and calls two tools, then one, then
//! says that it is done. `@reach id path` writes that file. `@full id` is the same with a context that is full. `@hold id` says
//! something and then nothing more, the first time it is asked. `@approval id` calls a tool that a
//! person is asked about. `@long id` calls a tool that leaves a process behind which never ends.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The window of the model; a full context is near it.
pub const WINDOW: u64 = 100_000;
const FULL: u64 = 95_000;
/// How many tools a piece of work calls.
const CALLS: usize = 3;

/// The server. It ends with the runtime of its test.
#[derive(Clone)]
pub struct Provider {
    inner: Arc<Inner>,
    pub url: String,
}

struct Inner {
    asked: Mutex<Vec<Value>>,
    held: Mutex<BTreeSet<String>>,
    released: AtomicBool,
    calls: AtomicU64,
    /// Between two pieces of an answer.
    pace: Duration,
}

/// What comes next of an answer.
enum Act {
    Send(Value),
    Wait,
    Hang,
}

impl Provider {
    /// Starts a server.
    pub async fn start(pace: Duration) -> Self {
        let inner = Arc::new(Inner {
            asked: Mutex::default(),
            held: Mutex::default(),
            released: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            pace,
        });
        let app = Router::new().fallback(answer).with_state(inner.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { inner, url }
    }

    /// What a person writes into `config.toml` to reach it, as the model `fake/m`. Calls pass
    /// without a question also where they are not confined, but for those of `@approval` and those that
    /// write below `beyond`. A Pod of the profile `keyless` has no key.
    pub fn settings(&self) -> String {
        format!(
            "[permissions]\ndefault = \"allow\"\n[[permissions.rule]]\ntool = \"Bash+network\"\n\
             action = \"ask\"\n[[permissions.rule]]\ntool = \"Write\"\npattern = \"*/beyond/*\"\n\
             action = \"ask\"\n[profile.keyless]\nmodel = \"anthropic/m\"\n[provider.fake]\nwire = \"anthropic\"\nversion = \"v1\"\nbase_url = \"{}\"\n\
             default_model = \"m\"\nwindow = {WINDOW}\nmax_output = 4000\n",
            self.url
        )
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Value> {
        self.inner.asked.lock().expect("no test panics with it").clone()
    }

    /// From now on nothing is held any more, and every command ends soon.
    pub fn release(&self) {
        self.inner.released.store(true, Ordering::Relaxed);
    }

    pub fn requests(&self) -> usize {
        self.inner.asked.lock().expect("no test panics with it").len()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("a request");
    inner.asked.lock().expect("no test panics with it").push(body.clone());
    let (acts, pace) = (inner.acts(&body), inner.pace);
    let lines = stream::unfold(acts.into_iter(), move |mut acts| async move {
        loop {
            match acts.next()? {
                Act::Send(event) => {
                    let kind = event["type"].as_str().unwrap_or_default();
                    let line = Bytes::from(format!("event: {kind}\ndata: {event}\n\n"));
                    return Some((Ok::<_, std::convert::Infallible>(line), acts));
                }
                Act::Wait => tokio::time::sleep(pace).await,
                Act::Hang => std::future::pending().await,
            }
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(lines)).expect("a response")
}

/// The blocks of a conversation, each with who said it.
pub fn blocks(body: &Value) -> Vec<(&str, &Value)> {
    let mut found = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        found.extend(message["content"].as_array().into_iter().flatten().map(|b| (role, b)));
    }
    found
}

/// The messages of people in a conversation, in order.
pub fn said(body: &Value) -> Vec<&str> {
    let texts = blocks(body).into_iter().filter(|(role, _)| *role == "user");
    texts.filter_map(|(_, block)| block["text"].as_str()).collect()
}

impl Inner {
    fn acts(&self, body: &Value) -> Vec<Act> {
        let mut answer = Answer { acts: Vec::new(), block: 0, input: 1_000 };
        let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        if !tools {
            answer.begin();
            answer.text("What happened so far, in short.");
            return answer.end("end_turn");
        }
        let all = blocks(body);
        let command = all.iter().rposition(|(role, block)| {
            *role == "user" && block["text"].as_str().is_some_and(|text| text.starts_with('@'))
        });
        let Some(at) = command else {
            answer.begin();
            answer.text("There is nothing to do.");
            return answer.end("end_turn");
        };
        let words: Vec<&str> = all[at].1["text"].as_str().unwrap_or_default().split(' ').collect();
        let (kind, id) = (words[0], words.get(1).copied().unwrap_or_default());
        let called = all[at..].iter().filter(|(_, block)| block["type"] == "tool_use").count();
        match kind {
            "@work" | "@full" if called < CALLS => {
                if kind == "@full" {
                    answer.input = FULL;
                }
                answer.begin();
                answer.think(&format!("thinking about {id}"));
                answer.text(&format!("now I do what {id} asks for, step {called}"));
                for _ in 0..if called == 0 { 2 } else { 1 } {
                    answer.call(&self.fresh_call(id), "true", &[]);
                }
                answer.end("tool_use")
            }
            "@ask" if called == 0 => {
                answer.begin();
                answer.call(&self.fresh_call(id), "true", &["network"]);
                answer.end("tool_use")
            }
            "@reach" if called == 0 => {
                let call = self.fresh_call(id);
                let write = json!({"file_path": words.get(2), "content": format!("{call}\n")});
                answer.begin();
                answer.call_tool(&call, "Write", &write);
                answer.end("tool_use")
            }
            "@long" if called == 0 => {
                let released = self.released.load(Ordering::Relaxed);
                let then = if released { "true" } else { "sleep 300 & sleep 2" };
                answer.begin();
                answer.call(&self.fresh_call(id), then, &[]);
                answer.end("tool_use")
            }
            "@hold" if self.holds(id) => {
                answer.begin();
                answer.text_open(&format!("I begin with {id} and then I am lost in thought"));
                answer.acts.push(Act::Hang);
                answer.acts
            }
            _ => {
                answer.begin();
                answer.text(&format!("that was {id}, done"));
                answer.end("end_turn")
            }
        }
    }

    /// Whether this is the first time to be lost in thought over it.
    fn holds(&self, id: &str) -> bool {
        !self.released.load(Ordering::Relaxed)
            && self.held.lock().expect("no test panics with it").insert(id.into())
    }

    fn fresh_call(&self, id: &str) -> String {
        format!("toolu_{}_{id}", self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// An answer under construction.
struct Answer {
    acts: Vec<Act>,
    block: u64,
    input: u64,
}

impl Answer {
    fn send(&mut self, event: Value) {
        self.acts.push(Act::Send(event));
    }

    fn begin(&mut self) {
        let usage = json!({"input_tokens": self.input, "output_tokens": 1});
        let message = json!({
            "id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.send(json!({"type": "message_start", "message": message}));
    }

    fn open(&mut self, block: &Value) {
        let event =
            json!({"type": "content_block_start", "index": self.block, "content_block": block});
        self.send(event);
    }

    fn delta(&mut self, delta: &Value) {
        self.acts.push(Act::Wait);
        self.send(json!({"type": "content_block_delta", "index": self.block, "delta": delta}));
    }

    fn close(&mut self) {
        self.send(json!({"type": "content_block_stop", "index": self.block}));
        self.block += 1;
    }

    fn think(&mut self, words: &str) {
        self.open(&json!({"type": "thinking", "thinking": "", "signature": ""}));
        for piece in pieces(words) {
            self.delta(&json!({"type": "thinking_delta", "thinking": piece}));
        }
        self.delta(&json!({"type": "signature_delta", "signature": "c2ln"}));
        self.close();
    }

    fn text_open(&mut self, words: &str) {
        self.open(&json!({"type": "text", "text": ""}));
        for piece in pieces(words) {
            self.delta(&json!({"type": "text_delta", "text": piece}));
        }
    }

    fn text(&mut self, words: &str) {
        self.text_open(words);
        self.close();
    }

    /// A command that leaves its id in the Pod's ledger.
    fn call(&mut self, id: &str, then: &str, needs: &[&str]) {
        let command = format!("echo {id} >> out/effects && {then}");
        let mut arguments = json!({"command": command});
        if !needs.is_empty() {
            arguments["needs"] = json!(needs);
            arguments["reason"] = json!("it is asked for");
        }
        self.call_tool(id, "Bash", &arguments);
    }

    fn call_tool(&mut self, id: &str, name: &str, arguments: &Value) {
        self.open(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        let arguments = arguments.to_string();
        for piece in pieces(&arguments) {
            self.delta(&json!({"type": "input_json_delta", "partial_json": piece}));
        }
        self.close();
    }

    fn end(mut self, reason: &str) -> Vec<Act> {
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        let usage = json!({"output_tokens": 20});
        self.send(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        self.send(json!({"type": "message_stop"}));
        self.acts
    }
}

/// A text in pieces of a few letters; it has no letter of more than one byte.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let pieces: Vec<String> =
        text.as_bytes().chunks(12).map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    pieces.into_iter()
}
