//! Makes the ids of the tool calls of one reply unique, because the log and the next request find
//! the result of a call by its id.

use crate::llm::wire;
use crate::protocol::item::Item;
use serde_json::Value;

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
