//! The arguments of a call: from JSON text to a type, and the type as a schema.

use crate::tools::fault::Fault;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The JSON Schema of an input type, without references or decoration.
pub fn schema<T: JsonSchema>() -> Value {
    plain(generator().into_root_schema_for::<T>())
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator()
}

fn plain(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    bare(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(Default::default()));
    }
    schema
}

/// Removes what costs tokens with each request and tells a model little: the format and the least value of a number,
/// defaults, and that a field which may be left out may also be null.
fn bare(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for noise in ["format", "minimum", "default"] {
        object.remove(noise);
    }
    if let Some(kind) = kind(schema).map(str::to_owned) {
        schema["type"] = kind.into();
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flatten().for_each(|(_, field)| bare(field));
    schema.get_mut("items").into_iter().for_each(bare);
}

/// Whether these arguments of tool `name` can be read.
pub fn takes<T: DeserializeOwned + JsonSchema>(name: &str, arguments: &str) -> Result<(), Fault> {
    parse::<T>(name, arguments).map(drop)
}

/// Reads the arguments of tool `name`. Nothing, null and what is not an object count as `{}`. Models
/// write numbers and truth values as text, and null for what they leave out: where the arguments
/// cannot be read as they are, these count as what is meant. Texts and lists stay as they are,
/// because policy reads them too.
pub fn parse<T: DeserializeOwned + JsonSchema>(name: &str, arguments: &str) -> Result<T, Fault> {
    let mut object = object(arguments)
        .map_err(|error| Fault::argument(format!("invalid {name} input: {error}")))?;
    if let Ok(input) = T::deserialize(&object) {
        return Ok(input);
    }
    let schema = schema::<T>();
    as_meant(&mut object, &schema);
    T::deserialize(&object).map_err(|error| {
        Fault::argument(format!("invalid {name} input: {error}; {}", usage(&schema)))
    })
}

fn object(arguments: &str) -> Result<Value, serde_json::Error> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: Value = serde_json::from_str(text)?;
    Ok(if value.is_object() { value } else { Value::Object(Default::default()) })
}

/// Turns texts into the numbers and truth values that the schema wants, and removes null where the
/// schema needs nothing.
fn as_meant(object: &mut Value, schema: &Value) {
    let Some(object) = object.as_object_mut() else { return };
    object.retain(|name, value| !value.is_null() || is_required(schema, name));
    for (name, value) in object {
        let Some(text) = value.as_str().map(str::trim) else { continue };
        let meant = match kind(&schema["properties"][name]) {
            Some("integer" | "number" | "boolean") => serde_json::from_str(text).ok(),
            _ => None,
        };
        if let Some(meant @ (Value::Number(_) | Value::Bool(_))) = meant {
            *value = meant;
        }
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    required.iter().any(|required| required == name)
}

/// The type of a field, whether it may be left out or not.
fn kind(field: &Value) -> Option<&str> {
    match &field["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
}

/// The fields of a tool with their types, and an example with those that it needs.
fn usage(schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        return "it has no fields; example: {}".into();
    };
    let (needed, more): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(name, _)| is_required(schema, name));
    let named = |fields: &[(&String, &Value)]| {
        let name = |(name, field): &(&String, &Value)| match kind(field) {
            Some(kind) => format!("{name} ({kind})"),
            None => (*name).clone(),
        };
        fields.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    if !needed.is_empty() {
        text.push_str(&format!("it needs {}; ", named(&needed)));
    }
    if !more.is_empty() {
        text.push_str(&format!("it takes {}; ", named(&more)));
    }
    text + &format!("example: {}", example("", schema))
}

/// A value of this schema, with the fields that it needs.
fn example(name: &str, schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|words| words.first()) {
        return first.clone();
    }
    match kind(schema) {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let needed = fields.filter(|(name, _)| is_required(schema, name));
            needed.map(|(name, field)| (name.clone(), example(name, field))).collect()
        }
        Some("array") => Value::Array(vec![example(name, &schema["items"])]),
        Some("integer" | "number") => 1.into(),
        Some("boolean") => true.into(),
        _ if name.ends_with("path") || name == "target" => "/absolute/path".into(),
        _ => "…".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Input {
        file_path: String,
        count: u64,
        limit: Option<usize>,
        #[serde(default)]
        all: bool,
        #[serde(default)]
        list: Vec<String>,
    }

    fn read(arguments: &str) -> Result<Input, String> {
        parse("Demo", arguments).map_err(|fault| fault.to_string())
    }

    #[test]
    fn numbers_and_truth_values_as_text_are_what_is_meant() {
        let text = r#"{"file_path":"7","count":" 5 ","limit":"3","all":"true","list":null}"#;
        let (file_path, list) = ("7".to_owned(), Vec::new());
        let meant = Input { file_path, count: 5, limit: Some(3), all: true, list };
        assert_eq!(read(text), Ok(meant));
        for wrong in [
            r#"{"file_path":"a","count":"five"}"#,
            r#"{"file_path":"a","count":"-1"}"#,
            r#"{"file_path":null,"count":1}"#,
            r#"{"file_path":1,"count":1}"#,
            r#"{"file_path":"a","count":1,"list":"[\"a\"]"}"#,
        ] {
            assert!(read(wrong).unwrap_err().starts_with("invalid Demo input: "), "{wrong}");
        }
    }

    #[test]
    fn arguments_that_lack_a_field_are_answered_with_the_fields_and_an_example() {
        let error = read("{}").unwrap_err();
        assert_eq!(
            error,
            "invalid Demo input: missing field `file_path`; it needs count (integer), file_path (string); it takes \
             all (boolean), limit (integer), list (array); example: {\"count\":1,\"file_path\":\"/absolute/path\"}"
        );
    }

    #[test]
    fn the_example_of_each_tool_is_one_that_it_takes() {
        for tool in crate::tools::TABLE.iter().chain(crate::tools::MESH) {
            let example = example("", &tool.spec().schema).to_string();
            assert_eq!((tool.takes)(tool.name, &example), Ok(()), "{}: {example}", tool.name);
        }
    }
}
