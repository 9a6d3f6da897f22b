//! The providers and models the program knows, with what the user's settings add or change.

use crate::config::models::{Dialect, Model, Price, Reasoning, Wire};
use crate::config::settings::Settings;
use crate::config::url;
use crate::trace::redact;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The providers, and what is known better than the published facts.
const BY_HAND: &str = include_str!("models.toml");
/// The published facts of models; `scripts/models` writes them.
const PUBLISHED: &str = include_str!("models.json");

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(Catalogue::read);

/// One provider. In settings every field is optional and overrides the built-in one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    pub wire: Option<Wire>,
    /// Without a version segment, the provider's own is added.
    pub base_url: Option<String>,
    /// The version segment, such as `v1`; empty for none.
    pub version: Option<String>,
    /// Environment variables that may hold the key, the first that is set counts.
    #[serde(deserialize_with = "variables")]
    pub key_env: Option<Names>,
    /// The command that prints the key and its arguments. Only the person's own settings may name one.
    pub key_command: Option<Vec<String>>,
    /// Headers of each request; `${NAME}` is a variable of the person. Only the person's own settings may set them.
    pub headers: Option<BTreeMap<String, String>>,
    /// Environment variables that may hold another base URL.
    pub base_url_env: Option<Names>,
    /// The model of `provider/`.
    pub default_model: Option<String>,
    /// What holds for its models unless a model says otherwise.
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    pub images: Option<bool>,
    pub reasoning: Option<Reasoning>,
    /// What its API demands beyond the Chat wire.
    pub dialect: Option<Dialect>,
}

/// Names of environment variables. A key in their place is refused, because a name is shown.
fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Names>, D::Error> {
    let names = Names::deserialize(from)?;
    match names.all().iter().all(|name| is_variable(name)) {
        true => Ok(Some(names)),
        false => Err(D::Error::custom(
            "expected the name of an environment variable (letters, digits and `_`); `yoi auth <provider>` stores a key",
        )),
    }
}

/// Whether this may be the name of a variable. Many keys have only letters and digits, but are long and have no `_`.
fn is_variable(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.chars().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    let looks_random =
        name.len() >= 20 && !name.contains('_') && name.contains(|c: char| c.is_ascii_digit());
    !name.is_empty() && is_name && !looks_random && redact(name) == name
}

/// One model's facts; each overrides its provider's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Known {
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    pub images: Option<bool>,
    pub reasoning: Option<Reasoning>,
    pub price: Option<Price>,
    /// The date after which its provider may switch it off, as `YYYY-MM-DD`.
    pub deprecated: Option<String>,
}

/// One name or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a name or a list of names")]
pub enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }

    /// The one that counts before all others.
    pub fn first(&self) -> Option<&str> {
        self.all().first().map(String::as_str)
    }
}

/// Everything known, by provider id and by `provider/model`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(rename = "provider")]
    pub providers: BTreeMap<String, Provider>,
    #[serde(default)]
    pub models: BTreeMap<String, Known>,
    #[serde(default, rename = "dialect")]
    dialects: BTreeMap<Dialect, Speakers>,
}

/// Who speaks a dialect, whatever the provider is called.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Speakers {
    /// Ends of the host names of their APIs.
    hosts: Vec<String>,
    /// Parts of the names of models for which every server demands the same.
    models: Vec<String>,
}

/// The generated file: published facts by `provider/model`, and where they come from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    #[serde(rename = "generated")]
    _generated: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "license")]
    _license: String,
    models: BTreeMap<String, Known>,
}

