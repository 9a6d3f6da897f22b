//! Chat Completions, as `OpenAI`, Mistral, `DeepSeek` and Moonshot take it.

use super::responses::PICTURES;
use super::{Flavour, at, is_plain, list, refuse, schema, text};
use serde_json::{Map, Value};

pub fn judge(flavour: Flavour, body: &Value) -> Result<(), String> {
    settings(flavour, body)?;
    let messages = list(body, "messages");
    for (place, message) in messages.iter().enumerate() {
        fields(flavour, place, message)?;
        match text(message, "role") {
            "system" | "developer" => {}
            "user" => user(place, message)?,
            "assistant" => assistant(flavour, place, message)?,
            "tool" => {}
            other => return refuse(format!("Invalid value: '{other}' for messages[{place}].role")),
        }
    }
    pairs(flavour, messages)?;
    order(flavour, messages)
}

fn settings(flavour: Flavour, body: &Value) -> Result<(), String> {
    // https://platform.openai.com/docs/api-reference/chat/create
    if flavour == Flavour::OpenAi && body.get("max_tokens").is_some() {
        return refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        );
    }
    if flavour != Flavour::OpenAi && body.get("prompt_cache_key").is_some() {
        return refuse("Extra inputs are not permitted: prompt_cache_key");
    }
    // https://platform.openai.com/docs/api-reference/chat/create
    if list(body, "tools").len() > 128 {
        return refuse(
            "Invalid 'tools': array too long. Expected an array with maximum length 128.",
        );
    }
    for tool in list(body, "tools") {
        let function = at(tool, "function");
        name(flavour, "tools[0].function.name", text(function, "name"))?;
        schema(text(function, "name"), at(function, "parameters"))?;
    }
    Ok(())
}

/// <https://github.com/charmbracelet/crush/issues/1590>: Mistral refuses fields that it does not know.
fn fields(flavour: Flavour, place: usize, message: &Value) -> Result<(), String> {
    let own: &[&str] = match flavour {
        Flavour::DeepSeek | Flavour::Moonshot => &["reasoning_content"],
        _ => &[],
    };
    let known = ["role", "content", "tool_calls", "tool_call_id", "name", "refusal"];
    let keys = message.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    match keys.into_iter().find(|key| !known.contains(key) && !own.contains(key)) {
        Some(extra) => refuse(format!("messages.{place}.{extra}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn user(place: usize, message: &Value) -> Result<(), String> {
    let content = at(message, "content");
    if let Some(words) = content.as_str() {
        // https://platform.moonshot.ai/docs/api/chat: a message has content
        return match words.is_empty() {
            true => refuse(format!(
                "Invalid request: the message at position {place} with role 'user' must not be empty"
            )),
            false => Ok(()),
        };
    }
    let parts = list(message, "content");
    if parts.is_empty() {
        return refuse(format!("Invalid 'messages[{place}].content': empty array."));
    }
    for part in parts {
        match text(part, "type") {
            "text" => {}
            "image_url" => PICTURES.judge_url(text(at(part, "image_url"), "url"))?,
            other => {
                return refuse(format!("Invalid value: '{other}' in messages[{place}].content"));
            }
        }
    }
    Ok(())
}

fn assistant(flavour: Flavour, place: usize, message: &Value) -> Result<(), String> {
    let calls = list(message, "tool_calls");
    // https://platform.openai.com/docs/api-reference/chat/create
    if message.get("tool_calls").is_some() && calls.is_empty() {
        return refuse(format!("Invalid 'messages[{place}].tool_calls': empty array."));
    }
    let words = text(message, "content");
    // https://github.com/OpenHands/OpenHands/issues/8685
    if calls.is_empty() && words.trim().is_empty() {
        return refuse(format!(
            "messages[{place}]: Assistant message must have either content or tool_calls, but not none."
        ));
    }
    for (at, call) in calls.iter().enumerate() {
        let place = format!("messages[{place}].tool_calls[{at}]");
        self::call(flavour, &place, call)?;
    }
    // https://api-docs.deepseek.com/guides/thinking_mode and
    // https://github.com/mastra-ai/mastra/issues/12592
    let thinks_back = matches!(flavour, Flavour::DeepSeek | Flavour::Moonshot);
    if thinks_back && !calls.is_empty() && text(message, "reasoning_content").is_empty() {
        return refuse(match flavour {
            Flavour::DeepSeek => {
                "The `reasoning_content` in the thinking mode must be passed back to the API."
                    .to_owned()
            }
            _ => format!(
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"
            ),
        });
    }
    Ok(())
}

fn call(flavour: Flavour, place: &str, call: &Value) -> Result<(), String> {
    let id = text(call, "id");
    // https://github.com/nearai/ironclaw/issues/1241
    let nine = id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    if flavour == Flavour::Mistral && !nine {
        return refuse(format!(
            "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
        ));
    }
    // https://github.com/agno-agi/agno/issues/5382
    if id.is_empty() || id.len() > 40 {
        return refuse(format!(
            "Invalid '{place}.id': string too long. Expected a string with maximum length 40, but got a string with \
             length {} instead.",
            id.len()
        ));
    }
    let function = at(call, "function");
    name(flavour, &format!("{place}.function.name"), text(function, "name"))?;
    // https://github.com/vllm-project/vllm/issues/43995: servers read the text when they write the prompt
    if serde_json::from_str::<Map<String, Value>>(text(function, "arguments")).is_err() {
        return refuse(format!("{place}.function.arguments: Expecting value: not a JSON object"));
    }
    Ok(())
}

fn name(flavour: Flavour, place: &str, name: &str) -> Result<(), String> {
    // https://platform.openai.com/docs/api-reference/chat/create
    if !is_plain(name, 64) {
        return refuse(format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        ));
    }
    // https://github.com/MoonshotAI/kimi-cli/issues/1773
    if flavour == Flavour::Moonshot && !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return refuse(
            "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes",
        );
    }
    Ok(())
}

/// Results follow their calls, one for each.
fn pairs(flavour: Flavour, messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            // https://platform.openai.com/docs/guides/function-calling
            let Some(at) = open.iter().position(|call| *call == id) else {
                return refuse(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                );
            };
            open.remove(at);
            continue;
        }
        closed(flavour, &open)?;
        open = list(message, "tool_calls").iter().map(|call| text(call, "id")).collect();
        let mut ids = open.clone();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < open.len() {
            return refuse(format!("Duplicate value for 'tool_call_id' of {open:?}"));
        }
    }
    closed(flavour, &open)
}

