//! What the four wires share: how a stream is read, and the small conversions each of them needs.

use crate::config::models::{Model, Wire};
use crate::files;
use crate::llm::cause::{self, Cause};
use crate::llm::json;
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
    /// What is known about the end of the answer.
    fn ending(&mut self) -> &mut Ending;
    /// How much of the answer is there.
    fn progress(&mut self) -> Progress {
        self.ending().progress()
    }
    /// Nothing more comes: appends what is complete only now. `None` when the provider never said
    /// that its answer was complete.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop>;
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The model is still at it.
    Open,
    /// The model has finished; token counts may follow.
    Answered,
    /// Nothing of use follows.
    Ended,
}

/// What a decoder knows about the end of its answer. A stop reason ends it, and so does the last event of the wire: some
/// servers leave one of them out.
#[derive(Default)]
pub struct Ending {
    reason: Option<Stop>,
    goes_on: bool,
    is_last: bool,
}

impl Ending {
    /// The provider named the reason for which the answer ends.
    pub fn because(&mut self, reason: Stop) {
        (self.reason, self.goes_on) = (Some(reason), false);
    }

    /// A piece of the answer came. Some servers name a reason with every piece.
    pub fn piece(&mut self) {
        self.goes_on = true;
    }

    /// The last event of the wire came.
    pub fn last(&mut self) {
        self.is_last = true;
    }

    /// Whether the provider said that its answer ends.
    pub fn is_named(&self) -> bool {
        self.is_last || self.reason.is_some()
    }

    pub fn progress(&self) -> Progress {
        match &self.reason {
            _ if self.is_last => Progress::Ended,
            Some(_) if !self.goes_on => Progress::Answered,
            _ => Progress::Open,
        }
    }

    /// Why the answer ended, `None` if nothing said that it did. Servers name the usual end and a call by each other's
    /// words, so `called` decides between these two.
    pub fn stop(&mut self, called: bool) -> Option<Stop> {
        let usual = if called { Stop::ToolUse } else { Stop::EndTurn };
        match self.reason.take() {
            Some(other) if !other.is_own_end() => Some(other),
            reason => (reason.is_some() || self.is_last).then_some(usual),
        }
    }
}

/// The reason for which a reply ended, in the words of any wire: servers name it in those of another one, too.
pub fn stop(word: &str) -> Stop {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" | "tool_calls" | "function_call" | "eos"
        // Words of Cohere and Hugging Face, and end marks of models that a server passes on.
        | "complete" | "completed" | "tool_call" | "eos_token" | "end_of_turn" => Stop::EndTurn,
        "tool_use" => Stop::ToolUse,
        "length" | "max_tokens" | "max_output_tokens" | "max_new_tokens" => Stop::MaxTokens,
        // Mistral, Anthropic, Z.AI.
        "model_length" | "model_context_window_exceeded" | "context_length_exceeded" => {
            Stop::ContextExceeded
        }
        "pause_turn" => Stop::Pause,
        "refusal"
        | "content_filter"
        | "content_filtered"
        | "safety"
        | "sensitive"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "language"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation"
        | "guardrail_intervened" => Stop::Refusal(word.to_owned()),
        _ => Stop::Other(word.to_owned()),
    }
}

/// Why an event could not become deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The provider reported an error, in these words.
    Reported { message: String, cause: Cause },
    /// A part of the answer came damaged or without the block that it belongs to.
    Garbled(String),
    /// The event holds nothing that could be a part of the answer.
    Noise(String),
    /// The event holds more than [`MAX_VALUES`](crate::protocol::MAX_VALUES) values.
    TooMany,
}

/// The origin that marks the items of `model`.
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

/// The data of an event as JSON, unless it is an error of the provider.
pub fn parse(event: &Event) -> Result<Value, Fault> {
    let data = event.data.trim();
    if ValueCount::is_too_many(data) {
        return Err(Fault::TooMany);
    }
    match json::value(data) {
        Ok(value) => reported_in(event, &value).map_or(Ok(value), Err),
        Err(_) if event.name == "error" || is_said_error(data) => {
            Err(reported(&Value::String(data.to_owned())))
        }
        Err(error) => {
            let start = SafeText::brief(data, 40);
            let cause = format!("an event is not JSON ({error}): {start}");
            let is_mark = data.starts_with('[') && data.ends_with(']');
            let is_part = data.contains('{') && !is_mark;
            Err(if is_part { Fault::Garbled(cause) } else { Fault::Noise(cause) })
        }
    }
}

