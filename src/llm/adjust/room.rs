//! How large a reply may be beside its request, as the refusal of a larger one says.

use crate::llm::adjust::Adjustment;
use crate::llm::adjust::sayings::{LEAST_LIMIT, limit_of, numbers, says};
use serde_json::Value;

/// What servers call the reply whose size they add to that of the request.
const REPLY: [&str; 4] = ["completion", "max_tokens", "max_new_tokens", "output tokens"];
/// What stands where a number is the sum of the request and its reply.
const SUM: [&str; 5] = ["requested", "total", "current length", "output", "sequence"];

/// The least room for a reply that is of use in a window of so many tokens.
pub fn least(window: u64) -> u64 {
    (window / 16).clamp(1, LEAST_LIMIT)
}

/// A smaller reply than the body that was `sent` asks for: the most tokens of this one, and what holds for all requests.
/// `words` is the text of a refusal in lower case; `again`: the request asks for less than at first.
pub fn smaller_reply(
    words: &str,
    is_too_long: bool,
    sent: &Value,
    again: bool,
) -> Option<(Option<u64>, Option<Adjustment>)> {
    let asked = limit_of(sent)?.1;
    let mut rest: Vec<u64> = numbers(words).into_iter().filter(|n| *n > 1).collect();
    if words.contains("can only afford") {
        // A fact of the account and of this prompt.
        let afforded = rest.into_iter().filter(|n| (LEAST_LIMIT..asked).contains(n)).max()?;
        return Some((Some(afforded), None));
    }
    if !is_too_long {
        return None;
    }
    let is_named = rest.contains(&asked);
    rest.retain(|n| *n != asked);
    // A stray number is mostly a small one.
    rest.sort_unstable_by(|a, b| b.cmp(a));
    rest.dedup();
    let fewer = asked / 4;
    let may_help = says(words, &REPLY) && fewer >= LEAST_LIMIT;
    if rest.is_empty() {
        return may_help.then_some((Some(fewer), None));
    }
    let Some((window, prompt)) = figures(words, &rest, asked, is_named) else {
        // The figures of the first refusal were not exact.
        return (may_help && again).then_some((Some(fewer), None));
    };
    let room = window - prompt;
    // A rate is a fact of the account.
    let is_rate = words.contains("request too large for");
    let learned = (!is_rate).then_some(Adjustment::Window(window));
    (room >= least(window)).then_some((Some(room), learned))
}

