//! What the four wires share: how a stream is read, and the small conversions each of them needs.

use crate::config::models::Model;
use crate::llm::sse::Event;
use crate::llm::{Delta, Input, Request, Stop};
use crate::protocol::item::Image;
use crate::protocol::{Origin, ValueCount, value_memory};
use crate::text::SafeText;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value};
use std::path::Path;

/// The key that leads requests which begin alike to the same cache. Pods with one prompt share it, as forks do.
pub fn cache_key(request: &Request) -> String {
    blake3::hash(request.system.as_bytes()).to_hex()[..32].to_owned()
}

/// Reads the events of one answer.
pub trait Decode: Send {
    /// Takes one event and appends the deltas it holds.
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault>;
    /// How much of the answer is there.
    fn progress(&self) -> Progress;
    /// Nothing more comes: appends what is complete only now. `None` when the provider never said
    /// that its answer was complete.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop>;
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The model is still at it.
    Open,
    /// The model has finished; accounts may follow.
    Answered,
    /// Nothing of use follows.
    Ended,
}

/// Why an event could not become deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The provider reported an error, in these words.
    Reported { message: String, retryable: bool },
    /// The event is not what its wire promises.
    Garbled(String),
    /// The event holds more than [`MAX_VALUES`](crate::protocol::MAX_VALUES) values.
    TooMany,
}

/// What items that `model` says are marked with.
pub fn origin(model: &Model) -> Origin {
    Origin {
        wire: model.wire.name().into(),
        provider: model.provider.clone(),
        model: model.model.clone(),
    }
}

/// The block to send verbatim: only to the model that made it.
pub fn native<'a>(input: &'a Input, origin: &Origin) -> Option<&'a Value> {
    input.native.as_ref().filter(|_| input.origin.as_ref() == Some(origin))
}

/// The data of an event as JSON.
pub fn parse(event: &Event) -> Result<Value, Fault> {
    if ValueCount::is_too_many(&event.data) {
        return Err(Fault::TooMany);
    }
    serde_json::from_str(&event.data).map_err(|error| {
        let start = SafeText::brief(&event.data, 40);
        Fault::Garbled(format!("an event is not JSON ({error}): {start}"))
    })
}

/// A value of the provider that is kept until its block is complete, as a delta that counts it.
pub fn kept(value: &Value) -> Delta {
    Delta::Unseen(value_memory(value))
}

/// The same of a field that is kept with its key.
pub fn kept_field(key: &str, value: &Value) -> Delta {
    Delta::Unseen(key.len() + value_memory(value))
}

/// The string at `key`, empty when there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The object of `key`, null when there is none.
pub fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    const NULL: &Value = &Value::Null;
    value.get(key).unwrap_or(NULL)
}

/// The list at `key`, empty when there is none.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A call's arguments as an object. Providers and small models send nothing, half an object, a
/// list, or the object once more as a string.
pub fn arguments(raw: &str) -> Map<String, Value> {
    if ValueCount::is_too_many(raw) {
        // The reply that holds such a call is stopped, so that the call is not made.
        return Map::new();
    }
    match serde_json::from_str(raw) {
        Ok(Value::Object(map)) => map,
        Ok(Value::String(inner)) => serde_json::from_str(&inner).unwrap_or_default(),
        _ => Map::new(),
    }
}

/// The arguments as the log keeps them: what came when that is an object, else `{}`. What has too many
/// values to be read stays as it came, for the limits of the reply.
pub fn arguments_text(raw: &str) -> String {
    if ValueCount::is_too_many(raw) || serde_json::from_str::<Map<String, Value>>(raw).is_ok() {
        return raw.trim().to_owned();
    }
    Value::Object(arguments(raw)).to_string()
}

/// The arguments of a received call for the log: an object as it came, `{}` for none, and every other text
/// as it came, so that the call is refused with what stands there. [`arguments_text`] is what is sent back.
pub fn received_arguments(raw: &str) -> String {
    let text = raw.trim();
    if text.is_empty() || text == "null" {
        return "{}".to_owned();
    }
    // Only a text may hold the object once more; everything else need not be read to be kept.
    let is_nested = text.starts_with('"')
        && serde_json::from_str::<String>(text)
            .is_ok_and(|inner| serde_json::from_str::<Map<String, Value>>(&inner).is_ok());
    if is_nested { arguments_text(raw) } else { text.to_owned() }
}

/// What a model reads of a tool result.
pub fn result_text(summary: &str, content: Option<&str>) -> String {
    match content {
        Some(content) if summary.is_empty() => content.to_owned(),
        Some(content) => format!("{summary}\n{content}"),
        None => summary.to_owned(),
    }
}

/// The same on a wire that has no mark for errors.
pub fn marked_result_text(summary: &str, content: Option<&str>, is_error: bool) -> String {
    let text = result_text(summary, content);
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if is_error && !says_so { format!("error: {text}") } else { text }
}

