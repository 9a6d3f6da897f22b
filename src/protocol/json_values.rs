//! Counts the values of JSON text before it is parsed. A value needs much more memory than the byte
//! or two of its text, so text of other programs is limited.

use serde_json::Value;

/// The most values in one piece of JSON text that is read whole.
pub const MAX_VALUES: usize = 1 << 18;

/// The memory of an object without its fields, and of a key without its text.
const OBJECT: usize = 512;
const KEY: usize = size_of::<String>();

/// Counts the values of a text that may come in pieces; keys of objects count, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueCount {
    separators: usize,
    in_string: bool,
    escaped: bool,
}

impl ValueCount {
    /// Whether a whole text has more than `MAX_VALUES` values.
    pub fn is_too_many(json: impl AsRef<[u8]>) -> bool {
        let json = json.as_ref();
        // A value needs at least one byte of text.
        json.len() > MAX_VALUES && {
            let mut count = Self::default();
            count.add(json);
            count.exceeds_limit()
        }
    }

    /// Counts the values of the next piece of a text.
    pub fn add(&mut self, json: impl AsRef<[u8]>) {
        for byte in json.as_ref() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b',' | b':' | b'[' | b'{' if !self.in_string => self.separators += 1,
                _ => {}
            }
        }
    }

    /// Whether there are more than `MAX_VALUES` values.
    pub fn exceeds_limit(&self) -> bool {
        // There is one value more than separators.
        self.separators >= MAX_VALUES
    }
}

/// The approximate memory of a value, in bytes.
pub fn value_memory(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_memory).sum(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| KEY + key.len() + value_memory(value);
            OBJECT + fields.iter().map(field).sum::<usize>()
        }
    };
    size_of::<Value>() + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(json: &str) -> usize {
        let mut whole = ValueCount::default();
        whole.add(json);
        let mut pieces = ValueCount::default();
        for (at, c) in json.char_indices() {
            pieces.add(&json[at..at + c.len_utf8()]);
        }
        assert_eq!(whole.separators, pieces.separators, "{json}");
        whole.separators + 1
    }

    #[test]
    fn values_and_keys_are_counted_and_text_in_strings_is_not() {
        assert_eq!(counted("7"), 1);
        assert_eq!(counted("[0,0]"), 3);
        assert_eq!(counted(r#"{"a":1,"b":[]}"#), 6);
        assert_eq!(counted(r#""a,b:[{\",\\""#), 1);
        assert_eq!(counted(r#"["\"",0]"#), 3);
    }

    #[test]
    fn small_values_take_more_memory_than_text() {
        let value = |json: &str| serde_json::from_str(json).unwrap();
        assert!(value_memory(&value("[0,0,0]")) >= 4 * size_of::<Value>());
        assert!(value_memory(&value(r#"[{"":0}]"#)) > OBJECT);
        let long = "x".repeat(1 << 20);
        let memory = value_memory(&value(&format!("\"{long}\"")));
        assert!((1 << 20..(1 << 20) + 100).contains(&memory), "{memory}");
    }

    #[test]
    fn a_text_of_many_values_is_refused_and_a_long_string_is_not() {
        let many = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(!ValueCount::is_too_many(many(MAX_VALUES)));
        assert!(ValueCount::is_too_many(many(MAX_VALUES + 1)));
        assert!(!ValueCount::is_too_many(format!("\"{}\"", "0,".repeat(MAX_VALUES))));
    }
}
