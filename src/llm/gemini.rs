//! Gemini's `generateContent`: what its requests look like. The answer is read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::{List, Messages, put_first};
use crate::llm::wire::{self, at, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// Stands for the signature of a call that another model made; newer models refuse a call without.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// The request for `model`.
pub fn body(request: &Request, model: &Model) -> Vec<u8> {
    let mut body = json!({});
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    let settings = settings(request, model);
    if !settings.is_empty() {
        body["generationConfig"] = Value::Object(settings);
    }
    contents(request, model).in_object("contents", &body)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema,
    })
}

fn settings(request: &Request, model: &Model) -> Map<String, Value> {
    let config = &request.config;
    [
        ("maxOutputTokens", config.max_tokens.map(|tokens| json!(tokens))),
        ("thinkingConfig", thinking(request, model)),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    .collect()
}

fn thinking(request: &Request, model: &Model) -> Option<Value> {
    let setting = request.config.reasoning.as_ref();
    let mut thinking = json!({"includeThoughts": true});
    match model.reasoning {
        Reasoning::None => return None,
        Reasoning::Effort => {
            if let Some(label) = setting.and_then(Value::as_str) {
                thinking["thinkingLevel"] = json!(label);
            }
        }
        Reasoning::Budget => {
            if let Some(tokens) = setting.and_then(Value::as_u64) {
                thinking["thinkingBudget"] = json!(tokens);
            }
        }
    }
    Some(thinking)
}

/// The conversation, neighbours of one role joined.
fn contents(request: &Request, model: &Model) -> List {
    let origin = wire::origin(model);
    let mut contents = Messages::new(0, Box::new(results_first));
    let mut calls = HashMap::new();
    for input in &request.input {
        let native = wire::native(input, &origin);
        if let Item::ToolCall { call_id, name, .. } = &input.item {
            let id = native.map_or(&Value::Null, |part| at(at(part, "functionCall"), "id"));
            calls.insert(call_id.as_str(), (name.as_str(), id));
        }
        if let Some(native) = native {
            contents.push_block("model", "parts", native.clone());
            continue;
        }
        match &input.item {
            Item::Message { role, content } => {
                // What the runtime says goes as the user: the wire knows no other voice here.
                let role = if *role == Role::Assistant { "model" } else { "user" };
                let words: String = content.iter().map(Content::text).collect();
                if !words.is_empty() {
                    contents.push_block(role, "parts", json!({"text": words}));
                }
            }
            Item::ToolCall { name, arguments, .. } => {
                let part = foreign_call(model, name, arguments);
                contents.push_block("model", "parts", part);
            }
            Item::ToolResult { call_id, summary, content, is_error, images } => {
                let words = wire::result_text(summary, content.as_deref());
                let (name, id) = calls.get(call_id.as_str()).copied().unwrap_or(("", &Value::Null));
                contents.push_block("user", "parts", answer(name, id, words, *is_error));
                for image in images {
                    contents.push_block("user", "parts", picture(request, model, image));
                }
            }
            // Thinking is valid only as the provider made it.
            Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    contents.finish()
}

fn foreign_call(model: &Model, name: &str, arguments: &str) -> Value {
    let mut part = json!({"functionCall": {"name": name, "args": wire::arguments(arguments)}});
    let unsigned = ["gemini-1", "gemini-2"].iter().any(|old| model.model.starts_with(old));
    if !unsigned {
        part["thoughtSignature"] = json!(FOREIGN_CALL);
    }
    part
}

fn answer(name: &str, id: &Value, words: String, is_error: bool) -> Value {
    let key = if is_error { "error" } else { "output" };
    let mut response = json!({"name": name, "response": {key: words}});
    if !id.is_null() {
        response["id"] = id.clone();
    }
    json!({"functionResponse": response})
}

fn picture(request: &Request, model: &Model, image: &Image) -> Value {
    match wire::picture(request, model, image) {
        Ok(data) => json!({"inlineData": {"mimeType": image.media_type, "data": data}}),
        Err(instead) => json!({"text": instead}),
    }
}

/// Results must open the message that follows their calls, as many as there were calls.
fn results_first(content: &mut Value) -> bool {
    if text(content, "role") == "user" {
        put_first(content, "parts", |part| part.get("functionResponse").is_some());
    }
    true
}
