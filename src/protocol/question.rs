//! Questions: what a model or an MCP server wants to know from a person, as typed fields, and the check of an answer.

use crate::text::SafeText;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// The tool with which a model asks a person.
pub const QUESTION_TOOL: &str = "AskPerson";
/// Bytes of one answer.
pub const MAX_ANSWER: usize = 16 * 1024;
/// Characters of a choice where several stand in a sentence.
const MAX_CHOICE: usize = 60;

/// The values of an answer, by the names of the fields.
pub type Values = Map<String, Value>;

/// A question, whose text is the action of its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The MCP server that asks; `None`: the model asks, with `AskPerson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// None where a server wants only a yes or a no.
    pub fields: Vec<Field>,
}

/// One value that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it may be left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// The type of a value, with its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FieldKind {
    Text {
        /// Characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    Choice {
        choices: Vec<Choice>,
        /// Whether a text that is none of the choices is an answer, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        other: bool,
    },
    /// A list of choices.
    Choices {
        choices: Vec<Choice>,
        /// How many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    Number {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Number>,
    },
    Integer {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
    Boolean,
}

/// A value that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub value: String,
    /// Shown in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl Choice {
    pub fn of(value: impl Into<String>) -> Self {
        Self { value: value.into(), label: None }
    }

    /// What a person reads.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.value)
    }

    fn is_called(&self, word: &str) -> bool {
        [self.shown(), &self.value].iter().any(|name| name.to_lowercase() == word.to_lowercase())
    }
}

impl Question {
    /// The question of a model: one field, whose choices do not exclude another answer.
    pub fn of_model(choices: Vec<String>) -> Self {
        let kind = match choices.is_empty() {
            true => FieldKind::Text { min: None, max: None },
            false => FieldKind::Choice {
                choices: choices.into_iter().map(Choice::of).collect(),
                other: true,
            },
        };
        let name = "answer".to_owned();
        let field = Field { name, title: None, description: None, optional: false, kind };
        Self { server: None, fields: vec![field] }
    }

    /// What a digit can select: the choices of the only field, in their order.
    pub fn choices(&self) -> Vec<String> {
        match self.fields.as_slice() {
            [] => vec!["yes".into()],
            [field] => field.choices(),
            _ => Vec::new(),
        }
    }

    /// The answer in a text that a person typed: the value of the only field, or each with its name, as in
    /// `name=Ann Lee age=30`. A choice is named by its words or its number. The error says what is wrong.
    pub fn read(&self, text: &str) -> Result<Values, String> {
        let text = text.trim();
        let mut values = Values::new();
        match self.fields.as_slice() {
            [] if ["yes", "y", "ok", "1"].contains(&text.to_lowercase().as_str()) => {}
            [] => return Err("it wants only a yes: answer yes, or deny it".into()),
            [field] if text.is_empty() && field.optional => {}
            [field] => {
                values.insert(field.name.clone(), field.read(text)?);
            }
            fields => {
                let given = named(fields, text)?.into_iter();
                for (field, text) in
                    given.filter(|(field, text)| !field.optional || !text.is_empty())
                {
                    let value = field.read(text).map_err(|why| format!("{}: {why}", field.name))?;
                    values.insert(field.name.clone(), value);
                }
            }
        }
        self.check(&values)?;
        Ok(values)
    }

    /// Whether these values answer the question. The error names the field.
    pub fn check(&self, values: &Values) -> Result<(), String> {
        let is_unknown = |name: &&String| !self.fields.iter().any(|field| field.name == **name);
        if let Some(name) = values.keys().find(is_unknown) {
            return Err(format!("the question has no field {}", SafeText::quoted(name)));
        }
        for field in &self.fields {
            let name = SafeText::quoted(&field.name);
            match values.get(&field.name) {
                Some(value) => field.check(value).map_err(|why| match self.fields.len() {
                    1 => why,
                    _ => format!("{name}: {why}"),
                })?,
                None if field.optional => {}
                None if self.fields.len() == 1 => return Err("an answer is missing".into()),
                None => return Err(format!("the field {name} is missing")),
            }
        }
        match values.values().map(|value| value.to_string().len()).sum::<usize>() {
            bytes if bytes > MAX_ANSWER => {
                Err(format!("an answer has at most {} KiB", MAX_ANSWER / 1024))
            }
            _ => Ok(()),
        }
    }
}