/// Whether an event is an error in words alone: `[ERROR] the quota is gone`, or an object as Python writes it.
fn is_said_error(data: &str) -> bool {
    let data = data.trim_start_matches(['[', '{', '\'', ' ']);
    data.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"))
}

/// The error that an event is, in the shapes that are documented or were seen: an `error` object or text at the top, an
/// event of that name or type, an object that holds nothing but a message and a code.
pub fn reported_in(event: &Event, data: &Value) -> Option<Fault> {
    let data = data.get(0).unwrap_or(data);
    let error = at(data, "error");
    let is_empty = error.is_null()
        || error == &Value::Bool(false)
        || error.as_str().is_some_and(str::is_empty)
        || error.as_object().is_some_and(Map::is_empty);
    if !is_empty {
        return Some(reported(error));
    }
    // MiniMax, in each event and in a success without one.
    let base = at(data, "base_resp");
    if at(base, "status_code").as_i64().is_some_and(|code| code != 0) {
        return Some(reported(base));
    }
    let is_named = event.name == "error" || text(data, "type") == "error";
    let is_bare = || {
        const OF_AN_ERROR: [&str; 19] = [
            "errors",
            "result",
            "messages",
            "errcode",
            "errmsg",
            "object",
            "message",
            "msg",
            "detail",
            "type",
            "code",
            "status",
            "param",
            "success",
            "request_id",
            "requestId",
            "error_code",
            "error_msg",
            "timestamp",
        ];
        const CODES: [&str; 6] = ["code", "status", "detail", "error_code", "errcode", "success"];
        let is_known = |key: &String| OF_AN_ERROR.contains(&key.as_str());
        let has_words = !cause::words(data).is_empty();
        let has_code = CODES.iter().any(|key| !at(data, key).is_null());
        let succeeded = at(data, "success").as_bool() == Some(true);
        let is_all = data.as_object().is_some_and(|it| it.keys().all(is_known));
        has_words && has_code && is_all && !succeeded
    };
    (is_named || text(data, "object") == "error" || is_bare()).then(|| reported(data))
}

/// Counts the memory of a value that the decoder keeps until its block is complete.
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

/// The value at `key`, null when there is none.
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
    match json::value(raw) {
        Ok(Value::String(inner)) => json::object(&inner),
        _ => json::object(raw),
    }
    .unwrap_or_default()
}

/// Whether the arguments of a call are one whole object.
pub fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

/// The arguments as the log keeps them: what came when that is an object, else `{}`. What has too many
/// values to be read stays as it came, for the limits of the reply.
pub fn arguments_text(raw: &str) -> String {
    if ValueCount::is_too_many(raw) || is_object(raw) {
        return raw.trim().to_owned();
    }
    Value::Object(arguments(raw)).to_string()
}

/// The arguments of a received call for the log: an object as it came, `{}` for none, loosely written JSON made strict.
/// Any other text stays as it came, so that the refusal can quote it. [`arguments_text`] is what is sent back.
pub fn received_arguments(raw: &str) -> String {
    let text = raw.trim();
    if is_nothing(text) {
        return "{}".to_owned();
    }
    if ValueCount::is_too_many(text) || is_object(text) {
        return text.to_owned();
    }
    let inner = text.starts_with('"').then(|| json::value(text).ok()).flatten();
    let object = json::object(inner.as_ref().and_then(Value::as_str).unwrap_or(text));
    let Some(object) = object else { return text.to_owned() };
    tracing::warn!("the arguments of a call are not strict JSON: {}", SafeText::brief(text, 200));
    Value::Object(object).to_string()
}

/// Whether this text of the arguments of a call stands for a call without any.
pub fn is_nothing(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "null" | "None" | "[]" | "\"\"")
}

/// What a model reads of a tool result; never blank, which some APIs refuse.
pub fn result_text(summary: &str, content: Option<&str>) -> String {
    let text = match content {
        Some(content) if summary.is_empty() => content.to_owned(),
        Some(content) => format!("{summary}\n{content}"),
        None => summary.to_owned(),
    };
    if text.trim().is_empty() { "[no output]".to_owned() } else { text }
}

