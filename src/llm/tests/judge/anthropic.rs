//! The Messages API of Anthropic.

use super::{Pictures, at, is_plain, list, refuse, schema, signature, text};
use serde_json::Value;

/// <https://docs.claude.com/en/docs/build-with-claude/vision>: 5 MB and 8,000 pixels.
const PICTURES: Pictures = Pictures {
    types: &["image/jpeg", "image/png", "image/gif", "image/webp"],
    most: 5 * 1024 * 1024,
    side: 8_000,
};

pub fn judge(body: &Value) -> Result<(), String> {
    let messages = list(body, "messages");
    limits(body)?;
    tools(body)?;
    marks(body)?;
    // https://docs.claude.com/en/api/messages
    if messages.is_empty() {
        return refuse("messages: at least one message is required");
    }
    if text(&messages[0], "role") != "user" {
        return refuse("messages: first message must use the \"user\" role");
    }
    let mut ids = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        if !["user", "assistant"].contains(&text(message, "role")) {
            return refuse(format!("messages.{place}.role: Input should be 'user' or 'assistant'"));
        }
        // https://docs.claude.com/en/api/messages
        if list(message, "content").is_empty() {
            return refuse(format!(
                "messages.{place}: all messages must have non-empty content except for the optional final assistant message"
            ));
        }
        for (at, block) in list(message, "content").iter().enumerate() {
            content(&format!("messages.{place}.content.{at}"), block, text(body, "model"))?;
            if text(block, "type") == "tool_use" {
                // https://github.com/anthropics/claude-code/issues/20901
                if ids.contains(&text(block, "id")) {
                    return refuse(format!(
                        "messages.{place}.content.{at}: `tool_use` ids must be unique"
                    ));
                }
                ids.push(text(block, "id"));
            }
        }
        if text(message, "role") == "assistant" {
            spoken(place, message, messages.get(place + 1))?;
        } else {
            results(place, message, place.checked_sub(1).map(|before| &messages[before]))?;
        }
    }
    last(messages)?;
    thinking(body, messages)
}

fn limits(body: &Value) -> Result<(), String> {
    let Some(most) = body["max_tokens"].as_u64().filter(|most| *most > 0) else {
        return refuse("max_tokens: Field required");
    };
    // https://docs.claude.com/en/docs/build-with-claude/extended-thinking
    match text(at(body, "thinking"), "type") {
        "" | "disabled" => {}
        "enabled" => {
            let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
            if budget < 1024 {
                return refuse(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
                );
            }
            if budget >= most {
                return refuse("`max_tokens` must be greater than `thinking.budget_tokens`.");
            }
        }
        "adaptive" => {
            let effort = text(at(body, "output_config"), "effort");
            if !["low", "medium", "high", "xhigh", "max"].contains(&effort) {
                return refuse(
                    "output_config.effort: Input should be 'low', 'medium', 'high' or 'max'",
                );
            }
        }
        other => return refuse(format!("thinking: Input tag '{other}' found using 'type'")),
    }
    for block in list(body, "system") {
        words("system", text(block, "text"))?;
    }
    Ok(())
}

