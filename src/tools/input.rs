//! The arguments of a call: from JSON text to a type, and the type as a schema.

use crate::tools::fault::Fault;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The JSON Schema of an input type, without references or decoration.
pub fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(Default::default()));
    }
    schema
}

/// Whether these arguments of tool `name` can be read.
pub fn takes<T: DeserializeOwned>(name: &str, arguments: &str) -> Result<(), Fault> {
    parse::<T>(name, arguments).map(drop)
}

/// Reads the arguments of tool `name`. Nothing, null and what is not an object count as `{}`.
pub fn parse<T: DeserializeOwned>(name: &str, arguments: &str) -> Result<T, Fault> {
    let invalid = |error| Fault::argument(format!("invalid {name} input: {error}"));
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: Value = serde_json::from_str(text).map_err(invalid)?;
    let value = if value.is_object() { value } else { Value::Object(Default::default()) };
    serde_json::from_value(value).map_err(invalid)
}
