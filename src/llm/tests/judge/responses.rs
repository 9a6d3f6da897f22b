//! The Responses API of `OpenAI`, without state on the server.

use super::{Pictures, at, is_plain, list, refuse, schema, text};
use serde_json::Value;

/// <https://platform.openai.com/docs/guides/images-vision>
pub const PICTURES: Pictures = Pictures {
    types: &["image/png", "image/jpeg", "image/webp", "image/gif"],
    most: 50 * 1024 * 1024,
    side: u32::MAX,
};

pub fn judge(body: &Value) -> Result<(), String> {
    settings(body)?;
    let input = list(body, "input");
    let (mut calls, mut outputs, mut items) = (Vec::new(), Vec::new(), Vec::new());
    for (place, item) in input.iter().enumerate() {
        let place = format!("input[{place}]");
        let id = text(item, "id");
        // https://github.com/NousResearch/hermes-agent/issues/10788
        if id.len() > 64 {
            return too_long(&format!("{place}.id"), 64, id);
        }
        // https://github.com/microsoft/vscode/issues/321977
        if !id.is_empty() && items.contains(&id) {
            return refuse(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            ));
        }
        items.push(id);
        match text(item, "type") {
            "message" => message(&place, item)?,
            "function_call" => {
                call(&place, item)?;
                // Two calls of one id have one output at most: "No tool output found" for the other.
                if calls.contains(&text(item, "call_id")) {
                    return refuse(format!(
                        "Duplicate call_id found in input: {}",
                        text(item, "call_id")
                    ));
                }
                calls.push(text(item, "call_id"));
            }
            "function_call_output" => {
                let id = text(item, "call_id");
                // https://github.com/microsoft/vscode/issues/320060
                if !calls.contains(&id) || outputs.contains(&id) {
                    return refuse(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
                outputs.push(id);
                output(at(item, "output"))?;
            }
            "reasoning" => reasoning(item, input.get(items.len()))?,
            "web_search_call" | "item_reference" => {}
            other => {
                return refuse(format!(
                    "Invalid value: '{other}'. Supported values are: 'message', 'function_call' …"
                ));
            }
        }
    }
    // https://github.com/openai/codex/issues/93
    match calls.iter().find(|id| !outputs.contains(*id)) {
        Some(id) => refuse(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

fn too_long<T>(place: &str, most: usize, value: &str) -> Result<T, String> {
    refuse(format!(
        "Invalid '{place}': string too long. Expected a string with maximum length {most}, but got a string with \
         length {} instead.",
        value.len()
    ))
}

/// <https://platform.openai.com/docs/api-reference/responses/create>
fn settings(body: &Value) -> Result<(), String> {
    if body["max_output_tokens"].as_u64().is_some_and(|most| most < 16) {
        return refuse("Invalid 'max_output_tokens': integer below minimum value.");
    }
    let effort = text(at(body, "reasoning"), "effort");
    if !["", "none", "minimal", "low", "medium", "high", "xhigh"].contains(&effort) {
        return refuse(format!("Invalid value: '{effort}'. Supported values are: 'none', 'low' …"));
    }
    let key = text(body, "prompt_cache_key");
    if key.len() > 64 {
        return too_long("prompt_cache_key", 64, key);
    }
    for tool in list(body, "tools") {
        let name = text(tool, "name");
        if !is_plain(name, 64) {
            return refuse(
                "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            );
        }
        schema(name, at(tool, "parameters"))?;
    }
    Ok(())
}

/// <https://platform.openai.com/docs/api-reference/responses/create>: what a role says.
fn message(place: &str, item: &Value) -> Result<(), String> {
    let kinds: &[&str] = match text(item, "role") {
        "assistant" => &["output_text", "refusal"],
        "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
        other => {
            return refuse(format!(
                "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            ));
        }
    };
    // https://platform.openai.com/docs/api-reference/responses/create: the parts of an output message have its id.
    let is_given = !text(item, "id").is_empty();
    if text(item, "role") == "assistant" && item["content"].is_array() && !is_given {
        return refuse(format!("Missing required parameter: '{place}.id'."));
    }
    for part in list(item, "content") {
        let kind = text(part, "type");
        if !kinds.contains(&kind) {
            return refuse(format!(
                "Invalid value: '{kind}'. Supported values are: {kinds:?} ({place})."
            ));
        }
        picture(part)?;
    }
    Ok(())
}

fn call(place: &str, item: &Value) -> Result<(), String> {
    let (id, name) = (text(item, "call_id"), text(item, "name"));
    if id.is_empty() {
        return refuse(format!("Missing required parameter: '{place}.call_id'."));
    }
    // https://github.com/decolua/9router/pull/396
    if id.len() > 64 {
        return too_long(&format!("{place}.call_id"), 64, id);
    }
    // https://github.com/openclaw/openclaw/pull/23340
    if !is_plain(name, 128) {
        return refuse(format!(
            "Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        ));
    }
    // https://github.com/local-inference-lab/vllm/issues/684: servers read the text when they write the prompt
    if serde_json::from_str::<serde_json::Map<String, Value>>(text(item, "arguments")).is_err() {
        return refuse(format!("{place}.arguments is not valid JSON"));
    }
    Ok(())
}

fn output(output: &Value) -> Result<(), String> {
    match output {
        Value::String(_) => Ok(()),
        Value::Array(parts) => parts.iter().try_for_each(picture),
        _ => refuse("Invalid type for 'output': expected one of an array of objects or string."),
    }
}

fn picture(part: &Value) -> Result<(), String> {
    match text(part, "type") {
        "input_image" => PICTURES.judge_url(text(part, "image_url")),
        _ => Ok(()),
    }
}

fn reasoning(item: &Value, next: Option<&Value>) -> Result<(), String> {
    let id = text(item, "id");
    // https://platform.openai.com/docs/guides/reasoning: without state, thinking goes back encrypted
    if text(item, "encrypted_content").is_empty() {
        return refuse(format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
        ));
    }
    // https://github.com/openai/openai-agents-js/issues/326
    let is_of_model =
        |item: &Value| text(item, "type") != "function_call_output" && text(item, "role") != "user";
    if next.is_none_or(|next| !is_of_model(next)) {
        return refuse(format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ));
    }
    Ok(())
}

pub fn calls(body: &Value) -> Vec<(Value, String)> {
    let input = list(body, "input");
    let result = |id: &str| {
        let is_output = |item: &&Value| {
            text(item, "type") == "function_call_output" && text(item, "call_id") == id
        };
        let found = input.iter().find(is_output).map(|item| &item["output"]);
        let parts = found.and_then(Value::as_array).into_iter().flatten();
        let words = found.and_then(Value::as_str).map(str::to_owned);
        words.unwrap_or_else(|| parts.map(|part| text(part, "text")).collect())
    };
    let calls = input.iter().filter(|item| text(item, "type") == "function_call");
    calls
        .map(|call| {
            let arguments = serde_json::from_str(text(call, "arguments")).unwrap_or_default();
            (arguments, result(text(call, "call_id")))
        })
        .collect()
}
