//! Anthropic Messages: what its requests look like. The answer is read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::{FirstMarker, List, Messages, mark, put_first};
use crate::llm::wire::{self, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};

pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// The answer's limit for a model of which we know none; the wire demands one.
const MAX_TOKENS: u64 = 8192;
/// The smallest thinking budget the API takes.
const MIN_BUDGET: u64 = 1024;
/// How many of the last user messages end in a cache marker. With one after the system prompt, which covers the
/// tools before it, and one after the first message this makes four, the most the API takes.
const MARKED_TURNS: usize = 2;

/// The request for `model`.
pub fn body(request: &Request, model: &Model) -> Vec<u8> {
    let mut turn = Turn::default();
    let messages = messages(request, model, &mut turn);
    let thinking = thinking(request, model, &turn);
    let max_tokens = max_tokens(request, model);
    let mut body = json!({"model": model.model, "max_tokens": max_tokens, "stream": true});
    if !request.system.is_empty() {
        body["system"] = json!([{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]);
    }
    if !request.tools.is_empty() {
        body["tools"] = tools(request);
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
        None => {}
    }
    messages.in_object("messages", &body)
}

fn tools(request: &Request) -> Value {
    let tool = |tool: &ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
    request.tools.iter().map(tool).collect()
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
fn thinking<'a>(request: &'a Request, model: &Model, turn: &Turn) -> Option<Thinking<'a>> {
    let setting = request.config.reasoning.as_ref()?;
    match model.reasoning {
        Reasoning::None => None,
        Reasoning::Effort => setting.as_str().map(Thinking::Effort),
        Reasoning::Budget => {
            let budget = setting.as_u64()?.min(max_tokens(request, model).saturating_sub(1));
            let fits = budget >= MIN_BUDGET && turn.thinks();
            fits.then_some(Thinking::Budget(budget))
        }
    }
}

/// The messages since a person last said something.
#[derive(Default)]
struct Turn {
    /// The kind of the first block of the first answer; empty where it has none.
    first: Option<String>,
}

impl Turn {
    fn take(&mut self, message: &Value) {
        let blocks = wire::list(message, "content");
        let has_message = blocks.iter().any(|block| text(block, "type") != "tool_result");
        match text(message, "role") {
            "user" if has_message => self.first = None,
            "user" => {}
            _ if self.first.is_none() => {
                self.first = Some(blocks.first().map_or("", |block| text(block, "type")).into());
            }
            _ => {}
        }
    }

    /// A model with a budget must have opened the running turn with a thought; another model did not.
    fn thinks(&self) -> bool {
        self.first.as_ref().is_none_or(|first| first.is_empty() || first.ends_with("thinking"))
    }
}

/// The conversation, neighbours of one role joined.
fn messages(request: &Request, model: &Model, turn: &mut Turn) -> List {
    let origin = wire::origin(model);
    let mut first = FirstMarker::default();
    let finish = |message: &mut Value| {
        results_first(message);
        first.take(message);
        turn.take(message);
        true
    };
    let mut messages = Messages::new(MARKED_TURNS, Box::new(finish));
    for input in &request.input {
        if let Some(native) = wire::native(input, &origin) {
            messages.push_block("assistant", "content", native.clone());
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
                    messages.push_block(role, "content", block);
                }
            }
            Item::ToolCall { call_id, name, arguments } => {
                let block = json!({
                    "type": "tool_use", "id": plain_id(call_id), "name": name,
                    "input": wire::arguments(arguments),
                });
                messages.push_block("assistant", "content", block);
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
                messages.push_block("user", "content", block);
            }
            // Thinking is valid only as the provider made it.
            Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    mark_last_turns(&mut messages);
    messages.finish()
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
fn results_first(message: &mut Value) {
    put_first(message, "content", |block| text(block, "type") == "tool_result");
}

fn mark_last_turns(messages: &mut Messages) {
    for message in messages.newest_users() {
        results_first(message);
        mark(message);
    }
}
