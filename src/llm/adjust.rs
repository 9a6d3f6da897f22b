//! Learns from a refusal which part of a request a server does not accept; later requests leave it out.

use crate::config::models::{Dialect, Model, Wire};
use crate::llm::{Failure, Input, Request, anthropic, provider, refused};
use crate::protocol::entry::Kept;
use crate::protocol::{Item, Role, now_ms};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub mod pictures;
mod room;
mod sayings;
#[cfg(test)]
mod tests;

pub use room::smaller_reply;
pub use sayings::{BETWEEN, LISTS, contains_word, index, parse_refusal, refusal_text};

/// The most adjustments that are tried for one request.
pub const MAX_ADJUSTMENTS: usize = 6;

/// A difference between what a wire has and what a server accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjustment {
    /// The server has Chat Completions instead of Responses.
    ChatWire,
    /// The server accepts no field at this place of the body, or not this value of it.
    Without {
        path: String,
        value: Option<Value>,
    },
    /// The server has another name for a field of the body.
    Renamed {
        from: String,
        to: String,
    },
    /// The server makes replies of at most so many tokens.
    MaxTokens(u64),
    /// The server reads and makes at most so many tokens in one request, its reply counted.
    Window(u64),
    /// The server accepts no cache markers.
    NoMarkers,
    NoImages,
    /// The server accepts this picture of a conversation not, and others perhaps: the file that holds it.
    NoImage(String),
    /// The server accepts only ids of calls in yoi's own form, whatever it gave before.
    OwnIds,
    /// The server wants this text as the content of a message that has only calls.
    FilledContent(String),
    /// The server accepts no system prompt.
    NoSystem,
    /// The server accepts no thoughts of earlier replies, nor what is joined to them.
    NoThoughts,
    /// The server wants thinking with each message that makes calls, also with those of other models.
    ThinkingWithCalls,
}

/// An adjustment to a model at an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    pub provider: String,
    pub base_url: String,
    pub model: String,
    pub adjustment: Adjustment,
    /// The refusal, in the words of the provider.
    pub why: String,
    /// In milliseconds since the Unix epoch.
    pub since: u64,
}

impl Learned {
    pub fn new(model: &Model, adjustment: Adjustment, why: &Failure) -> Self {
        let (provider, base_url) = (model.provider.clone(), model.base_url.clone());
        let (model, why) = (model.model.clone(), why.to_string());
        Self { provider, base_url, model, adjustment, why, since: now_ms() }
    }

    pub fn is_of(&self, model: &Model) -> bool {
        (&self.provider, &self.base_url, &self.model)
            == (&model.provider, &model.base_url, &model.model)
    }

    /// What requests do from now on, and why, as a sentence.
    pub fn sentence(&self) -> String {
        let does = match &self.adjustment {
            Adjustment::ChatWire => "use Chat Completions instead of Responses".into(),
            Adjustment::Without { path, value: None } => format!("leave `{}` out", field(path)),
            Adjustment::Without { path, value: Some(value) } => {
                format!("leave `{}` out where it is {value}", field(path))
            }
            Adjustment::Renamed { from, to } => format!("carry `{to}` instead of `{from}`"),
            Adjustment::MaxTokens(most) => format!("ask for at most {most} tokens"),
            Adjustment::Window(window) => {
                format!("and their replies take at most {window} tokens together")
            }
            Adjustment::NoMarkers => "carry no cache markers".into(),
            Adjustment::NoImages => "carry no images".into(),
            Adjustment::NoImage(_) => "do not carry the picture that was refused".into(),
            Adjustment::OwnIds => "name calls by ids of nine letters and digits".into(),
            Adjustment::FilledContent(text) => {
                format!("have the content \"{text}\" in messages that only make calls")
            }
            Adjustment::NoSystem => "carry the system prompt as the first message".into(),
            Adjustment::NoThoughts => "carry no thinking of earlier replies".into(),
            Adjustment::ThinkingWithCalls => "carry thinking with each call".into(),
        };
        format!("requests to {}/{} {does}: {}", self.provider, self.model, self.why)
    }
}

fn field(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

impl Adjustment {
    /// Whether both are about the same thing, so that the second is the repeated refusal of it.
    pub fn is_alike(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::MaxTokens(_), Self::MaxTokens(_)))
    }
}

/// The model with what is known of its server.
pub fn adjusted_model(model: &Model, known: &[Learned]) -> Model {
    let mut model = model.clone();
    for learned in known {
        match learned.adjustment {
            Adjustment::ChatWire => model.wire = Wire::Chat,
            Adjustment::NoImages => model.images = false,
            Adjustment::Window(window) if model.window == 0 || window < model.window => {
                model.window = window;
            }
            Adjustment::ThinkingWithCalls => model.dialect = Some(Dialect::DeepSeek),
            _ => {}
        }
    }
    model
}

