//! Reads a refusal: the words in which servers say what they do not accept, and what of a request each of them names.

use crate::config::catalogue::Catalogue;
use crate::config::models::{Dialect, Model, Wire};
use crate::llm::adjust::{Adjustment, Learned, field, pictures};
use crate::llm::cause::PASSING;
use crate::llm::{Failure, Request};
use serde_json::Value;

/// The lists of a body that hold the conversation.
pub const LISTS: [&str; 3] = ["messages", "input", "contents"];

/// What stands between a name and an index: `messages.1`, `messages[1]`, `'messages', 1`.
pub const BETWEEN: [char; 6] = ['.', '[', ']', '\'', '"', ','];

/// What servers say of a field or a value that they do not accept.
const REFUSING: [&str; 16] = [
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "unavailable",
    "extra inputs",
    "extra fields",
    "extra_forbidden",
    "additional properties",
    "not permitted",
    "not allowed",
    "not enabled",
    "cannot find field",
    "invalid",
    "input should be",
    "verif",
];

/// The same where the server failed: such an error is mostly of the moment, and words as "unexpected" mean the failure.
const UNSUPPORTED: [&str; 3] = ["not support", "n't support", "unsupported"];

/// What servers say of an element of the conversation. No field that is left out mends that.
const OF_ELEMENT: [&str; 6] = [
    "signature",
    "thinking block",
    "thinking` block",
    "be passed back",
    "not be verified",
    "decrypted",
];

/// What servers call a thought of an earlier reply, what is joined to it, or the id of either.
const OF_THOUGHT: [&str; 14] = [
    "signature",
    "thinking block",
    "thinking` block",
    "redacted_thinking",
    "encrypted content",
    "encrypted_content",
    "be decrypted",
    "reasoning' item",
    "reasoning item",
    "item with id",
    "duplicate item",
    "expected an id that begins",
    "reasoning_content",
    "reasoning_details",
];

/// What they say of one that they do not take.
const WRONG: [&str; 21] = [
    "must contain",
    "is unsupported",
    "not match",
    "but found",
    "invalid",
    "not valid",
    "required",
    "missing",
    "must be",
    "not be verified",
    "not be decrypted",
    "not found",
    "cannot be modified",
    "duplicate",
    "expected an id",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "malformed",
    "corrupt",
];

/// Names in an error, each with the places of the body that it may mean, the narrowest first.
const FIELDS: [(&str, &[&str]); 24] = [
    ("store", &["/store"]),
    ("strict", &["/tools/0/strict"]),
    ("summary", &["/reasoning/summary"]),
    ("summaries", &["/reasoning/summary"]),
    ("reasoning.effort", &["/reasoning/effort"]),
    ("reasoning_effort", &["/reasoning_effort", "/reasoning/effort"]),
    ("reasoning.encrypted_content", &["/include"]),
    ("encrypted content", &["/include"]),
    ("stream_options", &["/stream_options"]),
    ("stream", &["/stream"]),
    ("streaming", &["/stream"]),
    ("parallel_tool_calls", &["/parallel_tool_calls"]),
    ("prompt_cache_key", &["/prompt_cache_key"]),
    ("max_tokens", &["/max_tokens"]),
    ("max_completion_tokens", &["/max_completion_tokens"]),
    ("max_output_tokens", &["/max_output_tokens"]),
    ("output_config", &["/output_config"]),
    ("effort", &["/output_config", "/reasoning/effort", "/reasoning_effort"]),
    ("thinking level", &["/generationConfig/thinkingConfig/thinkingLevel"]),
    ("thinking_level", &["/generationConfig/thinkingConfig/thinkingLevel"]),
    ("thinking_budget", &["/generationConfig/thinkingConfig/thinkingBudget"]),
    ("reasoning", &["/reasoning", "/reasoning_effort"]),
    ("think", &["/reasoning_effort", "/reasoning", "/thinking"]),
    (
        "thinking",
        &["/thinking", "/generationConfig/thinkingConfig", "/reasoning_effort", "/reasoning"],
    ),
];

