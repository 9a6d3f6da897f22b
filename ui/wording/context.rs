//! Notes about a run: replies that did not reach their own end, outputs that left the context, another Pod that writes.

use crate::wording::counted;
use serde_json::Value;
use yoi::protocol::entry::domain;
use yoi::text::SafeText;

/// What a person reads about an entry of this domain. `None`: nothing is shown.
pub fn note(name: &str, payload: &Value) -> Option<String> {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    if name == domain::PRUNED {
        let count = payload.get("results").and_then(Value::as_array).map_or(0, Vec::len);
        let outputs = counted(count, "output", "outputs");
        return Some(format!("{outputs} left the context: {}", SafeText::line(text("why"))));
    }
    if name == domain::FALLBACK {
        let (from, to) = (SafeText::line(text("from")), SafeText::line(text("to")));
        return Some(format!("{from} is away, {to} goes on: {}", SafeText::line(text("why"))));
    }
    if name == domain::TURN {
        return Some(beside(payload));
    }
    if name == domain::LEARNED {
        let sentences = payload.get("sentences").and_then(Value::as_array)?;
        let said: Vec<&str> = sentences.iter().filter_map(Value::as_str).collect();
        return Some(SafeText::line(said.join("; ")).to_string());
    }
    if name != domain::STOPPED {
        return None;
    }
    match text("reason") {
        "max_tokens" => Some("the limit of output tokens cut this reply".to_owned()),
        "context_exceeded" => Some("the end of the context window cut this reply".to_owned()),
        "other" => {
            let word = SafeText::line(text("words"));
            Some(format!("the reply ended for a reason that yoi does not know: {word}"))
        }
        "unnamed" => Some(
            "the server gave no reason for the end of its reply, which is taken as complete"
                .to_owned(),
        ),
        "garbled" => {
            let why = SafeText::line(text("words"));
            Some(format!("a part of this reply could not be read and is missing: {why}"))
        }
        // A failed run says what was declined, and a pause goes on by itself.
        _ => None,
    }
}

/// Whether such a note says only what its run begins with.
pub fn is_aside(name: &str, payload: &Value) -> bool {
    let is_refused = payload.get("refused").and_then(Value::as_bool) == Some(true);
    name == domain::TURN && !is_refused
}

/// The sentence about a run that only reads where other Pods write.
fn beside(payload: &Value) -> String {
    let names = writers(payload);
    let writes = if names.contains(',') { "write" } else { "writes" };
    match payload.get("refused").and_then(Value::as_bool) {
        Some(true) => format!("a change was refused, because {names} {writes} there"),
        _ => format!("this run only reads where {names} {writes}"),
    }
}

/// The names of the Pods that keep a run from writing.
pub fn writers(payload: &Value) -> String {
    let names = payload.get("writers").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| SafeText::line(name).to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_left_the_context_and_what_cut_a_reply_is_said_and_a_pause_is_not() {
        let results = json!({"results": [{"id": "a"}, {"id": "b"}], "why": "it is full"});
        let said = note(domain::PRUNED, &results);
        assert_eq!(said.as_deref(), Some("2 outputs left the context: it is full"));
        let away = json!({"from": "a/x", "to": "b/y", "why": "it is overloaded"});
        let said = note(domain::FALLBACK, &away);
        assert_eq!(said.as_deref(), Some("a/x is away, b/y goes on: it is overloaded"));
        let learned = json!({"sentences": ["requests leave `a` out: no", "and `b`: no"]});
        let said = note(domain::LEARNED, &learned);
        assert_eq!(said.as_deref(), Some("requests leave `a` out: no; and `b`: no"));
        let stopped =
            |reason: &str| note(domain::STOPPED, &json!({"reason": reason, "words": "w"}));
        assert!(stopped("max_tokens").is_some_and(|said| said.contains("cut this reply")));
        assert!(stopped("other").is_some_and(|said| said.ends_with("know: w")));
        assert!(stopped("garbled").is_some_and(|said| said.ends_with("is missing: w")));
        let beside = |refused| note(domain::TURN, &json!({"writers": ["a"], "refused": refused}));
        let reads = "this run only reads where a writes";
        assert_eq!(beside(false).as_deref(), Some(reads));
        assert_eq!(beside(true).as_deref(), Some("a change was refused, because a writes there"));
        assert_eq!((stopped("pause"), stopped("refusal")), (None, None));
        assert_eq!(note("other", &json!({"reason": "max_tokens"})), None);
    }
}
