//! The answer of OpenAI Responses: items that are announced, streamed and completed.

use crate::llm::cause::Cause;
use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Ending, Fault, at, list, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::item::Content;
use crate::protocol::{Item, Role};
use serde_json::{Value, json};

/// Types of items.
const MESSAGE: &str = "message";
const REASONING: &str = "reasoning";
const CALL: &str = "function_call";

/// Reads the events of one answer.
///
/// Servers that imitate this API give an item another id in each event, leave out its index, or give the same index
/// to several items. So an event belongs to the open item of its id, else to that of its index, else to the newest,
/// and to none of another type.
#[derive(Default)]
pub struct Decoder {
    /// The items under construction, in the order they were announced.
    open: Vec<Open>,
    /// Id and type of the complete items that the last event has not named yet.
    closed: Vec<(String, String)>,
    refusal: String,
    saw_call: bool,
    ending: Ending,
}

/// An item under construction.
#[derive(Default)]
struct Open {
    index: Option<u64>,
    /// The announced item; null if it was not announced.
    item: Value,
    /// The streamed part of its text, or of a thought.
    text: String,
    /// The streamed part of the summary of a thought.
    summary: String,
    refusal: String,
    arguments: String,
    /// Its arguments came whole, said the server.
    has_all_arguments: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let data = wire::parse(event)?;
        let delta = text(&data, "delta");
        match text(&data, "type") {
            "response.output_item.added" => self.start(&data, out),
            "response.output_item.done" => self.done(&data, out),
            "response.output_text.delta" => {
                self.open(&data, MESSAGE).text.push_str(delta);
                out.push(Delta::Text(delta.into()));
            }
            "response.refusal.delta" => {
                self.open(&data, MESSAGE).refusal.push_str(delta);
                out.push(Delta::Text(delta.into()));
            }
            "response.reasoning_summary_text.delta" => {
                self.open(&data, REASONING).summary.push_str(delta);
                out.push(Delta::Thinking(delta.into()));
            }
            "response.reasoning_text.delta" => {
                self.open(&data, REASONING).text.push_str(delta);
                out.push(Delta::Thinking(delta.into()));
            }
            "response.reasoning_summary_part.added" => self.paragraph(&data, out),
            "response.function_call_arguments.delta" => self.arguments(&data, out),
            "response.function_call_arguments.done" => {
                let whole = text(&data, "arguments");
                let open = self.open(&data, CALL);
                complete(&mut open.arguments, whole);
                open.has_all_arguments = true;
            }
            "response.output_text.done" => {
                complete(&mut self.open(&data, MESSAGE).text, text(&data, "text"));
            }
            "response.content_part.done" => {
                let part = at(&data, "part");
                let open = self.open(&data, MESSAGE);
                match text(part, "type") {
                    "output_text" => complete(&mut open.text, text(part, "text")),
                    "refusal" => complete(&mut open.refusal, text(part, "refusal")),
                    _ => {}
                }
            }
            "response.refusal.done" => {
                complete(&mut self.open(&data, MESSAGE).refusal, text(&data, "refusal"));
            }
            "response.reasoning_text.done" => {
                complete(&mut self.open(&data, REASONING).text, text(&data, "text"));
            }
            "response.reasoning_summary_text.done" => {
                let summary = &mut self.open(&data, REASONING).summary;
                if !summary.ends_with(text(&data, "text")) {
                    complete(summary, text(&data, "text"));
                }
            }
            kind @ ("response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed") => return self.end(kind, at(&data, "response"), out),
            kind if is_echo(kind) => {}
            // A reply in one piece, from a server that does not stream.
            "" if data.get("output").is_some_and(Value::is_array)
                || text(&data, "object") == "response" =>
            {
                return self.end("", &data, out);
            }
            _ => out.push(Delta::Unknown(data)),
        }
        Ok(())
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        let stop = self.ending.stop(self.saw_call)?;
        self.close_open(out);
        Some(stop)
    }
}

/// Events that repeat what others say.
fn is_echo(kind: &str) -> bool {
    matches!(
        kind,
        "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.content_part.added"
            | "response.output_text.annotation.added"
            | "response.reasoning_summary_part.done"
            | "keepalive"
    )
}

/// The whole text of a final event counts where pieces of it were lost.
fn complete(streamed: &mut String, whole: &str) {
    if streamed.len() < whole.len() {
        whole.clone_into(streamed);
    }
}

impl Decoder {
    /// The place of the open item that an event about an item of this type belongs to.
    fn place(&self, id: &str, index: Option<u64>, kind: &str) -> Option<usize> {
        let fits = |open: &Open| open.item.is_null() || text(&open.item, "type") == kind;
        let last = |is_it: &dyn Fn(&Open) -> bool| {
            self.open.iter().rposition(|open| fits(open) && is_it(open))
        };
        let has_id = |open: &Open| !id.is_empty() && text(&open.item, "id") == id;
        let has_index = |open: &Open| open.index == index;
        last(&has_id).or_else(|| last(&has_index)).or_else(|| {
            // An index that no open item has belongs to a new item.
            if index.is_none() { last(&|_| true) } else { None }
        })
    }