/// An image in base64, or the words that stand in its place.
pub fn picture(request: &Request, model: &Model, image: &Image) -> Result<String, String> {
    if !model.images {
        return Err(format!("[an image ({}) that this model cannot see]", image.media_type));
    }
    let name = Path::new(&image.blob).file_name().unwrap_or_default();
    let path = request.blobs.join(name);
    let bytes = std::fs::read(&path)
        .map_err(|error| format!("[an image that is lost: {}: {error}]", path.display()))?;
    Ok(BASE64_STANDARD.encode(bytes))
}

/// An id for a call that came without one.
pub fn call_id() -> String {
    let random = uuid::Uuid::now_v7().simple().to_string();
    // The end of a v7 id is its random part.
    format!("call_{}", &random[12..])
}

/// Whether an error inside a stream may pass by itself. What names no cause is given the chance.
pub fn passing(code: &Value) -> bool {
    const LASTING: [&str; 12] = [
        "invalid",
        "authentication",
        "permission",
        "not_found",
        "too_large",
        "billing",
        "quota",
        "context_length",
        "policy",
        "content",
        "unsupported",
        "denied",
    ];
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
    match (number, code.as_str()) {
        (Some(status), _) => crate::llm::retry::passing_status(u16::try_from(status).unwrap_or(0)),
        (None, Some(word)) => {
            let word = word.to_ascii_lowercase();
            !LASTING.iter().any(|lasting| word.contains(lasting))
        }
        (None, None) => true,
    }
}

/// Whether a provider's words say that a request is longer than its model reads.
pub fn is_too_long(words: &str) -> bool {
    const SAYINGS: [&str; 17] = [
        // Anthropic, and the gate before it.
        "prompt is too long",
        "request_too_large",
        "request exceeds the maximum size",
        "exceed context limit",
        // OpenAI, and most servers that imitate it.
        "context_length_exceeded",
        "maximum context length",
        "exceeds the context window",
        "context window exceeds",
        // Google.
        "exceeds the maximum number of tokens",
        // Amazon, Groq, xAI, Alibaba.
        "input is too long",
        "reduce the length of the messages",
        "maximum prompt length",
        "range of input length should be",
        // llama.cpp, LM Studio, Ollama, Mistral.
        "exceeds the available context size",
        "greater than the context length",
        "input length exceeds",
        "too large for model",
    ];
    let words = words.to_lowercase();
    SAYINGS.iter().any(|saying| words.contains(saying))
}

/// The error a provider reported inside its stream; `codes` are the fields that name its kind.
pub fn reported(error: &Value, codes: &[&str]) -> Fault {
    let code = codes.iter().map(|key| at(error, key)).find(|code| !code.is_null());
    let words = error.as_str().unwrap_or_else(|| text(error, "message"));
    let code = code.unwrap_or(&Value::Null);
    let named = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
    let message = match (words.is_empty(), code.is_null()) {
        (false, true) => words.to_owned(),
        (false, false) => format!("{words} ({named})"),
        (true, false) => named,
        (true, true) => "no reason given".to_owned(),
    };
    Fault::Reported { message, retryable: passing(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_that_are_no_object_become_an_empty_one() {
        for raw in ["", "  ", "null", "[1]", "7", r#"{"a":"#, r#""text""#] {
            assert_eq!(arguments_text(raw), "{}", "{raw}");
        }
        assert_eq!(arguments_text(" {\"b\": 1, \"a\": 2}\n"), r#"{"b": 1, "a": 2}"#);
        assert_eq!(arguments_text(r#""{\"a\":1}""#), r#"{"a":1}"#);
    }

    #[test]
    fn an_error_inside_a_stream_passes_or_lasts_by_its_code() {
        for code in [json!("overloaded_error"), json!("server_error"), json!(503), json!("429")] {
            assert!(passing(&code), "{code}");
        }
        for code in [json!("invalid_request_error"), json!("insufficient_quota"), json!(400)] {
            assert!(!passing(&code), "{code}");
        }
        assert!(passing(&Value::Null));
    }

    #[test]
    fn a_request_that_is_too_long_is_known_by_the_words_of_each_provider() {
        for words in [
            "prompt is too long: 208310 tokens > 200000 maximum",
            "This model's maximum context length is 128000 tokens. However, you requested 130000",
            "Your input exceeds the context window of this model. Please adjust your input",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)",
            "the request exceeds the available context size, try increasing it",
            "Input is too long for requested model.",
            "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        ] {
            assert!(is_too_long(words), "{words}");
        }
        for words in ["max_tokens is too large", "overloaded", "tool name is too long", "quota"] {
            assert!(!is_too_long(words), "{words}");
        }
    }

    #[test]
    fn ids_made_here_differ() {
        assert_ne!(call_id(), call_id());
    }
}
