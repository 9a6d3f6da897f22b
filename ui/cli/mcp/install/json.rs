//! Settings in JSON, also with comments. Comments, order and unknown keys stay.

use crate::cli::mcp::install::entry::{Edited, Fields, SERVER};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// Comments and commas at the end are what programs allow in such files; nothing else is.
const LENIENT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Sets the entry of yoi among the servers under `key`, or removes it.
pub fn edit(text: &str, key: &str, entry: Option<&Fields>) -> Result<Edited, String> {
    let begun = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(begun, &LENIENT).map_err(|error| error.to_string())?;
    let whole = root.object_value().ok_or("it is no JSON object")?;
    match entry {
        Some(fields) => {
            let servers = below(&whole, key)?;
            let own = below(&servers, SERVER)?;
            fields.iter().try_for_each(|(key, value)| merge(&own, key, value))?;
        }
        None => {
            let servers = whole.object_value(key);
            let own = servers.as_ref().and_then(|servers| servers.get(SERVER));
            let Some(own) = own else { return Ok(Edited::Unchanged) };
            own.remove();
            // Without servers the list says nothing, unless it has a comment.
            if servers.is_some_and(|servers| servers.children().iter().all(is_filling))
                && let Some(list) = whole.get(key)
            {
                list.remove();
            }
        }
    }
    let after = root.to_string();
    Ok(if after == text { Edited::Unchanged } else { Edited::Changed(after) })
}

/// The lines of yoi's entry among the servers under `key`; none where there is no entry.
pub fn entry(text: &str, key: &str) -> Vec<String> {
    let root = CstRootNode::parse(text, &LENIENT).ok();
    let servers = root.and_then(|root| root.object_value()?.object_value(key));
    let own = servers.and_then(|servers| servers.get(SERVER)?.value()?.to_serde_value());
    let written = own.and_then(|own: Value| serde_json::to_string_pretty(&own).ok());
    written.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

/// Whether a part of an object has no meaning: its braces, blanks and line ends.
fn is_filling(part: &CstNode) -> bool {
    part.is_trivia() && !part.is_comment() || part.is_token()
}

/// The object under a key, made where there is none.
fn below(object: &CstObject, key: &str) -> Result<CstObject, String> {
    object.object_value_or_create(key).ok_or_else(|| format!("`{key}` is no object"))
}

/// Sets a key where its value differs. Of an object, the keys that are not named stay.
fn merge(own: &CstObject, key: &str, value: &Value) -> Result<(), String> {
    if let Value::Object(inner) = value {
        let below = below(own, key)?;
        return inner.iter().try_for_each(|(key, value)| merge(&below, key, value));
    }
    match own.get(key) {
        Some(old) if old.value().and_then(|old| old.to_serde_value()).as_ref() == Some(value) => {}
        Some(old) => old.set_value(written(value)),
        None => drop(own.append(key, written(value))),
    }
    Ok(())
}

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Array(words) => CstInputValue::Array(words.iter().map(written).collect()),
        other => CstInputValue::String(other.as_str().unwrap_or_default().to_owned()),
    }
}