fn closed(flavour: Flavour, open: &[&str]) -> Result<(), String> {
    match (open.is_empty(), flavour) {
        (true, _) => Ok(()),
        // https://github.com/partITech/php-mistral/issues/57
        (false, Flavour::Mistral) => refuse("Not the same number of function calls and responses"),
        // https://platform.openai.com/docs/guides/function-calling
        (false, _) => refuse(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {open:?}"
        )),
    }
}

fn order(flavour: Flavour, messages: &[Value]) -> Result<(), String> {
    let roles: Vec<&str> = messages.iter().map(|message| text(message, "role")).collect();
    if flavour != Flavour::Mistral {
        return Ok(());
    }
    // https://github.com/datapizza-labs/datapizza-ai/issues/98
    if roles.windows(2).any(|pair| pair == ["tool", "user"]) {
        return refuse("Unexpected role 'user' after role 'tool'");
    }
    // https://github.com/0xPlaygrounds/rig/pull/1130
    match roles.last().copied() {
        Some(last @ ("assistant" | "system")) => refuse(format!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got {last}"
        )),
        _ => Ok(()),
    }
}

pub fn calls(body: &Value) -> Vec<(Value, String)> {
    let messages = list(body, "messages");
    let mut found = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let results = messages[place + 1..].iter();
        let results: Vec<&Value> = results.take_while(|m| text(m, "role") == "tool").collect();
        for call in list(message, "tool_calls") {
            let arguments = text(at(call, "function"), "arguments");
            let result = results.iter().find(|m| text(m, "tool_call_id") == text(call, "id"));
            let words = result.map_or("", |m| text(m, "content")).to_owned();
            found.push((serde_json::from_str(arguments).unwrap_or_default(), words));
        }
    }
    found
}
