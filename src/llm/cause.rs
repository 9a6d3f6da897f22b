//! What a provider's error means, wherever it comes: with a status, inside a stream, or as a success that is none. One
//! rule for all of them reads its status, its codes and its words.

use crate::llm::retry::passing_status;
use crate::llm::wire::{list, text, upstream_error};
use serde_json::Value;
use std::time::Duration;

/// What an error means for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request, or the request with the reply that it asks for, is longer than the model reads.
    TooLong,
    /// A filter for content refused the request.
    Filtered,
    /// The same request fails again.
    Lasts,
    /// The same request may succeed.
    Passes,
}

/// The meaning of an error with this status, these codes of its own, and these words; `waits`: it names a time to wait.
/// What names no cause may pass.
pub fn meaning(status: Option<u16>, codes: &str, words: &str, waits: bool) -> Cause {
    let (codes, words) = (codes.to_lowercase(), words.to_lowercase());
    let says = |sayings: &[&str]| {
        sayings.iter().any(|saying| words.contains(saying) || codes.contains(saying))
    };
    // The model wrote a call that its server could not read; the next sample is another one.
    if is_bad_sample(&codes) || is_bad_sample(&words) {
        return Cause::Passes;
    }
    let is_rate = status == Some(429) || says(&RATES);
    // Such a status speaks of the key, the address or the account, whatever the words are.
    let is_of_request = !matches!(status, Some(401 | 402 | 404 | 405)) && !says(&OF_ACCOUNT_PAGE);
    if says(&LARGER_THAN_RATE) || is_of_request && !is_rate && is_too_long(&codes, &words) {
        return Cause::TooLong;
    }
    if is_of_request && !is_rate && says(&FILTERED) {
        return Cause::Filtered;
    }
    if status.is_some_and(|status| !passing_status(status)) {
        return Cause::Lasts;
    }
    // Google names a short time to wait also for what a day allows.
    if ["insufficient_quota", "perday"].iter().any(|code| codes.contains(code)) {
        return Cause::Lasts;
    }
    let passes = waits || is_rate && !says(&ACCOUNT);
    // A number of the provider's own names nothing: Z.AI sends 1302 for a rate limit, and 1113 for an empty account.
    let is_own_number = codes.parse().is_ok_and(|code: u64| !(100..=599).contains(&code));
    let named = if is_own_number { &words } else { &codes };
    let by_code = LASTING_CODES.iter().any(|code| named.contains(code));
    let by_words = says(&LASTING) && !says(&PASSING);
    if !passes && (by_code || by_words) { Cause::Lasts } else { Cause::Passes }
}

/// What stands in errors about a rate.
const RATES: [&str; 7] =
    ["rate limit", "rate_limit", "ratelimit", "per min", "throttl", "too many requests", "(tpm)"];

/// Where a refusal for want of credit leads to.
const OF_ACCOUNT_PAGE: [&str; 2] = ["settings/credits", "settings/keys"];

/// What servers say of an account that no wait mends, also where they speak of a rate. A rate limit names the page for
/// billing, too.
const ACCOUNT: [&str; 11] = [
    "insufficient",
    "suspended",
    "recharge",
    "arrear",
    "overdue",
    "per-day",
    "per day",
    "perday",
    "exceeded_current_quota",
    "exceeded your current quota",
    "payment required",
];

/// What a server says of a single request that its rate never lets pass.
const LARGER_THAN_RATE: [&str; 1] = ["request too large for"];

/// What stands in the codes of errors that last.
const LASTING_CODES: [&str; 14] = [
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
    "balance",
    "suspended",
];

/// What servers say of accounts, keys and models in errors that last, also where the status says that they pass.
const LASTING: [&str; 37] = [
    // An account without means.
    "insufficient balance",
    "insufficient credit",
    "insufficient fund",
    "insufficient account balance",
    "insufficient_quota",
    "credit balance",
    "out of credit",
    "no credit",
    "more credits",
    "recharge",
    "top up",
    "suspended",
    "arrear",
    "overdue",
    "billing",
    "payment required",
    "exceeded_current_quota",
    "exceeded your current quota",
    "per-day",
    "per day",
    "perday",
    "daily",
    "subscription",
    // A key.
    "api key",
    "api_key",
    "not authenticated",
    "authentication failed",
    "unauthorized",
    // A model, or the template by which its server writes a conversation.
    "jinja",
    "template",
    "must alternate",
    " at row ",
    "roles are supported",
    "system memory",
    "failed to load model",
    "not support",
    "unsupported",
];

