//! Random histories and the requests that are made of them: no API may refuse one, and each call keeps its result.

use crate::config::models::{Model, Reasoning, Wire};
use crate::llm::provider::{body, decoder};
use crate::llm::sse::Event;
use crate::llm::tests::judge::{Flavour, signature};
use crate::llm::wire::origin;
use crate::llm::{Delta, Request, ToolSpec, bench};
use crate::protocol::entry::{COMPACTED, GO_ON};
use crate::protocol::item::Image;
use crate::protocol::{
    Entry, Fact, Item, RequestConfig, Role, Segment, SegmentId, SessionId, SystemItem,
};
use crate::run::compact::{unread, verbatim};
use crate::run::{context, prompt};
use crate::session::{Files, Replay, replay};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Random numbers by a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// A part of a reply.
enum Part {
    Thinking(String),
    Text(String),
    /// Id and name as the server gives them, arguments as the model writes them.
    Call(String, String, String),
}

const NAMES: [&str; 12] = [
    "Read",
    "Bash",
    "Read",
    "Bash",
    "mcp__git__log",
    "functions.Bash",
    "Bash<|channel|>commentary",
    "Bash ",
    "",
    "1st",
    "_private",
    "naïve/tool with a name that is longer than any provider takes it, and longer still",
];
const WORDS: [&str; 8] = ["Done.", "I look.", "", " ", "\n\n", "Trailing \n", "é🦀", "{\"a\":1}"];
/// The pictures of the blob directory.
const PICTURES: [&str; 7] = ["whole", "cut", "empty", "text", "huge", "gif", "lost"];
const TYPES: [&str; 3] = ["image/png", "image/png", "image/jpeg"];

fn png(side: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(side.to_be_bytes());
    bytes.extend(side.to_be_bytes());
    bytes.extend(b"\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xaeB`\x82");
    bytes
}

/// A blob directory with these pictures.
fn blobs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    put("whole", &png(1));
    put("cut", &png(1)[..26]);
    put("empty", b"");
    put("text", b"no picture");
    put("huge", &png(20_000));
    put("gif", b"GIF89a\x01\0\x01\0\0\0\0\x3b");
    dir
}

/// A conversation under way.
struct Conversation<'a> {
    dice: Dice,
    blobs: &'a Path,
    state: Replay,
    /// The states that a rewind or a fork goes back to.
    earlier: Vec<Replay>,
    flavour: Flavour,
    effort: bool,
    /// Whether the server numbers its calls anew in each reply.
    renumbers: bool,
    /// Whether the log was written when ids of calls were those of the wire.
    is_old: bool,
    replies: u64,
    /// The result of each call that was run, by the number in its arguments.
    results: BTreeMap<u64, String>,
    refusals: Vec<String>,
    bodies: &'a mut Bodies,
}

/// The first requests for each API.
type Bodies = BTreeMap<String, Vec<Value>>;

/// The requests for each API that `scripts/sdk-types` checks.
const SAMPLE: usize = 300;

