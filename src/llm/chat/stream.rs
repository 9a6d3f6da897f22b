//! The answer of Chat Completions. The wire has chunks of one message and no blocks, and its many
//! servers leave out ids, indexes and even the end; the blocks are made here.

use crate::llm::cause::Cause;
use crate::llm::chat::closed::Closed;
use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Ending, Fault, at, list, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::item::Content;
use crate::protocol::{Item, Role};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Finish reasons of a reply that failed at the provider: OpenRouter and Mistral (`error`), vLLM and SGLang
/// (`abort`), DeepSeek, Z.ai.
const BROKEN: [&str; 4] = ["error", "abort", "insufficient_system_resource", "network_error"];

/// Reads the events of one answer.
#[derive(Default)]
pub struct Decoder {
    open: Option<Open>,
    /// Words of white space alone that came for another block than the open one. Some servers send them between the
    /// pieces of a thought or of a call; they count once more words of their kind follow.
    blank: Option<(Kind, String)>,
    calls: Vec<Call>,
    /// The last call of each index and of each id of the wire.
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Thinking in the form of routers, pieces joined; sent back with the next thought.
    details: Vec<Value>,
    refusal: String,
    tags: Tags,
    /// Whether any words came.
    said: bool,
    ending: Ending,
}

/// Where in a message its text stands whose thinking comes in tags, as models write it whose server does not part them.
enum Tags {
    /// At the beginning, behind what may become the tag.
    Before(String),
    /// In the thinking, behind what may become its end.
    Inside(String),
    Behind,
}

impl Default for Tags {
    fn default() -> Self {
        Self::Before(String::new())
    }
}

const BEGIN: &str = "<think>";
const END: &str = "</think>";
/// The name of thinking from tags: no server takes it back.
const IN_TAGS: &str = "think";

/// A block of words under construction.
struct Open {
    kind: Kind,
    words: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    /// Thinking, which came under this name.
    Thinking(&'static str),
}

/// A tool call under construction.
#[derive(Default)]
struct Call {
    /// As the wire names it; may be empty.
    wire_id: String,
    id: String,
    name: String,
    arguments: String,
    closed: Closed,
    started: bool,
    /// What else came with it, such as a signature.
    more: Map<String, Value>,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if event.data.trim() == "[DONE]" {
            self.ending.last();
            return Ok(());
        }
        let mut data = wire::parse(event)?;
        let places = ["/usage", "/choices/0/usage", "/x_groq/usage"];
        let usage =
            places.iter().find_map(|place| data.pointer(place).filter(|usage| usage.is_object()));
        if let Some(usage) = usage {
            out.push(Delta::Usage(count(usage)));
        } else if data.get("choices").is_none() {
            out.push(Delta::Unknown(data));
            return Ok(());
        }
        if let Some(choice) = data.pointer_mut("/choices/0") {
            let choice = choice.take();
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        let called = !self.calls.is_empty();
        self.close_tags(out);
        let stop = self.ending.stop(called)?;
        self.close_words(out);
        for call in std::mem::take(&mut self.calls) {
            close_call(call, &stop, out);
        }
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            out.push(thought("", json!({"reasoning_details": details})));
        }
        Some(match stop {
            Stop::MaxTokens | Stop::ContextExceeded => stop,
            _ if !self.refusal.is_empty() => Stop::Refusal(std::mem::take(&mut self.refusal)),
            _ => stop,
        })
    }
}