impl Catalogue {
    /// What the program brings along.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// The dialect that the provider's table names, else that of the provider, address or model that the program knows.
    pub fn dialect(model: &Model) -> Dialect {
        let (name, host) = (model.model.to_lowercase(), url::host(&model.base_url));
        let host = host.split(':').next().unwrap_or_default();
        let is_host = |end: &String| {
            host.strip_suffix(end).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        let speaks = |(_, known): &(&Dialect, &Speakers)| {
            known.hosts.iter().any(is_host) || known.models.iter().any(|part| name.contains(part))
        };
        let of_table = || BUILTIN.providers.get(&model.provider)?.dialect;
        let known = || BUILTIN.dialects.iter().find(speaks).map(|(dialect, _)| *dialect);
        let found = model.dialect.or_else(of_table).or_else(known);
        found.filter(|_| model.wire == Wire::Chat).unwrap_or_default()
    }

    fn read() -> Self {
        let mut all: Self =
            toml::from_str(BY_HAND).expect("models.toml is part of the program and read by a test");
        let published: Published = serde_json::from_str(PUBLISHED)
            .expect("models.json is part of the program and read by a test");
        let by_hand = std::mem::replace(&mut all.models, published.models);
        all.overlay_models(&by_hand);
        all
    }

    fn overlay_models(&mut self, over: &BTreeMap<String, Known>) {
        for (spec, over) in over {
            self.models.entry(spec.clone()).or_default().overlay(over);
        }
    }

    /// The same with the user's settings laid over it, field by field.
    pub fn with(settings: &Settings) -> Self {
        let mut all = Self::builtin();
        for (id, over) in &settings.provider {
            all.providers.entry(id.clone()).or_default().overlay(over);
        }
        all.overlay_models(&settings.models);
        all
    }

    /// Every `provider/model` that is known by name.
    pub fn specs(&self) -> Vec<String> {
        let defaults = self.providers.iter().filter_map(|(id, provider)| {
            provider.default_model.as_ref().map(|model| format!("{id}/{model}"))
        });
        let mut all: Vec<String> = self.models.keys().cloned().chain(defaults).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The variables that hold provider keys: commands of a Pod never get them.
    pub fn key_variables(&self) -> Vec<String> {
        self.providers.values().flat_map(|provider| provider.key_variables().to_vec()).collect()
    }
}

impl Provider {
    pub fn key_variables(&self) -> &[String] {
        self.key_env.as_ref().map_or(&[], Names::all)
    }

    /// The command that prints the key; an empty list names none.
    pub fn key_command(&self) -> Option<&[String]> {
        self.key_command.as_deref().filter(|argv| !argv.is_empty())
    }

    /// The name of a header that carries what a key would.
    pub fn key_header(&self) -> Option<&str> {
        const NAMES: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
        let mut names = self.headers.iter().flatten().map(|(name, _)| name.as_str());
        names.find(|name| NAMES.contains(&name.to_ascii_lowercase().as_str()))
    }

    pub fn url_variables(&self) -> &[String] {
        self.base_url_env.as_ref().map_or(&[], Names::all)
    }

    fn overlay(&mut self, over: &Self) {
        take(&mut self.wire, &over.wire);
        take(&mut self.base_url, &over.base_url);
        take(&mut self.version, &over.version);
        take(&mut self.key_env, &over.key_env);
        take(&mut self.key_command, &over.key_command);
        take(&mut self.headers, &over.headers);
        take(&mut self.base_url_env, &over.base_url_env);
        take(&mut self.default_model, &over.default_model);
        take(&mut self.window, &over.window);
        take(&mut self.max_output, &over.max_output);
        take(&mut self.images, &over.images);
        take(&mut self.reasoning, &over.reasoning);
        take(&mut self.dialect, &over.dialect);
    }
}

impl Known {
    fn overlay(&mut self, over: &Self) {
        take(&mut self.window, &over.window);
        take(&mut self.max_output, &over.max_output);
        take(&mut self.images, &over.images);
        take(&mut self.reasoning, &over.reasoning);
        take(&mut self.price, &over.price);
        take(&mut self.deprecated, &over.deprecated);
    }
}

fn take<T: Clone>(field: &mut Option<T>, over: &Option<T>) {
    if over.is_some() {
        field.clone_from(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::models::KeySource;

    #[test]
    fn a_key_is_no_name_of_a_variable() {
        for name in ["OPENAI_API_KEY", "token", "K2", "A_VERY_LONG_NAME_OF_A_VARIABLE_2"] {
            assert!(is_variable(name), "{name}");
        }
        let hex = "0123456789abcdef0123456789abcdef";
        for key in ["", "sk-abcdef123456", hex, "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW"] {
            assert!(!is_variable(key), "{key}");
        }
    }

    #[test]
    fn every_built_in_provider_is_whole_and_every_model_has_a_provider() {
        let all = Catalogue::builtin();
        for (id, provider) in &all.providers {
            assert!(provider.wire.is_some(), "{id}");
            assert!(provider.window.is_some() && provider.max_output.is_some(), "{id}");
            if let Some(base) = &provider.base_url {
                let version = provider.version.as_deref().unwrap_or("");
                assert!(url::join(base, version).is_ok(), "{id}");
            }
            if let Some(model) = &provider.default_model {
                let spec = format!("{id}/{model}");
                let listed = all.models.keys().any(|known| known.starts_with(&format!("{id}/")));
                assert!(!listed || all.models.contains_key(&spec), "{spec} is not in the table");
            }
        }
        for spec in all.models.keys() {
            let (id, _) = spec.split_once('/').unwrap();
            assert!(all.providers.contains_key(id), "{spec}");
        }
    }

    #[test]
    fn a_dialect_is_known_by_the_table_of_the_provider_its_address_or_the_model() {
        let local = "http://127.0.0.1:9/mistral.ai/v1";
        for (provider, name, base_url, of_table, dialect) in [
            ("mistral", "m", local, None, Dialect::Mistral),
            ("mine", "Devstral-24B", local, None, Dialect::Mistral),
            ("mine", "m", "https://api.deepseek.com/v1", None, Dialect::DeepSeek),
            ("mine", "m", "https://api.moonshot.cn:443/v1", None, Dialect::DeepSeek),
            ("mine", "kimi-k2.6", local, Some(Dialect::DeepSeek), Dialect::DeepSeek),
            ("mine", "mistral-small", local, Some(Dialect::OpenAi), Dialect::OpenAi),
            ("groq", "kimi-k2", local, None, Dialect::OpenAi),
            ("mine", "m", "https://notmistral.ai/v1", None, Dialect::OpenAi),
        ] {
            let mut model = Model {
                wire: Wire::Chat,
                provider: provider.into(),
                model: name.into(),
                base_url: base_url.into(),
                key: KeySource::None,
                window: 1,
                max_output: 1,
                price: None,
                images: false,
                reasoning: Reasoning::None,
                own_url: false,
                url_variable: None,
                dialect: of_table,
            };
            assert_eq!(Catalogue::dialect(&model), dialect, "{provider} {name} {base_url}");
            model.wire = Wire::Anthropic;
            assert_eq!(Catalogue::dialect(&model), Dialect::OpenAi, "it is one of the Chat wire");
        }
    }

    #[test]
    fn every_published_row_is_whole_and_stands_once() {
        let listed =
            PUBLISHED.lines().filter(|line| line.starts_with('"') && line.contains("\"window\":"));
        let published: Published = serde_json::from_str(PUBLISHED).unwrap();
        assert_eq!(published.models.len(), listed.count(), "a model stands twice");
        assert!(published.models.len() > 50 && PUBLISHED.len() < 60_000);
        assert!(published._license.contains("Copyright (c)"), "the licence goes with the data");
        for (spec, known) in &published.models {
            let (window, output) = (known.window.unwrap(), known.max_output.unwrap());
            assert!(output > 0 && output < window && window < 100_000_000, "{spec}");
            assert!(known.images.is_some() && known.reasoning.is_some(), "{spec}");
            let price = known.price.unwrap();
            assert_sane(spec, [price.input, price.output, price.cache_read, price.cache_write]);
            if let Some(long) = price.long_context {
                assert!(long.above > 0 && long.above < window, "{spec}");
                assert!(long.input >= price.input && long.output >= price.output, "{spec}");
                assert_sane(spec, [long.input, long.output, long.cache_read, long.cache_write]);
            }
            let is_date = |text: &String| {
                text.len() == 10 && text.chars().all(|c| c == '-' || c.is_ascii_digit())
            };
            assert!(known.deprecated.as_ref().is_none_or(is_date), "{spec}");
        }
    }

    /// Dollars per million tokens: a price for each token would be far below, one for a thousand tokens
    /// far above.
    fn assert_sane(spec: &str, [input, output, cache_read, cache_write]: [f64; 4]) {
        for price in [input, output, cache_read, cache_write] {
            assert!(price == 0.0 || (0.001..1_000.0).contains(&price), "{spec}: {price}");
        }
        assert!(input <= output && cache_read <= input && cache_write >= cache_read, "{spec}");
    }

    #[test]
    fn settings_override_single_facts_of_a_published_model() {
        let (settings, diagnostics) = Settings::read(
            std::path::Path::new("config.toml"),
            "models.'anthropic/claude-sonnet-5-5'.window = 5\n\
             models.'openai/gpt-6.1-sol'.price = { input = 1, output = 2 }",
        );
        assert_eq!(diagnostics, []);
        let (before, after) = (Catalogue::builtin(), Catalogue::with(&settings));
        let spec = "anthropic/claude-sonnet-5-5";
        let expected = Known { window: Some(5), ..before.models[spec].clone() };
        assert_eq!(after.models[spec], expected);
        let price = Price { input: 1.0, output: 2.0, ..Price::default() };
        assert_eq!(after.models["openai/gpt-6.1-sol"].price, Some(price));
    }

    #[test]
    fn settings_change_single_fields_and_add_providers() {
        let (settings, diagnostics) = Settings::read(
            std::path::Path::new("config.toml"),
            r#"
            [provider.anthropic]
            default_model = "claude-x"
            [provider.shed]
            wire = "chat"
            base_url = "http://shed:9000"
            key_env = ["SHED_KEY", "SHED_TOKEN"]
            [models."anthropic/claude-x"]
            window = 5
            "#,
        );
        assert_eq!(diagnostics, []);
        let all = Catalogue::with(&settings);
        let anthropic = &all.providers["anthropic"];
        assert_eq!(anthropic.default_model.as_deref(), Some("claude-x"));
        assert_eq!(anthropic.wire, Some(Wire::Anthropic));
        assert_eq!(all.providers["shed"].key_variables(), ["SHED_KEY", "SHED_TOKEN"]);
        assert_eq!(all.models["anthropic/claude-x"].window, Some(5));
        assert!(all.specs().contains(&"anthropic/claude-x".to_owned()));
        assert!(all.key_variables().contains(&"SHED_TOKEN".to_owned()));
    }
}