impl Conversation<'_> {
    fn apply(&mut self, fact: Fact) {
        self.state.apply(&Entry::new(fact));
    }

    fn model(&self) -> Model {
        self.flavour.model()
    }

    fn note(&mut self, body: &str) {
        let item = SystemItem::Interrupt { body: body.to_owned() };
        self.apply(Fact::SystemItem { item, taken: None });
    }

    fn input(&mut self) {
        let text = self.dice.of(&[
            "Go on.",
            "What is 2+2?",
            "Why?",
            "Now the next.",
            "é",
            "And?",
            " ",
            "\n",
        ]);
        let segments = vec![Segment::Text { content: text.to_owned() }];
        self.apply(Fact::UserInput { segments, taken: None, from: None });
    }

    fn request(&self, input: Vec<crate::llm::Input>) -> Request {
        let model = self.model();
        let reasoning = match (self.effort, model.reasoning) {
            (false, _) | (_, Reasoning::None) => None,
            (true, Reasoning::Effort) => Some(json!("high")),
            (true, Reasoning::Budget) => Some(json!(8_192)),
        };
        let config =
            RequestConfig { max_tokens: Some(32_000), reasoning, ..RequestConfig::default() };
        let tools = ["Read", "Bash", "mcp__git__log"].map(bench::tool);
        let system = "Be brief.".into();
        let tools: Vec<ToolSpec> = tools.to_vec();
        let conversation = "segment".into();
        let blobs = self.blobs.to_owned();
        Request { system, input, tools, config, conversation, tokens: 0, blobs }
    }

    /// Sends the history to the judge of the model that is asked now.
    fn judge(&mut self, input: Vec<crate::llm::Input>) {
        let request = self.request(input);
        let bytes = body(&request, &self.model());
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        if let Err(refusal) = self.flavour.judge(&body) {
            self.refusals.push(format!("{:?}: {refusal}", self.flavour));
        }
        for (arguments, result) in self.flavour.calls(&body) {
            let Some(number) = arguments["n"].as_u64() else { continue };
            let expected = self.results.get(&number).map_or("", String::as_str);
            if !result.contains(expected) {
                let flavour = self.flavour;
                self.refusals.push(format!(
                    "{flavour:?}: call {number} has the result {result:?}, not {expected:?}"
                ));
            }
        }
        let bodies = self.bodies.entry(format!("{:?}", self.flavour)).or_default();
        if bodies.len() < SAMPLE {
            bodies.push(body);
        }
    }

    fn call(&mut self, place: usize) -> Part {
        let number = self.replies * 10 + place as u64;
        let name = self.dice.of(&NAMES);
        // A server takes the ids that it gives; other servers may not.
        let id = match (self.renumbers, self.flavour.model().wire) {
            (true, Wire::Anthropic) => format!("toolu_{place}"),
            (true, Wire::Chat) if name.len() > 30 => format!("functions:{place}"),
            (true, Wire::Responses) if name.len() > 60 => format!("functions:{place}"),
            (true, _) => format!("{name}:{place}"),
            (false, Wire::Anthropic) => format!("toolu_{number:024}"),
            (false, Wire::Gemini) if self.dice.one_in(2) => String::new(),
            (false, Wire::Gemini) if self.dice.one_in(3) => {
                format!("{}+/={number}", "x".repeat(900))
            }
            (false, Wire::Responses) if self.dice.one_in(6) => format!("{number:060}"),
            (false, _) if self.flavour == Flavour::Mistral => format!("{number:09}"),
            (false, _) => format!("call_{number:024}"),
        };
        let arguments = match self.dice.below(12) {
            0 => "{}".to_owned(),
            1 => format!("{{\"n\":{number},"),
            2 => "[1]".to_owned(),
            _ => json!({"n": number}).to_string(),
        };
        Part::Call(id, name.to_owned(), arguments)
    }

    fn parts(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let thinks = match self.flavour {
            Flavour::OpenAi => false,
            Flavour::DeepSeek | Flavour::Moonshot | Flavour::Mistral => true,
            _ => self.effort,
        };
        for place in 0..1 + self.dice.below(4) {
            if thinks && self.dice.one_in(3) {
                parts.push(Part::Thinking(format!("hm {}", self.replies)));
            }
            parts.push(match self.dice.below(3) {
                0 => Part::Text(self.dice.of(&WORDS).to_owned()),
                _ => self.call(place),
            });
        }
        if self.flavour != Flavour::OpenAi && self.dice.one_in(12) {
            parts.push(Part::Thinking("and then".to_owned()));
        }
        parts
    }

    /// A reply of the model, a part of one, or none. Returns whether there were calls.
    fn reply(&mut self) -> bool {
        self.replies += 1;
        let parts = self.parts();
        let model = self.model();
        let is_whole = !self.dice.one_in(6);
        let mut decoder = decoder(&model);
        let mut deltas = Vec::new();
        for data in events(self.flavour, &parts, is_whole, self.replies) {
            let event = Event { name: String::new(), data };
            decoder.event(&event, &mut deltas).unwrap();
        }
        let stop = decoder.finish(&mut deltas);
        let mut held = Vec::new();
        let mut text = String::new();
        for delta in deltas {
            match delta {
                Delta::Text(more) => text.push_str(&more),
                Delta::Block { item, native, .. } => {
                    if matches!(item, Item::Message { .. }) {
                        text.clear();
                    }
                    held.push((item, native));
                }
                _ => {}
            }
        }
        let of_model = origin(&model);
        let mut calls = Vec::new();
        for (mut item, native) in held {
            if let Item::ToolCall { call_id, arguments, .. } = &mut item {
                if stop.is_none() {
                    continue;
                }
                if self.is_old
                    && let Some(id) = native.as_ref().and_then(id_of_wire)
                {
                    *call_id = id;
                }
                let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
                calls.push((call_id.clone(), arguments["n"].as_u64()));
            }
            let origin = Some(of_model.clone());
            self.apply(Fact::AssistantItem { item, origin, native, partial: false });
        }
        if stop.is_none() {
            if !text.is_empty() {
                let item = Item::message(Role::Assistant, text);
                let origin = Some(of_model);
                self.apply(Fact::AssistantItem { item, origin, native: None, partial: true });
            }
            let note = self.dice.of(&[GO_ON, prompt::INTERRUPTED]);
            self.note(note);
        }
        let called = !calls.is_empty();
        self.answer(calls);
        called
    }

    /// Commits the results of calls in any order; some are interrupted.
    fn answer(&mut self, mut calls: Vec<(String, Option<u64>)>) {
        while !calls.is_empty() {
            // Results of calls with the same id come in the order of the calls.
            let at = if self.is_old { 0 } else { self.dice.below(calls.len()) };
            let (call_id, number) = calls.remove(at);
            let item = match self.dice.below(8) {
                0 => context::interrupted(&call_id),
                1 => Item::ToolResult {
                    call_id,
                    summary: String::new(),
                    content: self.dice.of(&[None, Some(String::new()), Some(" \n".to_owned())]),
                    is_error: self.dice.one_in(2),
                    images: Vec::new(),
                },
                kind => {
                    let summary = format!("result {number:?};");
                    if let Some(number) = number {
                        self.results.insert(number, summary.clone());
                    }
                    let image = |dice: &mut Dice| Image {
                        blob: dice.of(&PICTURES).to_owned(),
                        media_type: dice.of(&TYPES).to_owned(),
                    };
                    let images = match kind {
                        2 => vec![image(&mut self.dice)],
                        3 => vec![image(&mut self.dice), image(&mut self.dice)],
                        _ => Vec::new(),
                    };
                    let content = self.dice.of(&[None, Some("some text".to_owned())]);
                    Item::ToolResult { call_id, summary, content, is_error: kind == 4, images }
                }
            };
            self.apply(Fact::ToolResult { item, files: Vec::new(), sent: None });
        }
    }

    fn compact(&mut self) {
        let read = self.state.history[..unread(&self.state.history)].to_vec();
        let mut input = context::input(&read);
        input.push(bench::plain(Item::message(Role::User, prompt::COMPACTION)));
        self.judge(input);
        let kept = |item| crate::protocol::entry::Kept::new(None, item);
        let mut history =
            vec![kept(Item::message(Role::System, format!("{COMPACTED}\n\nThe handover.")))];
        let keep = self.dice.below(200) as u64;
        let places = verbatim(&self.state.history, keep);
        history.extend(places.into_iter().map(|at| (*self.state.history[at]).clone()));
        self.apply(Fact::SegmentStart {
            session_id: SessionId::new(),
            system_prompt: None,
            config: RequestConfig::default(),
            history,
            forked_from: None,
            compacted_from: None,
        });
    }

    /// Something that happens between two runs, or between two requests.
    fn event(&mut self) {
        match self.dice.below(8) {
            0 | 1 => self.flavour = self.dice.of(&Flavour::ALL),
            2 => self.effort = !self.effort,
            3 if !self.earlier.is_empty() => {
                let at = self.dice.below(self.earlier.len());
                self.state = self.earlier[at].clone();
            }
            4 => self.compact(),
            5 => self.note("A child has finished."),
            6 => self.input(),
            _ => {}
        }
    }

    fn run(&mut self) {
        for _ in 0..2 + self.dice.below(6) {
            self.earlier.push(self.state.clone());
            self.input();
            for _ in 0..1 + self.dice.below(4) {
                let input = context::input(&self.state.history);
                self.judge(input);
                let called = self.reply();
                if self.dice.one_in(3) {
                    self.event();
                }
                if !called {
                    break;
                }
            }
            while self.dice.one_in(2) {
                self.event();
            }
        }
        self.input();
        let input = context::input(&self.state.history);
        self.judge(input);
    }
}

