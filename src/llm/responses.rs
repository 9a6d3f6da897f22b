//! OpenAI Responses, used without state on the server: what its requests look like. The answer is
//! read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::List;
use crate::llm::outgoing::{self, Part, ToolCall, ToolResult};
use crate::llm::wire::{self, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::Image;
use serde_json::{Value, json};

pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// The request for `model`.
pub fn body(request: &Request, model: &Model) -> Vec<u8> {
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
        reasoning(&mut body, request);
    }
    input(request, model).in_object("input", &body)
}

fn reasoning(body: &mut Value, request: &Request) {
    body["include"] = json!(["reasoning.encrypted_content"]);
    if let Some(label) = request.config.reasoning.as_ref().and_then(Value::as_str) {
        body["reasoning"]["effort"] = json!(label);
    }
    body["reasoning"]["summary"] = json!("auto");
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool.schema, "strict": false,
    })
}

fn input(request: &Request, model: &Model) -> List {
    let mut items = List::default();
    for part in outgoing::parts(request, model) {
        match part {
            // Nothing is stored on the server, so thinking counts only in its encrypted form.
            Part::Thinking(native) if text(native, "encrypted_content").is_empty() => {}
            Part::Model { native: Some(native), .. }
            | Part::Thinking(native)
            | Part::Other(native) => items.push(native),
            Part::User(words) => {
                items.push(&message("user", json!([{"type": "input_text", "text": words}])));
            }
            Part::Image(image) => {
                items.push(&message("user", json!([picture(request, model, image)])));
            }
            // A list of parts must have the id that the server gave it.
            Part::Model { words, native: None } => {
                items.push(&message("assistant", Value::String(words)));
            }
            Part::Call(ToolCall { native: Some(native), .. }) => items.push(&native),
            Part::Call(ToolCall { id, name, arguments, native: None }) => items.push(&json!({
                "type": "function_call", "call_id": id, "name": name,
                "arguments": wire::arguments_text(arguments),
            })),
            Part::Result(ToolResult { id, summary, content, is_error, images }) => {
                let words = wire::marked_result_text(summary, content, is_error);
                items.push(&json!({
                    "type": "function_call_output", "call_id": id,
                    "output": output(request, model, words, images),
                }));
            }
        }
    }
    items
}

fn message(role: &str, content: Value) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

fn output(request: &Request, model: &Model, words: String, images: &[Image]) -> Value {
    if images.is_empty() {
        return Value::String(words);
    }
    let mut parts = vec![json!({"type": "input_text", "text": words})];
    parts.extend(images.iter().map(|image| picture(request, model, image)));
    Value::Array(parts)
}

fn picture(request: &Request, model: &Model, image: &Image) -> Value {
    match wire::picture(request, model, image) {
        Ok((kind, data)) => {
            json!({"type": "input_image", "image_url": format!("data:{kind};base64,{data}")})
        }
        Err(instead) => json!({"type": "input_text", "text": instead}),
    }
}
