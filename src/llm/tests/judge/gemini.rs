//! `generateContent` of the Gemini API.

use super::{Flavour, Pictures, at, list, refuse, signature, text};
use serde_json::Value;

/// <https://ai.google.dev/gemini-api/docs/image-understanding>: no GIF; 20 MB for a whole request.
const PICTURES: Pictures = Pictures {
    types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    most: 20 * 1024 * 1024,
    side: u32::MAX,
};
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>: stands for a signature that was not given.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub fn judge(flavour: Flavour, body: &Value) -> Result<(), String> {
    settings(flavour, body)?;
    let contents = list(body, "contents");
    if contents.is_empty() {
        return refuse("* GenerateContentRequest.contents: contents is not specified");
    }
    let mut before: Option<&Value> = None;
    for (place, content) in contents.iter().enumerate() {
        let role = text(content, "role");
        if !["user", "model"].contains(&role) {
            return refuse("Please use a valid role: user, model.");
        }
        // https://github.com/vercel/ai/issues/3775
        if list(content, "parts").is_empty() {
            return refuse(format!(
                "* GenerateContentRequest.contents[{place}].parts: contents.parts must not be empty."
            ));
        }
        for part in list(content, "parts") {
            self::part(flavour, place, part)?;
        }
        turns(flavour, content, before, contents.get(place + 1))?;
        before = Some(content);
    }
    // https://github.com/crewAIInc/crewAI/pull/6973
    if contents.last().is_some_and(|last| text(last, "role") == "model") {
        return refuse(
            "Please ensure that multiturn requests ends with a user role or a function response.",
        );
    }
    Ok(())
}

fn settings(flavour: Flavour, body: &Value) -> Result<(), String> {
    for tool in list(body, "tools").iter().flat_map(|tools| list(tools, "functionDeclarations")) {
        name(text(tool, "name"))?;
        if text(at(tool, "parametersJsonSchema"), "type") != "object" {
            return refuse("parameters schema should be of type OBJECT");
        }
    }
    // https://ai.google.dev/gemini-api/docs/thinking
    let thinking = &body["generationConfig"]["thinkingConfig"];
    let (level, budget) = (thinking.get("thinkingLevel"), thinking.get("thinkingBudget"));
    if level.is_some() && (budget.is_some() || flavour == Flavour::Gemini2) {
        return refuse("Thinking level is not supported for this model.");
    }
    let levels = ["minimal", "low", "medium", "high"];
    if level.is_some_and(|level| !levels.contains(&level.as_str().unwrap_or(""))) {
        return refuse("Invalid value at 'generation_config.thinking_config.thinking_level'");
    }
    Ok(())
}

/// <https://github.com/google-gemini/gemini-cli/issues/2966>
fn name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.len() <= 64 && name.chars().all(plain) {
        return Ok(());
    }
    refuse(format!(
        "Invalid function name '{name}'. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 64."
    ))
}

fn part(flavour: Flavour, place: usize, part: &Value) -> Result<(), String> {
    let signed = text(part, "thoughtSignature");
    if let Some(words) = part.get("text").and_then(Value::as_str) {
        // https://github.com/router-for-me/CLIProxyAPI/issues/1292
        if words.is_empty() && signed.is_empty() {
            return refuse(format!(
                "* GenerateContentRequest.contents[{place}].parts[0].data: required oneof field 'data' must have one initialized field"
            ));
        }
        return signature_fits(flavour, signed, words);
    }
    if let Some(call) = part.get("functionCall") {
        name(text(call, "name"))?;
        if !call["args"].is_object() {
            return refuse("Invalid value at 'contents.parts.function_call.args' (Struct)");
        }
        return signature_fits(flavour, signed, &call["args"].to_string());
    }
    if let Some(response) = part.get("functionResponse") {
        name(text(response, "name"))?;
        if !response["response"].is_object() {
            return refuse("Invalid value at 'contents.parts.function_response.response' (Struct)");
        }
        return Ok(());
    }
    if let Some(data) = part.get("inlineData") {
        return PICTURES.judge(text(data, "mimeType"), text(data, "data"));
    }
    if part.get("executableCode").is_some() || part.get("codeExecutionResult").is_some() {
        return Ok(());
    }
    refuse(format!(
        "* GenerateContentRequest.contents[{place}].parts[0].data: required oneof field 'data' must have one initialized field"
    ))
}

/// <https://ai.google.dev/gemini-api/docs/thought-signatures>: as it came, with the part it came with.
fn signature_fits(flavour: Flavour, signed: &str, words: &str) -> Result<(), String> {
    if ["", UNSIGNED].contains(&signed) || signed == signature(&flavour.model().model, words) {
        return Ok(());
    }
    refuse("Thought signature is not valid")
}

fn with<'a>(content: &'a Value, key: &'a str) -> impl Iterator<Item = &'a Value> {
    list(content, "parts").iter().filter(move |part| part.get(key).is_some())
}

/// Calls, their results, and what may stand before and after them.
fn turns(
    flavour: Flavour,
    content: &Value,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Result<(), String> {
    let calls = with(content, "functionCall").count();
    let responses = with(content, "functionResponse").count();
    if calls > 0 {
        // https://github.com/google-gemini/gemini-cli/issues/26486
        if before.is_none_or(|before| text(before, "role") != "user") {
            return refuse(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            );
        }
        // https://github.com/google-gemini/gemini-cli/issues/4217
        if after.map_or(0, |after| with(after, "functionResponse").count()) != calls {
            return refuse(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            );
        }
        // https://ai.google.dev/gemini-api/docs/thought-signatures: the first call of each step has one
        let first =
            with(content, "functionCall").next().map_or("", |p| text(p, "thoughtSignature"));
        if flavour == Flavour::Gemini && first.is_empty() {
            return refuse(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly",
            );
        }
    }
    if responses > 0 {
        // https://github.com/langchain-ai/langchain/issues/27799
        if before.map_or(0, |before| with(before, "functionCall").count()) != responses {
            return refuse(
                "Please ensure that function response turn comes immediately after a function call turn.",
            );
        }
        // https://github.com/anomalyco/opencode/pull/43479
        if responses < list(content, "parts").len() {
            return refuse("A function response turn must contain only function responses.");
        }
        let named = |part: &Value, key: &str| text(at(part, key), "name").to_owned();
        let called: Vec<String> = before
            .into_iter()
            .flat_map(|before| with(before, "functionCall"))
            .map(|p| named(p, "functionCall"))
            .collect();
        let answered: Vec<String> =
            with(content, "functionResponse").map(|p| named(p, "functionResponse")).collect();
        // https://ai.google.dev/gemini-api/docs/function-calling: the name of the call
        if called != answered {
            return refuse(format!(
                "Function response names {answered:?} do not match the calls {called:?}"
            ));
        }
    }
    Ok(())
}

pub fn calls(body: &Value) -> Vec<(Value, String)> {
    let contents = list(body, "contents");
    let mut found = Vec::new();
    for (place, content) in contents.iter().enumerate() {
        let mut results =
            contents.get(place + 1).into_iter().flat_map(|next| with(next, "functionResponse"));
        for call in with(content, "functionCall") {
            let result =
                results.next().map_or(&Value::Null, |part| &part["functionResponse"]["response"]);
            let words = [text(result, "output"), text(result, "error")].concat();
            found.push((call["functionCall"]["args"].clone(), words));
        }
    }
    found
}
