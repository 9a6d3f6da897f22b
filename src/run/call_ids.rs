//! The ids of the tool calls of one reply. The log and the next request find the result of a call by its id, so
//! no two calls may share one.

use crate::llm::wire;
use crate::protocol::item::Item;
use serde_json::Value;

/// A block behind the blocks of its reply that wait for the end. A call whose id another one has gets an id of its
/// own; its native form goes, because the wire would repeat the shared id. `None` for a call that the provider
/// sent once more, word for word.
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
