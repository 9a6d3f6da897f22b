//! Questions of a server: the form that it sends becomes a question to the person, and the person's answer its reply.

use crate::protocol::{Choice, Field, FieldKind, Question};
use crate::tools::PersonReply;
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::Value;

/// Bytes of the text of a question.
const MAX_TEXT: usize = 4096;
/// Fields of a form, and choices of a field.
const MAX_FIELDS: usize = 16;
const MAX_CHOICES: usize = 64;
/// Bytes of a name, a title, a description or a choice.
const MAX_WORDS: usize = 512;

/// The result that tells a server the reply of the person.
pub fn result(reply: PersonReply) -> ElicitResult {
    match reply {
        PersonReply::Answered(values) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
        }
        PersonReply::Declined => ElicitResult::new(ElicitationAction::Decline),
        PersonReply::Gone => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// The question that a text and a form ask, with the fields in the order of these names. The error is a sentence for
/// the server.
pub fn question(
    server: &str,
    text: &str,
    form: &Value,
    order: &[String],
) -> Result<Question, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("the message is longer than {MAX_TEXT} bytes"));
    }
    let properties = form.get("properties").and_then(Value::as_object);
    let required = form.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let place = |name: &String| order.iter().position(|other| other == name);
    let mut properties: Vec<(&String, &Value)> = properties.into_iter().flatten().collect();
    properties.sort_by_key(|(name, _)| place(name).unwrap_or(order.len()));
    let fields = properties.into_iter();
    let fields: Vec<Field> = fields
        .map(|(name, schema)| field(name, schema, !is_required(name)))
        .collect::<Result<_, _>>()?;
    if fields.len() > MAX_FIELDS {
        return Err(format!("the form has more than {MAX_FIELDS} fields"));
    }
    Ok(Question { server: Some(server.to_owned()), fields })
}

fn field(name: &str, schema: &Value, optional: bool) -> Result<Field, String> {
    let words = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let (title, description) = (words("title"), words("description"));
    let all = [Some(name), title.as_deref(), description.as_deref()];
    if name.is_empty() || all.iter().flatten().any(|words| words.len() > MAX_WORDS) {
        return Err(format!("the words of a field have 1 to {MAX_WORDS} bytes"));
    }
    let kind = kind(schema).map_err(|why| format!("the field `{name}` {why}"))?;
    Ok(Field { name: name.to_owned(), title, description, optional, kind })
}

fn kind(schema: &Value) -> Result<FieldKind, String> {
    let whole = |key: &str| schema.get(key).and_then(Value::as_u64);
    let number = |key: &str| match schema.get(key) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    };
    // A limit of a whole number may be written as 1.0.
    let integer = |key: &str| {
        let limit = schema.get(key)?;
        limit.as_i64().or_else(|| limit.as_f64()?.to_string().parse().ok())
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => match choices(schema)? {
            Some(choices) => Ok(FieldKind::Choice { choices, other: false }),
            None => Ok(FieldKind::Text { min: whole("minLength"), max: whole("maxLength") }),
        },
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let choices = choices(items)?.ok_or("is a list without choices")?;
            Ok(FieldKind::Choices { choices, min: whole("minItems"), max: whole("maxItems") })
        }
        Some("number") => Ok(FieldKind::Number { min: number("minimum"), max: number("maximum") }),
        Some("integer") => {
            Ok(FieldKind::Integer { min: integer("minimum"), max: integer("maximum") })
        }
        Some("boolean") => Ok(FieldKind::Boolean),
        _ => Err("has a type that a form cannot have".into()),
    }
}

