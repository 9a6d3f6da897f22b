//! OpenAI Chat Completions, as OpenAI and the many servers that imitate it speak it: what its
//! requests look like. The answer is read in [`stream`].

use crate::config::catalogue::Catalogue;
use crate::config::models::{Dialect, Model, Reasoning};
use crate::llm::messages::{FirstMarker, List, Messages, mark};
use crate::llm::outgoing::{self, Part, ToolCall, ToolResult};
use crate::llm::wire::{self, at, text};
use crate::llm::{Request, ToolSpec};
use crate::protocol::item::Image;
use serde_json::{Value, json};

mod closed;
pub mod stream;
#[cfg(test)]
mod tests;

pub use stream::Decoder;

/// How many of the last user messages end in a cache marker, where the model wants markers.
const MARKED_TURNS: usize = 2;

/// The request for `model`.
pub fn body(request: &Request, model: &Model) -> Vec<u8> {
    let mut body = json!({
        "model": model.model, "stream": true, "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    settings(&mut body, request, model);
    reasoning(&mut body, request, model);
    Conversation::of(request, model).finish().in_object("messages", &body)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema,
        },
    })
}

/// OpenAI itself, which has fields of its own and refuses those of others.
fn is_openai(model: &Model) -> bool {
    model.own_url && model.provider == "openai"
}

fn settings(body: &mut Value, request: &Request, model: &Model) {
    let (config, openai) = (&request.config, is_openai(model));
    let limit = if openai { "max_completion_tokens" } else { "max_tokens" };
    let cache_key = openai.then(|| json!(wire::cache_key(request)));
    for (key, value) in
        [(limit, config.max_tokens.map(|tokens| json!(tokens))), ("prompt_cache_key", cache_key)]
    {
        if let Some(value) = value {
            body[key] = value;
        }
    }
}

fn reasoning(body: &mut Value, request: &Request, model: &Model) {
    let Some(setting) = &request.config.reasoning else { return };
    let router = model.provider == "openrouter";
    match model.reasoning {
        Reasoning::Effort if setting.is_string() && router => {
            body["reasoning"] = json!({"effort": setting});
        }
        Reasoning::Effort if setting.is_string() => body["reasoning_effort"] = setting.clone(),
        Reasoning::Budget if setting.is_u64() && router => {
            body["reasoning"] = json!({"max_tokens": setting});
        }
        Reasoning::None | Reasoning::Effort | Reasoning::Budget => {}
    }
}

/// Anthropic's models cache a prompt only up to explicit markers, also through OpenRouter.
fn wants_markers(model: &Model) -> bool {
    model.provider == "openrouter" && model.model.starts_with("anthropic/")
}

/// Stands for thinking that the model did not do or that did not come from it.
const NO_THINKING: &str = "(no thinking)";

/// Makes a message ready to be sent; one that holds nothing a server would take is left out.
fn finish(message: &mut Value, dialect: Dialect) -> bool {
    flatten(message);
    let calls = message.get("tool_calls").is_some();
    if dialect == Dialect::DeepSeek && calls && text(message, "reasoning_content").is_empty() {
        message["reasoning_content"] = json!(NO_THINKING);
    }
    !is_hollow(message)
}

/// Parts that are only text become one text: many servers take nothing else.
fn flatten(message: &mut Value) {
    let Some(parts) = message.get("content").and_then(Value::as_array) else { return };
    let plain = |part: &Value| text(part, "type") == "text" && part.get("cache_control").is_none();
    if parts.iter().all(plain) {
        let texts: Vec<&str> = parts.iter().map(|part| text(part, "text")).collect();
        message["content"] = json!(texts.join("\n\n"));
    }
}

/// The messages under construction.
struct Conversation<'a> {
    request: &'a Request,
    model: &'a Model,
    dialect: Dialect,
    messages: Messages<'a>,
    /// Images of the results so far; they follow the last result of their batch, because nothing
    /// may stand between a call's results.
    images: Vec<Value>,
}

