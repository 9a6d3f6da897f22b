//! Sentences about values of the settings file that cannot be used.

use crate::config::settings::limits::Limits;
use crate::text::{SafeText, nearest};
use crate::trace::redact;

/// The most characters of a value that are shown.
const SHOWN: usize = 40;
/// Units by the ends of keys.
const UNITS: [(&str, &str); 4] =
    [("_mib", "MiB"), ("_kib", "KiB"), ("_min", "minutes"), ("_s", "seconds")];

/// A sentence that names the key with its tables, the value in the file, and the expected values
/// with their unit. `message` is that of the parser.
pub fn sentence(message: &str, key: &str, text: &str, error: &toml::de::Error) -> String {
    if let Some(field) = message.strip_prefix("unknown field `") {
        return meant(field).unwrap_or_else(|| message.to_owned());
    }
    let expected = message.strip_prefix("expected ");
    let expected = expected.or_else(|| message.split_once(", expected ").map(|(_, rest)| rest));
    let Some(expected) = expected else { return format!("`{key}`: {message}") };
    let found = match holds_secrets(key) {
        true => "of another kind".to_owned(),
        false => error.span().and_then(|at| text.get(at)).map(shown).unwrap_or_default(),
    };
    let unit = UNITS.iter().find(|(end, _)| key.ends_with(end)).map(|(_, unit)| *unit);
    let (measure, unit) =
        unit.map(|unit| (format!(", in {unit}"), format!(" {unit}"))).unwrap_or_default();
    let limit = key.strip_prefix("limits.").and_then(Limits::default_of);
    let default =
        limit.map(|number| format!("; the default is {number}{unit}")).unwrap_or_default();
    let expected = in_words(expected);
    format!("`{key}` is {found}, but must be {expected}{measure}{default}")
}

/// The sentence about an unknown field that is much like one of those that the parser expects.
fn meant(field: &str) -> Option<String> {
    let (field, expected) = field.split_once("`, expected ")?;
    let known = expected.split('`').skip(1).step_by(2);
    let near = nearest(field, known)?;
    Some(format!("unknown field `{field}`: did you mean `{near}`?"))
}

/// Whether values of this key may be secrets, which are not shown.
fn holds_secrets(key: &str) -> bool {
    key.split('.').any(|part| matches!(part, "env" | "headers" | "key_env"))
}

/// The beginning of a value without secrets.
fn shown(value: &str) -> String {
    SafeText::brief(redact(value), SHOWN).into_string()
}

/// The names that the parser has for types, as a person writes their values.
fn in_words(expected: &str) -> &str {
    match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "u64" => "a whole number of at least 0",
        "a nonzero u64" => "a whole number of at least 1",
        "a string" | "path string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in [ ]",
        "a map" => "a table",
        "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}