/// The choices of a text, in each form that the versions of MCP have.
fn choices(schema: &Value) -> Result<Option<Vec<Choice>>, String> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let choices: Vec<Choice> = if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        let text = |choice: &Value, key: &str| Some(choice.get(key)?.as_str()?.to_owned());
        let read =
            |choice| Some(Choice { value: text(choice, "const")?, label: text(choice, "title") });
        titled.iter().map(read).collect::<Option<_>>().ok_or("has a choice without `const`")?
    } else if let Some(values) = list("enum") {
        let names = list("enumNames").map_or(&[][..], Vec::as_slice);
        let labels = names.iter().map(|name| name.as_str().map(str::to_owned));
        let labels = labels.chain(std::iter::repeat(None));
        let read =
            |(value, label): (&Value, _)| Some(Choice { value: value.as_str()?.to_owned(), label });
        values
            .iter()
            .zip(labels)
            .map(read)
            .collect::<Option<_>>()
            .ok_or("has a choice that is no text")?
    } else {
        return Ok(None);
    };
    let is_long = |choice: &Choice| choice.value.len().max(choice.shown().len()) > MAX_WORDS;
    if choices.is_empty() || choices.len() > MAX_CHOICES || choices.iter().any(is_long) {
        return Err(format!("has no choices, more than {MAX_CHOICES}, or long ones"));
    }
    Ok(Some(choices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_becomes_a_question_with_its_limits() {
        let form = json!({"type": "object", "properties": {
            "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 9},
            "age": {"type": "integer", "minimum": 18.0, "description": "in years"},
            "share": {"type": "number", "maximum": 0.5},
            "ok": {"type": "boolean", "default": true},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["small", "large"]},
            "tone": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "maxItems": 1},
        }, "required": ["name"]});
        let question = question("db", "Who?", &form, &["name".into(), "age".into()]).unwrap();
        let names: Vec<&str> = question.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names[..3], ["name", "age", "ok"]);
        let read = |text: &str| question.read(text).map(Value::from);
        let all = "name=Ann age=18 share=0.5 ok=yes size=large tone=A tags=x";
        let expected = json!({"name": "Ann", "age": 18, "share": 0.5, "ok": true, "size": "l", "tone": "a", "tags": ["x"]});
        assert_eq!(read(all), Ok(expected));
        assert_eq!(read("name=Ann"), Ok(json!({"name": "Ann"})), "the others may be left out");
        assert!(read("name=Ann age=17").unwrap_err().contains("a whole number of at least 18"));
        assert!(read("age=18").unwrap_err().contains("is missing"));
        assert_eq!(question.server.as_deref(), Some("db"));
    }

    #[test]
    fn a_form_that_cannot_be_filled_in_is_refused_in_words() {
        let refused = |field: Value| {
            question("db", "x", &json!({"properties": {"f": field}}), &[]).unwrap_err()
        };
        assert_eq!(
            refused(json!({"type": "object"})),
            "the field `f` has a type that a form cannot have"
        );
        assert_eq!(
            refused(json!({"type": "array", "items": {"type": "string"}})),
            "the field `f` is a list without choices"
        );
        assert!(refused(json!({"type": "string", "enum": []})).contains("has no choices"));
        assert!(refused(json!({"type": "string", "title": "x".repeat(600)})).contains("bytes"));
        let many: serde_json::Map<String, Value> =
            (0..17).map(|at| (at.to_string(), json!({"type": "boolean"}))).collect();
        assert!(question("db", "x", &json!({"properties": many}), &[]).unwrap_err().contains("16"));
        let long = question("db", &"x".repeat(5000), &json!({}), &[]).unwrap_err();
        assert!(long.contains("4096"), "{long}");
        assert_eq!(question("db", "Go on?", &json!({"properties": {}}), &[]).unwrap().fields, []);
    }

    #[test]
    fn a_reply_has_one_of_three_actions() {
        let json = |reply: PersonReply| serde_json::to_value(result(reply)).unwrap();
        let values = json!({"a": 1}).as_object().cloned().unwrap();
        assert_eq!(
            json(PersonReply::Answered(values)),
            json!({"action": "accept", "content": {"a": 1}})
        );
        assert_eq!(json(PersonReply::Declined), json!({"action": "decline"}));
        assert_eq!(json(PersonReply::Gone), json!({"action": "cancel"}));
    }
}
