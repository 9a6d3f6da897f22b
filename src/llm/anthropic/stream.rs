//! The answer of Anthropic Messages: blocks that start, grow and stop, kept in the provider's own
//! form.

use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Fault, Progress, at, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Reads the events of one answer.
#[derive(Default)]
pub struct Decoder {
    blocks: BTreeMap<u64, Block>,
    usage: Tokens,
    stop: Option<Stop>,
    calls: bool,
    ended: bool,
}

/// A block under construction, in the provider's own form.
struct Block {
    native: Value,
    /// The fragments of a call's input.
    json: String,
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
            "content_block_delta" => self.grow(data, out),
            "content_block_stop" => self.stop(&data, out),
            "message_delta" => self.message(&data, out),
            "message_stop" => self.ended = true,
            "ping" => {}
            "error" => return Err(wire::reported(at(&data, "error"), &["type"])),
            _ => out.push(Delta::Unknown(data)),
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        if !self.ended {
            return None;
        }
        for (_, block) in std::mem::take(&mut self.blocks) {
            self.close(block, true, out);
        }
        let silent = if self.calls { Stop::ToolUse } else { Stop::EndTurn };
        Some(self.stop.take().unwrap_or(silent))
    }
}

impl Decoder {
    fn start(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let native = at(data, "content_block").clone();
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
        let lost = self.blocks.insert(index(data), Block { native, json: String::new() });
        if let Some(lost) = lost {
            self.close(lost, true, out);
        }
    }

    fn grow(&mut self, data: Value, out: &mut Vec<Delta>) {
        let delta = at(&data, "delta");
        let Some(block) = self.blocks.get_mut(&index(&data)) else {
            return out.push(Delta::Unknown(data));
        };
        match text(delta, "type") {
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
    }

    fn stop(&mut self, data: &Value, out: &mut Vec<Delta>) {
        if let Some(block) = self.blocks.remove(&index(data)) {
            self.close(block, false, out);
        }
    }

    fn close(&mut self, block: Block, cut: bool, out: &mut Vec<Delta>) {
        let Block { mut native, json } = block;
        if !json.is_empty() {
            native["input"] = Value::Object(wire::arguments(&json));
        }
        let item = match text(&native, "type") {
            // The API sends empty texts and refuses to take them back.
            "text" if text(&native, "text").is_empty() => return,
            "text" => Item::message(Role::Assistant, text(&native, "text")),
            "thinking" | "redacted_thinking" => reasoning(&native),
            "tool_use" => {
                self.calls = true;
                if !native["input"].is_object() {
                    native["input"] = json!({});
                }
                call(&native, &json)
            }
            _ => Item::Unknown(native.clone()),
        };
        out.push(Delta::Block { item, native: Some(native), cut });
    }

    fn message(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let delta = at(data, "delta");
        let reason = text(delta, "stop_reason");
        if !reason.is_empty() {
            let words = text(at(delta, "stop_details"), "explanation");
            self.stop = Some(stop(reason, words));
        }
        self.count(at(data, "usage"), out);
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

fn stop(reason: &str, words: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::EndTurn,
        "tool_use" => Stop::ToolUse,
        "max_tokens" => Stop::MaxTokens,
        "refusal" if words.is_empty() => Stop::Refusal(reason.into()),
        "refusal" => Stop::Refusal(words.into()),
        "pause_turn" => Stop::Pause,
        "model_context_window_exceeded" => Stop::ContextExceeded,
        other => Stop::Other(other.into()),
    }
}