/// The fields that a text names, each with its text.
fn named<'a>(fields: &'a [Field], text: &'a str) -> Result<Vec<(&'a Field, &'a str)>, String> {
    let is_word = |at: usize| text[..at].chars().next_back().is_none_or(char::is_whitespace);
    let mut found: Vec<(usize, usize, &Field)> = Vec::new();
    for field in fields {
        let word = format!("{}=", field.name);
        let places = text.match_indices(&word).filter(|(at, _)| is_word(*at));
        found.extend(places.map(|(at, word)| (at, at + word.len(), field)));
    }
    found.sort_by_key(|(at, ..)| *at);
    if found.first().is_none_or(|(at, ..)| *at > 0) && !text.is_empty() {
        let names: Vec<String> = fields.iter().map(|field| format!("{}=…", field.name)).collect();
        return Err(format!("write each value behind the name of its field: {}", names.join(" ")));
    }
    let ends = found.iter().skip(1).map(|(at, ..)| *at).chain([text.len()]);
    let parts: Vec<(&Field, &str)> = found
        .iter()
        .zip(ends)
        .map(|((_, at, field), end)| (*field, text[*at..end].trim()))
        .collect();
    for (at, (field, _)) in parts.iter().enumerate() {
        if parts[..at].iter().any(|(other, _)| other.name == field.name) {
            return Err(format!("the field {} stands twice", field.name));
        }
    }
    Ok(parts)
}

impl Field {
    /// What can be chosen, as a person reads it.
    pub fn choices(&self) -> Vec<String> {
        match &self.kind {
            FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => {
                choices.iter().map(|choice| choice.shown().to_owned()).collect()
            }
            FieldKind::Boolean => vec!["yes".into(), "no".into()],
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Integer { .. } => {
                Vec::new()
            }
        }
    }

    /// What is wanted, in a few words.
    pub fn wants(&self) -> String {
        let within = |min: Option<String>, max: Option<String>| match (min, max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(" of at least {min}"),
            (None, Some(max)) => format!(" of at most {max}"),
            (None, None) => String::new(),
        };
        let text = |limit: &Option<u64>| limit.as_ref().map(ToString::to_string);
        match &self.kind {
            FieldKind::Text { min: None, max: None } => "a text".into(),
            FieldKind::Text { min, max } => {
                format!("a text{} characters", within(text(min), text(max)))
            }
            FieldKind::Choice { other: true, .. } => "a choice, or words of your own".into(),
            FieldKind::Choice { .. } => "one of the choices".into(),
            FieldKind::Choices { min: None, max: None, .. } => {
                "choices, with commas between them".into()
            }
            FieldKind::Choices { min, max, .. } => {
                let count = within(text(min), text(max));
                format!("choices, with commas between them, a number{count}")
            }
            FieldKind::Number { min, max } => {
                let text = |limit: &Option<Number>| limit.as_ref().map(ToString::to_string);
                format!("a number{}", within(text(min), text(max)))
            }
            FieldKind::Integer { min, max } => {
                let text = |limit: &Option<i64>| limit.as_ref().map(ToString::to_string);
                format!("a whole number{}", within(text(min), text(max)))
            }
            FieldKind::Boolean => "yes or no".into(),
        }
    }

