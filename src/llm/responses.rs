//! OpenAI Responses, used without state on the server: what its requests look like. The answer is
//! read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::List;
use crate::llm::wire::{self, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::{Value, json};

pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// The request for `model`. `summaries` asks for the thinking in words.
pub fn body(request: &Request, model: &Model, summaries: Summaries) -> Vec<u8> {
    let mut body = json!({"model": model.model, "stream": true, "store": false});
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    body["prompt_cache_key"] = json!(wire::cache_key(request));
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
        body["parallel_tool_calls"] = json!(true);
    }
    if let Some(tokens) = request.config.max_tokens {
        body["max_output_tokens"] = json!(tokens);
    }
    if model.reasoning == Reasoning::Effort {
        reasoning(&mut body, request, summaries);
    }
    input(request, model).in_object("input", &body)
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

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool.schema, "strict": false,
    })
}

fn input(request: &Request, model: &Model) -> List {
    let origin = wire::origin(model);
    let mut items = Items::default();
    for input in &request.input {
        if let Some(native) = wire::native(input, &origin) {
            items.push(native.clone());
            continue;
        }
        match &input.item {
            Item::Message { role, content } => {
                message(*role, content).into_iter().for_each(|message| items.push(message));
            }
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
    items.written
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

/// The items of a request. Nothing is stored on the server, so a thought counts only in its encrypted
/// form, and only right before what it led to: an answer that was cut off leaves thoughts the API
/// refuses.
#[derive(Default)]
struct Items {
    written: List,
    /// Thoughts whose next item is not known yet.
    thoughts: Vec<Value>,
}

impl Items {
    fn push(&mut self, item: Value) {
        if text(&item, "type") == "reasoning" {
            return self.thoughts.push(item);
        }
        let is_result = text(&item, "type") == "function_call_output";
        let said_by_model = !is_result && text(&item, "role") != "user";
        let is_sent =
            |thought: &Value| said_by_model && !text(thought, "encrypted_content").is_empty();
        for thought in self.thoughts.drain(..).filter(is_sent) {
            self.written.push(&thought);
        }
        self.written.push(&item);
    }
}
