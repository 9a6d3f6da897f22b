//! JSON as models and gateways write it: line ends within strings, escapes that JSON does not know, halves of surrogate
//! pairs. What was cut stays an error: nothing is ever completed.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

/// The value of a text whose strings may be written loosely.
pub fn value(text: &str) -> serde_json::Result<Value> {
    read(text)
}

/// Whether a text is one value by the same rule.
pub fn is_value(text: &str) -> bool {
    read::<IgnoredAny>(text).is_ok()
}

fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_str(&strict_strings(text)).map_err(|_| error))
}

/// The text as one object, before which `{}` may stand: some gateways begin the arguments of a call with it.
pub fn object(text: &str) -> Option<Map<String, Value>> {
    let behind = text.trim_start().strip_prefix("{}").filter(|rest| !rest.trim().is_empty());
    read(behind.unwrap_or(text)).ok()
}

/// The text with its strings in strict JSON: control characters escaped, the backslash of an unknown escape as a
/// character of its own, and half a surrogate pair as U+FFFD.
pub fn strict_strings(text: &str) -> String {
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
            _ => strict.push(c),
        }
        rest = &rest[length..];
    }
    strict
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
            prop_assert_eq!(strict_strings(&text), text.clone());
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
