//! The answer of Anthropic Messages: blocks that start, grow and stop, kept in the provider's own
//! form.

use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Ending, Fault, at, list, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};

/// Reads the events of one answer.
#[derive(Default)]
pub struct Decoder {
    /// The blocks that were not closed yet, in the order they began.
    blocks: Vec<Block>,
    usage: Tokens,
    called: bool,
    ending: Ending,
}

/// A block under construction, in the provider's own form.
struct Block {
    index: u64,
    native: Value,
    /// The fragments of a call's input.
    json: String,
    has_grown: bool,
}

/// The counts as the provider gives them: cached input is not part of `input`.
#[derive(Default)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let data = wire::parse(event)?;
        match text(&data, "type") {
            "message_start" => self.count(at(at(&data, "message"), "usage"), out),
            "content_block_start" => self.start(&data, out),
            "content_block_delta" => return self.grow(data, out),
            "content_block_stop" => self.stop(index(&data), out),
            "message_delta" => self.message(at(&data, "delta"), at(&data, "usage"), out),
            "message_stop" => {
                self.count(at(&data, "usage"), out);
                self.ending.last();
            }
            "message" => self.whole(&data, out),
            "ping" => {}
            _ => out.push(Delta::Unknown(data)),
        }
        Ok(())
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        let is_call = |block: &Block| text(&block.native, "type") == "tool_use";
        let called = self.called || self.blocks.iter().any(is_call);
        let stop = self.ending.stop(called)?;
        for block in std::mem::take(&mut self.blocks) {
            let cut = stop != Stop::Unnamed || !wire::is_object(&block.json);
            self.close(block, cut, out);
        }
        Some(stop)
    }
}

impl Decoder {
    /// A message that came in one piece, from a server that does not stream.
    fn whole(&mut self, message: &Value, out: &mut Vec<Delta>) {
        for block in list(message, "content") {
            self.start(&json!({"content_block": block}), out);
            self.stop(0, out);
        }
        self.message(message, at(message, "usage"), out);
        self.ending.last();
    }

    fn start(&mut self, data: &Value, out: &mut Vec<Delta>) {
        self.ending.piece();
        let (index, native) = (index(data), at(data, "content_block").clone());
        if let Some(place) = self.blocks.iter().position(|block| block.index == index) {
            let open = &self.blocks[place];
            let id = text(&native, "id");
            let is_same = match id.is_empty() {
                true => !open.has_grown && open.native == native,
                false => text(&open.native, "id") == id,
            };
            if is_same {
                // The event came twice.
                return;
            }
            let lost = self.blocks.remove(place);
            self.close(lost, true, out);
        }
        match text(&native, "type") {
            "text" if !text(&native, "text").is_empty() => {
                out.push(Delta::Text(text(&native, "text").into()));
            }
            "thinking" => {
                out.push(Delta::ThinkingStart);
                if !text(&native, "thinking").is_empty() {
                    out.push(Delta::Thinking(text(&native, "thinking").into()));
                }
            }
            "tool_use" => {
                let (id, name) = (text(&native, "id").into(), text(&native, "name").into());
                out.push(Delta::ToolCallStart { id, name });
            }
            _ => {}
        }
        out.push(wire::kept(&native));
        self.blocks.push(Block { index, native, json: String::new(), has_grown: false });
    }

    /// The open block that a delta of this type continues.
    fn block_for(&mut self, delta: &str, index: u64) -> Option<&mut Block> {
        let fits = |native: &Value| match (delta, text(native, "type")) {
            ("text_delta" | "citations_delta", kind) => kind == "text",
            ("thinking_delta" | "signature_delta", kind) => kind == "thinking",
            ("input_json_delta", kind) => kind.ends_with("tool_use"),
            _ => true,
        };
        self.blocks.iter_mut().find(|block| block.index == index && fits(&block.native))
    }