    /// The open item of an event; a new item if none was announced.
    fn open(&mut self, data: &Value, kind: &str) -> &mut Open {
        let index = at(data, "output_index").as_u64();
        let place = self.place(text(data, "item_id"), index, kind).unwrap_or_else(|| {
            self.open.push(Open { index, ..Open::default() });
            self.open.len() - 1
        });
        &mut self.open[place]
    }

    /// Removes and returns the open item that this final form completes.
    fn take(&mut self, item: &Value, index: Option<u64>) -> Open {
        let place = self.place(text(item, "id"), index, text(item, "type"));
        place.map(|place| self.open.remove(place)).unwrap_or_default()
    }

    fn start(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let item = at(data, "item");
        match text(item, "type") {
            REASONING => out.push(Delta::ThinkingStart),
            CALL => out.push(Delta::ToolCallStart {
                id: text(item, "call_id").into(),
                name: text(item, "name").into(),
            }),
            _ => {}
        }
        out.push(wire::kept(item));
        let index = at(data, "output_index").as_u64();
        if !text(item, "id").is_empty() && self.open.iter().any(|open| open.item == *item) {
            // The event came twice.
            return;
        }
        let unannounced = |open: &&mut Open| open.item.is_null() && open.index == index;
        match self.open.iter_mut().find(unannounced) {
            Some(open) => open.item = item.clone(),
            None => self.open.push(Open { index, item: item.clone(), ..Open::default() }),
        }
    }

    fn paragraph(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let open = self.open(data, REASONING);
        if !open.summary.is_empty() {
            open.summary.push_str("\n\n");
            out.push(Delta::Thinking("\n\n".into()));
        }
    }

    fn arguments(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let (open, json) = (self.open(data, CALL), text(data, "delta"));
        open.arguments.push_str(json);
        let id = text(&open.item, "call_id");
        if !id.is_empty() {
            out.push(Delta::ToolCallArgs { id: id.into(), json: json.into() });
        }
    }

    fn done(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let item = at(data, "item");
        let (id, kind) = (text(item, "id").to_owned(), text(item, "type").to_owned());
        let is_same = |open: &Open| text(&open.item, "id") == id;
        let closed = (id.clone(), kind);
        if !id.is_empty() && self.closed.contains(&closed) && !self.open.iter().any(is_same) {
            // The event came twice.
            return;
        }
        let open = self.take(item, at(data, "output_index").as_u64());
        self.closed.push(closed);
        // Servers that imitate this API repeat the announced item, which was in progress.
        self.close(item.clone(), open, text(item, "status") == "incomplete", out);
    }

    /// An item has ended: commits it in the provider's form, filled from what was streamed where
    /// a server left the final form empty.
    fn close(&mut self, mut native: Value, open: Open, cut: bool, out: &mut Vec<Delta>) {
        out.push(Delta::Unseen(text(&native, "id").len()));
        let item = match text(&native, "type") {
            MESSAGE => {
                if let Some(words) = at(&native, "content").as_str() {
                    native["content"] = json!([part(&Content::Text { text: words.into() })]);
                }
                let content = content(&native, &open);
                if content.is_empty() {
                    return;
                }
                if !says_something(&native) {
                    native["content"] = content.iter().map(part).collect();
                }
                for part in &content {
                    if let Content::Refusal { refusal } = part {
                        self.refusal.push_str(refusal);
                    }
                }
                Item::Message { role: Role::Assistant, content }
            }
            REASONING => thought(&native, &open),
            CALL => {
                self.saw_call = true;
                let raw = match at(&native, "arguments") {
                    Value::Null => open.arguments,
                    Value::String(raw) if raw.is_empty() => open.arguments,
                    Value::String(raw) => raw.clone(),
                    whole => whole.to_string(),
                };
                native["arguments"] = json!(wire::arguments_text(&raw));
                let arguments = wire::received_arguments(&raw);
                let (id, name) = (text(&native, "call_id"), text(&native, "name"));
                Item::ToolCall { call_id: id.into(), name: name.into(), arguments }
            }
            _ => Item::Unknown(native.clone()),
        };
        out.push(Delta::Block { item, native: Some(native), cut });
    }

    /// Nothing more comes of the open items.
    fn close_open(&mut self, out: &mut Vec<Delta>) {
        for open in std::mem::take(&mut self.open) {
            let unannounced = json!({"type": MESSAGE, "role": "assistant", "content": []});
            let item = if open.item.is_null() { unannounced } else { open.item.clone() };
            let cut = !open.has_all_arguments && !wire::is_object(&open.arguments);
            self.close(item, open, cut, out);
        }
    }

