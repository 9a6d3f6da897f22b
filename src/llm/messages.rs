//! The JSON of a request. A message is written as soon as nothing can change it any more: as values in
//! memory, the messages of a long conversation take many times their size, in blocks so small that the
//! allocator keeps them from the system.

use crate::llm::wire::text;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A JSON array that is written element by element.
#[derive(Debug, Default)]
pub struct List(Vec<u8>);

impl List {
    pub fn push(&mut self, element: &Value) {
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        // Writing to memory does not fail, and neither does encoding a value.
        let _ = serde_json::to_writer(&mut self.0, element);
    }

    /// The array as the field `name` of an object, behind the fields of `object`.
    pub fn in_object(self, name: &str, object: &Value) -> Vec<u8> {
        let mut json = object.to_string().into_bytes();
        json.pop();
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(format!("{}:", Value::from(name)).as_bytes());
        json.extend(if self.0.is_empty() { vec![b'['] } else { self.0 });
        json.extend_from_slice(b"]}");
        json
    }
}

/// What a wire does to each message before it is written; `false` leaves the message out.
pub type Finish<'f> = Box<dyn FnMut(&mut Value) -> bool + 'f>;

/// The messages of a conversation, oldest first.
pub struct Messages<'f> {
    written: List,
    /// Messages that may still change: the last one, and those from `marked` user messages before the
    /// end on.
    open: VecDeque<Value>,
    /// How many of the newest user messages may get a cache marker at the end.
    marked: usize,
    finish: Finish<'f>,
}

impl<'f> Messages<'f> {
    pub fn new(marked: usize, finish: Finish<'f>) -> Self {
        Self { written: List::default(), open: VecDeque::new(), marked, finish }
    }

    pub fn last(&self) -> Option<&Value> {
        self.open.back()
    }

    /// Whether the last message is one of `role`.
    pub fn ends_with(&self, role: &str) -> bool {
        self.last().is_some_and(|last| text(last, "role") == role)
    }

    /// The last message if it is one of `role`, else the one that begins after it.
    pub fn of_role(&mut self, role: &str, begin: impl FnOnce() -> Value) -> &mut Value {
        if !self.ends_with(role) {
            self.push(begin());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// Begins a message.
    pub fn push(&mut self, message: Value) {
        let is_user = text(&message, "role") == "user";
        let kept = self.marked.saturating_sub(usize::from(is_user));
        // Without a user message among them, none of the open ones can be marked.
        let front_is_user = self.open.front().is_some_and(|front| text(front, "role") == "user");
        let first_kept = match kept {
            0 => self.open.len(),
            _ if !front_is_user => self.open.len(),
            _ if !is_user => 0,
            kept => {
                let open = self.open.iter().enumerate().rev();
                let mut users = open.filter(|(_, message)| text(message, "role") == "user");
                users.nth(kept - 1).map_or(0, |(index, _)| index)
            }
        };
        self.write(first_kept);
        self.open.push_back(message);
    }

    /// Appends `block` to the last message when `role` speaks on, else to a new message of `role`.
    pub fn push_block(&mut self, role: &str, key: &str, block: Value) {
        let message = self.of_role(role, || json!({"role": role, key: []}));
        if let Some(blocks) = message[key].as_array_mut() {
            blocks.push(block);
        }
    }

    /// The newest user messages, as many as may be marked, newest first.
    pub fn newest_users(&mut self) -> impl Iterator<Item = &mut Value> {
        let users = self.open.iter_mut().rev().filter(|message| text(message, "role") == "user");
        users.take(self.marked)
    }

    /// Writes what is still open.
    pub fn finish(mut self) -> List {
        self.write(self.open.len());
        self.written
    }

    fn write(&mut self, count: usize) {
        for mut message in self.open.drain(..count) {
            if (self.finish)(&mut message) {
                self.written.push(&message);
            }
        }
    }
}

/// Ends a message in a cache marker of Anthropic.
pub fn mark(message: &mut Value) {
    let last = message["content"].as_array_mut().and_then(|parts| parts.last_mut());
    if let Some(part) = last {
        part["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Marks the first message of a user that it is given: that marker stays where it is while the conversation
/// grows, so that the beginning is found in the cache also behind a change of what follows.
#[derive(Default)]
pub struct FirstMarker {
    is_set: bool,
}

impl FirstMarker {
    pub fn take(&mut self, message: &mut Value) {
        if !self.is_set && text(message, "role") == "user" {
            self.is_set = true;
            mark(message);
        }
    }
}

/// Puts the blocks of a message for which `is_first` holds before the others.
pub fn put_first(message: &mut Value, key: &str, is_first: impl Fn(&Value) -> bool) {
    if let Some(blocks) = message.get_mut(key).and_then(Value::as_array_mut) {
        blocks.sort_by_key(|block| !is_first(block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(list: List) -> Value {
        let json: Value = serde_json::from_slice(&list.in_object("list", &json!({}))).unwrap();
        json["list"].clone()
    }

    #[test]
    fn a_list_is_a_field_behind_the_others() {
        let written = |count: u64, object: Value| {
            let mut list = List::default();
            (0..count).for_each(|n| list.push(&json!({"n": n})));
            String::from_utf8(list.in_object("a\"b", &object)).unwrap()
        };
        assert_eq!(written(0, json!({})), r#"{"a\"b":[]}"#);
        assert_eq!(written(0, json!({"x": 1})), r#"{"x":1,"a\"b":[]}"#);
        assert_eq!(written(2, json!({"x": 1})), r#"{"x":1,"a\"b":[{"n":0},{"n":1}]}"#);
    }

    /// Every order of the roles of so many messages.
    fn orders(length: u32) -> impl Iterator<Item = Vec<&'static str>> {
        let role = |digit| ["user", "assistant", "tool"][digit];
        let digits = move |n: usize| (0..length).map(move |at| n / 3_usize.pow(at) % 3);
        (0..3_usize.pow(length)).map(move |n| digits(n).map(role).collect())
    }

    #[test]
    fn the_newest_user_messages_can_be_marked_in_every_order_of_roles() {
        for (marked, roles) in (0..3).flat_map(|marked| orders(6).map(move |roles| (marked, roles)))
        {
            let mut messages = Messages::new(marked, Box::new(|_| true));
            let mut expected = Vec::new();
            for (n, role) in roles.iter().enumerate() {
                messages.push(json!({"role": role, "n": n}));
                expected.push(json!({"role": role, "n": n}));
            }
            messages.newest_users().for_each(|message| message["marked"] = json!(true));
            let users = expected.iter_mut().rev().filter(|message| message["role"] == "user");
            users.take(marked).for_each(|message| message["marked"] = json!(true));
            assert_eq!(array(messages.finish()), Value::Array(expected), "{marked} {roles:?}");
        }
    }

    #[test]
    fn a_long_conversation_is_not_held_as_values() {
        let mut messages = Messages::new(2, Box::new(|_| true));
        for n in 0..1000 {
            messages.push_block("user", "content", json!(n));
            messages.push_block("user", "content", json!("and"));
            messages.push_block("assistant", "content", json!(n));
            assert!(messages.open.len() <= 4, "{} messages are held", messages.open.len());
        }
        assert_eq!(array(messages.finish()).as_array().map(Vec::len), Some(2000));
    }
}
