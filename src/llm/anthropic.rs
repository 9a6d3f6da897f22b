//! Anthropic Messages: what its requests look like. The answer is read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::{FirstMarker, List, Messages, mark, put_first};
use crate::llm::outgoing::{self, Part, ToolCall, ToolResult};
use crate::llm::wire::{self, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::Image;
use serde_json::{Value, json};
use std::borrow::Cow;

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
    request.config.max_tokens.unwrap_or_else(|| most_tokens(model))
}

/// The limit of a reply to a request that names none.
pub fn most_tokens(model: &Model) -> u64 {
    if model.max_output == 0 { MAX_TOKENS } else { model.max_output }
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
    let mut first = FirstMarker::default();
    let finish = |message: &mut Value| {
        results_first(message);
        first.take(message);
        turn.take(message);
        true
    };
    let mut messages = Messages::new(MARKED_TURNS, Box::new(finish));
    for part in outgoing::parts(request, model) {
        let (role, block) = match part {
            Part::User(words) => ("user", json!({"type": "text", "text": words})),
            Part::Image(image) => ("user", picture(request, model, image)),
            Part::Model { native: Some(native), .. }
            | Part::Thinking(native)
            | Part::Other(native) => ("assistant", native.clone()),
            Part::Model { words, native: None } => {
                ("assistant", json!({"type": "text", "text": words}))
            }
            Part::Call(call) => ("assistant", tool_use(call)),
            Part::Result(result) => ("user", tool_result(request, model, &result)),
        };
        messages.push_block(role, "content", block);
    }
    mark_last_turns(&mut messages);
    messages.finish()
}

fn tool_use(call: ToolCall) -> Value {
    let ToolCall { id, name, arguments, native } = call;
    native.map_or_else(
        || json!({"type": "tool_use", "id": id, "name": name, "input": wire::arguments(arguments)}),
        Cow::into_owned,
    )
}

fn picture(request: &Request, model: &Model, image: &Image) -> Value {
    match wire::picture(request, model, image) {
        Ok((media_type, data)) => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        }),
        Err(instead) => json!({"type": "text", "text": instead}),
    }
}

fn tool_result(request: &Request, model: &Model, result: &ToolResult) -> Value {
    let words = wire::result_text(result.summary, result.content);
    let content = match result.images {
        [] => Value::String(words),
        images => {
            let words = json!({"type": "text", "text": words});
            let pictures = images.iter().map(|image| picture(request, model, image));
            std::iter::once(words).chain(pictures).collect()
        }
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": content});
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
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