/// What servers say of trouble that passes.
pub const PASSING: [&str; 5] =
    ["temporar", "overload", "again later", "retry your request", "busy"];

/// What servers say of a call that their model wrote wrongly.
const BAD_SAMPLE: [&str; 13] = [
    "tool_use_failed",
    "failed to call a function",
    "failed to generate tool call",
    "failed to parse tool call",
    // llama.cpp, Ollama, vLLM.
    "failed to parse input at pos",
    "error parsing tool call",
    "extracting tool call from",
    // Google.
    "(malformed_function_call)",
    "(malformed_response)",
    "(unexpected_tool_call)",
    "(too_many_tool_calls)",
    "(missing_thought_signature)",
    "(other)",
];

/// Whether the words, in lower case, speak of a call that the model wrote wrongly.
pub fn is_bad_sample(words: &str) -> bool {
    BAD_SAMPLE.iter().any(|saying| words.contains(saying))
}

/// What stands in the refusals of filters.
const FILTERED: [&str; 27] = [
    // Azure, OpenAI.
    "content_filter",
    "content filter",
    "content management policy",
    "responsibleaipolicy",
    "content_policy",
    "content policy",
    "usage polic",
    "usage guidelines",
    "safety system",
    "safety_check",
    // Anthropic, Amazon, LiteLLM.
    "guardrail",
    "blocked by our",
    // Google.
    "prohibited_content",
    "prohibited content",
    // OpenRouter.
    "was flagged",
    "been flagged",
    "moderation",
    // DeepSeek, Alibaba, Moonshot, Z.AI, MiniMax.
    "content exists risk",
    "data_inspection",
    "datainspection",
    "inappropriate content",
    "high risk",
    "unsafe or sensitive",
    "sensitive content",
    "new_sensitive",
    "sensitive words",
    "sensitive information",
];

/// Words that name the size of what a model reads where one of the first stands before one of the second: `context window`,
/// `max_seq_len`.
const READ: [&str; 13] = [
    "context", "token", "tokens", "input", "inputs", "prompt", "sequence", "seq", "model",
    "payload", "message", "kv", "text",
];
const SIZE: [&str; 10] = [
    "length",
    "len",
    "window",
    "size",
    "limit",
    "count",
    "tokens",
    "characters",
    "overflow",
    "overflows",
];

/// What they say of a request that is larger.
const EXCEEDS: [&str; 18] = [
    "exceeding",
    "exceed",
    "too long",
    "too large",
    "too many",
    "too big",
    "longer than",
    "larger than",
    "greater than",
    "more than",
    "only supports up to",
    "overflow",
    "must be <=",
    "must have less",
    "must be less",
    "reduce",
    "not enough",
    "requires a sequence",
];

/// How many bytes such words stand apart at most.
const NEAR: usize = 160;

/// The same in other words.
const TOO_LONG: [&str; 17] = [
    "contextwindowexceed",
    "超过模型上限",
    // Anthropic, and the gate before it.
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "request exceeds the maximum size",
    // OpenAI, and most servers that imitate it.
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context",
    // Google, Groq, xAI, Alibaba.
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
    "maximum prompt length",
    "range of input length should be",
    // Amazon, Cohere, vLLM of a prompt that leaves no room.
    "input is too long",
    "too large for model",
    "too many tokens: ",
    "must be at least 1, got -",
];

/// Whether the words, in lower case, say that a request is longer than its model reads.
fn is_too_long(codes: &str, words: &str) -> bool {
    let says = |text: &str, sayings: &[&str]| sayings.iter().any(|saying| text.contains(saying));
    // A limit of the reply alone is a fact of the model.
    let of_reply = ["less than the `context_window`", "maximum allowed number of output tokens"];
    if says(words, &of_reply) {
        return false;
    }
    says(words, &TOO_LONG)
        || says(codes, &TOO_LONG)
        || says(codes, &["max_prompt_tokens_exceeded"])
        || sizes(words).into_iter().any(|at| {
            // Of a long text that repeats a part of the request, words that stand far apart say nothing together.
            let from = words.floor_char_boundary(at.saturating_sub(NEAR));
            let to = words.floor_char_boundary((at + NEAR).min(words.len()));
            says(&words[from..to], &EXCEEDS)
        })
}