fn tools(body: &Value) -> Result<(), String> {
    let mut names = Vec::new();
    for (place, tool) in list(body, "tools").iter().enumerate() {
        let name = text(tool, "name");
        // https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
        if !is_plain(name, 128) {
            return refuse(format!(
                "tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if names.contains(&name) {
            return refuse("tools: Tool names must be unique.");
        }
        names.push(name);
        schema(name, at(tool, "input_schema"))?;
    }
    Ok(())
}

/// <https://docs.claude.com/en/docs/build-with-claude/prompt-caching>: four breakpoints.
fn marks(body: &Value) -> Result<(), String> {
    let marked = |blocks: &[Value]| {
        blocks.iter().filter(|block| block.get("cache_control").is_some()).count()
    };
    let messages = list(body, "messages").iter().map(|message| marked(list(message, "content")));
    let count =
        marked(list(body, "system")) + marked(list(body, "tools")) + messages.sum::<usize>();
    if count > 4 {
        return refuse(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {count}."
        ));
    }
    Ok(())
}

fn words(place: &str, words: &str) -> Result<(), String> {
    // https://github.com/anthropics/claude-code/issues/59812
    if words.is_empty() {
        return refuse(format!("{place}: text content blocks must be non-empty"));
    }
    // https://github.com/anthropics/claude-code/issues/23440
    if words.trim().is_empty() {
        return refuse(format!("{place}: text content blocks must contain non-whitespace text"));
    }
    Ok(())
}

fn content(place: &str, block: &Value, model: &str) -> Result<(), String> {
    let known: &[&str] = match text(block, "type") {
        "text" => {
            words(place, text(block, "text"))?;
            &["text", "citations", "cache_control"]
        }
        "tool_use" => {
            call(place, block)?;
            &["id", "name", "input", "cache_control", "caller"]
        }
        "tool_result" => {
            for (at, part) in list(block, "content").iter().enumerate() {
                inner(&format!("{place}.content.{at}"), part)?;
            }
            &["tool_use_id", "content", "is_error", "cache_control"]
        }
        "image" => {
            inner(place, block)?;
            &["source", "cache_control"]
        }
        "thinking" => {
            // https://docs.claude.com/en/docs/build-with-claude/extended-thinking: only as it came
            if text(block, "signature") != signature(model, text(block, "thinking")) {
                return refuse(format!("{place}: Invalid `signature` in `thinking` block"));
            }
            &["thinking", "signature"]
        }
        "redacted_thinking" => &["data"],
        "server_tool_use" => &["id", "name", "input", "cache_control"],
        "web_search_tool_result" => &["tool_use_id", "content", "cache_control"],
        other => {
            return refuse(format!(
                "{place}: Input tag '{other}' found using 'type' does not match any of the expected tags"
            ));
        }
    };
    // https://github.com/langchain-ai/langchain/issues/31208
    let fields = block.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    match fields.filter(|key| *key != "type").find(|key| !known.contains(key)) {
        Some(extra) => refuse(format!("{place}.{extra}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn call(place: &str, block: &Value) -> Result<(), String> {
    // https://github.com/maximhq/bifrost/issues/5097
    if !is_plain(text(block, "id"), usize::MAX) {
        return refuse(format!(
            "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        ));
    }
    // https://github.com/openclaw/openclaw/pull/23340
    if !is_plain(text(block, "name"), 128) {
        return refuse(format!(
            "{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        ));
    }
    if !block["input"].is_object() {
        return refuse(format!("{place}.tool_use.input: Input should be a valid dictionary"));
    }
    Ok(())
}

/// A text or a picture, in a message or in a result.
fn inner(place: &str, part: &Value) -> Result<(), String> {
    match text(part, "type") {
        "text" => words(place, text(part, "text")),
        "image" => {
            let source = at(part, "source");
            PICTURES.judge(text(source, "media_type"), text(source, "data"))
        }
        other => refuse(format!("{place}: Input tag '{other}' found using 'type'")),
    }
}

/// The kinds of thinking.
fn is_thinking(block: &Value) -> bool {
    ["thinking", "redacted_thinking"].contains(&text(block, "type"))
}

fn ids<'a>(message: &'a Value, kind: &str, key: &str) -> Vec<&'a str> {
    let blocks = list(message, "content").iter().filter(|block| text(block, "type") == kind);
    blocks.map(|block| text(block, key)).collect()
}

fn spoken(place: usize, message: &Value, next: Option<&Value>) -> Result<(), String> {
    // https://github.com/tailcallhq/forgecode/issues/2107
    if list(message, "content").last().is_some_and(is_thinking) {
        return refuse(format!(
            "messages.{place}: The final block in an assistant message cannot be `thinking`."
        ));
    }
    // https://github.com/anthropics/claude-code/issues/12526
    let answered = next.map(|next| ids(next, "tool_result", "tool_use_id")).unwrap_or_default();
    let calls = ids(message, "tool_use", "id");
    match calls.iter().find(|id| !answered.contains(*id)) {
        Some(id) => refuse(format!(
            "messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        )),
        None => Ok(()),
    }
}

fn results(place: usize, message: &Value, before: Option<&Value>) -> Result<(), String> {
    let calls = before.map(|before| ids(before, "tool_use", "id")).unwrap_or_default();
    let mut seen = Vec::new();
    let results = ids(message, "tool_result", "tool_use_id");
    for id in &results {
        // https://github.com/anthropics/claude-code/issues/63626 quotes it for another block of the kind
        if !calls.contains(id) {
            return refuse(format!(
                "messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
            ));
        }
        // https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
        if seen.contains(id) {
            return refuse(format!(
                "messages.{place}: each tool_use must have a single result: {id}"
            ));
        }
        seen.push(*id);
    }
    // https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use: results come first
    let blocks = list(message, "content");
    let first = blocks.iter().take_while(|block| text(block, "type") == "tool_result").count();
    if first < results.len() {
        return refuse(format!(
            "messages.{place}: tool_result blocks must come before other content"
        ));
    }
    Ok(())
}

/// <https://github.com/vybestack/llxprt-code/pull/3695>: newer models go on with no words of their own. A reply that
/// the API paused within a tool of its server goes back as it is
/// (<https://docs.claude.com/en/docs/build-with-claude/handling-stop-reasons>).
fn last(messages: &[Value]) -> Result<(), String> {
    let Some(last) = messages.last().filter(|last| text(last, "role") == "assistant") else {
        return Ok(());
    };
    let kind = list(last, "content").last().map_or("", |block| text(block, "type"));
    if kind.starts_with("server_") || kind.ends_with("_tool_result") {
        return Ok(());
    }
    refuse(
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
}

/// <https://github.com/zed-industries/zed/pull/33317>: with a budget, the running turn begins with a thought.
fn thinking(body: &Value, messages: &[Value]) -> Result<(), String> {
    if text(at(body, "thinking"), "type") != "enabled" {
        return Ok(());
    }
    let is_result = |message: &Value| {
        text(message, "role") == "user"
            && list(message, "content").iter().all(|block| text(block, "type") == "tool_result")
    };
    let turn = messages
        .iter()
        .rposition(|message| text(message, "role") == "user" && !is_result(message))
        .map_or(0, |last| last + 1);
    let spoken = messages[turn..].iter().position(|message| text(message, "role") == "assistant");
    let Some(place) = spoken.map(|at| turn + at) else { return Ok(()) };
    let first = list(&messages[place], "content").first();
    match first.filter(|block| !is_thinking(block)) {
        Some(block) => refuse(format!(
            "messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`",
            text(block, "type")
        )),
        None => Ok(()),
    }
}

pub fn calls(body: &Value) -> Vec<(Value, String)> {
    let blocks = || list(body, "messages").iter().flat_map(|message| list(message, "content"));
    let result = |id: &str| {
        let found =
            blocks().find(|block| text(block, "tool_use_id") == id).map(|block| &block["content"]);
        let parts = found.and_then(Value::as_array).into_iter().flatten();
        let words = found.and_then(Value::as_str).map(str::to_owned);
        words.unwrap_or_else(|| parts.map(|part| text(part, "text")).collect())
    };
    let calls = blocks().filter(|block| text(block, "type") == "tool_use");
    calls.map(|call| (call["input"].clone(), result(text(call, "id")))).collect()
}
