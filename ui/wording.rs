//! Words for people, each thing in one place: durations and clocks, states, reasons, scopes, rules. The
//! screen, the lines without a screen and the shell say the same.

pub mod duration;
pub mod lines;
pub mod losses;
pub mod plain;
pub mod model;
pub mod moved;
pub mod age;
pub mod question;
pub mod rule;
pub mod scope;
pub mod sent;
pub mod since;
pub mod command;
pub mod context;
pub mod state;
pub mod wait;
pub mod matter;
pub mod now;
pub mod why;

use serde_json::Value;
use std::fmt::Display;
use yoi::protocol::SettingsMistake;
use yoi::text::SafeText;

/// A number of things: `1 line`, `2 lines`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    format!("{number} {}", if number == N::from(1) { one } else { many })
}

/// The sentence about a mistake in the settings that is no longer there.
pub fn corrected(mistake: &SettingsMistake) -> String {
    format!("corrected: {}", mistake.about)
}

/// The note about a log entry of a kind that only a newer program knows.
pub fn newer_entry(fields: &Value) -> String {
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("");
    format!("an entry of a newer yoi: {}", SafeText::spelled(kind))
}

/// The note about a model's answer that has nothing to read and calls no tool.
pub const EMPTY_ANSWER: &str = "the model's answer was empty: it has no text and no tool call; ask again or choose another model";