    /// The value in a text that a person typed.
    fn read(&self, text: &str) -> Result<Value, String> {
        match &self.kind {
            FieldKind::Text { .. } => Ok(text.into()),
            FieldKind::Choice { choices, other } => match (chosen(choices, text), other) {
                (Some(choice), _) => Ok(choice.value.clone().into()),
                (None, true) if text.parse::<u64>().is_err() => Ok(text.into()),
                (None, _) => Err(none_of(&self.choices(), text)),
            },
            FieldKind::Choices { choices, .. } => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                let read = |part| {
                    let choice = chosen(choices, part);
                    let value = choice.map(|choice| Value::from(choice.value.clone()));
                    value.ok_or_else(|| none_of(&self.choices(), part))
                };
                parts.map(read).collect::<Result<Vec<_>, _>>().map(Value::from)
            }
            FieldKind::Number { .. } => {
                let whole = text.parse::<i64>().ok().map(Number::from);
                let number = || text.parse::<f64>().ok().and_then(Number::from_f64);
                whole.or_else(number).map(Value::from).ok_or_else(|| self.not(text))
            }
            FieldKind::Integer { .. } => {
                text.parse::<i64>().map(Value::from).map_err(|_| self.not(text))
            }
            FieldKind::Boolean => match text.to_lowercase().as_str() {
                "yes" | "y" | "true" | "1" => Ok(true.into()),
                "no" | "n" | "false" | "2" => Ok(false.into()),
                _ => Err(self.not(text)),
            },
        }
    }

    fn not(&self, text: &str) -> String {
        format!("{} is not {}", SafeText::quoted(text), self.wants())
    }

    /// Whether a value is of the type and within its limits.
    fn check(&self, value: &Value) -> Result<(), String> {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_right = match &self.kind {
            FieldKind::Text { min, max } => value.as_str().is_some_and(|text| {
                let count = text.chars().count() as u64;
                let has_words = self.optional || min == &Some(0) || !text.trim().is_empty();
                has_words
                    && min.is_none_or(|min| count >= min)
                    && max.is_none_or(|max| count <= max)
            }),
            FieldKind::Choice { choices, other } => match value.as_str() {
                Some(text) if choices.iter().any(|choice| choice.value == text) => true,
                Some(text) if !text.trim().is_empty() => {
                    return if *other { Ok(()) } else { Err(none_of(&self.choices(), text)) };
                }
                _ => false,
            },
            FieldKind::Choices { choices, min, max } => value.as_array().is_some_and(|list| {
                let is_known = |value: &Value| choices.iter().any(|c| *value == *c.value.as_str());
                let count = list.len() as u64;
                list.iter().all(is_known)
                    && min.is_none_or(|min| count >= min)
                    && max.is_none_or(|max| count <= max)
            }),
            FieldKind::Number { min, max } => value.as_f64().is_some_and(|number| {
                let of = |limit: &Option<Number>| limit.as_ref().and_then(Number::as_f64);
                of(min).is_none_or(|min| number >= min) && of(max).is_none_or(|max| number <= max)
            }),
            FieldKind::Integer { min, max } => value.as_i64().is_some_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            FieldKind::Boolean => value.is_boolean(),
        };
        match is_right {
            true => Ok(()),
            false => Err(self.not(&shown)),
        }
    }
}

/// The choice with these words or, where none has them, this number from 1 on.
fn chosen<'a>(choices: &'a [Choice], text: &str) -> Option<&'a Choice> {
    let by_words = choices.iter().find(|choice| choice.is_called(text));
    let by_number = || text.parse::<usize>().ok()?.checked_sub(1).and_then(|at| choices.get(at));
    by_words.or_else(by_number)
}

fn none_of(choices: &[String], text: &str) -> String {
    let shown = |(at, choice): (usize, &String)| {
        format!("{} {}", at + 1, SafeText::brief(choice, MAX_CHOICE))
    };
    let all: Vec<String> = choices.iter().enumerate().map(shown).collect();
    format!("{} is none of the choices: {}", SafeText::quoted(text), all.join(", "))
}