/// The window and the tokens of the request in it, of the numbers in the refusal of a reply of `asked` tokens.
fn figures(words: &str, rest: &[u64], asked: u64, is_named: bool) -> Option<(u64, u64)> {
    let pairs = || rest.iter().flat_map(|a| rest.iter().map(|b| (*a, *b))).filter(|(a, b)| a != b);
    // The request takes less than the window, and with its reply more.
    let fits = |window: u64, prompt: u64| prompt < window && window < prompt + asked;
    let others = |a: u64, b: u64| rest.iter().filter(move |n| **n != a && **n != b);
    let of_sum = |(sum, window): (u64, u64)| {
        let prompt = sum.checked_sub(asked).filter(|prompt| *prompt > 0)?;
        fits(window, prompt).then_some((window, prompt))
    };
    // With its parts: `8192, however you requested 19301 (3301 in the messages, 16000 in the completion)`.
    let with_parts = |(sum, window): &(u64, u64)| {
        let prompt = sum.saturating_sub(asked);
        let mut parts = others(*sum, *window);
        parts.clone().any(|part| *part == prompt) || {
            let parts: u64 = parts.by_ref().sum();
            parts == prompt && prompt > 0
        }
    };
    if is_named {
        if pairs().any(|pair| with_parts(&pair)) {
            return pairs().filter(with_parts).find_map(of_sum);
        }
        let says_sum = says(words, &SUM[..3]);
        let alone = || pairs().filter(|_| says_sum && rest.len() == 2).find_map(of_sum);
        // `188240 + 16000 > 200000`, `must be <= 8192`.
        let bound = words.split_once("> ").or_else(|| words.split_once("<= "));
        let bound = bound.and_then(|(_, bound)| numbers(bound).first().copied());
        let parts = || {
            let is_bound = |window| bound.is_none_or(|bound| bound == window);
            let mut fitting =
                pairs().filter(|(prompt, window)| is_bound(*window) && fits(*window, *prompt));
            fitting.next().map(|(prompt, window)| (window, prompt))
        };
        return alone().or_else(parts);
    }
    // A number of a request alone is no sum.
    pairs().filter(|_| says(words, &SUM) || says(words, &REPLY)).find_map(of_sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As servers said it in documentation and reports; each request takes 3301 tokens.
    #[test]
    fn the_room_beside_a_prompt_is_read_from_the_figures_of_each_server() {
        for words in [
            "This model's maximum context length is 8192 tokens. However, you requested 19301 tokens (3301 in the messages, 16000 in the completion). Please reduce the length of the messages or completion.",
            "'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 8192 tokens and your request has 3301 input tokens (16000 > 8192 - 3301).",
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 19301 tokens (1301 of text input, 2000 of tool input, 16000 in the output). Please reduce the length of either one",
            "input length and `max_tokens` exceed context limit: 3301 + 16000 > 8192, decrease input length or `max_tokens` and try again",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 3301 `inputs` tokens and 16000 `max_new_tokens`",
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 19301 tokens: 3301 tokens from the input messages and 16000 tokens for the completion.",
            "Please reduce the length of the messages or completion. Current length is 19301 while limit is 8192",
            "Requested generation length 16000 is not possible! The provided prompt is 3301 tokens long, so generating 16000 tokens requires a sequence length of 19301, but the maximum supported sequence length is just 8192!",
            "The estimated number of input and maximum output tokens (19301) exceeded this model context window limit (8192).",
            "The sum of prompt length (3301.0) and max_tokens (16000) should not exceed max_num_tokens (8192)",
        ] {
            let sent = json!({"max_tokens": 16_000});
            let expected = (Some(8192 - 3301), Some(Adjustment::Window(8192)));
            assert_eq!(
                smaller_reply(&words.to_lowercase(), true, &sent, false),
                Some(expected),
                "{words}"
            );
            assert_eq!(
                smaller_reply(&words.to_lowercase(), true, &json!({}), false),
                None,
                "{words}"
            );
        }
        let anthropic =
            "input length and `max_tokens` exceed context limit: 188240 + 16000 > 200000";
        let expected = (Some(11_760), Some(Adjustment::Window(200_000)));
        assert_eq!(
            smaller_reply(anthropic, true, &json!({"max_tokens": 16_000}), false),
            Some(expected)
        );
    }

    #[test]
    fn a_prompt_that_is_itself_too_long_gets_no_smaller_reply() {
        for words in [
            "prompt is too long: 208310 tokens > 200000 maximum",
            "the input token count (1048577) exceeds the maximum number of tokens allowed (1048576)",
            "this model's maximum prompt length is 131072 but the request contains 137812 tokens",
            "this model's maximum context length is 8192 tokens. however, you requested 25000 tokens (9000 in the messages, 16000 in the completion)",
            "this model's maximum context length is 8192 tokens. however, you requested 24100 tokens (8100 in the messages, 16000 in the completion)",
            "input length and `max_tokens` exceed context limit: 208240 + 16000 > 200000",
            "prompt is too long",
        ] {
            assert_eq!(
                smaller_reply(words, true, &json!({"max_tokens": 16_000}), false),
                None,
                "{words}"
            );
        }
    }

    #[test]
    fn without_figures_a_quarter_is_tried_and_what_an_account_affords_is_no_fact_of_the_model() {
        let sent = json!({"max_tokens": 16_000});
        let words = "please reduce the length of the messages or completion";
        let quarter = Some((Some(4000), None));
        assert_eq!(smaller_reply(words, true, &sent, false), quarter);
        assert_eq!(smaller_reply(words, true, &json!({"max_tokens": 2000}), false), None);
        // A server whose figures are about right refuses the reply that they leave room for.
        let words = "maximum context length is 8192 tokens. you requested 19301 tokens (3301 in the messages, 4891 in the completion)";
        let sent_again = json!({"max_tokens": 4891});
        assert_eq!(smaller_reply(words, true, &sent_again, true), Some((Some(1222), None)));
        assert_eq!(smaller_reply(words, true, &sent_again, false), None);
        let words = "you requested up to 16000 tokens, but can only afford 1200";
        assert_eq!(smaller_reply(words, false, &sent, false), Some((Some(1200), None)));
        let words = "you requested up to 16000 tokens, but can only afford 222";
        assert_eq!(smaller_reply(words, false, &sent, false), None);
        let words = "request too large for model `m` on tokens per minute (tpm): limit 8192, requested 19301";
        assert_eq!(smaller_reply(words, true, &sent, false), Some((Some(4891), None)));
        assert_eq!(smaller_reply("max_tokens of 16000", false, &sent, false), None);
    }
}