/// What servers say of a field that each message with calls must have.
const MISSING: [&str; 3] = ["missing", "be passed back", "is required"];

/// What servers say of a model that they do not have.
const NO_MODEL: [&str; 6] =
    ["not exist", "n't exist", "not found", "not_found", "unknown model", "no such model"];

/// What servers call a system prompt.
const SYSTEM: [&str; 8] = [
    "system role",
    "role system",
    "system message",
    "system prompt",
    "system instruction",
    "developer instruction",
    "'system'",
    "system is not",
];
/// What servers say of a kind of content that they do not take.
pub const NOT_TAKEN: [&str; 18] = [
    "expected tags",
    "not support",
    "n't support",
    "unsupported",
    "no support",
    "that support",
    "only supported",
    "not allowed",
    "not permitted",
    "not enabled",
    "not a ",
    "is not one of",
    "at most 0",
    "unknown variant",
    "cannot read",
    "not accept",
    "text only",
    "required for image input",
];

/// What servers call the id of a call.
const IDS: [&str; 8] = [
    "tool call id",
    "tool_call_id",
    "tool_calls",
    "tool_use_id",
    "tool_use.id",
    "tooluseid",
    "call_id",
    "call id",
];
/// What they say of one in another form than they give today.
const WRONG_ID: [&str; 8] = [
    "length",
    "pattern",
    "must match",
    "must be a-z",
    "too long",
    "not found",
    "regular expression",
    "not valid",
];

/// What servers say of the content of a message that has none.
const NO_CONTENT: [&str; 14] = [
    "null",
    "nil",
    "none",
    "missing",
    "required",
    "empty",
    "expected a string",
    "valid string",
    "must be a string",
    "blank",
    "must have",
    "not a string",
    "should be a string",
    "cannot be",
];

/// The places of the limit of output tokens.
const LIMITS: [&str; 4] = [
    "/max_tokens",
    "/max_completion_tokens",
    "/max_output_tokens",
    "/generationConfig/maxOutputTokens",
];

/// The least number of output tokens that is taken for the limit of a model: a smaller number in an error means
/// something else, and replies that it cut would be of no use.
pub const LEAST_LIMIT: u64 = 1024;

/// The provider's words of a failure that may name what a request can do without, in lower case.
pub fn refusal_text(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Status {
            status: 400 | 402 | 404 | 405 | 413 | 415 | 422 | 500 | 501,
            provider_text,
            ..
        }
        | Failure::Provider { provider_text, retryable: false, .. }
        | Failure::TooLong { provider_text, .. } => Some(provider_text.to_lowercase()),
        _ => None,
    }
}

/// What the refusal of the body that was `sent` names that the request can do without. `words` is its
/// [`refusal_text`].
pub fn parse_refusal(
    failure: &Failure,
    words: &str,
    model: &Model,
    sent: &Value,
    request: &Request,
    known: &[Learned],
) -> Option<Adjustment> {
    let says = |sayings: &[&str]| says(words, sayings);
    if says(&PASSING) {
        return None;
    }
    match pictures::refused(words, sent) {
        Some(pictures::Refused::All) => return Some(Adjustment::NoImages),
        Some(pictures::Refused::One) if !names_element(words) => {
            return pictures::newest(request, model, known);
        }
        _ => {}
    }
    if says(&SYSTEM) && says(&NOT_TAKEN) || says(&["roles must alternate"]) {
        return Some(Adjustment::NoSystem);
    }
    if model.wire == Wire::Chat && words.contains("reasoning_content") && says(&MISSING) {
        return (Catalogue::dialect(model) != Dialect::DeepSeek)
            .then_some(Adjustment::ThinkingWithCalls);
    }
    if is_thought_refused(words, sent) {
        return Some(Adjustment::NoThoughts);
    }
    if (says(&IDS) || contains_word(words, "id") && names_element(words)) && says(&WRONG_ID) {
        return Some(Adjustment::OwnIds);
    }
    let is_refused = matches!(failure, Failure::Status { status: 400..500, .. });
    let names_content = is_refused && contains_word(words, "content") && says(&NO_CONTENT);
    let names_message = contains_word(words, "message") && words.contains("must not be empty");
    if model.wire == Wire::Chat && (names_content || names_message || says(&["nonetype"])) {
        // Where no text is refused too, a word stands there.
        let empty = Adjustment::FilledContent(String::new());
        let is_tried = known.iter().any(|known| known.adjustment == empty);
        return Some(if is_tried { Adjustment::FilledContent("OK.".into()) } else { empty });
    }
    let Failure::Status { status: status @ 400..500, .. } = failure else {
        return says(&UNSUPPORTED).then(|| refused_field(words, sent)).flatten();
    };
    if matches!(*status, 404 | 405) && model.wire == Wire::Responses && !model.own_url {
        return (!is_of_model(words, model)).then_some(Adjustment::ChatWire);
    }
    if let Some(limit) = token_limit(words, sent) {
        return Some(limit);
    }
    if words.contains("cache_control") {
        return Some(Adjustment::NoMarkers);
    }
    if !says(&REFUSING) {
        return None;
    }
    refused_field(words, sent)
}