impl<'a> Conversation<'a> {
    fn of(request: &'a Request, model: &'a Model) -> Self {
        let marked = if wants_markers(model) { MARKED_TURNS } else { 0 };
        let mut first = wants_markers(model).then(FirstMarker::default);
        let dialect = Catalogue::dialect(model);
        let finish = move |message: &mut Value| {
            if let Some(first) = &mut first {
                first.take(message);
            }
            finish(message, dialect)
        };
        let messages = Messages::new(marked, Box::new(finish));
        let mut this = Self { request, model, dialect, messages, images: Vec::new() };
        this.system();
        for part in outgoing::parts(request, model) {
            if !matches!(part, Part::Result(_)) {
                this.show_images();
            }
            this.part(part);
        }
        this.show_images();
        this
    }

    fn system(&mut self) {
        if self.request.system.is_empty() {
            return;
        }
        let part = json!({"type": "text", "text": self.request.system});
        let mut message = json!({"role": "system", "content": [part]});
        if wants_markers(self.model) {
            mark(&mut message);
        }
        self.messages.push(message);
    }

    fn finish(mut self) -> List {
        self.messages.newest_users().for_each(mark);
        self.messages.finish()
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::User(words) => self.user(json!({"type": "text", "text": words})),
            Part::Image(image) => self.user(self.image(image)),
            Part::Model { words, .. } => {
                let message = self.assistant();
                let so_far = text(message, "content");
                let whole = if so_far.is_empty() { words } else { format!("{so_far}\n\n{words}") };
                message["content"] = json!(whole);
            }
            Part::Call(ToolCall { native: Some(native), .. }) => self.call(native.into_owned()),
            Part::Call(ToolCall { id, name, arguments, native: None }) => self.call(json!({
                "id": id, "type": "function",
                "function": {"name": name, "arguments": wire::arguments_text(arguments)},
            })),
            Part::Result(ToolResult { id, summary, content, is_error, images }) => {
                let words = wire::marked_result_text(summary, content, is_error);
                self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": words}));
                let images: Vec<Value> = images.iter().map(|image| self.image(image)).collect();
                self.images.extend(images);
            }
            Part::Thinking(native) => self.thinking(native),
            Part::Other(_) => {}
        }
    }

    fn call(&mut self, call: Value) {
        let message = self.assistant();
        match message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) => calls.push(call),
            None => message["tool_calls"] = json!([call]),
        }
    }

    /// Gives a model its own thinking back.
    fn thinking(&mut self, native: &Value) {
        let message = self.assistant();
        for key in ["reasoning_content", "reasoning"] {
            let words = text(native, key);
            if !words.is_empty() {
                message[key] = json!(format!("{}{words}", text(message, key)));
            }
        }
        let details = wire::list(native, "reasoning_details");
        match message.get_mut("reasoning_details").and_then(Value::as_array_mut) {
            Some(known) => known.extend_from_slice(details),
            None if details.is_empty() => {}
            None => message["reasoning_details"] = json!(details),
        }
    }

    fn assistant(&mut self) -> &mut Value {
        self.messages.of_role("assistant", || json!({"role": "assistant", "content": null}))
    }

    fn image(&self, image: &Image) -> Value {
        match wire::picture(self.request, self.model, image) {
            Ok((kind, data)) => {
                let url = format!("data:{kind};base64,{data}");
                json!({"type": "image_url", "image_url": {"url": url}})
            }
            Err(instead) => json!({"type": "text", "text": instead}),
        }
    }

    fn show_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        let lead = json!({"type": "text", "text": "Images of the tool results above:"});
        for part in std::iter::once(lead).chain(std::mem::take(&mut self.images)) {
            self.user(part);
        }
    }

    fn user(&mut self, part: Value) {
        if self.messages.ends_with("tool") && self.dialect == Dialect::Mistral {
            self.assistant()["content"] = json!("OK.");
        }
        self.messages.push_block("user", "content", part);
    }
}

/// An assistant message that holds nothing a server would take.
fn is_hollow(message: &Value) -> bool {
    text(message, "role") == "assistant"
        && at(message, "content").is_null()
        && message.get("tool_calls").is_none()
}