/// The places in lower-case words, in bytes, at which they name the size of what a model reads.
fn sizes(words: &str) -> Vec<usize> {
    let is_between = |c: char| !c.is_ascii_alphanumeric();
    let (mut at, mut before, mut sizes) = (0, "", Vec::new());
    for piece in words.split_inclusive(is_between) {
        at += piece.len();
        let word = piece.trim_end_matches(is_between);
        if matches!(word, "" | "the") {
            continue;
        }
        let is_most = matches!((before, word), ("max", "length") | ("maximum", "input" | "prompt"));
        if is_most || READ.contains(&before) && SIZE.contains(&word) {
            sizes.push(at);
        }
        before = word;
    }
    sizes
}

/// The codes that an error object has beside its words, the first one that of its own place for it.
pub fn codes(error: &Value) -> Vec<String> {
    let is_code = |code: &&Value| !matches!(code.as_str(), Some("" | "error"));
    let places = [
        "/code",
        "/status",
        "/type",
        "/innererror/code",
        "/status_code",
        "/error_code",
        "/errcode",
    ];
    let own = places.iter().filter_map(|place| error.pointer(place)).filter(is_code);
    let quotas = list(error, "details").iter().flat_map(|detail| list(detail, "violations"));
    let codes = own.chain(quotas.filter_map(|quota| quota.get("quotaId")));
    let codes = codes.filter_map(|code| match code {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    });
    codes.collect()
}

/// The words of an error object, with those of the server behind a gateway.
pub fn words(error: &Value) -> String {
    let words = own_words(error);
    let upstream = upstream_error(error).map(|body| {
        let body = crate::llm::json::value(&body).unwrap_or(Value::String(body));
        self::words(body.get("error").unwrap_or(&body))
    });
    match upstream.filter(|upstream| !upstream.is_empty()) {
        Some(upstream) => format!("{words}: {upstream}"),
        None => words,
    }
}

/// The words of an error object alone.
pub fn own_words(error: &Value) -> String {
    let places = [
        "",
        "/message",
        "/msg",
        "/detail",
        "/status_msg",
        "/error_msg",
        "/errmsg",
        "/error/message",
        "/errors/0/message",
        "/errors/0",
    ];
    let said = places.iter().filter_map(|place| error.pointer(place)?.as_str());
    let words = said.into_iter().find(|said| !said.is_empty()).map(str::to_owned);
    words.or_else(|| validation(error)).unwrap_or_default()
}

/// The fields that a server in Python refuses, each with its place: `messages.0.content: Field required`.
fn validation(error: &Value) -> Option<String> {
    let places = ["", "/detail", "/message", "/message/detail", "/errors"];
    let fields = places.iter().find_map(|place| {
        let fields = error.pointer(place)?.as_array()?;
        fields.iter().all(|field| field.get("msg").is_some()).then_some(fields)
    })?;
    let sentence = |field: &Value| {
        let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
        let steps = list(field, "loc").iter().filter(|step| *step != "body");
        let place: Vec<String> = steps.map(step).collect();
        let said = text(field, "msg");
        if place.is_empty() { said.to_owned() } else { format!("{}: {said}", place.join(".")) }
    };
    let said: Vec<String> = fields.iter().map(sentence).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// How long the words ask to wait: `try again in 4.5s`, `retry after 6 seconds`, `in 1h2m3s`.
pub fn named_wait(words: &str) -> Option<Duration> {
    const BEFORE: [&str; 7] = [
        "again in ",
        "retry in ",
        "retry after ",
        "again after ",
        "wait ",
        "resets in ",
        "reset in ",
    ];
    let words = words.to_lowercase();
    let rest = BEFORE.iter().find_map(|before| Some(words.split_once(before)?.1))?;
    let mut rest = rest.trim_start_matches("for ").trim_start_matches("about ");
    let mut sum = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(count) = rest[..digits].parse::<f64>() else { break };
        let unit = rest[digits..].trim_start();
        let end = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let seconds = match &unit[..end] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + count * seconds);
        rest = unit[end..].trim_start_matches([' ', ',']).trim_start_matches("and ");
    }
    Duration::try_from_secs_f64(sum?).ok().map(|wait| wait.min(MAX_WAIT))
}

