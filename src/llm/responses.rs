//! OpenAI Responses, used without state on the server: what its requests and events look like.

use crate::config::models::{Model, Reasoning};
use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Fault, Progress, at, list, text};
use crate::llm::{Delta, Request, Stop, Usage};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// The request for `model`. `summaries` asks for the thinking in words.
pub fn body(request: &Request, model: &Model, summaries: Summaries) -> Value {
    let mut body = json!({
        "model": model.model, "input": input(request, model), "stream": true, "store": false,
    });
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    if !request.cache_key.is_empty() {
        body["prompt_cache_key"] = json!(request.cache_key);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
        body["parallel_tool_calls"] = json!(true);
    }
    let config = &request.config;
    for (key, value) in [
        ("max_output_tokens", config.max_tokens.map(|tokens| json!(tokens))),
        ("temperature", config.temperature.map(|temperature| json!(temperature))),
        ("top_p", config.top_p.map(|top_p| json!(top_p))),
    ] {
        if let Some(value) = value {
            body[key] = value;
        }
    }
    if model.reasoning == Reasoning::Effort {
        reasoning(&mut body, request, summaries);
    }
    body
}

/// Whether to ask for summaries of the thinking: some accounts may not have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summaries {
    Asked,
    Left,
}

fn reasoning(body: &mut Value, request: &Request, summaries: Summaries) {
    body["include"] = json!(["reasoning.encrypted_content"]);
    if let Some(label) = request.config.reasoning.as_ref().and_then(Value::as_str) {
        body["reasoning"]["effort"] = json!(label);
    }
    if summaries == Summaries::Asked {
        body["reasoning"]["summary"] = json!("auto");
    }
}

fn tool(tool: &crate::llm::ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool.schema, "strict": false,
    })
}

