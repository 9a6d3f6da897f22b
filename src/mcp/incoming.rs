//! Checks the text of a message before it is decoded. A value takes much more memory than its text, so a message with
//! too many values, or one that is too long, becomes the failure of the request that it answers.

use crate::protocol::{MAX_VALUES, ValueCount};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;

/// The fields by which a message is recognised whose rest is not decoded.
#[derive(Deserialize)]
pub struct Named {
    pub id: RequestId,
}

/// Decodes a message; `None` if the text is not a message.
pub fn read(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let text = std::str::from_utf8(text).ok()?;
    if ValueCount::is_too_many(text) {
        return unread(text);
    }
    serde_json::from_str(text).ok()
}

/// The failure of the request that a message with too many values answers.
pub fn unread(text: &str) -> Option<ServerJsonRpcMessage> {
    let Named { id } = serde_json::from_str(text).ok()?;
    let why = format!("its answer has more than {MAX_VALUES} JSON values, which is not read");
    Some(ServerJsonRpcMessage::error(ErrorData::parse_error(why, None), Some(id)))
}

/// The failure of a request whose answer is longer than the limit, in bytes.
pub fn too_long(id: RequestId, limit: usize) -> ServerJsonRpcMessage {
    let why = format!(
        "its answer is longer than {} MiB, which is the most that is read: ask for less at once",
        limit >> 20
    );
    ServerJsonRpcMessage::error(ErrorData::parse_error(why, None), Some(id))
}

/// Bytes of a key or an id that are kept.
const MAX_TOKEN: usize = 256;

/// Finds the `id` of a message while its text passes by, without keeping the text.
#[derive(Debug, Default)]
pub struct IdFinder {
    /// Open objects and lists.
    depth: usize,
    in_string: bool,
    /// Whether the byte before was the backslash of an escape.
    is_escaped: bool,
    /// Whether the value of a member of the message is read, not its key.
    in_value: bool,
    is_of_id: bool,
    /// The beginning of the key, or of the value if that is no object and no list.
    token: Vec<u8>,
    id: Option<RequestId>,
}

impl IdFinder {
    pub fn read(&mut self, mut text: &[u8]) {
        while let Some((byte, rest)) = text.split_first() {
            self.byte(*byte);
            text = rest;
            if self.in_string && !self.is_escaped && self.depth != 1 {
                // Nothing else counts in a text that is no part of a key or an id.
                let end = memchr::memchr2(b'"', b'\\', text).unwrap_or(text.len());
                text = &text[end..];
            }
        }
    }

    /// The id of the message, if it has one so far.
    pub fn id(self) -> Option<RequestId> {
        self.id
    }

    fn byte(&mut self, byte: u8) {
        let is_member = self.depth == 1;
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if is_member {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if is_member && !self.in_value => {
                self.is_of_id = self.token == br#""id""#;
                self.in_value = true;
                self.token.clear();
            }
            b',' if is_member => self.end_member(),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    /// Keeps a byte of a key or a value of the message itself.
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.is_of_id && self.id.is_none() {
            self.id = serde_json::from_slice(&self.token).ok();
        }
        (self.in_value, self.is_of_id) = (false, false);
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::JsonRpcMessage;

    /// An answer to request 7 that has so many values.
    fn answer(values: usize) -> String {
        // The message, its four keys and their values, without those of the list.
        const AROUND: usize = 9;
        let list = "0,".repeat(values - AROUND - 1);
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{list}0]}}}}"#)
    }

    #[test]
    fn an_answer_of_too_many_values_is_not_read_and_fails_its_request() {
        let most = read(answer(MAX_VALUES).as_bytes());
        assert!(matches!(most, Some(JsonRpcMessage::Response(_))), "{most:?}");
        let Some(JsonRpcMessage::Error(error)) = read(answer(MAX_VALUES + 1).as_bytes()) else {
            panic!("it was read");
        };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        assert!(error.error.message.contains("more than 262144 JSON values"), "{error:?}");
    }

    /// The id that is found when a text arrives in pieces of this length.
    fn found(text: &str, piece: usize) -> Option<RequestId> {
        let mut finder = IdFinder::default();
        text.as_bytes().chunks(piece).for_each(|piece| finder.read(piece));
        finder.id()
    }

    #[test]
    fn the_id_of_a_message_is_found_wherever_it_stands_and_in_no_other_place() {
        let tricky = r#"{"id": 1, "\"id\"": ["id", 2, {"id": 3}], "x\\": "\",\"id\":4}"}"#;
        for (text, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#.to_owned(),
                Some(RequestId::Number(7)),
            ),
            (
                r#"{"result":{"id":8},"jsonrpc":"2.0", "id" : 7 }"#.to_owned(),
                Some(RequestId::Number(7)),
            ),
            (
                format!(r#"{{"result":{tricky},"id":"a\"b"}}"#),
                Some(RequestId::String("a\"b".into())),
            ),
            (format!(r#"{{"result":[{tricky}],"error":"id"}}"#), None),
            (r#"["id",7]"#.to_owned(), None),
            ("id: 7".to_owned(), None),
            (format!(r#"{{"id":"{}"}}"#, "x".repeat(1000)), None),
        ] {
            for piece in [1, 3, text.len()] {
                assert_eq!(found(&text, piece), id, "{text}");
            }
        }
    }

    #[test]
    fn values_that_belong_to_no_request_are_no_message() {
        let many = "{\"\":0},".repeat(MAX_VALUES);
        for text in [format!("[{many}0]"), format!(r#"{{"method":"x","params":[{many}0]}}"#)] {
            assert!(read(text.as_bytes()).is_none());
        }
    }
}
