//! Where the words that a person reads lie in one line of the log, found without decoding the line:
//! it may be larger than what should be held in memory.

use crate::protocol::piece::TextSpan;

/// The longest name of a field that is looked at, in bytes.
const LONGEST_NAME: usize = 16;

/// Reads a line piece by piece and lists its texts.
#[derive(Default)]
pub struct TextScanner {
    /// How many bytes were read.
    at: u64,
    path: Vec<Level>,
    inside: Inside,
    /// The next string of the innermost object is the name of a field.
    name_follows: bool,
    pub texts: Vec<TextSpan>,
}

/// An object or a list that is open.
enum Level {
    /// With the name of the field that is being read.
    Object(Vec<u8>),
    List,
}

#[derive(Clone, Copy, Default)]
enum Inside {
    #[default]
    Structure,
    Name {
        escaped: bool,
    },
    Text {
        start: u64,
        field: Option<&'static str>,
        escaped: bool,
    },
}

impl TextScanner {
    /// Reads the next bytes of the line.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
            self.at += 1;
        }
    }

    fn byte(&mut self, byte: u8) {
        match self.inside {
            Inside::Structure => self.structure(byte),
            Inside::Name { escaped: true } => self.inside = Inside::Name { escaped: false },
            Inside::Name { escaped: false } => match byte {
                b'"' => self.inside = Inside::Structure,
                b'\\' => self.inside = Inside::Name { escaped: true },
                byte => self.name(byte),
            },
            Inside::Text { start, field, escaped: true } => {
                self.inside = Inside::Text { start, field, escaped: false };
            }
            Inside::Text { start, field, escaped: false } => match byte {
                b'"' => {
                    let end = self.at;
                    let span = |field: &str| TextSpan { field: field.to_owned(), start, end };
                    self.texts.extend(field.map(span));
                    self.inside = Inside::Structure;
                }
                b'\\' => self.inside = Inside::Text { start, field, escaped: true },
                _ => {}
            },
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' => {
                self.path.push(Level::Object(Vec::new()));
                self.name_follows = true;
            }
            b'[' => {
                self.path.push(Level::List);
                self.name_follows = false;
            }
            b'}' | b']' => {
                self.path.pop();
                self.name_follows = false;
            }
            b':' => self.name_follows = false,
            b',' => self.name_follows = matches!(self.path.last(), Some(Level::Object(_))),
            b'"' if self.name_follows => {
                if let Some(Level::Object(name)) = self.path.last_mut() {
                    name.clear();
                }
                self.inside = Inside::Name { escaped: false };
            }
            b'"' => {
                let (start, field) = (self.at + 1, self.field());
                self.inside = Inside::Text { start, field, escaped: false };
            }
            _ => {}
        }
    }

    fn name(&mut self, byte: u8) {
        if let Some(Level::Object(name)) = self.path.last_mut()
            && name.len() <= LONGEST_NAME
        {
            name.push(byte);
        }
    }

    /// The name of the field that is being read, when a person reads it.
    fn field(&self) -> Option<&'static str> {
        let mut names = [""; 4];
        for (name, level) in names.iter_mut().zip(&self.path) {
            *name = match level {
                Level::Object(name) => std::str::from_utf8(name).unwrap_or(""),
                Level::List => "*",
            };
        }
        match names.get(..self.path.len())? {
            ["item", "content", "*", "text"] | ["item", "text"] => Some("text"),
            ["item", "content", "*", "refusal"] => Some("refusal"),
            ["item", "summary"] => Some("summary"),
            ["item", "content"] | ["segments", "*", "content"] => Some("content"),
            ["item", "arguments"] => Some("arguments"),
            ["item", "body"] => Some("body"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::entry::{Entry, Fact};
    use crate::protocol::item::{Content, Item, Role};
    use crate::protocol::method::Segment;
    use proptest::prelude::*;
    use serde_json::json;

    fn texts(line: &str, chunk: usize) -> Vec<(String, String)> {
        let mut scanner = TextScanner::default();
        line.as_bytes().chunks(chunk).for_each(|bytes| scanner.push(bytes));
        let text = |span: &TextSpan| {
            let (start, end) = (span.start as usize, span.end as usize);
            let text: String = serde_json::from_str(&line[start - 1..=end]).unwrap();
            (span.field.clone(), text)
        };
        scanner.texts.iter().map(text).collect()
    }

    fn assistant(item: Item) -> String {
        let native = Some(json!({"text": "not this", "item": {"text": "nor this"}}));
        let fact = Fact::AssistantItem { item, origin: None, native, partial: false };
        serde_json::to_string(&Entry::new(fact)).unwrap()
    }

    proptest! {
        #[test]
        fn the_text_of_a_message_is_found_whatever_it_holds(
            pieces in prop::collection::vec("\\PC*|[\\\\\"\n\t{}\\[\\],:]*", 0..4),
            chunk in 1usize..40,
        ) {
            let text = |text: &String| Content::Text { text: text.clone() };
            let content = pieces.iter().map(text).collect();
            let line = assistant(Item::Message { role: Role::Assistant, content });
            let expected: Vec<(String, String)> =
                pieces.into_iter().map(|text| ("text".to_owned(), text)).collect();
            prop_assert_eq!(texts(&line, chunk), expected);
        }
    }

    #[test]
    fn every_field_that_a_person_reads_is_named() {
        let call = Item::ToolCall {
            call_id: "c".into(),
            name: "Write".into(),
            arguments: r#"{"a":"\n"}"#.into(),
        };
        let named = |field: &str, text: &str| (field.to_owned(), text.to_owned());
        assert_eq!(texts(&assistant(call), 7), [named("arguments", r#"{"a":"\n"}"#)]);
        let thought = Item::Reasoning {
            text: "hm".into(),
            summary: vec!["s".into()],
            encrypted_content: Some("e".into()),
            signature: None,
        };
        assert_eq!(texts(&assistant(thought), 7), [named("text", "hm")]);
        let result = Item::ToolResult {
            call_id: "c".into(),
            summary: "Read".into(),
            content: Some("1\n2".into()),
            is_error: false,
            images: Vec::new(),
        };
        let entry = Entry::new(Fact::ToolResult { item: result, files: Vec::new(), sent: None });
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(texts(&line, 3), [named("summary", "Read"), named("content", "1\n2")]);
        let text = |content: &str| Segment::Text { content: content.into() };
        let file = Segment::FileRef { path: "a.rs".into() };
        let segments = vec![text("look at"), file, text("now")];
        let input = Entry::new(Fact::UserInput { segments, taken: None, from: None });
        let line = serde_json::to_string(&input).unwrap();
        assert_eq!(texts(&line, 5), [named("content", "look at"), named("content", "now")]);
    }
}