    fn grow(&mut self, data: Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let (delta, index) = (at(&data, "delta"), index(&data));
        let kind = text(delta, "type");
        self.ending.piece();
        if self.block_for(kind, index).is_none() {
            // The start of the block was lost, or its end came early.
            let native = match kind {
                "text_delta" => json!({"type": "text", "text": ""}),
                "thinking_delta" => json!({"type": "thinking", "thinking": ""}),
                "input_json_delta" => {
                    return Err(Fault::Garbled("arguments came for no open call".into()));
                }
                _ => {
                    out.push(Delta::Unknown(data));
                    return Ok(());
                }
            };
            self.start(&json!({"index": index, "content_block": native}), out);
        }
        let Some(block) = self.block_for(kind, index) else { return Ok(()) };
        block.has_grown = true;
        match kind {
            "text_delta" => {
                append(&mut block.native, "text", text(delta, "text"));
                out.push(Delta::Text(text(delta, "text").into()));
            }
            "thinking_delta" => {
                append(&mut block.native, "thinking", text(delta, "thinking"));
                out.push(Delta::Thinking(text(delta, "thinking").into()));
            }
            "signature_delta" => {
                let signature = at(delta, "signature").clone();
                out.push(wire::kept(&signature));
                block.native["signature"] = signature;
            }
            "citations_delta" => {
                let citation = at(delta, "citation").clone();
                out.push(wire::kept(&citation));
                match block.native.get_mut("citations").and_then(Value::as_array_mut) {
                    Some(citations) => citations.push(citation),
                    None => block.native["citations"] = json!([citation]),
                }
            }
            "input_json_delta" => {
                let json = text(delta, "partial_json");
                block.json.push_str(json);
                if text(&block.native, "type") == "tool_use" && !json.is_empty() {
                    let id = text(&block.native, "id").into();
                    out.push(Delta::ToolCallArgs { id, json: json.into() });
                } else {
                    out.push(Delta::Unseen(json.len() + 1));
                }
            }
            _ => out.push(Delta::Unknown(data)),
        }
        Ok(())
    }

    fn stop(&mut self, index: u64, out: &mut Vec<Delta>) {
        if let Some(place) = self.blocks.iter().position(|block| block.index == index) {
            let block = self.blocks.remove(place);
            self.close(block, false, out);
        }
    }

    fn close(&mut self, block: Block, cut: bool, out: &mut Vec<Delta>) {
        let Block { mut native, json, .. } = block;
        if !json.is_empty() {
            native["input"] = Value::Object(wire::arguments(&json));
        }
        let item = match text(&native, "type") {
            // The API sends empty texts and refuses to take them back.
            "text" if text(&native, "text").is_empty() => return,
            "text" => Item::message(Role::Assistant, text(&native, "text")),
            "thinking" | "redacted_thinking" => reasoning(&native),
            "tool_use" => {
                self.called = true;
                if !native["input"].is_object() {
                    native["input"] = json!({});
                }
                call(&native, &json)
            }
            _ => Item::Unknown(native.clone()),
        };
        out.push(Delta::Block { item, native: Some(native), cut });
    }

    fn message(&mut self, delta: &Value, usage: &Value, out: &mut Vec<Delta>) {
        let reason = text(delta, "stop_reason");
        if !reason.is_empty() {
            let words = text(at(delta, "stop_details"), "explanation");
            self.ending.because(match wire::stop(reason) {
                Stop::Refusal(_) if !words.is_empty() => Stop::Refusal(words.into()),
                stop => stop,
            });
        }
        self.count(usage, out);
    }

    fn count(&mut self, usage: &Value, out: &mut Vec<Delta>) {
        let tokens = &mut self.usage;
        for (key, count) in [
            ("input_tokens", &mut tokens.input),
            ("output_tokens", &mut tokens.output),
            ("cache_read_input_tokens", &mut tokens.cache_read),
            ("cache_creation_input_tokens", &mut tokens.cache_write),
        ] {
            // Cumulative; servers that only imitate this wire report a count once and then zero.
            *count = at(usage, key).as_u64().max(*count);
        }
        if usage.is_object() {
            let cached = tokens.cache_read.unwrap_or(0) + tokens.cache_write.unwrap_or(0);
            out.push(Delta::Usage(Usage {
                input: tokens.input.map(|input| input + cached),
                output: tokens.output,
                cache_read: tokens.cache_read,
                cache_write: tokens.cache_write,
                reasoning: None,
            }));
        }
    }
}

fn index(data: &Value) -> u64 {
    at(data, "index").as_u64().unwrap_or(0)
}

fn append(native: &mut Value, key: &str, more: &str) {
    match native.get_mut(key) {
        Some(Value::String(whole)) => whole.push_str(more),
        _ => native[key] = json!(more),
    }
}

fn reasoning(native: &Value) -> Item {
    let some = |key| native.get(key).and_then(Value::as_str).map(str::to_owned);
    Item::Reasoning {
        text: text(native, "thinking").into(),
        summary: Vec::new(),
        encrypted_content: some("data"),
        signature: some("signature"),
    }
}

fn call(native: &Value, json: &str) -> Item {
    let raw = if json.is_empty() { at(native, "input").to_string() } else { json.to_owned() };
    Item::ToolCall {
        call_id: text(native, "id").into(),
        name: text(native, "name").into(),
        arguments: wire::received_arguments(&raw),
    }
}
