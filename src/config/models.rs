//! A model to talk to, resolved: everything a request needs but the key itself, so that it can be
//! stored with a Pod.

use serde::{Deserialize, Serialize};

/// The JSON a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wire {
    /// Anthropic Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// `OpenAI` Responses.
    #[serde(rename = "openai_responses", alias = "responses")]
    Responses,
    /// `OpenAI` Chat Completions, and the many servers that speak it.
    #[serde(rename = "openai_chat", alias = "chat")]
    Chat,
    /// Gemini `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
    /// A script instead of a model.
    #[serde(rename = "rehearsal")]
    Rehearsal,
}

impl Wire {
    /// The name in settings, in the log and in a Pod's greeting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "openai_responses",
            Self::Chat => "openai_chat",
            Self::Gemini => "gemini",
            Self::Rehearsal => "rehearsal",
        }
    }
}

/// In which form a model takes a wish for thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    #[default]
    None,
    /// A label such as `low` or `high`.
    Effort,
    /// A number of tokens.
    Budget,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    #[serde(default)]
    pub cache_read: f64,
    #[serde(default)]
    pub cache_write: f64,
}

impl Price {
    /// The dollars of one request. `input` is all input tokens, cached ones included.
    #[allow(clippy::cast_precision_loss)]
    pub fn cost(&self, input: u64, output: u64, cache_read: u64, cache_write: u64) -> f64 {
        let fresh = input.saturating_sub(cache_read).saturating_sub(cache_write);
        let dollars = fresh as f64 * self.input
            + output as f64 * self.output
            + cache_read as f64 * self.cache_read
            + cache_write as f64 * self.cache_write;
        dollars / 1_000_000.0
    }
}

/// Where a key comes from; the key itself is never kept with a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// This environment variable.
    Env(String),
    /// This provider's entry in `keys.toml`.
    File(String),
    /// The `key_command` of this provider in the person's settings.
    Command(String),
    /// No key is needed.
    None,
}

impl KeySource {
    /// The source in words, such as `key from ANTHROPIC_API_KEY`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Env(name) => format!("key from {name}"),
            Self::File(provider) => format!("key stored for {provider}"),
            Self::Command(provider) => format!("key printed by key_command of {provider}"),
            Self::None => "no key".into(),
        }
    }
}

/// A model, and how to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub wire: Wire,
    pub provider: String,
    /// The provider's id of the model; for the rehearsal wire the script's path.
    pub model: String,
    /// With the version segment, without a trailing slash.
    pub base_url: String,
    pub key: KeySource,
    /// Tokens the model can read at once.
    pub window: u64,
    /// Tokens one answer may have.
    pub max_output: u64,
    pub price: Option<Price>,
    /// Whether it can look at images.
    pub images: bool,
    pub reasoning: Reasoning,
    /// Whether the base URL is the provider's own, not one that settings or environment gave.
    pub own_url: bool,
    /// The environment variable that gave the base URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_variable: Option<String>,
}

impl Model {
    /// What `--model` takes to get this model again.
    pub fn spec(&self) -> String {
        match self.wire {
            Wire::Rehearsal => format!("rehearsal:{}", self.model),
            _ => format!("{}/{}", self.provider, self.model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_counts_cached_tokens_at_their_own_rate_and_never_twice() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let cost = price.cost(1_000_000, 100_000, 500_000, 200_000);
        let expected = 0.3 * 3.0 + 0.1 * 15.0 + 0.5 * 0.3 + 0.2 * 3.75;
        assert!((cost - expected).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn a_wire_is_written_and_read_by_its_name() {
        for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini, Wire::Rehearsal] {
            let text = serde_json::to_string(&wire).unwrap();
            assert_eq!(text, format!("\"{}\"", wire.name()));
            assert_eq!(serde_json::from_str::<Wire>(&text).unwrap(), wire);
        }
        assert_eq!(serde_json::from_str::<Wire>("\"chat\"").unwrap(), Wire::Chat);
    }
}