/// Whether the words are about the model and not about the address.
fn is_of_model(words: &str, model: &Model) -> bool {
    let names = contains_word(words, &model.model.to_lowercase()) || words.contains("model");
    names && says(words, &NO_MODEL) && !words.contains("/responses")
}

/// The field of the body, or its value, that the words name.
fn refused_field(words: &str, sent: &Value) -> Option<Adjustment> {
    let says = |sayings: &[&str]| says(words, sayings);
    if says(&OF_ELEMENT) || names_element(words) {
        return None;
    }
    // Some servers name a field as the programs of their makers write it: `reasoningEffort`.
    let is_named =
        |name: &str| contains_word(words, name) || contains_word(words, &name.replace('_', ""));
    let named = FIELDS.iter().filter(|(name, _)| is_named(name));
    let path = named.flat_map(|(_, paths)| *paths).find(|path| sent.pointer(path).is_some())?;
    let value = sent.pointer(path).filter(|value| {
        let is_named = value.as_str().is_some_and(|value| contains_word(words, value));
        is_named && says(&["value", "input should be", "does not support '"])
    });
    Some(Adjustment::Without { path: (*path).to_owned(), value: value.cloned() })
}

/// The limit of output tokens in a body, and its place.
pub fn limit_of(sent: &Value) -> Option<(&'static str, u64)> {
    LIMITS.iter().find_map(|path| Some((*path, sent.pointer(path)?.as_u64()?)))
}

/// Whether the words refuse a thought in the body, its signature, or an element because its thought is missing.
fn is_thought_refused(words: &str, sent: &Value) -> bool {
    let names_element = names_element(words);
    // `rs_` begins the id of a thought, in whatever quotes.
    let has_id = words.split(|c: char| !is_part_of_word(c)).any(|word| word.starts_with("rs_"));
    let is_thought = named_element(words, sent).is_some_and(|it| it["type"] == "reasoning");
    let is_element = says(words, &OF_THOUGHT)
        || has_id
        || names_element && says(words, &["thinking", "thought", "reasoning"]);
    let is_wrong = says(words, &WRONG) || names_element && words.contains("support");
    let (is_element, is_wrong) = (is_element || is_thought, is_wrong || is_thought);
    let conversation = LISTS.iter().find_map(|list| sent.get(list));
    is_element && is_wrong && conversation.is_some_and(has_thoughts)
}

/// Whether a conversation has thoughts, signatures, or elements that their server joins to thoughts.
fn has_thoughts(value: &Value) -> bool {
    const KEYS: [&str; 8] = [
        "thinking",
        "signature",
        "encrypted_content",
        "thoughtSignature",
        "thought_signature",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
    ];
    match value {
        Value::Object(fields) => {
            let of_type = |kind: &str| fields.get("type").is_some_and(|of| of == kind);
            let is_thought =
                ["thinking", "redacted_thinking", "reasoning"].into_iter().any(of_type);
            let is_joined = of_type("function_call") || of_type("message");
            let is_of_thought = KEYS.iter().any(|key| fields.contains_key(*key));
            let is_joined = is_joined && fields.contains_key("id");
            is_thought || is_of_thought || is_joined || fields.values().any(has_thoughts)
        }
        Value::Array(list) => list.iter().any(has_thoughts),
        _ => false,
    }
}