fn input(request: &Request, model: &Model) -> Vec<Value> {
    let origin = wire::origin(model);
    let mut items: Vec<Value> = Vec::new();
    for input in &request.input {
        if let Some(native) = wire::native(input, &origin) {
            items.push(native.clone());
            continue;
        }
        match &input.item {
            Item::Message { role, content } => items.extend(message(*role, content)),
            Item::ToolCall { call_id, name, arguments } => items.push(json!({
                "type": "function_call", "call_id": call_id, "name": name,
                "arguments": wire::arguments_text(arguments),
            })),
            Item::ToolResult { call_id, summary, content, is_error, images } => {
                let words = wire::marked_result_text(summary, content.as_deref(), *is_error);
                items.push(json!({
                    "type": "function_call_output", "call_id": call_id,
                    "output": output(request, model, words, images),
                }));
            }
            // Thinking is valid only as the provider made it.
            Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    drop_stray_reasoning(&mut items);
    items
}

/// What the runtime says goes as the user: the words of files and peers must not weigh as much as
/// the system prompt.
fn message(role: Role, content: &[Content]) -> Option<Value> {
    let words: String = content.iter().map(Content::text).collect();
    let (role, kind) = match role {
        Role::Assistant => ("assistant", "output_text"),
        Role::User | Role::System => ("user", "input_text"),
    };
    let part = json!({"type": kind, "text": words});
    (!words.is_empty()).then(|| json!({"type": "message", "role": role, "content": [part]}))
}

fn output(request: &Request, model: &Model, words: String, images: &[Image]) -> Value {
    if images.is_empty() {
        return Value::String(words);
    }
    let mut parts = vec![json!({"type": "input_text", "text": words})];
    parts.extend(images.iter().map(|image| match wire::picture(request, model, image) {
        Ok(data) => json!({
            "type": "input_image", "image_url": format!("data:{};base64,{data}", image.media_type),
        }),
        Err(instead) => json!({"type": "input_text", "text": instead}),
    }));
    Value::Array(parts)
}

/// Nothing is stored on the server, so a thought counts only in its encrypted form, and only right
/// before what it led to: an answer that was cut off leaves thoughts the API refuses.
fn drop_stray_reasoning(items: &mut Vec<Value>) {
    let mut followed = false;
    for item in std::mem::take(items).into_iter().rev() {
        if text(&item, "type") != "reasoning" {
            let said_by_model = !matches!(text(&item, "type"), "function_call_output")
                && text(&item, "role") != "user";
            followed = said_by_model;
            items.push(item);
        } else if followed && !text(&item, "encrypted_content").is_empty() {
            items.push(item);
        }
    }
    items.reverse();
}

/// Reads the events of one answer.
#[derive(Default)]
pub struct Decoder {
    open: BTreeMap<u64, Open>,
    /// Ids of the items that are complete.
    done: BTreeSet<String>,
    refusal: String,
    calls: bool,
    stop: Option<Stop>,
}

/// An item under construction.
#[derive(Default)]
struct Open {
    /// As it was announced.
    item: Value,
    words: String,
    refusal: String,
    arguments: String,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if event.data == "[DONE]" {
            return Ok(());
        }
        let data = wire::parse(event)?;
        let delta = text(&data, "delta");
        match text(&data, "type") {
            "response.output_item.added" => self.start(&data, out),
            "response.output_item.done" => self.done(&data, out),
            "response.output_text.delta" => {
                self.open(&data).words.push_str(delta);
                out.push(Delta::Text(delta.into()));
            }
            "response.refusal.delta" => {
                self.open(&data).refusal.push_str(delta);
                out.push(Delta::Text(delta.into()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.open(&data).words.push_str(delta);
                out.push(Delta::Thinking(delta.into()));
            }
            "response.reasoning_summary_part.added" => self.paragraph(&data, out),
            "response.function_call_arguments.delta" => self.arguments(&data, out),
            "response.completed" | "response.incomplete" => self.end(&data, out),
            "response.failed" => {
                return Err(wire::reported(at(at(&data, "response"), "error"), &["code"]));
            }
            "error" => return Err(error(&data)),
            kind if is_echo(kind) => {}
            // Some servers send a bare error object.
            "" if data.get("error").is_some() => return Err(error(&data)),
            _ => out.push(Delta::Unknown(data)),
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.stop.is_some() { Progress::Ended } else { Progress::Open }
    }

    fn finish(&mut self, _: &mut Vec<Delta>) -> Option<Stop> {
        self.stop.take()
    }
}

/// Events that repeat what others say.
fn is_echo(kind: &str) -> bool {
    matches!(
        kind,
        "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.output_text.done"
            | "response.output_text.annotation.added"
            | "response.refusal.done"
            | "response.reasoning_summary_part.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.done"
            | "response.function_call_arguments.done"
            | "keepalive"
    )
}

fn error(data: &Value) -> Fault {
    let inner = at(data, "error");
    wire::reported(if inner.is_null() { data } else { inner }, &["code"])
}

impl Decoder {
    fn open(&mut self, data: &Value) -> &mut Open {
        self.open.entry(at(data, "output_index").as_u64().unwrap_or(0)).or_default()
    }

    fn start(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let item = at(data, "item");
        match text(item, "type") {
            "reasoning" => out.push(Delta::ThinkingStart),
            "function_call" => out.push(Delta::ToolCallStart {
                id: text(item, "call_id").into(),
                name: text(item, "name").into(),
            }),
            _ => {}
        }
        *self.open(data) = Open { item: item.clone(), ..Open::default() };
    }

    fn paragraph(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let open = self.open(data);
        if !open.words.is_empty() {
            open.words.push_str("\n\n");
            out.push(Delta::Thinking("\n\n".into()));
        }
    }

    fn arguments(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let (open, json) = (self.open(data), text(data, "delta"));
        open.arguments.push_str(json);
        let id = text(&open.item, "call_id");
        if !id.is_empty() {
            out.push(Delta::ToolCallArgs { id: id.into(), json: json.into() });
        }
    }

    fn done(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let index = at(data, "output_index").as_u64().unwrap_or(0);
        let open = self.open.remove(&index).unwrap_or_default();
        self.close(at(data, "item").clone(), open, out);
    }

    /// An item is complete: commits it in the provider's form, filled from what was streamed where
    /// a server left the final form empty.
    fn close(&mut self, mut native: Value, open: Open, out: &mut Vec<Delta>) {
        self.done.insert(text(&native, "id").into());
        let item = match text(&native, "type") {
            "message" => {
                let content = content(&native, &open);
                if content.is_empty() {
                    return;
                }
                if list(&native, "content").is_empty() {
                    native["content"] = content.iter().map(part).collect();
                }
                for part in &content {
                    if let Content::Refusal { refusal } = part {
                        self.refusal.push_str(refusal);
                    }
                }
                Item::Message { role: Role::Assistant, content }
            }
            "reasoning" => thought(&native, &open),
            "function_call" => {
                self.calls = true;
                let raw = Some(text(&native, "arguments")).filter(|raw| !raw.is_empty());
                let arguments = wire::arguments_text(raw.unwrap_or(&open.arguments));
                native["arguments"] = json!(arguments);
                let (id, name) = (text(&native, "call_id"), text(&native, "name"));
                Item::ToolCall { call_id: id.into(), name: name.into(), arguments }
            }
            _ => Item::Unknown(native.clone()),
        };
        out.push(Delta::Block { item, native: Some(native) });
    }

    fn end(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let response = at(data, "response");
        for item in list(response, "output") {
            let id = text(item, "id");
            if !id.is_empty() && !self.done.contains(id) {
                let open = self.take_open(id);
                self.close(item.clone(), open, out);
            }
        }
        for (_, open) in std::mem::take(&mut self.open) {
            let unannounced = json!({"type": "message", "role": "assistant", "content": []});
            let item = if open.item.is_null() { unannounced } else { open.item.clone() };
            self.close(item, open, out);
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            out.push(Delta::Usage(count(usage)));
        }
        self.stop = Some(self.reason(response));
    }

    fn take_open(&mut self, id: &str) -> Open {
        let index = self.open.iter().find(|(_, open)| text(&open.item, "id") == id);
        let index = index.map(|(index, _)| *index);
        index.and_then(|index| self.open.remove(&index)).unwrap_or_default()
    }

    fn reason(&self, response: &Value) -> Stop {
        match text(at(response, "incomplete_details"), "reason") {
            "max_output_tokens" => Stop::MaxTokens,
            "content_filter" => Stop::Refusal(self.refusal.clone()),
            "" if !self.refusal.is_empty() => Stop::Refusal(self.refusal.clone()),
            "" if self.calls => Stop::ToolUse,
            "" => Stop::EndTurn,
            other => Stop::Other(other.into()),
        }
    }
}

fn content(native: &Value, open: &Open) -> Vec<Content> {
    let parts = list(native, "content").iter().map(|part| match text(part, "type") {
        "output_text" => Content::Text { text: text(part, "text").into() },
        "refusal" => Content::Refusal { refusal: text(part, "refusal").into() },
        _ => Content::Unknown(part.clone()),
    });
    let mut parts: Vec<Content> = parts.collect();
    if parts.is_empty() {
        let streamed = [
            Content::Text { text: open.words.clone() },
            Content::Refusal { refusal: open.refusal.clone() },
        ];
        parts.extend(streamed.into_iter().filter(|part| !part.text().is_empty()));
    }
    parts
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({"type": "output_text", "text": text}),
        Content::Refusal { refusal } => json!({"type": "refusal", "refusal": refusal}),
        Content::Unknown(part) => part.clone(),
    }
}

fn thought(native: &Value, open: &Open) -> Item {
    let texts = |key| list(native, key).iter().map(|part| text(part, "text").to_owned());
    let summary: Vec<String> = texts("summary").collect();
    let raw: Vec<String> = texts("content").collect();
    let said = if raw.is_empty() { summary.join("\n\n") } else { raw.join("") };
    let whole = if said.len() < open.words.len() { open.words.clone() } else { said };
    let encrypted_content = native.get("encrypted_content").and_then(Value::as_str);
    Item::Reasoning {
        text: whole,
        summary,
        encrypted_content: encrypted_content.map(str::to_owned),
        signature: None,
    }
}

fn count(usage: &Value) -> Usage {
    let number = |value: &Value, key| at(value, key).as_u64();
    Usage {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(at(usage, "input_tokens_details"), "cached_tokens"),
        cache_write: None,
        reasoning: number(at(usage, "output_tokens_details"), "reasoning_tokens"),
    }
}
