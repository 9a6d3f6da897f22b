//! Which element of the input a provider refused: its words name a place in the body, or the id of a call.

use crate::config::models::Model;
use crate::llm::adjust::{self, BETWEEN, LISTS, Learned, index, pictures};
use crate::llm::{Failure, Input, Request, wire};
use crate::protocol::Item;
use serde_json::Value;
use std::ops::Range;

/// The names of the list of parts in a message.
const PARTS: [&str; 3] = ["content", "parts", "tool_calls"];
/// Where a part has the id of its call: those of a result, then those of the call itself.
const RESULT_IDS: [&str; 4] = ["/tool_use_id", "/tool_call_id", "/call_id", "/functionResponse/id"];
const CALL_IDS: [&str; 2] = ["/id", "/functionCall/id"];

/// The elements of the input of `request` that the failure means, as a range of places; `None` where it names none.
/// Makes bodies of beginnings of the request, so it takes a while for a long one.
pub fn elements(
    failure: &Failure,
    request: &Request,
    model: &Model,
    known: &[Learned],
) -> Option<Range<usize>> {
    let words = adjust::refusal_text(failure)?;
    let body = |count: usize| -> Option<Value> {
        let mut beginning = request.clone();
        beginning.input.truncate(count);
        serde_json::from_slice(&adjust::adjusted_body(&beginning, model, known)).ok()
    };
    let whole = body(request.input.len())?;
    let Some(path) = place(&words, &whole) else {
        // A picture that is refused without its place is most likely the newest one.
        pictures::refused(&words, &whole)?;
        let newest = request.input.iter().rposition(|kept| !kept.item.images().is_empty())?;
        return Some(newest..newest + 1);
    };
    let refused = unmarked(whole.pointer(&path)?);
    let is_refused = |found: Option<&Value>| found.map(unmarked).as_ref() == Some(&refused);
    // The system prompt, and what a wire adds, is also in the body of a request without input.
    if is_refused(body(0)?.pointer(&path)) {
        return None;
    }
    // A body begins like one with less input, so the shortest beginning that has the place shows what made it.
    let first = |has: &dyn Fn(Option<&Value>) -> bool| {
        let (mut without, mut with) = (0, request.input.len());
        while without + 1 < with {
            let middle = usize::midpoint(without, with);
            let short = body(middle);
            match has(short.as_ref().and_then(|body| body.pointer(&path))) {
                true => with = middle,
                false => without = middle,
            }
        }
        with
    };
    let end = first(&is_refused);
    // No request has a thought without what follows it, so the shortest beginning that has one ends behind that.
    let is_it = |kept: &Input| {
        let is_thought = matches!(kept.item, Item::Reasoning { .. });
        is_thought && is_refused(kept.native.as_ref())
    };
    if let Some(thought) = request.input[..end].iter().rposition(is_it) {
        return Some(thought..thought + 1);
    }
    let is_part = path.matches('/').count() > 2;
    let opening = first_part(&refused);
    let begin = match is_part {
        true => end,
        false => {
            first(&|found| found.map(unmarked).is_some_and(|found| first_part(&found) == opening))
        }
    };
    begin.checked_sub(1).map(|begin| begin..end)
}

/// The place in the body that the words name, as a JSON pointer.
fn place(words: &str, body: &Value) -> Option<String> {
    let list = LISTS.into_iter().find(|name| body.get(name).is_some_and(Value::is_array))?;
    let messages = body.get(list)?.as_array()?;
    let named = words.match_indices(list).find_map(|(at, name)| {
        let (index, rest) = index(&words[at + name.len()..])?;
        let message = messages.get(index)?;
        let part = PARTS.into_iter().find_map(|name| {
            let rest = rest.trim_start_matches(|c: char| BETWEEN.contains(&c) || c == ' ');
            let (part, _) = adjust::index(rest.strip_prefix(name)?)?;
            message.get(name)?.get(part)?;
            Some(format!("/{list}/{index}/{name}/{part}"))
        });
        Some((format!("/{list}/{index}"), part))
    });
    match named {
        Some((_, Some(part))) => Some(part),
        Some((message, None)) => by_id(words, list, messages).or(Some(message)),
        None => by_id(words, list, messages),
    }
}

/// The place of the last result whose id the words name, else of the last such call.
fn by_id(words: &str, list: &str, messages: &[Value]) -> Option<String> {
    let has = |value: &Value, ids: &[&str]| {
        let mut ids = ids.iter().filter_map(|id| value.pointer(id)?.as_str());
        ids.any(|id| id.len() > 3 && adjust::contains_word(words, &id.to_lowercase()))
    };
    let mut found: [Option<String>; 2] = [None, None];
    let mut look = |value: &Value, path: String| {
        if has(value, &RESULT_IDS) && !value.get("type").is_some_and(|kind| kind == "function_call")
        {
            found[0] = Some(path);
        } else if has(value, &CALL_IDS) || has(value, &RESULT_IDS) {
            found[1] = Some(path);
        }
    };
    for (at, message) in messages.iter().enumerate() {
        look(message, format!("/{list}/{at}"));
        for name in PARTS {
            let parts = message.get(name).and_then(Value::as_array);
            for (part, value) in parts.into_iter().flatten().enumerate() {
                look(value, format!("/{list}/{at}/{name}/{part}"));
            }
        }
    }
    found.into_iter().flatten().next()
}