/// The id that a native block of a call has on its wire.
fn id_of_wire(native: &Value) -> Option<String> {
    let id = native["call_id"].as_str().or_else(|| native["id"].as_str());
    let id = id.or_else(|| native["functionCall"]["id"].as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The events in which a server sends a reply; one that is not whole ends within its last part.
fn events(flavour: Flavour, parts: &[Part], is_whole: bool, reply: u64) -> Vec<String> {
    let model = flavour.model();
    let events = match model.wire {
        Wire::Anthropic => anthropic_events(&model.model, parts, is_whole),
        Wire::Responses => responses_events(parts, is_whole, reply),
        Wire::Chat => chat_events(flavour, parts, is_whole),
        Wire::Gemini => gemini_events(flavour, parts, is_whole),
        Wire::Rehearsal => unreachable!("no flavour is a script"),
    };
    events.iter().map(Value::to_string).collect()
}

fn anthropic_events(model: &str, parts: &[Part], is_whole: bool) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {}})];
    for (index, part) in parts.iter().enumerate() {
        let (block, deltas) = match part {
            Part::Thinking(words) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": words}),
                    json!({"type": "signature_delta", "signature": signature(model, words)}),
                ],
            ),
            Part::Text(words) => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": words})],
            ),
            Part::Call(id, name, arguments) => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                vec![json!({"type": "input_json_delta", "partial_json": arguments})],
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        if is_whole || index + 1 < parts.len() {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    if is_whole {
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
        events.push(json!({"type": "message_stop"}));
    }
    events
}

