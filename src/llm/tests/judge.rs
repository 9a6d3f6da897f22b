//! Judges of requests: each refuses what the API of one provider refuses, in its words. A rule names its source: the
//! page that documents it, or a public report that quotes the refusal.

use crate::config::models::{Dialect, Model, Reasoning, Wire};
use crate::llm::bench::model;
use crate::llm::wire::{at, list, text};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;

mod anthropic;
mod chat;
mod gemini;
mod responses;

/// The API of one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Anthropic,
    /// Anthropic with a budget for thinking, as models before Claude 4.6 take it.
    AnthropicBudget,
    Responses,
    /// Chat Completions of `OpenAI`.
    OpenAi,
    Mistral,
    DeepSeek,
    Moonshot,
    Gemini,
    /// The models before Gemini 3, whose calls carry no signature.
    Gemini2,
}

impl Flavour {
    pub const ALL: [Self; 9] = [
        Self::Anthropic,
        Self::AnthropicBudget,
        Self::Responses,
        Self::OpenAi,
        Self::Mistral,
        Self::DeepSeek,
        Self::Moonshot,
        Self::Gemini,
        Self::Gemini2,
    ];

    /// A model behind that API, as the catalogue describes it.
    pub fn model(self) -> Model {
        use Reasoning::{Budget, Effort, None};
        let (wire, provider, name, reasoning) = match self {
            Self::Anthropic => (Wire::Anthropic, "anthropic", "claude-sonnet-5-5", Effort),
            Self::AnthropicBudget => (Wire::Anthropic, "anthropic", "claude-haiku-4-5", Budget),
            Self::Responses => (Wire::Responses, "openai", "gpt-6.1-sol", Effort),
            Self::OpenAi => (Wire::Chat, "openai", "gpt-4.1", None),
            Self::Mistral => (Wire::Chat, "mistral", "mistral-large-latest", None),
            Self::DeepSeek => (Wire::Chat, "deepseek", "deepseek-flash", None),
            Self::Moonshot => (Wire::Chat, "moonshot", "kimi-k2.6", None),
            Self::Gemini => (Wire::Gemini, "gemini", "gemini-3.8-flash", Effort),
            Self::Gemini2 => (Wire::Gemini, "gemini", "gemini-2.5-flash", Budget),
        };
        let (provider, name, own_url) = (provider.to_owned(), name.to_owned(), true);
        let dialect = (self == Self::Moonshot).then_some(Dialect::DeepSeek);
        let own = Model { own_url, max_output: 32_000, dialect, ..model(wire) };
        Model { provider, model: name, reasoning, ..own }
    }

    /// The refusal of the API, in its words.
    pub fn judge(self, body: &Value) -> Result<(), String> {
        match self {
            Self::Anthropic | Self::AnthropicBudget => anthropic::judge(body),
            Self::Responses => responses::judge(body),
            Self::OpenAi | Self::Mistral | Self::DeepSeek | Self::Moonshot => {
                chat::judge(self, body)
            }
            Self::Gemini | Self::Gemini2 => gemini::judge(self, body),
        }
    }

    /// The arguments of each call in the request and the text of its result.
    pub fn calls(self, body: &Value) -> Vec<(Value, String)> {
        match self {
            Self::Anthropic | Self::AnthropicBudget => anthropic::calls(body),
            Self::Responses => responses::calls(body),
            Self::OpenAi | Self::Mistral | Self::DeepSeek | Self::Moonshot => chat::calls(body),
            Self::Gemini | Self::Gemini2 => gemini::calls(body),
        }
    }
}

fn refuse<T>(words: impl Into<String>) -> Result<T, String> {
    Err(words.into())
}

/// Whether a text consists of 1 to `most` letters, digits, `_` and `-`.
fn is_plain(text: &str, most: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=most).contains(&text.len()) && text.chars().all(plain)
}

/// The signature of a text that the model of these tests gives, and that its API checks.
pub fn signature(model: &str, words: &str) -> String {
    BASE64_STANDARD.encode(format!("{model} signed {}", blake3::hash(words.as_bytes()).to_hex()))
}

/// The rules of schemas that Anthropic and `OpenAI` share.
fn schema(name: &str, schema: &Value) -> Result<(), String> {
    // https://github.com/anthropics/claude-code/issues/5319 and
    // https://github.com/cecli-dev/cecli/issues/281
    let combined =
        ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|key| schema.get(key).is_some());
    if text(schema, "type") != "object" || combined {
        return refuse(format!(
            "Invalid schema for function '{name}': schema must have type 'object' and not have \
             'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        ));
    }
    Ok(())
}

/// What an API takes of pictures.
struct Pictures {
    types: &'static [&'static str],
    /// Bytes in base64.
    most: usize,
    /// Pixels of the longer side.
    side: u32,
}

impl Pictures {
    fn judge(&self, media_type: &str, data: &str) -> Result<(), String> {
        if !self.types.contains(&media_type) {
            return refuse(format!("image: unsupported media type {media_type}"));
        }
        if data.len() > self.most {
            let (size, most) = (data.len(), self.most);
            return refuse(format!("image exceeds the maximum: {size} bytes > {most} bytes"));
        }
        let Ok(bytes) = BASE64_STANDARD.decode(data) else {
            return refuse("image: invalid base64 data");
        };
        let Some((kind, width, height)) = header(&bytes) else {
            return refuse("Could not process image");
        };
        if kind != media_type {
            return refuse(format!(
                "Image does not match the provided media type {media_type}: it appears to be {kind}"
            ));
        }
        if width.max(height) > self.side {
            let side = self.side;
            return refuse(format!("image dimensions exceed max allowed size: {side} pixels"));
        }
        Ok(())
    }

    /// The same of a `data:` URL.
    fn judge_url(&self, url: &str) -> Result<(), String> {
        let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match parts {
            Some((media_type, data)) => self.judge(media_type, data),
            None => refuse("Invalid image URL: expected a base64-encoded data URL"),
        }
    }
}

/// Media type, width and height of a picture that is whole.
fn header(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
    let number = |range: std::ops::Range<usize>| {
        let part = bytes.get(range)?;
        Some(part.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)))
    };
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let whole = bytes.ends_with(b"IEND\xaeB`\x82");
        return whole.then_some(("image/png", number(16..20)?, number(20..24)?));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        let side =
            |at: usize| Some(u32::from(u16::from_le_bytes([*bytes.get(at)?, bytes[at + 1]])));
        return bytes.ends_with(b"\x3b").then_some(("image/gif", side(6)?, side(8)?));
    }
    if bytes.starts_with(b"\xff\xd8\xff") && bytes.ends_with(b"\xff\xd9") {
        // The frame header follows a marker of the kinds C0 to C3.
        let frame = bytes
            .windows(2)
            .position(|pair| pair[0] == 0xff && (0xc0..=0xc3).contains(&pair[1]))?;
        return Some(("image/jpeg", number(frame + 7..frame + 9)?, number(frame + 5..frame + 7)?));
    }
    None
}

#[cfg(test)]
mod rules;
