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
/// defaults, and that a field which may be left out may also be null, which its type and its words say together or not at all.
fn bare(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for union in ["anyOf", "oneOf"] {
        let Some(words) = words_of(object.get_mut(union)) else { continue };
        object.remove(union);
        object.insert("type".into(), "string".into());
        object.insert("enum".into(), Value::Array(words));
    }
    if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
        // A union in a union is one, and some servers want the type of each form.
        let inner = |form: Value| match form.get("anyOf").and_then(Value::as_array) {
            Some(forms) => forms.clone(),
            None => vec![form],
        };
        *forms = std::mem::take(forms).into_iter().flat_map(inner).collect();
        forms.retain(|form| form["type"] != "null");
        forms.iter_mut().for_each(bare);
    }
    for noise in ["format", "minimum", "default"] {
        object.remove(noise);
    }
    if let Some(kind) = kind(schema).map(str::to_owned) {
        schema["type"] = kind.into();
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flatten().for_each(|(_, field)| bare(field));
    schema.get_mut("items").into_iter().for_each(bare);
}

/// The words of a union whose forms are nothing but words, or null.
fn words_of(union: Option<&mut Value>) -> Option<Vec<Value>> {
    let mut words = Vec::new();
    for form in union?.as_array_mut()?.iter_mut().filter(|form| form["type"] != "null") {
        bare(form);
        match (form["enum"].as_array(), form.get("const")) {
            (Some(several), _) if form["type"] == "string" => words.extend_from_slice(several),
            (None, Some(word @ Value::String(_))) => words.push(word.clone()),
            _ => return None,
        }
    }
    Some(words)
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

/// Turns texts into the numbers and truth values that the schema wants, and numbers as `2.0` into whole ones; removes null,
/// and blank text in the place of a number, where the schema needs nothing.
fn as_meant(object: &mut Value, schema: &Value) {
    let Some(object) = object.as_object_mut() else { return };
    object.retain(|name, value| {
        let is_text = matches!(kind(&schema["properties"][name]), Some("string") | None);
        let is_blank = !is_text && value.as_str().is_some_and(|text| text.trim().is_empty());
        !(value.is_null() || is_blank) || is_required(schema, name)
    });
    for (name, value) in object {
        let kind = kind(&schema["properties"][name]);
        if let (Some("integer" | "number" | "boolean"), Some(text)) = (kind, value.as_str())
            && let Ok(meant @ (Value::Number(_) | Value::Bool(_))) =
                serde_json::from_str(text.trim())
        {
            *value = meant;
        }
        // The largest whole number that a float has exactly.
        const MOST: f64 = 9_007_199_254_740_992.0;
        if kind == Some("integer")
            && let Some(float) = value.as_f64().filter(|_| value.is_f64())
            && float.fract() == 0.0
            && float.abs() <= MOST
        {
            *value = Value::from(float as i64);
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
    fn a_whole_number_may_be_written_as_a_float_and_blank_text_stands_for_no_number() {
        let meant =
            |limit| Input { file_path: "a".into(), count: 5, limit, all: false, list: Vec::new() };
        let text = r#"{"file_path":"a","count":5.0,"limit":"2.0"}"#;
        assert_eq!(read(text), Ok(meant(Some(2))));
        assert_eq!(
            read(r#"{"file_path":"a","count":5,"limit":" ","all":"","list":""}"#),
            Ok(meant(None))
        );
        for wrong in [
            r#"{"file_path":"a","count":5.5}"#,
            r#"{"file_path":"a","count":1e300}"#,
            r#"{"file_path":"a","count":""}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    /// The words and the type of a field say the same, as the strictest servers want it.
    #[test]
    fn no_schema_of_a_tool_contradicts_itself() {
        fn check(tool: &str, schema: &Value) {
            let Some(fields) = schema.as_object() else { return };
            let (kind, words) = (kind(schema), schema["enum"].as_array());
            let fits = |word: &Value| match kind {
                Some("string") => word.is_string(),
                Some("integer") => word.is_i64(),
                Some("boolean") => word.is_boolean(),
                _ => false,
            };
            assert!(words.is_none_or(|words| words.iter().all(fits)), "{tool}: {schema}");
            for union in ["oneOf", "allOf", "$ref"] {
                assert!(!fields.contains_key(union), "{tool}: {schema}");
            }
            let forms = schema["anyOf"].as_array().into_iter().flatten();
            let has_form = forms.inspect(|form| check(tool, form)).count() > 1;
            assert!(kind.is_some() != has_form, "{tool}: a field without a type: {schema}");
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.for_each(|(_, field)| check(tool, field));
            if kind == Some("array") {
                check(tool, &schema["items"]);
            }
        }
        for tool in crate::tools::TABLE.iter().chain(crate::tools::MESH) {
            check(tool.name, &tool.spec().schema);
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