impl Decoder {
    fn choice(&mut self, mut choice: Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            return Err(wire::reported(error));
        }
        // A server that repeats the whole message at its end says nothing new.
        let has_begun = self.said || !self.calls.is_empty();
        let key = if choice.get("delta").is_some() || has_begun { "delta" } else { "message" };
        if let Some(Value::Object(delta)) = choice.get_mut(key).map(Value::take) {
            self.delta(delta, out);
            if key == "message" && (self.said || !self.calls.is_empty()) {
                // It came in one piece.
                self.ending.last();
            }
        }
        let reason = text(&choice, "finish_reason");
        if BROKEN.contains(&reason) {
            let message = format!("the provider broke off its reply ({reason})");
            return Err(Fault::Reported { message, cause: Cause::Passes });
        }
        if !reason.is_empty() {
            self.ending.because(wire::stop(reason));
        }
        Ok(())
    }

    /// One piece of the message. The order within it is the order models speak in.
    fn delta(&mut self, mut delta: Map<String, Value>, out: &mut Vec<Delta>) {
        let thoughts = [delta.remove("reasoning_content"), delta.remove("reasoning")];
        for (name, words) in ["reasoning_content", "reasoning"].into_iter().zip(thoughts) {
            let words = words.as_ref().and_then(Value::as_str).unwrap_or("");
            if !words.is_empty() {
                self.say(Kind::Thinking(name), words, out);
                // Servers that send both names send the same words twice.
                break;
            }
        }
        if let Some(Value::Array(details)) = delta.remove("reasoning_details") {
            for detail in details {
                self.detail(detail, out);
            }
        }
        match delta.remove("content") {
            Some(Value::String(words)) => self.text(words, out),
            Some(Value::Array(parts)) => parts.into_iter().for_each(|part| self.part(part, out)),
            Some(part @ Value::Object(_)) => self.part(part, out),
            _ => {}
        }
        if let Some(Value::String(words)) = delta.remove("refusal") {
            self.say(Kind::Refusal, &words, out);
        }
        match delta.remove("tool_calls") {
            Some(Value::Array(calls)) => calls.into_iter().for_each(|call| self.call(call, out)),
            Some(call @ Value::Object(_)) => self.call(call, out),
            _ => {}
        }
        // The form before there were several calls.
        if let Some(function @ Value::Object(_)) = delta.remove("function_call") {
            self.call(json!({"index": 0, "function": function}), out);
        }
        delta.retain(|key, value| key != "role" && !value.is_null());
        if !delta.is_empty() {
            out.push(Delta::Unknown(Value::Object(delta)));
        }
    }

    /// A piece of content in the shape of parts, as some servers send thinking.
    fn part(&mut self, part: Value, out: &mut Vec<Delta>) {
        match text(&part, "type") {
            "text" => self.text(text(&part, "text").to_owned(), out),
            "thinking" => {
                let thoughts = list(&part, "thinking").iter().map(|thought| text(thought, "text"));
                let words: String = thoughts.collect();
                self.say(Kind::Thinking("reasoning_content"), &words, out);
            }
            _ => out.push(Delta::Unknown(part)),
        }
    }

    /// Text, of which the thinking in tags at the very beginning of the message is none.
    fn text(&mut self, words: String, out: &mut Vec<Delta>) {
        if words.is_empty() {
            return;
        }
        self.ending.piece();
        match std::mem::replace(&mut self.tags, Tags::Behind) {
            Tags::Before(_) if self.said => self.say(Kind::Text, &words, out),
            Tags::Before(begun) => {
                let (begun, came) = (begun + &words, words.len());
                let bare = begun.trim_start();
                if let Some(thinking) = bare.strip_prefix(BEGIN) {
                    self.tags = Tags::Inside(String::new());
                    self.text(thinking.to_owned(), out);
                } else if BEGIN.starts_with(bare) {
                    out.push(Delta::Unseen(came));
                    self.tags = Tags::Before(begun);
                } else {
                    self.say(Kind::Text, &begun, out);
                }
            }
            Tags::Inside(begun) => {
                let thinking = begun + &words;
                if let Some((thinking, behind)) = thinking.split_once(END) {
                    self.say(Kind::Thinking(IN_TAGS), thinking, out);
                    return self.text(behind.to_owned(), out);
                }
                let is_begun = |length: &usize| thinking.ends_with(&END[..*length]);
                let length = (1..END.len()).rev().find(is_begun).unwrap_or(0);
                let (thinking, begun) = thinking.split_at(thinking.len() - length);
                self.say(Kind::Thinking(IN_TAGS), thinking, out);
                self.tags = Tags::Inside(begun.to_owned());
            }
            Tags::Behind => {
                let is_in_tags = |open: &Open| open.kind == Kind::Thinking(IN_TAGS);
                let is_first = self.open.as_ref().is_some_and(is_in_tags);
                let words = if is_first { words.trim_start() } else { &words };
                self.say(Kind::Text, words, out);
            }
        }
    }

    /// The words that were held back because they might have become a tag.
    fn close_tags(&mut self, out: &mut Vec<Delta>) {
        match std::mem::replace(&mut self.tags, Tags::Behind) {
            Tags::Before(begun) => self.say(Kind::Text, &begun, out),
            Tags::Inside(begun) => self.say(Kind::Thinking(IN_TAGS), &begun, out),
            Tags::Behind => {}
        }
    }

    fn say(&mut self, kind: Kind, words: &str, out: &mut Vec<Delta>) {
        if words.is_empty() {
            return;
        }
        self.ending.piece();
        let mut words = words.to_owned();
        let blank = self.blank.take().filter(|(of, _)| *of == kind);
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            if let Some((_, blank)) = blank {
                words.insert_str(0, &blank);
            }
            if words.trim().is_empty() {
                out.push(Delta::Unseen(words.len()));
                self.blank = Some((kind, words));
                return;
            }
            self.close_words(out);
            if let Kind::Thinking(_) = kind {
                out.push(Delta::ThinkingStart);
            }
            self.open = Some(Open { kind, words: String::new() });
            self.said = true;
        }
        if let Some(open) = &mut self.open {
            open.words.push_str(&words);
        }
        out.push(match kind {
            Kind::Thinking(_) => Delta::Thinking(words),
            Kind::Text | Kind::Refusal => Delta::Text(words),
        });
    }

    /// Joins a piece of router thinking to the one it continues.
    fn detail(&mut self, piece: Value, out: &mut Vec<Delta>) {
        let continues = |known: &&mut Value| {
            piece.get("index").is_some_and(|index| known.get("index") == Some(index))
                && text(known, "type") == text(&piece, "type")
        };
        let Some(known) = self.details.iter_mut().find(continues) else {
            out.push(wire::kept(&piece));
            return self.details.push(piece);
        };
        let Value::Object(fields) = piece else { return };
        for (key, value) in fields {
            out.push(wire::kept_field(&key, &value));
            match (known.get_mut(&key), value) {
                (Some(Value::String(whole)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    whole.push_str(&more);
                }
                (_, Value::Null) => {}
                (_, value) => known[&key] = value,
            }
        }
    }

    fn call(&mut self, mut piece: Value, out: &mut Vec<Delta>) {
        self.ending.piece();
        let known = self.calls.len();
        let place = self.place(&piece);
        if place == known {
            self.close_tags(out);
            // Words between the pieces of one call are one block.
            self.close_words(out);
        }
        let id_bytes = text(&piece, "id").len();
        let call = &mut self.calls[place];
        let function = piece["function"].take();
        let name = text(&function, "name");
        if name.starts_with(&call.name) {
            name.clone_into(&mut call.name);
        } else if call.arguments.is_empty() && !call.name.ends_with(name) {
            // A part of a name is the name of another tool.
            call.name.push_str(name);
        }
        let json = match at(&function, "arguments") {
            Value::String(json) => json.clone(),
            Value::Null => String::new(),
            whole => whole.to_string(),
        };
        let unsaid = call.arguments.len();
        call.arguments.push_str(&json);
        call.closed.push(&json);
        if let Value::Object(fields) = piece {
            let known = |key: &str| matches!(key, "index" | "id" | "type" | "function");
            for (key, value) in fields {
                if !known(&key) && !value.is_null() {
                    out.push(wire::kept_field(&key, &value));
                    call.more.insert(key, value);
                }
            }
        }
        if call.name.is_empty() {
            return out.push(Delta::Unseen(size_of::<Call>() + id_bytes + json.len()));
        }
        let (id, name) = (call.id.clone(), call.name.clone());
        let first = !std::mem::replace(&mut call.started, true);
        let json = call.arguments[if first { 0 } else { unsaid }..].to_owned();
        if first {
            out.push(Delta::ToolCallStart { id: id.clone(), name });
        }
        if !json.is_empty() {
            out.push(Delta::ToolCallArgs { id, json });
        }
    }

    /// The call that `piece` belongs to, a new one if it opens one. Index and id may be missing,
    /// and some servers send every whole call under index 0.
    fn place(&mut self, piece: &Value) -> usize {
        let index = at(piece, "index").as_u64();
        let id = text(piece, "id");
        let named = !text(at(piece, "function"), "name").is_empty();
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if !id.is_empty() => self.by_id.get(id).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let known = known.filter(|place| {
            let call = &self.calls[*place];
            let other = !id.is_empty() && !call.wire_id.is_empty() && call.wire_id != id;
            let next = named && id.is_empty() && (call.closed.is_closed() || index.is_none());
            !other && !next
        });
        known.unwrap_or_else(|| {
            let wire_id = id.to_owned();
            let id = if id.is_empty() { wire::call_id() } else { wire_id.clone() };
            let place = self.calls.len();
            self.by_index.extend(index.map(|index| (index, place)));
            self.by_id.insert(wire_id.clone(), place);
            self.calls.push(Call { wire_id, id, ..Call::default() });
            place
        })
    }

    fn close_words(&mut self, out: &mut Vec<Delta>) {
        let Some(Open { kind, words }) = self.open.take() else { return };
        match kind {
            Kind::Text => {
                let item = Item::message(Role::Assistant, words);
                out.push(Delta::Block { item, native: None, cut: false });
            }
            Kind::Refusal => {
                self.refusal.push_str(&words);
                let content = vec![Content::Refusal { refusal: words }];
                let item = Item::Message { role: Role::Assistant, content };
                out.push(Delta::Block { item, native: None, cut: false });
            }
            Kind::Thinking(name) => {
                let mut native = json!({name: words});
                if !self.details.is_empty() {
                    native["reasoning_details"] = json!(std::mem::take(&mut self.details));
                }
                out.push(thought(&words, native));
            }
        }
    }
}

