//! The answer of OpenAI Responses: items that are announced, streamed and completed.

use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Fault, Progress, at, list, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::item::Content;
use crate::protocol::{Item, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

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
        out.push(wire::kept(item));
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
        out.push(Delta::Unseen(text(&native, "id").len()));
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