/// The longest time to wait that is believed.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_passes_or_lasts_by_its_status_its_code_and_its_words() {
        use Cause::{Lasts, Passes};
        for (status, codes, words, expected) in [
            (None, "", "", Passes),
            (None, "overloaded_error", "", Passes),
            (None, "server_error", "", Passes),
            (Some(503), "503", "", Passes),
            (None, "1302", "Rate limit reached for requests", Passes),
            (None, "1113", "Insufficient balance or no resource package", Lasts),
            (None, "invalid_request_error", "", Lasts),
            (None, "insufficient_quota", "", Lasts),
            (Some(400), "400", "", Lasts),
            (Some(402), "", "Insufficient credits", Lasts),
            // The same with a status that passes by itself.
            (
                Some(429),
                "1113",
                "Insufficient balance or no resource package. Please recharge.",
                Lasts,
            ),
            (Some(429), "exceeded_current_quota_error", "Your account org-x is suspended", Lasts),
            (Some(429), "429", "Rate limit exceeded: free-models-per-day", Lasts),
            (Some(429), "rate_limit_exceeded", "Rate limit reached for tokens per minute", Passes),
            (Some(429), "Throttling.AllocationQuota", "Allocated quota exceeded", Passes),
            (Some(500), "server_error", "tools param requires --jinja flag", Lasts),
            (
                Some(500),
                "server_error",
                "Value is not callable: null at row 62, column 114:",
                Lasts,
            ),
            (
                Some(500),
                "",
                "Conversation roles must alternate user/assistant/user/assistant/...",
                Lasts,
            ),
            (Some(500), "", "model requires more system memory (9 GiB) than is available", Lasts),
            (None, "", "Not authenticated", Lasts),
            (Some(503), "", "Loading model", Passes),
            (Some(503), "", "reasoning is not supported while this node is overloaded", Passes),
            (Some(500), "internal_error", "An unexpected error occurred", Passes),
            (Some(429), "RESOURCE_EXHAUSTED", "You exceeded your current quota", Lasts),
            (
                Some(429),
                "rate_limit",
                "You have been rate limited. Your rate limit is 60 queries per minute. Please navigate to https://x/settings/billing",
                Passes,
            ),
            (Some(429), "", "Rate limit exceeded for this API key", Passes),
            (Some(429), "429", "Token limit is exceeded. Try again in 41 seconds.", Passes),
            (
                Some(402),
                "402",
                "Prompt tokens limit exceeded: 64128 > 6964. To increase, visit https://openrouter.ai/settings/credits",
                Lasts,
            ),
            (Some(400), "tool_use_failed", "Failed to call a function: input is too long", Passes),
            // A sample of the model that its server could not read.
            (Some(400), "tool_use_failed", "Failed to call a function. Please adjust", Passes),
            (None, "tool_use_failed invalid_request_error", "", Passes),
            (Some(500), "server_error", "Failed to parse input at pos 42: <tool_call>", Passes),
        ] {
            assert_eq!(
                meaning(status, codes, words, false),
                expected,
                "{status:?} {codes}: {words}"
            );
        }
        assert_eq!(meaning(Some(429), "", "You exceeded your current quota", true), Passes);
        assert_eq!(meaning(Some(429), "RequestsPerDayPerModel", "You exceeded it", true), Lasts);
    }

    #[test]
    fn a_request_that_is_too_long_is_known_by_the_words_of_each_provider() {
        for (status, codes, words) in [
            (400, "", "prompt is too long: 208310 tokens > 200000 maximum"),
            (400, "", "Total tokens of image and text exceed max message tokens. Request id: 0217"),
            (400, "", "The prompt has 9000 of max input characters: too long"),
            (400, "", "The decoder prompt is longer than the maximum model length of 8192."),
            (422, "", "Prompt has 40000 tokens, exceeding the 32768 tokens limit"),
            (400, "", "tokens数量超过模型上限"),
            (400, "", "Request payload size exceeds the limit: 20971520 bytes."),
            (
                400,
                "",
                "This model's maximum context length is 128000 tokens. However, you requested 130000",
            ),
            (
                400,
                "",
                "Your input exceeds the context window of this model. Please adjust your input",
            ),
            (
                400,
                "",
                "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)",
            ),
            (400, "", "the request exceeds the available context size, try increasing it"),
            (400, "", "Input is too long for requested model."),
            (
                400,
                "",
                "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
            ),
            (400, "1261", "Prompt exceeds max length"),
            (400, "", "Your request exceeded model token limit: 262144 (requested: 270000)"),
            (
                400,
                "",
                "The input (36000 tokens) is longer than the model's context length (32768 tokens).",
            ),
            (
                400,
                "model_max_prompt_tokens_exceeded",
                "prompt token count of 130000 exceeds the limit of 128000",
            ),
            (
                422,
                "",
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 30000 `inputs` tokens",
            ),
            (422, "", "Requested input length 40000 exceeds maximum input length 32768"),
            (
                500,
                "",
                "litellm.ContextWindowExceededError: BedrockException: Context Window Error - Input is too long",
            ),
            (
                500,
                "",
                "Trying to keep the first 9120 tokens when context the overflows. However, ...",
            ),
            (
                400,
                "",
                "Prompt contains 36001 tokens, too large for model with 32768 maximum context length",
            ),
            (
                400,
                "",
                "input length and `max_tokens` exceed context limit: 188240 + 16000 > 200000",
            ),
            (400, "", "prompt too long; exceeded max context length by 512 tokens"),
            (
                429,
                "",
                "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000",
            ),
            (413, "request_too_large", ""),
        ] {
            assert_eq!(meaning(Some(status), codes, words, false), Cause::TooLong, "{words}");
            let in_stream = meaning(None, codes, words, false);
            assert_eq!(in_stream, Cause::TooLong, "{words}");
        }
        let far = format!("input tokens {} too many", "x ".repeat(200));
        for words in [
            far.as_str(),
            "max_tokens is too large",
            "overloaded",
            "tool name is too long",
            "quota",
            "This request would exceed your organization's rate limit of 50,000 input tokens per minute",
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens",
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
        ] {
            for status in [None, Some(400), Some(429)] {
                assert_ne!(meaning(status, "", words, false), Cause::TooLong, "{words}");
            }
        }
    }

    #[test]
    fn a_filter_is_known_by_the_words_or_the_code_of_each_provider() {
        for (status, codes, words) in [
            (400, "content_filter", "no"),
            (
                400,
                "",
                "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            ),
            (400, "invalid_request_error", "Content Exists Risk"),
            (400, "data_inspection_failed", "Input text data may contain inappropriate content."),
            (
                403,
                "403",
                "openai/gpt-4o requires moderation on OpenAI. Your input was flagged for \"violence\"",
            ),
            (
                400,
                "invalid_prompt",
                "This request has been flagged for potentially violating our usage policy",
            ),
            (
                400,
                "1301",
                "System detected potentially unsafe or sensitive content in input or generation",
            ),
            (400, "invalid_request_error", "Output blocked by content filtering policy"),
            (400, "content_filter", "The request was rejected because it was considered high risk"),
            (403, "", "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"),
            (200, "1026", "input new_sensitive"),
        ] {
            assert_eq!(meaning(Some(status), codes, words, false), Cause::Filtered, "{words}");
            assert_eq!(meaning(None, codes, words, false), Cause::Filtered, "{words}");
        }
        for (status, words) in [(429, "content filter rate"), (401, "flagged key: was flagged")] {
            assert_ne!(meaning(Some(status), "", words, false), Cause::Filtered, "{words}");
        }
    }

    #[test]
    fn a_wait_is_read_in_the_words_of_an_error() {
        for (words, seconds) in [
            ("Rate limit reached. Please try again in 4.5s. Visit https://x", Some(4.5)),
            ("Please retry after 6 seconds.", Some(6.0)),
            ("Please try again in 1h2m3.5s", Some(3723.5)),
            ("try again in 523ms", Some(0.523)),
            ("Please retry in 34.07s.", Some(34.07)),
            ("Try again in 20 minutes and 3 seconds", Some(1203.0)),
            ("wait for 2 min", Some(120.0)),
            ("try again in a moment", None),
            ("try again later", None),
            ("too many requests in 60s", None),
            ("try again in 999 days", Some(86_400.0)),
        ] {
            let wait = named_wait(words).map(|wait| wait.as_secs_f64());
            assert_eq!(wait, seconds, "{words}");
        }
    }
}
