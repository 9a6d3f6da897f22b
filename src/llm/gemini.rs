//! Gemini's `generateContent`: what its requests look like. The answer is read in [`stream`].

use crate::config::models::{Model, Reasoning};
use crate::llm::messages::{List, Messages};
use crate::llm::outgoing::{self, Part, ToolCall};
use crate::llm::wire::{self, at, list, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::Image;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// Stands for the signature of a call that has none, as one of another model: newer models refuse the first call of a
/// step without.
const UNSIGNED: &str = "skip_thought_signature_validator";

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
    let unsigned = ["gemini-1", "gemini-2"].iter().any(|old| model.model.starts_with(old));
    let finish = move |content: &mut Value| unsigned || signed(content);
    let mut contents = Messages::new(0, Box::new(finish));
    let mut calls = HashMap::new();
    let mut images = Vec::new();
    for part in outgoing::parts(request, model) {
        if !matches!(part, Part::Result(_)) {
            show_images(&mut contents, &mut images);
        }
        match part {
            // Results have their turn for themselves.
            Part::User(words) => user(&mut contents, json!({"text": words})),
            Part::Image(image) => user(&mut contents, picture(request, model, image)),
            Part::Model { native: Some(native), .. }
            | Part::Thinking(native)
            | Part::Other(native) => contents.push_block("model", "parts", native.clone()),
            Part::Model { words, native: None } => {
                contents.push_block("model", "parts", json!({"text": words}));
            }
            Part::Call(ToolCall { id, name, arguments, native }) => {
                let part = native.map_or_else(
                    || json!({"functionCall": {"name": name, "args": wire::arguments(arguments)}}),
                    Cow::into_owned,
                );
                calls.insert(id, (name, at(at(&part, "functionCall"), "id").clone()));
                contents.push_block("model", "parts", part);
            }
            Part::Result(result) => {
                let (name, id) = calls.remove(&result.id).unwrap_or_default();
                let words = wire::result_text(result.summary, result.content);
                contents.push_block("user", "parts", answer(&name, &id, words, result.is_error));
                images.extend(result.images.iter().map(|image| picture(request, model, image)));
            }
        }
    }
    show_images(&mut contents, &mut images);
    contents.finish()
}

/// Whether a content holds results.
fn has_results(content: &Value) -> bool {
    list(content, "parts").iter().any(|part| part.get("functionResponse").is_some())
}

/// Appends a part of the user; results have a turn of their own.
fn user(contents: &mut Messages, part: Value) {
    if contents.last().is_some_and(has_results) {
        contents.push(json!({"role": "user", "parts": []}));
    }
    contents.push_block("user", "parts", part);
}

/// Images of results follow the last result of their batch.
fn show_images(contents: &mut Messages, images: &mut Vec<Value>) {
    if !images.is_empty() {
        let lead = json!({"text": "Images of the tool results above:"});
        std::iter::once(lead).chain(images.drain(..)).for_each(|part| user(contents, part));
    }
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
        Ok((kind, data)) => json!({"inlineData": {"mimeType": kind, "data": data}}),
        Err(instead) => json!({"text": instead}),
    }
}

/// Gives the first call of a content a signature where it has none.
fn signed(content: &mut Value) -> bool {
    let parts = content.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten();
    let first = parts.into_iter().find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.filter(|call| text(call, "thoughtSignature").is_empty()) {
        call["thoughtSignature"] = json!(UNSIGNED);
    }
    true
}