/// The values of an answer in words: the only one as it is, several with their names.
pub fn answer_words(values: &Values) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Array(list) => {
            let words: Vec<String> =
                list.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
            words.join(", ")
        }
        other => other.to_string(),
    };
    match values.iter().collect::<Vec<_>>().as_slice() {
        [] => "yes".into(),
        [(_, value)] => word(value),
        several => {
            let named = several.iter().map(|(name, value)| format!("{name}={}", word(value)));
            named.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str, kind: Value) -> Field {
        let mut field = kind;
        field["name"] = name.into();
        serde_json::from_value(field).unwrap()
    }

    fn form(fields: Vec<Field>) -> Question {
        Question { server: Some("s".into()), fields }
    }

    #[test]
    fn a_choice_is_named_by_its_words_or_its_number_and_other_words_are_an_answer_too() {
        let question = Question::of_model(vec!["total".into(), "4".into()]);
        let read = |text: &str| question.read(text).map(|values| values["answer"].clone());
        assert_eq!(read(" Total "), Ok(json!("total")));
        assert_eq!(read("1"), Ok(json!("total")));
        assert_eq!(read("4"), Ok(json!("4")), "words come before numbers");
        assert_eq!(read("keep both"), Ok(json!("keep both")));
        assert_eq!(read("7").unwrap_err(), r#""7" is none of the choices: 1 total, 2 4"#);
        assert_eq!(read(" ").unwrap_err(), r#""" is not a choice, or words of your own"#);
        let free = Question::of_model(vec![]);
        assert_eq!(free.read("7").unwrap()["answer"], json!("7"));
        assert_eq!(free.read("").unwrap_err(), r#""" is not a text"#);
        let long = free.read(&"x".repeat(MAX_ANSWER)).unwrap_err();
        assert_eq!(long, "an answer has at most 16 KiB");
    }

    #[test]
    fn each_type_says_what_it_wants() {
        let wrong = |kind: Value, text: &str| form(vec![field("f", kind)]).read(text).unwrap_err();
        let number = json!({"type": "number", "min": 0.5, "max": 2});
        assert_eq!(wrong(number.clone(), "3"), r#""3" is not a number from 0.5 to 2"#);
        assert_eq!(wrong(number, "x"), r#""x" is not a number from 0.5 to 2"#);
        assert_eq!(
            wrong(json!({"type": "integer", "min": 1}), "0"),
            r#""0" is not a whole number of at least 1"#
        );
        assert_eq!(wrong(json!({"type": "boolean"}), "0"), r#""0" is not yes or no"#);
        assert_eq!(
            wrong(json!({"type": "text", "max": 2}), "abc"),
            r#""abc" is not a text of at most 2 characters"#
        );
        let choices = json!([{"value": "r", "label": "red"}, {"value": "b"}]);
        let choice = json!({"type": "choice", "choices": choices});
        assert_eq!(wrong(choice.clone(), "green"), r#""green" is none of the choices: 1 red, 2 b"#);
        let read = |kind: Value, text: &str| form(vec![field("f", kind)]).read(text).unwrap();
        assert_eq!(read(choice, "RED")["f"], json!("r"));
        let several = json!({"type": "choices", "choices": choices, "min": 1});
        assert_eq!(read(several.clone(), "2, red")["f"], json!(["b", "r"]));
        assert!(wrong(several, ",").ends_with("a number of at least 1"));
        assert_eq!(read(json!({"type": "boolean"}), "2")["f"], json!(false));
    }

    #[test]
    fn several_fields_are_written_with_their_names() {
        let age = json!({"type": "integer", "optional": true});
        let fields = vec![field("name", json!({"type": "text"})), field("age", age)];
        let question = form(fields);
        let values = question.read("name=Ann Lee age=30").unwrap();
        assert_eq!(Value::from(values.clone()), json!({"name": "Ann Lee", "age": 30}));
        assert_eq!(answer_words(&values), "age=30 name=Ann Lee");
        assert_eq!(Value::from(question.read("name=Ann").unwrap()), json!({"name": "Ann"}));
        let wrong = |text: &str| question.read(text).unwrap_err();
        assert_eq!(wrong("Ann"), "write each value behind the name of its field: name=… age=…");
        assert_eq!(wrong("age=3"), r#"the field "name" is missing"#);
        assert_eq!(wrong("name=a age=x"), r#"age: "x" is not a whole number"#);
        assert_eq!(wrong("name=a name=b"), "the field name stands twice");
        let other = json!({"name": "a", "nick": "b"}).as_object().cloned().unwrap();
        assert_eq!(question.check(&other).unwrap_err(), r#"the question has no field "nick""#);
        let agreed = form(vec![]);
        assert_eq!(agreed.read("yes"), Ok(Values::new()));
        assert_eq!(agreed.read("no").unwrap_err(), "it wants only a yes: answer yes, or deny it");
    }
}