/// The same on a wire that has no mark for errors.
pub fn marked_result_text(summary: &str, content: Option<&str>, is_error: bool) -> String {
    let text = result_text(summary, content);
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if is_error && !says_so { format!("error: {text}") } else { text }
}

/// The media type that the bytes of an image show, and the bytes in base64; or a text to send in place of the image.
pub fn picture(
    request: &Request,
    model: &Model,
    image: &Image,
) -> Result<(&'static str, String), String> {
    let unseen = |kind: &str| Err(format!("[an image ({kind}) that this model cannot see]"));
    if !model.images {
        return unseen(&image.media_type);
    }
    if image.blob.is_empty() {
        return Err("[an image that the provider refused]".into());
    }
    let name = Path::new(&image.blob).file_name().unwrap_or_default();
    let path = request.blobs.join(name);
    let bytes = std::fs::read(&path)
        .map_err(|error| format!("[an image that is lost: {}: {error}]", path.display()))?;
    let kind = match files::picture(&bytes) {
        // The wire of Gemini takes every other kind.
        Some(Ok("image/gif")) if model.wire == Wire::Gemini => return unseen("image/gif"),
        Some(Ok(kind)) => kind,
        Some(Err(why)) => return Err(format!("[an {why}]")),
        None => return Err(format!("[a file that is no image: {}]", path.display())),
    };
    let data = BASE64_STANDARD.encode(bytes);
    // Anthropic's limit counts the characters of base64, not the bytes.
    if data.len() > files::MAX_PICTURE {
        return Err(format!(
            "[an image ({kind}) that is too large: {} bytes in base64]",
            data.len()
        ));
    }
    Ok((kind, data))
}

/// A new id for a call.
pub fn call_id() -> String {
    call_id_of(uuid::Uuid::now_v7().as_bytes())
}

/// An id for a call made of these bytes: nine letters and digits, which every provider takes.
pub fn call_id_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let hash = blake3::hash(bytes);
    hash.as_bytes()[..9].iter().map(|byte| char::from(DIGITS[usize::from(*byte) % 62])).collect()
}

/// The error a provider reported inside its stream.
pub fn reported(error: &Value) -> Fault {
    let (words, codes) = (cause::words(error), cause::codes(error));
    let statuses = codes.iter().filter_map(|code| code.parse().ok());
    let status = statuses.into_iter().find(|status| (100..=599).contains(status));
    let delays = list(error, "details").iter().any(|detail| detail.get("retryDelay").is_some());
    let waits = delays || cause::named_wait(&words).is_some();
    let cause = cause::meaning(status, &codes.join(" "), &words, waits);
    let message = match (words.as_str(), codes.first()) {
        ("", None) => "no reason given".to_owned(),
        ("", Some(code)) => code.clone(),
        (_, None) => words,
        (_, Some(code)) => format!("{words} ({code})"),
    };
    Fault::Reported { message, cause }
}

