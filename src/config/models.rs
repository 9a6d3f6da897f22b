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
    /// What stands at the end of the address of a request.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::Anthropic => "/messages",
            Self::Responses => "/responses",
            Self::Chat | Self::Rehearsal => "/chat/completions",
            Self::Gemini => ":streamGenerateContent",
        }
    }

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

/// What a server of the Chat wire demands of a conversation beyond that wire.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Nothing.
    #[default]
    OpenAi,
    /// Ids of nine letters and digits, the model's words between a result and what a person says, no thinking: the API
    /// of Mistral and the templates of its models on other servers.
    Mistral,
    /// Thinking with each message that makes calls.
    DeepSeek,
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
    /// What a request with a long input costs, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_context: Option<LongContextPrice>,
}

/// What every token of a request costs whose input is above a threshold, in US dollars per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongContextPrice {
    /// The threshold in input tokens, cached ones included.
    pub above: u64,
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
        let rates = self.for_input(input);
        let fresh = input.saturating_sub(cache_read).saturating_sub(cache_write);
        let dollars = fresh as f64 * rates.input
            + output as f64 * rates.output
            + cache_read as f64 * rates.cache_read
            + cache_write as f64 * rates.cache_write;
        dollars / 1_000_000.0
    }

    /// The price of a request with so many input tokens.
    fn for_input(self, input: u64) -> Self {
        match self.long_context {
            Some(long) if input > long.above => Self {
                input: long.input,
                output: long.output,
                cache_read: long.cache_read,
                cache_write: long.cache_write,
                ..self
            },
            _ => self,
        }
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
    /// This header of the provider in the person's settings.
    Header(String),
    /// This environment variable, which is not set; the server is on this machine and may need no key.
    Unset(String),
    /// No key is needed.
    None,
}

impl KeySource {
    /// Whether this is the token of a gateway, which goes as `Authorization: Bearer` on every wire.
    pub fn is_bearer(&self) -> bool {
        matches!(self, Self::Env(name) if name.ends_with("_AUTH_TOKEN"))
    }

    /// Whether requests carry a key that yoi puts into them.
    pub fn is_sent(&self) -> bool {
        matches!(self, Self::Env(_) | Self::File(_) | Self::Command(_))
    }

    /// The source in words, such as `key from ANTHROPIC_API_KEY`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Env(name) => format!("key from {name}"),
            Self::File(provider) => format!("key stored for {provider}"),
            Self::Command(provider) => format!("key printed by key_command of {provider}"),
            Self::Header(name) => format!("key in the header {name}"),
            Self::Unset(name) => format!("no key ({name} is not set)"),
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
    /// What the provider's table says; [`Catalogue::dialect`](crate::config::catalogue::Catalogue::dialect) counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
}

impl Model {
    /// Whether both are the same model of the same provider at the same address.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.provider, &self.base_url, &self.model)
            == (&other.provider, &other.base_url, &other.model)
    }

    /// What `--model` takes to get this model again.
    pub fn spec(&self) -> String {
        match self.wire {
            Wire::Rehearsal => format!("rehearsal:{}", self.model),
            _ => format!("{}/{}", self.provider, self.model),
        }
    }

    /// The part of the window, in tokens, in which a request costs the usual price.
    pub fn usual_window(&self) -> u64 {
        let long = self.price.and_then(|price| price.long_context);
        long.map_or(self.window, |long| long.above.min(self.window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_counts_cached_tokens_at_their_own_rate_and_never_twice() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
            long_context: None,
        };
        let cost = price.cost(1_000_000, 100_000, 500_000, 200_000);
        let expected = 0.3 * 3.0 + 0.1 * 15.0 + 0.5 * 0.3 + 0.2 * 3.75;
        assert!((cost - expected).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn a_request_above_the_threshold_costs_the_long_context_price_for_every_token() {
        let text = r#"{"input": 2, "output": 10, "cache_read": 0.2, "cache_write": 2.5,
            "long_context": {"above": 200, "input": 4, "output": 15, "cache_read": 0.4, "cache_write": 5}}"#;
        let price: Price = serde_json::from_str(text).unwrap();
        let dollars = |input: u64| price.cost(input, 10, 100, 50) * 1e6;
        assert!((dollars(200) - (50.0 * 2.0 + 100.0 + 20.0 + 125.0)).abs() < 1e-6);
        assert!((dollars(201) - (51.0 * 4.0 + 150.0 + 40.0 + 250.0)).abs() < 1e-6);
        let model = |window| Model {
            wire: Wire::Chat,
            provider: "p".into(),
            model: "m".into(),
            base_url: String::new(),
            key: KeySource::None,
            window,
            max_output: 1,
            price: Some(price),
            images: false,
            reasoning: Reasoning::None,
            own_url: false,
            url_variable: None,
            dialect: None,
        };
        assert_eq!([100, 200, 1000].map(|window| model(window).usual_window()), [100, 200, 200]);
    }

    #[test]
    fn a_price_that_an_earlier_release_wrote_has_no_long_context() {
        let text = r#"{"input":3.0,"output":15.0,"cache_read":0.3,"cache_write":3.75}"#;
        let price: Price = serde_json::from_str(text).unwrap();
        assert_eq!(price.long_context, None);
        assert_eq!(serde_json::to_string(&price).unwrap(), text);
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
