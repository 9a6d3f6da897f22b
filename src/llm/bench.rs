//! What the tests of the wires share: a model, a request, and a decoder fed with events.

use crate::config::models::{KeySource, Model, Reasoning, Wire};
use crate::llm::sse::Event;
use crate::llm::wire::{Decode, Fault};
use crate::llm::{Delta, Failure, Input, Request, Stop, ToolSpec};
use crate::protocol::entry::Kept;
use crate::protocol::item::Image;
use crate::protocol::{Item, Origin, RequestConfig};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// A picture of one pixel.
pub const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub fn model(wire: Wire) -> Model {
    Model {
        wire,
        provider: "prov".into(),
        model: "m1".into(),
        base_url: "http://127.0.0.1:9/v1".into(),
        key: KeySource::None,
        window: 100_000,
        max_output: 4096,
        price: None,
        images: true,
        reasoning: Reasoning::None,
        own_url: false,
        url_variable: None,
        dialect: None,
    }
}

pub fn request(input: Vec<Input>) -> Request {
    Request {
        system: "be brief".into(),
        input,
        tools: vec![tool("Read"), tool("Bash")],
        config: RequestConfig::default(),
        conversation: "segment-1".into(),
        tokens: 0,
        blobs: "/nowhere".into(),
    }
}

/// A refusal with this status, in these words of the provider.
pub fn refusal(status: u16, words: &str) -> Failure {
    let message = format!("prov at support.host refused the request ({status}): {words}");
    Failure::Status { status, retry_after: None, message, provider_text: words.into() }
}

pub fn tool(name: &str) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec { name: name.into(), description: format!("{name}s"), schema }
}

/// An item of nobody in particular.
pub fn plain(item: Item) -> Input {
    Input::new(Kept::new(None, item))
}

/// An item that the model `m1` on `wire` said, with its own form.
pub fn native(wire: Wire, item: Item, native: Value) -> Input {
    let origin = crate::llm::wire::origin(&model(wire));
    Input::new(Kept { origin: Some(origin), native: Some(native), ..Kept::new(None, item) })
}

/// The same of another model of that wire.
pub fn foreign(wire: Wire, item: Item, value: Value) -> Input {
    let origin = crate::llm::wire::origin(&model(wire));
    let other = Origin { model: "m2".into(), ..origin };
    Input::new(Kept { origin: Some(other), native: Some(value), ..Kept::new(None, item) })
}

pub fn call(id: &str, name: &str, arguments: &str) -> Item {
    Item::ToolCall { call_id: id.into(), name: name.into(), arguments: arguments.into() }
}

pub fn result(id: &str, summary: &str) -> Item {
    Item::ToolResult {
        call_id: id.into(),
        summary: summary.into(),
        content: None,
        is_error: false,
        images: Vec::new(),
    }
}

/// A failed result with a long text and one image, which lies in the returned directory.
pub fn rich_result(id: &str) -> (tempfile::TempDir, Item) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("b1"), BASE64_STANDARD.decode(DOT).unwrap()).unwrap();
    let item = Item::ToolResult {
        call_id: id.into(),
        summary: "1 line".into(),
        content: Some("the content".into()),
        is_error: true,
        images: vec![Image { blob: "b1".into(), media_type: "image/png".into() }],
    };
    (dir, item)
}

pub fn thought(text: &str) -> Item {
    Item::Reasoning {
        text: text.into(),
        summary: Vec::new(),
        encrypted_content: None,
        signature: None,
    }
}

/// Feeds `events` to `decoder`: the deltas, and how it ended (`None`: it was cut).
pub fn run(mut decoder: impl Decode, events: &[Value]) -> (Vec<Delta>, Option<Stop>) {
    let mut out = Vec::new();
    for event in events {
        decoder.event(&data(event), &mut out).unwrap();
    }
    let stop = decoder.finish(&mut out);
    // Sizes are the business of the tests that count.
    out.retain(|delta| !matches!(delta, Delta::Unseen(_)));
    (out, stop)
}

/// The fault that the last of `events` is.
pub fn fault(mut decoder: impl Decode, events: &[Value]) -> Fault {
    let mut out = Vec::new();
    let mut results = events.iter().map(|event| decoder.event(&data(event), &mut out));
    results.find_map(Result::err).unwrap()
}

fn data(event: &Value) -> Event {
    let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
    Event { name: String::new(), data }
}

/// The blocks among `deltas`.
pub fn blocks(deltas: &[Delta]) -> Vec<(Item, Option<Value>)> {
    let block = |delta: &Delta| match delta {
        Delta::Block { item, native, .. } => Some((item.clone(), native.clone())),
        _ => None,
    };
    deltas.iter().filter_map(block).collect()
}

/// Whether the reply ended within them, for each block among `deltas`.
pub fn cut_blocks(deltas: &[Delta]) -> Vec<bool> {
    let block = |delta: &Delta| match delta {
        Delta::Block { cut, .. } => Some(*cut),
        _ => None,
    };
    deltas.iter().filter_map(block).collect()
}

/// The deltas that are shown while they come.
pub fn shown(deltas: &[Delta]) -> Vec<Delta> {
    let live = |delta: &&Delta| !matches!(delta, Delta::Block { .. } | Delta::Usage(_));
    deltas.iter().filter(live).cloned().collect()
}

/// The last account of tokens.
pub fn usage(deltas: &[Delta]) -> crate::llm::Usage {
    let usage = |delta: &Delta| match delta {
        Delta::Usage(usage) => Some(*usage),
        _ => None,
    };
    deltas.iter().rev().find_map(usage).unwrap()
}