fn responses_events(parts: &[Part], is_whole: bool, reply: u64) -> Vec<Value> {
    let item = |(place, part): (usize, &Part)| match part {
        Part::Thinking(words) => json!({"type": "reasoning", "id": format!("rs_{reply}_{place}"),
            "encrypted_content": "secret", "summary": [{"type": "summary_text", "text": words}]}),
        Part::Text(words) => json!({"type": "message", "id": format!("msg_{reply}_{place}"),
            "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": words, "annotations": []}]}),
        Part::Call(id, name, arguments) => json!({"type": "function_call",
            "id": format!("fc_{reply}_{place}"), "call_id": id, "name": name,
            "arguments": arguments}),
    };
    let items: Vec<Value> = parts.iter().enumerate().map(item).collect();
    let mut events = Vec::new();
    for (place, item) in items.iter().enumerate() {
        events.push(
            json!({"type": "response.output_item.added", "output_index": place, "item": item}),
        );
        if is_whole || place + 1 < items.len() {
            events.push(
                json!({"type": "response.output_item.done", "output_index": place, "item": item}),
            );
        }
    }
    if is_whole {
        let response = json!({"status": "completed", "output": items});
        events.push(json!({"type": "response.completed", "response": response}));
    }
    events
}

fn chat_events(flavour: Flavour, parts: &[Part], is_whole: bool) -> Vec<Value> {
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let mut events = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        events.push(chunk(match part {
            Part::Thinking(words) if flavour == Flavour::Mistral => json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": words}]}]}),
            Part::Thinking(words) => json!({"reasoning_content": words}),
            Part::Text(words) => json!({"content": words}),
            Part::Call(id, name, arguments) => json!({"tool_calls": [{"index": index, "id": id,
                "type": "function", "function": {"name": name, "arguments": arguments}}]}),
        }));
    }
    if is_whole {
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    }
    events
}

