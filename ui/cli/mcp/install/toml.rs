//! Settings in TOML. Comments, order and unknown keys stay.

use crate::cli::mcp::install::entry::{Edited, Fields, SERVER};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, TomlError};
use yoi::config::diagnostic::{line_and_column, without_value};

/// Sets the entry of yoi among the servers under `key`, or removes it.
pub fn edit(text: &str, key: &str, entry: Option<&Fields>) -> Result<Edited, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
    match entry {
        Some(fields) => set(document.as_table_mut(), key, fields)?,
        None => {
            if let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) {
                servers.remove(SERVER);
            }
        }
    }
    let after = document.to_string();
    Ok(if after == text { Edited::Unchanged } else { Edited::Changed(after) })
}

/// What is wrong with a text that is no TOML, and in which line. The line itself may hold a secret and is not shown.
fn syntax(text: &str, error: &TomlError) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let (line, _) = line_and_column(text, at);
    format!("line {line}: {}", without_value(error.message()).replace('\n', "; "))
}

/// The lines of yoi's entry among the servers under `key`; none where there is no entry.
pub fn entry(text: &str, key: &str) -> Vec<String> {
    let document: Option<toml::Table> = toml::from_str(text).ok();
    let own = document.as_ref().and_then(|document| document.get(key)?.get(SERVER));
    let written = own.and_then(|own| toml::to_string_pretty(own).ok());
    written.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

fn set(document: &mut Table, key: &str, fields: &Fields) -> Result<(), String> {
    if !document.contains_key(key) {
        let mut servers = Table::new();
        // The header of a table that has only tables is not written.
        servers.set_implicit(true);
        document.insert(key, Item::Table(servers));
    }
    let servers = table(document.get_mut(key), key)?;
    if !servers.contains_key(SERVER) {
        servers.insert(SERVER, Item::Table(Table::new()));
    }
    let own = table(servers.get_mut(SERVER), SERVER)?;
    fields.iter().try_for_each(|(key, value)| merge(own, key, value))
}

fn table<'a>(item: Option<&'a mut Item>, key: &str) -> Result<&'a mut dyn TableLike, String> {
    item.and_then(Item::as_table_like_mut).ok_or_else(|| format!("`{key}` is not a table"))
}

/// Sets a key where its value differs. Of a table, the keys that are not named stay.
fn merge(own: &mut dyn TableLike, key: &str, value: &Value) -> Result<(), String> {
    if let Value::Object(inner) = value {
        if !own.contains_key(key) {
            own.insert(key, Item::Value(InlineTable::new().into()));
        }
        let below = table(own.get_mut(key), key)?;
        return inner.iter().try_for_each(|(key, value)| merge(below, key, value));
    }
    let mut new = written(value);
    match own.get_mut(key) {
        Some(Item::Value(old)) if is_same(old, value) => {}
        Some(Item::Value(old)) => {
            // The comment behind the value is part of its decor.
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => drop(own.insert(key, Item::Value(new))),
    }
    Ok(())
}

fn written(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(yes) => (*yes).into(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Array>().into(),
        other => other.as_str().unwrap_or_default().into(),
    }
}

fn is_same(old: &toml_edit::Value, value: &Value) -> bool {
    match value {
        Value::Array(words) => {
            let old = old.as_array().map(|old| old.iter().map(toml_edit::Value::as_str));
            old.is_some_and(|old| old.eq(words.iter().map(Value::as_str)))
        }
        Value::Bool(yes) => old.as_bool() == Some(*yes),
        other => old.as_str() == other.as_str(),
    }
}
