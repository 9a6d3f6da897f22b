//! That each judge takes a plain conversation, and refuses it when one thing in it is wrong.

use super::Flavour;
use crate::llm::bench::DOT;
use serde_json::{Value, json};

/// Changes the value at a JSON pointer; a null takes it away.
fn with(body: &Value, pointer: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} is not there"));
    match (parent, value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(key)),
        (Value::Object(fields), value) => drop(fields.insert(key.to_owned(), value)),
        (Value::Array(list), Value::Null) => drop(list.remove(key.parse().unwrap())),
        (Value::Array(list), value) if key == "-" => list.push(value),
        (Value::Array(list), value) => list[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{pointer} is in {other}"),
    }
    body
}

/// That the judge takes `body`, and refuses each change of it with these words.
fn check(flavours: &[Flavour], body: &Value, changes: &[(&str, Value, &str)]) {
    for flavour in flavours {
        assert_eq!(flavour.judge(body), Ok(()), "{flavour:?}");
        for (pointer, value, words) in changes {
            let refusal = flavour.judge(&with(body, pointer, value.clone()));
            let words_of = refusal.expect_err(&format!("{flavour:?} takes {value} at {pointer}"));
            assert!(words_of.contains(words), "{flavour:?}, {pointer} = {value}: {words_of}");
        }
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {}})
}

#[test]
fn anthropic() {
    let mark = json!({"type": "ephemeral"});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}});
    let body = json!({
        "model": "claude-sonnet-5-5", "max_tokens": 4096,
        "system": [{"type": "text", "text": "s", "cache_control": mark}],
        "tools": [{"name": "Read", "input_schema": schema()}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "x"},
                {"type": "tool_result", "tool_use_id": "a", "content": [image], "cache_control": mark},
                {"type": "text", "text": "on", "cache_control": mark}]},
        ],
    });
    let in_turn = with(&body, "/messages/2/content/2", Value::Null);
    let budget = json!({"type": "enabled", "budget_tokens": 2048});
    check(&[Flavour::Anthropic], &in_turn, &[("/thinking", budget, "but found `text`")]);
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "made up"});
    let gif = json!("image/gif");
    check(
        &[Flavour::Anthropic],
        &body,
        &[
            ("/max_tokens", Value::Null, "max_tokens: Field required"),
            (
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 4096}),
                "must be greater than",
            ),
            ("/thinking", json!({"type": "adaptive"}), "output_config.effort"),
            ("/tools/-", json!({"name": "Read", "input_schema": schema()}), "must be unique"),
            ("/tools/0/name", json!("a.b"), "should match pattern"),
            ("/tools/0/input_schema/anyOf", json!([]), "at the top level"),
            ("/messages/0/role", json!("assistant"), "first message must use"),
            ("/messages/0/content/0/text", json!(""), "must be non-empty"),
            ("/messages/1/content/0/text", json!(" \n"), "non-whitespace text"),
            ("/messages/1/content/0/cache_control", json!({}), "A maximum of 4 blocks"),
            ("/messages/1/content/0/index", json!(0), "Extra inputs"),
            ("/messages/1/content/0", thinking.clone(), "Invalid `signature`"),
            (
                "/messages/1/content/-",
                json!({"type": "redacted_thinking", "data": "x"}),
                "cannot be `thinking`",
            ),
            ("/messages/1/content/1/id", json!("b"), "must be unique"),
            ("/messages/1/content/1/id", json!("Bash:0"), "tool_use.id: String should match"),
            ("/messages/1/content/1/name", json!(""), "tool_use.name: String should match"),
            ("/messages/1/content/1/input", json!("{}"), "valid dictionary"),
            ("/messages/2/content/0", Value::Null, "were found without `tool_result` blocks"),
            ("/messages/2/content/0/tool_use_id", json!("c"), "were found without"),
            (
                "/messages/2/content/-",
                json!({"type": "tool_result", "tool_use_id": "c"}),
                "unexpected `tool_use_id`",
            ),
            (
                "/messages/2/content/-",
                json!({"type": "tool_result", "tool_use_id": "a"}),
                "a single result",
            ),
            ("/messages/2/content/1/content/0/source/media_type", gif, "media type"),
            (
                "/messages/2/content/1/content/0/source/data",
                json!(&DOT[..80]),
                "Could not process image",
            ),
            ("/messages/2/content/1/content/0/source/data", json!("%"), "invalid base64"),
            (
                "/messages/-",
                json!({"role": "assistant", "content": [{"type": "text", "text": "y"}]}),
                "prefill",
            ),
            ("/messages/-", json!({"role": "user", "content": []}), "non-empty content"),
        ],
    );
}