fn gemini_events(flavour: Flavour, parts: &[Part], is_whole: bool) -> Vec<Value> {
    let model = flavour.model().model;
    let mut is_signed = flavour == Flavour::Gemini;
    let part = |part: &Part| match part {
        Part::Thinking(words) => json!({"text": words, "thought": true}),
        Part::Text(words) => json!({"text": words}),
        Part::Call(id, name, arguments) => {
            let args = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            let args: Value = if args.is_object() { args } else { json!({}) };
            let mut part = json!({"functionCall": {"name": name, "args": args}});
            if !id.is_empty() {
                part["functionCall"]["id"] = json!(id);
            }
            // Only the first call of a step is signed.
            if std::mem::take(&mut is_signed) {
                part["thoughtSignature"] = json!(signature(&model, &args.to_string()));
            }
            part
        }
    };
    let parts: Vec<Value> = parts.iter().map(part).collect();
    let mut candidate = json!({"content": {"role": "model", "parts": parts}});
    if is_whole {
        candidate["finishReason"] = json!("STOP");
    }
    vec![json!({"candidates": [candidate]})]
}

/// The state of an empty log.
fn empty() -> Replay {
    let home = tempfile::tempdir().unwrap();
    let session_id = SessionId::new();
    let files = Files::new(home.path(), session_id);
    let segment = SegmentId::new();
    let path = files.segment(segment);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let start = Entry::new(Fact::SegmentStart {
        session_id,
        system_prompt: None,
        config: RequestConfig::default(),
        history: Vec::new(),
        forked_from: None,
        compacted_from: None,
    });
    std::fs::write(&path, serde_json::to_string(&start).unwrap() + "\n").unwrap();
    replay(&files, segment, None).unwrap()
}

/// The refusals of one history.
fn refusals(seed: u64, state: &Replay, blobs: &Path, bodies: &mut Bodies) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut conversation = Conversation {
        flavour: dice.of(&Flavour::ALL),
        effort: dice.one_in(2),
        renumbers: dice.one_in(4),
        is_old: dice.one_in(4),
        blobs,
        state: state.clone(),
        earlier: Vec::new(),
        replies: 0,
        results: BTreeMap::new(),
        refusals: Vec::new(),
        bodies,
        dice,
    };
    conversation.run();
    conversation.refusals
}

#[test]
fn no_api_refuses_a_random_history_and_each_call_keeps_its_result() {
    // Further histories: YOI_HISTORIES=10000; one of them: YOI_HISTORY=seed. A sample of the requests: YOI_BODIES=file.
    let number = |name| std::env::var(name).ok().and_then(|count| count.parse::<u64>().ok());
    let seeds = match number("YOI_HISTORY") {
        Some(seed) => seed..seed + 1,
        None => 0..number("YOI_HISTORIES").unwrap_or(300),
    };
    let (state, blobs, mut bodies) = (Arc::new(empty()), blobs(), Bodies::new());
    let mut unknown: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for seed in seeds {
        for refusal in refusals(seed, &state, blobs.path(), &mut bodies) {
            // Refusals of one kind differ in their numbers.
            let kind = refusal.replace(|c: char| c.is_ascii_digit(), "");
            unknown.entry(kind).or_insert((0, seed)).0 += 1;
        }
    }
    if let Some(file) = std::env::var_os("YOI_BODIES") {
        let lines = bodies.iter().flat_map(|(flavour, bodies)| {
            bodies
                .iter()
                .map(move |body| format!("{}\n", json!({"flavour": flavour, "body": body})))
        });
        std::fs::write(file, lines.collect::<String>()).unwrap();
    }
    assert!(unknown.is_empty(), "refusals, how often each came, and the first seed: {unknown:#?}");
}
