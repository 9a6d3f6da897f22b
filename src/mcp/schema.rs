//! The schema of a tool's arguments, narrowed to what the wire of every provider takes.

use serde_json::{Map, Value, json};

/// Bytes of a schema, and levels of it.
const MAX_BYTES: usize = 32 * 1024;
const MAX_DEPTH: usize = 12;
/// Bytes of a property's name.
const MAX_PROPERTY: usize = 64;
/// Keywords that some provider refuses at the top of a schema.
const NOT_AT_TOP: [&str; 9] =
    ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"];
/// Keywords that say nothing to a model, or what only some providers take.
const DROPPED: [&str; 4] = ["$schema", "$id", "$comment", "$anchor"];
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keywords that hold one schema, a list of schemas, or schemas by name.
const ONE: [&str; 5] = ["items", "additionalProperties", "not", "contains", "propertyNames"];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// A schema that every provider takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrowed {
    pub schema: Value,
    /// The removed parts, in words.
    pub without: Vec<String>,
}

/// Narrows a schema; an error says why there is no form of it that every provider takes.
pub fn narrowed(schema: Option<&Value>) -> Result<Narrowed, String> {
    let mut schema = match schema {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) => return Err("its schema is no object".into()),
    };
    let mut narrowing = Narrowing { without: Vec::new() };
    narrowing.top(&mut schema)?;
    let defined = Value::Object(schema.clone());
    narrowing.schema(&mut schema, &defined, 0)?;
    let schema = Value::Object(schema);
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("its schema is {} KiB long, the most is 32", bytes.div_ceil(1024)));
    }
    let mut without = narrowing.without;
    without.sort_unstable();
    without.dedup();
    Ok(Narrowed { schema, without })
}

struct Narrowing {
    without: Vec<String>,
}

impl Narrowing {
    /// At its top a schema is that of an object, and nothing else.
    fn top(&mut self, schema: &mut Map<String, Value>) -> Result<(), String> {
        let is_object = match schema.get("type") {
            None => true,
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(_) => false,
        };
        if !is_object {
            return Err("its schema is not that of an object".into());
        }
        schema.insert("type".into(), json!("object"));
        for key in NOT_AT_TOP {
            if schema.remove(key).is_some() {
                self.without.push(format!("{key} at its top"));
            }
        }
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if !properties.is_object() {
            *properties = json!({});
            self.without.push("properties that are no object".into());
        }
        Ok(())
    }