fn close_call(call: Call, stop: &Stop, out: &mut Vec<Delta>) {
    let Call { id, name, more, closed, .. } = call;
    // The wire does not say that a call is complete. One without arguments ends with its reply.
    let is_empty = wire::is_nothing(&call.arguments) && stop.is_own_end();
    let cut = !closed.is_closed() && !is_empty;
    let sent_back = wire::arguments_text(&call.arguments);
    let mut native = json!({
        "id": id, "type": "function", "function": {"name": name, "arguments": sent_back},
    });
    for (key, value) in more {
        native[key] = value;
    }
    let arguments = wire::received_arguments(&call.arguments);
    let item = Item::ToolCall { call_id: id, name, arguments };
    out.push(Delta::Block { item, native: Some(native), cut });
}

fn thought(words: &str, native: Value) -> Delta {
    let details = list(&native, "reasoning_details");
    let find = |key| details.iter().find_map(|detail| at(detail, key).as_str());
    let item = Item::Reasoning {
        text: words.into(),
        summary: Vec::new(),
        encrypted_content: find("data").map(str::to_owned),
        signature: find("signature").map(str::to_owned),
    };
    Delta::Block { item, native: Some(native), cut: false }
}

fn count(usage: &Value) -> Usage {
    let number = |value: &Value, key| at(value, key).as_u64();
    let prompt = at(usage, "prompt_tokens_details");
    // DeepSeek, Moonshot, and gateways that keep Anthropic's names.
    let cached = ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"];
    let cache_read = cached.into_iter().find_map(|key| number(usage, key));
    Usage {
        input: number(usage, "prompt_tokens").or_else(|| number(usage, "input_tokens")),
        output: number(usage, "completion_tokens").or_else(|| number(usage, "output_tokens")),
        cache_read: number(prompt, "cached_tokens").or(cache_read),
        cache_write: number(prompt, "cache_write_tokens"),
        reasoning: number(at(usage, "completion_tokens_details"), "reasoning_tokens"),
    }
}