#[test]
fn responses() {
    let body = json!({
        "model": "gpt-6.1-sol",
        "tools": [{"type": "function", "name": "Read", "parameters": schema()}],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
    });
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": "{}"});
    let picture = json!([{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]);
    check(
        &[Flavour::Responses],
        &body,
        &[
            ("/tools/0/parameters/type", Value::Null, "must have type 'object'"),
            ("/input/0/content/0/type", json!("output_text"), "Supported values"),
            ("/input/1/encrypted_content", Value::Null, "not persisted"),
            ("/input/1/id", json!("fc_1"), "Duplicate item"),
            ("/input/2", Value::Null, "required following item"),
            ("/input/2/call_id", json!(""), "Missing required parameter"),
            ("/input/2/call_id", json!("a".repeat(65)), "string too long"),
            ("/input/2/name", json!("functions.Read"), "does not match pattern"),
            ("/input/2/arguments", json!("{"), "not valid JSON"),
            ("/input/3/call_id", json!("b"), "No tool call found"),
            ("/input/3/output", picture, "Could not process image"),
            ("/input/-", call("b"), "No tool output found"),
            ("/input/-", call("a"), "Duplicate call_id"),
            ("/input/-", json!({"type": "thought"}), "Invalid value"),
        ],
    );
}

#[test]
fn chat() {
    let call = json!({"id": "aB3dE5gH1", "type": "function", "function": {"name": "Read", "arguments": "{}"}});
    let body = json!({
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "Read", "parameters": schema()}}],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "aB3dE5gH1", "content": "x"},
            {"role": "assistant", "content": "so"},
            {"role": "user", "content": "on"},
        ],
    });
    let thinking = with(&body, "/messages/2/reasoning_content", json!("hm"));
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    let name = "/messages/2/tool_calls/0/function/name";
    let common = [
        ("/tools/0/function/parameters/oneOf", json!([]), "at the top level"),
        (arguments, json!("{\"a\":"), "not a JSON object"),
        (name, json!("Read<|channel|>"), "does not match pattern"),
        ("/messages/1/content", json!([]), "empty array"),
        ("/messages/2/tool_calls", json!([]), "empty array"),
        ("/messages/4/content", json!(" "), "but not none"),
        ("/messages/2/extra", json!(1), "Extra inputs"),
        ("/messages/3/tool_call_id", json!("zzzzzzzzz"), "must be a response"),
    ];
    check(&[Flavour::OpenAi, Flavour::Mistral], &body, &common);
    check(&[Flavour::DeepSeek, Flavour::Moonshot], &thinking, &common);
    let id = "/messages/2/tool_calls/0/id";
    check(
        &[Flavour::OpenAi],
        &body,
        &[
            ("/max_tokens", json!(9), "Unsupported parameter"),
            (id, json!("a".repeat(41)), "string too long"),
            ("/messages/2/tool_calls/-", call.clone(), "Duplicate value"),
            ("/messages/2/reasoning_content", json!("hm"), "Extra inputs"),
            ("/messages/3", Value::Null, "must be followed by tool messages"),
        ],
    );
    check(
        &[Flavour::Mistral],
        &body,
        &[
            (id, json!("call_1234"), "a length of 9"),
            ("/messages/4", Value::Null, "Unexpected role 'user' after role 'tool'"),
            ("/messages/5", Value::Null, "Expected last role"),
            ("/messages/3", Value::Null, "Not the same number"),
        ],
    );
    let forgotten = ("/messages/2/reasoning_content", Value::Null, "reasoning_content");
    check(&[Flavour::DeepSeek, Flavour::Moonshot], &thinking, &[forgotten]);
    check(&[Flavour::Moonshot], &thinking, &[(name, json!("_x"), "must start with a letter")]);
}

#[test]
fn gemini() {
    let body = json!({
        "tools": [{"functionDeclarations": [{"name": "Read", "parametersJsonSchema": schema()}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "Read", "args": {}},
                    "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"name": "Bash", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "Read", "response": {"output": "x"}}},
                {"functionResponse": {"name": "Bash", "response": {"output": "x"}}}]},
            {"role": "user", "parts": [{"text": "on"},
                {"inlineData": {"mimeType": "image/png", "data": DOT}}]},
        ],
    });
    let level = json!({"thinkingConfig": {"thinkingLevel": "max"}});
    let changes = [
        ("/contents/0/parts/0/text", json!(""), "must have one initialized field"),
        ("/contents/0/parts", json!([]), "must not be empty"),
        ("/contents/0/role", json!("model"), "comes immediately after a user turn"),
        ("/contents/1/parts/1/functionCall/name", json!("a b"), "Invalid function name"),
        ("/contents/1/parts/1/functionCall/args", json!("{}"), "Invalid value"),
        ("/contents/1/parts/0/thoughtSignature", json!("AAAA"), "signature is not valid"),
        ("/contents/2/parts/1", Value::Null, "number of function response parts"),
        ("/contents/2/parts/1/functionResponse/name", json!("Read"), "do not match the calls"),
        ("/contents/2/parts/-", json!({"text": "on"}), "only function responses"),
        ("/contents/3/parts/-", json!({}), "must have one initialized field"),
        ("/contents/3/parts/1/inlineData/mimeType", json!("image/gif"), "unsupported media type"),
        ("/contents/3/role", json!("model"), "ends with a user role"),
        ("/contents/1", Value::Null, "response turn comes immediately after"),
        ("/generationConfig", level, "hinking"),
    ];
    check(&[Flavour::Gemini, Flavour::Gemini2], &body, &changes);
    let unsigned =
        ("/contents/1/parts/0/thoughtSignature", Value::Null, "missing a thought_signature");
    check(&[Flavour::Gemini], &body, &[unsigned]);
}
