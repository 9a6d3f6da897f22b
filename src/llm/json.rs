//! JSON as models and gateways write it: line ends within strings, escapes that JSON does not know, halves of surrogate
//! pairs, numbers that are none, a comma behind the last element. What was cut stays an error: nothing is ever completed.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Map, Value};

/// The value of a text that may be written loosely.
pub fn value(text: &str) -> serde_json::Result<Value> {
    read(text)
}

/// Whether a text is one value by the same rule.
pub fn is_value(text: &str) -> bool {
    read::<IgnoredAny>(text).is_ok()
}

fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_str(&strict(text)).map_err(|_| error))
}

/// The text as one object, before which `{}` may stand: some gateways begin the arguments of a call with it.
pub fn object(text: &str) -> Option<Map<String, Value>> {
    let behind = text.trim_start().strip_prefix("{}").filter(|rest| !rest.trim().is_empty());
    read(behind.unwrap_or(text)).ok()
}

/// The objects of a text that holds several, one behind the other; empty where anything else stands in it.
pub fn objects(text: &str) -> Vec<String> {
    let text = strict(text);
    let values = Deserializer::from_str(&text).into_iter::<Box<RawValue>>();
    let objects: Result<Vec<_>, _> = values.collect();
    let objects: Vec<String> =
        objects.unwrap_or_default().iter().map(ToString::to_string).collect();
    let is_several = objects.len() > 1 && objects.iter().all(|object| object.starts_with('{'));
    if is_several { objects } else { Vec::new() }
}

/// The text in strict JSON. Within strings: control characters escaped, the backslash of an unknown escape as a character of
/// its own, and half a surrogate pair as U+FFFD. Outside of them: null for what is no finite number, and no comma behind the
/// last element.
pub fn strict(text: &str) -> String {
    let (mut strict, mut is_inside, mut rest) = (String::with_capacity(text.len()), false, text);
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '"' => {
                is_inside = !is_inside;
                strict.push(c);
            }
            '\\' if is_inside => {
                length = escape(rest, &mut strict);
            }
            '\0'..='\x1f' if is_inside => strict.push_str(&format!("\\u{:04x}", u32::from(c))),
            ',' if !is_inside && rest[1..].trim_start().starts_with(['}', ']']) => {}
            c if !is_inside && is_of_token(c) => {
                length = rest.find(|c| !is_of_token(c)).unwrap_or(rest.len());
                let token = &rest[..length];
                // Rust reads NaN and the infinities as Python writes them, and what is too large as an infinity.
                let is_no_number = token.parse().is_ok_and(|number: f64| !number.is_finite());
                strict.push_str(if is_no_number { "null" } else { token });
            }
            _ => strict.push(c),
        }
        rest = &rest[length..];
    }
    strict
}

/// Whether numbers and words have this character.
fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')
}

/// Writes the escape at the beginning of `text` in strict JSON and returns its length.
fn escape(text: &str, strict: &mut String) -> usize {
    match (text.as_bytes().get(1), code_unit(text)) {
        (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => {
            strict.push_str(&text[..2]);
            2
        }
        (_, Some(0xD800..0xDC00)) if matches!(code_unit(&text[6..]), Some(0xDC00..0xE000)) => {
            strict.push_str(&text[..12]);
            12
        }
        (_, Some(0xD800..0xE000)) => {
            strict.push_str("\\ufffd");
            6
        }
        (_, Some(_)) => {
            strict.push_str(&text[..6]);
            6
        }
        _ => {
            strict.push_str("\\\\");
            1
        }
    }
}

/// The number of an escape `\uXXXX` at the beginning of `text`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_no_number_is_null_and_the_last_comma_counts_for_nothing() {
        for (text, meant) in [
            (
                r#"{"a":NaN,"b":[-Infinity,Infinity,1.5]}"#,
                json!({"a": null, "b": [null, null, 1.5]}),
            ),
            (r#"{"a":1e400,"b":-1e2}"#, json!({"a": null, "b": -100.0})),
            ("[1,2,\n]", json!([1, 2])),
            (r#"{"a":"NaN, ]","b":true,}"#, json!({"a": "NaN, ]", "b": true})),
        ] {
            assert_eq!(value(text).unwrap(), meant, "{text}");
        }
        for cut in [r#"{"a":1,"#, r#"{"a":N"#, "[,1]", "[1,,]", "{'a':1}", r#"{"a":nil}"#] {
            assert!(value(cut).is_err(), "{cut}");
        }
        assert_eq!(objects(r#"{"a":1}{"b":NaN}"#), [r#"{"a":1}"#, r#"{"b":null}"#]);
        for text in [r#"{"a":1}"#, r#"{"a":1}{"#, r#"{"a":1} 7"#, "", "{'a':1}{'a':1}"] {
            assert!(objects(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn strings_are_read_as_models_and_gateways_write_them() {
        for (text, meant) in [
            ("{\"a\":\"1\n\t2\r\"}", "1\n\t2\r"),
            (r#"{"a":"grep -E \d+ \. \'x\'"}"#, r"grep -E \d+ \. \'x\'"),
            (r#"{"a":"C:\users\u12"}"#, r"C:\users\u12"),
            (r#"{"a":"x\ud83d"}"#, "x\u{FFFD}"),
            (r#"{"a":"\ude00x\ud83d\ud83d\ude00"}"#, "\u{FFFD}x\u{FFFD}😀"),
            (r#"{"a":"\ud83d\n\\d\"\u00e9"}"#, "\u{FFFD}\n\\d\"é"),
        ] {
            assert_eq!(value(text).unwrap(), json!({"a": meant}), "{text}");
            assert_eq!(object(text), json!({"a": meant}).as_object().cloned(), "{text}");
        }
    }

    #[test]
    fn an_object_is_found_behind_an_empty_one() {
        let meant = json!({"a": 1}).as_object().cloned();
        for text in [r#"{"a":1}"#, r#"{}{"a":1}"#, " {} \n{\"a\":1} "] {
            assert_eq!(object(text), meant, "{text}");
        }
        assert_eq!(object("{} "), Some(Map::new()));
    }

    #[test]
    fn what_is_cut_or_could_be_read_in_two_ways_is_no_object() {
        for text in [
            "",
            "{",
            "[1]",
            r#"{"a":"#,
            r#"{"a":"b"#,
            r#"{"a":"b\"#,
            r#"{"a":"b\"}"#,
            r#"{}{"a":"#,
            r#"{"a":1}{"b":2}"#,
            r#"{"a":1}{}"#,
            r#"{"a":1}{"a":1}"#,
            r#"{"a":1}}"#,
            r#"{"a":1} ]}"#,
            "{}}",
            r#"{"a":1} and"#,
            r#"{"a":1},"#,
        ] {
            assert_eq!(object(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn strict_json_is_read_as_it_is_and_no_part_of_it_is_an_object(
            words in proptest::collection::vec("\\PC{0,6}|[\"\\\\\n\u{1}{}\\[\\]u]{0,6}", 1..4)
        ) {
            let map: Map<String, Value> = words.iter().map(|word| (word.clone(), json!([word, 1]))).collect();
            let text = Value::Object(map.clone()).to_string();
            prop_assert_eq!(strict(&text), text.clone());
            prop_assert_eq!(object(&text), Some(map));
            for (cut, _) in text.char_indices() {
                prop_assert_eq!(object(&text[..cut]), None);
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[{}\"\\\\ud8a\n1é]{0,24}") {
            let _ = (value(&text), object(&text));
        }
    }
}
