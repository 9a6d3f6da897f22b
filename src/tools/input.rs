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
    let object = object(arguments).map_err(|error| invalid(name, &error))?;
    T::deserialize(object).map_err(|error| invalid(name, &error))
}

fn object(arguments: &str) -> Result<Value, serde_json::Error> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: Value = serde_json::from_str(text)?;
    Ok(if value.is_object() { value } else { Value::Object(Default::default()) })
}

fn invalid(name: &str, error: &serde_json::Error) -> Fault {
    Fault::argument(format!("invalid {name} input: {error}"))
}