/// A smaller limit of output tokens, or its other name.
fn token_limit(words: &str, sent: &Value) -> Option<Adjustment> {
    let (path, value) = limit_of(sent)?;
    let name = field(path);
    let other =
        ["max_completion_tokens", "max_tokens"].into_iter().find(|other| **other != *name)?;
    if [name.as_str(), other, "use"].iter().all(|word| contains_word(words, word)) {
        return Some(Adjustment::Renamed { from: name, to: other.to_owned() });
    }
    let is_limit = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"];
    let is_limit = is_limit.iter().any(|name| contains_word(words, name))
        || words.contains("output tokens")
        || words.contains("completion tokens");
    // How much fits behind this prompt or this budget for thinking is no fact of the model.
    let is_of_request = ["context length", "input tokens", "budget"];
    if !is_limit || says(words, &is_of_request) {
        return None;
    }
    let most = numbers(words).into_iter().filter(|most| (LEAST_LIMIT..value).contains(most));
    Some(Adjustment::MaxTokens(most.max()? - u64::from(words.contains("(exclusive)"))))
}

pub fn says(words: &str, sayings: &[&str]) -> bool {
    sayings.iter().any(|saying| words.contains(saying))
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The whole numbers in the words that are no part of a name, also with their digits in groups: `16,384`, `16 384`,
/// `16.384`.
pub fn numbers(words: &str) -> Vec<u64> {
    let plain = [',', ' ', '.'].iter().fold(words.to_owned(), |words, c| ungrouped(&words, *c));
    let words = plain.split(|c| !is_part_of_word(c)).map(|word| word.trim_end_matches('.'));
    let words = words.map(|word| word.strip_suffix(".0").unwrap_or(word));
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The words without this separator where it stands between groups of three digits.
fn ungrouped(words: &str, separator: char) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut joined = String::with_capacity(words.len());
    // Whether what is joined ends in a number that may go on with three digits.
    let mut may_go_on = false;
    for (index, piece) in words.split(separator).enumerate() {
        let leading = piece.len() - piece.trim_start_matches(is_digit).len();
        let goes_on = may_go_on && leading == 3;
        if index > 0 && !goes_on {
            joined.push(separator);
        }
        joined.push_str(piece);
        let before = piece.trim_end_matches(is_digit);
        let is_first = (1..=3).contains(&(piece.len() - before.len()));
        may_go_on = match before.is_empty() {
            true => goes_on || is_first,
            false => is_first && !before.ends_with(is_part_of_word),
        };
    }
    joined
}

/// The element of the conversation that the words name by its place.
pub fn named_element<'a>(words: &str, sent: &'a Value) -> Option<&'a Value> {
    LISTS.iter().find_map(|list| {
        let (at, name) = words.match_indices(list).next()?;
        let (at, _) = index(&words[at + name.len()..])?;
        sent.get(list)?.get(at)
    })
}

/// Whether the words name an element of the conversation by its place.
fn names_element(words: &str) -> bool {
    LISTS.iter().any(|list| {
        words.match_indices(list).any(|(at, _)| index(&words[at + list.len()..]).is_some())
    })
}

/// The number behind a name, and what follows it.
pub fn index(text: &str) -> Option<(usize, &str)> {
    let number = text.trim_start_matches(|c: char| BETWEEN.contains(&c) || c == ' ');
    text.starts_with(BETWEEN).then_some(())?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    Some((number[..end].parse().ok()?, &number[end..]))
}

/// Whether the name stands in the words, and not as a part of a longer one.
pub fn contains_word(words: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    words.match_indices(name).any(|(at, _)| {
        !words[..at].ends_with(is_part) && !words[at + name.len()..].starts_with(is_part)
    })
}