    /// The last event names all items once more.
    fn end(&mut self, event: &str, response: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let (error, status) = (at(response, "error"), text(response, "status"));
        if !error.is_null() || event == "response.failed" || status == "failed" {
            return Err(wire::reported(error));
        }
        let output = list(response, "output");
        let unclosed: Vec<bool> = output.iter().map(|item| !self.has_closed(item)).collect();
        for (place, item) in output.iter().enumerate() {
            if unclosed[place] && !self.has_closed_by_another_id(item) {
                let open = self.take(item, Some(place as u64));
                self.close(item.clone(), open, is_cut(item), out);
            }
        }
        self.close_open(out);
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            out.push(Delta::Usage(count(usage)));
        }
        let reason = self.reason(response);
        let is_incomplete =
            event == "response.incomplete" || matches!(status, "incomplete" | "cancelled");
        if is_incomplete && reason.is_own_end() {
            let message = "the provider broke off its reply without a reason".to_owned();
            return Err(Fault::Reported { message, cause: Cause::Passes });
        }
        self.ending.because(reason);
        self.ending.last();
        Ok(())
    }

    /// Whether an item is complete already, under this id; asked once for each.
    fn has_closed(&mut self, item: &Value) -> bool {
        let id = text(item, "id");
        let place = self.closed.iter().position(|(closed, _)| !id.is_empty() && closed == id);
        place.map(|place| self.closed.remove(place)).is_some()
    }

    /// Whether an item was completed under an id that the last event does not name; asked once for each. A call that
    /// is taken for a new one would run twice.
    fn has_closed_by_another_id(&mut self, item: &Value) -> bool {
        let place = self.closed.iter().position(|(_, kind)| kind == text(item, "type"));
        place.map(|place| self.closed.remove(place)).is_some()
    }

    fn reason(&self, response: &Value) -> Stop {
        match text(at(response, "incomplete_details"), "reason") {
            "" if self.refusal.is_empty() => Stop::EndTurn,
            reason => match wire::stop(reason) {
                stop @ (Stop::MaxTokens | Stop::ContextExceeded) => stop,
                _ if !self.refusal.is_empty() => Stop::Refusal(self.refusal.clone()),
                stop => stop,
            },
        }
    }
}

/// Whether the provider says that its reply ended within this item.
fn is_cut(item: &Value) -> bool {
    matches!(text(item, "status"), "incomplete" | "in_progress")
}

/// Whether the final form of a message holds more than empty words.
fn says_something(native: &Value) -> bool {
    let is_empty = |part: &Value| match text(part, "type") {
        "output_text" => text(part, "text").is_empty(),
        "refusal" => text(part, "refusal").is_empty(),
        _ => false,
    };
    !list(native, "content").iter().all(is_empty)
}

fn content(native: &Value, open: &Open) -> Vec<Content> {
    let parts = list(native, "content").iter().map(|part| match text(part, "type") {
        "output_text" => Content::Text { text: text(part, "text").into() },
        "refusal" => Content::Refusal { refusal: text(part, "refusal").into() },
        _ => Content::Unknown(part.clone()),
    });
    let mut parts: Vec<Content> = parts.collect();
    if !says_something(native) {
        parts.clear();
        let streamed = [
            Content::Text { text: open.text.clone() },
            Content::Refusal { refusal: open.refusal.clone() },
        ];
        parts.extend(streamed.into_iter().filter(|part| !part.text().is_empty()));
    }
    parts
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({"type": "output_text", "text": text, "annotations": []}),
        Content::Refusal { refusal } => json!({"type": "refusal", "refusal": refusal}),
        Content::Unknown(part) => part.clone(),
        // No reply holds one.
        Content::Image(_) => Value::Null,
    }
}

fn thought(native: &Value, open: &Open) -> Item {
    let texts = |key| list(native, key).iter().map(|part| text(part, "text").to_owned());
    let summary: Vec<String> = texts("summary").collect();
    let raw: Vec<String> = texts("content").collect();
    // A server may leave streamed text out of the final form.
    let or =
        |said: String, streamed: &str| if said.is_empty() { streamed.to_owned() } else { said };
    let raw = or(raw.join(""), &open.text);
    let whole = if raw.is_empty() { or(summary.join("\n\n"), &open.summary) } else { raw };
    let encrypted_content = native.get("encrypted_content").and_then(Value::as_str);
    Item::Reasoning {
        text: whole,
        summary,
        encrypted_content: encrypted_content.map(str::to_owned),
        signature: None,
    }
}

fn count(usage: &Value) -> Usage {
    let number = |value: &Value, key| at(value, key).as_u64();
    Usage {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(at(usage, "input_tokens_details"), "cached_tokens"),
        cache_write: None,
        reasoning: number(at(usage, "output_tokens_details"), "reasoning_tokens"),
    }
}