/// Gives each call of a body, and its result, an id of yoi's own form in the place of any other one.
pub fn name_calls_anew(body: &mut Value) {
    let is_own = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let name_anew = |value: &mut Value| {
        let kind = value.get("type").and_then(Value::as_str);
        let is_call = matches!(kind, Some("tool_use" | "function"));
        let places = RESULT_IDS.iter().chain(&CALL_IDS).filter(|place| is_call || **place != "/id");
        for place in places {
            if let Some(Value::String(id)) = value.pointer_mut(place)
                && !is_own(id)
            {
                *id = wire::call_id_of(id.as_bytes());
            }
        }
    };
    let lists = LISTS.into_iter().find(|list| body.get(list).is_some_and(Value::is_array));
    let messages = lists.and_then(|list| body.get_mut(list)?.as_array_mut());
    for message in messages.into_iter().flatten() {
        name_anew(message);
        for parts in PARTS {
            let parts = message.get_mut(parts).and_then(Value::as_array_mut);
            parts.into_iter().flatten().for_each(name_anew);
        }
    }
}

/// The first part of a message, or the message where it has none.
fn first_part(message: &Value) -> Value {
    let part = PARTS.iter().find_map(|name| message.get(*name)?.get(0));
    part.unwrap_or(message).clone()
}

/// The value without cache markers, which move with the end of a request.
fn unmarked(value: &Value) -> Value {
    let mut value = value.clone();
    let fields = value.as_object_mut();
    fields.map(|fields| fields.remove("cache_control"));
    if let Some(content) = value.get_mut("content") {
        adjust::unmark(content);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::models::Wire;
    use crate::llm::bench::{
        call, model, native, plain, refusal, request, result, rich_result, thought,
    };
    use crate::protocol::Role;
    use serde_json::json;

    /// The element of a history of two calls in one reply that the words mean.
    fn meant(wire: Wire, words: &str) -> Option<Range<usize>> {
        let said = |role, text: &str| plain(Item::message(role, text));
        let request = request(vec![
            said(Role::User, "q"),
            said(Role::Assistant, "I look."),
            plain(call("call_aa", "Read", "{}")),
            plain(call("call_bb", "Read", "{}")),
            plain(result("call_aa", "one")),
            plain(result("call_bb", "two")),
            said(Role::User, "and now?"),
        ]);
        let failure = refusal(400, words);
        elements(&failure, &request, &model(wire), &[])
    }

    #[test]
    fn the_element_is_found_by_its_place_or_by_the_id_of_its_call_on_each_wire() {
        use Wire::{Anthropic, Chat, Gemini, Responses};
        for (wire, words, expected) in [
            (Anthropic, "messages.2.content.0.tool_result.content: bad", Some(4..5)),
            (Anthropic, "messages.2.content.1: bad", Some(5..6)),
            (Anthropic, "messages.2: bad", Some(4..7)),
            (Anthropic, "messages.1.content.2.tool_use.input: bad", Some(3..4)),
            (
                Anthropic,
                "unexpected `tool_use_id` found in `tool_result` blocks: call_bb",
                Some(5..6),
            ),
            (Anthropic, "messages.9.content.0: bad", None),
            (Responses, "Invalid 'input[4].output': too long", Some(4..5)),
            (Responses, "No tool output found for function call call_aa.", Some(4..5)),
            (Chat, "Invalid 'messages[3].content': bad", Some(4..5)),
            (Chat, "Invalid 'messages[0].content': bad", None),
            (Chat, "[{'loc': ['body', 'messages', 4, 'content'], 'msg': 'bad'}]", Some(5..6)),
            (Chat, "tool_call_id call_bb is bad", Some(5..6)),
            (Gemini, "Invalid value at 'contents[2].parts[1]' (oneof), bad", Some(5..6)),
            (Gemini, "GenerateContentRequest.contents[0].parts[0].text: bad", Some(0..1)),
            (Gemini, "the input has 3 contents", None),
            (Chat, "Provider returned error", None),
        ] {
            assert_eq!(meant(wire, words), expected, "{wire:?}: {words}");
        }
    }

    #[test]
    fn a_picture_that_is_refused_without_its_place_is_the_newest() {
        let (dir, picture) = rich_result("call_aa");
        let mut request = request(vec![
            plain(Item::message(Role::User, "q")),
            plain(call("call_aa", "Read", "{}")),
            plain(picture),
            plain(Item::message(Role::User, "and now?")),
        ]);
        request.blobs = dir.path().into();
        let meant = |words: &str| elements(&refusal(400, words), &request, &model(Wire::Chat), &[]);
        assert_eq!(meant("Could not process image"), Some(2..3));
        assert_eq!(meant("Could not process the request"), None);
    }

    #[test]
    fn a_refused_thought_is_named_and_not_the_call_behind_it() {
        let form = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let request = request(vec![
            plain(Item::message(Role::User, "q")),
            native(Wire::Anthropic, thought("hm"), form),
            plain(call("call_aa", "Read", "{}")),
            plain(result("call_aa", "one")),
        ]);
        let failure = refusal(400, "messages.1.content.0: Invalid `signature` in `thinking` block");
        assert_eq!(elements(&failure, &request, &model(Wire::Anthropic), &[]), Some(1..2));
        let failure = refusal(400, "messages.1.content.1: bad");
        assert_eq!(elements(&failure, &request, &model(Wire::Anthropic), &[]), Some(2..3));
    }
}