    fn schema(
        &mut self,
        schema: &mut Map<String, Value>,
        whole: &Value,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("its schema is nested deeper than {MAX_DEPTH} levels"));
        }
        for key in DROPPED {
            schema.remove(key);
        }
        self.reference(schema, whole)?;
        self.kind(schema);
        self.required(schema);
        for key in NAMED {
            self.by_name(schema, key, whole, depth)?;
        }
        for key in ONE {
            if let Some(inner) = schema.get_mut(key) {
                self.inner(inner, whole, depth)?;
            }
        }
        for key in LISTS {
            let Some(inner) = schema.get_mut(key) else { continue };
            let Some(list) = inner.as_array_mut() else {
                schema.remove(key);
                self.without.push(format!("{key} that is no list"));
                continue;
            };
            for inner in list {
                self.inner(inner, whole, depth)?;
            }
        }
        let is_array = schema.get("type").is_some_and(|kind| kind == "array");
        if is_array && !schema.contains_key("items") {
            schema.insert("items".into(), json!({}));
        }
        Ok(())
    }

    /// `true` and `false` are schemas, too; anything else that is no object allows everything.
    fn inner(&mut self, inner: &mut Value, whole: &Value, depth: usize) -> Result<(), String> {
        match inner {
            Value::Object(schema) => self.schema(schema, whole, depth + 1),
            Value::Bool(_) => Ok(()),
            _ => {
                *inner = json!({});
                self.without.push("what is no schema".into());
                Ok(())
            }
        }
    }

    fn by_name(
        &mut self,
        schema: &mut Map<String, Value>,
        key: &str,
        whole: &Value,
        depth: usize,
    ) -> Result<(), String> {
        let Some(named) = schema.get_mut(key) else { return Ok(()) };
        let Some(named) = named.as_object_mut() else {
            schema.remove(key);
            self.without.push(format!("{key} that are no object"));
            return Ok(());
        };
        for (name, inner) in named {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            let fits = !name.is_empty() && name.len() <= MAX_PROPERTY && name.chars().all(is_plain);
            if key == "properties" && !fits {
                return Err("a name of its arguments has other characters than letters, digits, _ . - or more than \
                            64 of them"
                    .into());
            }
            if inner.is_boolean() {
                *inner = json!({});
            }
            self.inner(inner, whole, depth)?;
        }
        Ok(())
    }

    /// Resolves a reference within the same schema.
    fn reference(&mut self, schema: &Map<String, Value>, whole: &Value) -> Result<(), String> {
        let Some(to) = schema.get("$ref") else { return Ok(()) };
        let place = to.as_str().and_then(|to| to.strip_prefix('#'));
        let found = place.is_some_and(|place| whole.pointer(place).is_some());
        if found { Ok(()) } else { Err("its schema refers to what is not in it".into()) }
    }

    fn kind(&mut self, schema: &mut Map<String, Value>) {
        let is_known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
        let fits = match schema.get("type") {
            None => true,
            Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(is_known),
            Some(kind) => is_known(kind),
        };
        if !fits {
            schema.remove("type");
            self.without.push("a type that there is not".into());
        }
    }

    /// Only what is described can be required.
    fn required(&mut self, schema: &mut Map<String, Value>) {
        let Some(required) = schema.get("required") else { return };
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_described = |name: &&Value| {
            name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)))
        };
        let all = required.as_array().map(Vec::as_slice).unwrap_or_default();
        let kept: Vec<Value> = all.iter().filter(is_described).cloned().collect();
        if kept.len() != all.len() || !required.is_array() {
            self.without.push("required arguments that it does not describe".into());
        }
        schema.insert("required".into(), Value::Array(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_every_provider_takes_stays_as_it_is() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string", "description": "where"},
                "tree": {"$ref": "#/$defs/node"}, "any": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}});
        let narrowed = narrowed(Some(&schema)).unwrap();
        assert_eq!((narrowed.schema, narrowed.without), (schema, Vec::<String>::new()));
    }

    #[test]
    fn what_a_provider_would_refuse_is_taken_out_and_said() {
        let schema = json!({"$schema": "x", "oneOf": [{"required": ["a"]}], "required": ["a", "gone"],
            "properties": {"a": true, "b": {"type": "any"}, "c": {"type": "array"}, "d": {"items": 7},
                "e": {"anyOf": 1}}});
        let narrowed = narrowed(Some(&schema)).unwrap();
        let expected = json!({"type": "object", "required": ["a"],
            "properties": {"a": {}, "b": {}, "c": {"type": "array", "items": {}}, "d": {"items": {}}, "e": {}}});
        assert_eq!(narrowed.schema, expected);
        assert_eq!(narrowed.without.len(), 5, "{:?}", narrowed.without);
        let nothing = super::narrowed(None).unwrap().schema;
        assert_eq!(nothing, json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn a_schema_without_a_form_that_every_provider_takes_is_refused() {
        let deep = (0..20).fold(json!({}), |inner, _| json!({"type": "array", "items": inner}));
        for schema in [
            json!([]),
            json!("object"),
            json!({"type": "string"}),
            json!({"properties": {"a b": {}}}),
            json!({"properties": {"": {}}}),
            json!({"properties": {"a": {"$ref": "https://example.com/x"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/gone"}}}),
            json!({"properties": {"a": {"$ref": 1}}}),
            json!({"properties": {"a": deep}}),
            json!({"properties": {"a": {"description": "x".repeat(40_000)}}}),
        ] {
            assert!(narrowed(Some(&schema)).is_err(), "{schema}");
        }
    }
}