/// The error body of the server behind a gateway, as `OpenRouter` hands it on; its own words name no cause.
pub fn upstream_error(error: &Value) -> Option<String> {
    match at(at(error, "metadata"), "raw") {
        Value::String(body) if !body.trim().is_empty() => Some(body.clone()),
        body @ Value::Object(_) => Some(body.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::bench::{DOT, model, plain, request};
    use crate::protocol::{Item, Role, SystemItem};
    use serde_json::json;

    #[test]
    fn arguments_that_are_no_object_become_an_empty_one() {
        for raw in ["", "  ", "null", "None", "[]", "\"\"", "[1]", "7", r#"{"a":"#, r#""text""#] {
            assert_eq!(arguments_text(raw), "{}", "{raw}");
            let kept = if raw.len() < 5 && !matches!(raw, "[1]" | "7") { "{}" } else { raw };
            assert_eq!(received_arguments(raw), kept);
        }
        assert_eq!(received_arguments("{\"a\": \"1\n2\"}"), r#"{"a":"1\n2"}"#);
        assert_eq!(arguments_text(" {\"b\": 1, \"a\": 2}\n"), r#"{"b": 1, "a": 2}"#);
        assert_eq!(arguments_text(r#""{\"a\":1}""#), r#"{"a":1}"#);
    }

    #[test]
    fn an_error_inside_a_stream_is_named_by_its_type_where_it_has_no_code() {
        let empty = json!({ "message": "bad", "type": "invalid_request_error", "code": "" });
        let Fault::Reported { message, cause } = reported(&empty) else { panic!("no report") };
        assert_eq!((message.as_str(), cause), ("bad (invalid_request_error)", Cause::Lasts));
        // A rate that is named in tokens is no length.
        let rate =
            json!({"code": 429, "message": "Token limit is exceeded. Try again in 41 seconds."});
        assert!(matches!(reported(&rate), Fault::Reported { cause: Cause::Passes, .. }));
    }

    #[test]
    fn an_error_is_the_providers_word_in_every_shape_that_was_seen() {
        let read = |name: &str, data: &str| parse(&Event { name: name.into(), data: data.into() });
        for (name, data, said) in [
            ("", r#"{"error":{"code":503,"message":"busy"}}"#, "busy (503)"),
            (
                "",
                r#"{"error":{"type":"overloaded_error","message":"busy"}}"#,
                "busy (overloaded_error)",
            ),
            (
                "",
                r#"{"type":"error","error":{"type":"x","message":"busy"},"request_id":"r"}"#,
                "busy (x)",
            ),
            (
                "",
                r#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#,
                "busy (503)",
            ),
            ("", r#"{"error":"busy"}"#, "busy"),
            ("", r#"{"error":{"msg":"busy"},"choices":[]}"#, "busy"),
            (
                "",
                r#"{"object":"error","message":"busy","type":"ServerError","code":500}"#,
                "busy (500)",
            ),
            (
                "",
                r#"{"type":"error","code":"server_error","message":"busy","param":null}"#,
                "busy (server_error)",
            ),
            ("", r#"{"detail":"busy"}"#, "busy"),
            ("", r#"{"code":"1302","msg":"busy"}"#, "busy (1302)"),
            ("", r#"{"code":1302,"msg":"busy","success":false}"#, "busy (1302)"),
            ("", r#"{"error_code":18,"error_msg":"busy"}"#, "busy (18)"),
            ("", r#"{"errcode":18,"errmsg":"busy"}"#, "busy (18)"),
            ("", r#"{"error":{"error":{"message":"busy"}}}"#, "busy"),
            (
                "",
                r#"{"success":false,"errors":[{"code":7,"message":"busy"}],"result":null}"#,
                "busy",
            ),
            ("", r#"{"detail":[{"loc":["body"],"msg":"busy"}]}"#, "busy"),
            (
                "",
                r#"{"choices":[],"base_resp":{"status_code":1002,"status_msg":"busy"}}"#,
                "busy (1002)",
            ),
            ("error", r#"{"message":"busy"}"#, "busy"),
            ("error", "busy", "busy"),
            ("", r#"{"type":"error"}"#, "no reason given"),
        ] {
            let Err(Fault::Reported { message, .. }) = read(name, data) else { panic!("{data}") };
            assert_eq!(message, said, "{data}");
        }
        for data in [
            r#"{"choices":[],"error":null}"#,
            r#"{"choices":[],"error":false}"#,
            r#"{"choices":[],"error":""}"#,
            r#"{"choices":[],"error":{}}"#,
            r#"{"type":"ping","message":"hello"}"#,
            r#"{"code":0,"message":"ok","data":{}}"#,
            r#"{"code":0,"message":"ok","success":true}"#,
            r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}"#,
        ] {
            assert!(read("", data).is_ok(), "{data}");
        }
    }

    #[test]
    fn only_what_may_be_a_part_of_an_answer_counts_as_damaged() {
        let read = |data: &str| parse(&Event { name: String::new(), data: data.into() });
        for data in ["", "ping", "[DONE]", "[KEEPALIVE {}]", ": x"] {
            assert!(matches!(read(data), Err(Fault::Noise(_))), "{data}");
        }
        for data in [r#"{"a":"#, r#"x{"a":1}"#, r#"{"a":1}{"#] {
            assert!(matches!(read(data), Err(Fault::Garbled(_))), "{data}");
        }
    }

    #[test]
    fn a_reply_ends_for_the_same_reason_in_the_words_of_each_wire() {
        for (words, expected) in [
            (&["length", "MAX_TOKENS", "max_output_tokens"][..], Stop::MaxTokens),
            (&["model_length", "model_context_window_exceeded"], Stop::ContextExceeded),
            (&["stop", "STOP", "end_turn", "tool_calls", "eos"], Stop::EndTurn),
            (&["pause_turn"], Stop::Pause),
            (&["odd"], Stop::Other("odd".into())),
        ] {
            words.iter().for_each(|word| assert_eq!(stop(word), expected, "{word}"));
        }
        for word in ["SAFETY", "content_filter", "refusal", "sensitive"] {
            assert_eq!(stop(word), Stop::Refusal(word.into()));
        }
    }

    #[test]
    fn ids_made_here_differ() {
        assert_ne!(call_id(), call_id());
    }

    /// Whether something in a value has these keys with these values, and perhaps others.
    fn holds(value: &Value, expected: &Value) -> bool {
        let has = |object: &serde_json::Map<String, Value>| {
            expected.as_object().unwrap().iter().all(|(key, of)| object.get(key) == Some(of))
        };
        match value {
            Value::Object(object) => has(object) || object.values().any(|one| holds(one, expected)),
            Value::Array(list) => list.iter().any(|one| holds(one, expected)),
            _ => false,
        }
    }

    #[test]
    fn an_image_that_a_message_names_follows_its_words_in_the_form_of_each_wire() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b"), BASE64_STANDARD.decode(DOT).unwrap()).unwrap();
        let attached = SystemItem::FileAttachment {
            path: "dot.png".into(),
            body: "[File: dot.png]".into(),
            images: vec![Image { blob: "b".into(), media_type: "image/png".into() }],
        };
        let url = format!("data:image/png;base64,{DOT}");
        let source = json!({"type": "base64", "media_type": "image/png", "data": DOT});
        for (wire, expected) in [
            (Wire::Anthropic, json!({"type": "image", "source": source})),
            (Wire::Responses, json!({"type": "input_image", "image_url": url})),
            (Wire::Chat, json!({"type": "image_url", "image_url": {"url": url}})),
            (Wire::Gemini, json!({"inlineData": {"mimeType": "image/png", "data": DOT}})),
        ] {
            let words =
                [plain(Item::message(Role::User, "what is it?")), plain(attached.message())];
            let asked = Request { blobs: dir.path().into(), ..request(words.into()) };
            let sent = |model: &Model| {
                String::from_utf8(crate::llm::provider::body(&asked, model)).unwrap()
            };
            let seen = sent(&model(wire));
            let (words, image) = (seen.find("[File: dot.png]"), seen.find(DOT));
            assert!(words.is_some() && words < image, "{wire:?}: {seen}");
            let seen: Value = serde_json::from_str(&seen).unwrap();
            assert!(holds(&seen, &expected), "{wire:?}: {seen}");
            let blind = sent(&Model { images: false, ..model(wire) });
            assert!(blind.contains("cannot see") && !blind.contains(DOT), "{wire:?}: {blind}");
        }
    }

    #[test]
    fn a_picture_is_sent_as_what_its_bytes_are_or_said_in_words() {
        let dot = BASE64_STANDARD.decode(DOT).unwrap();
        let large = [&dot[..], &vec![0; 4 << 20]].concat();
        // The signature and the header, and behind them the end.
        let no_pixels = [&dot[..33], b"\0\0\0\0IEND\xae\x42\x60\x82"].concat();
        let names_its_end = [&dot[..40], b"IEND\xae\x42\x60\x82"].concat();
        let dir = tempfile::tempdir().unwrap();
        let sent = |wire, bytes: &[u8], media_type: &str| {
            std::fs::write(dir.path().join("b"), bytes).unwrap();
            let request = Request { blobs: dir.path().into(), ..request(Vec::new()) };
            let image = Image { blob: "b".into(), media_type: media_type.into() };
            picture(&request, &model(wire), &image)
        };
        let gif = b"GIF89a\x01\0\x01\0\0\0\0\x3b";
        for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
            assert_eq!(sent(wire, &dot, "image/jpeg"), Ok(("image/png", DOT.to_owned())));
            for (bytes, why) in [
                (&dot[..40], "its end is missing"),
                (&names_its_end, "its end is missing"),
                (&no_pixels, "it has no pixels"),
                (b"", "is no image"),
                (b"text", "is no image"),
                (&large, "too large"),
            ] {
                let words = sent(wire, bytes, "image/png").unwrap_err();
                assert!(words.contains(why), "{wire:?}: {words}");
            }
            let takes_gif = sent(wire, gif, "image/gif").is_ok();
            assert_eq!(takes_gif, wire != Wire::Gemini, "{wire:?}");
        }
    }
}
