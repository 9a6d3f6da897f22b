//! Anthropic Messages: what its requests and its events look like.

use crate::config::models::{Model, Reasoning};
use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Fault, Progress, at, text};
use crate::llm::{Delta, Request, Stop, Usage};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The answer's limit for a model of which we know none; the wire demands one.
const MAX_TOKENS: u64 = 8192;
/// The smallest thinking budget the API takes.
const MIN_BUDGET: u64 = 1024;
/// How many of the last user messages end in a cache marker. With one after the system prompt and
/// one after the tools this makes four, the most the API takes.
const MARKED_TURNS: usize = 2;

/// The request for `model`.
pub fn body(request: &Request, model: &Model) -> Value {
    let mut messages = messages(request, model);
    results_first(&mut messages);
    let thinking = thinking(request, model, &messages);
    mark_last_turns(&mut messages);
    let max_tokens = max_tokens(request, model);
    let mut body = json!({
        "model": model.model, "max_tokens": max_tokens, "stream": true, "messages": messages,
    });
    if !request.system.is_empty() {
        body["system"] = json!([marked(json!({"type": "text", "text": request.system}))]);
    }
    if !request.tools.is_empty() {
        body["tools"] = tools(request);
    }
    let config = &request.config;
    if !config.stop_sequences.is_empty() {
        body["stop_sequences"] = json!(config.stop_sequences);
    }
    match thinking {
        Some(Thinking::Budget(tokens)) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": tokens});
        }
        Some(Thinking::Effort(label)) => {
            // Newer models leave the words of their thinking out unless asked for a summary.
            body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
            body["output_config"] = json!({"effort": label});
        }
        // A thinking model takes no sampling settings.
        None => sampling(&mut body, request),
    }
    body
}

fn sampling(body: &mut Value, request: &Request) {
    let config = &request.config;
    if let Some(temperature) = config.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = config.top_p {
        body["top_p"] = json!(top_p);
    }
    if let Some(top_k) = config.top_k {
        body["top_k"] = json!(top_k);
    }
}

fn tools(request: &Request) -> Value {
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        })
        .collect();
    if let Some(last) = tools.pop() {
        tools.push(marked(last));
    }
    Value::Array(tools)
}

fn max_tokens(request: &Request, model: &Model) -> u64 {
    let most = if model.max_output == 0 { MAX_TOKENS } else { model.max_output };
    request.config.max_tokens.unwrap_or(most)
}

enum Thinking<'a> {
    Budget(u64),
    Effort(&'a str),
}

/// The thinking setting, when the model takes its form and the conversation allows it.
fn thinking<'a>(request: &'a Request, model: &Model, messages: &[Value]) -> Option<Thinking<'a>> {
    let setting = request.config.reasoning.as_ref()?;
    match model.reasoning {
        Reasoning::None => None,
        Reasoning::Effort => setting.as_str().map(Thinking::Effort),
        Reasoning::Budget => {
            let budget = setting.as_u64()?.min(max_tokens(request, model).saturating_sub(1));
            let fits = budget >= MIN_BUDGET && thinks_in_this_turn(messages);
            fits.then_some(Thinking::Budget(budget))
        }
    }
}

/// A model with a budget must have opened the running turn with a thought; another model did not.
fn thinks_in_this_turn(messages: &[Value]) -> bool {
    let asks = |message: &Value| {
        let mut blocks = wire::list(message, "content").iter();
        text(message, "role") == "user" && blocks.any(|block| text(block, "type") != "tool_result")
    };
    let asked = messages.iter().rposition(asks).map_or(0, |asked| asked + 1);
    let mut answers = messages[asked..].iter().filter(|message| text(message, "role") != "user");
    let first = answers.next().and_then(|answer| wire::list(answer, "content").first());
    first.is_none_or(|block| text(block, "type").ends_with("thinking"))
}

/// The conversation, neighbours of one role joined.
fn messages(request: &Request, model: &Model) -> Vec<Value> {
    let origin = wire::origin(model);
    let mut messages = Vec::new();
    for input in &request.input {
        if let Some(native) = wire::native(input, &origin) {
            wire::push(&mut messages, "assistant", "content", native.clone());
            continue;
        }
        match &input.item {
            Item::Message { role, content } => {
                // What the runtime says goes as the user: the wire knows no other voice here, and
                // the words of files and peers must not weigh as much as the system prompt.
                let role = if *role == Role::Assistant { "assistant" } else { "user" };
                let words: String = content.iter().map(Content::text).collect();
                if !words.trim().is_empty() {
                    let block = json!({"type": "text", "text": words});
                    wire::push(&mut messages, role, "content", block);
                }
            }
            Item::ToolCall { call_id, name, arguments } => {
                let block = json!({
                    "type": "tool_use", "id": plain_id(call_id), "name": name,
                    "input": wire::arguments(arguments),
                });
                wire::push(&mut messages, "assistant", "content", block);
            }
            Item::ToolResult { call_id, summary, content, is_error, images } => {
                let words = wire::result_text(summary, content.as_deref());
                let mut block = json!({
                    "type": "tool_result", "tool_use_id": plain_id(call_id),
                    "content": result_content(request, model, words, images),
                });
                if *is_error {
                    block["is_error"] = json!(true);
                }
                wire::push(&mut messages, "user", "content", block);
            }
            // Thinking is valid only as the provider made it.
            Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    messages
}

fn result_content(request: &Request, model: &Model, words: String, images: &[Image]) -> Value {
    if images.is_empty() {
        return Value::String(words);
    }
    let mut blocks = vec![json!({"type": "text", "text": words})];
    blocks.extend(images.iter().map(|image| match wire::picture(request, model, image) {
        Ok(data) => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": data},
        }),
        Err(instead) => json!({"type": "text", "text": instead}),
    }));
    blocks.retain(|block| text(block, "type") != "text" || !text(block, "text").is_empty());
    Value::Array(blocks)
}

/// A call id in the letters the API takes; other providers use more.
fn plain_id(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    id.chars().map(plain).collect()
}

/// Results must open the message that follows their calls, whatever was said meanwhile.
fn results_first(messages: &mut [Value]) {
    for message in messages {
        if let Some(blocks) = message["content"].as_array_mut() {
            blocks.sort_by_key(|block| text(block, "type") != "tool_result");
        }
    }
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn mark_last_turns(messages: &mut [Value]) {
    let users = messages.iter_mut().rev().filter(|message| text(message, "role") == "user");
    for message in users.take(MARKED_TURNS) {
        let last = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut());
        if let Some(block) = last {
            *block = marked(block.take());
        }
    }
}

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
            self.close(block, out);
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
        let lost = self.blocks.insert(index(data), Block { native, json: String::new() });
        if let Some(lost) = lost {
            self.close(lost, out);
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
            "signature_delta" => block.native["signature"] = at(delta, "signature").clone(),
            "citations_delta" => {
                let citation = at(delta, "citation").clone();
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
                }
            }
            _ => out.push(Delta::Unknown(data)),
        }
    }

    fn stop(&mut self, data: &Value, out: &mut Vec<Delta>) {
        if let Some(block) = self.blocks.remove(&index(data)) {
            self.close(block, out);
        }
    }

    fn close(&mut self, block: Block, out: &mut Vec<Delta>) {
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
        out.push(Delta::Block { item, native: Some(native) });
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
        arguments: wire::arguments_text(&raw),
    }
}

fn stop(reason: &str, words: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::EndTurn,
        "tool_use" => Stop::ToolUse,
        "max_tokens" => Stop::MaxTokens,
        "refusal" => Stop::Refusal(words.into()),
        other => Stop::Other(other.into()),
    }
}