/// The body of a request that obeys what is known.
pub fn adjusted_body(request: &Request, configured: &Model, known: &[Learned]) -> Vec<u8> {
    let model = adjusted_model(configured, known);
    let mut request = request.clone();
    for learned in known {
        match &learned.adjustment {
            Adjustment::MaxTokens(most) => {
                let most = *most;
                let wanted = request.config.max_tokens.unwrap_or(most);
                request.config.max_tokens = Some(wanted.min(most));
            }
            Adjustment::NoSystem if !request.system.is_empty() => {
                let prompt = Item::message(Role::User, &*std::mem::take(&mut request.system));
                request.input.insert(0, Arc::new(Kept::new(None, prompt)));
            }
            Adjustment::NoThoughts => request.input = without_thoughts(&request.input),
            Adjustment::NoImage(blob) => pictures::hide(&mut request.input, blob),
            _ => {}
        }
    }
    // A request that is longer than what its server named once shows that it reads more.
    let is_longer = request.tokens >= model.window;
    let window = if is_longer { configured.window } else { model.window };
    if window > 0 {
        let of_wire = (model.wire == Wire::Anthropic).then(|| anthropic::most_tokens(&model));
        let room = window.saturating_sub(request.tokens).max(room::least(window));
        let wanted = request.config.max_tokens.or(of_wire);
        request.config.max_tokens = wanted.map(|wanted| wanted.min(room));
    }
    let body = provider::body(&request, &model);
    let in_body = |learned: &&Learned| {
        use Adjustment::{FilledContent, NoMarkers, OwnIds, Renamed, Without};
        let adjustment = &learned.adjustment;
        matches!(
            adjustment,
            Without { .. } | Renamed { .. } | NoMarkers | OwnIds | FilledContent(_)
        )
    };
    let mut changes = known.iter().filter(in_body).peekable();
    if changes.peek().is_none() {
        return body;
    }
    let Ok(mut json) = serde_json::from_slice(&body) else { return body };
    changes.for_each(|learned| change(&mut json, &learned.adjustment));
    json.to_string().into_bytes()
}

/// The input without thoughts, and without the providers' own forms, which name or hold them.
fn without_thoughts(input: &[Input]) -> Vec<Input> {
    let is_thought = |kept: &&Input| matches!(kept.item, Item::Reasoning { .. });
    let plain = |kept: &Input| match kept.native {
        Some(_) => Arc::new(Kept { native: None, ..Kept::clone(kept) }),
        None => kept.clone(),
    };
    input.iter().filter(|kept| !is_thought(kept)).map(plain).collect()
}

fn change(body: &mut Value, adjustment: &Adjustment) {
    match adjustment {
        Adjustment::Without { path, value } => {
            let is_it = value.as_ref().is_none_or(|value| body.pointer(path) == Some(value));
            if let Some((parent, name)) = path.rsplit_once('/').filter(|_| is_it)
                && let Some(fields) = body.pointer_mut(parent).and_then(Value::as_object_mut)
            {
                fields.remove(name);
            }
            // What one tool cannot have, none can.
            if let Some(field) = path.strip_prefix("/tools/0/") {
                let tools = body.get_mut("tools").and_then(Value::as_array_mut);
                let tools = tools.into_iter().flatten().filter_map(Value::as_object_mut);
                tools.for_each(|tool| drop(tool.remove(field)));
            }
            if path == "/stream" {
                // Its options belong to it.
                body.as_object_mut().map(|fields| fields.remove("stream_options"));
            }
        }
        Adjustment::Renamed { from, to } => {
            if let Some(value) = body.as_object_mut().and_then(|fields| fields.remove(from)) {
                body[to] = value;
            }
        }
        Adjustment::NoMarkers => {
            body.get_mut("system").into_iter().for_each(unmark);
            let messages = body.get_mut("messages").and_then(Value::as_array_mut);
            let contents = messages.into_iter().flatten().filter_map(|one| one.get_mut("content"));
            contents.for_each(unmark);
        }
        Adjustment::OwnIds => refused::name_calls_anew(body),
        Adjustment::FilledContent(text) => {
            let messages = body.get_mut("messages").and_then(Value::as_array_mut);
            let is_empty = |content: &Value| content.is_null() || content == "";
            for message in messages.into_iter().flatten() {
                if message.get("content").is_some_and(is_empty) {
                    message["content"] = Value::from(text.as_str());
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn unmark(blocks: &mut Value) {
    for block in blocks.as_array_mut().into_iter().flatten() {
        block.as_object_mut().map(|fields| fields.remove("cache_control"));
    }
}
