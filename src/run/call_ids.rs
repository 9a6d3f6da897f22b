//! The ids and names of the tool calls of one reply. The log and the next request find the result of a
//! call by its id, so the ids are made unique; and both are sent with every later request, so a model or
//! a provider cannot make them long.

use crate::llm::{Delta, wire};
use crate::protocol::item::Item;
use serde_json::Value;

/// The most bytes of the id and of the name of a call.
const MAX: usize = 128;
/// How much of a longer name is kept, and what follows it. With it a name fits every provider, which
/// takes 64 bytes of letters, digits, `-` and `_`. No tool has such a name, so its call is refused.
const KEPT: usize = 48;
const TOO_LONG: &str = "_name_too_long";
/// Hex digits of the hash that replaces a longer id.
const DIGITS: usize = 24;

/// A delta whose id and name of a call are at most [`MAX`] bytes long. The same id always becomes the
/// same one. A call that was shortened loses its native form, which contains the long text.
pub(crate) fn bounded(delta: Delta) -> Delta {
    match delta {
        Delta::ToolCallStart { id, name } => {
            Delta::ToolCallStart { id: bounded_id(id), name: bounded_name(name) }
        }
        Delta::ToolCallArgs { id, json } => Delta::ToolCallArgs { id: bounded_id(id), json },
        Delta::Block { item: Item::ToolCall { call_id, name, arguments }, native, cut } => {
            let native = native.filter(|_| call_id.len() <= MAX && name.len() <= MAX);
            let (call_id, name) = (bounded_id(call_id), bounded_name(name));
            Delta::Block { item: Item::ToolCall { call_id, name, arguments }, native, cut }
        }
        Delta::Text(_)
        | Delta::ThinkingStart
        | Delta::Thinking(_)
        | Delta::Block { .. }
        | Delta::Unseen(_)
        | Delta::Usage(_)
        | Delta::Unknown(_)
        | Delta::End(_) => delta,
    }
}

fn bounded_id(id: String) -> String {
    if id.len() <= MAX {
        return id;
    }
    format!("call_{}", &blake3::hash(id.as_bytes()).to_hex()[..DIGITS])
}

fn bounded_name(name: String) -> String {
    if name.len() <= MAX {
        return name;
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let start: String = name.chars().take(KEPT).map(plain).collect();
    tracing::warn!(bytes = name.len(), "a model called a tool by a name that is too long: {start}");
    start + TOO_LONG
}

/// Checks a block against the earlier blocks of its reply. A call whose id is taken gets a new one
/// and loses its native form, which contains the shared id. `None` for an exact repetition of a
/// call.
pub(crate) fn distinct(
    held: &[(Item, Option<Value>)],
    mut item: Item,
    mut native: Option<Value>,
) -> Option<(Item, Option<Value>)> {
    if held.iter().any(|(other, _)| matches!(other, Item::ToolCall { .. }) && *other == item) {
        tracing::warn!("the provider sent a tool call twice: {item:?}");
        return None;
    }
    if let Item::ToolCall { call_id, .. } = &mut item
        && held.iter().any(|(other, _)| id_of(other) == Some(call_id))
    {
        *call_id = wire::call_id();
        native = None;
    }
    Some((item, native))
}

fn id_of(item: &Item) -> Option<&String> {
    match item {
        Item::ToolCall { call_id, .. } => Some(call_id),
        Item::Message { .. }
        | Item::Reasoning { .. }
        | Item::ToolResult { .. }
        | Item::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str, name: &str) -> Delta {
        let (call_id, name) = (id.to_owned(), name.to_owned());
        let item = Item::ToolCall { call_id, name, arguments: "{}".into() };
        Delta::Block { item, native: Some(json!({})), cut: false }
    }

    #[test]
    fn names_and_ids_of_128_bytes_stay_with_the_native_form() {
        let (id, name) = ("i".repeat(128), "n".repeat(128));
        assert_eq!(bounded(call(&id, &name)), call(&id, &name));
        let start = Delta::ToolCallStart { id, name };
        assert_eq!(bounded(start.clone()), start);
    }

    #[test]
    fn the_pieces_of_a_call_with_a_long_id_get_the_same_short_one() {
        let long = "é".repeat(65);
        let start = bounded(Delta::ToolCallStart { id: long.clone(), name: "Read".into() });
        let piece = bounded(Delta::ToolCallArgs { id: long.clone(), json: "{}".into() });
        let Delta::ToolCallStart { id, name } = start else { panic!("{start:?}") };
        assert_eq!(piece, Delta::ToolCallArgs { id: id.clone(), json: "{}".into() });
        let Delta::Block { item, native, .. } = bounded(call(&long, "Read")) else { panic!() };
        assert_eq!(item, Item::ToolCall { call_id: id.clone(), name, arguments: "{}".into() });
        assert_eq!((native, id.len()), (None, 29));
        let Delta::ToolCallArgs { id: other, .. } =
            bounded(Delta::ToolCallArgs { id: long + "x", json: String::new() })
        else {
            panic!()
        };
        assert_ne!(other, id);
    }

    #[test]
    fn a_long_name_is_cut_to_one_that_every_provider_takes() {
        for name in ["n".repeat(129), "ü ".repeat(1 << 19)] {
            let Delta::Block { item, native, .. } = bounded(call("c", &name)) else { panic!() };
            let Item::ToolCall { call_id, name, .. } = item else { panic!() };
            assert_eq!((call_id.as_str(), native), ("c", None));
            assert!(name.len() <= 64 && name.ends_with(TOO_LONG), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{name}");
        }
    }
}
